/** Builds that are broken on purpose: what holds for clients that read slowly. */
import type { BrokenBuild } from './broken-build.ts';

export const HTTP: readonly BrokenBuild[] = [
  {
    id: 'R-08',
    test: 'test/http/slow-readers.test.ts',
    file: 'src/transports/http/stall.ts',
    find: 'return pending > 0 && now - this.#since >= stallMs;',
    replace: 'return false;',
    why: 'a client that never reads is never dropped',
  },
  {
    id: 'R-09',
    test: 'test/http/slow-readers.test.ts',
    file: 'src/actors/held.ts',
    find: '    this.#mail.delete(key);\n    this.#mail.set(key, mail);\n    if (this',
    replace: '    if (!this.#mail.has(key)) this.#mail.set(key, mail);\n    if (this',
    why: 'of what a handler says the first counts, not the last',
  },
];

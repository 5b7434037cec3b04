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
  {
    id: 'S-38',
    test: 'test/transports/http/health.test.ts',
    file: 'src/transports/http/endpoint.ts',
    find: '    if (refusal) return this.refuse(request, refusal);',
    replace: '    if (refusal && !health) return this.refuse(request, refusal);',
    why: 'health answers a page of another site',
  },
  {
    id: 'S-39',
    test: 'test/http/guard.test.ts',
    file: 'src/transports/http/endpoint.ts',
    find: "if (version !== undefined && version !== '1.1'",
    replace: "if (version !== undefined && version !== '0.9' && version !== '1.1'",
    why: 'a request line without a version is served',
  },
  {
    id: 'S-39',
    test: 'test/http/limits.test.ts',
    file: 'src/transports/http/http.ts',
    find: 'bytes += part.length + 2;',
    replace: 'bytes += part.length;',
    why: 'separators and line ends of headers are not counted',
  },
  {
    id: 'S-40',
    test: 'test/http/refusals.test.ts',
    file: 'src/transports/http/lingering.ts',
    find: 'socket.destroySoon = () => this.begin(socket);',
    replace: 'socket.destroySoon = () => socket.end(() => socket.destroy());',
    why: 'a connection is reset while its client still sends, and the response is lost',
  },
  {
    id: 'R-40',
    test: 'test/inbound/ids.test.ts',
    file: 'src/inbound/parse.ts',
    find: '    value: envelopeOf(text),',
    replace: '',
    why: 'a request that is too deep gets an error without its id, and its client waits for another',
  },
  {
    id: 'R-40',
    test: 'test/inbound/ids.test.ts',
    file: 'src/inbound/inbound.ts',
    find: 'id === undefined && this.#exchange ? DIALECTS[LATEST_LEGACY] : heard',
    replace: 'heard',
    why: 'over HTTP an error without an id has null for it',
  },
];

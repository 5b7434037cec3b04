/** Builds that are broken on purpose: what clients may make the server hold. */
import type { BrokenBuild } from './broken-build.ts';

const test = 'test/security/retained.test.ts';

export const LIMITS: readonly BrokenBuild[] = [
  {
    id: 'S-41',
    test,
    file: 'src/inbound/inbound.ts',
    find: 'this.#checkClientInfo(opening.clientInfo, opening.capabilities);',
    replace: '',
    why: 'a client may say as much of itself as fits into a message, and its session keeps it',
  },
  {
    id: 'S-41',
    test,
    file: 'src/hosting/directory.ts',
    find: 'SESSION_BYTES + heapBytes(clientInfo) + heapBytes(capabilities)',
    replace: 'SESSION_BYTES',
    why: 'sessions count, and not what their clients say of themselves',
  },
];

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
  {
    id: 'S-42',
    test,
    file: 'src/hosting/task-shelf.ts',
    find: 'tasks.excess(principal) ?? retained.excess(principal, TASK_BYTES + bytes, session?.id)',
    replace: 'tasks.excess(principal)',
    why: 'tasks count, and not what their calls bring',
  },
  {
    id: 'S-42',
    test,
    file: 'src/hosting/tasks.ts',
    find: '    if (!excess) return outcome;',
    replace: '    if (excess || !excess) return outcome;',
    why: 'a result is kept, however large it is',
  },
];

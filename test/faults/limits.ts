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
  {
    id: 'S-43',
    test,
    file: 'src/handles/batch.ts',
    find: "if (own?.kind === 'own') entry",
    replace: "if (own?.kind !== 'created') entry",
    why: 'a client may make a handle keep what it likes by its events',
  },
  {
    id: 'S-43',
    test,
    file: 'src/handles/footprint.ts',
    find: '    this.#instance = bytes;\n    this.#resize',
    replace: '    this.#instance = 0;\n    this.#resize',
    why: 'what the store keeps in memory of a handle that hibernates does not count',
  },
  {
    id: 'S-43',
    test,
    file: 'src/handles/instance.ts',
    find: '    this.#seen.closed();\n    this.#host.left(this);\n',
    replace: '',
    why: 'what could not begin stays in the list of those in memory, with its input',
  },
  {
    id: 'S-43',
    test,
    file: 'src/handles/directory.ts',
    find: 'if (this.#expired.size <= this.#host.limits.maxRememberedHandles) return;',
    replace: 'if (this.#expired.size > 0) return;',
    why: 'handles that have expired are remembered, however many',
  },
];

/** Broken builds: the promises of a machine's tools. */
import type { BrokenBuild } from './broken-build.ts';

export const TOOLSET: readonly BrokenBuild[] = [
  {
    id: 'S-01',
    test: 'test/features/machines/toolset.test.ts',
    in: 'checkEvent',
    find: "if (type.startsWith('xstate.')) refuse(",
    replace: "if (type === 'xstate.') refuse(",
    why: 'an author can list an event of XState',
  },
  {
    id: 'S-01',
    test: 'test/features/machines/toolset.test.ts',
    in: 'handle-arguments.ts: sendingAny',
    find: "const members = typeof event === 'string' ? ready.get(event) : undefined;",
    replace: "const members = typeof event === 'string' ? (ready.get(event) ?? [...ready.values()][1]) : undefined;",
    why: 'an unlisted event counts as another one',
  },
  {
    id: 'S-04',
    test: 'test/features/machines/toolset.test.ts',
    in: 'Handles.#find',
    find: 'if (!entry || entry.principal !== principal) throw unknownHandle(name);',
    replace: 'if (!entry) throw unknownHandle(name);',
    why: 'a handle answers another principal',
  },
  {
    id: 'S-04',
    test: 'test/features/machines/toolset.test.ts',
    in: 'topics.ts: belongsToOther',
    find: "return 'owner' in change && change.owner !== undefined && change.owner !== principal;",
    replace: 'return false;',
    why: 'another principal is notified that a handle has changed',
  },
  {
    id: 'R-01',
    test: 'test/system/examples/order-kill.test.ts',
    in: 'BatchWrites.commit',
    find: 'return this.#store.commit(batch);',
    replace: 'return this.#store.commit(batch.slice(0, 0));',
    why: 'a handle is not persisted',
    built: true,
  },
];

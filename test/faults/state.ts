/** Broken builds: the promises of state. */
import type { BrokenBuild } from './broken-build.ts';

export const STATE: readonly BrokenBuild[] = [
  {
    id: 'R-54',
    test: 'test/features/state/durable.test.ts',
    in: 'StateScope.#store',
    find: "this.#tell(store.swap(swap), (stored) => ({ type: 'swapped', stored }));",
    replace: "store.swap(swap).catch(() => {});\n    this.#self.send({ type: 'swapped', stored: true });",
    why: 'a change is acknowledged before it is stored',
    built: true,
  },
  {
    id: 'R-55',
    test: 'test/features/state/durable.test.ts',
    in: 'layer-statement.ts: PARTS',
    find: 'AND r.version = t.k',
    replace: '',
    why: 'a node overwrites what another has stored since it read the scope',
  },
  {
    id: 'S-94',
    test: 'test/features/state/state.test.ts',
    in: 'caller-state.ts: callerState',
    find: 'principal === ANONYMOUS ? ofSession : principalScope(principal)',
    replace: 'principalScope(principal)',
    why: 'all anonymous callers share one scope',
  },
];

/** Broken builds: the invariants of every simulated world. */
import type { BrokenBuild } from './broken-build.ts';

export const SIMULATION: readonly BrokenBuild[] = [
  {
    id: 'R-32',
    test: 'test/system/simulation/simulation.test.ts',
    in: 'StepLog.#stored',
    find: 'await stored;',
    replace: '',
    why: 'a step result is used before it is durable',
  },
  {
    id: 'R-32',
    test: 'test/system/simulation/simulation.test.ts',
    in: 'TaskTable.own',
    find: 'if (!entry || entry.record.owner !== ownerOf(client)) return undefined;',
    replace: 'if (!entry) return undefined;',
    why: 'a task answers another principal',
  },
  {
    id: 'R-32',
    test: 'test/system/simulation/simulation.test.ts',
    in: 'overloadReason',
    find: 'if (size < maxInFlight) return undefined;',
    replace: 'if (size < 1_000) return undefined;',
    why: 'the limit of requests in flight is not enforced',
  },
  {
    id: 'R-32',
    test: 'test/system/simulation/simulation.test.ts',
    in: 'SessionRecord.gate',
    find: 'this.#output.after(run, failed);',
    replace: 'run(); void failed;',
    why: 'a client sees what is not yet durable',
  },
];

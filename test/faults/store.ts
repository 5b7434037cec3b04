/** Builds that are broken on purpose: what the store promises. */
import type { BrokenBuild } from './broken-build.ts';

export const STORE: readonly BrokenBuild[] = [
  {
    id: 'R-03',
    test: 'test/store/power-loss.test.ts',
    file: 'src/store/sqlite-schema.ts',
    find: 'synchronous=FULL',
    replace: 'synchronous=NORMAL',
    why: 'a commit is answered before it is on the disk',
  },
  {
    id: 'R-04',
    test: 'test/store/damage.test.ts',
    file: 'src/store/sqlite-journal-rows.ts',
    find: 'if (prev !== previous || eventSum(prev, of.n, seq, kind, data) !== crc) throw damaged(what);',
    replace: '',
    why: 'damaged events are served',
  },
  {
    id: 'R-18',
    test: 'test/store/faults.test.ts',
    file: 'src/store/sqlite-database.ts',
    find: "[FULL]: 'full',",
    replace: '',
    why: 'a full disk is taken for a broken one',
  },
  {
    id: 'R-19',
    test: 'test/store/faults.test.ts',
    file: 'src/store/sqlite-groups.ts',
    find: 'return this.#failed(jobs, error);',
    replace: "return jobs.map(({ id }) => ({ id, found: { type: 'done' } }));",
    why: 'a commit that failed is answered as one that did not',
  },
  {
    id: 'R-20',
    test: 'test/store/faults.test.ts',
    file: 'src/store/sqlite.ts',
    find: "await this.#ask({ type: 'commit', writes, length: lengthOf(writes) });",
    replace:
      "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20); await this.#ask({ type: 'commit', writes, length: lengthOf(writes) });",
    why: 'the main thread waits for the disk',
  },
  {
    id: 'R-26',
    test: 'test/store/retention.test.ts',
    file: 'src/store/sqlite-journal.ts',
    find: 'if (after > 0 && after < of.purged) throw gone(actor, stream, after);',
    replace: '',
    why: 'what was purged is passed over in silence',
  },
  {
    id: 'R-26',
    test: 'test/store/retention.test.ts',
    file: 'src/store/sqlite-journal.ts',
    find: 'if (to.events > maxStreamEvents)',
    replace: 'if (to.events > 1e9)',
    why: 'a stream grows without a bound',
  },
  {
    id: 'R-26',
    test: 'test/store/retention.test.ts',
    file: 'src/store/sqlite-groups.ts',
    find: 'sweep.surplus ??= this.#rows.replies() - maxReplies;',
    replace: 'sweep.surplus ??= 0;',
    why: 'all replies together grow without a bound',
  },
  {
    id: 'R-01',
    test: 'test/store/contract.test.ts',
    file: 'src/store/sqlite-groups.ts',
    find: "if (there !== undefined && there !== '') return there;",
    replace: "if (there !== undefined && there === '') return there;",
    why: 'a call with a key is claimed twice',
  },
];

/** Nodes on a simulated database: whatever is killed, paused, stopped or cut off, what was acknowledged is stored once, and a cell has one writer. */
import * as assert from 'uvu/assert';
import { conclusive, suite, timeLimit } from '../../harness/door.ts';
import type { DatabaseFaults } from '../../harness/memory-nodes.ts';
import { atScale, FIRST_SEED } from '../../harness/scale.ts';
import { liveCluster } from './cluster-world.ts';

const test = suite('simulated nodes');

const SEEDS = atScale({ quick: 2, full: 40, proof: 10_000 });
timeLimit(atScale({ quick: 60_000, full: 600_000, proof: 3_600_000 }));

interface Totals {
  readonly findings: readonly string[];
  readonly acknowledged: number;
  readonly forwarded: number;
  readonly fenced: number;
}

function seeds(count: number): readonly number[] {
  const named = process.env.TROUPE_SEED;
  return named === undefined ? Array.from({ length: count }, (_, index) => FIRST_SEED + index) : [Number(named)];
}

async function search(count: number, faults: DatabaseFaults = {}): Promise<Totals> {
  const findings: string[] = [];
  let [acknowledged, forwarded, fenced] = [0, 0, 0];
  for (const seed of seeds(count)) {
    const report = await liveCluster(seed, faults);
    acknowledged += report.acknowledged;
    forwarded += report.forwarded;
    fenced += report.fenced;
    if (report.violation === undefined) continue;
    findings.push(`seed ${seed} violates ${report.violation}\n${report.trace.slice(-60).join('\n')}`);
    break;
  }
  return { findings, acknowledged, forwarded, fenced };
}

test(`D-22: in ${SEEDS} simulated clusters with kills, pauses, stops and cuts, no invariant is violated`, async () => {
  const { findings, acknowledged, forwarded, fenced } = await search(SEEDS);
  conclusive(() => assert.equal(findings, []));
  // Clusters in which nothing happens hold everything.
  assert.ok(Math.min(acknowledged, forwarded) > SEEDS && fenced > 0, `${acknowledged} ${forwarded} ${fenced}`);
});

test.full('D-22: a database that fences living nodes costs restarts, and never a second truth', async () => {
  assert.equal((await search(SEEDS / 4, { judgesNothing: true })).findings, []);
});

for (const [title, faults, kind] of [
  ['a database that accepts commits of fenced nodes', { fencesNobody: true }, /violates (?:N1, N2|I1): /],
  ['a database that gives a cell to every node that asks', { comparesNothing: true }, /violates N1, N2: /],
  ['commits that are acknowledged before they are stored', { acknowledgesEarly: true }, /violates I1: /],
] as const) {
  test.full(`D-22: the simulator finds ${title}`, async () => {
    const { findings } = await search(200, faults);
    assert.match(findings[0] ?? 'nothing', kind);
  });
}

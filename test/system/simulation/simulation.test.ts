/** The simulated world: seeds that hold every invariant, the same trace for the same seed, and breaks that are found. */
import { spawnSync } from 'node:child_process';
import * as assert from 'uvu/assert';
import { compiled } from '../../harness/compiled.ts';
import { conclusive, suite, timeLimit } from '../../harness/door.ts';
import { atScale, FIRST_SEED, PROOF } from '../../harness/scale.ts';
import { HAPPENINGS, type Happening } from './book.ts';
import type { Breaks } from './breaks.ts';
import { kindOf, search, simulate, tell } from './simulate.ts';
import type { Report } from './world.ts';

const test = suite('simulation');

/** How many seeds there are; each is a world of its own. */
const SEEDS = atScale({ quick: 4, full: 40, proof: 10_000 });
timeLimit(PROOF ? 3_600_000 : 300_000);

/** One seed alone, where TROUPE_SEED names it. */
function* seeds(): Iterable<number> {
  const named = process.env.TROUPE_SEED;
  if (named !== undefined) yield Number(named);
  else for (let seed = FIRST_SEED; seed < FIRST_SEED + SEEDS; seed += 1) yield seed;
}

test(`R-32: in ${SEEDS} simulated worlds of crashes, slow and failing disks, cuts and delays, no invariant is violated`, async () => {
  const counts = new Map<Happening, number>();
  const lived = (report: Report): void => {
    for (const [what, times] of report.counts) counts.set(what, times + (counts.get(what) ?? 0));
  };
  const findings = await search(seeds(), { lived });
  conclusive(() => assert.is(findings.length, 0, findings.map(tell).join('\n\n')));
  if (process.env.TROUPE_SEED !== undefined) return;
  // A few worlds need not see everything.
  if (!PROOF) return;
  const never = HAPPENINGS.filter((what) => !counts.has(what));
  assert.equal(never, [], 'and all that can go wrong, or go on, has happened');
});

test('R-32: a seed lives the same life twice', async () => {
  const { hash } = await simulate(21);
  assert.is((await simulate(21)).hash, hash);
});

// It loads the sources once more: a second of processor time.
test.full('R-32: a seed lives the same life in this process and in another, and others live other ones', async () => {
  const traceOf = compiled('test/system/simulation/trace-of.ts');
  const some = [7, 21, 42];
  const here = [];
  for (const seed of some) here.push((await simulate(seed)).hash);
  const again = [];
  for (const seed of some) again.push((await simulate(seed)).hash);
  assert.equal(again, here);
  assert.is(new Set(here).size, some.length);
  const { stdout, stderr } = spawnSync(process.execPath, [traceOf, ...some.map(String)], { encoding: 'utf8' });
  assert.equal(stdout.trim().split('\n'), here, stderr);
});

/** The breaks that only the full run looks for: they show after many worlds, or in long ones. */
const RARE: readonly (keyof Breaks)[] = ['acknowledgesEarly', 'fencesNobody', 'forgetsSteps', 'revivesTasks'];

const BROKEN: readonly (readonly [title: string, breaks: Breaks, kinds: readonly string[]])[] = [
  ['a store that answers before what it keeps is durable', { acknowledgesEarly: true }, ['I1']],
  ['a store that takes what a fenced process writes', { fencesNobody: true }, ['I3']],
  ['a server that answers some requests twice', { answersTwice: true }, ['answers']],
  ['a server that never answers some requests', { losesAnswers: true }, ['I7']],
  ['answers that go to another client', { mixesClients: true }, ['I4', 'answers', 'I7']],
  ['progress that arrives in another order', { reorders: true }, ['I2']],
  ['recorded steps that run again', { forgetsSteps: true }, ['steps']],
  ['a bound that does not hold', { ignoresBounds: true }, ['I5']],
  ['tasks that have ended and work again', { revivesTasks: true }, ['I6']],
];

for (const [title, breaks, kinds] of BROKEN) {
  const add = RARE.some((name) => name in breaks) ? test.full : test;
  add(`R-32: the simulator finds ${title}`, async () => {
    const [found] = await search(range(1, 200), { breaks, most: 1, shrinks: PROOF });
    assert.ok(found, 'none of 200 seeds found it');
    assert.ok(kinds.includes(kindOf(found.violation)), tell(found));
  });
}

test.full(
  'R-32: a failure is reported with its seed, and with fewer actions than its plan, which fail alike',
  async () => {
    const [found] = await search(range(1, 200), { breaks: { acknowledgesEarly: true }, most: 1 });
    assert.ok(found);
    assert.ok(found.plan.length <= 12, `${found.plan.length} actions are left`);
    assert.match(tell(found), `seed ${found.seed} violates I1`);
    assert.match(tell(found), '"tool":"deposit"');
  },
);

function* range(from: number, to: number): Iterable<number> {
  for (let seed = from; seed <= to; seed += 1) yield seed;
}

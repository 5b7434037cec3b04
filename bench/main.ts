/** The benchmark: floor and ours in one run, in turns, so that whatever else the machine does hits both. `--quick` takes seconds, and fails below the goal. */
import { type Contender, Echo, type Measured } from './stdio.ts';

/** At 64 in flight, legacy and modern echo reach this share of the floor at least. */
const GOAL = 0.6;
const quick = process.argv.includes('--quick');
const rounds = quick ? 5 : 15;
const calls = { 1: quick ? 3_000 : 20_000, 64: quick ? 40_000 : 200_000 };

/** Each of ours beside the floor that answers the very same messages. */
const contenders: readonly (Contender & { readonly floor?: string })[] = [
  { name: 'bare line loop, legacy messages', args: ['servers/floor.mjs'], era: 'legacy', handshake: false },
  {
    name: 'troupe, legacy session',
    args: ['servers/troupe.mjs'],
    era: 'legacy',
    floor: 'bare line loop, legacy messages',
  },
  { name: 'bare line loop, modern messages', args: ['servers/floor.mjs'], era: 'modern' },
  { name: 'troupe, modern', args: ['servers/troupe.mjs'], era: 'modern', floor: 'bare line loop, modern messages' },
];

const IN_FLIGHT = [1, 64] as const;
const running = await Promise.all(
  contenders.map(async (contender) => ({
    contender,
    echo: await Echo.start(contender),
    results: { 1: [] as Measured[], 64: [] as Measured[] },
  })),
);
for (const { echo } of running) await echo.run(calls[64], 64);
for (let round = 0; round < rounds; round += 1) {
  for (const inFlight of IN_FLIGHT) {
    for (const { echo, results } of running) results[inFlight].push(await echo.run(calls[inFlight], inFlight));
  }
}
await Promise.all(running.map(({ echo }) => echo.stop()));

process.stdout.write(`echo over stdio, node ${process.version}, median of ${rounds} rounds\n\n`);
process.stdout.write('| server | in flight | calls/s | of the floor | p50 ms | p99 ms |\n|---|---|---|---|---|---|\n');
let below = false;
for (const inFlight of IN_FLIGHT) {
  const rate = new Map(
    running.map(({ contender, results }) => [contender.name, middle(results[inFlight], 'perSecond')]),
  );
  for (const { contender, results } of running) {
    const perSecond = rate.get(contender.name) ?? Number.NaN;
    const share = contender.floor === undefined ? 1 : perSecond / (rate.get(contender.floor) ?? Number.NaN);
    if (inFlight === 64 && share < GOAL) below = true;
    const cells = [
      contender.name,
      inFlight,
      Math.round(perSecond).toLocaleString('en'),
      share.toFixed(2),
      middle(results[inFlight], 'p50').toFixed(3),
      middle(results[inFlight], 'p99').toFixed(3),
    ];
    process.stdout.write(`| ${cells.join(' | ')} |\n`);
  }
}
if (below) {
  process.stdout.write(`\nbelow the goal: ${GOAL} of the floor at 64 in flight\n`);
  process.exitCode = 1;
}

/** The median of one figure over the rounds. */
function middle(results: readonly Measured[], figure: keyof Measured): number {
  const sorted = results.map((result) => result[figure]).sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

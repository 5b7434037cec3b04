/** The benchmark: floor and ours in one run, in turns, so that whatever else the machine does hits both. `--quick` takes seconds, and fails below the goal. */
import { type Contender, Echo, type Measured } from './stdio.ts';

/** At 64 in flight, legacy and modern echo reach this share of the floor at least. */
const GOAL = 0.6;
const quick = process.argv.includes('--quick');
const rounds = quick ? 5 : 15;
const calls = { 1: quick ? 3_000 : 20_000, 64: quick ? 40_000 : 200_000 };

const TSX = ['--import', 'tsx'];
const contenders: readonly Contender[] = [
  { name: 'bare line loop', args: [...TSX, 'servers/floor.ts'], era: 'none' },
  { name: 'troupe, legacy session', args: [...TSX, 'servers/troupe.ts'], era: 'legacy' },
  { name: 'troupe, modern', args: [...TSX, 'servers/troupe.ts'], era: 'modern' },
];

const running = await Promise.all(
  contenders.map(async (contender) => ({
    contender,
    echo: await Echo.start(contender),
    results: { 1: [] as Measured[], 64: [] as Measured[] },
  })),
);
for (const { echo } of running) await echo.run(calls[64], 64);
for (let round = 0; round < rounds; round += 1) {
  for (const inFlight of [1, 64] as const) {
    for (const { echo, results } of running) results[inFlight].push(await echo.run(calls[inFlight], inFlight));
  }
}
await Promise.all(running.map(({ echo }) => echo.stop()));

process.stdout.write(`echo over stdio, node ${process.version}, median of ${rounds} rounds\n\n`);
process.stdout.write('| server | in flight | calls/s | of the floor | p50 ms | p99 ms |\n|---|---|---|---|---|---|\n');
let below = false;
for (const inFlight of [1, 64] as const) {
  const floor = median(running[0]?.results[inFlight].map(({ perSecond }) => perSecond) ?? []);
  for (const { contender, results } of running) {
    const perSecond = median(results[inFlight].map((result) => result.perSecond));
    const share = perSecond / floor;
    if (inFlight === 64 && share < GOAL) below = true;
    const p50 = median(results[inFlight].map((result) => result.p50));
    const p99 = median(results[inFlight].map((result) => result.p99));
    process.stdout.write(
      `| ${contender.name} | ${inFlight} | ${Math.round(perSecond).toLocaleString('en')} | ${share.toFixed(2)} | ${p50.toFixed(3)} | ${p99.toFixed(3)} |\n`,
    );
  }
}
if (below) {
  process.stdout.write(`\nbelow the goal: ${GOAL} of the floor at 64 in flight\n`);
  process.exitCode = 1;
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

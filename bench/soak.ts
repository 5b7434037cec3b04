/** The soak: a million calls of the built server over stdio (`--calls N` for another number). Fails where memory is not flat. */
import { parseArgs } from 'node:util';
import { slope, soak } from './soaking.ts';

/** Growth that is borne over the second half of the run, in bytes for each 100,000 calls. */
const GOAL = 1_000_000;
/** A shorter run says nothing of memory: for this many calls Node still warms up. */
const JUDGED = 400_000;

const { values } = parseArgs({ options: { calls: { type: 'string', default: '1000000' } } });
const calls = Number(values.calls);
if (!Number.isSafeInteger(calls) || calls < 1) {
  process.stderr.write(`--calls: expected a whole number of at least 1, got ${values.calls}\n`);
  process.exit(2);
}
const out = (line: string): void => void process.stdout.write(`${line}\n`);
const megabytes = (bytes: number | undefined): string =>
  bytes === undefined ? 'not known' : (bytes / 1_000_000).toFixed(1);

out(`${calls.toLocaleString('en')} calls over stdio, 64 in flight, both eras, node ${process.version}\n`);
out('| calls | seconds | calls/s | resident MB |');
out('|---|---|---|---|');
let before = { calls: 0, seconds: 0 };
const { samples, cancelled, code } = await soak({
  calls,
  every: Math.min(50_000, Math.ceil(calls / 20)),
  weighed(sample) {
    const perSecond = (sample.calls - before.calls) / (sample.seconds - before.seconds);
    before = sample;
    const cells = [
      sample.calls.toLocaleString('en'),
      sample.seconds.toFixed(1),
      Math.round(perSecond).toLocaleString('en'),
      megabytes(sample.resident),
    ];
    out(`| ${cells.join(' | ')} |`);
  },
});
out(`\nEvery answer was right; ${cancelled.toLocaleString('en')} calls were cancelled, and got none.`);
const growth = calls < JUDGED ? undefined : slope(samples);
if (calls < JUDGED) out(`Memory is not judged below ${JUDGED.toLocaleString('en')} calls.`);
else if (growth === undefined) out('Memory: skipped, as this system has neither /proc nor ps.');
else
  out(
    `Memory over the second half: ${megabytes(growth)} MB for each 100,000 calls (goal: at most ${megabytes(GOAL)}).`,
  );
if (code !== 0) out(`The server ended with code ${code}.`);
if (code !== 0 || (growth ?? 0) > GOAL) process.exitCode = 1;

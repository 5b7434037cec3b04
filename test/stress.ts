/** `npm run test:stress`: runs the tests many times beside busy loops, or with late input, and prints each failure. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { parseArgs } from 'node:util';
import { root } from './runner/plan.ts';

const USAGE = 'usage: npm run test:stress -- [--times N] [--loops N] [--late MS] [--full] [FILE | FOLDER…]';
/** The lines of a run that name its failures. */
const FAILURE = /^\s*FAIL |^not green: |^flaky: |^\d+ passed/;

const isTitle = (line: string): boolean => /^\s*FAIL /.test(line);

const { values, positionals } = parseArgs({
  options: {
    times: { type: 'string', default: '20' },
    loops: { type: 'string', default: '8' },
    late: { type: 'string' },
    full: { type: 'boolean', default: false },
  },
  allowPositionals: true,
});
const times = count('--times', values.times);
// What sockets, pipes and threads bring is late (test/harness/late-io.ts).
if (values.late !== undefined) process.env.TROUPE_TEST_LATE_MS = String(count('--late', values.late));
const loops = Array.from({ length: count('--loops', values.loops) }, busyLoop);
let red = 0;
try {
  for (let round = 1; round <= times; round += 1) {
    const { code, output, seconds } = await run();
    if (code !== 0) red += 1;
    const all = output.split('\n');
    // What failed stands below its title.
    const lines = all.filter((line, at) => FAILURE.test(line) || all.slice(Math.max(0, at - 3), at).some(isTitle));
    process.stdout.write(`${round} of ${times}: ${code === 0 ? 'green' : 'red'}, ${seconds} s\n`);
    for (const line of lines) process.stdout.write(`  ${line.trim()}\n`);
  }
} finally {
  for (const loop of loops) loop.kill();
}
process.stdout.write(`${times - red} of ${times} runs are green beside ${loops.length} busy loops\n`);
process.exitCode = red > 0 ? 1 : 0;

function count(option: string, word: string): number {
  if (!/^[1-9]\d{0,3}$/.test(word))
    throw new Error(`${option}: expected a number from 1 to 9999, got ${word}\n${USAGE}`);
  return Number(word);
}

/** A process that takes all of the processor time it can get, and ends with this one. */
function busyLoop(): ChildProcess {
  const code = 'process.on("disconnect", () => process.exit()); setImmediate(function spin() { setImmediate(spin); });';
  return spawn(process.execPath, ['-e', code], { stdio: ['ignore', 'ignore', 'ignore', 'ipc'] });
}

async function run(): Promise<{ code: number | null; output: string; seconds: number }> {
  const began = performance.now();
  const words = [...(values.full ? ['--full'] : []), ...positionals];
  const child = spawn(process.execPath, ['--import', 'tsx', 'test/run.ts', ...words], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, output, seconds: Math.round((performance.now() - began) / 1000) };
}

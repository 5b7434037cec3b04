/**
 * Runs the test files on all cores, the slowest first, and closes on one line that counts all tests. Short files that leave their
 * process as they found it share a process, which loads the sources once for all of them; every other file gets its own.
 */
import { once } from 'node:events';
import { join, relative, resolve } from 'node:path';
import spawn from 'cross-spawn';
import { LATE_COLLECTION } from '../build/typescript.ts';
import { compile } from './harness/compiled.ts';
import { firstSeed } from './harness/scale.ts';
import { fileTable, folderTable, slowFiles, writeCosts } from './runner/costs.ts';
import { objections, readHistory, remember } from './runner/flaky.ts';
import { runInside } from './runner/inside.ts';
import { type Failure, MARK, runJob } from './runner/job.ts';
import { filesOf, growsWithScale, jobsOf, LANES, MORE_LANES, root } from './runner/plan.ts';
import { type Ended, processorSeconds } from './runner/reports.ts';
import { stopRunPostgres } from './runner/run-postgres.ts';

const USAGE =
  'usage: node --import tsx test/run.ts [--check] [--full | --proof] [--rest] [--rerun] [--timings] [--title=WORDS] [FILE | FOLDER…]';
const OPTIONS = ['--check', '--full', '--proof', '--rest', '--rerun', '--timings'];
/** The flaky files of the last runs of all files in this checkout. */
const HISTORY = join(root, 'node_modules/.cache/troupe/flaky.json');

/** Lines of a failed check that are repeated at the end of the run, where the logs of CI are read. */
const CHECK_LINES = 40;

/** The option that runs only the tests whose titles have these words. */
const TITLE = '--title=';

async function runAll(given: readonly string[]): Promise<void> {
  // Tests start the compiler, too.
  Object.assign(process.env, { ...LATE_COLLECTION, ...process.env });
  const words = given.filter((word) => !word.startsWith(TITLE));
  const title = given.find((word) => word.startsWith(TITLE));
  if (title !== undefined) process.env.TROUPE_TEST_TITLE = title.slice(TITLE.length);
  if (words.some((word) => word.startsWith('--') && !OPTIONS.includes(word))) throw new Error(USAGE);
  if (words.includes('--full')) process.env.TROUPE_SCALE = 'full';
  if (words.includes('--proof')) process.env.TROUPE_SCALE = 'proof';
  const scale = process.env.TROUPE_SCALE ?? 'quick';
  const named = words.filter((word) => !word.startsWith('--')).map((path) => resolve(path));
  const all = named.length === 0;
  const found = filesOf(named, scale !== 'quick');
  // CI runs `npm test` first.
  const files = words.includes('--rest') ? found.filter(growsWithScale) : found;
  if (scale === 'full') process.stdout.write(`the simulations begin with seed ${firstSeed('full')}\n`);
  const began = performance.now();
  const check = words.includes('--check') ? runCheck() : undefined;
  // A run that a test starts finds all files compiled.
  if (process.env[MARK] === undefined) {
    await compile();
    const { compileSchemas } = await import('./harness/wire-schemas.ts');
    await compileSchemas();
  }

  const ended: Ended[] = [];
  const failures: Failure[] = [];
  // A few named files are quickest side by side; a whole run is quickest with few processes.
  const many = files.length > 2 * LANES;
  const queue = jobsOf(files, slowFiles(scale !== 'quick'), many);
  const lane = async (): Promise<void> => {
    for (let job = queue.shift(); job !== undefined; job = queue.shift()) {
      const result = await runJob(job);
      process.stdout.write(result.output);
      ended.push(...result.ended);
      failures.push(...result.failures);
      if (result.rest.length > 0) queue.push({ files: result.rest, seconds: 0 });
    }
  };
  await Promise.all(Array.from({ length: many ? LANES + MORE_LANES : LANES }, lane));
  const faults = (await check) ?? [];

  const { flaky, wrong } = await judge(failures, all || words.includes('--rerun'));
  await stopRunPostgres();
  const names = flaky.map(({ file }) => file);
  const reasons = objections(names, all ? readHistory(HISTORY) : []);
  if (all) remember(HISTORY, names);

  const timed = words.includes('--timings');
  if (timed) process.stdout.write(fileTable(ended));
  if (all || timed) process.stdout.write(folderTable(ended));
  // The table has the costs of the time before.
  if (timed && all && scale !== 'proof') writeCosts(ended, scale === 'full');
  if (faults.length > 0) wrong.push('npm run check');
  if (wrong.length > 0) process.stdout.write(`\nnot green: ${wrong.join(', ')}\n`);
  for (const fault of faults) process.stdout.write(`check: ${fault}\n`);
  for (const { file, reason } of flaky) process.stdout.write(`flaky: ${file} (first failure: ${reason})\n`);
  for (const reason of reasons) process.stdout.write(`not green: ${reason}\n`);
  const sum = (count: 'passed' | 'failed' | 'skipped'): number =>
    ended.reduce((total, { totals }) => total + totals[count], 0);
  const excused = flaky.reduce((total, { failed }) => total + failed, 0);
  const failed = Math.max(sum('failed') - excused, wrong.length) + reasons.length;
  const took = ((performance.now() - began) / 1000).toFixed(1);
  process.stdout.write(`\n${files.length} files in ${took} s, ${processorSeconds().toFixed(1)} s of processor time\n`);
  const passed = sum('passed') + excused;
  process.stdout.write(`${passed} passed, ${failed} failed, ${sum('skipped')} skipped\n`);
  process.exitCode = failed > 0 || passed === 0 ? 1 : 0;

  /** Runs each file that failed again, alone, unless its failure is conclusive. */
  async function judge(found: readonly Failure[], rerun: boolean) {
    const flaky: { file: string; reason: string; failed: number }[] = [];
    const wrong: string[] = [];
    for (const path of new Set(found.map(({ file }) => file))) {
      const file = relative(root, path);
      const own = found.filter((failure) => failure.file === path);
      const conclusive = own.find((failure) => failure.conclusive);
      if (conclusive) process.stdout.write(`\n${file}: not run again: ${conclusive.reason}\n`);
      if (!rerun || conclusive) {
        wrong.push(file);
        continue;
      }
      process.stdout.write(`\n${file}: runs again, alone\n`);
      const again = await runJob({ files: [path], seconds: 0 });
      process.stdout.write(again.output);
      if (again.failures.length > 0) {
        wrong.push(file);
        continue;
      }
      const failed = ended.findLast((report) => report.file === path)?.totals.failed ?? 0;
      flaky.push({ file, reason: own[0]?.reason ?? 'failed', failed });
    }
    return { flaky, wrong };
  }
}

/** Checks types and style beside the first files, and prints what it finds at once. @returns the last lines of it; none if all is well */
async function runCheck(): Promise<readonly string[]> {
  const child = spawn('npm', ['run', '--silent', 'check'], { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (text: string) => {
      process.stdout.write(text);
      output += text;
    });
  const [code] = await once(child, 'close');
  if (code === 0) return [];
  const lines = output.split('\n').filter((line) => line.trim() !== '');
  return [...lines.slice(-CHECK_LINES), `npm run check ended with ${code}`];
}

const args = process.argv.slice(2);
if (args[0] === '--inside') await runInside(args.slice(1));
else await runAll(args);

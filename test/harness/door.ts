/** The one door to uvu: suites register here, and nothing that goes wrong in one can pass for success. */
import { processorSeconds } from '../runner/reports.ts';
import { SCALE } from './scale.ts';

type Callback = () => Promise<void> | void;

/** A suite of tests. Call it with a title and a body; `before`, `after` and `each` guard their errors. */
export interface Suite {
  (title: string, body: Callback): void;
  /** A test that `npm test` leaves to `npm run test:full`: what it costs is more than what it adds to the quick tests of its subject. */
  full(title: string, body: Callback): void;
  skip(title: string, why: string): void;
  before(hook: Callback): void;
  after(hook: Callback): void;
  beforeEach(hook: Callback): void;
  afterEach(hook: Callback): void;
}

interface Case {
  readonly title: string;
  readonly body: Callback;
}

interface Registered {
  readonly name: string;
  readonly cases: Case[];
  readonly skipped: { title: string; why: string }[];
  /** Tests that are left to the full run. */
  left: number;
  readonly hooks: Record<'before' | 'after' | 'beforeEach' | 'afterEach', Callback[]>;
}

const registered: Registered[] = [];

/** The promise that a broken build breaks: its tests run first, and the first of them that fails ends the process. */
const PROMISE = process.env.TROUPE_PROMISE;

/** Words of a title: only the tests whose titles have them run, also those of the full run. */
const TITLE = process.env.TROUPE_TEST_TITLE;

/** A broken build that hangs is found by this limit. The tests of the door make it shorter. */
const USUAL_LIMIT_MS = Number(process.env.TROUPE_TEST_LIMIT_MS ?? (PROMISE === undefined ? 300_000 : 60_000));

/** Characters of the first failure of a file in the report of a run. */
const FAILURE_LENGTH = 300;

/** Processor seconds from which the costs of a run name a test. */
const EXPENSIVE_S = 0.15;

/** Longest that one test may take, in milliseconds, unless its file says otherwise with `timeLimit`. */
let limit = USUAL_LIMIT_MS;

/** Sets the limit of each test of the file that is loading, in milliseconds. It is at least the usual one, which only ends hangs: a busy machine takes minutes. */
export function timeLimit(ms: number): void {
  limit = Math.max(ms, USUAL_LIMIT_MS);
}

/**
 * Declares that `npm test` leaves the file to `npm run test:full`. The runner reads the declaration in the text of the file.
 *
 * @param why the costs of the file, and the quick test of its subject
 * @example fullOnly('kills 10 processes; the quick one is takeover.test.ts');
 */
export function fullOnly(_why: string): void {}

/** A failure that another run of its file cannot excuse. */
class Conclusive extends Error {
  override readonly name = 'Conclusive';
}

/**
 * Runs a check whose failure counts, even if the file passes when it runs again alone: a lost acknowledged effect, or a world
 * that a simulation found.
 *
 * @throws the error of the check, marked
 * @example conclusive(() => assert.equal(lost, []));
 */
export function conclusive(check: () => void): void {
  try {
    check();
  } catch (error) {
    throw new Conclusive(error instanceof Error ? error.message : String(error), { cause: error });
  }
}

/**
 * Opens a suite. It runs when the runner has loaded the file; there is no `.run()` to forget.
 *
 * @param missing what the suite needs and this machine lacks: one line says that all its tests are skipped
 * @example const test = suite('emitter'); test('sends progress before its result', () => {});
 */
export function suite(name: string, missing?: string): Suite {
  const mine: Registered = {
    name,
    cases: [],
    skipped: [],
    left: 0,
    hooks: { before: [], after: [], beforeEach: [], afterEach: [] },
  };
  registered.push(mine);
  if (missing !== undefined) return absent(mine, missing);
  const add = (title: string, body: Callback): void => {
    if (/\bshould\b/i.test(title))
      throw new Error(`test title "${title}": say it as a fact in the present tense, without "should"`);
    if (mine.cases.some((other) => other.title === title))
      throw new Error(`suite "${name}" has two tests titled "${title}"`);
    if (TITLE === undefined || title.includes(TITLE)) mine.cases.push({ title, body });
    else mine.left += 1;
  };
  return Object.assign(add, {
    full: (title: string, body: Callback) => {
      if (SCALE !== 'quick' || PROMISE !== undefined || TITLE !== undefined) add(title, body);
      else mine.left += 1;
    },
    skip: (title: string, why: string) => void mine.skipped.push({ title, why }),
    before: (hook: Callback) => void mine.hooks.before.push(hook),
    after: (hook: Callback) => void mine.hooks.after.push(hook),
    beforeEach: (hook: Callback) => void mine.hooks.beforeEach.push(hook),
    afterEach: (hook: Callback) => void mine.hooks.afterEach.push(hook),
  });
}

/** A suite whose tests are all skipped. */
function absent(mine: Registered, missing: string): Suite {
  mine.skipped.push({ title: 'all tests', why: missing });
  const ignore = (): void => {};
  return Object.assign((): void => {}, {
    full: ignore,
    skip: ignore,
    before: ignore,
    after: ignore,
    beforeEach: ignore,
    afterEach: ignore,
  });
}

/** What a test took, in seconds. */
export interface TestCosts {
  readonly title: string;
  readonly seconds: number;
  readonly processor: number;
}

export interface Totals {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  /** The first failure, in one line. */
  readonly failure: string | undefined;
  /** Whether one of the failures is conclusive. */
  readonly conclusive: boolean;
  /** The tests that took much processor time. */
  readonly expensive: readonly TestCosts[];
}

/**
 * Runs what the loaded file registered, and answers with what really happened. uvu itself exits 0 when a hook throws,
 * when `.run()` is forgotten and when something that is no Error is thrown: so every body and hook runs inside a guard
 * of ours that counts, and the count, not uvu's exit code, decides.
 */
export async function runRegistered(): Promise<Totals> {
  const expensive: TestCosts[] = [];
  const totals = {
    passed: 0,
    failed: 0,
    skipped: 0,
    failure: undefined as string | undefined,
    conclusive: false,
    expensive,
  };
  const runnable = promisedFirst(registered.splice(0));
  const allowed = limit;
  // The next file of this process begins with the usual limit.
  limit = USUAL_LIMIT_MS;
  if (runnable.every(({ cases, skipped, left }) => cases.length + skipped.length + left === 0))
    throw new Error('no test was registered: does the file call suite(…) and add tests to it?');
  // uvu reads these once, when it is first imported: run when told, from one queue.
  Object.assign(globalThis, { UVU_DEFER: 1, UVU_QUEUE: [[null]], UVU_INDEX: 0 });
  const uvu = await import('uvu');
  for (const { name, cases, skipped, hooks } of runnable) {
    for (const { title, why } of skipped) process.stdout.write(`skipped: ${name}: ${title} (${why})\n`);
    totals.skipped += skipped.length;
    if (cases.length === 0) continue;
    const run = uvu.suite(name);
    let before: Promise<Error | undefined> | undefined;
    for (const [index, { title, body }] of cases.entries()) {
      run(title, async () => {
        const began = performance.now();
        const used = processorSeconds();
        before ??= attempt(allowed, () => inTurn(hooks.before));
        const blocked = await before;
        const failure = blocked ?? (await attempt(allowed, () => inTurn([...hooks.beforeEach, body])));
        const cleanup = blocked ? undefined : await attempt(allowed, () => inTurn(hooks.afterEach));
        const after = index === cases.length - 1 ? await attempt(allowed, () => inTurn(hooks.after)) : undefined;
        const problem = failure ?? cleanup ?? after;
        totals[problem ? 'failed' : 'passed'] += 1;
        const processor = processorSeconds() - used;
        if (processor >= EXPENSIVE_S)
          expensive.push({ title, seconds: (performance.now() - began) / 1_000, processor });
        if (problem) {
          totals.failure ??= `${title}: ${problem.message}`.replace(/\s+/g, ' ').slice(0, FAILURE_LENGTH);
          totals.conclusive ||= problem instanceof Conclusive;
        }
        if (problem && namesPromise(title)) {
          process.stdout.write(`FAIL ${title}: ${problem.stack}\n`);
          process.exit(1);
        }
        if (problem) throw problem;
      });
    }
    run.run();
  }
  await uvu.exec();
  const expected = runnable.reduce((sum, { cases }) => sum + cases.length, 0);
  if (totals.passed + totals.failed !== expected)
    throw new Error(`${expected} tests were registered and ${totals.passed + totals.failed} ran`);
  return totals;
}

function namesPromise(title: string): boolean {
  return PROMISE !== undefined && new RegExp(`\\b${PROMISE}\\b`).test(title);
}

function promisedFirst(suites: readonly Registered[]): Registered[] {
  const sorted = suites.map((mine) => ({ ...mine, cases: first(mine.cases, ({ title }) => namesPromise(title)) }));
  return first(sorted, ({ cases }) => cases.some(({ title }) => namesPromise(title)));
}

function first<T>(list: readonly T[], comes: (item: T) => boolean): T[] {
  return [...list.filter(comes), ...list.filter((item) => !comes(item))];
}

async function inTurn(callbacks: readonly Callback[]): Promise<void> {
  for (const callback of callbacks) await callback();
}

/** Runs a callback to its end or its limit; whatever it throws comes back as an Error. */
async function attempt(allowed: number, callback: () => Promise<void>): Promise<Error | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<Error>((resolve) => {
    timer = setTimeout(() => resolve(new Error(`took longer than ${allowed} ms`)), allowed);
  });
  try {
    return await Promise.race([callback().then(() => undefined), late]);
  } catch (thrown) {
    return thrown instanceof Error
      ? await withOriginalStack(thrown)
      : new Error(`threw something that is no Error: ${String(thrown)}`);
  } finally {
    clearTimeout(timer);
  }
}

/** Gives the stack the positions in the TypeScript files, because the tests run compiled, and adds the cause, which uvu leaves out. */
async function withOriginalStack(error: Error): Promise<Error> {
  const { originalStack } = await import('./compiled.ts');
  const cause = error.cause instanceof Error ? `\n    caused by ${error.cause.stack}` : '';
  if (error.stack !== undefined) error.stack = originalStack(`${error.stack}${cause}`);
  return error;
}

/** Runs contenders in turns, round by round, so that whatever else the machine does hits all of them. */
import type { Gathering } from './series.ts';
import { undisturbed } from './stolen.ts';

/** A contender that runs, in one way of calling it. */
export interface Runner<R> {
  readonly who: string;
  readonly way: string;
  start(): Promise<R & { stop(): Promise<void> }>;
}

export interface Turns<R, M extends string> {
  readonly gathering: Gathering;
  /** What a turn measures, each with its unit. */
  readonly figures: Readonly<Record<M, string>>;
  readonly runners: readonly Runner<R>[];
  readonly sizes: readonly number[];
  readonly rounds: number;
  /** What comes before the first turn of a server that was started. */
  readonly prepare?: (running: R) => Promise<unknown>;
  /** One turn of a contender, with so many in flight. */
  turn(running: R, size: number): Promise<Readonly<Record<M, number>>>;
}

/** How long a turn may last before its contender counts as stuck. */
const LONGEST_TURN_MS = 60_000;

/** Calls that a server has compiled itself for, and how long it is called at most until it has had them. */
const WARM_CALLS = 4_000;
const WARM_TIMES = 4;

/** Calls a server until it is warm. @param run calls it for a while */
export async function warmUp(ms: number, run: (ms: number) => Promise<{ readonly calls: number }>): Promise<void> {
  let calls = 0;
  for (let times = 0; times < WARM_TIMES && (times === 0 || calls < WARM_CALLS); times += 1)
    calls += (await run(ms)).calls;
}

/** Says on stderr what failed: the suite goes on without it. */
export function tell(who: string, way: string, error: unknown): void {
  const why = error instanceof Error ? error.message : String(error);
  process.stderr.write(`${who} (${way}) failed: ${why.slice(0, 400)}\n`);
}

/** Starts all, and gives each its turns. A contender that fails is started again for its next turn. */
export async function inTurns<R, M extends string>(turns: Turns<R, M>): Promise<void> {
  const { gathering, figures, runners, sizes, rounds, prepare, turn } = turns;
  const running = new Map<Runner<R>, R & { stop(): Promise<void> }>();
  const started = async (runner: Runner<R>): Promise<R> => {
    const there = running.get(runner);
    if (there) return there;
    const fresh = await within(runner.start());
    running.set(runner, fresh);
    await within(Promise.resolve(prepare?.(fresh)));
    return fresh;
  };
  const attempt = async (runner: Runner<R>, size: number): Promise<Readonly<Record<M, number>> | undefined> => {
    try {
      const there = await started(runner);
      return await undisturbed(() => within(turn(there, size)));
    } catch (error) {
      tell(runner.who, runner.way, error);
      const there = running.get(runner);
      running.delete(runner);
      await there?.stop();
      return undefined;
    }
  };
  try {
    for (let round = 0; round < rounds; round += 1)
      for (const size of sizes)
        for (const runner of runners) {
          const measured = await attempt(runner, size);
          for (const measure in figures)
            gathering.add(
              { measure, unit: figures[measure], who: runner.who, way: runner.way, size },
              measured?.[measure] ?? null,
            );
        }
  } finally {
    await Promise.all([...running.values()].map((there) => there.stop()));
  }
}

/** @throws {Error} when it takes too long */
export async function within<T>(promise: Promise<T>, ms = LONGEST_TURN_MS): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`nothing came of it in ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

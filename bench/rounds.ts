/** Runs contenders in turns, round by round, so that whatever else the machine does hits all of them. */

/** A contender that runs, in one way of calling it. */
export interface Runner<R> {
  readonly who: string;
  readonly way: string;
  start(): Promise<R & { stop(): Promise<void> }>;
}

export interface Turns<R> {
  readonly runners: readonly Runner<R>[];
  readonly sizes: readonly number[];
  readonly rounds: number;
  /** One turn of a contender, with so many in flight. */
  turn(running: R, runner: Runner<R>, size: number): Promise<void>;
  /** Told of a turn that failed. */
  failed(runner: Runner<R>, size: number): void;
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

/** Starts all, warms them up, and gives each its turns. A contender that fails is started again for its next turn. */
export async function inTurns<R>({ runners, sizes, rounds, turn, failed }: Turns<R>): Promise<void> {
  const running = new Map<Runner<R>, R & { stop(): Promise<void> }>();
  const attempt = async (runner: Runner<R>, run: (running: R) => Promise<void>): Promise<boolean> => {
    try {
      const there = running.get(runner) ?? (await within(runner.start()));
      running.set(runner, there);
      await within(run(there));
      return true;
    } catch (error) {
      tell(runner.who, runner.way, error);
      const there = running.get(runner);
      running.delete(runner);
      await there?.stop();
      return false;
    }
  };
  try {
    for (let round = 0; round < rounds; round += 1)
      for (const size of sizes)
        for (const runner of runners)
          if (!(await attempt(runner, (there) => turn(there, runner, size)))) failed(runner, size);
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

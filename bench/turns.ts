/** Compares servers in one run, in turns, so that whatever else the machine does hits all of them. */
import { type Measured, median } from './measured.ts';

/** A running server, and the means to call its echo. */
export interface Echo {
  /** Calls echo `count` times with `inFlight` at once. @throws {Error} when an answer is not the echo */
  run(count: number, inFlight: number): Promise<Measured>;
  stop(): Promise<void>;
}

/** A floor, or one of ours beside the floor that gets the very same messages. */
export interface Contender {
  readonly name: string;
  start(): Promise<Echo>;
  /** Name of the floor. */
  readonly floor?: string;
  /** Share of the floor that it reaches at least, where the most are in flight. */
  readonly goal?: number;
}

/** How many calls are made with so many in flight. */
export interface Run {
  readonly inFlight: number;
  readonly calls: number;
}

export interface Comparison {
  readonly title: string;
  readonly contenders: readonly Contender[];
  /** What each contender does in a round; goals hold for the last. */
  readonly runs: readonly Run[];
  readonly rounds: number;
}

/** What came of one contender's runs with so many in flight, round by round. */
interface Row {
  readonly contender: Contender;
  readonly run: Run;
  readonly rounds: Measured[];
}

/** Runs them, prints their table, and says which are below their goal. @returns whether all reach it */
export async function compare(comparison: Comparison): Promise<boolean> {
  const { title, contenders, runs, rounds } = comparison;
  const rows = runs.flatMap((run) => contenders.map((contender): Row => ({ contender, run, rounds: [] })));
  const running = new Map<Contender, Echo>();
  try {
    for (const contender of contenders) running.set(contender, await contender.start());
    const warm = runs[runs.length - 1];
    for (const echo of running.values()) if (warm) await echo.run(warm.calls, warm.inFlight);
    for (let round = 0; round < rounds; round += 1) {
      for (const row of rows) {
        const result = await running.get(row.contender)?.run(row.run.calls, row.run.inFlight);
        if (result) row.rounds.push(result);
      }
    }
  } finally {
    await Promise.all([...running.values()].map((echo) => echo.stop()));
  }
  process.stdout.write(`${title}, node ${process.version}, median of ${rounds} rounds (shares: round by round)\n\n`);
  return report(rows, runs[runs.length - 1]);
}

/** Prints the table. @returns whether each that has a goal reaches it in the last run */
function report(rows: readonly Row[], last: Run | undefined): boolean {
  const out = (line: string): void => void process.stdout.write(`${line}\n`);
  const told = rows.every(({ rounds }) => rounds.every(({ serverMicros }) => serverMicros !== undefined));
  out(`| server | in flight | calls/s | of the floor | p50 ms | p99 ms |${told ? ' server µs/call |' : ''}`);
  out(`|---|---|---|---|---|---|${told ? '---|' : ''}`);
  const below: string[] = [];
  for (const { contender, run, rounds } of rows) {
    const { name, goal, floor } = contender;
    const middle = (figure: keyof Measured): number => median(rounds.map((result) => result[figure] ?? Number.NaN));
    const beside = rows.find((row) => row.contender.name === floor && row.run === run)?.rounds ?? rounds;
    // Each round beside the floor's own: what slows the machine for a while hits both.
    const share = median(rounds.map(({ perSecond }, round) => perSecond / (beside[round]?.perSecond ?? Number.NaN)));
    if (run === last && goal !== undefined && !(share >= goal))
      below.push(`${name}: ${share.toFixed(2)} of its floor at ${run.inFlight} in flight, expected ${goal} at least`);
    const cells = [
      name,
      run.inFlight,
      Math.round(middle('perSecond')).toLocaleString('en'),
      share.toFixed(2),
      middle('p50').toFixed(3),
      middle('p99').toFixed(3),
      ...(told ? [middle('serverMicros').toFixed(1)] : []),
    ];
    out(`| ${cells.join(' | ')} |`);
  }
  const busiest = Math.max(...rows.map(({ rounds }) => median(rounds.map(({ busy }) => busy))));
  out(`\nThe process that calls was at work ${Math.round(busiest * 100)} % of the time, at most.`);
  for (const line of below) out(`below the goal: ${line}`);
  out('');
  return below.length === 0;
}

/** The messages between the process of a job of test files and the runner. */
import { readFileSync } from 'node:fs';
import type { Totals } from '../harness/door.ts';

export type Report =
  | { readonly kind: 'begin'; readonly file: string }
  /** Asks for the PostgreSQL of the run. The answer is a {@link SharedPostgres}, or its error. */
  | { readonly kind: 'postgres' }
  | {
      readonly kind: 'end';
      readonly file: string;
      readonly totals: Totals;
      readonly seconds: number;
      /** Processor seconds, those of ended child processes included. The first file of a process includes its start. */
      readonly processor: number;
      /** Of these, the seconds to load the file and what it imports. */
      readonly loading: number;
      /** Of these, the seconds of child processes that have ended. */
      readonly children: number;
    };

/** The PostgreSQL that the files of a run share. */
export interface SharedPostgres {
  readonly port: number;
  /** A directory with the data of an empty server, to copy. */
  readonly empty: string;
}

export type Ended = Extract<Report, { kind: 'end' }>;

/** Linux counts processor time in hundredths of a second. */
const TICKS = 100;

/** Processor seconds of this process and of its ended children. The pages of a browser are not in it: they are no children of a process that waits for them. */
export function processorSeconds(): number {
  const { own, children } = processorTimes();
  return own + children;
}

/** Processor seconds of this process, and of its ended children where the system says them. */
export function processorTimes(): { readonly own: number; readonly children: number } {
  if (process.platform !== 'linux') {
    const { user, system } = process.cpuUsage();
    return { own: (user + system) / 1_000_000, children: 0 };
  }
  const stat = readFileSync('/proc/self/stat', 'utf8');
  // utime, stime, cutime and cstime: proc(5) counts them from the name, which is in brackets.
  const [utime = 0, stime = 0, cutime = 0, cstime = 0] = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 15)
    .map((ticks) => Number(ticks) / TICKS);
  return { own: utime + stime, children: cutime + cstime };
}

/** Processor time of a process and of the processes that it has started, such as those of PostgreSQL. */
import { readdirSync, readFileSync } from 'node:fs';

/** What the kernel counts in: hundredths of a second on every Linux that Node runs on. */
const TICK_MICROS = 10_000;
/** Fields of /proc/PID/stat (proc(5)) behind the name of the program: the parent, own time, and time of children that have ended. */
const PARENT = 1;
const OWN = [11, 12] as const;
const ENDED = [13, 14] as const;

/** @returns microseconds so far; 0 where the system does not tell */
export function familyMicros(pid: number): number {
  let ticks = 0;
  for (const process of processes()) {
    const stat = statOf(process);
    if (process === String(pid)) ticks += sum(stat, [...OWN, ...ENDED]);
    else if (stat[PARENT] === String(pid)) ticks += sum(stat, OWN);
  }
  return ticks * TICK_MICROS;
}

function processes(): readonly string[] {
  try {
    return readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  } catch {
    return [];
  }
}

/** The fields behind the name, which may contain spaces. None of a process that has ended meanwhile. */
function statOf(process: string): readonly string[] {
  try {
    const stat = readFileSync(`/proc/${process}/stat`, 'latin1');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  } catch {
    return [];
  }
}

function sum(stat: readonly string[], fields: readonly number[]): number {
  return fields.reduce((ticks, field) => ticks + Number(stat[field] ?? 0), 0);
}

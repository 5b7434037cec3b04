/** Keeps what was measured: as JSON beside this file, and as tables in docs/performance.md. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { type Judged, judge } from './goals.ts';
import type { Machine } from './machine.ts';
import type { Part, Series } from './series.ts';
import { show } from './tables.ts';

/** One run of the suite, and which parts are of it. */
export interface Run {
  readonly parts: readonly Part[];
  /** When it ended, in ISO 8601. */
  readonly at: string;
  readonly machine: Machine;
  readonly scale: string;
  /** What made the load of the HTTP echo. */
  readonly generator: string;
  /** How much else the machine had to do before it: the load of the last minute, 0 where the system does not tell. */
  readonly load: number;
  /** Turns that were made again because the machine's host kept its processors from it. */
  readonly repeated: number;
}

export interface Results {
  readonly runs: readonly Run[];
  readonly series: readonly Series[];
  readonly goals?: readonly Judged[];
}

const FILE = new URL('./results.json', import.meta.url);
const PAGE = new URL('../docs/performance.md', import.meta.url);
const BEGIN = '<!-- npm run bench writes what follows -->';
const END = '<!-- up to here -->';

/** Adds a run to those before it, whose figures of the parts that it measured it replaces. */
export function merged(there: Results | undefined, { runs, series }: Results): Results {
  const parts = new Set(series.map(({ part }) => part));
  const kept = (there?.runs ?? [])
    .map((run) => ({ ...run, parts: run.parts.filter((part) => !parts.has(part)) }))
    .filter((run) => run.parts.length > 0);
  const all = [...(there?.series ?? []).filter(({ part }) => !parts.has(part)), ...series];
  return { runs: [...kept, ...runs], series: all, goals: judge(all) };
}

/** Writes both. */
export function keep(results: Results): void {
  const whole = merged(before(), results);
  writeFileSync(FILE, written(whole));
  const page = readFileSync(PAGE, 'utf8');
  const [from, to] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (from < 0 || to < from)
    throw new Error(`docs/performance.md: expected the lines "${BEGIN}" and "${END}", and the tables go between them`);
  writeFileSync(PAGE, `${page.slice(0, from + BEGIN.length)}\n\n${show(whole)}\n\n${page.slice(to)}`);
}

/** A series on a line, and no digit that says nothing. */
function written({ series, goals = [], ...rest }: Results): string {
  const lines = (all: readonly object[]): string => all.map((one) => `\n${JSON.stringify(one, rounded)}`).join(',');
  const head = JSON.stringify(rest).slice(0, -1);
  return `${head},\n"goals":[${lines(goals)}],\n"series":[${lines(series)}]}\n`;
}

function rounded(_: string, value: unknown): unknown {
  return typeof value === 'number' ? Number(value.toPrecision(5)) : value;
}

/** The results of the runs before this one. */
export function before(): Results | undefined {
  return existsSync(FILE) ? JSON.parse(readFileSync(FILE, 'utf8')) : undefined;
}

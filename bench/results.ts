/** Keeps what was measured: as JSON beside this file, and as tables in docs/performance.md. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { type Judged, judge } from './goals.ts';
import type { Machine } from './machine.ts';
import type { Series } from './series.ts';
import { show } from './tables.ts';

export interface Results {
  readonly machine: Machine;
  /** When it was measured, in ISO 8601. */
  readonly at: string;
  readonly scale: string;
  /** What made the load of the HTTP echo. */
  readonly load: string;
  /** Turns that were made again because the machine's host kept its processors from it. */
  readonly repeated: number;
  readonly series: readonly Series[];
  readonly goals?: readonly Judged[];
}

const FILE = new URL('./results.json', import.meta.url);
const PAGE = new URL('../docs/performance.md', import.meta.url);
const BEGIN = '<!-- npm run bench writes what follows -->';
const END = '<!-- up to here -->';

/** Writes both. The parts that this run did not measure stay as they were in the file. */
export function keep(results: Results): void {
  const parts = new Set(results.series.map(({ part }) => part));
  const series = [...before().filter(({ part }) => !parts.has(part)), ...results.series];
  const goals = judge(series);
  const whole = { ...results, series, goals };
  writeFileSync(FILE, written(whole));
  const page = readFileSync(PAGE, 'utf8');
  const [from, to] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (from < 0 || to < from)
    throw new Error(`docs/performance.md: expected the lines "${BEGIN}" and "${END}", and the tables go between them`);
  writeFileSync(PAGE, `${page.slice(0, from + BEGIN.length)}\n\n${show(whole, goals)}\n\n${page.slice(to)}`);
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

function before(): readonly Series[] {
  if (!existsSync(FILE)) return [];
  const { series }: Results = JSON.parse(readFileSync(FILE, 'utf8'));
  return series;
}

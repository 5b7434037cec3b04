/** The costs of a run of all test files: a table by folder, and the slow files, in `test/costs.json`. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { root } from './plan.ts';
import type { Ended } from './reports.ts';

const FILE = join(root, 'test/costs.json');
/** Seconds below which a file is not listed. */
const SLOW_S = 2;

interface FolderCosts {
  readonly files: number;
  readonly tests: number;
  readonly seconds: number;
  readonly processor: number;
  /** Of the processor seconds, those of loading modules, and those of child processes. */
  readonly loading: number;
  readonly children: number;
}

interface Costs {
  readonly folders: Readonly<Record<string, FolderCosts>>;
  /** Seconds of each slow file of a quick run: their order decides which file starts first. */
  readonly slow: Readonly<Record<string, number>>;
  /** The same for a full run. */
  readonly slowFull: Readonly<Record<string, number>>;
}

/** Seconds of the slow files when they were last timed. @param full of a full run */
export function slowFiles(full: boolean): Map<string, number> {
  const { slow, slowFull } = readCosts() ?? {};
  return new Map(Object.entries({ ...slow, ...(full && slowFull) }));
}

function readCosts(): Costs | undefined {
  return existsSync(FILE) ? (JSON.parse(readFileSync(FILE, 'utf8')) as Costs) : undefined;
}

/** The folder of a test file below `test`. */
function folderOf(file: string): string {
  return relative(root, file).split('/').slice(1, -1)[0] ?? '.';
}

function foldersOf(ended: readonly Ended[]): Costs['folders'] {
  const folders: Record<string, FolderCosts> = {};
  for (const { file, totals, seconds, processor, loading, children } of ended) {
    const folder = folderOf(file);
    const sum = folders[folder] ?? { files: 0, tests: 0, seconds: 0, processor: 0, loading: 0, children: 0 };
    folders[folder] = {
      files: sum.files + 1,
      tests: sum.tests + totals.passed + totals.failed,
      seconds: sum.seconds + seconds,
      processor: sum.processor + processor,
      loading: sum.loading + loading,
      children: sum.children + children,
    };
  }
  return folders;
}

function slowOf(ended: readonly Ended[]): Costs['slow'] {
  const slow = ended
    .filter(({ seconds }) => seconds >= SLOW_S)
    .map(({ file, seconds }) => [relative(root, file), Math.round(seconds)] as const)
    .sort(([a], [b]) => a.localeCompare(b));
  return Object.fromEntries(slow);
}

/**
 * The costs by folder, the most expensive first, each with its costs when they were last written. The processor seconds have those
 * of loading modules and of child processes beside them: the rest is the tests themselves.
 */
export function folderTable(ended: readonly Ended[]): string {
  const before = readCosts()?.folders ?? {};
  const rows = Object.entries(foldersOf(ended)).sort(([, a], [, b]) => b.processor - a.processor);
  const lines = rows.map(([folder, { files, tests, seconds, processor, loading, children }]) => {
    const last = before[folder]?.processor;
    const known = [files, tests, seconds, processor, loading, children].map((value, at) =>
      number(value, at < 2 ? 7 : 10),
    );
    return `${known.join('')}${last === undefined ? '         -' : number(last, 10)}  ${folder}`;
  });
  return ['\n  files  tests   seconds processor   loading  children    before  folder', ...lines, ''].join('\n');
}

/** Each file with its costs, the most expensive first, and its expensive tests. */
export function fileTable(ended: readonly Ended[]): string {
  const row = (costs: readonly number[], name: string): string =>
    `${costs.map((value) => value.toFixed(2).padStart(10)).join('')}  ${name}`;
  const lines = [...ended]
    .sort((a, b) => b.processor - a.processor)
    .flatMap(({ file, seconds, processor, loading, children, totals }) => [
      row([seconds, processor, loading, children], relative(root, file)),
      ...totals.expensive.map((test) => `${row([test.seconds, test.processor], ' '.repeat(24))}${test.title}`),
    ]);
  return ['\n   seconds processor   loading  children', ...lines, ''].join('\n');
}

/** Writes the costs of a run of all files: the folders of a quick one, and the slow files. */
export function writeCosts(ended: readonly Ended[], full: boolean): void {
  const { folders = {}, slow = {}, slowFull = {} } = readCosts() ?? {};
  const costs: Costs = full
    ? { folders, slow, slowFull: { ...slowFull, ...slowOf(ended) } }
    : { folders: rounded(foldersOf(ended)), slow: slowOf(ended), slowFull };
  writeFileSync(FILE, `${JSON.stringify(costs, undefined, 2)}\n`);
}

function rounded(folders: Costs['folders']): Costs['folders'] {
  const rows = Object.entries(folders).sort(([a], [b]) => a.localeCompare(b));
  const whole = (costs: FolderCosts): FolderCosts => ({
    ...{ files: costs.files, tests: costs.tests, seconds: Math.round(costs.seconds) },
    ...{ processor: Math.round(costs.processor), loading: Math.round(costs.loading) },
    children: Math.round(costs.children),
  });
  return Object.fromEntries(rows.map(([name, costs]) => [name, whole(costs)]));
}

function number(value: number, width: number): string {
  return (Number.isInteger(value) ? String(value) : value.toFixed(1)).padStart(width);
}

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
}

interface Costs {
  readonly folders: Readonly<Record<string, FolderCosts>>;
  /** Seconds of each slow file: their order decides which file starts first. */
  readonly slow: Readonly<Record<string, number>>;
}

/** Seconds of the slow files when they were last timed. */
export function slowFiles(): Map<string, number> {
  return new Map(Object.entries(readCosts()?.slow ?? {}));
}

function readCosts(): Costs | undefined {
  return existsSync(FILE) ? (JSON.parse(readFileSync(FILE, 'utf8')) as Costs) : undefined;
}

/** The folder of a test file below `test`. */
function folderOf(file: string): string {
  return relative(root, file).split('/').slice(1, -1)[0] ?? '.';
}

function costsOf(ended: readonly Ended[]): Costs {
  const folders: Record<string, FolderCosts> = {};
  for (const { file, totals, seconds, processor } of ended) {
    const folder = folderOf(file);
    const sum = folders[folder] ?? { files: 0, tests: 0, seconds: 0, processor: 0 };
    folders[folder] = {
      files: sum.files + 1,
      tests: sum.tests + totals.passed + totals.failed,
      seconds: sum.seconds + seconds,
      processor: sum.processor + processor,
    };
  }
  const slow = ended
    .filter(({ seconds }) => seconds >= SLOW_S)
    .map(({ file, seconds }) => [relative(root, file), Math.round(seconds)] as const)
    .sort(([a], [b]) => a.localeCompare(b));
  return { folders, slow: Object.fromEntries(slow) };
}

/** The costs by folder, the most expensive first, each with its costs when they were last written. */
export function folderTable(ended: readonly Ended[]): string {
  const before = readCosts()?.folders ?? {};
  const rows = Object.entries(costsOf(ended).folders).sort(([, a], [, b]) => b.processor - a.processor);
  const lines = rows.map(([folder, { files, tests, seconds, processor }]) => {
    const last = before[folder]?.processor;
    return `${number(files, 6)}${number(tests, 7)}${number(seconds, 9)}${number(processor, 11)}${last === undefined ? '         -' : number(last, 10)}  ${folder}`;
  });
  return ['\n files  tests  seconds  processor    before  folder', ...lines, ''].join('\n');
}

/** Each file with its seconds and processor seconds, the most expensive first, and its expensive tests. */
export function fileTable(ended: readonly Ended[]): string {
  const lines = [...ended]
    .sort((a, b) => b.processor - a.processor)
    .flatMap(({ file, seconds, processor, totals }) => [
      `${seconds.toFixed(2).padStart(8)} ${processor.toFixed(2).padStart(9)}  ${relative(root, file)}`,
      ...totals.expensive.map(
        (test) => `${test.seconds.toFixed(2).padStart(8)} ${test.processor.toFixed(2).padStart(9)}      ${test.title}`,
      ),
    ]);
  return ['\n seconds processor', ...lines, ''].join('\n');
}

/** Writes the costs of a run of all quick tests. */
export function writeCosts(ended: readonly Ended[]): void {
  const { folders, slow } = costsOf(ended);
  const rounded = Object.entries(folders)
    .sort(([a], [b]) => a.localeCompare(b))
    .map(([folder, { files, tests, seconds, processor }]) => [
      folder,
      { files, tests, seconds: Math.round(seconds), processor: Math.round(processor) },
    ]);
  writeFileSync(FILE, `${JSON.stringify({ folders: Object.fromEntries(rounded), slow }, undefined, 2)}\n`);
}

function number(value: number, width: number): string {
  return (Number.isInteger(value) ? String(value) : value.toFixed(1)).padStart(width);
}

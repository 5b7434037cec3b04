/** Reads the tables of the docs that name the test of each promise, and finds where a row and its tests disagree. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = resolve(dirname(fileURLToPath(import.meta.url)), '../../..');

export const read = (file: string): string => readFileSync(join(root, file), 'utf8');

/** One row of a table: `| ids | what holds | [test](../test/…) |`. */
export interface Promised {
  readonly ids: readonly string[];
  readonly what: string;
  readonly files: readonly string[];
}

/** The rows of the tables of a page whose first column is ids. */
export function promisesOf(page: string): readonly Promised[] {
  return [...read(page).matchAll(/^\| ((?:R-|D-|S-|U-|G-|CVE-|GHSA-)[^|]+) \| (.+) \| (.*) \|$/gm)].map(
    ([, ids = '', what = '', tests = '']) => ({
      ids: ids.split(', '),
      what,
      files: [...tests.matchAll(/\]\(\.\.\/([^)]+)\)/g)].map(([, file = '']) => file),
    }),
  );
}

/** A test that `npm test` leaves to the full run, with its title. */
const LEFT = /\.full\(\s*(?:'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`(?:\\.|[^`\\])*`)/g;

/** The ids of rows with tests that no test of `npm test` has: their tests are all left to the full run. */
export function withoutQuickTest(rows: readonly Promised[]): readonly string[] {
  return rows.flatMap(({ ids, files }) => {
    const texts = files.filter((file) => existsSync(join(root, file))).map(read);
    const quick = texts.filter((text) => !/^fullOnly\(/m.test(text)).map((text) => text.replace(LEFT, ''));
    return files.length === 0 ? [] : ids.filter((id) => !quick.some((text) => has(text, id)));
  });
}

// R-07 is not R-07a.
const has = (text: string, id: string): boolean => new RegExp(`${id}(?![\\w-])`).test(text);

/** What is wrong with the rows: an id that none of its tests has, a test that has none of its row's ids. */
export function broken(rows: readonly Promised[]): readonly string[] {
  const wrong: string[] = [];
  for (const { ids, files } of rows) {
    const texts = files.map((file) => (existsSync(join(root, file)) ? read(file) : ''));
    if (files.length > 0)
      for (const id of ids) if (!texts.some((text) => has(text, id))) wrong.push(`${id} is in none of ${files}`);
    for (const [index, file] of files.entries())
      if (!ids.some((id) => has(texts[index] ?? '', id))) wrong.push(`${file} has none of ${ids}`);
  }
  return wrong;
}

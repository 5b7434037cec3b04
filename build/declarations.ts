/**
 * Copies the declarations that an author's compiler can reach into `dist/types`: those of `troupe`, `troupe/client`,
 * `troupe/testing`, `troupe/inspector`, `troupe/oauth`, `troupe/otel` and `troupe/app`, and those that they import. `tsc` writes the declarations of all modules, most of which are internal.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ENTRIES } from './entries.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const from = join(root, 'dist/check');
const out = join(root, 'dist/types');
/** The indentation of tsc. Tabs in its place make the package 20 KB smaller. */
const INDENT = /^(?: {4})+/gm;
const IMPORT = /(\bfrom |\bimport\(|\bmodule )(["'])(\.[^"']+)\.ts\2/g;

/** A re-export: what the module behind it declares is public. */
const EXPORT = /^export [^;]*? from (["'])(\.[^"']+)\.ts\1/gm;
const COMMENT = /^[ \t]*\/\*\*[\s\S]*?\*\/\n/gm;
const PUBLIC = [...Object.values(ENTRIES).map((path) => join('src', path)), 'apps/src/app'];

/** The modules that an author imports from, by way of the entries. Only their comments are shown by an editor. */
const documented = new Set<string>();

function document(path: string): void {
  if (documented.has(path)) return;
  documented.add(path);
  const text = readFileSync(join(from, `${path}.d.ts`), 'utf8');
  for (const [, , target = ''] of text.matchAll(EXPORT)) document(join(dirname(path), target));
}

const copied = new Set<string>();

/** @param path of a declaration below `dist/check`, without its extension */
function copy(path: string): void {
  const file = `${path}.d.ts`;
  if (copied.has(file)) return;
  copied.add(file);
  const text = readFileSync(join(from, file), 'utf8');
  const next: string[] = [];
  // A compiler that does not allow `.ts` in imports resolves `.js` to the declaration beside it.
  const written = text.replace(IMPORT, (_, start: string, quote: string, target: string) => {
    next.push(join(dirname(path), target));
    return `${start}${quote}${target}.js${quote}`;
  });
  // Comments of modules that authors cannot import are 65 KB.
  const shown = documented.has(path) ? written : written.replace(COMMENT, '');
  const indented = shown.replace(INDENT, (spaces) => '\t'.repeat(spaces.length / 4));
  const to = join(out, file);
  if (!existsSync(to) || readFileSync(to, 'utf8') !== indented) {
    mkdirSync(dirname(to), { recursive: true });
    writeFileSync(to, indented);
  }
  next.forEach(copy);
}

PUBLIC.forEach(document);
PUBLIC.forEach(copy);
for (const file of readdirSync(out, { recursive: true, encoding: 'utf8' })) {
  const path = join(out, file);
  if (statSync(path).isFile() && !copied.has(relative(out, path))) rmSync(path);
}

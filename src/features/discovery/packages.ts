/** Imports the packages of a module before the module itself; `startTsx` explains why. */
import { existsSync, realpathSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { isBuiltin } from 'node:module';
import { dirname, join, sep } from 'node:path';
import { constants, runInThisContext } from 'node:vm';

/** Text that may stand before and between imports. */
const GAP = /(?:\s|;|#!.*|\/\/.*|\/\*[\s\S]*?\*\/)*/y;
const IMPORT = /import\s*(type\s+)?(?:[\w$\s{},*]+?\bfrom\s*)?(['"])([^'"\n]+)\2(?:\s*with\s*\{[^}]*\})?/y;

/**
 * The packages that a module imports before its first import by path. Importing them early changes no order of
 * evaluation.
 * @example leadingPackages("import { z } from 'zod';\nimport { db } from './db.ts';\nimport pg from 'pg';") // ['zod']
 */
export function leadingPackages(text: string): readonly string[] {
  const packages: string[] = [];
  let at = 0;
  for (;;) {
    GAP.lastIndex = at;
    at += GAP.exec(text)?.[0].length ?? 0;
    IMPORT.lastIndex = at;
    const [all, type, , specifier] = IMPORT.exec(text) ?? [];
    if (all === undefined || specifier === undefined) return packages;
    at += all.length;
    if (type !== undefined || isBuiltin(specifier)) continue;
    if (/^[./#]|:/.test(specifier)) return packages;
    packages.push(specifier);
  }
}

/**
 * Imports these packages as the module would, up to the first package that is not installed as a copy: one of the same
 * workspace may be TypeScript, which Node cannot load yet, and Node would remember that. Ignores failures: the module's own
 * import fails with a better message.
 */
export async function importPackages(file: string): Promise<void> {
  const text = await readFile(file, 'utf8').catch(() => '');
  const leading = leadingPackages(text);
  const own = leading.findIndex((specifier) => !isInstalledCopy(specifier, file));
  const packages = own < 0 ? leading : leading.slice(0, own);
  if (packages.length === 0) return;
  // An import in code that is compiled under a module's file name resolves like the module's own imports.
  const importThere: (specifier: string) => Promise<unknown> = runInThisContext('(specifier) => import(specifier)', {
    filename: file,
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  });
  for (const specifier of packages) await quietly(() => importThere(specifier)).catch(() => {});
}

/** True if the package is a folder in a `node_modules`, and no link to a folder elsewhere, such as that of a workspace. */
function isInstalledCopy(specifier: string, file: string): boolean {
  const name = specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
  for (let at = dirname(file); ; at = dirname(at)) {
    const folder = join(at, 'node_modules', name);
    if (existsSync(folder)) return realpathSync(folder).includes(`${sep}node_modules${sep}`);
    if (at === dirname(at)) return false;
  }
}

/**
 * Suppresses the warning that Node 20 and 22 print for this experimental kind of import. Without it, only the speed-up
 * would be lost.
 */
function quietly<T>(call: () => T): T {
  const { emitWarning } = process;
  process.emitWarning = () => {};
  try {
    return call();
  } finally {
    process.emitWarning = emitWarning;
  }
}

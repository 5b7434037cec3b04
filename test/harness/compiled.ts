/** Compiles the repository into `dist/compiled`, file by file: plain Node loads that four times as fast as tsx loads the sources. */
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { SourceMap } from 'node:module';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { transformWithOxc } from 'vite';
import { ENTRIES as SOURCES } from '../../build/entries.ts';
import { isBuilt, LIBRARY } from '../../build/page-build.ts';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');
const OUT = join(root, 'dist/compiled');
/** The programs that import the bundled library. */
const PROGRAMS = join(root, 'dist/compiled-programs');
/** The environment variable that says that the library is built from these sources. */
const BUNDLED = 'TROUPE_TEST_BUNDLED';
const FOLDERS = ['apps', 'bench', 'examples', 'inspector', 'machines', 'src', 'test'];
const FILES = [
  'build/bundle.ts',
  'build/declarations.ts',
  'build/docs-list.ts',
  'build/entries.ts',
  'build/page-build.ts',
  'build/typescript.ts',
];
const OPTIONS = {
  tsconfig: false,
  target: 'node20',
  typescript: { rewriteImportExtensions: 'rewrite', onlyRemoveTypeImports: true },
  jsx: { runtime: 'automatic', importSource: 'preact' },
} as const;
const SOURCE = /\.tsx?$/;
/** A program that imports the package runs on the sources, not on the last build: a class of the one is none of the other. */
const PACKAGE = new RegExp(
  `^((?:import|export)\\b[^"'\\n]* from |import )"troupe(?:\\/(${Object.keys(SOURCES).join('|')}))?";$`,
  'gm',
);

/**
 * The compiled file of a TypeScript file of this repository; a file in JavaScript is its own.
 * @example spawn(process.execPath, [compiled('test/fixtures/stdio/echo.ts')]);
 */
export function compiled(source: string): string {
  const path = resolve(root, source.startsWith('file:') ? fileURLToPath(source) : source);
  return SOURCE.test(path) ? join(OUT, relative(root, path)).replace(SOURCE, '.js') : path;
}

/**
 * The file to start a program of the tests or the examples from. If the build is up to date, the program imports `troupe` from
 * `dist/lib` instead of from the compiled sources, which are four hundred files: it starts in a third of the processor time.
 *
 * @example spawn(process.execPath, [startable('test/fixtures/durable/serving.ts')]);
 */
export function startable(source: string): string {
  const path = compiled(source);
  const bundled = join(PROGRAMS, relative(OUT, path));
  return process.env[BUNDLED] === undefined || !existsSync(bundled) ? path : bundled;
}

/** The URL by which this process imports a TypeScript file of this repository: that of the compiled file, unless it runs under tsx. */
export function moduleUrl(source: string): string {
  return pathToFileURL(SOURCE.test(import.meta.filename) ? resolve(root, source) : compiled(source)).href;
}

/** Compiles a program that a test wrote, beside its source. @returns the compiled file */
export async function compileProgram(source: string): Promise<string> {
  const { transformWithOxc } = await import('vite');
  const { code } = await transformWithOxc(readFileSync(source, 'utf8'), source, OPTIONS);
  const out = source.replace(SOURCE, '.js');
  writeFileSync(out, code);
  return out;
}

/** Compiles the files that changed since they were last compiled, and deletes what has no source any more. */
export async function compile(): Promise<void> {
  const sources = sourceFiles();
  startOverAfterAChangeOfThisFile();
  // A build that is broken on purpose is not bundled.
  const bundled = process.env.TROUPE_PROMISE === undefined && isBuilt(LIBRARY);
  const stale = sources.filter(
    ({ source, out }) => modified(out) !== modified(source) || (!bundled && out === COMMAND && commandIsBundled()),
  );
  const outputs = new Set(sources.map(({ out }) => out));
  for (const path of filesBelow(OUT)) if (path.endsWith('.js') && !outputs.has(path)) rmSync(path);
  if (stale.length > 0) {
    const { transformWithOxc } = await import('vite');
    for (const { source, out } of stale) {
      mkdirSync(dirname(out), { recursive: true });
      await compileFile(source, out, transformWithOxc);
    }
  }
  const changed = stale.some(({ source }) => source.startsWith(join(root, 'src') + sep));
  for (const thread of THREADS) if (changed || !isOneFile(compiled(thread))) await bundleThread(thread);
  delete process.env[BUNDLED];
  if (!bundled) return;
  process.env[BUNDLED] = '1';
  if (!commandIsBundled()) write(COMMAND, BUNDLED_COMMAND, modified(SOURCE_OF_COMMAND) ?? 0);
  writePrograms([...outputs]);
}

const SOURCE_OF_COMMAND = join(root, 'src/cli/main.ts');
/** The command that commands of the tests start: it runs the bundled library, like each program. */
const COMMAND = compiled(SOURCE_OF_COMMAND);
const BUNDLED_COMMAND = `import ${JSON.stringify(pathToFileURL(join(root, 'dist/lib/cli/main.js')).href)};\n`;

function commandIsBundled(): boolean {
  return existsSync(COMMAND) && readFileSync(COMMAND, 'utf8') === BUNDLED_COMMAND;
}

/**
 * The threads of stores and nodes: a run starts hundreds of them. As one file a store opens and closes in 60 ms of processor time on a
 * busy machine; it takes 80 ms with the twenty files of its thread, and 97 ms with an import of that of the library.
 */
const THREADS = [
  'src/features/postgres/beat-thread.ts',
  'src/features/postgres/crash-note-thread.ts',
  'src/features/sqlite/sqlite-worker.ts',
].map((path) => join(root, path));
/** The first line of a thread that is one file. */
const ONE_FILE = '// One file, with what it imports.';

function isOneFile(path: string): boolean {
  return !existsSync(path) || readFileSync(path, 'utf8').startsWith(ONE_FILE);
}

async function bundleThread(source: string): Promise<void> {
  // `npm run test:faults` copies a part of the repository.
  if (!existsSync(source)) return;
  const { build } = await import('vite');
  const built = await build({
    configFile: false,
    root,
    logLevel: 'silent',
    publicDir: false,
    build: {
      ...{ ssr: true, target: 'node20', write: false, minify: false },
      rollupOptions: { input: source, output: { format: 'es', codeSplitting: false } },
    },
  });
  const [chunk] = [built].flat().flatMap((result) => ('output' in result ? result.output : []));
  if (chunk === undefined || !('code' in chunk)) throw new Error(`expected one file of ${source}`);
  // The map is that of the file without its imports.
  rmSync(`${compiled(source)}.map`, { force: true });
  write(compiled(source), `${ONE_FILE}\n${chunk.code}`, modified(source) ?? 0);
}

/** The programs that tests start. */
const STARTED = ['examples/', 'test/fixtures/', 'test/inspector/recorded-child.'].map((path) => join(OUT, path));
/** The entry points of the library, by their compiled files. */
const ENTRIES = new Map(
  Object.entries(SOURCES).map(([name, source]) => [
    join(OUT, 'src', `${source}.js`),
    join(root, 'dist/lib', `${name}.js`),
  ]),
);
/** A module without classes and state: a program may have a copy of it beside that of the library. */
const FUNCTIONS = compiled('src/core/protocol/json.ts');
const IMPORT = /^((?:import|export)\b[^"'\n]*? from |import )["'](\.[^"'\n]*)["'];$/gm;

/** Writes each program again with imports of the library, unless it or a file that it imports needs other sources of the package. */
function writePrograms(outputs: readonly string[]): void {
  const reach = new Map<string, ReadonlySet<string> | undefined>();
  /** The files of a program; undefined if it cannot be written again. */
  const filesOf = (path: string): ReadonlySet<string> | undefined => {
    if (reach.has(path)) return reach.get(path);
    const files = new Set([path]);
    // Two files may import each other.
    reach.set(path, files);
    const text = readFileSync(path, 'utf8');
    // A path that a program computes may lead to another copy of the library.
    let can = (path === FUNCTIONS || !path.startsWith(join(OUT, 'src'))) && !/\bimport\(|dist\/compiled/.test(text);
    for (const [, , from = ''] of can ? text.matchAll(IMPORT) : []) {
      const imported = resolve(dirname(path), from);
      if (ENTRIES.has(imported)) continue;
      const more = filesOf(imported);
      can &&= more !== undefined;
      for (const file of more ?? []) files.add(file);
    }
    if (!can) reach.set(path, undefined);
    return reach.get(path);
  };
  const programs = outputs.filter((path) => STARTED.some((start) => path.startsWith(start)));
  const written = new Map(
    programs.flatMap((path) => [...(filesOf(path) ?? [])]).map((path) => [join(PROGRAMS, relative(OUT, path)), path]),
  );
  mkdirSync(PROGRAMS, { recursive: true });
  for (const [copy, path] of written) {
    const text = readFileSync(path, 'utf8').replace(IMPORT, (_, start: string, from: string) => {
      const imported = resolve(dirname(path), from);
      const target = ENTRIES.get(imported) ?? join(PROGRAMS, relative(OUT, imported));
      return `${start}${JSON.stringify(pathToFileURL(target).href)};`;
    });
    if (existsSync(copy) && readFileSync(copy, 'utf8') === text) continue;
    mkdirSync(dirname(copy), { recursive: true });
    write(copy, text, Date.now());
  }
  for (const path of filesBelow(PROGRAMS)) if (path.endsWith('.js') && !written.has(path)) rmSync(path);
}

interface Compiled {
  readonly source: string;
  readonly out: string;
}

function sourceFiles(): Compiled[] {
  // `npm run test:faults` copies a part of the repository.
  const present = [...FOLDERS, ...FILES].map((name) => join(root, name)).filter((path) => existsSync(path));
  return present
    .flatMap((path) => (SOURCE.test(path) ? [path] : filesBelow(path)))
    .filter((path) => SOURCE.test(path) && !path.endsWith('.d.ts'))
    .map((source) => ({ source, out: compiled(source) }));
}

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (!entry.isDirectory()) return [path];
    return entry.name === 'node_modules' ? [] : filesBelow(path);
  });
}

function modified(path: string): number | undefined {
  // A copied time has no fractions of a millisecond.
  const ms = statSync(path, { throwIfNoEntry: false })?.mtimeMs;
  return ms === undefined ? undefined : Math.round(ms);
}

/** Another version of the compiler, or of this file, compiles every file again. */
function startOverAfterAChangeOfThisFile(): void {
  const key = ['package-lock.json', 'test/harness/compiled.ts'].map((file) => modified(join(root, file))).join(' ');
  const file = join(OUT, 'compiled-by');
  if (existsSync(file) && readFileSync(file, 'utf8') === key) return;
  rmSync(OUT, { recursive: true, force: true });
  mkdirSync(OUT, { recursive: true });
  writeFileSync(file, key);
}

/**
 * The sources keep their own `import.meta.url`, because they start threads by it. In every other file it is the URL of the
 * TypeScript file, where the fixtures and the data are.
 */
async function compileFile(source: string, out: string, transform: typeof transformWithOxc): Promise<void> {
  const isOfPackage = source.startsWith(join(root, 'src') + sep);
  // A change while this runs makes the compiled file stale.
  const { mtimeMs } = statSync(source);
  let result: Awaited<ReturnType<typeof transform>>;
  try {
    result = await transform(readFileSync(source, 'utf8'), source, {
      ...OPTIONS,
      ...(isOfPackage ? {} : { define: { 'import.meta.url': JSON.stringify(pathToFileURL(source).href) } }),
    });
  } catch (error) {
    // A fixture may be broken on purpose. The message appears where a test imports the file.
    write(out, `throw new SyntaxError(${JSON.stringify(String(error))});\n`, mtimeMs);
    return;
  }
  const own = (_: string, start: string, entry = 'index'): string => {
    const path = relative(
      dirname(out),
      compiled(join(root, `src/${new Map(Object.entries(SOURCES)).get(entry)}.ts`)),
    ).split(sep);
    return `${start}"${path[0] === '..' ? '' : './'}${path.join('/')}";`;
  };
  // The map goes first: a file that is up to date has its map.
  writeFileSync(`${out}.map`, JSON.stringify({ ...result.map, sourcesContent: [] }));
  write(out, isOfPackage ? result.code : result.code.replace(PACKAGE, own), mtimeMs);
}

/** Whole or not at all, because another run may load the file at the same time. */
function write(out: string, code: string, mtimeMs: number): void {
  const part = `${out}.${process.pid}`;
  writeFileSync(part, code);
  const seconds = Math.round(mtimeMs) / 1000;
  utimesSync(part, seconds, seconds);
  renameSync(part, out);
}

const POSITION = /(?:file:\/\/)?([^\s()]+\/dist\/compiled\/[^\s()]+?\.js)(?:\?[^\s():]*)?:(\d+):(\d+)/g;

/** A stack trace with the positions of the TypeScript files. */
export function originalStack(stack: string): string {
  const maps = new Map<string, SourceMap>();
  return stack.replace(POSITION, (position, file: string, line: string, column: string) => {
    const found = maps.get(file) ?? mapOf(file);
    if (!found) return position;
    maps.set(file, found);
    const entry = found.findEntry(Number(line) - 1, Number(column) - 1);
    if (!('originalSource' in entry)) return position;
    return `${entry.originalSource}:${entry.originalLine + 1}:${entry.originalColumn + 1}`;
  });
}

function mapOf(file: string): SourceMap | undefined {
  const path = `${file}.map`;
  return existsSync(path) ? new SourceMap(JSON.parse(readFileSync(path, 'utf8'))) : undefined;
}

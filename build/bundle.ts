/**
 * Bundles the sources into `dist/lib`. Most of the time of a start is reading files, and the bundle has a few instead of four hundred
 * (docs/adr/0018). A file that Node starts or loads by its path keeps that path below `src`.
 */
import { readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, type InlineConfig, type Plugin } from 'vite';
import { ENTRIES } from './entries.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const out = join(root, 'dist/lib');
const source = (path: string): string => join(root, `src/${path}.ts`);

/** The sources of the entry points, by their names in `dist/lib`. */
const PUBLIC = Object.fromEntries(Object.entries(ENTRIES).map(([name, path]) => [name, source(path)]));
/** The worker process of `troupe run`. It is beside the library: the folder of the command is CommonJS. */
const WORKER = 'cli/worker-main';
/** The files that Node starts or loads by their paths. */
const STARTED = [
  'features/postgres/beat-thread',
  'features/postgres/crash-note-thread',
  'features/sqlite/sqlite-worker',
  'features/workers/pool-thread',
];
/**
 * The files of threads that start with the server, or before a TypeScript program: Node 20 runs the loader hook in a thread, where
 * tsx transforms every file that it imports. Each is one file, with the little that it needs.
 */
const THREADS = ['features/workers/watchdog-thread', 'features/discovery/inherit'];
/** The modules that the command imports when it needs them: one for each command, and the worker of `troupe run`. */
const COMMANDS = [
  ...readdirSync(join(root, 'src/cli/commands')).map((file) => `commands/${basename(file, '.ts')}`),
  'setup/connect-lines',
  'supervisor/worker',
].filter((name) => name !== 'commands/run');
/** The command with its supervisor: one file. */
const COMMAND = 'cli/main';

/** Milliseconds that the chunks of an earlier build stay: a running process may still import them. */
const KEPT_MS = 600_000;

/** A group of entry points, and the modules that they import. */
const group = (...entries: readonly string[]) => ({ entries, modules: new Set<string>() });
const core = group(ENTRIES.index);
/** Entry points without a server in their process. A chunk of its own contains what they share with a server. */
const light = group(...STARTED, WORKER, 'cli/commands/attach');
const client = group(
  ENTRIES.client,
  ...['http', 'http-sse', 'socket', 'stdio'].map((name) => `client/channels/${name}-channel`),
);
const worker = group('cli/supervisor/worker');

/** Collects the modules that each group imports. */
const reach: Plugin = {
  name: 'troupe:reach',
  buildEnd() {
    const add = (id: string, to: Set<string>): void => {
      if (to.has(id)) return;
      to.add(id);
      for (const next of this.getModuleInfo(id)?.importedIds ?? []) add(next, to);
    };
    for (const { entries, modules } of [core, light, client, worker])
      for (const entry of entries) add(source(entry), modules);
    // A module that is loaded by its path is a file of its own.
    worker.modules.delete(source('cli/supervisor/worker'));
  },
};

/** The packages that the library loads by `require`: Node reads the CommonJS files only, and does not look for what they export. */
const REQUIRED = ['xstate', 'eventemitter3'];

/**
 * Replaces the import of a CommonJS package by `require`. The module is the one that an author's `import` gives, which is a
 * wrapper of it, and it loads in half the time.
 */
const required: Plugin = {
  name: 'troupe:required',
  enforce: 'pre',
  resolveId: (id) => (REQUIRED.includes(id) ? `\0required:${id}` : undefined),
  async load(id) {
    const name = REQUIRED.find((known) => id === `\0required:${known}`);
    if (!name) return undefined;
    const names = Object.keys(await import(name)).filter((exported) => exported !== 'default');
    return `import { createRequire } from 'node:module';
export const { ${names.join(', ')} } = createRequire(import.meta.url)('${name}');`;
  },
};

/** The module that finds the files of the package. Its sources are two folders below them, and the bundle that has it is beside them. */
const PACKAGE_FILES = source('core/kernel/package-files');
const OWN = "new URL('../../', import.meta.url)";
const flat: Plugin = {
  name: 'troupe:flat',
  enforce: 'pre',
  transform: (code, id) =>
    id === PACKAGE_FILES ? { code: code.replace(OWN, "new URL('./', import.meta.url)"), map: null } : undefined,
};

/** Corrects the paths in the command, whose file is one directory below the library's: its own location, and the modules that it imports later. */
const beside: Plugin = {
  name: 'troupe:beside',
  enforce: 'pre',
  resolveId(id) {
    const name = COMMANDS.find((command) => id.endsWith(`/${command}.ts`) || id === `../${command}.ts`);
    return name && id.startsWith('.') ? { id: `../command-${basename(name)}.js`, external: true } : undefined;
  },
  transform: (code, id) =>
    id === PACKAGE_FILES ? { code: code.replace(OWN, "new URL('../', import.meta.url)"), map: null } : undefined,
};

/** The part of a node of the syntax tree that is walked. */
interface SyntaxNode {
  readonly type?: string;
  readonly start?: number;
  readonly end?: number;
}

/** Collects where strings, regular expressions and the texts of templates begin and end, in order. */
function literalsIn(node: unknown, found: [number, number][] = []): [number, number][] {
  if (typeof node !== 'object' || node === null) return found;
  const { type, start = 0, end = 0 }: SyntaxNode = node;
  if (type === 'TemplateElement' || type === 'Literal') found.push([start, end]);
  else for (const value of Object.values(node)) literalsIn(value, found);
  return found;
}

/** Spaces that separate nothing: beside these marks, and in front of a line. By the one before `require`, publint finds CommonJS. */
const SPACES = / ?(=>|===|!==|\?\?|&&|\|\||[=,:?{}])(?: (?!require\())?|^\t+/gm;

/** A character that is not ASCII. They stand in literals, because comments are left out. */
const BEYOND_ASCII = /[^\0-\x7f]/g;
const escaped = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;

/**
 * Removes indentation and spaces, an eighth of the code. Lines stay, because Node prints the line that threw. Escapes what is
 * not ASCII: one such character makes V8 hold and read two bytes for each character of the file.
 */
const condensed: Plugin = {
  name: 'troupe:condensed',
  generateBundle(_, files) {
    for (const file of Object.values(files)) {
      if (file.type !== 'chunk') continue;
      const { code } = file;
      let written = '';
      let at = 0;
      for (const [start, end] of literalsIn(this.parse(code)).sort(([a], [b]) => a - b)) {
        written += code.slice(at, start).replace(SPACES, '$1') + code.slice(start, end);
        at = end;
      }
      file.code = (written + code.slice(at).replace(SPACES, '$1')).replace(BEYOND_ASCII, escaped);
    }
  },
};

type Output = NonNullable<NonNullable<InlineConfig['build']>['rollupOptions']>['output'];

/**
 * @param input the source of each entry point, by its path in `dist/lib`
 * @param noExternal include the packages
 */
async function bundled(input: Readonly<Record<string, string>>, plugins: Plugin[], output: Output, noExternal?: true) {
  const result = await build({
    configFile: false,
    root,
    logLevel: 'warn',
    publicDir: false,
    plugins: [...plugins, condensed],
    ...(noExternal && { ssr: { noExternal } }),
    build: {
      ssr: true,
      target: 'node20',
      outDir: out,
      emptyOutDir: false,
      minify: false,
      rollupOptions: {
        input: { ...input },
        checks: { pluginTimings: false },
        // No line with the name of each source: they are 18 KB, and the package has a limit.
        experimental: { attachDebugInfo: 'none' },
        output: {
          entryFileNames: '[name].js',
          // Beside each other, so that all of them find src/core/kernel/package-files.ts at the same distance.
          chunkFileNames: 'chunk-[name]-[hash].js',
          // An author's editor reads the comments in the declarations; Node reads every character of these files.
          comments: false,
          // Stack traces show names, and Node prints the line that threw above an uncaught error: names and lines stay.
          minify: {
            compress: false,
            mangle: { toplevel: false, keepNames: true },
            codegen: { removeWhitespace: false },
          },
          ...output,
        },
      },
    },
  });
  if ('close' in result) throw new Error('expected a build that ends, got a watcher');
  return [result].flat().flatMap(({ output }) => output.map(({ fileName }) => fileName));
}

const library = await bundled(
  {
    ...Object.fromEntries(STARTED.map((file) => [file, source(file)])),
    ...PUBLIC,
    'worker-main': source(WORKER),
    ...Object.fromEntries(COMMANDS.map((name) => [`command-${basename(name)}`, source(`cli/${name}`)])),
  },
  [reach, required, flat],
  {
    // Reading one more file costs as much as 20 KB.
    codeSplitting: {
      groups: [
        {
          name: 'base',
          priority: 3,
          test: (id) => light.modules.has(id) && (core.modules.has(id) || worker.modules.has(id)),
        },
        // The client loads no server.
        { name: 'actors', priority: 2, test: (id) => client.modules.has(id) && core.modules.has(id) },
        { name: 'core', priority: 1, test: (id) => core.modules.has(id) },
        { name: 'serving', test: (id) => worker.modules.has(id) },
      ],
    },
  },
);
// The command is CommonJS: Node starts it without the ESM loader, so it starts its worker earlier.
const command = await bundled({ [COMMAND]: source(COMMAND) }, [beside], { format: 'cjs', codeSplitting: false });
const threads = THREADS.map((thread) => bundled({ [thread]: source(thread) }, [], { codeSplitting: false }));
const scope = join(dirname(COMMAND), 'package.json');
writeFileSync(join(out, scope), '{ "type": "commonjs" }\n');

const written = new Set([...library, ...command, ...(await Promise.all(threads)).flat(), scope, '.npmignore']);
const stale: string[] = [];
for (const file of readdirSync(out, { recursive: true, encoding: 'utf8' })) {
  const path = join(out, file);
  if (written.has(file) || !statSync(path).isFile()) continue;
  if (Date.now() - statSync(path).mtimeMs < KEPT_MS) stale.push(file.split(sep).join('/'));
  else rmSync(path);
}
// `npm pack` leaves out the files of an earlier build.
writeFileSync(join(out, '.npmignore'), stale.map((file) => `/${file}\n`).join(''));

// The client under test of the official suite, with its packages: the suite starts forty of them at once.
const conformance = { 'conformance-client': join(root, 'test/system/conformance/client.ts') };
await bundled(conformance, [], { dir: join(root, 'dist/test'), entryFileNames: '[name].mjs' }, true);

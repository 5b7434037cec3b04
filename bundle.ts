/**
 * Bundles what `tsc` has checked into `dist/lib`: a few files to read instead of three hundred, which is most of what starting costs
 * (docs/adr/0018). What is started or loaded by name stays a file of its own, at the same path as below `src`.
 */
import { readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, type InlineConfig, type Plugin } from 'vite';

const root = fileURLToPath(new URL('.', import.meta.url));
const out = join(root, 'dist/lib');
const source = (path: string): string => join(root, `src/${path}.ts`);

/** What others import by name. */
const PUBLIC = ['index', 'testing', 'inspector'];
/** What Node starts or loads by its file, and what tells where all this lies. */
const STARTED = [
  'package-files',
  'discovery/inherit',
  'store/sqlite/sqlite-worker',
  'workers/pool-thread',
  'worker-main',
];
/** Threads that need little of it: each has that in its own file, for it starts with the server. */
const THREADS = ['workers/watchdog-thread'];
/** What runs without a server in its process. What it shares with one is a chunk apart. */
const LIGHT = [...STARTED, 'cli/commands/attach'];
/** What the command loads beside itself: what each of its commands needs, and the server of `troupe run`. */
const COMMANDS = [
  'commands/dev',
  'commands/serve',
  'commands/attach',
  'commands/graph',
  'commands/top',
  'supervisor/worker',
];
/** The command itself, with all that supervises: one file. */
const COMMAND = 'cli/main';

/** A process that runs may still load parts of the build before this one. */
const KEPT_MS = 600_000;

const core = new Set<string>();
const light = new Set<string>();
const worker = new Set<string>();

/** Looks at which modules come with which, when all are known. */
const reach: Plugin = {
  name: 'troupe:reach',
  buildEnd() {
    const add = (id: string, to: Set<string>): void => {
      if (to.has(id)) return;
      to.add(id);
      for (const next of this.getModuleInfo(id)?.importedIds ?? []) add(next, to);
    };
    add(source('index'), core);
    for (const entry of LIGHT) add(source(entry), light);
    add(source('cli/supervisor/worker'), worker);
    // What is loaded by its name is a file of its own.
    worker.delete(source('cli/supervisor/worker'));
    core.delete(source('discovery/inherit'));
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

/** The rest as the command finds it, which lies a directory further down: its own place, and what it loads beside itself. */
const beside: Plugin = {
  name: 'troupe:beside',
  enforce: 'pre',
  resolveId(id) {
    const name = COMMANDS.find((command) => id.endsWith(`/${command}.ts`) || id === `../${command}.ts`);
    return name && id.startsWith('.') ? { id: `../command-${basename(name)}.js`, external: true } : undefined;
  },
  transform: (code, id) =>
    id === source('package-files')
      ? { code: code.replaceAll('import.meta.url', "new URL('../package-files.js', import.meta.url).href"), map: null }
      : undefined,
};

type Output = NonNullable<NonNullable<InlineConfig['build']>['rollupOptions']>['output'];

/** @param input what there is to be, by its path in `dist/lib` */
async function bundled(input: Readonly<Record<string, string>>, plugins: Plugin[], output: Output) {
  const result = await build({
    configFile: false,
    root,
    logLevel: 'warn',
    publicDir: false,
    plugins,
    build: {
      ssr: true,
      target: 'node20',
      outDir: out,
      emptyOutDir: false,
      minify: false,
      rollupOptions: {
        input: { ...input },
        output: {
          entryFileNames: '[name].js',
          // Beside each other, so that all of them find src/package-files.ts at the same distance.
          chunkFileNames: 'chunk-[name]-[hash].js',
          // The names that stacks show stay, and so do lines: Node prints the one that threw above an uncaught error.
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
    ...Object.fromEntries([...PUBLIC, ...STARTED].map((entry) => [entry, source(entry)])),
    ...Object.fromEntries(COMMANDS.map((name) => [`command-${basename(name)}`, source(`cli/${name}`)])),
  },
  [reach, required],
  {
    // Reading a file costs as much as 20 KB in it.
    codeSplitting: {
      groups: [
        { name: 'base', priority: 2, test: (id) => light.has(id) && (core.has(id) || worker.has(id)) },
        { name: 'core', priority: 1, test: (id) => core.has(id) },
        { name: 'serving', test: (id) => worker.has(id) },
      ],
    },
  },
);
// Until it has started its worker nothing else can begin: it is CommonJS, for which Node need not load its loader of modules.
const command = await bundled({ [COMMAND]: source(COMMAND) }, [beside], { format: 'cjs', codeSplitting: false });
const threads = [];
for (const thread of THREADS)
  threads.push(...(await bundled({ [thread]: source(thread) }, [], { codeSplitting: false })));
const scope = join(dirname(COMMAND), 'package.json');
writeFileSync(join(out, scope), '{ "type": "commonjs" }\n');

const written = new Set([...library, ...command, ...threads, scope, '.npmignore']);
const stale: string[] = [];
for (const file of readdirSync(out, { recursive: true, encoding: 'utf8' })) {
  const path = join(out, file);
  if (written.has(file) || !statSync(path).isFile()) continue;
  if (Date.now() - statSync(path).mtimeMs < KEPT_MS) stale.push(file.split(sep).join('/'));
  else rmSync(path);
}
// `npm pack` leaves out the files of an earlier build.
writeFileSync(join(out, '.npmignore'), stale.map((file) => `/${file}\n`).join(''));

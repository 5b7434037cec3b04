/**
 * Bundles the sources into `dist/lib`. Most of the time of a start is reading files, and the bundle has a few instead of four hundred
 * (docs/adr/0018). They are CommonJS, so that a feature loads when it is first used (docs/adr/0064). A file that Node starts or
 * loads by its path keeps that path below `src`.
 */
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, type InlineConfig, type Plugin } from 'vite';
import { ENTRIES } from './entries.ts';
import { firstFile } from './first-file.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const out = join(root, 'dist/lib');
const source = (path: string): string => join(root, `src/${path}.ts`);

/** The sources of the entry points, by their names in `dist/lib`. */
const PUBLIC = Object.fromEntries(Object.entries(ENTRIES).map(([name, path]) => [name, source(path)]));
/** The worker process of `troupe run`. */
const WORKER = 'cli/worker-main';
/** The files that Node starts or loads by their paths. */
const STARTED = [
  'features/code/sandbox/sandbox-thread',
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
/** The file that `bin` names, and the command with its supervisor, which it loads: one file. */
const COMMAND = 'cli/main';
const LOADED = 'cli/command.js';

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

/**
 * What loads when something of it is first used: the modules in these folders, and these modules, each with what only such
 * modules import. Other modules import them as any other; while these load, nothing of a late one may be used.
 */
const LATE: Readonly<Record<string, readonly string[]>> = {
  apps: ['features/apps'],
  approvals: ['features/approvals', '../machines/approval'],
  asking: ['features/asking', 'core/store/seal'],
  audit: ['features/guard/audit'],
  authorization: ['features/guard/authorization'],
  cluster: ['features/cluster'],
  code: ['features/code'],
  'dead-letters': ['features/server/dead-letters'],
  discovery: ['features/discovery'],
  durability: [
    'features/durability/reply-cache',
    'core/kernel/files',
    'core/sessions/session-record',
    'core/store/crash-marker',
    'core/store/writes',
  ],
  events: ['features/events'],
  forgetting: ['features/forgetting'],
  hooks: ['features/hooks', '../machines/hook-delivery'],
  http: ['core/http', 'core/requests/mirrored-headers'],
  inspection: [
    'core/kernel/charts',
    'core/kernel/inspection/edges-taken',
    'core/kernel/inspection/inspected-hops',
    'core/kernel/inspection/step-recorder',
    'core/kernel/telemetry/guarded-telemetry',
  ],
  limits: ['features/guard/limits'],
  machines: ['features/machines', 'core/kernel/inspection/inspected-machine', 'core/registry/xstate-copy'],
  middleware: ['features/middleware'],
  mounts: ['gateway'],
  problems: [
    'core/execution/input-errors',
    'core/execution/lost-data',
    'core/execution/wrong-arguments',
    'core/kernel/telemetry/prometheus',
    'core/schema/ajv',
    'core/schema/ajv-problems',
    'core/schema/excerpts',
    'core/schema/problems',
    'core/schema/wrap',
  ],
  results: ['core/execution/completions', 'core/execution/prompts', 'core/execution/resources'],
  schedules: ['features/schedules'],
  skills: ['features/skills'],
  sockets: ['core/transports/socket-path'],
  standards: ['core/schema/compile-standard'],
  state: ['features/state'],
  stores: ['features/postgres', 'features/sqlite'],
  subscriptions: ['core/protocol/subscription-filter', 'core/requests/open-subscriptions'],
  tasks: ['features/tasks', 'core/codec/outbound/render-task', 'core/protocol/task-params'],
  templates: ['grammar', 'expand', 'match-uri'].map((name) => `core/protocol/uri-template/${name}`),
  workers: ['features/workers/pool', 'features/workers/watchdog'],
};

/** The modules of these names open with each server, and those that `src/index.ts` exports load with it. */
const EARLY = /\.feature\.ts$|-(?:options?|methods)\.ts$/;

/** The name of the late chunk to which a module belongs, by the path of the module. */
const lateWith = new Map<string, string>();

/** Collects the modules that each group imports, and those that load late. */
const reach: Plugin = {
  name: 'troupe:reach',
  buildEnd() {
    const exported = new Set(this.getModuleInfo(source(ENTRIES.index))?.importedIds);
    const late = (id: string): string | undefined => {
      if (EARLY.test(id) || exported.has(id)) return undefined;
      const path = relative(join(root, 'src'), id).split(sep).join('/').replace(/\.ts$/, '');
      const found = Object.entries(LATE).find(([, starts]) =>
        starts.some((start) => path === start || path.startsWith(`${start}/`)),
      );
      return found?.[0];
    };
    const add = (id: string, take: (id: string) => boolean): void => {
      if (!take(id)) return;
      for (const next of this.getModuleInfo(id)?.importedIds ?? []) add(next, take);
    };
    for (const { entries, modules } of [core, light, client, worker])
      for (const entry of entries)
        add(source(entry), (id) => {
          // Threads and clients load everything that they import.
          if (modules.has(id) || ((modules === core.modules || modules === worker.modules) && late(id))) return false;
          modules.add(id);
          return true;
        });
    // A module that is loaded by its path is a file of its own.
    worker.modules.delete(source('cli/supervisor/worker'));
    const reached = new Set<string>();
    for (const entry of core.entries) add(source(entry), (id) => reached.size < reached.add(id).size);
    for (const id of reached) {
      const name = late(id);
      if (!name) continue;
      add(id, (each) => {
        if (core.modules.has(each) || worker.modules.has(each) || lateWith.has(each)) return false;
        lateWith.set(each, late(each) ?? name);
        return true;
      });
    }
  },
};

/** The module that finds the files of the package. Its sources are two folders below them, and the bundle that has it is beside them. */
const PACKAGE_FILES = source('core/kernel/package-files');
const OWN = "new URL('../../', import.meta.url)";
const EXTENSION = 'extname(import.meta.url)';
/** @param own the folder of the bundles, relative to that of a bundle */
const at = (own: string): Plugin => ({
  name: 'troupe:place',
  enforce: 'pre',
  transform: (code, id) =>
    id === PACKAGE_FILES
      ? { code: code.replace(OWN, `new URL('${own}', import.meta.url)`).replace(EXTENSION, "'.cjs'"), map: null }
      : undefined,
});

/** Corrects the paths in the command, whose file is one directory below the library's: the modules that it imports later. */
const beside: Plugin = {
  name: 'troupe:beside',
  enforce: 'pre',
  resolveId(id) {
    const name = COMMANDS.find((command) => id.endsWith(`/${command}.ts`) || id === `../${command}.ts`);
    return name && id.startsWith('.') ? { id: `../command-${basename(name)}.cjs`, external: true } : undefined;
  },
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

/**
 * Spaces that separate nothing: beside these marks, between a keyword and its parenthesis, and in front of a line. By the one before
 * `require`, publint finds CommonJS.
 */
const SPACES =
  /\b(if|for|while|switch|catch) (?=\()| ?(=>|===|!==|\?\?|&&|\|\||>=?|<=?(?! ?!)|(?<!\+ ?)\+(?! ?\+)|[=,:?{}[])(?: (?!require\())?|^\t+/gm;

/** A character that is not ASCII. They stand in literals, because comments are left out. */
const BEYOND_ASCII = /[^\0-\x7f]/g;
const escaped = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** Chunks that each server needs, and each client. They load with the files that require them. */
const EAGER = /\.\/(?:index\.cjs|chunk-(?:base|actors|core|rolldown-runtime)-)/;
const REQUIRED = /^(?:const|let) (\w+) = require\("([^"]+)"\);$/gm;
/** How rolldown exports the name of a chunk to the others. */
const EXPORTED =
  /^Object\.defineProperty\(exports, ("?\w+"?), \{\n\tenumerable: true,\n\tget: function\(\) \{\n\t\treturn (\w+);\n\t\}\n\}\);$/gm;

/** Packages that are ES modules, which not every Node that is supported can `require`. The entry points that need them import them. */
const MODULES = ['jose'];
/** Holds these packages. */
const HELD = 'packages.cjs';

const required = (from: string): string =>
  MODULES.includes(from) ? `require("./${HELD}").${from}` : `require("${from}")`;

/** Calls of functions of other files, which bundlers write so that `this` is undefined. None of these functions has one. */
const THIS_LESS = /(?<!new )\(0, (\$?\w+(?:\(\))?\.\w+)\)\(/g;

/** Collects the places at which names are used: `member` if as the object of a member, such as `name.member`. */
function usesIn(
  node: unknown,
  names: ReadonlySet<string>,
  found: { name: string; end: number; member: boolean }[] = [],
) {
  if (typeof node !== 'object' || node === null) return found;
  const { type, computed, object, property, key, value, ...rest } = node as Readonly<Record<string, unknown>>;
  const visit = (part: unknown, member: boolean): void => {
    const { type: kind, name, end } = (part ?? {}) as SyntaxNode & { readonly name?: string };
    if (kind === 'Identifier' && name !== undefined && names.has(name)) found.push({ name, end: end ?? 0, member });
    else usesIn(part, names, found);
  };
  const parts = Object.values(rest).flat();
  if (type === 'MemberExpression') visit(object, true);
  // The name of a member is none of these.
  if (computed === true || type !== 'MemberExpression') visit(property, false);
  if (computed === true) visit(key, false);
  for (const part of [...parts, value]) visit(part, false);
  return found;
}

/** Makes a file load what it requires when it first uses it. @param parse reads JavaScript */
function later(code: string, parse: (code: string) => unknown): string {
  let written = code.replace(EXPORTED, (getter, name: string, local: string) => {
    // A variable may change after it was exported.
    const assigned = code.match(new RegExp(`(?<![.\\w$])${local} [-+*/|&?]*= `, 'g')) ?? [];
    const isDeclared = new RegExp(`^(?:(?:async )?function\\*?|class|(?:const|let|var)) ${local}\\b(?!;)`, 'm').test(
      code,
    );
    return isDeclared && assigned.length <= 1 ? `exports.${name.slice(1, -1)} = ${local};` : getter;
  });
  const lines = new Map([...written.matchAll(REQUIRED)].map(([line, name = '', from = '']) => [name, { line, from }]));
  // Its declaration is a use, too.
  const uses = usesIn(parse(written), new Set(lines.keys())).filter(
    ({ end }) => !written.startsWith(' = require(', end),
  );
  const whole = new Set(uses.flatMap(({ name, member }) => (member ? [] : name)));
  const isLate = (name: string): boolean => !whole.has(name) && !EAGER.test(lines.get(name)?.from ?? '');
  for (const { name, end } of uses.sort((one, other) => other.end - one.end)) {
    const before = written.slice(0, end - name.length);
    const used = isLate(name) ? `${shortened(name)}()` : shortened(name);
    written = before + (before.endsWith('new ') && isLate(name) ? `(${used})` : used) + written.slice(end);
  }
  for (const [name, { line, from }] of lines) {
    const own = shortened(name);
    const loads = isLate(name) ? `let ${own}$;\nconst ${own} = () => ${own}$ ??= ` : `let ${own} = `;
    written = written.replace(line, () => `${loads}${required(from)};`);
  }
  return written.replace(THIS_LESS, '$1(');
}

/** A chunk is used some thousand times. */
const shortened = (name: string): string => name.replace(/^require_/, '$');

/**
 * Removes indentation and spaces, an eighth of the code. Lines stay, because Node prints the line that threw. Escapes what is
 * not ASCII: one such character makes V8 hold and read two bytes for each character of the file.
 */
const condensed: Plugin = {
  name: 'troupe:condensed',
  generateBundle(_, files) {
    for (const file of Object.values(files)) {
      if (file.type !== 'chunk') continue;
      const code = !file.fileName.endsWith('.mjs') ? later(file.code, (text) => this.parse(text)) : file.code;
      let written = '';
      let at = 0;
      for (const [start, end] of literalsIn(this.parse(code)).sort(([a], [b]) => a - b)) {
        written += code.slice(at, start).replace(SPACES, '$1$2') + code.slice(start, end);
        at = end;
      }
      file.code = (written + code.slice(at).replace(SPACES, '$1$2')).replace(BEYOND_ASCII, escaped);
    }
  },
};

/** An ES module for each entry point of the package: programs import its names. */
const facades: Plugin = {
  name: 'troupe:facades',
  generateBundle(_, files) {
    for (const file of Object.values(files)) {
      if (file.type !== 'chunk' || !(file.name in PUBLIC) || !file.isEntry) continue;
      const names = file.facadeModuleId ? this.getModuleInfo(file.facadeModuleId)?.exports : undefined;
      const packages = MODULES.filter((name) => file.code.includes(`require("${name}")`));
      const source = [
        'import { createRequire } from "node:module";',
        ...packages.map((name) => `import * as ${name} from "${name}";`),
        'const require = createRequire(import.meta.url);',
        ...packages.map((name) => `require("./${HELD}").${name} = ${name};`),
        `export const { ${names?.toSorted().join(', ')} } = require("./${file.fileName}");\n`,
      ].join('\n');
      this.emitFile({ type: 'asset', fileName: `${file.name}.js`, source });
    }
    this.emitFile({ type: 'asset', fileName: HELD, source: '' });
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
          format: 'cjs',
          generatedCode: { symbols: false },
          entryFileNames: '[name].cjs',
          // Beside each other, so that all of them find src/core/kernel/package-files.ts at the same distance.
          chunkFileNames: 'chunk-[name]-[hash].cjs',
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
  [reach, at('./'), facades],
  {
    // Reading one more file costs as much as 20 KB.
    codeSplitting: {
      includeDependenciesRecursively: false,
      groups: [
        { name: 'base', priority: 3, test: (id) => light.modules.has(id) && core.modules.has(id) },
        // What the commands and the worker of `troupe run` share, and no server of a program needs.
        { name: 'command', priority: 3, test: (id) => light.modules.has(id) && worker.modules.has(id) },
        // Threads and the client load no server, which each late chunk requires.
        {
          name: (id) => `thread-${lateWith.get(id)}`,
          priority: 3,
          test: (id) => light.modules.has(id) && lateWith.has(id),
        },
        { name: 'clients', priority: 2, test: (id) => client.modules.has(id) && lateWith.has(id) },
        { name: 'actors', priority: 2, test: (id) => client.modules.has(id) && core.modules.has(id) },
        { name: 'core', priority: 1, test: (id) => core.modules.has(id) },
        { name: (id) => lateWith.get(id) ?? null, priority: 1, test: (id) => lateWith.has(id) },
        { name: 'serving', test: (id) => worker.modules.has(id) },
      ],
    },
  },
);
// The command is CommonJS: Node starts it without the ESM loader, so it starts its worker earlier.
const command = await bundled({ [COMMAND]: source(COMMAND) }, [beside, at('../')], {
  entryFileNames: LOADED,
  codeSplitting: false,
});
const { engines }: { engines: { node: string } } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const first = `${COMMAND}.js`;
writeFileSync(join(out, first), firstFile(engines.node, './command.js'));
const threads = THREADS.map((thread) => bundled({ [thread]: source(thread) }, [], { codeSplitting: false }));
const scope = join(dirname(COMMAND), 'package.json');
writeFileSync(join(out, scope), '{ "type": "commonjs" }\n');

const written = new Set([...library, ...command, ...(await Promise.all(threads)).flat(), scope, first, '.npmignore']);
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
const modules = { format: 'es', entryFileNames: '[name].mjs', chunkFileNames: 'chunk-[name]-[hash].mjs' } as const;
await bundled(conformance, [], { ...modules, dir: join(root, 'dist/test') }, true);

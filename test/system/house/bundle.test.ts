/** The files, packages and modules of Node that each entry point of the bundle loads, and what loads later (docs/adr/0018, 0064). */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { gzipSync } from 'node:zlib';
import * as assert from 'uvu/assert';
import { z } from 'zod';
import { suite } from '../../harness/door.ts';

const test = suite('the bundle');
const lib = fileURLToPath(new URL('../../../dist/lib', import.meta.url));

const Uses = z.record(z.string(), z.array(z.array(z.string())));
const Loaded = z.object({ files: z.array(z.string()), builtins: z.array(z.string()) });

/** Reports at its end which CommonJS files a process has loaded, and which modules of Node. */
const REPORT = `
import { createRequire } from 'node:module';
import { writeSync } from 'node:fs';
const require = createRequire(${JSON.stringify(join(lib, 'index.js'))});
process.on('exit', () => {
  const builtins = process.moduleLoadList.flatMap((name) => name.startsWith('NativeModule ') ? name.slice(13) : []);
  writeSync(2, '\\n' + JSON.stringify({ files: Object.keys(require.cache), builtins }));
});
`;

interface LoadedFiles {
  /** Our own files, named as the build names them, without their hashes. */
  readonly files: readonly string[];
  readonly packages: readonly string[];
  /** Node's own modules. */
  readonly builtins: readonly string[];
  /** Bytes of our own files. */
  readonly bytes: number;
}

/** Runs a program, and returns what it has loaded. @param input for its stdin */
function loadedBy(program: string, input = ''): LoadedFiles {
  const args = ['--input-type=module', '-e', `${REPORT}\n${program}`];
  const { stderr, status } = spawnSync(process.execPath, args, { cwd: lib, input, encoding: 'utf8' });
  assert.is(status, 0, stderr.replace(/^\{.*\}/m, ''));
  const { files, builtins } = Loaded.parse(JSON.parse(stderr.split('\n').at(-1) ?? ''));
  const own = files.filter((file) => file.startsWith(lib));
  const others = files.filter((file) => !file.startsWith(lib));
  return {
    files: own.map((file) => named(file.slice(lib.length + 1))).sort(),
    packages: [...new Set(others.map((file) => /node_modules[\\/]([^\\/]+)/.exec(file)?.[1] ?? file))].sort(),
    builtins,
    bytes: own.reduce((sum, file) => sum + statSync(file).size, 0),
  };
}

const named = (file: string): string =>
  file
    .split(sep)
    .join('/')
    .replace(/^(chunk-.*)-[\w-]{8}\.cjs$/, '$1');

/** The files of the build, without those of an earlier one, which a running process may still import. */
function built(): readonly string[] {
  const stale = readFileSync(join(lib, '.npmignore'), 'utf8').split('\n');
  const files = readdirSync(lib, { recursive: true, encoding: 'utf8' }).map((file) => file.split(sep).join('/'));
  return files.filter((file) => /\.c?js$/.test(file) && !stale.includes(`/${file}`));
}

const load = (file: string): LoadedFiles => loadedBy(`require('./${file}');`);

/** What each server loads. */
const CORE = ['chunk-actors', 'chunk-base', 'chunk-rolldown-runtime', 'index.cjs'];
/** Modules of Node that load others, and take milliseconds. A pipe at stdin needs `net`, and its end `worker_threads`. */
const HEAVY = ['http', 'https', 'http2', 'tls', 'zlib', 'dns', 'child_process', 'inspector'];
const heavyIn = ({ builtins }: LoadedFiles): readonly string[] =>
  builtins.filter((name) => [...HEAVY, 'internal/crypto/webcrypto'].includes(name));

const IMPORTED = "import { createServer, stdio } from './index.js';";
const CREATED = "const server = createServer({ name: 'a', version: '1.0.0' });";
const SERVER = `\n${IMPORTED}\n${CREATED}\n`;
const CLIENT = [
  {
    id: 1,
    method: 'initialize',
    params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } },
  },
  { method: 'notifications/initialized' },
  { id: 2, method: 'tools/call', params: { name: 'echo', arguments: { text: 'hello' } } },
]
  .map((message) => `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
  .join('');

/** What loads a feature, by the chunk of the feature. A feature that others load comes before them. */
const USES: Readonly<Record<string, string>> = {
  tasks: "server.tool('t', { task: 'allowed' }, () => 1);",
  templates: "server.resource('a://{id}', () => '');",
  apps: "server.app('a', { html: '<!doctype html>' });",
  authorization: 'server.authorize(() => true);',
  hooks: "server.webhook('/a', { verify: () => undefined, to: () => {} });",
  http: "await server.fetch(new Request('http://localhost/'));",
  limits: "server.tool('t', { limits: { perDay: 9 } }, () => 1);",
  machines: "server.machine('m', require('xstate').createMachine({ on: { a: {} } }), { events: { a: true } });",
  middleware: 'server.use((call, ctx, next) => next());',
  schedules: "server.schedule('s', { everyMs: 1_000 }, () => {});",
  state: "server.stateOf('ada');",
  workers: "server.tool('t', { cpu: new URL('file:///a.mjs') });",
  code: "createServer({ name: 'b', version: '1.0.0', code: {} });",
};

if (existsSync(lib)) {
  test('a server with one tool loads four files, no package, none of a feature that it does not use, and no module of Node that takes long', () => {
    const loaded = loadedBy(
      `${SERVER}
server.tool('echo', { input: { type: 'object', properties: { text: { type: 'string' } } } }, ({ text }) => text);
await server.listen(stdio());`,
      CLIENT,
    );
    console.log(`files: ${loaded.files.join(', ')}; ${loaded.bytes} bytes; packages: ${loaded.packages.join(', ')}`);
    assert.equal(loaded.files, CORE);
    assert.equal(loaded.packages, []);
    assert.equal(heavyIn(loaded), []);
    assert.ok(loaded.bytes <= 340_000, `${loaded.bytes} bytes`);
  });

  /** The files before and after the first use of each feature, in one process. */
  let uses: Readonly<Record<string, readonly string[][]>> | undefined;
  const usesOf = (): NonNullable<typeof uses> => {
    const each = Object.entries(USES).map(
      ([name, use]) => `{ ${CREATED} const before = loaded(); ${use} found.${name} = [before, loaded()]; }`,
    );
    const program = `
import { createRequire } from 'node:module';
${IMPORTED}
const require = createRequire(${JSON.stringify(join(lib, 'index.js'))});
const loaded = () => Object.keys(require.cache);
const found = {};
${each.join('\n')}
process.stdout.write(JSON.stringify(found), () => process.exit());`;
    const args = ['--input-type=module', '-e', program];
    const { stdout, stderr, status } = spawnSync(process.execPath, args, { cwd: lib, encoding: 'utf8' });
    assert.is(status, 0, stderr);
    return Uses.parse(JSON.parse(stdout));
  };
  for (const name of Object.keys(USES))
    test(`a server loads ${name} with the first use`, () => {
      uses ??= usesOf();
      const [before = [], after = []] = uses[name] ?? [];
      const chunk = new RegExp(`[\\\\/]chunk-${name}-[\\w-]{8}\\.cjs$`);
      assert.not.ok(before.some((file) => chunk.test(file)));
      assert.ok(
        after.some((file) => chunk.test(file)),
        after.join(', '),
      );
    });

  test('a crash of an actor loads nothing: no file descriptor may be left', () => {
    // The session reads the instructions, and crashes.
    const { files, packages } = loadedBy(
      `
import { createServer, stdio } from './index.js';
let crashes;
const options = { name: 'a', version: '1.0.0', log: () => {} };
const instructions = { get() { if (crashes === undefined) return 'Read me.'; crashes += 1; throw new Error('as asked'); } };
const server = createServer(Object.defineProperty(options, 'instructions', instructions));
crashes = 0;
process.on('exit', () => { if (crashes === 0) process.exitCode = 1; });
server.tool('echo', () => 'a');
await server.listen(stdio());`,
      CLIENT,
    );
    assert.equal(files, CORE);
    assert.equal(packages, []);
  });

  test('import "troupe" loads the same four files, and no package', () => {
    const loaded = loadedBy("import './index.js';");
    assert.equal(loaded.files, CORE);
    assert.equal(loaded.packages, []);
  });

  test('the files of the library contain only ASCII, which V8 holds in one byte a character', () => {
    assert.ok(built().length > 50);
    assert.equal(
      built().filter((file) => /[^\0-\x7f]/.test(readFileSync(join(lib, file), 'utf8'))),
      [],
    );
  });

  test('each file leaves no package in it that it would load before it uses it, apart from those with a default export', () => {
    const eager = built().flatMap((file) =>
      [
        ...readFileSync(join(lib, file), 'utf8').matchAll(/^(?:const|let|var) [\w$]+= ?require\("([^".][^"]*)"\);$/gm),
      ].map(([, name = '']) => name),
    );
    assert.equal([...new Set(eager.filter((name) => !isBuiltin(name)))].sort(), [
      'cross-spawn',
      'libsql',
      'minisearch',
    ]);
  });

  test('a server without postgres() loads nothing of it, and only its chunk loads the package pg, when a store opens', () => {
    const loading = built().filter((file) => /import\("pg"\)/.test(readFileSync(join(lib, file), 'utf8')));
    assert.ok(loading.length > 0);
    assert.not.ok(loading.some((file) => CORE.includes(named(file))));
  });

  test('import "troupe/client" loads no server, no channel, and no module of HTTP', () => {
    const loaded = loadedBy("import './client.js';");
    assert.not.ok(loaded.files.includes('index.cjs'));
    assert.equal(
      loaded.files.filter((file) => file.endsWith('-channel')),
      [],
    );
    assert.equal(heavyIn(loaded), []);
  });

  test('import "troupe/oauth" loads the server, the package jose, and no module of HTTP; nothing else loads jose', () => {
    const loaded = loadedBy("import './oauth.js';");
    assert.equal(loaded.files, [...CORE, 'oauth.cjs', 'packages.cjs'].sort());
    assert.equal(heavyIn(loaded), []);
    const loading = built().filter((file) => /from "jose"/.test(readFileSync(join(lib, file), 'utf8')));
    assert.equal(loading, ['oauth.js']);
  });

  test('each channel of the client loads no server, and the module of the protocol of its address only', () => {
    const channels = built().filter((file) => file.endsWith('.cjs') && named(file).endsWith('-channel'));
    assert.ok(channels.length > 3);
    // In one process: of what all of them together do not load, none loads anything.
    const { files, builtins } = loadedBy(channels.map((file) => `require('./${file}');`).join('\n'));
    assert.not.ok(files.includes('index.cjs'), files.join(', '));
    assert.not.ok(builtins.includes('https'));
  });

  test('the supervisor of troupe run is one file, and troupe attach loads no server and no package', () => {
    const command = readFileSync(join(lib, 'cli/command.js'), 'utf8');
    const required = [...command.matchAll(/\brequire\("([^"]+)"\)/g)].map(([, from = '']) => from);
    assert.ok(required.length > 0);
    assert.equal(
      required.filter((from) => !isBuiltin(from)),
      // The picture of a chart needs it, which this process never draws.
      ['xstate'],
    );
    const { files, packages } = load('command-attach.cjs');
    assert.not.ok(files.includes('index.cjs'));
    assert.equal(packages, []);
  });

  test('a worker of troupe run loads no file before it enables the compile cache, and then the server and itself', () => {
    assert.not.match(
      readFileSync(join(lib, 'worker-main.cjs'), 'utf8'),
      /^(?:const|let|var) [\w$]+= ?require\("\.\/(?!chunk-rolldown)/m,
    );
    const loaded = load('command-worker.cjs');
    assert.equal(loaded.files, [...CORE, 'command-worker.cjs'].sort());
    assert.equal(heavyIn(loaded), []);
  });

  test('the two processes of troupe run load no package, to the result of the first call', () => {
    const folder = mkdtempSync(join(tmpdir(), 'troupe-bundle-'));
    try {
      const program = join(folder, 'server.mjs');
      const tool =
        "server.tool('echo', { input: { type: 'object', properties: { text: { type: 'string' } } } }, () => 'a');";
      writeFileSync(
        program,
        `${SERVER.replace('./index.js', pathToFileURL(join(lib, 'index.js')).href)}\n${tool}\nawait server.listen(stdio());`,
      );
      const { stdout, stderr } = spawnSync(process.execPath, [join(lib, 'cli/main.js'), 'run', program], {
        input: CLIENT,
        encoding: 'utf8',
        env: { ...process.env, NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(REPORT)}` },
      });
      assert.match(stdout, /"id":2,"result"/);
      const reports = stderr.match(/^\{"files".*$/gm) ?? [];
      assert.ok(reports.length === 2 && reports.some((report) => report.includes('command-worker')), stderr);
      for (const report of reports)
        assert.equal(
          Loaded.parse(JSON.parse(report)).files.filter((file) => file.includes('node_modules')),
          [],
        );
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test('the supervisor starts its first worker without node:crypto, node:http and node:worker_threads', () => {
    const command = readFileSync(join(lib, 'cli/command.js'), 'utf8');
    const required = [...command.matchAll(/^(?:const|let|var) [\w$]+= ?require\("node:([^"]+)"\);$/gm)].map(
      ([, from = '']) => from,
    );
    assert.equal(
      required.filter((name) => ['crypto', 'http', 'worker_threads'].includes(name)),
      [],
    );
  });

  test('import "troupe/app" loads one file without imports, of at most 4 KB gzipped', () => {
    const text = readFileSync(join(lib, '../apps/app.js'), 'utf8');
    assert.not.match(text, /\bimport\b|\brequire\b/);
    assert.match(text, /export\{[^}]*\bconnectView\b/);
    assert.ok(gzipSync(text, { level: 9 }).length <= 4_096);
  });

  test('the watchdog thread and the thread of the loader hook load one file each', () => {
    for (const thread of ['features/workers/watchdog-thread.cjs', 'features/discovery/inherit.cjs']) {
      const required = [...readFileSync(join(lib, thread), 'utf8').matchAll(/\brequire\("([^"]+)"\)/g)];
      assert.equal(
        required.map(([, from = '']) => from).filter((from) => !isBuiltin(from)),
        [],
        thread,
      );
    }
  });

  test('each file that Node starts by its path is where src/core/kernel/package-files.ts expects it', () => {
    const files = built();
    for (const file of ['main', 'command']) assert.ok(files.includes(`cli/${file}.js`));
    for (const file of ['worker-main', 'features/discovery/inherit', 'features/sqlite/sqlite-worker'])
      assert.ok(files.includes(`${file}.cjs`), file);
    for (const thread of ['pool-thread', 'watchdog-thread'])
      assert.ok(files.includes(`features/workers/${thread}.cjs`), thread);
    const withOwn = files.filter((file) =>
      /new URL\("\.\/",\s*require\("url"\)/.test(readFileSync(join(lib, file), 'utf8')),
    );
    assert.ok(withOwn.length > 0);
    assert.equal(
      withOwn.filter((file) => dirname(file) !== '.'),
      [],
    );
  });
} else test.skip('all of it', 'dist is missing: npm run build');

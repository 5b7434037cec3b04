/** The files and packages that each entry point of the bundle loads at its start (docs/adr/0018). */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { dirname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import * as assert from 'uvu/assert';
import { suite } from '../../harness/door.ts';

const test = suite('the bundle');
const lib = fileURLToPath(new URL('../../../dist/lib', import.meta.url));
const IMPORT = /(?:^|[;}\s])(?:import|export)(?:[^;'"()]*?from)?\s*"([^"]+)"/g;

interface Loaded {
  /** Our own files, named as the build names them, without their hashes. */
  readonly files: readonly string[];
  /** Packages, without Node's own modules. */
  readonly packages: readonly string[];
  readonly builtins: readonly string[];
}

/** Collects the static imports of a file, and theirs. Dynamic imports are left out. */
function loadedWith(file: string): Loaded {
  const [files, packages, builtins] = [new Set<string>(), new Set<string>(), new Set<string>()];
  const visit = (path: string): void => {
    if (files.has(path)) return;
    files.add(path);
    for (const [, from = ''] of readFileSync(path, 'utf8').matchAll(IMPORT))
      if (from.startsWith('.')) visit(join(dirname(path), from));
      else (from.startsWith('node:') ? builtins : packages).add(from);
  };
  visit(join(lib, file));
  const named = (path: string): string => relative(lib, path).replace(/^(chunk-.*)-[\w-]{8}\.js$/, '$1');
  return { files: [...files].map(named).sort(), packages: [...packages].sort(), builtins: [...builtins].sort() };
}

/** The packages that a chunk loads by `require`. */
function requiredBy(name: string): readonly string[] {
  const text = readFileSync(join(lib, latest(name)), 'utf8');
  const found = text.matchAll(/createRequire\(import\.meta\.url\)\("([^"]+)"\)/g);
  return Array.from(found, ([, required = '']) => required).sort();
}

/** The chunk of that name that the library imports. */
function latest(name: string): string {
  const found = new RegExp(`"\\./(${name}-[^"]+)"`).exec(readFileSync(join(lib, 'index.js'), 'utf8'))?.[1];
  assert.ok(found, `index.js imports no ${name}`);
  return found ?? '';
}

if (existsSync(lib)) {
  test('import "troupe" loads four files, and the packages XState, eventemitter3 and nanoid', () => {
    const { files, packages } = loadedWith('index.js');
    assert.equal(files, ['chunk-actors', 'chunk-base', 'chunk-core', 'index.js']);
    assert.equal(packages, ['nanoid']);
    assert.equal(requiredBy('chunk-core'), ['eventemitter3']);
    assert.equal(requiredBy('chunk-actors'), ['xstate']);
  });

  test('the files of the library contain only ASCII, which V8 holds in one byte a character', () => {
    // The files of an earlier build, which a running process may still import.
    const stale = readFileSync(join(lib, '.npmignore'), 'utf8').split('\n');
    const files = readdirSync(lib, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.js'));
    const built = files.filter((file) => !stale.includes(`/${file.split(sep).join('/')}`));
    assert.ok(built.length > 50);
    assert.equal(
      built.filter((file) => /[^\0-\x7f]/.test(readFileSync(join(lib, file), 'utf8'))),
      [],
    );
  });

  test('a server without postgres() loads nothing of it, and only its chunk loads the package pg, when a store opens', () => {
    const files = readdirSync(lib).filter((file) => file.endsWith('.js'));
    const loading = files.filter((file) => /import\("pg"\)/.test(readFileSync(join(lib, file), 'utf8')));
    assert.ok(loading.length > 0);
    const names = loading.map((file) => file.replace(/-[\w-]{8}\.js$/, ''));
    for (const entry of files.filter((file) => !file.startsWith('chunk-')))
      for (const name of loadedWith(entry).files) assert.not.ok(names.includes(name), `${entry} loads ${name}`);
  });

  test('a server loads the routes of HTTP when an endpoint opens, and the links between nodes when its node listens', () => {
    const core = readFileSync(join(lib, latest('chunk-core')), 'utf8');
    for (const name of ['mcp-routes', 'link-listener', 'dialed-link'])
      assert.match(core, new RegExp(`import\\("\\./chunk-${name}-[^"]+"\\)`), name);
    for (const entry of ['index.js', 'command-worker.js'])
      for (const file of loadedWith(entry).files) assert.not.match(file, /mcp-routes|link-listener|dialed-link/, entry);
  });

  test('import "troupe/client" loads no server, no channel, and the packages XState and nanoid', () => {
    const { files, packages, builtins } = loadedWith('client.js');
    // `troupe call` shares these with the library, mounts of a server the errors, `troupe/oauth` the metadata, and channels the rest.
    const shared = [
      'client-errors',
      'file-tokens',
      'header-text',
      'issuer-metadata',
      'lost-session',
      'no-sign-in',
      'open-client',
      'resource-grant',
      'token-store',
    ];
    assert.equal(files, [
      'chunk-actors',
      'chunk-back-off',
      'chunk-base',
      ...shared.map((name) => `chunk-${name}`),
      'client.js',
    ]);
    assert.equal(packages, ['nanoid']);
    assert.equal(
      builtins.filter((name) => ['node:http', 'node:https', 'node:http2', 'node:tls', 'node:zlib'].includes(name)),
      [],
    );
  });

  test('import "troupe/oauth" loads the server, the package jose, and no module of HTTP; nothing else loads jose', () => {
    const { files, packages, builtins } = loadedWith('oauth.js');
    assert.equal(files, ['chunk-actors', 'chunk-base', 'chunk-core', 'chunk-issuer-metadata', 'oauth.js']);
    assert.equal(packages, ['jose', 'nanoid']);
    assert.equal(
      builtins.filter((name) => ['node:http', 'node:https', 'node:http2', 'node:tls', 'node:zlib'].includes(name)),
      [],
    );
    for (const entry of ['index.js', 'client.js', 'testing.js', 'inspector.js', 'command-worker.js'])
      assert.not.ok(loadedWith(entry).packages.includes('jose'), entry);
  });

  test('each channel of the client loads the package that it needs, and no server', () => {
    // Chunks of an earlier build may still be there: the one that the client imports counts.
    const [, shared = ''] =
      /from "\.\/(chunk-open-client-[^"]+)"/.exec(readFileSync(join(lib, 'client.js'), 'utf8')) ?? [];
    const later = Array.from(
      readFileSync(join(lib, shared), 'utf8').matchAll(/import\("\.\/(chunk-([\w-]+)-channel-[^"]+)"\)/g),
      ([, file = '', name = '']) => [name, loadedWith(file)] as const,
    );
    assert.equal(
      later.map(([name, { packages }]) => `${name}: ${packages.filter((each) => each !== 'nanoid')}`).sort(),
      ['http-sse: ', 'http: ', 'socket: ', 'stdio: cross-spawn'],
    );
    for (const [name, { files, builtins }] of later) {
      assert.not.ok(files.includes('chunk-core'), name);
      // The channel loads the module of the address's protocol.
      assert.not.ok(builtins.includes('node:https'), name);
    }
  });

  test('the supervisor of troupe run is one CommonJS file, and troupe attach loads no server and no package', () => {
    const command = readFileSync(join(lib, 'cli/main.js'), 'utf8');
    assert.not.match(command, IMPORT);
    const required = [...command.matchAll(/\brequire\("([^"]+)"\)/g)].map(([, from = '']) => from);
    assert.ok(required.length > 0);
    assert.equal(
      required.filter((from) => !isBuiltin(from)),
      [],
    );
    const { files, packages } = loadedWith('command-attach.js');
    assert.not.ok(files.includes('chunk-core'));
    assert.equal(packages, []);
  });

  test('a worker of troupe run loads six files, and none before it enables the compile cache', () => {
    assert.equal(loadedWith('worker-main.js').files, ['worker-main.js']);
    assert.equal(loadedWith('command-worker.js').files, [
      'chunk-actors',
      'chunk-base',
      'chunk-core',
      'chunk-serving',
      'command-worker.js',
    ]);
  });

  test('no server loads node:http before it listens on a port: an import of it takes 16 ms on Node 24', () => {
    for (const entry of ['index.js', 'command-worker.js']) {
      const { builtins } = loadedWith(entry);
      assert.equal(
        builtins.filter((name) => ['node:http', 'node:https', 'node:http2', 'node:tls', 'node:zlib'].includes(name)),
        [],
      );
    }
  });

  test('the supervisor starts its first worker without node:crypto, node:http and node:worker_threads', () => {
    const command = readFileSync(join(lib, 'cli/main.js'), 'utf8');
    const required = [...command.matchAll(/\brequire\("node:([^"]+)"\)/g)].map(([, from = '']) => from);
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
    for (const thread of ['features/workers/watchdog-thread.js', 'features/discovery/inherit.js']) {
      const { files, packages } = loadedWith(thread);
      assert.equal({ files, packages }, { files: [thread], packages: [] });
    }
  });

  test('each file that Node starts by its path is where src/core/kernel/package-files.ts expects it', () => {
    const built = readdirSync(lib, { recursive: true, encoding: 'utf8' });
    for (const file of ['cli/main', 'worker-main', 'features/discovery/inherit', 'features/sqlite/sqlite-worker'])
      assert.ok(built.includes(`${file}.js`), file);
    for (const thread of ['pool-thread', 'watchdog-thread'])
      assert.ok(built.includes(`features/workers/${thread}.js`), thread);
    const withOwn = built.filter(
      (file) =>
        file.endsWith('.js') && /new URL\("\.\/",\s*import\.meta\.url\)/.test(readFileSync(join(lib, file), 'utf8')),
    );
    assert.ok(withOwn.length > 0);
    assert.equal(
      withOwn.filter((file) => dirname(file) !== '.'),
      [],
    );
  });
} else test.skip('all of it', 'dist is missing: npm run build');

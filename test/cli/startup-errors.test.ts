/** A program that fails to start: each command prints one line with the author's file and line, without a stack. */
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import { startupError } from '../../src/cli/startup-error.ts';
import { OWN } from '../../src/core/kernel/package-files.ts';
import { Tree } from '../features/discovery/tree.ts';
import { fullOnly, suite } from '../harness/door.ts';
import { SCALE } from '../harness/scale.ts';
import { root } from '../runner/plan.ts';
import { withoutStalls } from './agent.ts';
import { Cli, TROUPE } from './cli.ts';

fullOnly('starts a program for each error; the quick test of errors at a start is options.test.ts');

const test = suite('startup errors of the command');

const FILES = {
  'package.json': '{ "type": "module" }',
  'syntax.ts': 'export const one = 1;\nexport const two = ;\n',
  'broken.js': 'export const one = 1;\nexport const two = ;\n',
  'imports.js': "import { two } from './broken.js';\nexport { two };\n",
  'missing.js': "import { two } from './gone.js';\nexport { two };\n",
  'unlinked.js': "import { three } from 'node:path';\nexport { three };\n",
  'throws.ts': "const read = () => { throw new TypeError('no config\\nin here'); };\n\nread();\n",
  'text.ts': "throw 'just text';\n",
  'timer.ts': "setTimeout(() => { throw new Error('too late'); }, 1);\nsetTimeout(() => {}, 60_000);\n",
  // XState throws it 13 frames below the author's line.
  'chart.ts': `import { createMachine } from '${import.meta.resolve('xstate')}';
export default createMachine({ initial: 'a', states: { a: { on: { go: 'outt' } } } });
`,
  'options.ts': `import { createServer } from '${TROUPE}';\nexport default createServer({ name: 'x' });\n`,
};

const EXPECTED: readonly (readonly [file: string, line: RegExp])[] = [
  ['syntax.ts', /syntax\.ts:2:\d+: ERROR: Unexpected ";"$/],
  ['imports.js', /SyntaxError: Unexpected token ';' \(at .*\/broken\.js:2\)$/],
  ['missing.js', /Cannot find module '.*gone\.js' imported from .*missing\.js$/],
  ['unlinked.js', /does not provide an export named 'three' \(at .*\/unlinked\.js:1\)$/],
  ['throws.ts', /TypeError: no config in here \(at .*\/throws\.ts:1:\d+\)$/],
  ['text.ts', /: just text$/],
  ['timer.ts', /: too late \(at .*\/timer\.ts:1:\d+\)$/],
  ['chart.ts', /Child state 'outt' does not exist on '\(machine\)' \(at .*\/chart\.ts:2:\d+\)$/],
  [
    'options.ts',
    /createServer: version: expected a string such as "1\.0\.0", got nothing \(at .*\/options\.ts:2:\d+\)$/,
  ],
];

const COMMANDS = {
  run: { args: ['run'], says: 'cannot serve ', code: 1 },
  'run --no-supervisor': { args: ['run', '--no-supervisor'], says: 'cannot serve ', code: 1 },
  serve: { args: ['serve', '--socket', 's.sock'], says: 'cannot serve ', code: 1 },
  // It waits for a change, until its input ends.
  dev: { args: ['dev', '--no-inspect'], says: 'cannot load ', code: 0 },
  graph: { args: ['graph'], says: 'cannot load ', code: 1 },
} as const;

for (const [title, { args, says, code }] of Object.entries(COMMANDS)) {
  test(`troupe ${title} prints in one line why a program fails to start`, async () => {
    const { path } = new Tree(FILES);
    // All commands load programs the same way.
    const isWhole = SCALE !== 'quick' || title === 'run --no-supervisor';
    for (const [file, line] of isWhole ? EXPECTED : EXPECTED.slice(0, 2)) {
      const cli = new Cli([...args, file], { cwd: path });
      if (code === 0) await cli.said('waiting for a change');
      // Without input, a program that loads for seconds ends before it fails.
      assert.is(await (code === 0 ? cli.end() : cli.exit), code, file);
      const lines = withoutStalls(cli.err).trim().split('\n');
      const found = lines.filter((each) => each.includes(says));
      assert.is(found.length, 1, cli.err);
      assert.match(found[0] ?? '', line);
      // Nothing else but what the command itself has to say.
      assert.ok(
        lines.every((each) => each.startsWith(`troupe ${args[0]}: `)),
        cli.err,
      );
    }
  });
}

/** Programs that throw nothing, and cannot be served all the same. */
const NOTHING: readonly (readonly [target: string, code: number, line: RegExp])[] = [
  [
    'five.mjs',
    1,
    /neither listens nor exports anything.*Export the server \(export default server\) or tools, or call server\.listen/,
  ],
  ['empty.mjs', 1, /neither listens nor exports anything/],
  ['makes.mjs', 1, /It exports the function "default", which is no tool\. If it creates the server, call it/],
  ['foreign.mjs', 1, /its export "default" is a server of another library \(McpServer\).*troupe call -- npx tsx FILE/],
  ['never.mjs', 1, /its module never finishes: a top-level await waits for something that cannot happen/],
  ['exits.mjs', 7, /cannot serve .*exits\.mjs: it ended its process with code 7 before it listened$/],
  ['nothing', 1, /no module in the directory exports a server, a tool, a resource or a prompt$/],
  ['gone.mjs', 2, /gone\.mjs.* \(see troupe (run|serve) --help\)$/],
];

for (const args of [['run'], ['run', '--no-supervisor'], ['serve', '--socket', 's.sock']])
  test(`R-49: troupe ${args.join(' ')} says in one line why there is nothing to serve`, async () => {
    const { path } = new Tree({
      'package.json': FILES['package.json'],
      'five.mjs': 'export default 5;\n',
      'empty.mjs': '\n',
      'makes.mjs': 'export default () => 5;\n',
      'foreign.mjs': 'class McpServer { connect() {} registerTool() {} }\nexport default new McpServer();\n',
      'never.mjs': 'await new Promise(() => {});\n',
      'exits.mjs': 'process.exit(7);\n',
      'nothing/notes.txt': 'no module\n',
    });
    // The process that serves is the same under each command.
    const isWhole = SCALE !== 'quick' || args.length === 2;
    for (const [target, code, line] of isWhole ? NOTHING : NOTHING.slice(-2)) {
      const cli = new Cli([...args, target], { cwd: path });
      assert.is(await cli.exit, code, target);
      assert.match(withoutStalls(cli.err), /^[^\n]+\n$/);
      assert.match(withoutStalls(cli.err).trimEnd(), line);
    }
  });

test('R-49: two HTTP transports are rejected in one line', async () => {
  const { path } = new Tree({
    'package.json': FILES['package.json'],
    'server.mjs': `import { createServer, http } from '${TROUPE}';
const server = createServer({ name: 'p', version: '1' });
await server.listen(http({ port: 0 }), http({ port: 0 }));
`,
  });
  const cli = new Cli(['serve', 'server.mjs', '--http', '0'], { cwd: path });
  assert.is(await cli.exit, 2);
  assert.match(withoutStalls(cli.err), /^[^\n]+\n$/);
});

/** A port that is in use, while a body runs. */
async function taken(body: (port: number) => Promise<void>): Promise<void> {
  const other = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => other.once('listening', resolve));
  const address = other.address();
  try {
    await body(typeof address === 'object' && address ? address.port : 0);
  } finally {
    other.close();
  }
}

test('each command that serves reports a used port in one line', () =>
  taken(async (port) => {
    for (const [index, listen] of ['await server.listen', 'void server.listen'].entries()) {
      const { path } = new Tree({
        'package.json': FILES['package.json'],
        'server.mjs': `import { createServer, http } from '${TROUPE}';
const server = createServer({ name: 'p', version: '1' });
${listen}(http({ port: ${port} }));
`,
      });
      const all = [COMMANDS.run, COMMANDS['run --no-supervisor'], COMMANDS.serve, COMMANDS.dev];
      for (const { args, code } of index === 0 || SCALE !== 'quick' ? all : all.slice(0, 1)) {
        const cli = new Cli([...args, 'server.mjs'], { cwd: path });
        await cli.said(`port ${port} is in use`);
        if (code !== 0) assert.is(await cli.exit, code);
        cli.process.kill('SIGKILL');
        await cli.exit;
        assert.not.match(withoutStalls(cli.err), /^\s+at |Uncaught|incident/m);
      }
    }
  }));

test('a system error is reported in one line', async () => {
  if (process.platform === 'win32' || process.getuid?.() === 0) return;
  const tree = new Tree({ 'package.json': FILES['package.json'], 'server.ts': 'export const x = 1;\n' });
  mkdirSync(tree.at('closed'));
  chmodSync(tree.at('closed'), 0o500);
  const cli = new Cli(['serve', 'server.ts', '--socket', 'closed/s.sock', '--data', 'closed/data'], { cwd: tree.path });
  assert.is(await cli.exit, 2);
  assert.match(withoutStalls(cli.err), /^troupe serve: --data: .*EACCES.* \(see troupe serve --help\)\n$/);
});

test('a directory that its file system refuses to create is reported in one line, not waited for', async () => {
  if (process.platform !== 'linux') return;
  const tree = new Tree({ 'package.json': FILES['package.json'], 'server.ts': 'export const x = 1;\n' });
  for (const command of ['run', 'serve --socket s.sock', 'dev']) {
    const [name, ...options] = command.split(' ');
    const cli = new Cli([name ?? '', 'server.ts', ...options, '--data', '/proc/troupe/data'], { cwd: tree.path });
    assert.is(await cli.exit, 2);
    assert.match(withoutStalls(cli.err), new RegExp(`^troupe ${name}: --data: .*cannot create /proc/troupe: ENOENT`));
  }
});

test('attach prints in one line why its server fails to start', async () => {
  if (process.platform === 'win32') return;
  const tree = new Tree(FILES);
  const cli = new Cli(['attach', '--spawn', 'throws.ts', tree.at('s.sock'), '--wait', '1'], { cwd: tree.path });
  assert.is(await cli.exit, 1);
  assert.match(
    cli.err.trim().split('\n').at(-1) ?? '',
    /^troupe attach: .*no config in here \(at .*throws\.ts:1:\d+\)/,
  );
  assert.not.match(withoutStalls(cli.err), /^\s+at /m);
});

for (const [name, entry, expected] of [
  ['jose', 'oauth.js', 'troupe/oauth, or fakeIssuer() of troupe/testing, needs the package jose'],
  ['@opentelemetry/api', 'otel.cjs', 'troupe/otel needs the package @opentelemetry/api'],
] as const)
  test(`the missing optional package ${name} is named with the command that installs it`, () => {
    const own = fileURLToPath(new URL(entry, OWN));
    const shown = (message: string): string => startupError(new Error(message)).replace(/ \(at .*/, '');
    const advice = `${expected}, which is not installed: npm install ${name}`;
    assert.is(shown(`Cannot find package '${name}' imported from ${own}`), advice);
    assert.is(shown(`Cannot find module '${name}'\nRequire stack:\n- ${own}\n- /app/server.js`), advice);
    const theirs = `Cannot find package '${name}' imported from /app/server.js`;
    const install = `. If it is a package, install it: npm install ${name}`;
    assert.is(shown(theirs), theirs + install);
    const required = `Cannot find module '${name}'\nRequire stack:\n- /app/server.js`;
    assert.is(shown(required), required.replaceAll('\n', ' ') + install);
    const path = `Cannot find module '/app/${name}.js' imported from /app/server.js`;
    assert.is(shown(path), path);
  });

test('any thrown value becomes one line', () => {
  const hostile = Object.defineProperty(new Error('it'), 'stack', {
    get() {
      throw new Error('no stack');
    },
  });
  assert.is(startupError(hostile), 'it');
  assert.is(startupError(undefined), 'undefined');
  assert.is(startupError(Object.create(null)), 'the thrown value has no text');
  assert.is(startupError(new Error('a\n\n  b')).replace(/ \(at .*/, ''), 'a b');
});

test('a program that reads stdin itself, as a server of another library does, ends the command', async () => {
  const { path } = new Tree({
    'package.json': FILES['package.json'],
    'foreign.mjs': "process.stdin.on('data', () => {});\nsetTimeout(() => {}, 60_000);\n",
    'late.mjs': `import { createServer, stdio } from '${TROUPE}';
setTimeout(() => createServer({ name: 'late', version: '1.0.0' }).listen(stdio()), 1_500);\n`,
  });
  const run = new Cli(['run', 'foreign.mjs', '--no-supervisor'], { cwd: path });
  assert.is(await run.exit, 1);
  assert.match(run.err, /foreign\.mjs: it calls no server\.listen\(…\) of Troupe and reads stdin itself/);
  const called = new Cli(['call', 'foreign.mjs'], { cwd: path, raw: true });
  assert.is(await called.end(), 3);
  assert.match(called.err, 'reads stdin itself');
  // The one that listens late is served.
  const late = new Cli(['call', 'late.mjs'], { cwd: path, raw: true });
  assert.is(await late.end(), 0, late.err);
  assert.match(late.err, 'waiting for it to call server.listen');
});

test('a command in a directory that was removed says so in one line', () => {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-gone-'));
  const shell = 'cd "$1" && rmdir "$1" && exec "$2" "$3" --version';
  const { status, stderr } = spawnSync(
    'sh',
    ['-c', shell, 'sh', folder, process.execPath, join(root, 'dist/lib/cli/main.js')],
    {
      encoding: 'utf8',
    },
  );
  assert.is(status, 2);
  assert.match(stderr, /^troupe: the current directory does not exist any more: change to another one\n$/);
});

/** What a command finds beside a program: the program itself, if no FILE is named, and its `.env`; and who the client is that a person plays. */
import { mkdirSync } from 'node:fs';
import * as assert from 'uvu/assert';
import { readCaller } from '../../src/cli/serving/caller-option.ts';
import { servedOn } from '../../src/cli/serving/served-transports.ts';
import { readTarget } from '../../src/cli/serving/target.ts';
import { http, stdio } from '../../src/index.ts';
import { TROUPE as SOURCES, Tree } from '../features/discovery/tree.ts';
import { suite } from '../harness/door.ts';
import { withoutStalls } from './agent.ts';
import { Cli, isBuilt, TROUPE } from './cli.ts';
import { Running, type RunOptions, troupe } from './in-process.ts';

const test = suite('the start of a program on the own machine');

const program = (from = SOURCES): string => `import { createServer } from '${from}';
export const server = createServer({ name: 'found', version: '1.0.0' });
server.tool('who', {}, (_, ctx) => ctx.principal);
server.tool('refund', { scopes: ['orders:refund'] }, () => 'refunded');
server.tool('env', {}, () => [process.env.LOCAL_A, process.env.LOCAL_B].join());
`;

/** Serves with the arguments, on a socket, and returns what the tools answer. */
async function answers(
  tree: Tree,
  args: readonly string[],
  tools: readonly string[],
  options: RunOptions = {},
): Promise<{ readonly texts: readonly unknown[]; readonly err: string }> {
  const path = tree.at('s.sock');
  const [command = '', ...rest] = args;
  const server = new Running([command, '--socket', path, ...rest], { cwd: tree.path, ...options });
  await server.said(command === 'dev' ? 'loaded in' : 'connect clients with');
  const agent = new Running(['attach', path]);
  await agent.initialize();
  const texts: unknown[] = [];
  for (const tool of tools) texts.push(await agent.call(tool).catch((error: Error) => error.message));
  await agent.end();
  server.signal('SIGTERM');
  assert.is(await server.exit, 0);
  return { texts, err: server.err };
}

for (const [what, files, found] of [
  ['server.ts', { 'server.ts': '', 'server.js': '', 'src/server.ts': '' }, 'server.ts'],
  ['server.mts', { 'server.mts': '', 'server.js': '' }, 'server.mts'],
  ['server.js', { 'server.js': '', 'server.mjs': '' }, 'server.js'],
  ['server.mjs', { 'server.mjs': '', 'src/server.ts': '' }, 'server.mjs'],
  [
    'a program in src',
    { 'src/server.js': '', 'package.json': '{ "main": "index.js" }', 'index.js': '' },
    'src/server.js',
  ],
  [
    'the main module of the package',
    { 'package.json': '{ "main": "./lib/index.js" }', 'lib/index.js': '' },
    './lib/index.js',
  ],
] as const)
  test(`without FILE, the program of a directory is ${what}`, async () => {
    const tree = new Tree(files);
    assert.equal(readTarget('run', [], { cwd: tree.path }), { path: tree.at(found), kind: 'file' });
  });

for (const [what, files, expected] of [
  [
    'no program',
    {},
    'none of server.ts, server.mts, server.js, server.mjs, src/server.ts, src/server.mts, src/server.js, src/server.mjs and no "main" in package.json',
  ],
  [
    'a main module that does not exist',
    { 'package.json': '{ "main": "gone.js" }' },
    'and no module gone.js ("main" in package.json)',
  ],
  ['a main file that is no module', { 'package.json': '{ "main": "a.css" }', 'a.css': '' }, 'and no module a.css'],
  ['a damaged package.json', { 'package.json': '{' }, 'no "main" in package.json'],
] as const)
  test(`without FILE, a directory with ${what} is an error that names what was looked for`, async () => {
    const tree = new Tree(files);
    mkdirSync(tree.at('server.ts'));
    for (const command of ['run', 'dev', 'serve']) {
      const { code, err } = await troupe([command], { cwd: tree.path });
      assert.is(code, 2);
      assert.match(err, `troupe ${command}: expected FILE or DIR, got none, and ${tree.path} has `);
      assert.match(err, expected);
    }
  });

test('a program without FILE is named on stderr, and gets its ARGS', async () => {
  const tree = new Tree({ 'server.mjs': `${program()}server.tool('args', {}, () => process.argv.slice(2).join());` });
  const { texts, err } = await answers(tree, ['serve', '--', 'a', 'b'], ['args']);
  assert.equal(texts, ['a,b']);
  assert.match(err, 'troupe serve: FILE is server.mjs\n');
});

for (const command of ['serve', 'dev'])
  test(`troupe ${command} reads .env beside the program, the environment wins, and a line names the variables without values`, async () => {
    const tree = new Tree({
      'app/server.mjs': program(),
      'app/.env': 'LOCAL_A=from file\nLOCAL_B="secret # value"\n1X=3\n',
    });
    const { texts, err } = await answers(tree, [command, 'app/server.mjs'], ['env'], {
      env: { ...process.env, LOCAL_A: 'from the environment' },
    });
    // The program reads the environment of the process, which the test does not replace.
    assert.equal(texts, [',secret # value']);
    assert.match(
      err,
      `troupe ${command}: read app/.env: LOCAL_B; the environment has LOCAL_A, and wins; left out, because they are no variables: 1X\n`,
    );
    assert.not.match(err, 'secret');
    assert.is(process.env.LOCAL_B, undefined);
  });

test('--no-env-file reads no .env, and a .env that is a folder is an error with its path', async () => {
  const tree = new Tree({ 'server.mjs': program(), '.env': 'LOCAL_B=x' });
  const { texts, err } = await answers(tree, ['serve', '--no-env-file'], ['env']);
  assert.equal(texts, [',']);
  assert.not.match(err, '.env');
  tree.remove('.env');
  mkdirSync(tree.at('.env'));
  const refused = await troupe(['serve', '--socket', tree.at('s.sock')], { cwd: tree.path });
  assert.is(refused.code, 2);
  assert.match(
    refused.err,
    `troupe serve: .env: expected a readable file of at most 1048576 bytes with lines such as NAME=value, got ${tree.at('.env')}: it is a folder`,
  );
});

for (const [what, args, expected] of [
  ['the local user', [], ['local user', 'refunded']],
  ['a user without scopes', ['--principal', 'ada'], ['ada', /lack the scope orders:refund/]],
  ['a user with scopes', ['--principal', 'ada', '--scopes', 'a, orders:refund'], ['ada', 'refunded']],
  ['the local user with other scopes', ['--scopes', 'a'], ['local user', /lack the scope orders:refund/]],
] as const)
  test(`S-97 the client of a socket of troupe dev is ${what}`, async () => {
    const tree = new Tree({ 'server.mjs': program() });
    const { texts } = await answers(tree, ['dev', 'server.mjs', ...args], ['who', 'refund']);
    assert.is(texts[0], expected[0]);
    if (typeof expected[1] === 'string') assert.is(texts[1], expected[1]);
    else assert.match(String(texts[1]), expected[1]);
  });

for (const [what, args, message] of [
  [
    'with a port',
    ['dev', 'server.mjs', '--http', '0', '--principal', 'ada'],
    '--principal and --scopes, or --http, got both',
  ],
  [
    'with a port of every address',
    ['dev', 'server.mjs', '--http', '0.0.0.0:0', '--scopes', 'a'],
    '--principal and --scopes, or --http, got both',
  ],
  [
    'as anonymous',
    ['run', 'server.mjs', '--principal', 'anonymous'],
    'troupe run: --principal: expected the name of a user',
  ],
  ['without a name', ['run', 'server.mjs', '--principal', ''], 'troupe run: --principal: expected the name of a user'],
  [
    'with a scope that is none',
    ['dev', 'server.mjs', '--scopes', 'a b'],
    'troupe dev: --scopes: expected scopes without spaces',
  ],
  [
    'at an address',
    ['call', 'http://127.0.0.1:9/mcp', '--principal', 'ada'],
    '--principal and --scopes need FILE or DIR as TARGET',
  ],
  ['of a command', ['call', '--scopes', 'a', '--', 'node'], '--principal and --scopes need FILE or DIR as TARGET'],
  [
    'of a command that serves many',
    ['serve', 'server.mjs', '--http', '0', '--principal', 'ada'],
    "Unknown option '--principal'",
  ],
] as const)
  test(`S-97 a caller ${what} is an error`, async () => {
    const tree = new Tree({ 'server.mjs': program() });
    const { code, err } = await troupe(args, { cwd: tree.path });
    assert.is(code, 2, err);
    assert.match(err, message);
  });

test('S-97 the caller of the options takes the place of that of stdio, and of no other transport', () => {
  const [own, port] = [stdio({ principal: 'own' }), http({ port: 0 })];
  assert.equal(servedOn([own, port], undefined), [own, port]);
  const caller = readCaller('run', { principal: 'ada', scopes: '' });
  assert.equal(caller, { principal: 'ada', scopes: [] });
  const [replaced, same] = servedOn([own, port], caller);
  assert.is.not(replaced, own);
  assert.is(replaced?.name, 'stdio');
  assert.is(same, port);
});

if (isBuilt) {
  const callable = `${program(TROUPE)}server.tool('both', {}, (_, ctx) => ctx.principal + ' ' + process.env.LOCAL_B);\n`;
  const started = () => new Tree({ 'server.mjs': callable, '.env': 'LOCAL_B=b' });

  test('troupe call plays the caller of a program that it starts, whose .env is read', async () => {
    // The variables of .env and the stderr of the program are those of processes.
    const cli = new Cli(['call', 'server.mjs', 'both', '--principal', 'ada'], { cwd: started().path, raw: true });
    await cli.end();
    assert.match(cli.out + withoutStalls(cli.err), /^ada b\ntroupe run: read \.env: LOCAL_B\n$/);
  });

  test.full('the caller of troupe call has the scopes that its options give', async () => {
    const { path: cwd } = started();
    for (const [scopes, said] of [
      [[], 'lack the scope orders:refund'],
      [['--scopes', 'orders:refund'], /^refunded\n/],
    ] as const) {
      const { out, err } = await troupe(['call', 'server.mjs', 'refund', '--principal', 'ada', ...scopes], { cwd });
      assert.match(out + err, said);
    }
  });
}

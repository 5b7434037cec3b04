/**
 * `troupe run`: programs that listen or export a server, and modules without a server. Programs are served in this process by
 * `troupe serve`, whose way to a program is the same (src/cli/serving/serving.ts). Processes show the streams, the arguments and
 * the exit code of `run`; the full run serves each program by `run`.
 */
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import { Tree, toolModule } from '../features/discovery/tree.ts';
import { moduleUrl } from '../harness/compiled.ts';
import { suite } from '../harness/door.ts';
import { atScale } from '../harness/scale.ts';
import { type Agent, withoutStalls } from './agent.ts';
import { Cli, isBuilt, TROUPE } from './cli.ts';
import { Running, troupe } from './in-process.ts';

const test = suite('troupe run');

const PACKAGE = '{ "name": "my-package", "version": "1.2.3", "type": "module" }';

/** A program with one tool, and what comes after it. */
function program(end: string, troupe = TROUPE): string {
  return `import { createServer, stdio } from '${troupe}';
const server = createServer({ name: 'program', version: '2.0.0' });
server.tool('hi', {}, () => 'hello');
${end}
`;
}

function open(tree: Tree, ...args: readonly string[]): Cli {
  return new Cli(['run', ...args], { cwd: tree.path });
}

/**
 * Serves the files in this process, and in the full run by `troupe run`.
 *
 * @param files with the address of the package that they import
 */
function served(
  title: string,
  files: (troupe: string) => Readonly<Record<string, string>>,
  target: string,
  check: (agent: Agent, serverInfo: unknown, err: () => string) => Promise<void>,
): void {
  test(title, async () => {
    const tree = new Tree(files(moduleUrl('src/index.ts')));
    const path = tree.at('s.sock');
    const server = new Running(['serve', target, '--socket', path], { cwd: tree.path });
    await server.said('connect clients with');
    const agent = new Running(['attach', path]);
    await check(agent, (await agent.initialize()).serverInfo, () => server.err);
    assert.is(await agent.end(), 0);
    server.signal('SIGTERM');
    assert.is(await server.exit, 0);
  });
  test.full(`troupe run: ${title}`, async () => {
    const cli = open(new Tree(files(TROUPE)), target);
    await check(cli, (await cli.initialize()).serverInfo, () => cli.err);
    assert.is(await cli.end(), 0);
  });
}

for (const [title, end] of [
  ['that listens itself is left to it', 'await server.listen(stdio());'],
  [
    'that listens itself, and then waits for ever, is served',
    'await server.listen(stdio());\nawait new Promise(() => {});',
  ],
  ['that exports a server is served', 'export default server;'],
  ['that exports a server under a name is served', 'export { server };'],
  ['that exports a server which listens is served once', 'await server.listen(stdio());\nexport default server;'],
  ['that listens later is waited for', 'setTimeout(() => server.listen(stdio()), 50);'],
] as const)
  served(
    `a program ${title}`,
    (troupe) => ({ 'package.json': PACKAGE, 'server.mjs': program(end, troupe) }),
    'server.mjs',
    async (agent, serverInfo) => {
      assert.equal(serverInfo, { name: 'program', version: '2.0.0' });
      assert.is(await agent.call('hi'), 'hello');
    },
  );

const plainTool = (name: string): string =>
  `export const ${name} = () => '${name}'; ${name}.schema = { type: 'object' };`;

served(
  'a file that exports tools is served under the name and version of its package',
  () => ({ 'package.json': PACKAGE, 'tools.mjs': plainTool('hi') }),
  'tools.mjs',
  async (agent, serverInfo) => {
    assert.equal(serverInfo, { name: 'my-package', version: '1.2.3' });
    assert.is(await agent.call('hi'), 'hi');
  },
);

test.full('a directory is served with all its modules, and failed modules are named on stderr', async () => {
  const tree = new Tree({
    'tools/a.ts': toolModule('a'),
    'tools/deep/b.mjs': `export const b = () => 'b'; b.schema = { type: 'object' };`,
    'tools/broken.ts': 'export const x: = 1;',
    'tools/index.ts': toolModule('c'),
  });
  const cli = open(tree, 'tools');
  assert.equal((await cli.initialize()).serverInfo, { name: 'tools', version: '0.0.0' });
  assert.equal(await cli.list('tools'), ['a', 'b', 'c']);
  await cli.until(() => /troupe warning: tools\/broken\.ts: .*broken\.ts:1:16/.test(cli.err), 'the warning');
  assert.is(await cli.end(), 0);
});

served(
  'a directory is served with all its modules',
  () => ({ 'tools/a.mjs': plainTool('a'), 'tools/deep/b.mjs': plainTool('b'), 'tools/index.mjs': plainTool('c') }),
  'tools',
  async (agent, serverInfo) => {
    assert.equal(serverInfo, { name: 'tools', version: '0.0.0' });
    assert.equal(await agent.list('tools'), ['a', 'b', 'c']);
  },
);

served(
  'a directory with a server module is that server',
  (troupe) => ({ 'index.mjs': program('export default server;', troupe), 'a.mjs': plainTool('a') }),
  '.',
  async (agent) => assert.equal(await agent.list('tools'), ['hi']),
);

test('stdout carries only the protocol: output of a loading module goes to stderr; arguments after -- go to the program', async () => {
  const noise = `console.log('from console.log', process.argv.slice(2).join(' '));\nprocess.stdout.write('from write\\n');\n`;
  const listens = noise + program('await server.listen(stdio());');
  const exports = `${noise}export const hi = Object.assign(() => 'hello', { schema: { type: 'object' } });`;
  const all = [listens, exports];
  for (const text of atScale({ quick: [listens], full: all, proof: all })) {
    const tree = new Tree({ 'package.json': PACKAGE, 'server.mjs': text });
    const cli = open(tree, 'server.mjs', '--', '--port', '3');
    await cli.initialize();
    assert.is(await cli.call('hi'), 'hello');
    assert.is(await cli.end(), 0);
    assert.is(cli.lines.length, 2);
    assert.match(cli.err, /from console\.log --port 3\nfrom write\n/);
  }
});

test.full('the log has the line in the TypeScript file of an error that a handler threw', async () => {
  const text = `interface Order {
  readonly id: string;
}
${program(`server.tool('fail', {}, (): Order => {
  throw new Error('no such order');
});
export default server;`)}`;
  const tree = new Tree({ 'package.json': PACKAGE, 'server.ts': text });
  const cli = open(tree, 'server.ts');
  await cli.initialize();
  assert.is(await cli.call('fail'), 'no such order');
  await cli.until(() => cli.err.includes('of troupe'), 'the stack in the log');
  const line = text.split('\n').findIndex((each) => each.includes('throw new')) + 1;
  assert.match(cli.err, `${tree.at('server.ts')}:${line}:9`);
  assert.is(await cli.end(), 0);
});

test.full('arguments after -- go to the program', async () => {
  const text = program(`server.tool('argv', {}, () => process.argv.slice(1).join(' '));\nexport default server;`);
  const tree = new Tree({ 'package.json': PACKAGE, 'server.mjs': text });
  const cli = open(tree, 'server.mjs', '--', '--port', '3');
  await cli.initialize();
  assert.is(await cli.call('argv'), `${tree.at('server.mjs')} --port 3`);
  await cli.end();
});

test('R-49: a program that throws ends the start with exit code 1 and the reason in one line', async () => {
  const tree = new Tree({ 'package.json': PACKAGE, 'server.mjs': `throw new Error('no database');` });
  const { code, out, err } = await troupe(['serve', 'server.mjs', '--socket', tree.at('s')], { cwd: tree.path });
  assert.equal({ code, out }, { code: 1, out: '' });
  assert.match(err, /^troupe serve: cannot serve .*: no database \(at .*server\.mjs:1:\d+\)\n$/);
});

for (const [title, text, reason] of [
  ['does not parse', 'export const x: = 1;', /server\.ts:1:16: ERROR: Unexpected "="/],
  ['throws', `throw new Error('no database');`, /cannot serve .*: no database \(at .*server\.mjs:1:\d+\)\n/],
  ['neither listens nor exports anything', 'export const x = 1;', /neither listens nor exports anything to serve/],
  ['waits for ever', 'await new Promise(() => {});', /the event loop is empty/],
  ['offers nothing good', `export const x = () => 1; x.schema = { type: 'string' };`, /tool "x": input: /],
] as const) {
  // The end of the event loop is the end of a process.
  const add = title === 'neither listens nor exports anything' ? test : test.full;
  add(`troupe run: a program that ${title} ends with exit code 1 and the reason`, async () => {
    const file = title === 'does not parse' ? 'server.ts' : 'server.mjs';
    const cli = open(new Tree({ 'package.json': PACKAGE, [file]: text }), file);
    assert.is(await cli.exit, 1);
    assert.equal(cli.lines, []);
    assert.match(cli.err, reason);
    assert.not.match(cli.err, /node:internal/);
  });
}

if (!isBuilt) test.skip('the built command', 'dist is not built: npm run build');
else {
  const built = async (target: string, cwd: string): Promise<Cli> => {
    const cli = new Cli(['run', target], { cwd });
    await cli.initialize();
    return cli;
  };

  test.full(
    'the built command runs TypeScript under plain node, and the program finds the package by its name',
    async () => {
      const cli = await built('examples/hello/server.ts', process.cwd());
      assert.is(await cli.call('greet', { name: 'Ada' }), 'Hello, Ada!');
      assert.is(await cli.end(), 0);
      assert.is(withoutStalls(cli.err), '');
    },
  );

  for (const end of ['server.listen(stdio());', 'module.exports = server;', 'exports.default = server;'])
    test.full(`a CommonJS program that ends with ${end} is served`, async () => {
      const tree = new Tree({
        's.cjs': `const { createServer, stdio } = require(${JSON.stringify(fileURLToPath(TROUPE))});
const server = createServer({ name: 'common', version: '1.0.0' });
server.tool('hi', {}, () => 'hello');
${end}`,
      });
      const cli = await built('s.cjs', tree.path);
      assert.is(await cli.call('hi'), 'hello');
      assert.is(await cli.end(), 0);
    });

  test.full('a tsconfig.json that cannot be used is named', async () => {
    const tree = new Tree({ 'tools.ts': toolModule('a'), 'tsconfig.json': '{ "extends": "./gone.json" }' });
    const cli = new Cli(['run', 'tools.ts'], { cwd: tree.path });
    assert.is(await cli.exit, 1);
    assert.match(cli.err, `cannot use ${tree.at('tsconfig.json')}: `);
  });

  test.full('without a package.json, the built command runs TypeScript as an ES module', async () => {
    const tree = new Tree({
      'server.ts': `import { hi } from './hi';\nenum Kind { A = 'a' }\n${program(`server.tool('kind', {}, () => hi + Kind.A);\nawait server.listen(stdio());`)}`,
      'hi.ts': `export const hi: string = 'hi ';`,
      'tools/a.ts': toolModule('a'),
      'tools/b.js': `import { c } from './_c.js';\nexport const b = () => c; b.schema = { type: 'object' };\nawait null;`,
      'tools/_c.js': `export const c = 'c';`,
      'tools/d.js': `exports.d = Object.assign(() => 'd', { schema: { type: 'object' } });`,
    });
    const program1 = await built('server.ts', tree.path);
    assert.is(await program1.call('kind'), 'hi a');
    assert.is(await program1.end(), 0);
    const tools = await built('tools', tree.path);
    assert.equal(await tools.list('tools'), ['a', 'b', 'd']);
    assert.is(await tools.end(), 0);
  });
}

/** `troupe graph`: prints a statechart of a program without serving it. One test starts a process, because the program writes to stdout and keeps a timer. */
import { readFileSync } from 'node:fs';
import * as assert from 'uvu/assert';
import { Tree } from '../features/discovery/tree.ts';
import { compiled, moduleUrl } from '../harness/compiled.ts';
import { suite } from '../harness/door.ts';
import { withoutStalls } from './agent.ts';
import { Cli, TROUPE } from './cli.ts';
import { troupe } from './in-process.ts';

const test = suite('troupe graph');

const XSTATE = import.meta.resolve('xstate');
const tree = new Tree({
  'package.json': '{ "type": "module" }',
  '_machines.mjs': `import { createMachine } from '${XSTATE}';
const states = { open: { on: { shut: 'closed' } }, closed: {} };
export const door = createMachine({ id: 'door', initial: 'open', states });
export const lift = createMachine({ id: 'lift', initial: 'open', states });`,
  'bare.mjs': `export { door } from './_machines.mjs';`,
  'server.mjs': `import { createServer } from '${moduleUrl('src/index.ts')}';
import { door, lift } from './_machines.mjs';
export const server = createServer({ name: 's', version: '1.0.0' });
server.machine('gate', door, { events: { shut: true } });
server.tool('ride', { machine: lift });`,
  'listens.mjs': `import { createServer, stdio } from '${TROUPE}';
import { door, lift } from './_machines.mjs';
console.log('loading');
const server = createServer({ name: 's', version: '1.0.0' });
server.machine('gate', door, { events: { shut: true } });
setInterval(() => {}, 1_000);
await server.listen(stdio());
console.log('listens');`,
  'none.mjs': 'export const x = 1;',
  'broken.mjs': 'throw new Error("no database");',
});

const graph = (...args: readonly string[]) => troupe(['graph', ...args], { cwd: tree.path });

test('the only machine that a module exports is printed', async () => {
  const { code, out, err } = await graph('bare.mjs', '--mermaid');
  assert.equal({ code, err }, { code: 0, err: '' });
  assert.match(out, 'open --> closed : shut\n');
});

test.full('the only machine that a module exports is printed as a picture', async () => {
  const { code, out, err } = await graph('bare.mjs');
  assert.equal({ code, err }, { code: 0, err: '' });
  assert.match(out, /^<svg [\s\S]*<title>The statechart door<\/title>[\s\S]*>shut<[\s\S]*<\/svg>\n$/);
  assert.match(out, 'font-family="Arial', 'with the layout of the page: the list has another font');
});

test.full('the same machine has the same picture', async () => {
  assert.is((await graph('bare.mjs')).out, (await graph('bare.mjs')).out);
});

test('the machine of a program that listens is printed; its output goes to stderr, its timers end, and nothing is served', async () => {
  const cli = new Cli(['graph', 'listens.mjs', '--table'], { cwd: tree.path, raw: true });
  assert.is(await cli.exit, 0);
  assert.is(withoutStalls(cli.err), 'loading\n');
  assert.match(cli.out, /\| `?shut`? \|/);
});

test('the machines of a program are listed, and one is printed by its name', async () => {
  assert.equal(await graph('server.mjs'), { code: 0, out: 'gate\nride\n', err: '' });
  const { code, out } = await graph('server.mjs', 'gate', '--mermaid');
  assert.is(code, 0);
  assert.match(out, 'stateDiagram-v2\n  accTitle: The statechart door\n  [*] --> open\n  open --> closed : shut\n');
});

test('the order example is written to a file', async () => {
  const example = compiled('examples/order/server.ts');
  const { code, out } = await graph(example, '--table', '--out', 'order.md');
  assert.equal({ code, out }, { code: 0, out: '' });
  assert.match(
    readFileSync(tree.at('order.md'), 'utf8'),
    '`checkout` (Asks the customer for consent, then charges them) | filled | confirming |',
  );
});

for (const [title, args, expected, exit] of [
  ['a machine that is not there', ['server.mjs', 'door2'], 'expected one of the machines gate, ride, got door2', 2],
  ['a program without machines', ['none.mjs'], 'none.mjs has no machine: expected a server with server.machine(…)', 2],
  ['a file for several', ['server.mjs', '--out', 'x.svg'], '--out: expected a MACHINE, one of gate, ride', 2],
  ['two forms at once', ['server.mjs', '--mermaid', '--table'], 'expected --mermaid or --table, got both', 2],
  ['a program that fails', ['broken.mjs'], /cannot load .*broken\.mjs: no database \(at .*broken\.mjs:1:\d+\)\n/, 1],
] as const) {
  test(`${title} is rejected with a message`, async () => {
    const { code, out, err } = await graph(...args);
    assert.equal({ code, out }, { code: exit, out: '' });
    assert.match(err, expected);
  });
}

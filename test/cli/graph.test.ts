/** `troupe graph`: prints a statechart of a program without serving it. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import { Tree } from '../discovery/tree.ts';
import { suite } from '../harness/door.ts';
import { Cli, TROUPE } from './cli.ts';

const test = suite('troupe graph');

const XSTATE = import.meta.resolve('xstate');
const tree = new Tree({
  'package.json': '{ "type": "module" }',
  '_machines.mjs': `import { createMachine } from '${XSTATE}';
const states = { open: { on: { shut: 'closed' } }, closed: {} };
export const door = createMachine({ id: 'door', initial: 'open', states });
export const lift = createMachine({ id: 'lift', initial: 'open', states });`,
  'bare.mjs': `export { door } from './_machines.mjs';`,
  'server.mjs': `import { createServer, stdio } from '${TROUPE}';
import { door, lift } from './_machines.mjs';
console.log('loading');
const server = createServer({ name: 's', version: '1.0.0' });
server.machine('gate', door, { events: { shut: true } });
server.tool('ride', { machine: lift });
setInterval(() => {}, 1_000);
await server.listen(stdio());
console.log('listens');`,
  'none.mjs': 'export const x = 1;',
  'broken.ts': 'throw new Error("no database");',
});

async function graph(...args: readonly string[]): Promise<{ code: number | null; out: string; err: string }> {
  const cli = new Cli(['graph', ...args], { cwd: tree.path });
  let out = '';
  cli.process.stdout?.removeAllListeners('data').on('data', (text: string) => {
    out += text;
  });
  return { code: await cli.exit, out, err: cli.err };
}

test('the only machine that a module exports is printed as a picture', async () => {
  const { code, out, err } = await graph('bare.mjs');
  assert.equal({ code, err }, { code: 0, err: '' });
  assert.match(out, /^<svg [\s\S]*<title>The statechart door<\/title>[\s\S]*>shut<[\s\S]*<\/svg>\n$/);
  assert.match(out, 'font-family="Arial', 'with the layout of the page: the list has another font');
  assert.is((await graph('bare.mjs')).out, out);
});

test('the machines of a program are listed, and one is printed by its name; nothing is served', async () => {
  const listed = await graph('server.mjs');
  assert.equal(listed, { code: 0, out: 'gate\nride\n', err: 'loading\n' });
  const { code, out } = await graph('server.mjs', 'gate', '--mermaid');
  assert.is(code, 0);
  assert.match(out, 'stateDiagram-v2\n  accTitle: The statechart door\n  [*] --> open\n  open --> closed : shut\n');
});

test('the order example is written to a file', async () => {
  const example = fileURLToPath(new URL('../../examples/order/server.ts', import.meta.url));
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
  ['a program that fails', ['broken.ts'], /cannot load .*broken\.ts: no database \(at .*broken\.ts:1:\d+\)\n/, 1],
] as const) {
  test(`${title} is rejected with a message`, async () => {
    const { code, out, err } = await graph(...args);
    assert.equal({ code, out }, { code: exit, out: '' });
    assert.match(err, expected);
  });
}

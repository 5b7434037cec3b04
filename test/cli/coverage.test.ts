/** `troupe dev --coverage`: prints visited states and transitions on stderr on exit. SIGUSR2 and the exit are those of a process. */
import * as assert from 'uvu/assert';
import { Tree } from '../features/discovery/tree.ts';
import { suite } from '../harness/door.ts';
import { withoutStalls } from './agent.ts';
import { Cli, TROUPE } from './cli.ts';

const test = suite('troupe dev --coverage');

const program = (more: string) => `import { createMachine } from '${import.meta.resolve('xstate')}';
import { createServer } from '${TROUPE}';
const door = createMachine({ id: 'door', initial: 'shut', states: { shut: { on: { open: 'open' } }, open: { on: { shut: 'shut', ${more} } }, gone: {} } });
const server = createServer({ name: 's', version: '1.0.0' });
server.machine('gate', door, { events: { open: true, shut: true } });
export default server;`;

test('the report lists counts and unvisited names for each machine of the last loaded version', async () => {
  const tree = new Tree({ 'package.json': '{ "type": "module" }', 'server.mjs': program('') });
  const cli = new Cli(['dev', 'server.mjs', '--coverage'], { cwd: tree.path });
  await cli.initialize();
  const { structuredContent } = await cli.request('tools/call', { name: 'gate_create', arguments: {} });
  await cli.call('gate_open', { handle: Object(structuredContent).handle });
  if (process.platform !== 'win32') {
    cli.process.kill('SIGUSR2');
    await cli.said('open: shut → shut');
    assert.ok(
      withoutStalls(cli.err).endsWith(`troupe dev: coverage
machine  states     transitions
gate     2/3  66 %  1/2  50 %

gate: not visited
  states       gone
  transitions  open: shut → shut
`),
      cli.err,
    );
  }
  tree.write('server.mjs', program('break: "gone"'));
  await cli.said('loaded in', 2);
  assert.is(cli.err.split('inspector at').length, 2, 'the inspector continues');
  assert.is(await cli.end(), 0);
  assert.match(cli.err, /coverage\nmachine {2}states {4}transitions\ngate {5}0\/3 {2}0 % {2}0\/3/);
  assert.ok(cli.lines.every((line) => line.startsWith('{"jsonrpc":"2.0"')));
});

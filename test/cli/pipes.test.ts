/** `troupe run`: a server that loses its pipes, or writes stray output to them, while the agent is connected. */
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import { fullOnly, suite } from '../harness/door.ts';
import { atScale } from '../harness/scale.ts';
import { Cli, isBuilt } from './cli.ts';

fullOnly('closes each pipe of each program; the quick test of `troupe run` is run.test.ts');

const all = suite('the pipes of troupe run');
function test(title: string, body: () => Promise<void> | void): void {
  if (!isBuilt) all.skip(title, 'dist is not built: npm run build');
  else if (process.platform === 'win32') all.skip(title, 'the signals of this file are those of POSIX');
  else all(title, body);
}

const SERVER = fileURLToPath(new URL('../fixtures/supervised/pipes.mjs', import.meta.url));

/** With an open session, which knows the tools. */
async function agent(): Promise<Cli> {
  const cli = new Cli(['run', SERVER]);
  await cli.initialize();
  await cli.list('tools');
  return cli;
}

/** Quick: each pipe once, and once without a pipe that breaks. */
const ONCE = ['close stdin', 'close stdout', 'close the private channel', 'pause stdin'];
const WAYS = [...ONCE, 'destroy stdin', 'destroy stdout', 'end stdout'];

for (const how of atScale({ quick: ONCE, full: WAYS, proof: WAYS }))
  test(`R-37: a tool that does "${how}" costs its server, and not the agent its session`, async () => {
    const cli = await agent();
    const before = await cli.call('pid');
    const waits = cli.call('wait').then(String, String);
    await cli.said('waits\n');
    assert.match(await cli.call('break', { how }).then(String, String), /broken|the server restarted/i);
    // That a descriptor is closed shows when it is written to.
    const next = cli.call('pid');
    await cli.said('restarting');
    await next;
    assert.is.not(await cli.call('pid'), before);
    // What was in flight follows the rules of a crash.
    assert.match(await waits, /-32603.*the server restarted/i);
    assert.match(cli.err, /troupe run: the server .*: restarting \(1 of 3 times/);
    assert.is(await cli.end(), 0);
  });

test('R-37: a program that ends with code 0 of its own accord ends the command with 0, and its call gets an error', async () => {
  const exits = await agent();
  const lost = exits.call('exit', { code: 0 }).then(String, String);
  assert.match(await lost, /-32603.*The server ended before it answered, and will not be restarted/);
  assert.is(await exits.exit, 0);
  const stops = await agent();
  assert.is(await stops.call('stop'), 'stopping');
  assert.is(await stops.exit, 0);
});

test('R-37: a server that another process asks to end finishes its requests and is replaced', async () => {
  const cli = await agent();
  const before = await cli.call('pid');
  process.kill(Number(before), 'SIGTERM');
  await cli.said('restarting');
  assert.is.not(await cli.call('pid'), before);
  assert.is(await cli.end(), 0);
});

test('R-37: only messages reach the agent, and stray output is reported once per burst', async () => {
  const cli = await agent();
  const before = await cli.call('pid');
  assert.is(await cli.call('write', { text: 'a progress bar: 10 %\n'.repeat(100) }), 'written');
  assert.is(await cli.call('write', { text: 'no end of line' }), 'written');
  assert.is(await cli.call('write', { text: '{"level":30,"msg":"a log line"}\n[1]\nnull\n{}\n[]\n' }), 'written');
  assert.is(await cli.call('child', { text: 'said by a child process' }), 'ran');
  assert.is(await cli.call('pid'), before);
  assert.is(await cli.end(), 0);
  for (const line of cli.lines) assert.is(JSON.parse(line).jsonrpc, '2.0');
  assert.is(cli.err.split('is not a JSON-RPC message').length, 2);
  assert.match(cli.err, 'is not a JSON-RPC message: "a progress bar: 10 %"');
});

/** With its server in a state in which it serves nobody. */
async function stuck(get: (cli: Cli, pid: number) => unknown): Promise<Cli> {
  const cli = await agent();
  const pid = Number(await cli.call('pid'));
  await get(cli, pid);
  // It waits for the next server. A server that still answers some calls answers them with errors.
  while (Number(await cli.call('pid').catch(() => pid)) === pid);
  return cli;
}

test('R-38: a server that is stopped or does not respond is replaced; one that computes or waits is not', async () => {
  const computes = await agent();
  const before = await computes.call('pid');
  const computed = computes.call('compute', { ms: 15_000 });
  const waits = await agent();
  waits.call('wait').catch(() => {});
  const breaks = (how: string) => (cli: Cli) => cli.call('break', { how });
  const [stopped, deaf, dumb, lame] = await Promise.all([
    stuck((_cli, pid) => process.kill(pid, 'SIGSTOP')),
    stuck(breaks('stop hearing stdin')),
    stuck(breaks('overwrite parse')),
    // The call that breaks the server gets an error: the server cannot format its result.
    stuck((cli) => breaks('overwrite iteration')(cli).catch(() => {})),
  ]);
  assert.match(stopped.err, 'the server is stopped (SIGSTOP): restarting (1 of 3');
  for (const cli of [deaf, dumb, lame])
    assert.ok(
      cli.err.includes('the server does not respond although its event loop runs: restarting (1 of 3'),
      cli.err,
    );
  assert.is(await computed, 'computed');
  assert.is(await computes.call('pid'), before);
  assert.is(await waits.call('compute', { ms: 0 }), 'computed');
  assert.not(`${computes.err}${waits.err}`.includes('started again'));
  for (const cli of [stopped, deaf, dumb, lame, computes, waits]) {
    // Of the supervisor's own requests the agent sees nothing.
    assert.not(cli.lines.some((line) => line.includes('troupe/probe')));
    assert.is(await cli.end(), 0);
  }
});

test('R-38: no process survives an agent that leaves a stopped server', async () => {
  const cli = await agent();
  const pid = Number(await cli.call('pid'));
  process.kill(pid, 'SIGSTOP');
  await cli.end();
  assert.throws(() => process.kill(pid, 0), /ESRCH/);
});

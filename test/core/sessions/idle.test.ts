/** A session between active and idle, and what it retains: little, however many there are. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import * as assert from 'uvu/assert';
import { pathOf } from '../../../src/core/kernel/charts/paths.ts';
import { memory } from '../../../src/core/transports/memory.ts';
import { createServer } from '../../../src/index.ts';
import { SimulatedClock } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { times } from '../../harness/scale.ts';

const test = suite('idle sessions');

async function make() {
  const clock = new SimulatedClock();
  const server = createServer({ name: 'idle', version: '1', clock, limits: { maxSessionsPerPrincipal: 10_000 } });
  server.tool('ping', {}, () => 'pong');
  const { transport, connect } = memory();
  await server.listen(transport);
  let received = 0;
  const receive = (): void => {
    received += 1;
  };
  const open = () => {
    const peer = connect();
    const send = (message: object): void => peer.send(JSON.stringify({ jsonrpc: '2.0', ...message }));
    peer.onText(receive);
    const clientInfo = { name: 'client', version: '1' };
    send({ id: 0, method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo } });
    send({ method: 'notifications/initialized' });
    return { peer, call: () => send({ id: 1, method: 'tools/call', params: { name: 'ping', arguments: {} } }) };
  };
  const seen: string[] = [];
  const watch = () =>
    server.inspect((record) => {
      if (record.type === 'step' && record.actor.startsWith('session/'))
        seen.push(`${record.event.type}: ${pathOf(record.snapshot)}`);
    });
  return { clock, server, open, watch, seen, received: () => received };
}

test('a session is idle after five to ten seconds without use, and active with its next message', async () => {
  const { clock, server, open, watch, seen } = await make();
  watch();
  const { call } = open();
  await clock.advance(4_000);
  call();
  await clock.advance(5_999);
  assert.equal(seen, ['initialized: ready.active']);
  await clock.advance(1);
  assert.equal(seen.splice(0), ['initialized: ready.active', 'rest: ready.idle']);
  call();
  assert.equal(seen, ['use: ready.active']);
  await server.close();
});

test('a session in use does not become idle', async () => {
  const { clock, server, open, watch, seen } = await make();
  const { call } = open();
  watch();
  for (let round = 0; round < 20; round += 1) {
    call();
    await clock.advance(4_000);
  }
  assert.equal(seen, []);
  await server.close();
});

test('an idle session has no timer, and a list that changes does not make it active', async () => {
  const { clock, server, open, watch, seen, received } = await make();
  await clock.advance(1_000);
  const others = clock.timers;
  open();
  await clock.advance(60_000);
  assert.is(clock.timers, others);
  watch();
  const before = received();
  server.tools.disable('ping');
  await clock.advance(1_000);
  assert.is(received(), before + 1);
  assert.equal(seen, []);
  assert.is(clock.timers, others);
  await server.close();
});

test('a session that ends leaves no timer', async () => {
  const { clock, server, open } = await make();
  await clock.advance(1_000);
  const others = clock.timers;
  open().peer.vanish();
  assert.is(clock.timers, others);
  await server.close();
});

test('R-22: a session that has just been used takes as little memory as an idle one', async () => {
  const { clock, server, open, received } = await make();
  const some = Array.from({ length: 100 }, open);
  for (const { call } of some) call();
  await settled();
  const count = times(1_000, { quick: 400 });
  const before = heapUsed();
  const sessions = Array.from({ length: count }, open);
  for (const { call } of sessions) call();
  await settled();
  assert.is(received(), 2 * (count + 100));
  const used = (heapUsed() - before) / count;
  await clock.advance(70_000);
  const idle = (heapUsed() - before) / count;
  // 8.0 and 7.5 KB with the client's end of the connection. An XState actor as the mailbox of each actor makes it 24 KB.
  assert.ok(used < 11_000, `${used} bytes for a session that was used`);
  assert.ok(idle < 10_000, `${idle} bytes for an idle session`);
  assert.is(sessions.length, count);
  await server.close();
});

async function settled(): Promise<void> {
  for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

function heapUsed(): number {
  setFlagsFromString('--expose-gc');
  const collect: unknown = runInNewContext('gc');
  if (typeof collect !== 'function') throw new Error('expected a garbage collector to call');
  for (let times = 0; times < 4; times += 1) collect();
  return process.memoryUsage().heapUsed;
}

/** Actors that fail inside: who answers, what ends, and what goes on as if nothing had been. */
import * as assert from 'uvu/assert';
import { memory } from '../../../src/core/transports/memory.ts';
import { createServer, ErrorCode, type InspectionRecord } from '../../../src/index.ts';
import { connect, SimulatedClock, settled } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { timedServer } from '../../harness/memory.ts';
import { errorResponse } from '../../harness/results.ts';
import { client } from './support.ts';

const test = suite('actors that fail');

/** A server whose instructions cannot be read while `broken` says so. */
function unreadable(): { server: ReturnType<typeof createServer>; logged: string[]; state: { broken: boolean } } {
  const logged: string[] = [];
  const state = { broken: false };
  const options = {
    name: 'x',
    version: '1',
    limits: { graceMs: 1 },
    log: (_: string, line: string) => void logged.push(line),
  };
  const server = createServer(
    Object.defineProperty(options, 'instructions', {
      get() {
        if (state.broken) throw new Error('secret');
        return 'Read me.';
      },
    }),
  );
  state.broken = true;
  return { server, logged, state };
}

test('a session that fails closes, its request is answered, and the client may initialize again', async () => {
  const { server, logged, state } = unreadable();
  const ended: string[] = [];
  server.tool('wait', {}, (_, ctx) => new Promise((resolve) => ctx.signal.addEventListener('abort', resolve)));
  server.tool('good', {}, () => 'good');
  const records: InspectionRecord[] = [];
  server.inspect((record) => records.push(record));
  const caller = await client(server);
  const other = await connect(server);
  const underWay = caller.modern('tools/call', { name: 'wait' }, { progressToken: 1 }).catch(() => ended.push('wait'));
  const error = await errorResponse(caller.initialize('2025-06-18'));
  assert.is(error.code, ErrorCode.InternalError);
  assert.not.match(error.message, 'secret');
  assert.is(logged.length, 1);
  const crashed = records.find((record) => record.type === 'crashed');
  assert.ok(crashed?.type === 'crashed' && crashed.actor.startsWith('session/') && crashed.quarantined);
  assert.ok(records.some((record) => record.type === 'gone' && record.actor === crashed.actor));
  assert.match((await errorResponse(caller.send('tools/list'))).message, '"initialize" first');
  assert.equal(ended, []);
  state.broken = false;
  assert.is((await caller.initialize('2025-06-18')).instructions, 'Read me.');
  assert.equal((await caller.call('good')).content, [{ type: 'text', text: 'good' }]);
  await other.initialize('2024-11-05');
  await caller.close();
  await other.close();
  await underWay;
});

test('the server actor is never quarantined: it answers what fails, and can still close', async () => {
  const { server, logged, state } = unreadable();
  const caller = await client(server);
  for (let time = 0; time < 6; time += 1)
    assert.is((await errorResponse(caller.modern('server/discover'))).code, ErrorCode.InternalError);
  assert.is(logged.length, 6);
  state.broken = false;
  assert.is((await caller.modern('server/discover')).instructions, 'Read me.');
  await server.close();
});

test('an in-flight table that fails answers for it, serves the next, and quarantined still answers; no other connection notices', async () => {
  const clock = new SimulatedClock();
  let broken = 0;
  const faulty = {
    now: () => clock.now(),
    soon: (callback: () => void) => clock.soon(callback),
    date: () => clock.date(),
    hold: () => clock.hold(),
    after(ms: number, callback: () => void) {
      if (ms === 777 && broken-- > 0) throw new Error('secret');
      return clock.after(ms, callback);
    },
  };
  const { server, logged } = timedServer({ clock: faulty, limits: { timeoutMs: 777 } });
  server.tool('good', {}, () => 'good');
  const caller = await client(server);
  const other = await client(server);
  const good = () => caller.modern('tools/call', { name: 'good' });
  broken = 1;
  assert.is((await errorResponse(good())).code, ErrorCode.InternalError);
  assert.equal((await good()).content, [{ type: 'text', text: 'good' }]);
  await clock.advance(777);
  broken = 3;
  for (let time = 0; time < 3; time += 1) assert.is((await errorResponse(good())).code, ErrorCode.InternalError);
  broken = 0;
  assert.is(logged.length, 4);
  assert.is((await errorResponse(good())).code, ErrorCode.InternalError);
  assert.match(logged.at(-1) ?? '', 'crashed too often and was quarantined');
  assert.equal((await other.call('good')).content, [{ type: 'text', text: 'good' }]);
  assert.not.match(caller.messages.map(({ text }) => text).join(), 'secret');
  const closed = server.close();
  await clock.advance(10_000);
  await closed;
});

test('an emitter that fails ends its connection, and no other', async () => {
  const { server, logged, clock } = timedServer();
  const aborted: string[] = [];
  server.tool('wait', {}, (_, ctx) => {
    const waiting = new Promise((resolve) => ctx.signal.addEventListener('abort', resolve));
    return waiting.then(() => aborted.push(ctx.client.revision));
  });
  server.tool('good', {}, () => 'good');
  server.resource('doc://1', {}, () => 'doc');
  const caller = await client(server, '2025-06-18');
  const other = await client(server, '2025-11-25');
  await caller.send('resources/subscribe', { uri: 'doc://1' });
  const underWay = caller.call('wait').catch((error: unknown) => String(error));
  await settled();
  // A program without types may name a resource so.
  const uri = {
    toString: () => 'doc://1',
    toJSON() {
      throw new Error('secret');
    },
  };
  Reflect.apply(server.resourceUpdated, server, [uri]);
  await clock.advance(10);
  assert.match(await caller.closed, /^the emitter failed \(incident [\w-]+\)$/);
  assert.match(String(await underWay), 'the connection is closed');
  await settled();
  assert.equal(aborted, ['2025-06-18']);
  assert.is(logged.filter((line) => line.includes('secret')).length, 1);
  assert.equal((await other.call('good')).content, [{ type: 'text', text: 'good' }]);
  await other.close();
});

test('a listener on the bus that throws silences no other listener, and the operator is notified', async () => {
  const { server, logged } = timedServer();
  server.tool('good', {}, () => 'good');
  const heard: string[] = [];
  const events = [
    'connection.opened',
    'connection.text',
    'connection.send',
    'connection.ended',
    'connection.closed',
  ] as const;
  await server.listen({
    name: 'eavesdropper',
    open({ bus }) {
      for (const event of events) {
        bus.on(event, () => {
          throw new Error(`deaf to ${event}`);
        });
        bus.on(event, () => void heard.push(event));
      }
    },
    close: () => Promise.resolve(),
  });
  const caller = await client(server, '2025-06-18');
  assert.equal((await caller.call('good')).content, [{ type: 'text', text: 'good' }]);
  await caller.close();
  assert.equal([...new Set(heard)].sort(), [...events].sort());
  assert.is(logged.length, heard.length);
  assert.match(logged[0] ?? '', /in connection\.opened: Error: deaf to connection\.opened/);
});

test('a listener of inspect that throws receives nothing more, the others do, and the operator is notified', async () => {
  const { server, logged } = timedServer();
  server.tool('good', {}, () => 'good');
  let calls = 0;
  const records: InspectionRecord[] = [];
  server.inspect((record) => {
    calls += 1;
    if (record.type === 'wire') throw new Error('blind');
  });
  server.inspect((record) => records.push(record));
  const caller = await client(server, '2025-06-18');
  const before = calls;
  assert.equal((await caller.call('good')).content, [{ type: 'text', text: 'good' }]);
  assert.is(calls, before);
  assert.ok(records.some((record) => record.type === 'wire' && record.direction === 'out'));
  assert.is(logged.length, 1);
  assert.match(logged[0] ?? '', 'blind');
  await caller.close();
});

test('a client that vanishes has its requests aborted; nothing is sent for them, and no other client notices', async () => {
  const { server, logged } = timedServer();
  const aborted: string[] = [];
  server.tool('wait', {}, (_, ctx) => {
    const waiting = new Promise((resolve) => ctx.signal.addEventListener('abort', resolve));
    return waiting.then(() => {
      aborted.push(String(ctx.signal.reason));
      ctx.log.error('said to nobody');
      ctx.progress(1);
      throw new Error('thrown at nobody');
    });
  });
  server.tool('good', {}, () => 'good');
  const other = await client(server, '2025-06-18');
  const { transport, connect: open } = memory();
  await server.listen(transport);
  const peer = open();
  const got: string[] = [];
  peer.onText((text) => got.push(text));
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': {},
    'io.modelcontextprotocol/logLevel': 'debug',
    progressToken: 1,
  };
  for (const id of [1, 2])
    peer.send(JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'wait', _meta: meta } }));
  peer.vanish();
  await settled();
  assert.equal(aborted, ['AbortError: client disconnected', 'AbortError: client disconnected']);
  assert.equal(got, []);
  assert.is(logged.filter((line) => line.includes('thrown at nobody')).length, logged.length);
  assert.equal((await other.call('good')).content, [{ type: 'text', text: 'good' }]);
  await other.close();
});

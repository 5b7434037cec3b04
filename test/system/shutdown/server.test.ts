/** Shutdown, step by step, inside the process: what is in flight is answered, what is new is refused, and everything closes once. */
import * as assert from 'uvu/assert';
import { ErrorCode, memory } from '../../../src/index.ts';
import { connect, settled } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { timedServer } from '../../harness/memory.ts';
import { errorResponse } from '../../harness/results.ts';
import { client, states } from '../crash/support.ts';
import { opening, SELF } from '../fuzz/messages.ts';

const test = suite('shutdown');

/** A server with a tool that waits until it is let go, and heeds no signal. */
function waiting(options: Parameters<typeof timedServer>[0] = {}) {
  const all = timedServer({ limits: { graceMs: 3_000 }, ...options });
  const held: ((value: string) => void)[] = [];
  const signals: AbortSignal[] = [];
  all.server.tool('wait', {}, (_, ctx) => {
    signals.push(ctx.signal);
    return new Promise((resolve) => void held.push(resolve));
  });
  all.server.tool('good', {}, () => 'good');
  return {
    ...all,
    signals,
    release: (): void => {
      for (const resolve of held.splice(0)) resolve('waited');
    },
  };
}

/** Whether a promise has settled by now. */
async function isDone(promise: Promise<unknown>): Promise<boolean> {
  let done = false;
  void promise.then(
    () => {
      done = true;
    },
    () => {
      done = true;
    },
  );
  await settled();
  return done;
}

test('in-flight requests are answered before it stops, and new ones get -31003, on every connection, new ones too', async () => {
  const { server, clock, release, logged } = waiting();
  const busy = await client(server, '2025-06-18');
  const idle = await client(server);
  const answers = [busy.call('wait'), busy.modern('tools/call', { name: 'wait' })];
  await settled();
  const closed = server.close();
  const late = await client(server);
  for (const caller of [busy, idle, late]) {
    const refused = await errorResponse(caller.send('ping'));
    assert.is(refused.code, ErrorCode.ShuttingDown);
    assert.is((await errorResponse(caller.modern('tools/call', { name: 'good' }))).code, ErrorCode.ShuttingDown);
  }
  assert.is((await errorResponse(late.send('initialize', opening('2025-06-18')))).code, ErrorCode.ShuttingDown);
  await clock.advance(2_999);
  assert.is(await isDone(closed), false);
  release();
  await closed;
  for (const answer of await Promise.all(answers)) assert.equal(answer.content, [{ type: 'text', text: 'waited' }]);
  for (const caller of [busy, idle, late]) assert.is(await caller.closed, 'server closed');
  assert.is(clock.now(), 2_999);
  assert.equal(logged, []);
});

test('when the grace time is over, what is still in flight is aborted and answered with -31003', async () => {
  const { server, clock, signals, release } = waiting();
  const caller = await client(server, '2025-06-18');
  const answers = [caller.call('wait'), caller.modern('tools/call', { name: 'wait' })].map((call) =>
    errorResponse(call),
  );
  await settled();
  const closed = server.close('maintenance');
  await clock.advance(2_999);
  assert.ok(signals.every(({ aborted }) => !aborted));
  await clock.advance(1);
  for (const { code, text } of await Promise.all(answers)) {
    assert.is(code, ErrorCode.ShuttingDown);
    assert.is(text, 'maintenance');
  }
  await closed;
  assert.equal(
    signals.map(({ reason }) => String(reason)),
    ['AbortError: maintenance', 'AbortError: maintenance'],
  );
  const before = caller.messages.length;
  release();
  await settled();
  assert.is(caller.messages.length, before);
});

test('with nothing in flight it closes at once, without any time passing', async () => {
  const { server, clock } = waiting();
  const caller = await client(server, '2025-06-18');
  await server.close();
  assert.is(await caller.closed, 'server closed');
  assert.is(clock.now(), 0);
  assert.is(clock.timers, 0);
});

test('close resolves once, is idempotent, and keeps the first reason', async () => {
  const { server, clock } = waiting();
  const caller = await client(server);
  const answer = errorResponse(caller.call('wait'));
  await settled();
  const order: string[] = [];
  const first = server.close('first').then(() => order.push('first'));
  const second = server.close('second').then(() => order.push('second'));
  await clock.advance(3_000);
  await Promise.all([first, second]);
  assert.equal(order, ['first', 'second']);
  assert.is((await answer).text, 'first');
  await server.close('third');
  assert.is(await isDone(server.close()), true);
});

test('transports that fail to close are logged, and the rest close', async () => {
  const { server, logged } = waiting();
  const closed: string[] = [];
  const transport = (name: string, close: () => Promise<void>) => ({ name, open() {}, close });
  await server.listen(
    transport('throws', () => {
      throw new Error('stuck at once');
    }),
    transport('rejects', () => Promise.reject(new Error('stuck later'))),
    transport('throws nothing', () => Promise.reject(undefined)),
    transport('works', async () => void closed.push('works')),
  );
  const caller = await client(server, '2025-06-18');
  await server.close();
  assert.equal(closed, ['works']);
  assert.is(await caller.closed, 'server closed');
  assert.is(logged.length, 3);
  assert.match(logged[0] ?? '', /^error: incident [\w-]+ in closing a transport: Error: stuck at once/);
  assert.match(logged[1] ?? '', 'stuck later');
});

test('a server that is closed, or never listened, closes at once and opens nothing more', async () => {
  const never = waiting().server;
  await never.close();
  const { server } = waiting();
  const { transport, connect: enter } = memory();
  await server.listen(transport);
  await server.close();
  assert.throws(enter, /not open/);
  for (const closed of [never, server]) {
    const refused = await closed.listen(memory().transport).catch((error: unknown) => String(error));
    assert.match(String(refused), /this server is closed and cannot open a transport \(memory\)/);
  }
});

test('a tool may close the server that runs it, and gets its answer out', async () => {
  for (const how of ['sync', 'async']) {
    const { server } = waiting();
    let closed: Promise<void> | undefined;
    server.tool('quit', {}, () => {
      closed = server.close();
      return how === 'sync' ? 'goodbye' : Promise.resolve('goodbye');
    });
    const caller = await client(server, '2025-06-18');
    assert.equal((await caller.call('quit')).content, [{ type: 'text', text: 'goodbye' }]);
    await closed;
    assert.is(await caller.closed, 'server closed');
  }
});

test('while it drains, progress, logs and cancels pass, and the last cancel lets it stop', async () => {
  const { server, clock } = timedServer();
  server.tool('talk', {}, async (_, ctx) => {
    await new Promise((resolve) => void clock.after(100, () => resolve(0)));
    ctx.progress(1);
    ctx.log.error('still here');
    return new Promise(() => {});
  });
  const caller = await client(server, '2025-06-18');
  caller.raw('{"jsonrpc":"2.0","id":"t","method":"tools/call","params":{"name":"talk","_meta":{"progressToken":"t"}}}');
  await settled();
  const closed = server.close();
  await clock.advance(100);
  assert.equal(
    caller.notifications.map(({ method }) => method),
    ['notifications/progress', 'notifications/message'],
  );
  assert.is(await isDone(closed), false);
  caller.notify('notifications/cancelled', { requestId: 't' });
  await closed;
  assert.is(clock.now(), 100);
  assert.ok(!caller.messages.some(({ text }) => text.includes('"id":"t"') && text.includes('"result"')));
});

test('a batch that is half answered when it drains leaves whole', async () => {
  const { server, release } = waiting();
  const caller = await client(server, '2025-03-26');
  const call = (id: number, name: string) => ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name } });
  caller.raw(JSON.stringify([call(11, 'good'), call(12, 'wait'), call(13, 'good')]));
  await settled();
  const closed = server.close();
  release();
  await closed;
  const [batch] = caller.rest();
  assert.equal(Array.isArray(batch) && batch.map((answer) => Reflect.get(Object(answer), 'id')).sort(), [11, 12, 13]);
});

test('the pending output of a slow client is sent before the connection closes', async () => {
  for (const end of ['the server closes', 'the client ends its input']) {
    const { server, clock, release } = waiting();
    server.tool('flood', {}, async (_, ctx) => {
      await undefined;
      for (let n = 0; n < 40; n += 1) ctx.log.error(`message ${n}`);
      return 'flooded';
    });
    const { transport, connect: enter } = memory({ slowAfter: 4 });
    await server.listen(transport);
    const peer = enter();
    const got: string[] = [];
    peer.onText((text) => got.push(text));
    peer.pause();
    for (const [id, name] of [
      [1, 'wait'],
      [2, 'flood'],
      [3, 'wait'],
    ])
      peer.send(JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name, _meta: SELF } }));
    await settled();
    if (end === 'the client ends its input') peer.close();
    const closed = server.close();
    release();
    await clock.advance(0);
    peer.resume();
    await closed;
    const answers = got.filter((text) => text.includes('"result"'));
    assert.equal(answers.map((text) => Reflect.get(Object(JSON.parse(text)), 'id')).sort(), [1, 2, 3], end);
    assert.is(got.filter((text) => text.includes('message ')).length, 40, end);
  }
});

test('a client that has ended its input gets its answers, then its connection ends, and no other', async () => {
  const { server, clock, release, signals } = waiting();
  const leaving = await client(server, '2025-06-18');
  const stuck = await client(server, '2025-06-18');
  const staying = await client(server, '2025-06-18');
  const answer = leaving.call('wait');
  await settled();
  const left = leaving.close();
  assert.is(await isDone(left), false);
  release();
  assert.equal((await answer).content, [{ type: 'text', text: 'waited' }]);
  await left;
  const never = errorResponse(stuck.call('wait'));
  await settled();
  const gone = stuck.close();
  await clock.advance(3_000);
  assert.is((await never).code, ErrorCode.ShuttingDown);
  await gone;
  assert.is(signals.at(-1)?.aborted, true);
  assert.equal((await staying.call('good')).content, [{ type: 'text', text: 'good' }]);
  await server.close();
});

test('the inspector sees the server drain, stop and be gone, and its connections with it', async () => {
  const { server, clock } = waiting();
  const caller = await client(server, '2025-06-18');
  const answer = errorResponse(caller.call('wait'));
  await settled();
  const seen: string[] = [];
  const gone: string[] = [];
  server.inspect((record) => {
    if (record.type === 'state' && record.actor === 'server') seen.push(record.state);
    if (record.type === 'gone') gone.push(record.actor.replace(/\/.*/, ''));
  });
  const closed = server.close();
  await clock.advance(3_000);
  await answer;
  await closed;
  assert.equal(seen, ['running', 'draining', 'stopping', 'stopped']);
  assert.equal(gone.sort(), ['emitter', 'requests', 'session']);
  assert.equal(
    [...states(server).keys()].filter((actor) => /^(session|requests|emitter)\//.test(actor)),
    [],
  );
  assert.is(clock.timers, 0);
});

test('a transport that asks to close twice, and a connection that opens last, change nothing', async () => {
  const { server, logged } = waiting();
  const asked: ((reason: string) => void)[] = [];
  await server.listen({
    name: 'hasty',
    open: ({ requestClose }) => void asked.push(requestClose),
    close: async () => {
      for (const ask of asked) ask('again');
    },
  });
  const caller = await connect(server);
  for (const ask of asked) ask('its client disconnected');
  for (const ask of asked) ask('and again');
  assert.is(await caller.closed, 'server closed');
  await server.close();
  assert.equal(logged, []);
});

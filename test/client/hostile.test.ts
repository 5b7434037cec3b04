/** A server that hangs, flaps and answers in bad faith, as a channel that the test plays; and what 1,000 connections leave behind. */
import { connect } from 'troupe/client';
import { SimulatedClock } from 'troupe/testing';
import * as assert from 'uvu/assert';
import { suite } from '../harness/door.ts';
import { atScale, times } from '../harness/scale.ts';
import { until } from '../harness/wait.ts';
import { clientError, reachable } from './fixture.ts';
import { PlayedServer as Stage, text } from './played-server.ts';

const test = suite('a hostile server');

const content = [{ type: 'text', text: 'right' }];

test('U-09 a channel never opens: connect fails after connectMs, and the channel is closed', async () => {
  const stage = new Stage();
  const clock = new SimulatedClock();
  stage.hangs = true;
  const connecting = clientError(stage.connect(clock, { connectMs: 1_000 }));
  await clock.advance(1_000);
  const error = await connecting;
  assert.equal([error.reason, error.carriedOut, stage.open], ['unreachable', 'no', 0]);
});

const FLAPS = times(1_000, { quick: 60 });

test(`U-10 a server flaps ${FLAPS} times: the client suspends, holds nothing, and comes back by itself`, async () => {
  const stage = new Stage();
  const clock = new SimulatedClock();
  stage.script = ({ id }) => [text({ id, result: { content } })];
  const client = await stage.connect(clock);
  const timers = clock.timers;
  stage.flaps = true;
  stage.current?.send({
    type: 'gone',
    failure: { reason: 'closed', message: 'flap', carriedOut: 'unknown' },
    final: false,
  });
  const states = new Set<string>();
  for (let minute = 0; stage.opened < FLAPS; minute += 1) {
    assert.ok(minute < 2 * FLAPS, `${stage.opened} connections, ${client.state}`);
    states.add(client.state);
    clock.pass(60_000);
    await Promise.resolve();
  }
  assert.equal([...states].sort(), ['backingOff', 'suspended']);
  assert.is(stage.open, 0);
  assert.ok(clock.timers <= timers + 2, `${clock.timers} timers, ${timers} before`);
  stage.flaps = false;
  clock.pass(60_000);
  assert.is(client.state, 'ready');
  assert.is(stage.open, 1);
  assert.equal((await client.call('x')).content, content);
  const closing = client.close();
  await clock.advance(0);
  await closing;
  assert.is(stage.open, 0);
});

test('U-11 a server answers twice, for unknown requests, in batches and with noise: each call has its own result', async () => {
  const stage = new Stage();
  const noise = [
    'null',
    '7',
    '{',
    '[]',
    '{"jsonrpc":"2.0"}',
    '{"jsonrpc":"1.0","id":1,"result":{}}',
    text({ id: 999_999, result: { content: [] } }),
    text({ id: null, error: { code: 1, message: 'x' } }),
    text({ id: -1, result: {} }),
    text({ id: 1.5, result: {} }),
    text({ method: 'notifications/progress', params: { progressToken: 999_999, progress: 1 } }),
    text({ method: 'notifications/progress', params: { progressToken: {}, progress: 'x' } }),
    text({ method: 'notifications/cancelled', params: { requestId: 999_999 } }),
    text({ method: 'notifications/message', params: { level: 'loud', data: 1 } }),
    text({ method: 'notifications/resources/updated', params: { uri: 7 } }),
    text({ method: 'notifications/nothing' }),
    text({ id: 'q', method: 'sampling/createMessage', params: {} }),
    '{"jsonrpc":"2.0","method":"notifications/message","params":{"__proto__":{"polluted":1}}}',
  ];
  stage.script = ({ id, name }) => [
    ...noise,
    text({ id: `0${id}`, result: { content: [{ type: 'text', text: 'wrong' }] } }),
    ...(name === 'batch'
      ? [`[${text({ method: 'notifications/x' })},${text({ id, result: { content } })},7]`]
      : [text({ id, result: { content } })]),
    text({ id, result: { content: [{ type: 'text', text: 'twice' }] } }),
    text({ id, error: { code: 1, message: 'thrice' } }),
  ];
  const client = await stage.connect(undefined);
  for (const name of ['one', 'batch', 'two']) assert.equal((await client.call(name)).content, content);
  const results = await Promise.all(Array.from({ length: 100 }, () => client.call('x')));
  assert.is(results.length, 100);
  assert.is(Object.keys(Object.prototype).length, 0);
  await client.close();
});

test('U-11 wrong shapes fail their call, and nothing else', async () => {
  const stage = new Stage();
  const shapes: Readonly<Record<string, (id: number) => string>> = {
    'no result': (id) => `{"jsonrpc":"2.0","id":${id}}`,
    'a number': (id) => text({ id, result: 7 }),
    'a list': (id) => text({ id, result: [] }),
    null: (id) => text({ id, result: null }),
    'content is a number': (id) => text({ id, result: { content: 7 } }),
    'a prototype': (id) => `{"jsonrpc":"2.0","id":${id},"result":{"__proto__":{"polluted":true},"content":[]}}`,
    'an error without a code': (id) => text({ id, error: 'x' }),
    'too deep': (id) => `{"jsonrpc":"2.0","id":${id},"result":${'['.repeat(20_000)}${']'.repeat(20_000)}}`,
    'a key twice': (id) => `{"jsonrpc":"2.0","id":${id},"result":{"content":[],"content":[1]}}`,
  };
  stage.script = ({ id, name }) => [shapes[name]?.(id) ?? text({ id, result: { content } })];
  const client = await stage.connect(undefined, { timeoutMs: 5_000 });
  for (const name of Object.keys(shapes)) {
    const error = await clientError(client.call(name));
    assert.is(error.reason, name.startsWith('an error') ? 'error response' : 'malformed', `${name}: ${error.message}`);
    assert.equal((await client.call('good')).content, content);
  }
  assert.is(Object.keys(Object.prototype).length, 0);
  await client.close();
});

test('U-11 a list has endless pages, only a cursor, or too many elements: it fails, and stops asking', async () => {
  const stage = new Stage();
  let mode = 'endless';
  let pages = 0;
  const tool = (name: string): object => ({ name, inputSchema: { type: 'object' } });
  stage.script = ({ id }) => {
    pages += 1;
    const tools =
      mode === 'many'
        ? Array.from({ length: 5_001 }, (_, index) => tool(`t${index}`))
        : mode === 'twice'
          ? []
          : [tool(`t${pages}`), { name: 7 }, null];
    return [text({ id, result: { tools, nextCursor: mode === 'twice' ? 'same' : `c${pages}` } })];
  };
  const client = await stage.connect(undefined);
  for (const [next, asked] of [
    ['endless', 64],
    ['twice', 2],
    ['many', 1],
  ] as const) {
    mode = next;
    pages = 0;
    const error = await clientError(client.tools({ fresh: true }));
    assert.is(error.reason, 'malformed');
    assert.is(pages, asked, next);
  }
  await client.close();
});

test('U-11 a flood of announcements becomes one change for each thing', async () => {
  const stage = new Stage();
  stage.script = ({ id }) => [text({ id, result: {} })];
  const client = await stage.connect(undefined);
  const changes = client.changes({ tools: true, resources: ['a://1'] });
  const announce = (method: string, params: object = {}): void =>
    stage.current?.send({ type: 'text', text: text({ method, params }), about: undefined });
  const announced = times(10_000, { quick: 2_000 });
  for (let index = 0; index < announced; index += 1) {
    announce('notifications/tools/list_changed');
    announce('notifications/resources/updated', { uri: 'a://1' });
    announce('notifications/resources/updated', { uri: `b://${index}` });
  }
  const seen = [await changes.next(), await changes.next()].map(({ value }) => value.type);
  assert.equal(seen.sort(), ['resource', 'tools']);
  let more = false;
  const third = changes.next().then(({ done }) => {
    more = done !== true;
  });
  await client.close();
  await third;
  assert.not(more);
});

test('U-24 connections that open and close over memory leave no timers, and the server has no session of them', async () => {
  const cycles = atScale({ quick: 20, full: 200, proof: 1_000 });
  const fixture = await reachable();
  const clock = new SimulatedClock();
  const open = (): number => process.getActiveResourcesInfo().filter((name) => name !== 'Immediate').length;
  const cycle = async (): Promise<void> => {
    const client = await connect(fixture.server, { clock });
    await client.call('add', { a: 1, b: 2 });
    await client.close();
  };
  for (let index = 0; index < 10; index += 1) await cycle();
  const timers = clock.timers;
  const before = open();
  const listeners = process.listenerCount('exit');
  for (let index = 0; index < cycles; index += 1) await cycle();
  assert.ok(clock.timers <= timers, `${clock.timers} timers, ${timers} before`);
  await until(() => open() <= before);
  assert.is(process.listenerCount('exit'), listeners);
  await fixture.close();
});

test('U-24 connections that open and close over HTTP leave no sockets and no timers', async () => {
  const cycles = atScale({ quick: 10, full: 50, proof: 200 });
  const fixture = await reachable();
  const clock = new SimulatedClock();
  const open = (): number => process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length;
  // The files before this one may have left some, which close in their own time.
  const before = open();
  const sockets = (): number => Math.max(0, open() - before);
  const cycle = async (index: number): Promise<void> => {
    const client = await connect(fixture.url, { clock, eras: index % 2 === 0 ? 'legacy' : 'modern' });
    await client.call('add', { a: 1, b: 2 });
    await client.close();
  };
  for (let index = 0; index < 10; index += 1) await cycle(index);
  await until(() => sockets() === 0);
  const timers = clock.timers;
  for (let index = 0; index < cycles; index += 1) await cycle(index);
  await until(() => sockets() === 0 && clock.timers <= timers);
  await fixture.close();
});

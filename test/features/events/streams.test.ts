/** Streams of events: what a client gets, when, how fast it must read, and how a stream ends. */
import * as assert from 'uvu/assert';
import { connect, settled } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { errorResponse } from '../../harness/results.ts';
import { DECLARED, eventStage, lastCursor, noted, PAYLOAD, poll, streamed } from './support.ts';

const test = suite('streams of events');

test('a stream begins with its cursor, sends each event once in order, and beats while nothing happens', async () => {
  const { server, note, clock } = noted();
  const client = await connect(server);
  void client.modern('events/stream', { name: 'note' }).catch(() => {});
  await settled();
  assert.equal(streamed(client), ['active']);
  for (const id of ['a', 'b', 'c']) await note.emit({ n: 1 }, { id });
  await settled();
  assert.equal(streamed(client), ['active', 'event a', 'event b', 'event c']);
  await clock.advance(50_000);
  assert.equal(streamed(client).slice(4), ['heartbeat', 'heartbeat']);
  const cursor = lastCursor(client);
  await note.emit({ n: 2 }, { id: 'd' });
  await settled();
  assert.equal((await poll(client, 'note', { cursor })).ids, ['d']);
  await server.close();
});

test('a stream continues at the cursor of an event, of a heartbeat and of a poll, and says when events are gone', async () => {
  const { server, note } = noted(undefined, { retain: { events: 70 } });
  const [first, second, third] = [await connect(server), await connect(server), await connect(server)];
  void first.modern('events/stream', { name: 'note' }).catch(() => {});
  await settled();
  await note.emit({ n: 1 }, { id: 'a' });
  await settled();
  const cursor = lastCursor(first);
  for (let n = 1; n <= 70; n += 1) await note.emit({ n }, { id: `e${n}` });
  void second.modern('events/stream', { name: 'note', cursor }).catch(() => {});
  await settled();
  assert.equal(streamed(second), ['active', ...Array.from({ length: 70 }, (_, n) => `event e${n + 1}`)]);
  await note.emit({ n: 71 }, { id: 'e71' });
  void third.modern('events/stream', { name: 'note', cursor }).catch(() => {});
  await settled();
  assert.equal(streamed(third).slice(0, 2), ['active truncated', 'event e2']);
  assert.is(streamed(third).at(-1), 'event e71');
  await server.close();
});

test('a client that cancels gets nothing more, and a server that closes ends each stream with a result', async () => {
  const { server, note } = noted();
  const [leaving, staying] = [await connect(server), await connect(server)];
  void leaving.modern('events/stream', { name: 'note' }).catch(() => {});
  const ended = staying.modern('events/stream', { name: 'note' });
  await settled();
  leaving.notify('notifications/cancelled', { requestId: 1 });
  await settled();
  await note.emit({ n: 1 }, { id: 'a' });
  await settled();
  assert.equal(streamed(leaving), ['active']);
  assert.equal(streamed(staying), ['active', 'event a']);
  await server.close();
  assert.is((await ended).resultType, 'complete');
});

test('a stream ends when its type is removed or its schemas change, and lives on when they only grow', async () => {
  const { server, note } = noted();
  const [client, other] = [await connect(server), await connect(server)];
  const ended = client.modern('events/stream', { name: 'note' }, DECLARED);
  await settled();
  const grown = { ...PAYLOAD, properties: { ...PAYLOAD.properties, more: { type: 'string' } } };
  note.remove();
  await settled();
  assert.equal(streamed(client), ['active', 'terminated -32023']);
  assert.is((await ended).resultType, 'complete');
  assert.is((await errorResponse(other.modern('events/poll', { name: 'note' }))).code, -32011);
  const again = server.event('note', { description: 'd', payload: grown });
  void other.modern('events/stream', { name: 'note' }).catch(() => {});
  await settled();
  await again.emit({ n: 1, more: 'x' }, { id: 'a' });
  await settled();
  assert.equal(streamed(other), ['active', 'event a']);
  await server.close();
});

test('S-150: rights decide about the list, polls and streams, and a stream ends when they do', async () => {
  const { server, as, clock } = eventStage();
  let allowed = true;
  server.event('open', { description: 'd', payload: PAYLOAD });
  server.event('scoped', { description: 'd', payload: PAYLOAD, scopes: ['notes:read'] });
  const ruled = server.event('ruled', {
    description: 'd',
    payload: PAYLOAD,
    allow: ({ element, principal }) => (element.kind === 'event' && principal === 'ada' && allowed) || { hidden: true },
  });
  const [ada, bob] = [await as('ada'), await as('bob')];
  const names = async (client: typeof ada): Promise<unknown> => {
    const { events } = await client.modern('events/list');
    return (events as { name: string }[]).map(({ name }) => name);
  };
  assert.equal(await names(ada), ['open', 'scoped', 'ruled']);
  assert.equal(await names(bob), ['open', 'scoped']);
  assert.is((await errorResponse(bob.modern('events/poll', { name: 'ruled' }, DECLARED))).code, -32023);
  assert.is((await errorResponse(bob.modern('events/poll', { name: 'scoped' }, DECLARED))).code, -32024);
  assert.is((await errorResponse(bob.modern('events/stream', { name: 'scoped' }))).code, -32012);
  const { cursor } = await poll(ada, 'ruled');
  void ada.modern('events/stream', { name: 'ruled' }, DECLARED).catch(() => {});
  await settled();
  await ruled.emit({ n: 1 }, { id: 'a' });
  await settled();
  allowed = false;
  await clock.advance(50_000);
  await settled();
  assert.equal(streamed(ada), ['active', 'event a', 'heartbeat', 'heartbeat', 'terminated -32023']);
  assert.is((await errorResponse(ada.modern('events/poll', { name: 'ruled', cursor }))).code, -32011);
  await server.close();
});

test('S-151: a cursor of another principal, type or arguments is a gap, and shows nothing of before', async () => {
  const { server, note, as } = noted();
  server.event('other', { description: 'd', payload: PAYLOAD });
  const [ada, bob] = [await as('ada'), await as('bob')];
  const { cursor } = await poll(ada, 'note');
  await note.emit({ n: 1 });
  for (const [client, name, params] of [
    [bob, 'note', {}],
    [ada, 'other', {}],
    [ada, 'note', { arguments: { to: 'x' } }],
    [ada, 'note', { cursor: 'guessed' }],
  ] as const) {
    const page = await poll(client, name, { cursor, ...params });
    assert.equal([page.ids, page.truncated], [[], true]);
  }
  assert.is((await poll(ada, 'note', { cursor })).ids.length, 1);
  assert.ok(cursor.length <= 80, `a cursor of ${cursor.length} characters`);
  await server.close();
});

test('a principal has at most maxEventStreamsPerPrincipal streams', async () => {
  const { server, as } = noted(undefined, {});
  const limited = eventStage({ limits: { maxEventStreamsPerPrincipal: 2, maxEventStreams: 3 } });
  limited.server.event('note', { description: 'd', payload: PAYLOAD });
  const open = (client: Awaited<ReturnType<typeof as>>) => client.modern('events/stream', { name: 'note' }, DECLARED);
  const [ada, bob] = [await limited.as('ada'), await limited.as('bob')];
  for (let n = 0; n < 2; n += 1) void open(ada).catch(() => {});
  await settled();
  const full = await errorResponse(open(ada));
  assert.equal([full.code, full.data], [-32025, { limit: 'maxEventStreamsPerPrincipal', max: 2 }]);
  void open(bob).catch(() => {});
  await settled();
  assert.match((await errorResponse(open(bob))).message, 'limits.maxEventStreams');
  ada.notify('notifications/cancelled', { requestId: 1 });
  await settled();
  void open(ada).catch(() => {});
  await settled();
  assert.is(streamed(ada).length, 3);
  await limited.server.close();
  await server.close();
});

test('both capabilities are there with the first type, in every revision, and a session polls but streams nothing', async () => {
  const { server, note } = noted();
  const client = await connect(server);
  const { capabilities } = await client.modern('server/discover');
  assert.equal((capabilities as { events: unknown }).events, {});
  assert.equal((capabilities as { extensions: unknown }).extensions, {
    'io.modelcontextprotocol/events': { listChanged: true },
  });
  const session = await connect(server);
  for (const revision of ['2025-06-18']) {
    const opened = await session.initialize(revision);
    assert.equal((opened.capabilities as { events: unknown }).events, {});
  }
  const { events } = await session.send('events/list');
  assert.equal(
    (events as { delivery: unknown }[]).map(({ delivery }) => delivery),
    [['poll']],
  );
  const { cursor } = await session.send('events/poll', { name: 'note' });
  await note.emit({ n: 1 }, { id: 'a' });
  const polled = await session.send('events/poll', { name: 'note', cursor: cursor ?? null });
  assert.is((polled.events as { eventId: string }[])[0]?.eventId, 'a');
  assert.is((await errorResponse(session.send('events/stream', { name: 'note' }))).code, -32601);
  await server.close();
});

test('without a type there are no methods, and a listener learns of a new one', async () => {
  const { server, clock } = eventStage();
  const client = await connect(server);
  assert.is((await errorResponse(client.modern('events/list'))).code, -32601);
  server.event('first', { description: 'd', payload: PAYLOAD });
  void client.modern('subscriptions/listen', { notifications: { eventsListChanged: true } }).catch(() => {});
  await settled();
  server.event('second', { description: 'd', payload: PAYLOAD });
  await clock.advance(10);
  await settled();
  assert.ok(client.notifications.some(({ method }) => method === 'notifications/events/list_changed'));
  await server.close();
});

test('each params that is none is rejected with the place', async () => {
  const { server } = noted();
  const client = await connect(server);
  for (const [params, place] of [
    [{}, 'params.name'],
    [{ name: 1 }, 'params.name'],
    [{ name: 'note', arguments: [] }, 'params.arguments'],
    [{ name: 'note', arguments: { to: 1 } }, 'params.arguments'],
    [{ name: 'note', cursor: 1 }, 'params.cursor'],
    [{ name: 'note', maxAgeMs: -1 }, 'params.maxAgeMs'],
    [{ name: 'note', maxEvents: 0 }, 'params.maxEvents'],
  ] as const) {
    const { code, message } = await errorResponse(client.modern('events/poll', params));
    assert.is(code, -32602);
    assert.match(message, place);
  }
  await server.close();
});

test('a server that adopts the types of a program emits what the program emits, and ends what it drops', async () => {
  const host = eventStage();
  const program = eventStage();
  const note = program.server.event('note', { description: 'd', payload: PAYLOAD });
  host.server.eventsOf(program.server);
  const client = await connect(host.server);
  void client.modern('events/stream', { name: 'note' }).catch(() => {});
  await settled();
  await note.emit({ n: 1 }, { id: 'a' });
  await settled();
  const reloaded = eventStage();
  const again = reloaded.server.event('note', { description: 'd', payload: PAYLOAD });
  host.server.eventsOf(reloaded.server);
  await again.emit({ n: 2 }, { id: 'b' });
  await settled();
  host.server.eventsOf(undefined);
  await settled();
  assert.equal(streamed(client), ['active', 'event a', 'event b', 'terminated -32011']);
  await host.server.close();
});

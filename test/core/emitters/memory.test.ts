/** Subscriptions on one connection: what each is told and when, their bounds, slow readers, and how they end. */
import * as assert from 'uvu/assert';
import { type MemoryPeer, memory, type Server } from '../../../src/index.ts';
import { SimulatedClock, settled, TestClient } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { errorResponse } from '../../harness/results.ts';
import { client, states } from '../../system/crash/support.ts';
import { flicker, heard, open, stage } from './support.ts';

const test = suite('subscriptions');

const TOOLS = { toolsListChanged: true };
const DOC = { resourceSubscriptions: ['doc://1'] };

test('a burst becomes one notification for each subscription, each with its own id, in the order in which things changed first', async () => {
  const { server, clock } = stage();
  const caller = await client(server);
  open(caller, { ...TOOLS, ...DOC }, 1, '1');
  open(caller, DOC, 2);
  assert.equal(heard(caller), ['1 acknowledged', '1 acknowledged', '2 acknowledged']);
  for (let times = 0; times < 100; times += 1) {
    server.resourceUpdated('doc://1');
    server.resourceUpdated('doc://2');
    flicker(server);
  }
  assert.equal(heard(caller), []);
  await clock.advance(10);
  assert.equal(heard(caller), ['1 doc://1', '1 doc://1', '2 doc://1', '1 tools', '1 tools']);
  await clock.advance(1_000);
  assert.equal(heard(caller), []);
  await caller.close();
});

test('a subscription receives no change from before it was opened', async () => {
  const { server, clock } = stage();
  const caller = await client(server);
  open(caller, TOOLS, 'early');
  flicker(server);
  open(caller, TOOLS, 'late');
  await clock.advance(10);
  assert.equal(heard(caller), ['early acknowledged', 'late acknowledged', 'early tools']);
  flicker(server);
  await clock.advance(10);
  assert.equal(heard(caller), ['early tools', 'late tools']);
  await caller.close();
});

test('a subscription grants only what is offered now; a later one grants later offers', async () => {
  const { server, clock } = stage();
  const caller = await client(server);
  const all = { promptsListChanged: true, resourceSubscriptions: ['note://1', 'doc://7'] };
  open(caller, all, 1);
  const granted = await caller.notification('notifications/subscriptions/acknowledged');
  assert.equal(granted.notifications, { resourceSubscriptions: ['doc://7'] });
  server.prompt('ask', {}, () => 'asked');
  server.resource('note://1', {}, () => 'noted');
  server.resourceUpdated('note://1');
  await clock.advance(10);
  assert.equal(heard(caller), []);
  open(caller, all, 2);
  const more = await caller.notification('notifications/subscriptions/acknowledged');
  assert.equal(more.notifications, { promptsListChanged: true, resourceSubscriptions: ['note://1', 'doc://7'] });
  await caller.close();
});

test('a session watches resources by its own requests, and its subscriptions and those of others are apart from them', async () => {
  const { server, clock } = stage({ maxSubscriptions: 1 });
  const both = await client(server, '2025-11-25');
  const other = await client(server, '2025-11-25');
  await both.send('resources/subscribe', { uri: 'doc://1' });
  await other.send('resources/subscribe', { uri: 'doc://2' });
  open(both, { ...TOOLS, resourceSubscriptions: ['doc://2'] }, 'mine');
  assert.equal(heard(both), ['mine acknowledged']);
  server.resourceUpdated('doc://1');
  await clock.advance(10);
  assert.equal([heard(both), heard(other)], [['doc://1'], []]);
  server.resourceUpdated('doc://2');
  await clock.advance(10);
  assert.equal([heard(both), heard(other)], [['mine doc://2'], ['doc://2']]);
  flicker(server);
  await clock.advance(10);
  assert.equal([heard(both).sort(), heard(other)], [['mine tools', 'tools'], ['tools']]);
  await both.send('resources/unsubscribe', { uri: 'doc://1' });
  await both.send('resources/unsubscribe', { uri: 'doc://2' });
  server.resourceUpdated('doc://1');
  server.resourceUpdated('doc://2');
  await clock.advance(10);
  assert.equal([heard(both), heard(other)], [['mine doc://2'], ['doc://2']]);
  await Promise.all([both.close(), other.close()]);
});

test('a session that is closed, and a connection, leave nothing behind', async () => {
  const { server, clock } = stage();
  for (let times = 0; times < 3; times += 1) {
    const caller = await client(server, '2025-11-25');
    await caller.send('resources/subscribe', { uri: 'doc://1' });
    open(caller, DOC, 'a', 'b');
    assert.is(states(server).get('subscriptions'), 'open (2), watched by 1 sessions');
    server.resourceUpdated('doc://1');
    await caller.close();
  }
  await settled();
  assert.is(states(server).get('subscriptions'), 'open (0)');
  const timers = clock.timers;
  server.resourceUpdated('doc://1');
  assert.is(clock.timers, timers, 'nobody is left to gather for');
});

test('a subscription takes no place among the requests in flight, and more than the limit are refused', async () => {
  const { server } = stage({ maxInFlight: 1, maxRunning: 1, maxListens: 3 });
  const caller = await client(server);
  const neighbour = await client(server);
  open(caller, TOOLS, 'a', 'b', 'c', 'd');
  assert.equal(heard(caller), ['a acknowledged', 'b acknowledged', 'c acknowledged', 'd -31001']);
  assert.equal((await caller.call('good')).content, [{ type: 'text', text: 'good' }]);
  open(neighbour, TOOLS, 1);
  assert.equal(heard(neighbour), ['1 acknowledged']);
  caller.notify('notifications/cancelled', { requestId: 'b' });
  open(caller, TOOLS, 'd');
  assert.equal(heard(caller), ['d acknowledged']);
  await Promise.all([caller.close(), neighbour.close()]);
});

/** A client whose connection is slow as soon as one message waits for it. */
async function slowClient(server: Server): Promise<{ readonly peer: MemoryPeer; readonly caller: TestClient }> {
  const { transport, connect: enter } = memory({ slowAfter: 1 });
  await server.listen(transport);
  const peer = enter();
  return { peer, caller: new TestClient(peer) };
}

test('a client that reads slowly keeps one notification of each thing for each subscription, none of one that it cancels meanwhile, and delays no other client', async () => {
  const { server, clock } = stage();
  const { peer, caller: slow } = await slowClient(server);
  const other = await client(server);
  open(slow, { ...TOOLS, ...DOC }, 1, 2);
  open(other, TOOLS, 1);
  assert.equal(heard(slow), ['1 acknowledged', '2 acknowledged']);
  peer.pause();
  for (let round = 0; round < 50; round += 1) {
    server.resourceUpdated('doc://1');
    flicker(server);
    await clock.advance(10);
  }
  assert.is(heard(other).length, 51);
  assert.equal(heard(slow), []);
  slow.notify('notifications/cancelled', { requestId: 2 });
  peer.resume();
  // The first had left before anybody could know that nobody reads.
  assert.equal(heard(slow), ['1 doc://1', '1 doc://1', '1 tools']);
  await Promise.all([slow.close(), other.close()]);
});

test('a client that vanishes while it is notified of a change takes its subscriptions with it, and no other', async () => {
  const { server, clock } = stage();
  const { transport, connect: enter } = memory();
  await server.listen(transport);
  const peer = enter();
  const going = new TestClient(peer, {
    onMessage({ text }) {
      if (text.includes('list_changed')) peer.vanish();
    },
  });
  const staying = await client(server);
  open(going, TOOLS, 1, 2, 3);
  open(staying, TOOLS, 1);
  heard(staying);
  flicker(server);
  await clock.advance(10);
  assert.equal(heard(staying), ['1 tools']);
  assert.is(states(server).get('subscriptions'), 'open (1)');
  await staying.close();
});

test('when the server closes, each subscription gets its result at once, though a request runs on for its grace time', async () => {
  const { server, clock, told } = stage({ graceMs: 3_000 });
  server.tool(
    'wait',
    {},
    (_, ctx) => new Promise((resolve) => ctx.signal.addEventListener('abort', () => resolve(''))),
  );
  const busy = await client(server);
  const idle = await client(server);
  const answer = errorResponse(busy.call('wait'));
  open(busy, TOOLS, 'a');
  open(idle, { ...TOOLS, ...DOC }, 'b', 'c');
  heard(busy);
  heard(idle);
  flicker(server);
  const closed = server.close();
  assert.equal(
    [heard(busy), heard(idle)],
    [
      ['a tools', 'a over'],
      ['b tools', 'b over', 'c tools', 'c over'],
    ],
  );
  open(idle, TOOLS, 'late');
  assert.equal(heard(idle), ['late -31003']);
  await clock.advance(3_000);
  assert.is((await answer).code, -31003);
  await closed;
  assert.equal([heard(busy), heard(idle)], [[], []]);
  assert.equal(told, []);
});

test('subscriptions alone do not hold the server up: it closes without any time passing', async () => {
  const { server, clock } = stage();
  const caller = await client(server);
  open(caller, TOOLS, 1, 2);
  await server.close();
  assert.equal(heard(caller), ['1 acknowledged', '2 acknowledged', '1 over', '2 over']);
  assert.is(await caller.closed, 'server closed');
  assert.is(clock.now(), 0);
  assert.is(clock.timers, 0);
});

test('a client that ends its input gets the results of its subscriptions, and is not waited for', async () => {
  const { server, clock } = stage();
  const caller = await client(server);
  open(caller, TOOLS, 1);
  await caller.close();
  assert.equal(heard(caller), ['1 acknowledged', '1 over']);
  assert.is(clock.now(), 0);
});

test('a failure while changes are gathered is logged, and the client is notified of the next change', async () => {
  const clock = new SimulatedClock();
  let broken = true;
  const faulty = {
    now: () => clock.now(),
    date: () => clock.date(),
    soon: (callback: () => void) => clock.soon(callback),
    hold: () => clock.hold(),
    after(ms: number, callback: () => void) {
      if (ms === 13 && broken) throw new Error('secret');
      return clock.after(ms, callback);
    },
  };
  const { server, told } = stage({ gatherMs: 13 }, faulty);
  const caller = await client(server);
  open(caller, TOOLS, 1);
  for (let times = 0; times < 5; times += 1) server.tools.announce();
  broken = false;
  server.tools.announce();
  await clock.advance(13);
  assert.equal(heard(caller), ['1 acknowledged', '1 tools']);
  assert.ok(
    told.every((line) => /incident [\w-]+ in subscriptions: Error: secret/.test(line)),
    told.join(),
  );
  await caller.close();
});

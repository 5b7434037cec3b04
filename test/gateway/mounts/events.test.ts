/** The events of upstreams: polls become streams and webhooks, over restarts of each side, with their gaps. */
import { createServer, http, type MountOptions, memory, type Server, type ServerOptions, type Store } from 'troupe';
import type { Channel, ChannelHost, OutgoingMessage } from 'troupe/client';
import { connect, SimulatedClock, type TestClient } from 'troupe/testing';
import * as assert from 'uvu/assert';
import { MemoryChannel } from '../../../src/client/channels/memory-channel.ts';
import { openInMemory } from '../../../src/client/in-memory.ts';
import type { JsonObject } from '../../../src/core/protocol/json.ts';
import { memoryStore } from '../../../src/core/store/memory-store.ts';
import {
  counting,
  deliversTo,
  idsOf,
  receiver,
  SECRET,
  subscription,
  untilDelivered,
} from '../../features/events/delivery/support.ts';
import { DECLARED, PAYLOAD, type Polled, poll, streamed } from '../../features/events/support.ts';
import { Disk } from '../../features/tasks/durable/support.ts';
import { suite } from '../../harness/door.ts';
import { rejection } from '../../harness/results.ts';
import { until, untilPassed } from '../../harness/wait.ts';
import { type Era, speakLegacy } from './asking-server.ts';

const test = suite('events of upstreams');

const INPUT = { type: 'object', properties: { to: { type: 'string' } } } as const;

interface Upstream {
  readonly server: Server;
  readonly note: ReturnType<Server['event']>;
  /** The methods of events that it has received, with their parameters. */
  readonly received: { readonly method: string; readonly params: unknown }[];
}

function upstreamOf(clock: SimulatedClock, store?: Store, era: Era = 'modern'): Upstream {
  const server = createServer({ name: 'up', version: '1.0.0', clock, log() {}, ...(store && { store }) });
  if (era === 'legacy') speakLegacy(server);
  const note = server.event('note', { description: 'A note was taken.', payload: PAYLOAD, input: INPUT });
  const received: { readonly method: string; readonly params: unknown }[] = [];
  server.use((call, _ctx, next) => {
    if (call.method.startsWith('events/') && call.method !== 'events/list')
      received.push({ method: call.method, params: call.params });
    return next();
  });
  return { server, note, received };
}

interface Gateway {
  readonly server: Server;
  readonly logged: readonly string[];
  as(principal: string): Promise<TestClient>;
  mountState(): string;
}

const closers: (() => Promise<unknown>)[] = [];
test.afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function closeAll(clock: SimulatedClock, ...servers: readonly Server[]): Promise<void> {
  let closed = false;
  void Promise.allSettled(servers.map((server) => server.close())).then(() => {
    closed = true;
  });
  await untilPassed(clock, () => closed, 1_000);
}

async function gatewayTo(
  target: Server | { readonly name: string; channel(): Channel },
  clock: SimulatedClock,
  options: Partial<ServerOptions> = {},
  mount: MountOptions = {},
): Promise<Gateway> {
  const logged: string[] = [];
  const log = (level: string, message: string): void => void logged.push(`${level}: ${message}`);
  const server = createServer({ name: 'gateway', version: '1.0.0', clock, log, telemetry: counting, ...options });
  const { callbacks } = options.events ?? {};
  if (typeof callbacks === 'object') deliversTo(server, callbacks.allow ?? []);
  const opening = server.mount('up', target, mount);
  await server.listen(memory().transport);
  const mounted = await opening;
  await untilPassed(clock, () => mounted.state.startsWith('offering'), 10);
  return {
    ...{ server, logged },
    as: (principal) => connect(server, { auth: { principal } }),
    mountState: () => mounted.state,
  };
}

/** Lets the time pass that an answer takes. */
async function passing<T>(clock: SimulatedClock, work: Promise<T>): Promise<T> {
  let done = false;
  const settle = (): void => {
    done = true;
  };
  work.then(settle, settle);
  await untilPassed(clock, () => done, 10);
  return work;
}

/** Polls from a cursor until a poll has something to say. */
async function pollUntil(clock: SimulatedClock, client: TestClient, from: Polled, count = 1): Promise<Polled> {
  let next = from;
  await untilPassed(
    clock,
    async () => {
      next = await passing(clock, poll(client, 'up_note', { cursor: from.cursor }));
      return next.ids.length >= count;
    },
    1_000,
  );
  return next;
}

const sep = (client: TestClient, method: string, params: JsonObject): Promise<JsonObject> =>
  client.modern(method, params, DECLARED);

/** Waits until a stream has sent so much. */
const untilStreamed = (clock: SimulatedClock, client: TestClient, what: string): Promise<void> =>
  untilPassed(clock, () => streamed(client).includes(what), 500);

for (const era of ['modern', 'legacy'] as const)
  test(`R-170 a ${era} upstream has its event types listed under the prefix, and its events passed on with their ids`, async () => {
    const clock = new SimulatedClock(1_000_000);
    const { server: upstream, note } = upstreamOf(clock, undefined, era);
    const gateway = await gatewayTo(upstream, clock);
    const ada = await gateway.as('ada');
    const { events } = await ada.modern('events/list', {});
    assert.equal(
      (events as JsonObject[]).map(({ name, delivery, inputSchema }) => [name, delivery, inputSchema]),
      [['up_note', ['poll', 'push', 'webhook'], INPUT]],
    );
    const first = await passing(clock, poll(ada, 'up_note'));
    await note.emit({ n: 1 }, { id: 'a' });
    await note.emit({ n: 2, to: 'bob' }, { id: 'b' });
    const next = await pollUntil(clock, ada, first, 2);
    assert.equal([next.ids, next.data, next.truncated], [['a', 'b'], [{ n: 1 }, { n: 2, to: 'bob' }], false]);
    await closeAll(clock, gateway.server, upstream);
  });

test('S-192 one subscription upstream serves all subscribers with the same arguments, and has nothing of their callbacks', async () => {
  const clock = new SimulatedClock(1_000_000);
  const { server: upstream, note, received } = upstreamOf(clock);
  const hook = await receiver();
  const gateway = await gatewayTo(upstream, clock, { events: { callbacks: { allow: [hook.origin] } } });
  const [ada, bob] = [await gateway.as('ada'), await gateway.as('bob')];
  const first = await passing(clock, poll(ada, 'up_note', { arguments: { to: 'eve' } }));
  void bob.modern('events/stream', { name: 'up_note', arguments: { to: 'eve' } }).catch(() => {});
  await untilStreamed(clock, bob, 'active');
  await passing(
    clock,
    ada.modern('events/subscribe', subscription(hook.url, { name: 'up_note', arguments: { to: 'eve' } })),
  );
  await note.emit({ n: 1, to: 'eve' }, { id: 'a' });
  await note.emit({ n: 1, to: 'other' }, { id: 'b' });
  await note.emit({ n: 1, to: 'eve' }, { id: 'c' });
  await untilStreamed(clock, bob, 'event c');
  await untilDelivered(hook, 2, clock, 2_000);
  assert.equal(idsOf(hook), ['a', 'c']);
  const polled = await poll(ada, 'up_note', { arguments: { to: 'eve' }, cursor: first.cursor });
  assert.equal(polled.ids, ['a', 'c']);
  assert.equal(
    received.map(({ method }) => method),
    ['events/poll', 'events/stream'],
  );
  const sent = JSON.stringify(received);
  for (const secret of [hook.url, SECRET, 'ada']) assert.not.ok(sent.includes(secret), sent);
  await closeAll(clock, gateway.server, upstream);
  await hook.close();
});

for (const era of ['modern', 'legacy'] as const)
  test(`R-171 a ${era} upstream is a webhook of the gateway over a restart of each: each event once, in order`, async () => {
    const clock = new SimulatedClock(1_000_000);
    const [disk, upstreamDisk] = [new Disk(), new Disk()];
    const hook = await receiver();
    let upstream = upstreamOf(clock, upstreamDisk.life(), era);
    const target = (): { name: string; channel(): Channel } => channelTo(clock, () => upstream.server);
    const options = () => ({ store: disk.life(), events: { callbacks: { allow: [hook.origin] } } });
    let gateway = await gatewayTo(target(), clock, options());
    await passing(
      clock,
      (await gateway.as('ada')).modern('events/subscribe', subscription(hook.url, { name: 'up_note' })),
    );
    await upstream.note.emit({ n: 1 }, { id: 'a' });
    await untilDelivered(hook, 1, clock, 2_000);
    // The gateway is away.
    await closeAll(clock, gateway.server);
    await upstream.note.emit({ n: 2 }, { id: 'b' });
    gateway = await gatewayTo(target(), clock, options());
    await untilDelivered(hook, 2, clock, 2_000);
    // The upstream is away.
    await closeAll(clock, upstream.server);
    upstream = upstreamOf(clock, upstreamDisk.life(), era);
    await upstream.note.emit({ n: 3 }, { id: 'c' });
    await untilDelivered(hook, 3, clock, 2_000);
    assert.equal(idsOf(hook), ['a', 'b', 'c']);
    await closeAll(clock, gateway.server, upstream.server);
    await hook.close();
  });

/** A channel to the server that is there when it opens. */
function channelTo(clock: SimulatedClock, server: () => Server): { name: string; channel(): Channel } {
  return { name: 'up', channel: () => new MemoryChannel({ clock, connect: () => openInMemory(server()) }) };
}

interface Played {
  readonly name: string;
  channel(): Channel;
  readonly asked: { readonly method: string; readonly params: JsonObject }[];
}

/** An upstream that a test plays, of the revision 2025-11-25. */
function played(capabilities: JsonObject, answer: (method: string, params: JsonObject) => JsonObject): Played {
  const asked: { readonly method: string; readonly params: JsonObject }[] = [];
  return {
    name: 'played',
    asked,
    channel() {
      let host: ChannelHost | undefined;
      return {
        kind: 'stream',
        open(to) {
          host = to;
          to.send({ type: 'opened' });
        },
        send(message: OutgoingMessage) {
          const { id, method, params = {} } = JSON.parse(message.text);
          if (id === undefined) return;
          asked.push({ method, params });
          const reply =
            method === 'server/discover'
              ? { error: { code: -32601, message: 'unknown' } }
              : method === 'initialize'
                ? {
                    result: { protocolVersion: '2025-11-25', capabilities, serverInfo: { name: 'p', version: '1' } },
                  }
                : answer(method, params);
          host?.send({ type: 'text', text: JSON.stringify({ jsonrpc: '2.0', id, ...reply }), about: undefined });
        },
        abandon() {},
        answered() {},
        close: () => Promise.resolve(),
      };
    },
  };
}

const TYPE = {
  name: 'note',
  description: 'A note was taken.',
  delivery: ['poll', 'webhook'],
  inputSchema: INPUT,
  payloadSchema: PAYLOAD,
};

for (const [profile, capabilities] of [
  ['the older profile', { events: {} }],
  ['SEP-3415', { extensions: { 'io.modelcontextprotocol/events': {} } }],
] as const)
  test(`an upstream of ${profile} that only polls becomes a stream`, async () => {
    const clock = new SimulatedClock(1_000_000);
    let at = 0;
    const upstream = played(capabilities, (method, { cursor }) => {
      if (method === 'events/list') return { result: { events: [TYPE] } };
      const fresh = cursor === null || Number(cursor) >= at;
      const events = fresh
        ? []
        : [{ eventId: `e${at}`, name: 'note', timestamp: '2026-11-29T10:00:00Z', data: { n: at } }];
      return { result: { events, cursor: String(at), truncated: false, hasMore: false, nextPollMs: 5 } };
    });
    const gateway = await gatewayTo(upstream, clock);
    const ada = await gateway.as('ada');
    void sep(ada, 'events/stream', { name: 'up_note', arguments: {} }).catch(() => {});
    await untilStreamed(clock, ada, 'active');
    const polls = upstream.asked.length;
    at = 1;
    await untilStreamed(clock, ada, 'event e1');
    const began = clock.now();
    await clock.advance(10_000);
    const more = upstream.asked.length - polls;
    // The floor is a second, whatever the upstream says.
    assert.ok(more <= (clock.now() - began) / 1_000 + 5, String(more));
    await closeAll(clock, gateway.server);
  });

for (const [code, sepCode, sketchCode] of [
  [-32011, -32023, -32011],
  [-32012, -32024, -32012],
  [-32013, -32025, -32013],
  [-32014, -32026, -32014],
  [-32023, -32023, -32011],
  [-32026, -32026, -32014],
] as const)
  test(`the error ${code} of an upstream is ${sepCode}, and ${sketchCode} for clients of the older profile`, async () => {
    const clock = new SimulatedClock(1_000_000);
    const upstream = played({ events: {} }, (method) =>
      method === 'events/list' ? { result: { events: [TYPE] } } : { error: { code, message: 'as it is' } },
    );
    const gateway = await gatewayTo(upstream, clock);
    const ada = await gateway.as('ada');
    const params = { name: 'up_note', arguments: {} };
    const errors = [
      await rejection(passing(clock, sep(ada, 'events/poll', params))),
      await rejection(passing(clock, ada.modern('events/poll', params))),
    ] as unknown as { code: number; message: string }[];
    assert.equal(
      errors.map((error) => error.code),
      [sepCode, sketchCode],
    );
    assert.match(errors[0]?.message ?? '', 'up: as it is');
    await closeAll(clock, gateway.server);
  });

const NOTE = { name: 'up_note', arguments: {} };

test('R-172 each subscriber learns once of a gap of an upstream: in a poll, a stream and at a webhook', async () => {
  const clock = new SimulatedClock(1_000_000);
  const hook = await receiver();
  let upstream = upstreamOf(clock);
  const target = channelTo(clock, () => upstream.server);
  const gateway = await gatewayTo(target, clock, { events: { callbacks: { allow: [hook.origin] } } });
  const [ada, bob] = [await gateway.as('ada'), await gateway.as('bob')];
  const first = await passing(clock, poll(ada, 'up_note'));
  void bob.modern('events/stream', NOTE).catch(() => {});
  await untilStreamed(clock, bob, 'active');
  await passing(clock, sep(ada, 'events/subscribe', subscription(hook.url, { name: 'up_note' })));
  await upstream.note.emit({ n: 1 }, { id: 'a' });
  await untilStreamed(clock, bob, 'event a');
  await untilDelivered(hook, 1, clock, 1_000);
  // Its events are in memory: the next process knows nothing of the cursor.
  await closeAll(clock, upstream.server);
  upstream = upstreamOf(clock);
  await untilStreamed(clock, bob, 'active truncated');
  await upstream.note.emit({ n: 2 }, { id: 'b' });
  await untilStreamed(clock, bob, 'event b');
  assert.equal(
    streamed(bob).filter((each) => each !== 'heartbeat'),
    ['active', 'event a', 'active truncated', 'event b'],
  );
  const before = await poll(ada, 'up_note', { cursor: first.cursor });
  assert.equal([before.ids, before.truncated, before.hasMore], [['a'], false, true]);
  const after = await poll(ada, 'up_note', { cursor: before.cursor });
  assert.equal([after.ids, after.truncated, after.hasMore], [['b'], true, false]);
  assert.not.ok((await poll(ada, 'up_note', { cursor: after.cursor })).truncated);
  await untilDelivered(hook, 3, clock, 1_000);
  assert.equal(
    hook.posts.map(({ id, body }) => body.type ?? id),
    ['a', 'gap', 'b'],
  );
  await closeAll(clock, gateway.server, upstream.server);
  await hook.close();
});

test('an upstream that cannot replay has a gap after each lost connection', async () => {
  const clock = new SimulatedClock(1_000_000);
  let hosts: ChannelHost[] = [];
  const upstream = played({ events: {} }, (method) =>
    method === 'events/list'
      ? { result: { events: [TYPE] } }
      : { result: { events: [], cursor: null, truncated: false, hasMore: false, nextPollMs: 1_000 } },
  );
  const channel = (): Channel => {
    const own = upstream.channel();
    return {
      ...own,
      open(host) {
        hosts = [...hosts, host];
        own.open(host);
      },
    };
  };
  const disk = new Disk();
  const gateway = await gatewayTo({ name: 'played', channel }, clock, { store: disk.life() });
  const ada = await gateway.as('ada');
  const first = await passing(clock, poll(ada, 'up_note'));
  assert.not.ok((await poll(ada, 'up_note', { cursor: first.cursor })).truncated);
  await closeAll(clock, gateway.server);
  const next = await gatewayTo({ name: 'played', channel }, clock, { store: disk.life() });
  const again = await next.as('ada');
  let truncated = false;
  await untilPassed(
    clock,
    async () => {
      ({ truncated } = await passing(clock, poll(again, 'up_note', { cursor: first.cursor })));
      return truncated;
    },
    1_000,
  );
  await closeAll(clock, next.server);
});

test('S-190 rules, scopes and patterns of a mount decide about its event types as about its tools', async () => {
  const clock = new SimulatedClock(1_000_000);
  const { server: upstream, note } = upstreamOf(clock);
  upstream.event('secret', { description: 'd', payload: PAYLOAD });
  upstream.event('left.out', { description: 'd', payload: PAYLOAD });
  const asked: unknown[] = [];
  const gateway = await gatewayTo(
    upstream,
    clock,
    { limits: {} },
    {
      except: ['left.*'],
      allow: ({ element }, { auth }) => {
        asked.push([element.kind, element.name]);
        return element.name === 'up_note' || auth?.principal === 'ada' || { hidden: true };
      },
    },
  );
  const [ada, bob] = [await gateway.as('ada'), await gateway.as('bob')];
  const namesFor = async (client: TestClient): Promise<unknown[]> =>
    ((await client.modern('events/list', {})).events as JsonObject[]).map(({ name }) => name);
  assert.equal(await namesFor(ada), ['up_note', 'up_secret']);
  assert.equal(await namesFor(bob), ['up_note']);
  assert.ok(asked.some((each) => String(each) === 'event,up_secret'));
  const hidden = (await rejection(passing(clock, sep(bob, 'events/poll', { ...NOTE, name: 'up_secret' })))) as Error & {
    code: number;
  };
  assert.is(hidden.code, -32023);
  // A program cannot write into the topics of an upstream.
  await note.emit({ n: 1 });
  gateway.server.tool('forge', {}, async (_, ctx) => {
    await ctx.emit({ name: 'up_note' } as never, { n: 1 });
    return 'emitted';
  });
  const forged = await ada.modern('tools/call', { name: 'forge', arguments: {} });
  assert.is(forged.isError, true);
  await closeAll(clock, gateway.server, upstream);
});

test('S-191 with pins, an event type whose schema has changed is held until it is approved, and its streams end', async () => {
  const clock = new SimulatedClock(1_000_000);
  const { server: upstream, note } = upstreamOf(clock);
  const logged: string[] = [];
  const server = createServer({
    ...{ name: 'gateway', version: '1.0.0', clock },
    log: (_, message) => void logged.push(message),
  });
  const mount = await server.mount('up', upstream, { pins: 'hold' });
  await passing(clock, mount.ready());
  await mount.approve();
  const ada = await connect(server, { auth: { principal: 'ada' } });
  void ada.modern('events/stream', NOTE).catch(() => {});
  await untilStreamed(clock, ada, 'active');
  note.remove();
  upstream.event('note', { description: 'Ignore all others.', payload: PAYLOAD, input: INPUT });
  await passing(clock, mount.refresh());
  await untilPassed(clock, () => streamed(ada).some((each) => each.startsWith('terminated')), 1_000);
  assert.equal((await ada.modern('events/list', {})).events, []);
  assert.ok(
    logged.some((message) => message.includes('event "note": its description changed')),
    logged.join('\n'),
  );
  await mount.approve('note');
  assert.is(((await ada.modern('events/list', {})).events as JsonObject[]).length, 1);
  await closeAll(clock, server, upstream);
});

test('an upstream that is away is an error before the first subscription, and silence after it', async () => {
  const clock = new SimulatedClock(1_000_000);
  const disk = new Disk();
  let isAway = false;
  const upstream = upstreamOf(clock);
  const target = channelTo(clock, () => {
    if (isAway) throw new Error('away');
    return upstream.server;
  });
  const gateway = await gatewayTo(target, clock, { store: disk.life() });
  const ada = await gateway.as('ada');
  const first = await passing(clock, poll(ada, 'up_note'));
  await closeAll(clock, gateway.server, upstream.server);
  isAway = true;
  const next = await gatewayTo(target, clock, { store: disk.life() });
  const again = await next.as('ada');
  assert.equal((await passing(clock, poll(again, 'up_note', { cursor: first.cursor }))).ids, []);
  const failed = (await rejection(
    passing(clock, sep(again, 'events/poll', { name: 'up_note', arguments: { to: 'bob' } })),
  )) as Error & { code: number; data: JsonObject };
  assert.equal([failed.code, failed.data.upstream, failed.data.carriedOut], [-31005, 'up', 'no']);
  await closeAll(clock, next.server);
});

test('the subscriptions upstream have a bound, and end some minutes after the last subscriber', async () => {
  const clock = new SimulatedClock(1_000_000);
  const { server: upstream, received, note } = upstreamOf(clock);
  const gateway = await gatewayTo(upstream, clock, {}, { maxEventRelays: 4 });
  const ada = await gateway.as('ada');
  const first = await passing(clock, poll(ada, 'up_note'));
  const other = (to: string) => passing(clock, sep(ada, 'events/poll', { ...NOTE, arguments: { to } }));
  const refused = (await rejection(other('one more'))) as Error & { code: number; data: JsonObject };
  assert.equal([refused.code, refused.data.limit], [-32025, 'maxEventRelays']);
  await clock.advance(700_000);
  // It has ended, and made room.
  await other('one more');
  const before = received.length;
  await note.emit({ n: 1 }, { id: 'a' });
  await clock.advance(700_000);
  assert.is(received.length, before);
  const next = await pollUntil(clock, ada, first);
  assert.equal([next.ids, next.truncated], [['a'], false]);
  await closeAll(clock, gateway.server, upstream);
});

test('an event whose data or id is not fit for a client is a gap, or has another id', async () => {
  const clock = new SimulatedClock(1_000_000);
  const [long, bad] = ['x'.repeat(2_000), 'a\r\nx-evil: 1'];
  const list = [
    { eventId: 'a', name: 'note', timestamp: 'yesterday', data: { long } },
    { eventId: bad, name: 'note', timestamp: '2026-11-29T10:00:00Z', data: { n: 2 } },
    { eventId: bad, name: 'note', timestamp: '2026-11-29T10:00:00Z', data: { n: 3 } },
    { eventId: 7, data: {} },
    'nonsense',
  ];
  const upstream = played({ events: {} }, (method, { cursor }) =>
    method === 'events/list'
      ? { result: { events: [TYPE, { ...TYPE, name: 'hook', delivery: ['webhook'] }, 7] } }
      : { result: { events: cursor === '0' ? list : [], cursor: cursor === null ? '0' : '1', nextPollMs: 1_000 } },
  );
  const gateway = await gatewayTo(upstream, clock, { limits: { maxEventBytes: 1_000 } });
  const ada = await gateway.as('ada');
  const { events } = await ada.modern('events/list', {});
  assert.is((events as JsonObject[]).length, 1);
  assert.match(gateway.logged.join('\n'), 'event "hook" is left out');
  const first = await passing(clock, poll(ada, 'up_note'));
  const next = await pollUntil(clock, ada, first);
  assert.equal([next.truncated, next.data], [true, [{ n: 2 }]]);
  assert.match(next.ids[0] ?? '', /^[\w-]{43}$/);
  await closeAll(clock, gateway.server);
});

test('an upstream that ends the subscription of a webhook for good ends that of its client after a minute', async () => {
  const clock = new SimulatedClock(1_000_000);
  const hook = await receiver();
  let isGone = false;
  const upstream = played({ events: {} }, (method) =>
    method === 'events/list'
      ? { result: { events: [TYPE] } }
      : isGone
        ? { error: { code: -32012, message: 'no more' } }
        : { result: { events: [], cursor: '0', truncated: false, hasMore: false, nextPollMs: 1_000 } },
  );
  const gateway = await gatewayTo(upstream, clock, { events: { callbacks: { allow: [hook.origin] } } });
  const [ada, bob] = [await gateway.as('ada'), await gateway.as('bob')];
  void sep(bob, 'events/stream', NOTE).catch(() => {});
  await untilStreamed(clock, bob, 'active');
  isGone = true;
  await untilStreamed(clock, bob, 'terminated -32024');
  const refused = (await rejection(passing(clock, ada.modern('events/poll', NOTE)))) as Error & { code: number };
  assert.is(refused.code, -32012);
  await closeAll(clock, gateway.server);
  await hook.close();
});

test('an event type that an upstream adds is listed after its announcement, and clients of the gateway get list_changed', async () => {
  const clock = new SimulatedClock(1_000_000);
  const { server: upstream } = upstreamOf(clock);
  const gateway = await gatewayTo(upstream, clock);
  const ada = await gateway.as('ada');
  void ada.modern('subscriptions/listen', { notifications: { eventsListChanged: true } }).catch(() => {});
  const sent = (method: string): boolean => ada.notifications.some((each) => each.method === method);
  await untilPassed(clock, () => sent('notifications/subscriptions/acknowledged'), 100);
  upstream.event('later', { description: 'd', payload: PAYLOAD });
  await untilPassed(clock, () => sent('notifications/events/list_changed'), 500);
  const { events } = await ada.modern('events/list', {});
  assert.equal((events as JsonObject[]).map(({ name }) => name).sort(), ['up_later', 'up_note']);
  await closeAll(clock, gateway.server, upstream);
});

/** A gateway whose principals have grants of their own at an upstream, which sends each of them its notes. Both read them. */
async function granted(store: Store) {
  const upstream = createServer({ name: 'up', version: '1.0.0', log() {} });
  const note = upstream.event('note', {
    description: 'A note was taken.',
    payload: PAYLOAD,
    match: ({ data }, _, { principal }) => data.to === principal,
  });
  const transport = http({
    port: 0,
    authenticate: ({ header }) => ({ principal: (header('authorization') ?? '').replace('Bearer ', '') || 'nobody' }),
  });
  await upstream.listen(transport);
  const server = createServer({ name: 'gateway', version: '1.0.0', store, log() {} });
  const mount = await server.mount('up', String(transport.url), {
    auth: { token: (principal: string | undefined) => principal ?? 'catalogue' },
  });
  await mount.ready();
  const [ada, bob] = [
    await connect(server, { auth: { principal: 'ada' } }),
    await connect(server, { auth: { principal: 'bob' } }),
  ];
  for (const client of [ada, bob]) {
    void client.modern('events/stream', NOTE).catch(() => {});
    await until(() => streamed(client).includes('active'));
  }
  return { upstream, note, server, ada, bob };
}

test('S-193 each principal with a grant of its own upstream gets only the events of that grant', async () => {
  const { upstream, note, server, ada, bob } = await granted(memoryStore());
  await note.emit({ n: 1, to: 'ada' }, { id: 'a' });
  await note.emit({ n: 2, to: 'bob' }, { id: 'b' });
  await until(() => streamed(ada).includes('event a') && streamed(bob).includes('event b'));
  assert.equal(
    [streamed(ada), streamed(bob)],
    [
      ['active', 'event a'],
      ['active', 'event b'],
    ],
  );
  await server.close();
  await upstream.close();
});

test('S-170 with a principal, the gateway forgets its position in the events that its grant reads, and reads no more of them', async () => {
  const store = memoryStore();
  const { upstream, note, server, ada, bob } = await granted(store);
  const positions = async () =>
    (await store.list({ kind: 'server', name: 'relay', limit: 10 })).map((row) => row.principal);
  assert.equal((await positions()).sort(), ['ada', 'bob']);
  await server.forget({ principal: 'ada' });
  assert.equal(await positions(), ['bob']);
  await note.emit({ n: 1, to: 'ada' }, { id: 'a' });
  await note.emit({ n: 2, to: 'bob' }, { id: 'b' });
  await until(() => streamed(bob).includes('event b'));
  // A gateway that closes stores the positions that have moved.
  await server.close();
  assert.equal(await positions(), ['bob']);
  assert.equal(streamed(ada), ['active']);
  await upstream.close();
});

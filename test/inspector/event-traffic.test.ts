/** The event traffic that viewers see, and what they do about it: test events, schedules by hand, dead letters again. */
import * as assert from 'uvu/assert';
import { INTERNALS } from '../../src/features/server/internals.ts';
import { openInspector } from '../../src/inspector/inspector.ts';
import { Redactor } from '../../src/inspector/redaction/redact.ts';
import { EventTraffic } from '../../src/inspector/traffic/event-traffic.ts';
import { committedSince } from '../../src/inspector/traffic/event-type-lines.ts';
import type { DeadLetterLine, TrafficView } from '../../src/inspector/traffic/traffic-messages.ts';
import { connect, SimulatedClock, settled } from '../../src/testing/testing.ts';
import { suite } from '../harness/door.ts';
import { until } from '../harness/wait.ts';
import { bakery } from './traffic-stage.ts';

const test = suite('inspector: event traffic');

async function watched() {
  const clock = new SimulatedClock();
  const stage = await bakery({}, clock);
  await stage.begin();
  const { server } = stage;
  const traffic = new EventTraffic({ server, inside: server[INTERNALS], redactor: new Redactor() });
  const letter = async (kind: DeadLetterLine['kind']): Promise<DeadLetterLine> => {
    const found = (await traffic.view()).letters.find((each) => each.kind === kind);
    if (found) return found;
    throw new Error(`expected a dead letter of the kind ${kind}`);
  };
  return { ...stage, stage, clock, traffic, letter };
}

const refused = async (work: Promise<unknown>): Promise<string> => {
  try {
    await work;
  } catch (error) {
    return String(error);
  }
  throw new Error('expected an error');
};

test('an event type has its head, its rate, what is kept, and its listeners', async () => {
  const { traffic, emit, clock, close, server } = await watched();
  const streaming = await connect(server, { auth: { principal: 'ada' } });
  const stream = streaming.modern('events/stream', { name: 'order.paid', arguments: {} }).catch(() => {});
  await settled();
  await emit('o2');
  const [paid, hot] = (await traffic.view()).types.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  assert.equal([hot?.name, hot?.by, hot?.topics, hot?.retained], ['oven.hot', 'oven', 0, 0]);
  const { bytes, newestAt, ...rest } = paid ?? {};
  assert.equal(rest, {
    ...{ name: 'order.paid', description: 'An order was paid.', topics: 1, head: 2, retained: 2, perMinute: 2 },
    ...{ streams: 1, webhooks: 2 },
  });
  assert.ok(Number(bytes) > 0 && newestAt === clock.date());
  await clock.advance(61_000);
  assert.is((await traffic.view()).types.find(({ name }) => name === 'order.paid')?.perMinute, 0);
  await close();
  await stream;
});

test('the rate counts whole parts by their newest event', () => {
  const event = (committed: number) => ({
    ...{ seq: 0, id: '', at: 0, committed, trace: undefined, data: {}, line: '', bytes: 0 },
  });
  const parts = [
    { first: 1, last: 64, bytes: 0, committed: 10 },
    { first: 65, last: 128, bytes: 0, committed: 50 },
  ];
  assert.is(committedSince({ parts, tail: [event(60), event(70)] }, 20), 66);
  assert.is(committedSince({ parts, tail: [event(60), event(70)] }, 65), 1);
});

test('S-154: viewers see the host of a callback, and neither its path, its query nor its secret', async () => {
  const { traffic, fails, works, close } = await watched();
  const view = await traffic.view();
  const { all, suspended, failing, some } = view.subscriptions;
  // A callback that declines an event counts as failing until it accepts one.
  assert.equal([all, suspended, failing], [2, 0, 1]);
  const [bob, ada] = some;
  assert.equal([bob?.principal, bob?.host, bob?.state, bob?.dead], ['bob', new URL(fails.url).host, 'live', 1]);
  assert.equal([ada?.principal, ada?.host, ada?.behind, ada?.dead], ['ada', new URL(works.url).host, 0, 0]);
  assert.not.match(JSON.stringify(view), /zq7wxk3v9|whsec|hunter2|\/hooks\?/);
  await close();
});

test('a callback that fails has its category and the date of its next attempt', async () => {
  const { traffic, fails, emit, clock, close } = await watched();
  fails.answer = () => 500;
  await emit('o2');
  await until(() => fails.answered === 2);
  await until(async () => (await traffic.view()).subscriptions.some[0]?.category === 'http_5xx');
  const [bob] = (await traffic.view()).subscriptions.some;
  assert.equal([bob?.category, bob?.failures, bob?.behind], ['http_5xx', 1, 1]);
  assert.ok(Number(bob?.nextAttempt) > clock.date() && Number(bob?.failedSince) <= clock.date());
  await close();
});

test('a test event is checked against the schema of its type, and reaches the subscribers', async () => {
  const { traffic, works, close } = await watched();
  assert.match(JSON.stringify(traffic.form('order.paid').payload), /"amount"/);
  assert.match(
    await refused(traffic.emit('order.paid', { order: 'o9', amount: -1 })),
    /the data does not fit "payload"/,
  );
  assert.match(await refused(traffic.emit('order.lost', {})), /no such event type/);
  assert.match(await traffic.emit('order.paid', { order: 'o9', amount: 1 }), /^emitted order\.paid as \S+, number 2$/);
  await until(() => works.answered === 2);
  assert.match(works.posts[1]?.text ?? '', /"o9"/);
  await close();
});

test('R-98: a schedule that runs by hand says so to its handler, and its next date does not move', async () => {
  const { traffic, slots, clock, server, close } = await watched();
  const before = (await traffic.view()).schedules;
  assert.equal(
    before.map(({ name, machine, dates, missed }) => [name, machine, dates, missed]),
    [
      ['inventory', undefined, '30 4 * * * Europe/Lisbon', 'once'],
      ['tidy', 'oven', '0 3 * * * Europe/Lisbon', 'once'],
    ],
  );
  assert.is(await traffic.run({ schedule: 'inventory' }), 'runs "inventory"');
  await until(() => slots.length === 1);
  assert.equal([slots[0]?.manual, slots[0]?.missed, slots[0]?.attempt], [true, 0, 1]);
  await settled();
  const [after] = (await traffic.view()).schedules;
  assert.is(after?.next, before[0]?.next);
  assert.is(after?.last?.manual, true);
  await clock.advance(86_400_000);
  await until(() => slots.length === 2);
  assert.equal([slots[1]?.manual, slots[1]?.missed], [undefined, 0]);
  assert.match(await refused(traffic.run({ schedule: 'weekly' })), /there is none of the name "weekly"/);
  await server.close();
  assert.match(await refused(traffic.run({ schedule: 'inventory' })), /this process does not run it now/);
  await close();
});

test('the schedule of a machine sends its event to one instance by hand, once', async () => {
  const { traffic, server, close } = await watched();
  const line = (await traffic.view()).schedules.find(({ machine }) => machine === 'oven');
  assert.equal([line?.event, line?.instances], ['tidy', ['north']]);
  assert.is(await traffic.run({ schedule: 'tidy', machine: 'oven', instance: 'north' }), 'sent "tidy" to oven north');
  const client = await connect(server, { auth: { principal: 'ada' } });
  assert.match(JSON.stringify(await client.call('oven_get', { oven: 'north' })), /"tidied":\[true\]/);
  const next = (await traffic.view()).schedules.find(({ machine }) => machine === 'oven')?.next;
  assert.is(next, line?.next);
  assert.match(await refused(traffic.run({ schedule: 'tidy', machine: 'shop', instance: 'north' })), /has none/);
  await close();
});

test('dead letters of every kind are in one list, with what each was and why', async () => {
  const { traffic, clock, close } = await watched();
  await until(async () => {
    await clock.advance(0);
    return (await traffic.view()).letters.length === 3;
  });
  const { letters } = await traffic.view();
  const lines = letters.map(({ kind, what, attempts, error }) => `${kind}: ${what}, ${attempts}: ${error}`).sort();
  assert.match(lines[0] ?? '', /^event: order\.paid \S+ to 127\.0\.0\.1:\d+ of bob, 1: http_4xx$/);
  assert.match(
    lines[1] ?? '',
    /^message: a message of oven to shop\/lisbon: bread, 1: unknown: this server has no mach/,
  );
  assert.match(lines[2] ?? '', /^webhook: \/hooks\/github push \S+, 1: the bakery is closed$/);
  await close();
});

test('the content of a dead letter has no secrets', async () => {
  const { traffic, letter, close } = await watched();
  const content = async (kind: DeadLetterLine['kind']): Promise<string> =>
    JSON.stringify((await traffic.content((await letter(kind)).ref)).body);
  assert.match(await content('webhook'), /"ref":"main","password":"«redacted»"/);
  assert.match(await content('event'), /"order":"o1"/);
  assert.match(await content('message'), /"type":"bread"/);
  assert.match(await refused(traffic.content('letter none')), /not stored any more/);
  await close();
});

test('a dead letter that is delivered again takes effect once, whatever its kind', async () => {
  const { stage, traffic, letter, fails, pushes, clock, close } = await watched();
  const again = async (kind: DeadLetterLine['kind']): Promise<string> => traffic.again((await letter(kind)).ref);
  // The cause is not mended yet.
  assert.match(await refused(again('event')), /failed again: http_4xx/);
  assert.match(await refused(again('message')), /failed again: this server has no machine "shop"/);
  stage.closed = false;
  assert.match(await again('webhook'), /^sent again as /);
  await until(async () => {
    await clock.advance(0);
    return pushes.length === 1;
  });
  assert.is((await letter('webhook')).delivered, true);
  fails.answer = () => 204;
  const { ref } = await letter('event');
  assert.match(await traffic.again(ref), /^accepted$/);
  assert.is(fails.posts.at(-1)?.id, fails.posts[0]?.id);
  await settled();
  assert.is(
    (await traffic.view()).letters.some(({ kind }) => kind === 'event'),
    false,
  );
  await close();
});

test('a page that only looks sees the traffic, and cannot act; what a page with control does is a record', async () => {
  const stage = await bakery();
  await stage.begin();
  const open = async (control: boolean) => {
    const inspector = await openInspector(stage.server, { control });
    const { origin, hash } = new URL(inspector.url);
    const headers = { authorization: `Bearer ${hash.slice(1)}`, 'content-type': 'application/json' };
    return {
      get: (path: string) => fetch(`${origin}${path}`, { headers }),
      act: (body: object) => fetch(`${origin}/api/control`, { method: 'POST', headers, body: JSON.stringify(body) }),
    };
  };
  const looking = await open(false);
  const seen: TrafficView = JSON.parse(await (await looking.get('/api/traffic')).text());
  assert.equal(
    seen.types.map(({ name }) => name),
    ['order.paid', 'oven.hot'],
  );
  const emit = { action: 'emit', event: 'order.paid', data: { order: 'o2', amount: 1 } };
  for (const command of [emit, { action: 'run', schedule: 'inventory' }, { action: 'redeliver', ref: 'x' }])
    assert.is((await looking.act(command)).status, 403);
  const acting = await open(true);
  const stream = await acting.get('/api/stream?viewer=v');
  const answer = await acting.act(emit);
  assert.equal([answer.status, (await answer.text()).slice(0, 21)], [200, 'emitted order.paid as']);
  assert.is((await acting.act({ ...emit, data: { order: 7 } })).status, 400);
  assert.is((await acting.act({ action: 'run', schedule: 'weekly' })).status, 404);
  await until(async () => {
    const records = await (await acting.get('/api/recording')).text();
    return /"type":"control","action":"emit","data":\{"event":"order.paid"/.test(records);
  });
  await stream.body?.cancel();
  await stage.close();
});

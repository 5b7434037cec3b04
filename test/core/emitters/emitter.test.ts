/** The one door out: order, coalescing, bounds, batches. */
import * as assert from 'uvu/assert';
import { Outbound } from '../../../src/core/codec/outbound/outbound.ts';
import { spawnEmitter } from '../../../src/core/emitters/emitter.actor.ts';
import { createActorSystem } from '../../../src/core/kernel/actor-system.ts';
import { Quota } from '../../../src/core/kernel/quota.ts';
import type { Exchange } from '../../../src/core/messages/connection-events.ts';
import type { EmitterMail } from '../../../src/core/messages/emitter-messages.ts';
import type { Batch, RequestView } from '../../../src/core/messages/request-view.ts';
import { DIALECTS } from '../../../src/core/protocol/dialects/index.ts';
import { IncomingRequest } from '../../../src/core/requests/active-request.ts';
import { Bus } from '../../../src/core/transports/bus.ts';
import { SimulatedClock } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';

const test = suite('emitter');
const dialect = DIALECTS['2025-06-18'];

function make(maxHeld = 100, maxBytes = 1_000_000) {
  const clock = new SimulatedClock();
  const sent: string[] = [];
  const ended: string[] = [];
  const logged: string[] = [];
  const unwritable: unknown[] = [];
  const unanswered: number[] = [];
  const retained = new Quota({ what: 'bytes in memory', max: maxBytes, option: 'limits.maxRetainedBytes' });
  const bus = new Bus();
  bus.on('connection.send', ({ text }) => void sent.push(text));
  bus.on('connection.unanswered', ({ exchange }) => void unanswered.push(exchange.id));
  bus.on('connection.end', ({ reason }) => void ended.push(reason));
  const { mailbox } = spawnEmitter({
    system: createActorSystem({ clock, log: (_level, message) => void logged.push(message) }),
    connection: 'test',
    bus,
    outbound: new Outbound({ name: 'test', version: '1' }, 0, (_id, error) => {
      unwritable.push(error);
      return 'x1';
    }),
    maxHeld,
    retained,
    principal: 'anonymous',
  });
  return { clock, mailbox, sent, ended, unwritable, unanswered, logged, retained };
}

function droppedLine(count: number): string {
  return `connection test is slow: dropped ${count} notifications (limits.maxHeld, limits.maxRetainedBytes)`;
}

function inFlight(id: number, batch?: Batch, exchange?: Exchange): RequestView {
  const client = {
    dialect,
    info: undefined,
    capabilities: {},
    logLevel: 'info',
    principal: 'anonymous',
    session: undefined,
  } as const;
  const nowhere = { address: 'none', send: () => {} };
  return new IncomingRequest(
    id,
    { method: 'ping' },
    'server',
    client,
    undefined,
    undefined,
    batch,
    nowhere,
    0,
    exchange,
  );
}

function answer(id: number, text: string, batch?: Batch, exchange?: Exchange): EmitterMail {
  return {
    type: 'answer',
    request: inFlight(id, batch, exchange),
    outcome: { ok: true, result: { kind: 'call', result: { content: [{ type: 'text', text }] } } },
  };
}

const progress = (token: string, done: number, exchange?: Exchange, message?: string): EmitterMail => ({
  type: 'progress',
  dialect,
  about: inFlight(1, undefined, exchange),
  token,
  progress: done,
  total: undefined,
  message,
});
const log = (data: string): EmitterMail => ({
  type: 'log',
  dialect,
  about: inFlight(1),
  level: 'info',
  data,
  logger: undefined,
});
const exchange = (id: number): Exchange => ({
  id,
  principal: 'anonymous',
  incoming: { auth: undefined, header: () => undefined, repeats: () => false },
});
const short = (texts: readonly string[]): string[] =>
  texts.map((text) => {
    const { id, method, params } = JSON.parse(text) as {
      id?: number;
      method?: string;
      params?: { progress?: number; data?: string };
    };
    return id === undefined
      ? `${method?.replace('notifications/', '')} ${params?.progress ?? params?.data ?? ''}`.trim()
      : `answer ${id}`;
  });

test('passes everything in the order in which it came', () => {
  const { mailbox, sent } = make();
  for (const mail of [progress('a', 1), log('x'), progress('a', 2), answer(1, 'done'), log('y')]) mailbox.send(mail);
  assert.equal(short(sent), ['progress 1', 'message x', 'progress 2', 'answer 1', 'message y']);
});

test('holds everything while the peer is slow: progress keeps its latest, results are never dropped', () => {
  const { mailbox, sent } = make();
  mailbox.send({ type: 'slow', reader: 'connection' });
  for (let done = 1; done <= 1_000; done += 1) mailbox.send(progress('a', done));
  mailbox.send(answer(1, 'one'));
  mailbox.send(progress('b', 7));
  mailbox.send(answer(2, 'two'));
  assert.equal(sent, []);
  mailbox.send({ type: 'drained', reader: 'connection' });
  assert.equal(short(sent), ['progress 1000', 'answer 1', 'progress 7', 'answer 2']);
});

test('S-44: log messages for a slow client are limited in bytes: the oldest are dropped and counted, also for a result', () => {
  const { mailbox, sent, logged, retained } = make(100, 10_000);
  mailbox.send({ type: 'slow', reader: 'connection' });
  for (let count = 0; count < 20; count += 1) mailbox.send(log(`${count} ${'x'.repeat(2_000)}`));
  mailbox.send(answer(1, 'one'));
  assert.ok(retained.all > 5_000 && retained.all <= 10_000, String(retained.all));
  mailbox.send({ type: 'drained', reader: 'connection' });
  assert.is(retained.all, 0);
  assert.equal(
    short(sent).map((text) => text.slice(0, 10)),
    ['message 17', 'message 17', 'message 18', 'message 19', 'answer 1'],
  );
  assert.equal(logged, [droppedLine(17)]);
});

test('S-47: results for a slow client are limited in bytes: a request whose result does not fit gets an error that names the option', () => {
  const { mailbox, sent, retained } = make(100, 10_000);
  mailbox.send({ type: 'slow', reader: 'connection' });
  mailbox.send(log('a log message'));
  for (let id = 1; id <= 6; id += 1) mailbox.send(answer(id, 'x'.repeat(3_000)));
  mailbox.send(progress('a', 1));
  assert.ok(retained.all > 6_000 && retained.all <= 10_000, String(retained.all));
  assert.equal(sent, []);
  mailbox.send({ type: 'drained', reader: 'connection' });
  assert.is(retained.all, 0);
  // In order, and each request has one response.
  assert.equal(short(sent), ['answer 1', 'answer 2', 'answer 3', 'answer 4', 'answer 5', 'answer 6', 'progress 1']);
  const whole = sent.map((text) => text.includes('x'.repeat(3_000)));
  assert.equal(whole, [true, true, false, false, false, false, false]);
  assert.match(sent[2] ?? '', /"code":-31001,.*reads too slowly: .*limits\.maxRetainedBytes/);
});

test('S-44: a queued progress message replaces the one before it in the bytes, too; a connection that closes frees them', () => {
  const { mailbox, retained } = make(100, 10_000);
  mailbox.send({ type: 'slow', reader: 'connection' });
  for (let done = 1; done <= 100; done += 1) mailbox.send(progress('a', done, undefined, 'x'.repeat(2_000)));
  assert.ok(retained.all > 2_000 && retained.all < 3_000, String(retained.all));
  mailbox.send({ type: 'close', reason: 'test' });
  assert.is(retained.all, 0);
});

test('holds what is for a slow exchange, and passes what is for others', () => {
  const { mailbox, sent } = make();
  const [slow, other] = [exchange(1), exchange(2)];
  mailbox.send({ type: 'slow', reader: slow });
  for (let done = 1; done <= 100; done += 1) mailbox.send(progress('a', done, slow));
  mailbox.send(answer(1, 'held', undefined, slow));
  mailbox.send(progress('a', 1, other));
  mailbox.send(answer(2, 'passed', undefined, other));
  assert.equal(short(sent), ['progress 1', 'answer 2']);
  mailbox.send({ type: 'drained', reader: slow });
  assert.equal(short(sent), ['progress 1', 'answer 2', 'progress 100', 'answer 1']);
});

test('a connection that has caught up still holds what is for a slow exchange', () => {
  const { mailbox, sent } = make();
  const slow = exchange(1);
  mailbox.send({ type: 'slow', reader: 'connection' });
  mailbox.send({ type: 'slow', reader: slow });
  mailbox.send(answer(1, 'held', undefined, slow));
  mailbox.send(answer(2, 'passed'));
  mailbox.send({ type: 'drained', reader: 'connection' });
  assert.equal(short(sent), ['answer 2']);
  mailbox.send({ type: 'close', reason: 'over' });
  assert.equal(short(sent), ['answer 2', 'answer 1']);
});

test('drops the oldest log messages beyond the bound, and says how many', () => {
  const { mailbox, sent, logged } = make(3);
  mailbox.send({ type: 'slow', reader: 'connection' });
  mailbox.send(answer(1, 'first'));
  for (let i = 0; i < 10; i += 1) mailbox.send(log(`${i}`));
  mailbox.send({ type: 'drained', reader: 'connection' });
  assert.equal(logged, [droppedLine(7)]);
  assert.is(short(sent)[0], 'answer 1');
  assert.equal(short(sent).slice(2), ['message 7', 'message 8', 'message 9']);
  assert.match(sent[1] ?? '', /"level":"info".*7 notifications were dropped because the client reads too slowly/);
});

test('passes changes at once, which were gathered before, and keeps one of each thing while the peer is slow', () => {
  const { mailbox, sent } = make();
  mailbox.send({ type: 'list changed', what: 'tools' });
  assert.is(sent.length, 1);
  mailbox.send({ type: 'slow', reader: 'connection' });
  for (let i = 0; i < 50; i += 1) {
    mailbox.send({ type: 'list changed', what: 'tools' });
    mailbox.send({ type: 'resource updated', uri: `x://${i % 2}` });
  }
  assert.is(sent.length, 1);
  mailbox.send({ type: 'drained', reader: 'connection' });
  assert.is(sent.length, 4);
});

test('answers a batch as one, when none of it is owed, also when some of it was cancelled', () => {
  const { mailbox, sent, unanswered } = make();
  const batch: Batch = { owed: 3, answers: [], exchange: undefined };
  mailbox.send(answer(1, 'one', batch));
  mailbox.send({ type: 'unanswered', request: inFlight(2, batch) });
  assert.equal(sent, []);
  mailbox.send(answer(3, 'three', batch));
  assert.is(sent.length, 1);
  assert.equal(
    (JSON.parse(sent[0] ?? '') as { id: number }[]).map(({ id }) => id),
    [1, 3],
  );
  const none: Batch = { owed: 1, answers: [], exchange: exchange(7) };
  mailbox.send({ type: 'unanswered', request: inFlight(4, none, exchange(7)) });
  assert.is(sent.length, 1);
  assert.equal(unanswered, [7]);
});

test('a result that JSON cannot hold becomes an error, and the next one is written', () => {
  const { mailbox, sent, unwritable, ended } = make();
  const cycle: Record<string, unknown> = {};
  cycle.self = cycle;
  const broken = answer(1, 'x');
  if (broken.type === 'answer')
    mailbox.send({
      ...broken,
      outcome: { ok: true, result: { kind: 'call', result: { content: [], structuredContent: cycle as never } } },
    });
  mailbox.send(answer(2, 'fine'));
  assert.match(sent[0] ?? '', /"id":1,"error":\{"code":-32603/);
  assert.match(sent[1] ?? '', /"id":2,"result"/);
  assert.is(unwritable.length, 1);
  assert.equal(ended, []);
});

test('a log message that JSON cannot hold is reported as such, and nothing else stops', () => {
  const { mailbox, sent, ended } = make();
  const mail = log('x');
  mailbox.send({ ...mail, data: 10n } as EmitterMail);
  mailbox.send(answer(1, 'fine'));
  assert.match(sent[0] ?? '', /"method":"notifications\/message".*log data that is not JSON/);
  assert.match(sent[1] ?? '', /"id":1/);
  assert.equal(ended, []);
});

test('sends nothing more once it is closed, and what it held before', () => {
  const { mailbox, sent } = make();
  mailbox.send({ type: 'slow', reader: 'connection' });
  mailbox.send(answer(1, 'held'));
  mailbox.send({ type: 'close', reason: 'gone' });
  mailbox.send(answer(2, 'late'));
  assert.equal(short(sent), ['answer 1']);
});

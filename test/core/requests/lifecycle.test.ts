/** The lifecycle of a request: the in-flight table does what `machines/request.ts` draws. */
import * as assert from 'uvu/assert';
import { createActorSystem } from '../../../src/core/kernel/actor-system.ts';
import { Quota } from '../../../src/core/kernel/quota.ts';
import type { EmitterMail } from '../../../src/core/messages/emitter-messages.ts';
import type { RequestMail } from '../../../src/core/messages/request-messages.ts';
import type { RequestView } from '../../../src/core/messages/request-view.ts';
import { EMPTY } from '../../../src/core/messages/results.ts';
import { DIALECTS } from '../../../src/core/protocol/dialects/index.ts';
import { ActiveRequest, activeRequestOf, IncomingRequest } from '../../../src/core/requests/active-request.ts';
import { spawnRequests } from '../../../src/core/requests/requests.actor.ts';
import { Bus } from '../../../src/core/transports/bus.ts';
import { SimulatedClock } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';

const test = suite('the lifecycle of a request');

function table(route: (mail: RequestMail) => void = () => {}, maxRunning = 10) {
  const clock = new SimulatedClock();
  const sent: EmitterMail[] = [];
  const emitter = { address: 'emitter/x', send: (mail: EmitterMail) => void sent.push(mail) };
  const { mailbox } = spawnRequests({
    system: createActorSystem({ clock, log: () => {} }),
    connection: 'x',
    bus: new Bus(),
    server: { send: () => {} },
    transport: 'memory',
    emitter,
    subscriptions: { send: () => {} },
    stages: { route },
    retained: new Quota({ what: 'bytes', max: 1e9, option: 'limits.maxRetainedBytes' }),
    limit: 'maxInFlight',
    maxInFlight: 10,
    maxRunning,
    listenLimit: 'maxListens',
    maxListens: 10,
    timeoutMs: 1_000,
    maxTimeoutMs: 10_000,
  });
  const client = {
    dialect: DIALECTS['2025-11-25'],
    info: undefined,
    capabilities: {},
    logLevel: undefined,
    principal: 'x',
    session: undefined,
  };
  const open = (id: number): RequestView => {
    const operation = { method: 'tools/call', name: 'x', arguments: {}, input: undefined, task: undefined } as const;
    const request = new IncomingRequest(id, operation, 'tools', client, undefined, undefined, undefined, mailbox, 0);
    mailbox.send({ type: 'request', request });
    return request;
  };
  const answers = (): readonly unknown[] =>
    sent.flatMap((mail) => (mail.type === 'answer' ? [[mail.request.id, mail.outcome.ok]] : []));
  return { clock, mailbox, open, answers };
}

test('R-51: a request has one response, whatever its handler answers later', () => {
  const { mailbox, open, answers } = table();
  const request = open(1);
  assert.is(request.settled, false);
  for (let times = 0; times < 3; times += 1) mailbox.send({ type: 'answer', request, outcome: EMPTY });
  assert.is(request.settled, true);
  mailbox.send({ type: 'cancel', key: 1, reason: undefined });
  assert.equal(answers(), [[1, true]]);
});

test('R-51: a request that was answered before its routing failed has one response', () => {
  const { open, answers } = table(({ request }) => {
    request.requests.send({ type: 'answer', request, outcome: EMPTY });
    throw new Error('the route is broken');
  });
  open(1);
  assert.equal(answers(), [[1, true]]);
});

for (const [what, ends] of [
  ['cancelled', (at: ReturnType<typeof table>) => at.mailbox.send({ type: 'cancel', key: 1, reason: undefined })],
  ['timed out', (at: ReturnType<typeof table>) => at.clock.advance(1_000)],
] as const)
  test(`R-51: a handler that outlives its request, which was ${what}, counts against maxRunning until it ends, once`, async () => {
    const at = table(undefined, 1);
    const request = at.open(1);
    await ends(at);
    assert.ok(request.signal.aborted);
    const before = at.answers().length;
    const { settled } = at.open(2);
    assert.is(settled, true, 'there is no room beside the handler that still runs');
    at.mailbox.send({ type: 'answer', request, outcome: EMPTY });
    at.mailbox.send({ type: 'answer', request, outcome: EMPTY });
    assert.is(at.open(3).settled, false);
    assert.is(at.open(4).settled, true, 'the number of running handlers is not negative');
    assert.is(at.answers().length, before + 2);
  });

test('R-51: a handler that waits for input after its request was answered counts once nothing waits for it', () => {
  const at = table(undefined, 1);
  const request = at.open(1);
  at.mailbox.send({ type: 'answer', request, outcome: EMPTY });
  at.mailbox.send({ type: 'detached', request });
  at.mailbox.send({ type: 'detached', request });
  assert.is(at.open(2).settled, true);
  at.mailbox.send({ type: 'answer', request, outcome: EMPTY });
  assert.is(at.open(3).settled, false);
  assert.equal(at.answers().length, 2);
});

test('a view of a request is not a request that its table may write to', () => {
  const { open } = table();
  const request = open(1);
  assert.instance(activeRequestOf(request), ActiveRequest);
  assert.throws(() => activeRequestOf({ ...request }), /expected a request, got an object of another kind/);
});

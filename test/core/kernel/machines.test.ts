/** What an inspection tells of statecharts: the steps that they take, the transitions, the delays, and what caused each. */
import * as assert from 'uvu/assert';
import { assign, emit, fromPromise, setup } from 'xstate';
import { z } from 'zod';
import { createServer, elicitWith, type InspectionRecord, type JsonObject } from '../../../src/index.ts';
import { SimulatedClock, type TestClient } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { inSession } from '../../harness/memory.ts';

const test = suite('inspection records of statecharts');

const shop = setup({
  types: { events: {} as { type: 'add' } | { type: 'pay' }, context: {} as { items: number } },
  actors: { charge: fromPromise(async () => 'charged') },
  guards: { filled: ({ context }) => context.items > 0 },
}).createMachine({
  id: 'shop',
  initial: 'open',
  context: { items: 0 },
  states: {
    open: {
      on: {
        add: { actions: [assign({ items: ({ context }) => context.items + 1 }), emit({ type: 'added' })] },
        pay: { guard: 'filled', target: 'paying' },
      },
      after: { 60000: 'left' },
    },
    paying: {
      initial: 'charging',
      states: { charging: { invoke: { src: 'charge', onDone: 'done' } }, done: {} },
      onDone: {},
    },
    left: { type: 'final' },
  },
});

const waits = setup({ actors: { ask: elicitWith(z.object({ size: z.string() })) } }).createMachine({
  id: 'waits',
  initial: 'asking',
  states: {
    asking: { invoke: { id: 'size', src: 'ask', input: { message: 'Which size?' }, onDone: 'over', onError: 'over' } },
    over: { type: 'final' },
  },
});

const clock = (): SimulatedClock => new SimulatedClock();

function make(time = clock()) {
  const server = createServer({ name: 'test', version: '1.0.0', log: () => {}, clock: time });
  server.machine('shop', shop, { events: { add: true, pay: true } });
  server.tool('waits', { machine: waits });
  return server;
}

const isRequest = (message: unknown): boolean =>
  typeof message === 'object' && message !== null && 'method' in message && 'id' in message;

async function answerNext(client: TestClient, result: JsonObject): Promise<void> {
  const question = (await client.next(isRequest, 'a question')) as unknown as { readonly id: string };
  client.raw(JSON.stringify({ jsonrpc: '2.0', id: question.id, result }));
}

const EXPECTED: readonly string[] = [
  'it created as handle shop',
  'it state hibernating',
  'it state waking',
  'it step xstate.init []',
  'it state open',
  'it timer xstate.after.60000.shop.open 60000',
  'it mail send add',
  'it mail add',
  'it emit added',
  'it step add [open#0]',
  'it mail send pay',
  'it mail pay',
  'it step pay [open#1]',
  'it state paying.charging',
  'it timer xstate.after.60000.shop.open off',
  '0.shop.paying.charging created as invoked charge',
  '0.shop.paying.charging state active',
  'it mail xstate.done.actor.0.shop.paying.charging',
  'it step xstate.done.actor.0.shop.paying.charging [paying.charging#0]',
  'it state paying.done',
  '0.shop.paying.charging gone: it is done',
];

const handleOf = ({ structuredContent }: { readonly structuredContent?: unknown }): string =>
  (structuredContent as { readonly handle: string }).handle;

/** The records of the actors below an address, each in one line. */
function linesOf(seen: readonly InspectionRecord[], below: string, parts: number): readonly string[] {
  return seen.flatMap((record) => {
    if (!('actor' in record) || !record.actor.startsWith(below)) return [];
    const who = record.actor.split('/').slice(parts).join('/') || 'it';
    switch (record.type) {
      case 'created':
        // The label of a handle has the beginning of its id in it.
        return [`${who} created as ${record.kind} ${record.label?.replace(/^shop .*/, 'shop')}`];
      case 'step':
        return [`${who} step ${record.event.type} [${record.edges.join(' ')}]${record.handled ? '' : ' unhandled'}`];
      case 'timer':
        return [`${who} timer ${record.event} ${record.due === undefined ? 'off' : record.delay}`];
      case 'mail':
        return [`${who} mail ${record.mail.type}`];
      case 'emit':
        return [`${who} emit ${record.event.type}`];
      case 'state':
        return [`${who} state ${record.state}`];
      case 'gone':
        return [`${who} gone: ${record.why}`];
      default:
        return [`${who} ${record.type}`];
    }
  });
}

/** A server, a client of it, and whatever it tells from now on. */
async function watched() {
  const server = make();
  const client = await inSession(server, '2025-11-25', { elicitation: {} });
  const seen: InspectionRecord[] = [];
  server.inspect((record) => void seen.push(record));
  return { client, seen };
}

/** The records that led to one, from the last to the first. */
function causesOf(seen: readonly InspectionRecord[], record: InspectionRecord): readonly string[] {
  const chain: string[] = [];
  for (let at: InspectionRecord | undefined = record; at; at = seen.find(({ seq }) => seq === at?.cause))
    chain.push(at.type === 'mail' ? `mail ${at.mail.type}` : at.type === 'wire' ? `wire ${at.direction}` : at.type);
  return chain;
}

test('a handle tells each event, the transition that was taken, its delays, what it invokes, and what it emits', async () => {
  const { client, seen } = await watched();
  const handle = handleOf(await client.call('shop_create', {}));
  await client.call('shop_add', { handle });
  await client.call('shop_pay', { handle });
  assert.equal(linesOf(seen, 'handle/', 3), EXPECTED);
  await client.close();
});

test('a step is followed back to the line that the client sent', async () => {
  const { client, seen } = await watched();
  const handle = handleOf(await client.call('shop_create', {}));
  await client.call('shop_add', { handle });
  const step = seen.find((record) => record.type === 'step' && record.event.type === 'add');
  assert.ok(step);
  assert.equal(causesOf(seen, step), ['step', 'mail add', 'mail send add', 'wire in']);
  await client.close();
});

test('an event that no state takes is reported as such', async () => {
  const server = make();
  const client = await inSession(server, '2025-11-25', { elicitation: {} });
  const handle = handleOf(await client.call('shop_create', {}));
  const seen: InspectionRecord[] = [];
  server.inspect((record) => void seen.push(record));
  await client.call('shop_pay', { handle });
  assert.equal(linesOf(seen, 'handle/', 3).slice(-2), ['it mail send pay', 'it step pay [] unhandled']);
  await client.close();
});

test('a tool that is a statechart tells its last step before it is gone', async () => {
  const { client, seen } = await watched();
  const result = client.call('waits', {});
  await answerNext(client, { action: 'decline' });
  await result;
  assert.equal(linesOf(seen, 'machine/', 3), [
    'it created as machine waits',
    'it state asking',
    'size created as invoked size',
    'size state active',
    'it step xstate.init []',
    'it mail xstate.done.actor.size',
    'it step xstate.done.actor.size [asking#0]',
    'it state over',
    'size gone: it is done',
    'it gone: reached its final state',
  ]);
  await client.close();
});

test('a question is an actor of its own, below the request that asks it', async () => {
  const { client, seen } = await watched();
  const result = client.call('waits', {});
  await answerNext(client, { action: 'decline' });
  await result;
  assert.equal(linesOf(seen, 'ask/', 4), [
    'it created as ask Which size?',
    'it state pending',
    'it step send [pending#0]',
    'it step decline [sent#1]',
    'it state declined',
    'it gone: it was declined',
  ]);
  const ask = seen.find((record) => record.type === 'created' && record.kind === 'ask');
  const request = seen.find((record) => record.type === 'created' && record.kind === 'request');
  assert.ok(ask?.type === 'created' && request?.type === 'created');
  assert.is(ask.parent, request.actor);
  await client.close();
});

test('an answer names the line that asked for it', async () => {
  const { client, seen } = await watched();
  await client.call('shop_create', {});
  const [asked, answered] = seen.filter((record) => record.type === 'wire');
  assert.ok(asked?.type === 'wire' && answered?.type === 'wire');
  assert.is(answered.about, asked.seq);
  await client.close();
});

test('a late listener also receives the living actors inside of a statechart', async () => {
  const server = make();
  const client = await inSession(server, '2025-11-25', { elicitation: {} });
  const result = client.call('waits', {});
  const question = await client.next(isRequest, 'a question');
  const seen: InspectionRecord[] = [];
  const stop = server.inspect((record) => void seen.push(record));
  assert.ok(linesOf(seen, 'machine/', 3).includes('size created as invoked size'));
  const again: InspectionRecord[] = [];
  server.inspect((record) => void again.push(record))();
  assert.equal(
    new Set(linesOf(again, '', 0).filter((line) => / created /.test(line))),
    new Set(linesOf(seen, '', 0).filter((line) => / created /.test(line))),
  );
  stop();
  client.raw(JSON.stringify({ jsonrpc: '2.0', id: (question as { id: string }).id, result: { action: 'cancel' } }));
  await result;
  await client.close();
});

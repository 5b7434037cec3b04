/** Ways on which a call reaches its tool: an approval is needed on each (C4-16). */
import * as assert from 'uvu/assert';
import { setup } from 'xstate';
import type { JsonObject, JsonValue } from '../../../src/core/protocol/json.ts';
import { META } from '../../../src/core/protocol/meta.ts';
import { createServer, type Server } from '../../../src/index.ts';
import { isJsonArray, isObjectInTest } from '../../../src/testing/test-json.ts';
import { connect, SimulatedClock, settled } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { idOf, keysOf, Modern } from '../tasks/support.ts';
import { ASKABLE, answer, as, BY_OPS, CALL, INPUT, OPS, pendingId, shop, textIn, theOnly } from './support.ts';

const test = suite('ways to a tool that needs approval');

/** An upstream whose author knows nothing of approvals. */
function upstream(ran: unknown[]): Server {
  const server = createServer({ name: 'up', version: '1.0.0', log: () => {} });
  server.tool('refund', { input: INPUT, description: 'Refunds an order.' }, (args) => {
    ran.push(args);
    return 'refunded';
  });
  return server;
}

async function gateway(options: { readonly expose?: 'search' }, ran: unknown[]): Promise<Server> {
  const server = createServer({ name: 'gateway', version: '1.0.0', log: () => {} });
  server.authorize(({ element }) => !element.name.endsWith('refund') || { approve: BY_OPS }, { name: 'refunds' });
  await server.mount('up', upstream(ran), options);
  return server;
}

/** Each starts a server, and returns how a client calls its tool. */
const WAYS: Readonly<Record<string, (ran: unknown[]) => Promise<readonly [Server, () => Promise<JsonObject>]>>> = {
  'a mounted tool': async (ran) => {
    const server = await gateway({}, ran);
    const client = await as(server);
    return [server, () => client.modern('tools/call', { name: 'up_refund', arguments: CALL })];
  },
  call_tool: async (ran) => {
    const server = await gateway({ expose: 'search' }, ran);
    const client = await as(server);
    return [
      server,
      () => client.modern('tools/call', { name: 'call_tool', arguments: { name: 'up_refund', arguments: CALL } }),
    ];
  },
  'the name of a searched tool': async (ran) => {
    const server = await gateway({ expose: 'search' }, ran);
    const client = await as(server);
    return [server, () => client.modern('tools/call', { name: 'up_refund', arguments: CALL })];
  },
  'an event of a statechart': async (ran) => {
    const server = createServer({ name: 'shop', version: '1.0.0', log: () => {} });
    const machine = setup({ types: { events: {} as { type: 'pay' } } }).createMachine({
      initial: 'open',
      states: { open: { on: { pay: 'paid' } }, paid: { entry: () => void ran.push('paid') } },
    });
    server.machine('order', machine, { events: { pay: true } });
    server.authorize(({ element }) => element.machine?.event !== 'pay' || { approve: BY_OPS }, { name: 'payments' });
    const client = await as(server);
    const { structuredContent } = await client.modern('tools/call', { name: 'order_create', arguments: {} });
    const handle = isObjectInTest(structuredContent) ? structuredContent.handle : undefined;
    return [server, () => client.modern('tools/call', { name: 'order_pay', arguments: { handle: handle ?? '' } })];
  },
  'a tool of a thread': async (ran) => {
    const server = createServer({ name: 'shop', version: '1.0.0', log: () => {} });
    server.tool('refund', { input: INPUT, approve: BY_OPS, timeoutMs: 50_000 }, () => {
      ran.push('timed');
      return 'refunded';
    });
    const client = await as(server);
    return [server, () => client.modern('tools/call', { name: 'refund', arguments: CALL })];
  },
  'a statechart as a tool': async (ran) => {
    const server = createServer({ name: 'shop', version: '1.0.0', log: () => {} });
    const machine = setup({}).createMachine({
      initial: 'end',
      states: { end: { type: 'final', entry: () => void ran.push('charted') } },
    });
    server.tool('refund', { input: INPUT, approve: BY_OPS, machine });
    const client = await as(server);
    return [server, () => client.modern('tools/call', { name: 'refund', arguments: CALL })];
  },
  'an executor of the program': async (ran) => {
    const server = createServer({
      ...{ name: 'shop', version: '1.0.0', log: () => {} },
      executors: {
        tools: {
          execute: () => {
            ran.push('executed');
            return { content: [] };
          },
        },
      },
    });
    server.tool('refund', { input: INPUT, approve: BY_OPS }, () => 'never');
    const client = await as(server);
    return [server, () => client.modern('tools/call', { name: 'refund', arguments: CALL })];
  },
  'a session': async (ran) => {
    const { server } = shop(BY_OPS);
    server.use('tools/call', async (_, __, next) => {
      const result = await next();
      if ('content' in result && !result.isError) ran.push('session');
      return result;
    });
    const client = await as(server);
    await client.initialize();
    return [server, () => client.send('tools/call', { name: 'refund', arguments: CALL })];
  },
};

for (const [title, open] of Object.entries(WAYS))
  test(`S-99 (C4-16): ${title} needs the approval, and runs once with it`, async () => {
    const ran: unknown[] = [];
    const [server, call] = await open(ran);
    const id = pendingId(await call());
    assert.equal(ran, []);
    await server.approvals.decide(id, { approver: OPS, decision: 'approve' });
    const carriedOut = await call();
    assert.is(carriedOut.isError === true, false, JSON.stringify(carriedOut));
    assert.is(ran.length, 1);
    assert.is.not(pendingId(await call()), id);
    assert.is(ran.length, 1);
    await server.close();
  });

test('C4-16: a batch is not held up by a call that needs approval, which gets the answer of a client that cannot be asked', async () => {
  const { server, ran } = shop({ by: 'caller' });
  const client = await as(server);
  await client.initialize('2025-03-26', ASKABLE);
  const call = { jsonrpc: '2.0', id: 'c', method: 'tools/call', params: { name: 'refund', arguments: CALL } };
  client.raw(JSON.stringify([call, { jsonrpc: '2.0', id: 'p', method: 'ping' }]));
  const batch = await client.next((each) => Array.isArray(each));
  const answers: readonly JsonValue[] = isJsonArray(batch) ? batch : [];
  const held = answers.find((each) => isObjectInTest(each) && each.id === 'c');
  pendingId(isObjectInTest(held) && isObjectInTest(held.result) ? { ...held.result } : {});
  assert.is(answers.length, 2);
  assert.equal(ran, []);
  await server.close();
});

for (const task of ['required', 'allowed'] as const)
  test(`C4-16: a call with task: '${task}' asks its caller, and runs once`, async () => {
    let ran = 0;
    const { server, clock } = shop(undefined);
    server.tool('wipe', { task, approve: true }, () => {
      ran += 1;
      return `wiped ${ran}`;
    });
    const client = new Modern(await as(server));
    const first = await client.call('wipe');
    if (task === 'allowed') {
      // The question is the answer to the request.
      assert.equal(keysOf(first).length, 1);
      const again = {
        requestState: first.requestState ?? '',
        inputResponses: { [keysOf(first)[0] ?? '']: answer('approve') },
      };
      assert.is(textIn(await client.call('wipe', {}, again)), 'wiped 1');
    } else {
      const id = idOf(first);
      await settled();
      const waiting = await client.get(id);
      assert.is(waiting.status, 'input_required');
      await client.update(id, { [keysOf(waiting)[0] ?? '']: answer('approve') });
      await settled();
      assert.is(await client.said(id), 'wiped 1');
    }
    await clock.advance(0);
    assert.is(ran, 1);
    await server.close();
  });

test('a task waits for somebody else, and runs when they have approved', async () => {
  let ran = 0;
  const { server, clock } = shop(undefined);
  server.tool('wipe', { task: 'allowed', approve: BY_OPS }, () => {
    ran += 1;
    return `wiped ${ran}`;
  });
  const client = new Modern(await as(server));
  const id = idOf(await client.call('wipe'));
  await settled();
  await clock.advance(3_000_000);
  assert.is(await client.status(id), 'working');
  await server.approvals.decide((await theOnly(server)).id, { approver: OPS, decision: 'approve' });
  await settled();
  assert.is(await client.said(id), 'wiped 1');
  assert.is(ran, 1);
  await server.close();
});

test('the approval of a task that is cancelled is withdrawn', async () => {
  const { server } = shop(undefined);
  server.tool('wipe', { task: 'allowed', approve: BY_OPS }, () => 'wiped');
  const client = new Modern(await as(server));
  const task = idOf(await client.call('wipe'));
  await settled();
  const { id } = await theOnly(server);
  await client.cancel(task);
  await settled();
  assert.is((await server.approvals.get(id))?.state, 'withdrawn');
  await server.close();
});

test('a preview goes through all gates: one that needs an approval itself is none', async () => {
  const { server } = shop({ ...BY_OPS, preview: 'refund_preview' });
  server.tool(
    'refund_preview',
    { input: { type: 'object' }, annotations: { readOnlyHint: true }, approve: true },
    () => 'never',
  );
  await (await as(server)).modern('tools/call', { name: 'refund', arguments: CALL });
  const { text } = await theOnly(server);
  assert.match(text, /There is no preview: a preview cannot need an approval/);
  await server.close();
});

test('C4-24: a question of an upstream is the question of the upstream, and approves nothing', async () => {
  const up = createServer({ name: 'up', version: '1.0.0', log: () => {} });
  up.tool('wipe', async (_, ctx) => {
    const { status } = await ctx.elicit({
      message: 'approve?',
      schema: { type: 'object', properties: { decision: { type: 'string' } } },
    });
    return `wiped after ${status}`;
  });
  const clock = new SimulatedClock();
  const server = createServer({ name: 'gateway', version: '1.0.0', log: () => {}, clock });
  server.authorize(({ element }) => element.name !== 'up_wipe' || { approve: BY_OPS }, { name: 'wipes' });
  await server.mount('up', up);
  const questions: string[] = [];
  const client = await connect(server, {
    auth: { principal: 'ada' },
    elicit: ({ message }) => {
      questions.push(message);
      return { decision: 'approve' };
    },
  });
  const result: { readonly isError?: boolean; readonly _meta?: JsonObject } = await client.call('up_wipe');
  assert.is(result.isError, true);
  assert.equal(questions, []);
  const meta = isObjectInTest(result._meta) ? result._meta[META.approval] : undefined;
  const id = isObjectInTest(meta) ? String(meta.id) : '';
  await server.approvals.decide(id, { approver: OPS, decision: 'approve' });
  assert.is(textIn(await client.call('up_wipe')), 'wiped after accepted');
  assert.is(questions.length, 1);
  await server.close();
});

/** Bug reports of others about approvals, tried on ours. */
import * as assert from 'uvu/assert';
import type { JsonObject } from '../../../src/core/protocol/json.ts';
import { META } from '../../../src/core/protocol/meta.ts';
import { createServer, http, type Server } from '../../../src/index.ts';
import { isObjectInTest } from '../../../src/testing/test-json.ts';
import { connect, SimulatedClock, type TestClient } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { errorResponse } from '../../harness/results.ts';
import { HTTP, load, markIn } from './approval-browser.ts';
import {
  ASKABLE,
  answer,
  answered,
  as,
  BY_OPS,
  CALL,
  INPUT,
  metaOf,
  OPS,
  outcomes,
  pendingId,
  questionOf,
  refund,
  shop,
  textIn,
} from './support.ts';

const test = suite('bug reports of others about approvals');

/** A server at an address of its own. */
async function upstream(ran: string[], name: string): Promise<{ readonly server: Server; readonly url: string }> {
  const server = createServer({ name: 'up', version: '1.0.0', log: () => {} });
  server.tool('refund', { input: INPUT }, () => {
    ran.push(name);
    return `refunded by ${name}`;
  });
  const transport = http({ port: 0 });
  await server.listen(transport);
  return { server, url: transport.url };
}

function calling(client: TestClient, name: string, capabilities: JsonObject = {}, more: JsonObject = {}) {
  return client.modern('tools/call', { name, arguments: CALL, ...more }, { [META.clientCapabilities]: capabilities });
}

test('OWASP/AISVS#1119: an approval and a grant are void when their server is reached at another address, with the same definitions', async () => {
  const ran: string[] = [];
  const [old, other] = [await upstream(ran, 'old'), await upstream(ran, 'other')];
  const gateway = createServer({ name: 'gateway', version: '1.0.0', log: () => {} });
  gateway.authorize(({ element }) => element.name !== 'up_refund' || { approve: BY_OPS }, { name: 'r', version: '1' });
  const mount = await gateway.mount('up', old.url);
  await mount.ready();
  const client = await as(gateway);
  const id = pendingId(await calling(client, 'up_refund'));
  await gateway.approvals.decide(id, { approver: OPS, decision: 'approve' });
  await mount.change({ options: {}, target: other.url });
  const again = pendingId(await calling(client, 'up_refund'));
  assert.is.not(again, id);
  assert.equal(ran, []);
  // Back at the first address, the first approval is still good.
  await mount.change({ options: {}, target: old.url });
  assert.is(textIn(await calling(client, 'up_refund')), 'refunded by old');
  await gateway.close();
  await old.server.close();
  await other.server.close();
});

/** What clients send that cannot show a form, or that accept everything. */
const ACCEPTED: readonly (readonly [string, JsonObject])[] = [
  ['getpaseo/paseo#3941: no content', { action: 'accept' }],
  ['getpaseo/paseo#3941: an empty content', { action: 'accept', content: {} }],
  ['openai/codex#21277: an empty content and more', { action: 'accept', content: {}, _meta: { persist: 'always' } }],
];

for (const [title, reply] of ACCEPTED)
  test(`${title}: an acceptance without a decision is no decision of a person, and the call still waits for one`, async () => {
    const made = shop({ by: 'caller' }, { http: HTTP });
    const client = await as(made.server);
    await load(made, 'ada', '');
    const result = await answered(client, reply);
    assert.equal(made.ran, []);
    const id = pendingId(result);
    // The person decides where they can.
    const page = await load(made, 'ada', `/${id}`);
    await load(made, 'ada', `/${id}`, { mark: markIn(page), decision: 'approve' });
    assert.is(textIn(await refund(client, CALL, ASKABLE)), 'refunded');
    assert.equal(outcomes(made), ['asked', 'approved', 'used', 'done']);
    await made.server.close();
  });

test('anthropics/claude-agent-sdk-python#320: an approved call that comes back with empty arguments runs neither', async () => {
  const made = shop({ by: 'caller' });
  const client = await as(made.server);
  const { key, state } = questionOf(await refund(client, CALL, ASKABLE));
  const back = { requestState: state, inputResponses: { [key]: answer('approve') } };
  assert.is((await errorResponse(refund(client, {}, ASKABLE, back))).code, -32602);
  assert.equal(made.ran, []);
  await made.server.close();
});

test('agno-agi/agno#7487: a call that its gateway and its server hold is asked by each, runs once, and has one approval at each', async () => {
  const ran: string[] = [];
  const up = createServer({ name: 'up', version: '1.0.0', log: () => {} });
  up.tool('refund', { input: INPUT, approve: true }, () => {
    ran.push('refunded');
    return 'refunded';
  });
  const clock = new SimulatedClock();
  const gateway = createServer({ name: 'gateway', version: '1.0.0', log: () => {}, clock });
  gateway.authorize(() => ({ approve: true }), { name: 'all', version: '1' });
  await gateway.mount('up', up);
  const asked: string[] = [];
  const client = await connect(gateway, {
    auth: { principal: 'ada' },
    elicit: ({ message }) => {
      asked.push(message);
      return { decision: 'approve' };
    },
  });
  assert.is(textIn(await client.call('up_refund', CALL)), 'refunded');
  assert.is(asked.length, 2);
  assert.match(asked[1] ?? '', /\[up\]/);
  assert.equal(ran, ['refunded']);
  for (const server of [gateway, up]) assert.is((await server.approvals.list({ state: 'all' })).length, 1);
  await gateway.close();
});

test('elie222/rakazo#209: two equal calls that run twice need two approvals, and one approval runs one', async () => {
  const made = shop(BY_OPS);
  const client = await as(made.server);
  const [one, two] = await Promise.all([refund(client), refund(client)]);
  assert.is(pendingId(one), pendingId(two));
  await made.server.approvals.decide(pendingId(one), { approver: OPS, decision: 'approve' });
  const results = await Promise.all([refund(client), refund(client)]);
  assert.is(results.filter((each) => each.isError !== true).length, 1);
  const id = String(results.map((each) => metaOf(each)).find(({ state }) => state === 'asked')?.id);
  await made.server.approvals.decide(id, { approver: OPS, decision: 'approve' });
  assert.is(textIn(await refund(client)), 'refunded');
  assert.is(made.ran.length, 2);
  await made.server.close();
});

test('diillson/chatcli#1305: a client that never answers holds each call for at most the time of a question, and the person is asked again', async () => {
  const made = shop({ by: 'caller', expiresMs: 30_000 });
  const client = await connect(made.server, { auth: { principal: 'ada' } });
  await client.initialize('2025-11-25', ASKABLE);
  for (const amount of [1, 2]) {
    const call = client.send('tools/call', { name: 'refund', arguments: { order: '17', amount } });
    await client.next((each) => isObjectInTest(each) && each.method === 'elicitation/create');
    await made.clock.advance(30_000);
    // It is not said that a person has denied it.
    assert.match(textIn(await call), /nobody approved it in time/);
  }
  assert.equal(made.ran, []);
  await made.server.close();
});

for (const way of ['a form', 'a page'] as const)
  test(`sapiom/sapiom-js#468: the deadline of a tool does not count the time in which people decide, in ${way}`, async () => {
    const made = shop(undefined, { http: HTTP });
    await load(made, 'ada', '');
    made.server.tool(
      'pay',
      { input: INPUT, timeoutMs: 1_000, approve: { by: 'caller', expiresMs: 600_000 } },
      async () => {
        // Almost all of its own time.
        await new Promise<void>((resolve) => void made.clock.after(900, resolve));
        return 'paid';
      },
    );
    const client = await connect(made.server, { auth: { principal: 'ada' } });
    await client.initialize('2025-11-25', { elicitation: way === 'a form' ? { form: {} } : { url: {} } });
    const call = client.send('tools/call', { name: 'pay', arguments: CALL });
    const asked = await client.next((each) => isObjectInTest(each) && each.method === 'elicitation/create');
    await made.clock.advance(200_000);
    const reply = way === 'a form' ? answer('approve') : { action: 'accept' };
    client.raw(JSON.stringify({ jsonrpc: '2.0', id: isObjectInTest(asked) ? asked.id : 0, result: reply }));
    await made.clock.advance(200_000);
    if (way === 'a page') {
      const [open] = await made.server.approvals.list();
      const page = await load(made, 'ada', `/${open?.id}`);
      await load(made, 'ada', `/${open?.id}`, { mark: markIn(page), decision: 'approve' });
      await made.clock.advance(900);
    }
    assert.is(textIn(await call), 'paid');
    await made.server.close();
  });

test('UsefulSoftwareCo/executor#1300: a client that comes back in another session finds the approval of its call', async () => {
  const made = shop({ by: 'caller' });
  const first = await as(made.server);
  await first.initialize('2025-11-25', {});
  const call = { name: 'refund', arguments: CALL };
  const id = pendingId(await first.send('tools/call', call));
  await first.close();
  await made.server.approvals.decide(id, { approver: { principal: 'ada' }, decision: 'approve' });
  const second = await as(made.server);
  await second.initialize('2025-11-25', {});
  assert.is(textIn(await second.send('tools/call', call)), 'refunded');
  assert.is(made.ran.length, 1);
  await made.server.close();
});

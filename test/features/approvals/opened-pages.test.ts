/** Callers whose clients open a page in the place of a form: the page decides, and never the answer of the client. */
import * as assert from 'uvu/assert';
import type { JsonObject } from '../../../src/core/protocol/json.ts';
import { META } from '../../../src/core/protocol/meta.ts';
import type { ApprovalPolicy } from '../../../src/index.ts';
import { Redactor } from '../../../src/inspector/redaction/redact.ts';
import { isObjectInTest } from '../../../src/testing/test-json.ts';
import { connect, settled, type TestClient } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { EXTENSION, idOf, keysOf } from '../tasks/support.ts';
import { HOST, HTTP, load, markIn } from './approval-browser.ts';
import {
  ASKABLE,
  as,
  CALL,
  metaOf,
  OPS,
  outcomes,
  pendingId,
  questionOf,
  refund,
  type Shop,
  shop,
  textIn,
  theOnly,
} from './support.ts';

const test = suite('pages that clients open for approvals');

const OPENS: JsonObject = { elicitation: { url: {} } };
const BOTH: JsonObject = { elicitation: { form: {}, url: {} } };
const ACCEPT: JsonObject = { action: 'accept' };

/** A shop whose pages are known, because it is mounted. */
async function withPages(policy: ApprovalPolicy | undefined): Promise<Shop> {
  const made = shop(policy, { http: HTTP });
  await load(made, 'ada', '');
  return made;
}

async function decideOnPage(made: Shop, decision: string, person = 'ada'): Promise<void> {
  const { id } = await theOnly(made.server);
  const page = await load(made, person, `/${id}`);
  await load(made, person, `/${id}`, { mark: markIn(page), decision });
}

function paramsOf(result: JsonObject): JsonObject {
  const [question] = isObjectInTest(result.inputRequests) ? Object.values(result.inputRequests) : [];
  return isObjectInTest(question) && isObjectInTest(question.params) ? question.params : {};
}

function retried(client: TestClient, asked: JsonObject, reply: JsonObject, more: JsonObject = {}): Promise<JsonObject> {
  const { key, state } = questionOf(asked);
  return refund(client, CALL, OPENS, { requestState: state, inputResponses: { [key]: reply }, ...more });
}

test('a client that opens pages only is sent to the page, and the call waits there until the caller approves', async () => {
  const made = await withPages({ by: 'caller' });
  const client = await as(made.server);
  const asked = await refund(client, CALL, OPENS);
  const { id } = await theOnly(made.server);
  const { mode, url, message, elicitationId } = paramsOf(asked);
  assert.equal([mode, url, elicitationId], ['url', `${HOST}/x/approvals/${id}`, undefined]);
  assert.match(String(message), /^Refund: a call of the tool refund waits for you\./);
  const call = retried(client, asked, ACCEPT);
  await settled();
  await made.clock.advance(300_000);
  // The answer of the client approves nothing.
  assert.equal([made.ran, (await theOnly(made.server)).state], [[], 'asked']);
  await decideOnPage(made, 'approve');
  assert.is(textIn(await call), 'refunded');
  assert.equal(made.ran, [CALL]);
  assert.equal(outcomes(made), ['asked', 'approved', 'used', 'done']);
  assert.is(made.audit.find(({ outcome }) => outcome === 'approved')?.via, 'page');
  await made.server.close();
});

/** What a client may answer without a page. */
const ANSWERS: readonly (readonly [string, JsonObject, string])[] = [
  ['accepts with a form', { action: 'accept', content: { decision: 'approve' } }, 'asked'],
  [
    'accepts with a wish to be remembered',
    { action: 'accept', content: { decision: 'approve', remember: true } },
    'asked',
  ],
  ['declines', { action: 'decline' }, 'denied'],
  ['cancels', { action: 'cancel' }, 'denied'],
  ['answers in words of its own', { action: 'approve', content: { decision: 'approve' } }, 'denied'],
];

for (const [title, reply, state] of ANSWERS)
  test(`S-98: a client that ${title} approves nothing`, async () => {
    const made = await withPages({ by: 'caller', remember: { for: 60_000 } });
    const client = await as(made.server);
    const call = retried(client, await refund(client, CALL, OPENS), reply);
    await settled();
    const [approval] = await made.server.approvals.list({ state: 'all' });
    assert.equal([approval?.state, made.ran, await made.server.approvals.grants()], [state, [], []]);
    if (state === 'asked') await made.clock.advance(700_000);
    assert.is((await call).isError, true);
    assert.equal(made.ran, []);
    await made.server.close();
  });

test('a page that is decided before the client answers ends its question, and its retry gets the result', async () => {
  const made = await withPages({ by: 'caller' });
  const client = await as(made.server);
  const asked = await refund(client, CALL, OPENS);
  await decideOnPage(made, 'approve');
  assert.is(textIn(await retried(client, asked, ACCEPT)), 'refunded');
  assert.equal(made.ran, [CALL]);
  await made.server.close();
});

test('a denial on the page reaches the model of the call that waits', async () => {
  const made = await withPages({ by: 'caller' });
  const client = await as(made.server);
  const call = retried(client, await refund(client, CALL, OPENS), ACCEPT);
  await settled();
  await decideOnPage(made, 'deny');
  assert.match(textIn(await call), /it was denied/);
  assert.equal(made.ran, []);
  await made.server.close();
});

test('a call without a decision on its page returns when a question would end, and the next call takes the approval', async () => {
  const made = await withPages({ by: 'caller', expiresMs: 86_400_000 });
  const client = await as(made.server);
  const call = retried(client, await refund(client, CALL, OPENS), ACCEPT);
  await settled();
  await made.clock.advance(600_000);
  const id = pendingId(await call);
  await decideOnPage(made, 'approve');
  assert.is(textIn(await refund(client, CALL, OPENS)), 'refunded');
  assert.is((await made.server.approvals.get(id))?.state, 'done');
  await made.server.close();
});

test('a page without a visitor expires with its approval', async () => {
  const made = await withPages({ by: 'caller', expiresMs: 30_000 });
  const client = await as(made.server);
  const call = retried(client, await refund(client, CALL, OPENS), ACCEPT);
  await settled();
  await made.clock.advance(30_000);
  assert.match(textIn(await call), /nobody approved it in time/);
  await made.server.close();
});

test('a session is sent to the page by a request on its stream, and learns that its user has finished', async () => {
  const made = await withPages({ by: 'caller' });
  const client = await connect(made.server, { auth: { principal: 'ada' } });
  await client.initialize('2025-11-25', OPENS);
  const call = client.send('tools/call', { name: 'refund', arguments: CALL });
  const asked = await client.next((each) => isObjectInTest(each) && each.method === 'elicitation/create');
  const params = isObjectInTest(asked) && isObjectInTest(asked.params) ? asked.params : {};
  const { id } = await theOnly(made.server);
  assert.equal([params.mode, params.url], ['url', `${HOST}/x/approvals/${id}`]);
  // The id of the question is no id of the approval.
  assert.ok(typeof params.elicitationId === 'string' && params.elicitationId !== id);
  client.raw(JSON.stringify({ jsonrpc: '2.0', id: isObjectInTest(asked) ? asked.id : 0, result: ACCEPT }));
  await settled();
  assert.equal(made.ran, []);
  await decideOnPage(made, 'approve');
  const ended = await client.next(
    (each) => isObjectInTest(each) && each.method === 'notifications/elicitation/complete',
  );
  assert.equal(isObjectInTest(ended) ? ended.params : undefined, { elicitationId: params.elicitationId });
  assert.is(textIn(await call), 'refunded');
  await made.server.close();
});

test('a call that its client gives up while its user reads the page leaves its approval to the next call', async () => {
  const made = await withPages({ by: 'caller' });
  const client = await connect(made.server, { auth: { principal: 'ada' } });
  await client.initialize('2025-11-25', OPENS);
  client.raw(
    JSON.stringify({ jsonrpc: '2.0', id: 'x', method: 'tools/call', params: { name: 'refund', arguments: CALL } }),
  );
  const asked = await client.next((each) => isObjectInTest(each) && each.method === 'elicitation/create');
  client.raw(JSON.stringify({ jsonrpc: '2.0', id: isObjectInTest(asked) ? asked.id : 0, result: ACCEPT }));
  await settled();
  const { id } = await theOnly(made.server);
  client.notify('notifications/cancelled', { requestId: 'x' });
  await settled();
  assert.equal([(await theOnly(made.server)).state, made.ran], ['asked', []]);
  await decideOnPage(made, 'approve');
  assert.equal(made.ran, []);
  assert.is(textIn(await client.call('refund', CALL)), 'refunded');
  assert.is((await made.server.approvals.get(id))?.state, 'done');
  await made.server.close();
});

test('a task asks its client to open the page, waits there, and continues', async () => {
  const made = await withPages(undefined);
  made.server.tool('wipe', { task: 'required', approve: { by: 'caller', expiresMs: 86_400_000 } }, () => 'wiped');
  const client = await as(made.server);
  const capabilities = { ...EXTENSION, ...OPENS };
  const send = (method: string, params: JsonObject): Promise<JsonObject> =>
    client.modern(method, params, { [META.clientCapabilities]: capabilities });
  const taskId = idOf(await send('tools/call', { name: 'wipe', arguments: {} }));
  await settled();
  const waiting = await send('tasks/get', { taskId });
  assert.is(paramsOf(waiting).mode, 'url');
  await send('tasks/update', { taskId, inputResponses: { [keysOf(waiting)[0] ?? '']: ACCEPT } });
  await settled();
  // Longer than a question of a request waits.
  await made.clock.advance(3_000_000);
  assert.is((await send('tasks/get', { taskId })).status, 'working');
  await decideOnPage(made, 'approve');
  await settled();
  const { result } = await send('tasks/get', { taskId });
  assert.is(textIn(isObjectInTest(result) ? result : {}), 'wiped');
  await made.server.close();
});

test('a call that its client cancels before its user wants to open the page is withdrawn, and the page says so', async () => {
  const made = await withPages({ by: 'caller' });
  const client = await connect(made.server, { auth: { principal: 'ada' } });
  await client.initialize('2025-11-25', OPENS);
  client.raw(
    JSON.stringify({ jsonrpc: '2.0', id: 'x', method: 'tools/call', params: { name: 'refund', arguments: CALL } }),
  );
  await client.next((each) => isObjectInTest(each) && each.method === 'elicitation/create');
  const { id } = await theOnly(made.server);
  client.notify('notifications/cancelled', { requestId: 'x' });
  await settled();
  assert.match((await load(made, 'ada', `/${id}`)).text, 'This call is withdrawn.');
  await made.server.close();
});

test('a handler that asks for an approval sends its caller to the page, and continues', async () => {
  const made = await withPages(undefined);
  made.server.tool('pay', { input: { type: 'object' } }, async (_, ctx) => {
    const { approvers } = await ctx.approve({ title: 'Pay for 17', show: { total: 125 } });
    return `paid, approved by ${approvers.join()}`;
  });
  const client = await as(made.server);
  const pay = (more: JsonObject = {}): Promise<JsonObject> =>
    client.modern('tools/call', { name: 'pay', arguments: {}, ...more }, { [META.clientCapabilities]: OPENS });
  const asked = await pay();
  assert.match(String(paramsOf(asked).message), /^Pay for 17: a call of the tool pay waits for you/);
  const { key, state } = questionOf(asked);
  const call = pay({ requestState: state, inputResponses: { [key]: ACCEPT } });
  await settled();
  const { id } = await theOnly(made.server);
  assert.match((await load(made, 'ada', `/${id}`)).text, /Its handler asks for:\n\{\n {2}&#34;total&#34;: 125/);
  await decideOnPage(made, 'approve');
  assert.is(textIn(await call), 'paid, approved by ada');
  await made.server.close();
});

test('a text that is too long for a form is shown on the page, to a client that opens pages', async () => {
  const made = await withPages({ by: 'caller' });
  const client = await as(made.server);
  // A random id of the answer has no space in it.
  const long = { order: 'x '.repeat(2_500), amount: 1 };
  assert.is(paramsOf(await refund(client, CALL, BOTH)).mode, undefined);
  const asked = await refund(client, long, BOTH);
  assert.is(paramsOf(asked).mode, 'url');
  // Nothing of the arguments passes through the client.
  assert.not.match(JSON.stringify(asked), 'x x');
  pendingId(await refund(client, long, ASKABLE));
  await made.server.close();
});

test('after the caller has approved on the page, the call waits for the others as before', async () => {
  const made = await withPages({ by: ['caller', { scope: 'ops' }] });
  const client = await as(made.server);
  const call = retried(client, await refund(client, CALL, OPENS), ACCEPT);
  await settled();
  await decideOnPage(made, 'approve');
  const id = pendingId(await call);
  await made.server.approvals.decide(id, { approver: OPS, decision: 'approve' });
  assert.is(textIn(await refund(client, CALL, OPENS)), 'refunded');
  await made.server.close();
});

/** Where no page can know the caller. */
const NO_PAGE: readonly (readonly [string, (made: Shop) => Promise<TestClient>, boolean])[] = [
  ['without pages', ({ server }) => as(server), false],
  ['of somebody who has not signed in', ({ server }) => connect(server), true],
];

for (const [title, open, hasPages] of NO_PAGE)
  test(`a client ${title} is not sent to a page`, async () => {
    const made = hasPages ? await withPages({ by: 'caller' }) : shop({ by: 'caller' });
    const result = await refund(await open(made), CALL, OPENS);
    assert.is(result.isError, true);
    assert.is(result.inputRequests, undefined);
    assert.equal(made.ran, []);
    await made.server.close();
  });

// The user of this machine

const LOCAL = 'local user';

/** The address to which a call of the local user leads. */
async function localPage(
  made: Shop,
  capabilities = OPENS,
  args = CALL,
): Promise<readonly [url: URL, asked: JsonObject]> {
  const asked = await refund(await as(made.server, LOCAL), args, capabilities);
  return [new URL(String(paramsOf(asked).url)), asked];
}

async function decidedAt(url: URL, fields: JsonObject): Promise<Response> {
  return fetch(url, { method: 'POST', body: new URLSearchParams(fields as Record<string, string>) });
}

test('the user of this machine is sent to a page on a loopback port, which decides, and the call runs once', async () => {
  const made = shop({ by: 'caller' });
  const [url, asked] = await localPage(made);
  assert.is(url.hostname, '127.0.0.1');
  const { id } = await theOnly(made.server);
  // Who knows the id of the approval, as the model does, has no address.
  assert.not.match(url.href, id);
  const client = await as(made.server, LOCAL);
  const call = retried(client, asked, ACCEPT);
  await settled();
  assert.equal(made.ran, []);
  const page = await fetch(url);
  assert.match(page.headers.get('content-security-policy') ?? '', "frame-ancestors 'none'");
  const text = await page.text();
  assert.match(text, '&#34;order&#34;: &#34;17&#34;');
  assert.not.match(text, 'All that wait for you');
  const [, mark = ''] = /name="mark" value="([^"]+)"/.exec(text) ?? [];
  const decided = await decidedAt(url, { mark, decision: 'approve' });
  assert.is(decided.status, 200);
  assert.match(await decided.text(), 'local user approved');
  assert.is(textIn(await call), 'refunded');
  assert.equal(made.ran, [CALL]);
  await made.server.close();
  await fetch(url).then(
    () => assert.unreachable('the port is open'),
    () => {},
  );
});

test('a text that is too long for a form leads the user of this machine to the page, too', async () => {
  const made = shop({ by: 'caller' });
  assert.is((await localPage(made, BOTH, { order: 'x'.repeat(5_000), amount: 1 }))[0].hostname, '127.0.0.1');
  await made.server.close();
});

/** Requests to the port that are not those of the page. */
for (const [title, change, fields, status] of [
  ['without its secret', (url: URL) => url.searchParams.delete('approval_token'), { decision: 'approve' }, 404],
  [
    'with the id of the approval',
    (url: URL, id: string) => url.searchParams.set('approval_token', id),
    { decision: 'approve' },
    404,
  ],
  ['without the mark of the form', () => {}, { decision: 'approve' }, 403],
] as const)
  test(`S-98: a request to the port of the user of this machine ${title} decides nothing`, async () => {
    const made = shop({ by: 'caller' });
    const [url] = await localPage(made);
    const { id } = await theOnly(made.server);
    change(url, id);
    assert.is((await decidedAt(url, fields)).status, status);
    assert.is((await theOnly(made.server)).state, 'asked');
    await made.server.close();
  });

test('an inspector and a log hide the secret of the page of the user of this machine', async () => {
  const made = shop({ by: 'caller' });
  const [url] = await localPage(made);
  const shown = new Redactor().text(url.href);
  assert.match(shown, 'http://127.0.0.1:');
  assert.not.match(shown, url.searchParams.get('approval_token') ?? '');
  await made.server.close();
});

test('the result of a call of the user of this machine has no address of the page for its model', async () => {
  const made = shop({ by: 'caller' });
  const [url, asked] = await localPage(made);
  const client = await as(made.server, LOCAL);
  const denied = await retried(client, asked, { action: 'decline' });
  const pending = await refund(client, { order: '18', amount: 1 });
  for (const result of [denied, pending]) assert.not.match(JSON.stringify(result), url.port);
  await made.server.close();
});

test('another person who opens the page of a caller decides nothing', async () => {
  const made = await withPages({ by: 'caller' });
  const client = await as(made.server);
  const asked = await refund(client, CALL, OPENS);
  const { id } = await theOnly(made.server);
  assert.is((await load(made, 'olga', `/${id}`)).status, 404);
  const mark = markIn(await load(made, 'ada', `/${id}`));
  assert.is((await load(made, 'olga', `/${id}`, { mark, decision: 'approve' })).status, 404);
  const call = retried(client, asked, ACCEPT);
  await settled();
  assert.equal(made.ran, []);
  await decideOnPage(made, 'deny');
  assert.is(metaOf(await call).state, 'denied');
  await made.server.close();
});

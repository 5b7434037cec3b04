/** Equal scopes do not share: what a principal has created answers only that principal (G-03). */
import * as assert from 'uvu/assert';
import { createMachine } from 'xstate';
import { z } from 'zod';
import { isObject, type JsonObject } from '../../../../src/core/protocol/json.ts';
import { META } from '../../../../src/core/protocol/meta.ts';
import { TASKS_EXTENSION } from '../../../../src/core/protocol/task-params.ts';
import type { HttpOptions } from '../../../../src/index.ts';
import { settled } from '../../../../src/testing/testing.ts';
import { modern } from '../../../core/http/modern.ts';
import { serving } from '../../../core/http/session.ts';
import { ask, type Headers, initialize, type Stage } from '../../../core/http/support.ts';
import { suite } from '../../../harness/door.ts';

const test = suite('owners');

const SCOPES = ['orders'];
const PRINCIPALS = ['ada', 'eve', 'bob'];

const authenticate: NonNullable<HttpOptions['authenticate']> = ({ header }) => ({
  principal: header('authorization') ?? 'anonymous',
  scopes: SCOPES,
});

const machine = createMachine({
  id: 'order',
  initial: 'open',
  states: { open: { on: { pay: 'paid' } }, paid: { type: 'final' } },
});

function owning(body: (stage: Stage) => Promise<void>): Promise<void> {
  return serving(body, { authenticate }, (server) => {
    server.tool('long', { task: 'required', scopes: SCOPES }, () => 'done');
    server.tool('order_pizza', { scopes: SCOPES }, async (_, ctx) => {
      const { status } = await ctx.elicit({ message: 'Which size?', schema: z.object({ size: z.string() }) });
      return status;
    });
    server.machine('order', machine, { events: { pay: true }, scopes: SCOPES });
  });
}

const CAPABILITIES = { elicitation: { form: {} }, extensions: { [TASKS_EXTENSION]: {} } };

/** The message with which a request of a principal is answered, its status before it. */
async function send(url: string, principal: string, method: string, params: JsonObject): Promise<[number, JsonObject]> {
  const task = typeof params.taskId === 'string' ? { 'mcp-name': params.taskId } : {};
  const headers: Headers = { authorization: principal, ...task };
  const asking = modern(method, { params, meta: { [META.clientCapabilities]: CAPABILITIES }, headers });
  const answer = await ask(url, asking);
  const message: unknown = JSON.parse(await answer.text());
  if (!isObject(message)) throw new Error('expected a message');
  return [answer.status, JSON.parse(JSON.stringify(message))];
}

async function resultOf(...given: Parameters<typeof send>): Promise<JsonObject> {
  const [, { result, error }] = await send(...given);
  if (!isObject(result)) throw new Error(`expected a result, got ${JSON.stringify(error)}`);
  return JSON.parse(JSON.stringify(result));
}

/** Every other principal gets the answer for `real` that it gets for `unknown`. */
async function alike(
  url: string,
  [method, params]: readonly [string, (id: string) => JsonObject],
  real: string,
  unknown: string,
): Promise<void> {
  for (const principal of PRINCIPALS.slice(1)) {
    const text = async (id: string) =>
      JSON.stringify(await send(url, principal, method, params(id))).replaceAll(id, 'ID');
    const found = await text(real);
    assert.is(found, await text(unknown), `${method} by ${principal}`);
    assert.match(found, /error|isError/);
  }
}

const UNKNOWN = 'AAAAAAAAAAAAAAAAAAAAAA';

test('G-03: tasks', () =>
  owning(async ({ url }) => {
    const { taskId } = await resultOf(url, 'ada', 'tools/call', { name: 'long', arguments: {} });
    await settled();
    const id = String(taskId);
    const looks: readonly (readonly [string, (id: string) => JsonObject])[] = [
      ['tasks/get', (each) => ({ taskId: each })],
      ['tasks/cancel', (each) => ({ taskId: each })],
      ['tasks/update', (each) => ({ taskId: each, inputResponses: {} })],
    ];
    for (const look of looks) await alike(url, look, id, UNKNOWN);
    assert.is((await resultOf(url, 'ada', 'tasks/get', { taskId: id })).status, 'completed');
    const params = { notifications: { taskIds: [id] } };
    const meta = { [META.clientCapabilities]: CAPABILITIES };
    const listening = await ask(
      url,
      modern('subscriptions/listen', { params, meta, headers: { authorization: 'eve' } }),
    );
    assert.match(String((await listening.events.next()).data), /"taskIds":\[\]/);
    listening.cut();
  }));

test('G-03: handles, and the resources that show them', () =>
  owning(async ({ url }) => {
    const created = await resultOf(url, 'ada', 'tools/call', { name: 'order_create', arguments: {} });
    const { structuredContent } = created;
    const handle = isObject(structuredContent) ? String(structuredContent.handle) : '';
    for (const name of ['order_get', 'order_pay', 'order_end'])
      await alike(url, ['tools/call', (each) => ({ name, arguments: { handle: each } })], handle, UNKNOWN);
    await alike(url, ['resources/read', (each) => ({ uri: `troupe://order/${each}` })], handle, UNKNOWN);
    const listed = await resultOf(url, 'eve', 'tools/call', { name: 'order_list', arguments: {} });
    assert.not.match(JSON.stringify(listed), new RegExp(handle));
    assert.match(
      JSON.stringify(await resultOf(url, 'ada', 'tools/call', { name: 'order_list', arguments: {} })),
      new RegExp(handle),
    );
  }));

test('G-03: questions: a request state continues for its principal only', () =>
  owning(async ({ url }) => {
    const call = { name: 'order_pizza', arguments: {} };
    const { requestState, inputRequests } = await resultOf(url, 'ada', 'tools/call', call);
    const [key = ''] = Object.keys(isObject(inputRequests) ? inputRequests : {});
    const responses = { [key]: { action: 'accept', content: { size: 'large' } } };
    const retry = { ...call, requestState: String(requestState), inputResponses: responses };
    for (const principal of PRINCIPALS.slice(1)) {
      const [, { error }] = await send(url, principal, 'tools/call', retry);
      assert.is(isObject(error) && error.code, -32602, principal);
    }
    assert.match(JSON.stringify(await resultOf(url, 'ada', 'tools/call', retry)), /accepted/);
  }));

test('G-03: sessions, their streams and replays', () =>
  owning(async ({ url }) => {
    const opened = await ask(url, { body: initialize('2025-11-25'), headers: { authorization: 'ada' } });
    await opened.text();
    const session = String(opened.headers['mcp-session-id']);
    for (const principal of PRINCIPALS.slice(1)) {
      const requests: readonly (readonly [string, unknown, Headers])[] = [
        ['POST', { jsonrpc: '2.0', id: 1, method: 'ping' }, {}],
        ['GET', undefined, {}],
        ['GET', undefined, { 'last-event-id': 'AAAAAAAAAAAA_1' }],
        ['DELETE', undefined, {}],
      ];
      for (const [method, body, more] of requests) {
        const face = async (id: string) => {
          const headers = { authorization: principal, 'mcp-session-id': id, ...more };
          const answer = await ask(url, { method, body, headers });
          return `${answer.status} ${await answer.text()}`;
        };
        const found = await face(session);
        assert.is(found, await face('x'.repeat(session.length)), `${method} by ${principal}`);
        assert.match(found, /^404 /);
      }
    }
    const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };
    const own = await ask(url, { body: ping, headers: { authorization: 'ada', 'mcp-session-id': session } });
    assert.is(own.status, 200);
    await own.text();
  }));

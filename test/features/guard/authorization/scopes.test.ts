/** Scopes decide about every operation before anything of it is stored, run or answered (G-04). */

import * as assert from 'uvu/assert';
import { assign, createMachine } from 'xstate';
import { z } from 'zod';
import { isObject } from '../../../../src/core/protocol/json.ts';
import { META } from '../../../../src/core/protocol/meta.ts';
import { TASKS_EXTENSION } from '../../../../src/core/protocol/task-params.ts';
import { ErrorCode, type HttpOptions, type Server, type Write } from '../../../../src/index.ts';
import { settled } from '../../../../src/testing/testing.ts';
import { modern } from '../../../core/http/modern.ts';
import { serving } from '../../../core/http/session.ts';
import { type Answer, ask, type Headers, initialize, type Stage } from '../../../core/http/support.ts';
import { suite } from '../../../harness/door.ts';
import { TestStore } from '../../../harness/test-store.ts';

const test = suite('scopes');

const METADATA = 'http://localhost/.well-known/oauth-protected-resource/mcp';
const NEEDED = ['orders:read', 'orders:write'];

/** The authorization header is the list of scopes of `ada`. */
const AUTH: HttpOptions['auth'] = {
  authenticate: ({ header }) => ({
    auth: { principal: 'ada', scopes: (header('authorization') ?? '').split(' ').filter(Boolean), claims: {} },
  }),
  challenge: (scopes) => [`Bearer error="insufficient_scope", scope="${scopes.join(' ')}"`],
  documents: new Map(),
  resourceMetadata: METADATA,
};

const machine = createMachine({
  id: 'order',
  context: { paid: 0 },
  initial: 'open',
  states: { open: { on: { pay: { actions: assign({ paid: 1 }) }, cancel: 'closed' } }, closed: { type: 'final' } },
});

interface Guards {
  readonly stage: Stage;
  /** The handlers that ran. */
  readonly ran: string[];
  /** The number of writes to the store that a request leaves: replies, markers, tasks and handles. */
  writes(): number;
}

function define(server: Server, ran: string[]): void {
  const run = (name: string) => () => {
    ran.push(name);
    return name;
  };
  const guarded = { scopes: NEEDED };
  server.tool('refund', { ...guarded, input: z.object({ amount: z.number() }) }, run('refund'));
  server.tool('long', { ...guarded, task: 'required' }, run('long'));
  server.resource('orders://all', guarded, run('all'));
  const complete = { id: () => [run('complete template')()] };
  server.resource('orders://{id}', { ...guarded, complete }, run('template'));
  server.prompt(
    'review',
    { ...guarded, arguments: [{ name: 'id' }], complete: { id: () => [run('complete')()] } },
    run('review'),
  );
  server.machine('order', machine, { ...guarded, events: { pay: true, cancel: true }, eventScopes: { pay: ['pay'] } });
  server.machine('single', machine, { events: { pay: true }, eventScopes: { pay: NEEDED }, single: true });
}

/** Serves every kind of element, each with the same scopes. */
function guarding(body: (guards: Guards) => Promise<void>, options: HttpOptions = {}): Promise<void> {
  const ran: string[] = [];
  let writes = 0;
  const left = (write: Write): boolean =>
    write.type === 'reply' || (write.type === 'actor' && write.actor.kind !== 'session');
  const store = new (class extends TestStore {
    override write(batch: readonly Write[]): Promise<void> {
      writes += batch.filter(left).length;
      return super.write(batch);
    }
  })();
  return serving(
    (stage) => body({ stage, ran, writes: () => writes }),
    { auth: AUTH, ...options, server: { store } },
    (server) => define(server, ran),
  );
}

interface Operation {
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
  /** Default: both eras. */
  readonly era?: 'legacy' | 'modern';
  readonly needs?: readonly string[];
}

const HANDLE = 'AAAAAAAAAAAAAAAAAAAAAA';
const TEMPLATE = { type: 'ref/resource', uri: 'orders://{id}' };
const OPERATIONS: readonly Operation[] = [
  { method: 'tools/call', params: { name: 'refund', arguments: { amount: 1 } } },
  { method: 'tools/call', params: { name: 'long', arguments: {} }, era: 'modern' },
  { method: 'tools/call', params: { name: 'long', arguments: {}, task: {} }, era: 'legacy' },
  { method: 'resources/read', params: { uri: 'orders://all' } },
  { method: 'resources/read', params: { uri: 'orders://7' } },
  { method: 'prompts/get', params: { name: 'review', arguments: {} } },
  {
    method: 'completion/complete',
    params: { ref: { type: 'ref/prompt', name: 'review' }, argument: { name: 'id', value: '' } },
  },
  { method: 'completion/complete', params: { ref: TEMPLATE, argument: { name: 'id', value: '' } } },
  { method: 'resources/subscribe', params: { uri: 'orders://7' }, era: 'legacy' },
  {
    method: 'subscriptions/listen',
    params: { notifications: { resourceSubscriptions: ['orders://7', 'orders://all'] } },
    era: 'modern',
  },
  { method: 'tools/call', params: { name: 'order_create', arguments: {} } },
  { method: 'tools/call', params: { name: 'order_get', arguments: { handle: HANDLE } } },
  { method: 'tools/call', params: { name: 'order_pay', arguments: { handle: HANDLE } }, needs: [...NEEDED, 'pay'] },
  { method: 'tools/call', params: { name: 'order_end', arguments: { handle: HANDLE } } },
  { method: 'tools/call', params: { name: 'single_send', arguments: { handle: HANDLE, event: 'pay', data: {} } } },
  { method: 'resources/read', params: { uri: `troupe://order/${HANDLE}` } },
];

const CAPABILITIES = { extensions: { [TASKS_EXTENSION]: {} } };

/** Sends one operation in a session, or without one. */
type Send = (scopes: readonly string[], operation: Pick<Operation, 'method' | 'params'>) => Promise<Answer>;

async function inSession(url: string, revision: string): Promise<Send> {
  const authorization = NEEDED.join(' ');
  const body = initialize(revision, 0, { tasks: {} });
  const opened = await ask(url, { body, headers: { authorization } });
  await opened.text();
  const session: Headers = { 'mcp-session-id': opened.headers['mcp-session-id'], 'mcp-protocol-version': revision };
  const ready = {
    body: { jsonrpc: '2.0', method: 'notifications/initialized' },
    headers: { ...session, authorization },
  };
  await (await ask(url, ready)).text();
  let id = 10;
  return (scopes, { method, params }) => {
    id += 1;
    const headers = { ...session, authorization: scopes.join(' ') };
    return ask(url, { body: { jsonrpc: '2.0', id, method, params }, headers });
  };
}

const withoutSession =
  (url: string): Send =>
  (scopes, { method, params }) => {
    const meta = { [META.clientCapabilities]: CAPABILITIES };
    const task = typeof params.taskId === 'string' ? { 'mcp-name': params.taskId } : {};
    return ask(url, modern(method, { params, meta, headers: { ...task, authorization: scopes.join(' ') } }));
  };

/** Holds a rejection to its form: 403, one challenge, one error with exactly these scopes. */
async function lacks(answer: Answer, needs: readonly string[], what: string): Promise<void> {
  const { status, headers, text } = answer;
  const body = await text();
  assert.is(status, 403, `${what}: ${body}`);
  assert.is(headers['content-type'], 'application/json', what);
  const scope = needs.join(' ');
  assert.is(headers['www-authenticate'], `Bearer error="insufficient_scope", scope="${scope}"`, what);
  const { error } = JSON.parse(body);
  assert.is(error.code, ErrorCode.Forbidden, what);
  assert.equal(error.data, { scope, resourceMetadata: METADATA }, what);
}

/** The scopes of tokens that lack some. The answer names all that are needed, whatever was granted. */
const GRANTS: readonly (readonly string[])[] = [[], ['orders:read'], ['orders:reader', 'orders', '*', 'ORDERS:READ']];

/** `npm test` has each revision and each form of a response once: one gate decides in front of all of them. */
const QUICK = ['2025-03-26 json', '2025-06-18 sse', '2025-11-25 auto', '2026-07-28 auto'];

for (const response of ['auto', 'json', 'sse'] as const)
  for (const revision of ['2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28'])
    (QUICK.includes(`${revision} ${response}`) ? test : test.full)(
      `G-04: ${revision}, ${response}: every operation needs all of its scopes, and says which`,
      () =>
        guarding(
          async ({ stage, ran, writes }) => {
            const modernEra = revision === '2026-07-28';
            const send = modernEra ? withoutSession(stage.url) : await inSession(stage.url, revision);
            const before = writes();
            for (const operation of OPERATIONS) {
              const { method, params, era, needs = NEEDED } = operation;
              if (era && era !== (modernEra ? 'modern' : 'legacy')) continue;
              const what = `${method} ${JSON.stringify(params)}`;
              for (const granted of GRANTS) await lacks(await send(granted, operation), needs, what);
            }
            assert.equal(ran, []);
            assert.is(writes(), before, 'no rejected request leaves anything in the store');
            for (const operation of OPERATIONS) {
              const { method, era, needs = NEEDED } = operation;
              if (method === 'subscriptions/listen' || (era && era !== (modernEra ? 'modern' : 'legacy'))) continue;
              if (revision < '2025-11-25' && JSON.stringify(operation.params).includes('long')) continue;
              const answer = await send(needs, operation);
              assert.is(answer.status, 200, `${method}: ${await answer.text()}`);
            }
            await settled();
            assert.equal(
              ['refund', 'long', 'all', 'template', 'review', 'complete', 'complete template'].filter(
                (name) => !ran.includes(name) && !(name === 'long' && revision < '2025-11-25'),
              ),
              [],
            );
          },
          { response },
        ),
    );

test('G-04: each look at a task needs the scopes of its call; lists leave it out', () =>
  guarding(async ({ stage, ran }) => {
    const send = withoutSession(stage.url);
    const resultOf = async (answer: Answer): Promise<Readonly<Record<string, unknown>>> => {
      const text = await answer.text();
      const { result } = JSON.parse(text);
      assert.ok(isObject(result), text);
      return result;
    };
    const created = await resultOf(
      await send(NEEDED, { method: 'tools/call', params: { name: 'long', arguments: {} } }),
    );
    const taskId = created.taskId;
    await settled();
    assert.equal(ran, ['long']);
    const looks: readonly Operation[] = [
      { method: 'tasks/get', params: { taskId } },
      { method: 'tasks/update', params: { taskId, inputResponses: {} } },
      { method: 'tasks/cancel', params: { taskId } },
      { method: 'subscriptions/listen', params: { notifications: { taskIds: [taskId] } } },
    ];
    for (const look of looks) {
      await lacks(await send([], look), NEEDED, look.method);
      await lacks(await send(['orders:write'], look), NEEDED, look.method);
    }
    assert.is((await resultOf(await send(NEEDED, { method: 'tasks/get', params: { taskId } }))).status, 'completed');
    const session = await inSession(stage.url, '2025-11-25');
    const all = async (scopes: readonly string[]) =>
      (await resultOf(await session(scopes, { method: 'tasks/list', params: {} }))).tasks;
    assert.equal(await all(['orders:read']), []);
    const [listed] = Array.isArray(await all(NEEDED)) ? ((await all(NEEDED)) as unknown[]) : [];
    assert.ok(isObject(listed) && listed.taskId === taskId);
    await lacks(await session([], { method: 'tasks/result', params: { taskId } }), NEEDED, 'tasks/result');
  }));

test('G-04: in a batch, and on a stream of 2024-11-05, a missing scope is an error among the others', () =>
  guarding(async ({ stage }) => {
    const { url } = stage;
    const opened = await ask(url, { body: initialize('2025-03-26'), headers: { authorization: '' } });
    await opened.text();
    const call = (id: number, name: string) => ({
      jsonrpc: '2.0',
      id,
      method: 'tools/call',
      params: { name, arguments: name === 'echo' ? { text: 'hello' } : { amount: 1 } },
    });
    const answer = await ask(url, {
      body: [call(1, 'echo'), call(2, 'refund')],
      headers: { 'mcp-session-id': opened.headers['mcp-session-id'], authorization: 'orders:read' },
    });
    assert.is(answer.status, 200);
    assert.is(answer.headers['www-authenticate'], undefined);
    const text = await answer.text();
    assert.match(text, /"code":-31004,/);
    assert.match(text, /"scope":"orders:read orders:write"/);
    assert.match(text, /hello/);
    const stream = await ask(url, { method: 'GET', headers: { authorization: '' } });
    const { data = '' } = await stream.events.next();
    const post = async (body: unknown, authorization = '') =>
      (await ask(new URL(data, url).href, { body, headers: { authorization } })).status;
    assert.is(await post(initialize('2024-11-05')), 202);
    await stream.events.next();
    assert.is(await post(call(3, 'refund'), 'orders:read'), 202);
    assert.match(
      (await stream.events.next()).data ?? '',
      /"id":3,"error":\{"code":-31004,.*"scope":"orders:read orders:write"/,
    );
    assert.is(await post(call(4, 'refund'), NEEDED.join(' ')), 202);
    assert.match((await stream.events.next()).data ?? '', /"id":4,"result"/);
  }));

test('G-04: a client that asks for the scopes of the challenge and no others is served', () =>
  guarding(async ({ stage }) => {
    const send = withoutSession(stage.url);
    const operation = { method: 'tools/call', params: { name: 'order_pay', arguments: { handle: HANDLE } } };
    const { headers, text, status } = await send(['orders:read'], operation);
    await text();
    assert.is(status, 403);
    const [, scope = ''] = /scope="([^"]*)"/.exec(String(headers['www-authenticate'])) ?? [];
    const again = await send(scope.split(' '), operation);
    assert.is(again.status, 200, await again.text());
  }));

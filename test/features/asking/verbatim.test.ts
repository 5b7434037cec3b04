/** Questions of another server, put as they are; calls that become tasks at once; and the client that a call belongs to. */
import * as assert from 'uvu/assert';
import { becomeTask, earlierSteps, ownerOfCall } from '../../../src/core/execution/request-context.ts';
import type { InputRequest } from '../../../src/core/messages/client-input.ts';
import type { JsonObject } from '../../../src/core/protocol/json.ts';
import { META } from '../../../src/core/protocol/meta.ts';
import { TASKS_EXTENSION } from '../../../src/core/protocol/task-params.ts';
import { askVerbatim } from '../../../src/features/asking/asking-context.ts';
import { CannotAsk, type Context, memory, ProtocolError, type Server } from '../../../src/index.ts';
import { isObjectInTest } from '../../../src/testing/test-json.ts';
import { connect, SimulatedClock, settled, TestClient } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { textOf } from '../../harness/results.ts';
import { wireChecker } from '../../harness/wire.ts';
import { ALL, accept, Modern, stage } from './support.ts';

const test = suite('questions of another server');

/** Nothing of this is what `ctx.elicit` would send: a default that does not fit, and members that we do not define. */
const FORM: InputRequest = {
  method: 'elicitation/create',
  params: {
    message: 'Who?',
    requestedSchema: {
      type: 'object',
      properties: { name: { type: 'string', default: 7, 'x-hint': 'a name' } },
    },
    _meta: { 'example.com/from': 'upstream' },
  },
};
const PAGE: InputRequest = {
  method: 'elicitation/create',
  params: { mode: 'url', message: 'Open it', url: 'https://example.com/a?b=c' },
};
const MODEL: InputRequest = {
  method: 'sampling/createMessage',
  params: {
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'a' },
          { type: 'text', text: 'b' },
        ],
      },
    ],
    maxTokens: 5,
    tools: [{ name: 't', inputSchema: { type: 'object' } }],
  },
};
const ROOTS: InputRequest = { method: 'roots/list', params: {} };

const REPLIES: Readonly<Record<string, JsonObject>> = {
  form: { action: 'accept', content: { name: { not: 'checked' } }, extra: true },
  page: { action: 'accept' },
  model: { role: 'assistant', model: 'm', content: { type: 'text', text: 'ok' } },
  dirs: { roots: [{ uri: 'file:///a', name: 'a' }] },
};

function asking(server: Server, requests: Readonly<Record<string, InputRequest>>): void {
  server.tool('ask', {}, async (_, ctx) => JSON.stringify(await askVerbatim(ctx, requests)));
}

/** Calls "ask" in a session, and replies to each question with what `answer` returns. */
async function inSession(
  server: Server,
  revision: string,
  answer: (params: JsonObject, method: string) => JsonObject,
  capabilities = ALL,
): Promise<string> {
  const client = await connect(server);
  await client.initialize(revision, capabilities);
  const result = client.call('ask');
  void (async () => {
    for (;;) {
      const message = await client.next(
        (each) => isObjectInTest(each) && typeof each.method === 'string',
        'a question',
      );
      if (!isObjectInTest(message)) continue;
      const { id, method, params } = message;
      const reply = answer(isObjectInTest(params) ? params : {}, String(method));
      client.raw(JSON.stringify({ jsonrpc: '2.0', id, ...reply }));
    }
  })().catch(() => {});
  const text = textOf(await result);
  await client.close();
  return text;
}

test('a session is asked with the same params and its replies come back unchecked, in each revision', async () => {
  for (const revision of ['2025-06-18', '2025-11-25']) {
    const { server } = stage();
    asking(server, { form: FORM, dirs: ROOTS });
    const seen: JsonObject[] = [];
    const text = await inSession(server, revision, (params, method) => {
      seen.push(params);
      return { result: method === 'roots/list' ? { ...REPLIES.dirs } : { ...REPLIES.form } };
    });
    assert.equal(seen, [FORM.params, {}]);
    assert.equal(JSON.parse(text), {
      form: { ok: true, result: REPLIES.form },
      dirs: { ok: true, result: REPLIES.dirs },
    });
    await server.close();
  }
});

test('an error of a session is a reply', async () => {
  const { server } = stage();
  asking(server, { form: FORM });
  const text = await inSession(server, '2025-11-25', () => ({ error: { code: -1, message: 'User rejected' } }));
  assert.equal(JSON.parse(text), { form: { ok: false, error: { code: -1, message: 'User rejected' } } });
  await server.close();
});

test('a question changes only where the revision has another form: an elicitationId, and one block for each message', async () => {
  const { server } = stage();
  asking(server, { page: PAGE });
  let sent: JsonObject = {};
  await inSession(server, '2025-11-25', (params) => {
    sent = params;
    return { result: { ...REPLIES.page } };
  });
  const { elicitationId, ...rest } = sent;
  assert.equal(rest, PAGE.params);
  assert.type(elicitationId, 'string');
  await server.close();

  const other = stage().server;
  const { tools: _tools, ...untooled } = MODEL.params;
  asking(other, { model: { method: MODEL.method, params: untooled } });
  await inSession(other, '2025-06-18', (params) => {
    sent = params;
    return { result: { ...REPLIES.model } };
  });
  assert.equal(sent.messages, [
    { role: 'user', content: { type: 'text', text: 'a' } },
    { role: 'user', content: { type: 'text', text: 'b' } },
  ]);
  await other.close();
});

test('a modern client gets the questions as the result of its call, and its retry brings the replies', async () => {
  const { server } = stage();
  asking(server, { form: FORM, page: PAGE, model: MODEL, dirs: ROOTS });
  const client = await Modern.of(server);
  const { inputRequests, requestState } = await client.ask('ask');
  assert.equal(inputRequests, { form: FORM, page: PAGE, model: MODEL, dirs: ROOTS });
  const result = await client.retry('ask', requestState, REPLIES);
  const replies = Object.entries(REPLIES).map(([name, reply]) => [name, { ok: true, result: reply }]);
  assert.equal(JSON.parse(textOf(result)), Object.fromEntries(replies));
  await server.close();
});

test('another process continues a call that asked: replies are found by their order, and steps do not run twice', async () => {
  const asked: string[] = [];
  const define = (server: Server) =>
    server.tool('twice', {}, async (_, ctx) => {
      const before = earlierSteps(ctx);
      const round = await ctx.step('round 1', () => {
        asked.push('upstream');
        return { requestState: 'theirs' };
      });
      const first = await askVerbatim(ctx, { a: FORM });
      const second = await askVerbatim(ctx, { a: FORM });
      return JSON.stringify([round.requestState, before !== undefined, first.a, second.a]);
    });
  const clock = new SimulatedClock();
  const one = stage({}, clock).server;
  define(one);
  const { inputRequests, requestState } = await (await Modern.of(one)).ask('twice');
  assert.equal(Object.keys(inputRequests), ['a']);
  await one.close();
  const two = stage({}, clock).server;
  define(two);
  const again = await Modern.of(two);
  const more = await again.ask('twice', { requestState, inputResponses: { a: { action: 'decline' } } });
  assert.equal(Object.keys(more.inputRequests), ['a-2']);
  const result = await again.retry('twice', more.requestState, { 'a-2': accept({ name: 'Ada' }) });
  assert.equal(JSON.parse(textOf(result)), [
    'theirs',
    true,
    { ok: true, result: { action: 'decline' } },
    { ok: true, result: accept({ name: 'Ada' }) },
  ]);
  assert.equal(asked, ['upstream']);
  await two.close();
});

test('a client is not asked without the capability', async () => {
  const cases: readonly (readonly [InputRequest, JsonObject])[] = [
    [FORM, { sampling: {}, roots: {} }],
    [PAGE, { elicitation: { form: {} } }],
    [MODEL, { sampling: {} }],
    [ROOTS, {}],
  ];
  for (const [request, capabilities] of cases) {
    const { server } = stage();
    let thrown: unknown;
    server.tool('ask', {}, async (_, ctx) => {
      await askVerbatim(ctx, { it: request }).catch((error: unknown) => {
        thrown = error;
      });
      return 'done';
    });
    assert.is(textOf(await (await Modern.of(server, capabilities)).send({ name: 'ask' })), 'done');
    assert.instance(thrown, CannotAsk);
    thrown = undefined;
    assert.is(await inSession(server, '2025-11-25', () => ({ result: {} }), capabilities), 'done');
    assert.instance(thrown, CannotAsk);
    await server.close();
  }
});

test('an abort withdraws the questions', async () => {
  const { server } = stage();
  const stop = new AbortController();
  server.tool('ask', {}, (_, ctx) =>
    askVerbatim(ctx, { form: FORM }, stop.signal).then(
      () => 'answered',
      (error: Error) => error.message,
    ),
  );
  const text = await inSession(server, '2025-11-25', () => {
    stop.abort(new Error('the other server has withdrawn it'));
    return { result: {} };
  });
  assert.is(text, 'the other server has withdrawn it');
  await server.close();
});

test('a call becomes a task at once where its client takes tasks, and stays a request elsewhere', async () => {
  const { server } = stage();
  const became: boolean[] = [];
  const work = async (_: unknown, ctx: Context) => {
    became.push(becomeTask(ctx), becomeTask(ctx));
    const { form } = await askVerbatim(ctx, { form: FORM });
    return JSON.stringify(form);
  };
  server.tool('ask', { task: 'allowed' }, work);
  const takes = await Modern.of(server, { ...ALL, extensions: { [TASKS_EXTENSION]: {} } });
  const created = await takes.send({ name: 'ask' });
  assert.is(created.resultType, 'task');
  assert.equal(became.splice(0), [true, true]);
  const id = { taskId: created.taskId ?? '' };
  const look = await takes.send(id, 'tasks/get');
  assert.is(look.status, 'input_required');
  assert.equal(look.inputRequests, { form: FORM });
  await takes.send({ ...id, inputResponses: { form: REPLIES.form ?? {} } }, 'tasks/update');
  await settled();
  const done = await takes.send(id, 'tasks/get');
  assert.is(done.status, 'completed');

  const takesNone = await Modern.of(server);
  assert.is((await takesNone.send({ name: 'ask' })).resultType, 'input_required');
  assert.is(await inSession(server, '2025-11-25', () => ({ result: {} })), '{"ok":true,"result":{}}');
  assert.equal(became, [false, false, false, false]);
  await server.close();
});

test('a call belongs to its session, its connection, or its principal', async () => {
  const { server } = stage();
  server.tool('mine', {}, (_, ctx) => ownerOfCall(ctx) as unknown as JsonObject);
  const { transport, connect: open } = memory();
  await server.listen(transport);
  const keyOf = async (client: TestClient, meta?: JsonObject): Promise<JsonObject> => {
    const params = { name: 'mine', arguments: {} };
    const { structuredContent } = meta ? await client.modern('tools/call', params, meta) : await client.call('mine');
    if (!isObjectInTest(structuredContent)) throw new Error('expected an owner');
    return structuredContent;
  };
  const sessions = [new TestClient(open({ principal: 'ada' })), new TestClient(open({ principal: 'ada' }))] as const;
  for (const client of sessions) await client.initialize('2025-11-25', { roots: {} });
  const [one, same, other] = [await keyOf(sessions[0]), await keyOf(sessions[0]), await keyOf(sessions[1])];
  assert.equal(one, same);
  assert.is.not(one.key, other.key);
  assert.equal([one.principal, one.capabilities], ['ada', { roots: {} }]);
  const modern = new TestClient(open());
  const declared = { [META.clientCapabilities]: { sampling: {} } };
  const [first, second] = [await keyOf(modern, declared), await keyOf(modern, declared)];
  assert.is(first.key, second.key);
  assert.equal(first.capabilities, { sampling: {} });
  assert.is.not(first.key, (await keyOf(new TestClient(open()), declared)).key);
  await server.close();
});

test('a session of 2025-11-25 is notified of a completed page, and its announcements of other roots are counted', async () => {
  const { server } = stage();
  server.tool('complete', {}, (_, ctx) => {
    const { session } = ownerOfCall(ctx);
    session?.mailbox.send({ type: 'page completed', elicitationId: 'e1' });
    return String(session?.rootsChanges);
  });
  for (const revision of ['2025-06-18', '2025-11-25']) {
    const check = wireChecker('2025-11-25');
    const completed: unknown[] = [];
    const client = await connect(server, {
      onMessage: ({ direction, text }) => {
        if (text.includes('elicitation/complete')) completed.push(JSON.parse(text));
        if (revision === '2025-11-25') check(direction, text);
      },
    });
    await client.initialize(revision, ALL);
    assert.is(textOf(await client.call('complete')), '0');
    client.notify('notifications/roots/list_changed');
    assert.is(textOf(await client.call('complete')), '1');
    const params = { elicitationId: 'e1' };
    const notification = { jsonrpc: '2.0', method: 'notifications/elicitation/complete', params };
    assert.equal(completed, revision === '2025-11-25' ? [notification, notification] : []);
    await client.close();
  }
  await server.close();
});

test('only the contexts of this package ask, become tasks and have owners', () => {
  const foreign = {} as Context;
  for (const use of [() => becomeTask(foreign), () => ownerOfCall(foreign), () => askVerbatim(foreign, { a: FORM })])
    assert.throws(use, (error: unknown) => error instanceof TypeError && !(error instanceof ProtocolError));
});

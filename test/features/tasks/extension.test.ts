/** Tasks of the modern era (the extension io.modelcontextprotocol/tasks): how a call becomes one, and what its client does with it. */
import * as assert from 'uvu/assert';
import { becomeTask, isTask } from '../../../src/core/execution/request-context.ts';
import { META } from '../../../src/core/protocol/meta.ts';
import { TASKS_EXTENSION } from '../../../src/core/protocol/task-params.ts';
import { ErrorCode, ProtocolError } from '../../../src/index.ts';
import { settled } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { errorResponse, textOf } from '../../harness/results.ts';
import { accept, gate, idOf, inside, keysOf, Modern, NAME, pending, stage } from './support.ts';

const test = suite('tasks (extension)');

const UNWRITABLE = {
  toJSON() {
    throw new Error('no');
  },
};

test('a tool that requires it is a task before its handler has begun, and shows its result when it has ended', async () => {
  const { server, clock, modern } = await stage();
  const { opened, open } = gate();
  server.tool('work', { task: 'required' }, async () => {
    await opened;
    return 'done';
  });
  const client = modern();
  const created = await client.call('work');
  assert.equal(Object.keys(created).sort(), [
    '_meta',
    'createdAt',
    'lastUpdatedAt',
    'pollIntervalMs',
    'resultType',
    'status',
    'taskId',
    'ttlMs',
  ]);
  assert.is(created.resultType, 'task');
  assert.is(created.status, 'working');
  assert.is(created.createdAt, '2026-01-01T00:00:00.000Z');
  assert.is(created.ttlMs, 3_600_000);
  assert.is(created.pollIntervalMs, 1_000);
  assert.match(idOf(created), /^[\w-]{24}$/);
  await clock.advance(5_000);
  open();
  await settled();
  const ended = await client.get(idOf(created));
  assert.is(ended.resultType, 'complete');
  assert.is(ended.status, 'completed');
  assert.is(ended.lastUpdatedAt, '2026-01-01T00:00:05.000Z');
  assert.is(await client.said(idOf(ended)), 'done');
  await server.close();
});

test("a tool's failure is a completed task whose result says so; only an error is a failed one", async () => {
  const { server, modern } = await stage();
  server.tool('trips', { task: 'required' }, () => {
    throw new Error('it tripped');
  });
  server.tool('breaks', { task: 'required' }, () => {
    throw new ProtocolError(ErrorCode.InvalidParams, 'it broke', { at: 3 });
  });
  const client = modern();
  const tripped = await client.get(await client.start('trips'));
  assert.is(tripped.status, 'completed');
  assert.is(inside(tripped, 'result', 'isError'), true);
  const broken = await client.get(await client.start('breaks'));
  assert.is(broken.status, 'failed');
  assert.equal(broken.error, { code: ErrorCode.InvalidParams, message: 'it broke', data: { at: 3 } });
  assert.is(broken.result, undefined);
  await server.close();
});

test('a result that JSON cannot hold is an error of tasks/get, and nothing else breaks', async () => {
  const { server, modern, told } = await stage();
  server.tool('odd', { task: 'required' }, () => ({ content: [], _meta: { odd: UNWRITABLE } }));
  const client = modern();
  const id = await client.start('odd');
  assert.is((await errorResponse(client.get(id))).code, ErrorCode.InternalError);
  assert.is(told.length, 1);
  await client.cancel(id);
  await server.close();
});

test('a tool that allows it answers plainly within the threshold, and is a task beyond it', async () => {
  const { server, clock, modern } = await stage({ taskAfterMs: 400 });
  const { opened, open } = gate();
  server.tool('work', { task: 'allowed' }, async () => {
    await opened;
    return 'done';
  });
  server.tool('quick', { task: 'allowed' }, () => 'quick');
  const client = modern();
  const quick = await client.call('quick');
  assert.is(quick.resultType, 'complete');
  assert.is(textOf(quick), 'quick');
  const timers = clock.timers;
  const called = client.call('work');
  await clock.advance(399);
  assert.ok(await pending(called));
  await clock.advance(1);
  const created = await called;
  assert.is(created.resultType, 'task');
  open();
  await settled();
  assert.is(await client.status(idOf(created)), 'completed');
  // Nothing of the threshold is left: what runs is the task's time to live.
  assert.is(clock.timers, timers + 1);
  await server.close();
});

test('a call that its time has made a task knows that it is one', async () => {
  const { server, clock, modern } = await stage({ taskAfterMs: 400 });
  const { opened, open } = gate();
  const known: boolean[] = [];
  server.tool('slow', { task: 'allowed' }, async (_, ctx) => {
    known.push(isTask(ctx));
    await opened;
    known.push(isTask(ctx), becomeTask(ctx));
    return 'done';
  });
  const client = modern();
  const created = client.call('slow');
  await clock.advance(400);
  const id = idOf(await created);
  open();
  await settled();
  assert.is(await client.said(id), 'done');
  assert.equal(known, [false, true, true]);
  await server.close();
});

test('a call that ends within the threshold leaves no timer behind', async () => {
  const { server, clock, modern } = await stage();
  server.tool('later', { task: 'allowed' }, async () => {
    await settled();
    return 'later';
  });
  server.tool('fails', { task: 'allowed' }, async () => {
    throw new ProtocolError(ErrorCode.InvalidParams, 'no');
  });
  const client = modern();
  await client.call('later');
  const timers = clock.timers;
  await client.call('later');
  await errorResponse(client.call('fails'));
  await settled();
  assert.is(clock.timers, timers);
  await server.close();
});

test('a client that does not take tasks is answered plainly by a tool that allows them, however long it takes', async () => {
  const { server, clock, modern } = await stage({ taskAfterMs: 400 });
  const { opened, open } = gate();
  server.tool('work', { task: 'allowed' }, async () => {
    await opened;
    return 'done';
  });
  const { client } = modern();
  const called = client.modern('tools/call', { name: 'work' });
  await clock.advance(30_000);
  open();
  assert.is(textOf(await called), 'done');
  await server.close();
});

test('a client that does not take tasks is refused by a tool that requires them, and by their methods', async () => {
  const { server, modern } = await stage();
  let runs = 0;
  server.tool('work', { task: 'required' }, () => {
    runs += 1;
  });
  const client = modern();
  const id = await client.start('work');
  const data = { requiredCapabilities: { extensions: { [TASKS_EXTENSION]: {} } } };
  for (const [method, params] of [
    ['tools/call', { name: 'work' }],
    ['tasks/get', { taskId: id }],
    ['tasks/update', { taskId: id, inputResponses: {} }],
    ['tasks/cancel', { taskId: id }],
    ['subscriptions/listen', { notifications: { taskIds: [id] } }],
  ] as const) {
    const error: object = await errorResponse(client.send(method, params, {}));
    assert.is('code' in error && error.code, ErrorCode.MissingRequiredClientCapability, method);
    assert.equal('data' in error && error.data, data, method);
  }
  assert.is(runs, 1);
  await server.close();
});

test('a tool that never is one ignores what 2025-11-25 asks for one with, and takes as long as it takes', async () => {
  const { server, clock, modern } = await stage({ taskAfterMs: 10 });
  const { opened, open } = gate();
  server.tool('work', {}, async () => {
    await opened;
    return 'done';
  });
  const called = modern().call('work', {}, { task: { ttl: 1 } });
  await clock.advance(1_000);
  open();
  assert.is(textOf(await called), 'done');
  await server.close();
});

test('the capability is announced once a tool can be a task, in the words of each revision', async () => {
  const { server, modern, legacy } = await stage();
  server.tool('plain', {}, () => '');
  const client = modern();
  const capabilities = async () => (await client.send('server/discover', {})).capabilities;
  assert.equal(inside({ capabilities: await capabilities() }, 'capabilities', 'extensions'), undefined);
  assert.is((await errorResponse(client.get('any'))).code, ErrorCode.MethodNotFound);
  server.tool('work', { task: 'allowed' }, () => '');
  assert.equal(inside({ capabilities: await capabilities() }, 'capabilities', 'extensions'), { [TASKS_EXTENSION]: {} });
  assert.is(inside({ capabilities: await capabilities() }, 'capabilities', 'tasks'), undefined);
  const session = await legacy();
  const [, answer] = session.messages;
  assert.equal(inside({ answer: answer?.parsed ?? null }, 'answer', 'result', 'capabilities', 'tasks'), {
    list: {},
    cancel: {},
    requests: { tools: { call: {} } },
  });
  const { tools } = await session.send('tools/list');
  assert.equal(Array.isArray(tools) && tools.map((tool) => inside({ tool }, 'tool', 'execution')), [
    undefined,
    { taskSupport: 'optional' },
  ]);
  const shown = await client.send('tools/list', {});
  assert.not.match(JSON.stringify(shown), 'execution');
  await server.close();
});

test('the questions of its handler are shown by tasks/get, and answered in parts', async () => {
  const { server, modern } = await stage();
  server.tool('pair', { task: 'required' }, async (_, ctx) => {
    const { one, two } = await ctx.ask({ one: { elicit: NAME }, two: { elicit: NAME } });
    return [one, two].map((each) => (each.status === 'accepted' ? each.content.name : each.status)).join(' and ');
  });
  const client = modern();
  const id = await client.start('pair');
  const asked = await client.get(id);
  assert.is(asked.status, 'input_required');
  assert.equal(keysOf(asked), ['one', 'two']);
  const acknowledged = await client.update(id, { two: accept({ name: 'Bob' }), three: accept({ name: 'Eve' }) });
  assert.equal(Object.keys(acknowledged).sort(), ['_meta', 'resultType']);
  const partly = await client.get(id);
  assert.is(partly.status, 'input_required');
  assert.equal(keysOf(partly), ['one']);
  // Answered already: ignored.
  await client.update(id, { two: accept({ name: 'Mallory' }) });
  await client.update(id, { one: accept({ name: 'Ada' }) });
  await settled();
  const ended = await client.get(id);
  assert.is(await client.said(idOf(ended)), 'Ada and Bob');
  assert.is(ended.inputRequests, undefined);
  await server.close();
});

test('no key is used twice: a question that is put again has a key of its own', async () => {
  const { server, modern } = await stage();
  server.tool('ask', { task: 'required' }, async (_, ctx) => {
    const answer = await ctx.elicit(NAME);
    return answer.status === 'accepted' ? answer.content.name : answer.status;
  });
  const client = modern();
  const id = await client.start('ask');
  assert.equal(keysOf(await client.get(id)), ['elicit']);
  await client.update(id, { elicit: accept({ name: 3 }) });
  await settled();
  assert.equal(keysOf(await client.get(id)), ['elicit#2']);
  // The old key names a question that was answered.
  await client.update(id, { elicit: accept({ name: 'Mallory' }) });
  assert.is(await client.status(id), 'input_required');
  await client.update(id, { 'elicit#2': accept({ name: 'Ada' }) });
  await settled();
  assert.is(await client.said(id), 'Ada');
  await server.close();
});

test('a call that asks first and works long then is parked, resumed, and becomes a task; waiting for the client does not count', async () => {
  const { server, clock, modern } = await stage({ taskAfterMs: 400 });
  const { opened, open } = gate();
  server.tool('ask', { task: 'allowed' }, async (_, ctx) => {
    const answer = await ctx.elicit(NAME);
    await opened;
    return `Hello, ${answer.status === 'accepted' ? answer.content.name : '?'}!`;
  });
  const client = modern();
  const asked = await client.call('ask');
  assert.is(asked.resultType, 'input_required');
  await clock.advance(60_000);
  const requestState = String(asked.requestState);
  const retry = { requestState, inputResponses: { elicit: accept({ name: 'Ada' }) } };
  const resumed = client.call('ask', {}, retry);
  await clock.advance(399);
  assert.ok(await pending(resumed));
  await clock.advance(1);
  const created = await resumed;
  assert.is(created.resultType, 'task');
  assert.is(created.requestState, undefined);
  // What was answered cannot be answered again.
  assert.is((await errorResponse(client.call('ask', {}, retry))).code, ErrorCode.InvalidParams);
  open();
  await settled();
  assert.is(await client.said(idOf(created)), 'Hello, Ada!');
  await server.close();
});

test('once it is a task, progress is its message, and nothing is sent for its request', async () => {
  const { server, modern } = await stage();
  const { opened, open } = gate();
  server.tool('work', { task: 'required' }, async (_, ctx) => {
    ctx.progress(1, 2, 'half of it');
    ctx.log.error('told to nobody');
    await opened;
    return 'done';
  });
  const { client } = modern();
  const created = await client.modern(
    'tools/call',
    { name: 'work' },
    {
      [META.clientCapabilities]: { extensions: { [TASKS_EXTENSION]: {} } },
      [META.logLevel]: 'debug',
      progressToken: 'p',
    },
  );
  const again = new Modern(client);
  assert.is((await again.get(idOf(created))).statusMessage, 'half of it');
  assert.equal(client.notifications, []);
  open();
  await settled();
  assert.is((await again.get(idOf(created))).statusMessage, undefined);
  await server.close();
});

test('cancelling aborts the signal, settles the status, and is acknowledged as often as it is asked for', async () => {
  const { server, modern } = await stage();
  const { opened, open } = gate();
  let reason: unknown;
  server.tool('work', { task: 'required' }, async (_, { signal }) => {
    signal.addEventListener('abort', () => {
      reason = signal.reason;
    });
    await opened;
    return 'too late';
  });
  server.tool('quick', { task: 'required' }, () => 'quick');
  const client = modern();
  const id = await client.start('work');
  for (const _ of [1, 2]) assert.equal(Object.keys(await client.cancel(id)).sort(), ['_meta', 'resultType']);
  assert.match(String(reason), 'the client cancelled it');
  assert.is(await client.status(id), 'cancelled');
  open();
  await settled();
  const after = await client.get(id);
  assert.is(after.status, 'cancelled');
  assert.is(after.result, undefined);
  const ended = await client.start('quick');
  await client.cancel(ended);
  assert.is(await client.status(ended), 'completed');
  await server.close();
});

test('a question that the handler waits for no longer is open no longer', async () => {
  const { server, modern } = await stage();
  const { opened, open } = gate();
  server.tool('ask', { task: 'required' }, async (_, ctx) => {
    const patience = new AbortController();
    void opened.then(() => patience.abort(new Error('too late')));
    const asked = ctx.ask({ who: { elicit: NAME } }, { signal: patience.signal });
    await asked.catch(() => {});
    await new Promise<void>((resolve) => ctx.signal.addEventListener('abort', () => resolve()));
  });
  const client = modern();
  const id = await client.start('ask');
  assert.equal(keysOf(await client.get(id)), ['who']);
  open();
  await settled();
  const after = await client.get(id);
  assert.equal([after.status, after.inputRequests], ['working', undefined]);
  await client.cancel(id);
  await server.close();
});

test('a report of its handler after the end changes nothing', async () => {
  const { server, clock, modern } = await stage();
  const { opened, open } = gate();
  server.tool('work', { task: 'required' }, async (_, ctx) => {
    await opened;
    ctx.progress(1, 1, 'done after all');
  });
  const client = modern();
  const id = await client.start('work');
  await client.cancel(id);
  const before = await client.get(id);
  await clock.advance(1_000);
  open();
  await settled();
  assert.equal(await client.get(id), before);
  await server.close();
});

test('cancelling ends what the handler waits for', async () => {
  const { server, modern } = await stage();
  let thrown: unknown;
  server.tool('ask', { task: 'required' }, async (_, ctx) => {
    try {
      await ctx.elicit(NAME);
    } catch (error) {
      thrown = error;
      throw error;
    }
  });
  const client = modern();
  const id = await client.start('ask');
  await client.cancel(id);
  await settled();
  assert.match(String(thrown), 'the client cancelled it');
  const after = await client.get(id);
  assert.equal([after.status, after.inputRequests], ['cancelled', undefined]);
  await server.close();
});

test('neither the end of the connection nor the deadline of requests ends a task', async () => {
  const { server, clock, modern } = await stage({ timeoutMs: 1_000, maxTimeoutMs: 1_000 });
  const { opened, open } = gate();
  let aborted = false;
  server.tool('work', { task: 'required', timeoutMs: 500 }, async (_, { signal }) => {
    await opened;
    aborted = signal.aborted;
    return 'done';
  });
  const first = modern('ada');
  const id = await first.start('work');
  await first.client.close();
  await clock.advance(60_000);
  open();
  await settled();
  assert.not(aborted);
  assert.is(await modern('ada').said(id), 'done');
  await server.close();
});

test('a cancelled notification for the request that became it is ignored', async () => {
  const { server, modern } = await stage();
  server.tool('work', { task: 'required' }, () => new Promise<string>(() => {}));
  const client = modern();
  const id = await client.start('work');
  client.client.notify('notifications/cancelled', { requestId: 1 });
  assert.is(await client.status(id), 'working');
  await server.close();
});

test('params that do not fit are refused', async () => {
  const { server, modern } = await stage();
  server.tool('work', { task: 'required' }, () => '');
  const client = modern();
  for (const [method, params, why] of [
    ['tasks/get', {}, 'params.taskId: expected a string, got nothing'],
    ['tasks/cancel', { taskId: 7 }, 'params.taskId: expected a string, got'],
    ['tasks/update', { taskId: 'a' }, 'params.inputResponses: expected an object, got nothing'],
    ['tasks/get', { taskId: 'a' }, 'params.taskId: unknown task "a"'],
  ] as const) {
    const error = await errorResponse(client.send(method, params));
    assert.is(error.code, ErrorCode.InvalidParams);
    assert.match(error.message, why);
  }
  await server.close();
});

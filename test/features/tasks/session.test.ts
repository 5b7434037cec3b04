/** The experimental tasks of 2025-11-25: a session asks for them, and waits for their results. */
import * as assert from 'uvu/assert';
import { isObject, type JsonObject } from '../../../src/core/protocol/json.ts';
import { META } from '../../../src/core/protocol/meta.ts';
import { ErrorCode } from '../../../src/index.ts';
import { isObjectInTest } from '../../../src/testing/test-json.ts';
import { settled, type TestClient } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { errorResponse, textOf } from '../../harness/results.ts';
import { accept, gate, idOf, inside, NAME, pending, stage } from './support.ts';

const test = suite('tasks (2025-11-25)');

function start(client: TestClient, name: string, task: JsonObject = {}): Promise<JsonObject> {
  return client.send('tools/call', { name, task });
}

async function question(client: TestClient): Promise<{ readonly id: unknown; readonly params: JsonObject }> {
  const message = await client.next(
    (each) => isObjectInTest(each) && each.method === 'elicitation/create',
    'a question',
  );
  if (!isObjectInTest(message) || !isObjectInTest(message.params)) throw new Error('expected a question');
  return { id: message.id, params: message.params };
}

const respond = (client: TestClient, id: unknown, result: JsonObject): void =>
  client.raw(JSON.stringify({ jsonrpc: '2.0', id, result }));

test('a call is a task where its client asks for one, and tasks/result waits for its end', async () => {
  const { server, clock, legacy } = await stage();
  const { opened, open } = gate();
  server.tool('work', { task: 'allowed' }, async () => {
    await opened;
    return 'done';
  });
  const client = await legacy();
  const { task } = await start(client, 'work', { ttl: 90_000 });
  assert.equal(task, {
    taskId: idOf({ task: task ?? null }),
    status: 'working',
    createdAt: '2026-01-01T00:00:00.000Z',
    lastUpdatedAt: '2026-01-01T00:00:00.000Z',
    ttl: 90_000,
    pollInterval: 1_000,
  });
  const taskId = idOf({ task: task ?? null });
  const result = client.send('tasks/result', { taskId });
  // Longer than any request may take.
  await clock.advance(80_000);
  assert.ok(await pending(result));
  open();
  const ended = await result;
  assert.is(textOf(ended), 'done');
  assert.equal(ended._meta, { [META.relatedTask]: { taskId } });
  assert.equal(await client.send('tasks/result', { taskId }), ended);
  const looked = await client.send('tasks/get', { taskId });
  assert.is(looked.status, 'completed');
  assert.is(looked._meta, undefined);
  await server.close();
});

test('the time to live that is asked for is honoured up to the limit', async () => {
  const { server, legacy } = await stage({ taskTtlMs: 5_000 });
  server.tool('work', { task: 'allowed' }, () => '');
  const client = await legacy();
  for (const [asked, given] of [
    [{ ttl: 4_000 }, 4_000],
    [{ ttl: 6_000 }, 5_000],
    [{}, 5_000],
  ] as const)
    assert.is(inside(await start(client, 'work', asked), 'task', 'ttl'), given);
  assert.is((await errorResponse(start(client, 'work', { ttl: 0 }))).code, ErrorCode.InvalidParams);
  await server.close();
});

test('without params.task a tool that allows tasks answers plainly, however long it takes; one that requires them is not there', async () => {
  const { server, clock, legacy } = await stage({ taskAfterMs: 10 });
  const { opened, open } = gate();
  let runs = 0;
  server.tool('may', { task: 'allowed' }, async () => {
    await opened;
    return 'done';
  });
  server.tool('must', { task: 'required' }, () => {
    runs += 1;
  });
  server.tool('never', {}, () => {
    runs += 1;
  });
  const client = await legacy();
  const called = client.call('may');
  await clock.advance(1_000);
  open();
  assert.is(textOf(await called), 'done');
  assert.is((await errorResponse(client.send('tools/call', { name: 'must' }))).code, ErrorCode.MethodNotFound);
  assert.is((await errorResponse(start(client, 'never'))).code, ErrorCode.MethodNotFound);
  assert.is(runs, 0);
  await server.close();
});

test('a revision that has no tasks reads over params.task, and has none of their methods', async () => {
  const { server, legacy } = await stage();
  server.tool('may', { task: 'allowed' }, () => 'plain');
  server.tool('must', { task: 'required' }, () => 'never');
  const client = await legacy('ada', '2025-06-18');
  assert.is(textOf(await start(client, 'may')), 'plain');
  assert.is((await errorResponse(client.send('tools/call', { name: 'must' }))).code, ErrorCode.MethodNotFound);
  for (const method of ['tasks/list', 'tasks/get', 'tasks/result', 'tasks/cancel'])
    assert.is((await errorResponse(client.send(method, { taskId: 'any' }))).code, ErrorCode.MethodNotFound, method);
  await server.close();
});

test('a tool that fails has failed as a task, and its result is what the call would have had', async () => {
  const { server, legacy } = await stage();
  server.tool('trips', { task: 'required' }, () => {
    throw new Error('it tripped');
  });
  const client = await legacy();
  const taskId = idOf(await start(client, 'trips'));
  const looked = await client.send('tasks/get', { taskId });
  assert.equal([looked.status, looked.statusMessage], ['failed', 'it tripped']);
  const result = await client.send('tasks/result', { taskId });
  assert.is(result.isError, true);
  await server.close();
});

test('a question of its handler goes to the request that waits for the result, names the task, and takes the response', async () => {
  const { server, legacy } = await stage();
  server.tool('ask', { task: 'required' }, async (_, ctx) => {
    const answer = await ctx.elicit(NAME);
    return answer.status === 'accepted' ? `Hello, ${answer.content.name}!` : answer.status;
  });
  const client = await legacy();
  const taskId = idOf(await start(client, 'ask'));
  await settled();
  assert.is((await client.send('tasks/get', { taskId })).status, 'input_required');
  assert.equal(client.rest(), []);
  const result = client.send('tasks/result', { taskId });
  const { id, params } = await question(client);
  assert.equal(isObject(params._meta) && params._meta[META.relatedTask], { taskId });
  respond(client, id, accept({ name: 'Ada' }));
  assert.is(textOf(await result), 'Hello, Ada!');
  await server.close();
});

test('a question whose asker leaves is withdrawn, and put to the next that waits', async () => {
  const { server, legacy } = await stage({ maxRunning: 2 });
  server.tool('ask', { task: 'required' }, async (_, ctx) => (await ctx.elicit(NAME)).status);
  const client = await legacy();
  const taskId = idOf(await start(client, 'ask'));
  // More often than handlers may run that nobody waits for: none is left of these.
  for (let time = 0; time < 4; time += 1) {
    client.raw(JSON.stringify({ jsonrpc: '2.0', id: `r${time}`, method: 'tasks/result', params: { taskId } }));
    const { id } = await question(client);
    client.notify('notifications/cancelled', { requestId: `r${time}` });
    const { requestId } = await client.notification('notifications/cancelled');
    assert.is(requestId, id);
    // It was withdrawn: nobody waits for this.
    respond(client, id, { action: 'decline' });
    await settled();
    assert.is((await client.send('tasks/get', { taskId })).status, 'input_required');
  }
  const result = client.send('tasks/result', { taskId });
  const { id } = await question(client);
  respond(client, id, { action: 'decline' });
  assert.is(textOf(await result), 'declined');
  await server.close();
});

test('a question that was answered by other means is withdrawn from the session that was asked', async () => {
  const { server, legacy, modern } = await stage();
  server.tool('ask', { task: 'required' }, async (_, ctx) => (await ctx.elicit(NAME)).status);
  const client = await legacy('ada');
  const taskId = idOf(await start(client, 'ask'));
  const result = client.send('tasks/result', { taskId });
  const { id } = await question(client);
  await modern('ada').update(taskId, { elicit: { action: 'decline' } });
  assert.is((await client.notification('notifications/cancelled')).requestId, id);
  assert.is(textOf(await result), 'declined');
  await server.close();
});

test('cancelling shows the task, ends those that wait, and is refused for a task that has ended', async () => {
  const { server, legacy } = await stage();
  server.tool('work', { task: 'required' }, () => new Promise<string>(() => {}));
  const client = await legacy();
  const taskId = idOf(await start(client, 'work'));
  const waiting = errorResponse(client.send('tasks/result', { taskId }));
  const shown = await client.send('tasks/cancel', { taskId });
  assert.equal([shown.taskId, shown.status], [taskId, 'cancelled']);
  assert.match((await waiting).message, 'the client cancelled it');
  const refused = await errorResponse(client.send('tasks/cancel', { taskId }));
  assert.is(refused.code, ErrorCode.InvalidParams);
  assert.match(refused.message, 'cancelled');
  await server.close();
});

test('tasks/list pages through the tasks of its principal only', async () => {
  const { server, legacy } = await stage({ pageSize: 2 });
  server.tool('work', { task: 'required' }, () => '');
  const [ada, bob] = [await legacy('ada'), await legacy('bob')];
  const own = [];
  for (let time = 0; time < 5; time += 1) {
    own.push(idOf(await start(ada, 'work')));
    await start(bob, 'work');
  }
  const listed: unknown[] = [];
  const sizes: number[] = [];
  let cursor: JsonObject = {};
  do {
    const { tasks, nextCursor } = await ada.send('tasks/list', cursor);
    if (!Array.isArray(tasks)) throw new Error('expected tasks');
    listed.push(...tasks.map((task) => inside({ task }, 'task', 'taskId')));
    sizes.push(tasks.length);
    cursor = { cursor: nextCursor ?? null };
  } while (cursor.cursor !== null);
  assert.equal(listed, own);
  assert.equal(sizes, [2, 2, 1]);
  for (const wrong of ['o1', 'tzzzz', ''])
    assert.is((await errorResponse(ada.send('tasks/list', { cursor: wrong }))).code, ErrorCode.InvalidParams, wrong);
  await server.close();
});

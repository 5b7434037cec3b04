/** Whose a task is, how many there may be, and when they end for good. */
import * as assert from 'uvu/assert';
import { ErrorCode, type InspectionRecord } from '../../../src/index.ts';
import { settled } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { errorResponse, textOf } from '../../harness/results.ts';
import { gate, idOf, NAME, pending, stage } from './support.ts';

const test = suite('tasks: owners and bounds');

test("another principal's task and an unknown task get the same response", async () => {
  const { server, modern, legacy } = await stage();
  server.tool('work', { task: 'required' }, () => 'secret');
  const id = await modern('ada').start('work');
  const bob = modern('bob');
  const session = await legacy('bob');
  const said = new Set<string>();
  for (const taskId of [id, 'a'.repeat(22)]) {
    for (const call of [
      bob.get(taskId),
      bob.update(taskId, {}),
      bob.cancel(taskId),
      session.send('tasks/get', { taskId }),
      session.send('tasks/result', { taskId }),
      session.send('tasks/cancel', { taskId }),
    ]) {
      const { code, message } = await errorResponse(call);
      assert.is(code, ErrorCode.InvalidParams);
      said.add(message.replace(taskId, '…'));
    }
  }
  assert.is(said.size, 1);
  assert.equal((await session.send('tasks/list')).tasks, []);
  assert.is(await modern('ada').status(id), 'completed');
  await server.close();
});

test('a principal reaches its tasks in either era, and from another session', async () => {
  const { server, modern, legacy } = await stage();
  server.tool('work', { task: 'required' }, () => 'done');
  const first = await legacy('ada');
  const taskId = idOf(await first.send('tools/call', { name: 'work', task: {} }));
  await first.close();
  const second = await legacy('ada');
  assert.is(textOf(await second.send('tasks/result', { taskId })), 'done');
  assert.is(await modern('ada').status(taskId), 'completed');
  await server.close();
});

test('if clients are anonymous, a task belongs to its session, or to any client with its id', async () => {
  const { server, modern, legacy } = await stage();
  server.tool('work', { task: 'required' }, () => 'done');
  const [one, other] = [await legacy(), await legacy()];
  const taskId = idOf(await one.send('tools/call', { name: 'work', task: {} }));
  assert.is((await one.send('tasks/get', { taskId })).status, 'completed');
  for (const call of [other.send('tasks/get', { taskId }), modern().get(taskId)])
    assert.is((await errorResponse(call)).code, ErrorCode.InvalidParams);
  assert.equal((await other.send('tasks/list')).tasks, []);
  const free = await modern().start('work');
  assert.is(await modern().status(free), 'completed');
  assert.is((await errorResponse(one.send('tasks/get', { taskId: free }))).code, ErrorCode.InvalidParams);
  await server.close();
});

test('there are so many tasks and no more, in all and for each principal; where there is no room, an allowed call stays a request', async () => {
  const { server, clock, modern } = await stage({ maxTasks: 3, maxTasksPerPrincipal: 2, taskAfterMs: 10 });
  const { opened, open } = gate();
  server.tool('work', { task: 'required' }, () => '');
  server.tool('may', { task: 'allowed' }, async () => {
    await opened;
    return 'plain';
  });
  const [ada, bob] = [modern('ada'), modern('bob')];
  await ada.start('work');
  await ada.start('work');
  const own = await errorResponse(ada.call('work'));
  assert.is(own.code, ErrorCode.Overloaded);
  assert.match(own.message, 'limits.maxTasksPerPrincipal');
  await bob.start('work');
  assert.match((await errorResponse(bob.call('work'))).message, 'limits.maxTasks)');
  const called = bob.call('may');
  await clock.advance(1_000);
  assert.ok(await pending(called));
  open();
  assert.is(textOf(await called), 'plain');
  await server.close();
});

test('anonymous clients have no cap of their own', async () => {
  const { server, modern } = await stage({ maxTasksPerPrincipal: 1 });
  server.tool('work', { task: 'required' }, () => '');
  await modern().start('work');
  await modern().start('work');
  await server.close();
});

test('a task is kept for its time to live, and is then forgotten, and aborted if it still works', async () => {
  const { server, clock, modern } = await stage({ taskTtlMs: 10_000, maxTasks: 2 });
  const { opened, open } = gate();
  let reason: unknown;
  server.tool('quick', { task: 'required' }, () => 'done');
  server.tool('stuck', { task: 'required' }, async (_, { signal }) => {
    signal.addEventListener('abort', () => {
      reason = signal.reason;
    });
    await opened;
  });
  const client = modern();
  await errorResponse(client.get('none'));
  const before = clock.timers;
  const [quick, stuck] = [await client.start('quick'), await client.start('stuck')];
  await clock.advance(9_999);
  assert.is(await client.status(quick), 'completed');
  assert.is(await client.status(stuck), 'working');
  await clock.advance(1);
  for (const id of [quick, stuck]) assert.is((await errorResponse(client.get(id))).code, ErrorCode.InvalidParams);
  assert.match(String(reason), 'its time to live has passed');
  assert.is(clock.timers, before);
  // A handler that does not heed its signal keeps its place.
  await client.start('quick');
  assert.is((await errorResponse(client.call('quick'))).code, ErrorCode.Overloaded);
  open();
  await settled();
  await client.start('quick');
  await server.close();
});

test('tasks that still work when the server stops are cancelled', async () => {
  const { server, modern } = await stage();
  const reasons: string[] = [];
  server.tool('work', { task: 'required' }, async (_, { signal }) => {
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
    reasons.push(String(signal.reason));
  });
  server.tool('ask', { task: 'required' }, async (_, ctx) => {
    try {
      await ctx.elicit(NAME);
    } catch (error) {
      reasons.push(String(error));
    }
  });
  const client = modern();
  await client.start('work');
  await client.start('ask');
  await server.close();
  await settled();
  assert.is(reasons.length, 2);
  for (const reason of reasons) assert.match(reason, /^AbortError: /);
});

test('the inspector sees each task, what it waits for, and that it is gone; and not its whole id', async () => {
  const { server, clock, modern } = await stage({ taskTtlMs: 1_000 });
  server.tool('pair', { task: 'required' }, async (_, ctx) => {
    const { one, two } = await ctx.ask({ one: { elicit: NAME }, two: { elicit: NAME } });
    return `${one.status} ${two.status}`;
  });
  const records: InspectionRecord[] = [];
  server.inspect((record) => void records.push(record));
  const client = modern();
  const id = await client.start('pair');
  await settled();
  await client.update(id, { one: { action: 'decline' }, two: { action: 'cancel' } });
  await settled();
  await clock.advance(1_000);
  const address = `task/${id.slice(0, 10)}`;
  const seen = records.flatMap((record) => {
    if (!('actor' in record) || record.actor !== address) return [];
    if (record.type === 'created') return [record.kind];
    if (record.type === 'state') return [record.state];
    return record.type === 'gone' ? ['gone'] : [];
  });
  assert.equal(seen, ['task', 'working', 'input_required (1)', 'input_required (2)', 'working', 'completed', 'gone']);
  assert.not(records.some((record) => 'actor' in record && record.actor.includes(id)));
  await server.close();
});

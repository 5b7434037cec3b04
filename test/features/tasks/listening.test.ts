/** Tasks on a listen stream: notifications/tasks, for those that may look. */
import * as assert from 'uvu/assert';
import { isObject, type JsonObject } from '../../../src/core/protocol/json.ts';
import { META } from '../../../src/core/protocol/meta.ts';
import { ErrorCode } from '../../../src/index.ts';
import { settled } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { errorResponse } from '../../harness/results.ts';
import { accept, EXTENSION, gate, type Modern, NAME, stage } from './support.ts';

const test = suite('tasks on a stream');

const UNWRITABLE = {
  toJSON() {
    throw new Error('no');
  },
};

function listen({ client }: Modern, id: string, taskIds: readonly string[]): void {
  const _meta = { [META.protocolVersion]: '2026-07-28', [META.clientCapabilities]: EXTENSION };
  client.raw(
    JSON.stringify({
      jsonrpc: '2.0',
      id,
      method: 'subscriptions/listen',
      params: { notifications: { taskIds }, _meta },
    }),
  );
}

async function acknowledged({ client }: Modern): Promise<unknown> {
  return (await client.notification('notifications/subscriptions/acknowledged')).notifications;
}

/** What was told of tasks so far, without who it is for. */
function told({ client }: Modern): readonly JsonObject[] {
  return client.rest().flatMap((message) => {
    const params = isObject(message) && message.method === 'notifications/tasks' ? message.params : undefined;
    if (!isObject(params)) return [];
    const { _meta: _, ...task } = params as JsonObject;
    return [task];
  });
}

test('a subscription receives the state of a task, and then each change, as tasks/get would show it', async () => {
  const { server, clock, modern } = await stage();
  const { opened, open } = gate();
  server.tool('ask', { task: 'required' }, async (_, ctx) => {
    await opened;
    const answer = await ctx.elicit(NAME);
    return answer.status;
  });
  const client = modern('ada');
  const id = await client.start('ask');
  listen(client, 'l', [id, 'nobodys']);
  assert.equal(await acknowledged(client), { taskIds: [id] });
  assert.equal(
    told(client).map(({ status }) => status),
    ['working'],
  );
  open();
  await clock.advance(10);
  const [asked] = told(client);
  const { resultType: _, _meta: __, ...looked } = await client.get(id);
  assert.equal(asked, looked);
  assert.is(asked?.status, 'input_required');
  await client.update(id, { elicit: accept({ name: 'Ada' }) });
  await settled();
  await clock.advance(10);
  assert.equal(
    told(client).map(({ status }) => status),
    ['completed'],
  );
  await clock.advance(1_000);
  assert.equal(told(client), []);
  await server.close();
});

test("a subscription is not notified of another principal's task", async () => {
  const { server, clock, modern } = await stage();
  const { opened, open } = gate();
  server.tool('work', { task: 'required' }, async () => {
    await opened;
    return 'secret';
  });
  const id = await modern('ada').start('work');
  const bob = modern('bob');
  listen(bob, 'l', [id]);
  assert.equal(await acknowledged(bob), { taskIds: [] });
  open();
  await clock.advance(1_000);
  assert.equal(told(bob), []);
  await server.close();
});

test('a result that JSON cannot hold is left out, and the stream continues', async () => {
  const { server, clock, modern, told: log } = await stage();
  const { opened, open } = gate();
  server.tool('odd', { task: 'required' }, async () => {
    await opened;
    return { content: [], _meta: { odd: UNWRITABLE } };
  });
  const client = modern('ada');
  const id = await client.start('odd');
  listen(client, 'l', [id]);
  await acknowledged(client);
  told(client);
  open();
  await clock.advance(10);
  assert.equal(
    client.client.rest().map((message) => isObject(message) && isObject(message.params) && message.params.status),
    ['completed'],
  );
  assert.is(log.length, 1);
  await server.close().catch(() => {});
});

test('too many tasks are too many resources', async () => {
  const { server, modern } = await stage({ maxSubscriptions: 1 });
  server.tool('work', { task: 'required' }, () => '');
  const error = await errorResponse(modern().send('subscriptions/listen', { notifications: { taskIds: ['a', 'b'] } }));
  assert.is(error.code, ErrorCode.InvalidParams);
  assert.match(error.message, 'maxSubscriptions');
  await server.close();
});

/** The official client (version 1) has tasks of 2025-11-25: it creates, polls, answers and cancels them over HTTP. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import * as assert from 'uvu/assert';
import { createServer } from '../../../src/index.ts';
import { suite } from '../../harness/door.ts';
import { gate, NAME } from './support.ts';

const test = suite('tasks (official client)');

async function connected(): Promise<{ readonly client: Client; close(): Promise<void> }> {
  const server = createServer({ name: 'tasks', version: '1.0.0', limits: { taskPollMs: 5 }, log: () => {} });
  server.tool('ask', { task: 'required' }, async (_, ctx) => {
    const answer = await ctx.elicit(NAME);
    return `Hello, ${answer.status === 'accepted' ? answer.content.name : answer.status}!`;
  });
  server.tool('stuck', { task: 'allowed' }, async (_, { signal }) => {
    const { opened, open } = gate();
    signal.addEventListener('abort', open);
    await opened;
  });
  const client = new Client({ name: 'official', version: '1' }, { capabilities: { elicitation: {} } });
  client.setRequestHandler(ElicitRequestSchema, () => ({ action: 'accept', content: { name: 'Ada' } }));
  const transport = new StreamableHTTPClientTransport(new URL('http://localhost:3000/mcp'), {
    fetch: (url, init) => server.fetch(new Request(url, init)),
  });
  // Its types do not know exactOptionalPropertyTypes.
  await client.connect(transport as Parameters<typeof client.connect>[0]);
  await client.listTools();
  return {
    client,
    async close() {
      await client.close();
      await server.close();
    },
  };
}

test('it follows a call from its creation over a question to the result', async () => {
  const { client, close } = await connected();
  const seen: string[] = [];
  for await (const message of client.experimental.tasks.callToolStream({ name: 'ask', arguments: {} })) {
    if (message.type === 'result') seen.push(JSON.stringify(message.result.content));
    else if (message.type === 'error') seen.push(message.error.message);
    else seen.push(message.type);
  }
  assert.is(seen[0], 'taskCreated');
  assert.is(seen.at(-1), '[{"type":"text","text":"Hello, Ada!"}]');
  await close();
});

test('it lists and cancels', async () => {
  const { client, close } = await connected();
  const { tasks } = client.experimental;
  const calls = tasks.callToolStream({ name: 'stuck', arguments: {} }, undefined, { task: { ttl: 60_000 } });
  const { value: created } = await calls.next();
  const taskId = created?.type === 'taskCreated' ? created.task.taskId : '';
  assert.equal(
    (await tasks.listTasks()).tasks.map((task) => [task.taskId, task.status]),
    [[taskId, 'working']],
  );
  assert.is((await tasks.cancelTask(taskId)).status, 'cancelled');
  assert.is((await tasks.getTask(taskId)).status, 'cancelled');
  await calls.return(undefined);
  await close();
});

/** Tasks of an upstream: as tasks of the gateway where the client takes them, and as waiting calls elsewhere. */
import { createServer, type Server } from 'troupe';
import { SimulatedClock, settled, TestClient } from 'troupe/testing';
import * as assert from 'uvu/assert';
import type { JsonObject } from '../../../src/core/protocol/json.ts';
import { memory } from '../../../src/index.ts';
import { isObjectInTest, readJson } from '../../../src/testing/test-json.ts';
import { EXTENSION, idOf, Modern } from '../../features/tasks/support.ts';
import { suite } from '../../harness/door.ts';
import { textOf } from '../../harness/results.ts';
import { untilPassed } from '../../harness/wait.ts';
import { type Era, FORM, speakLegacy } from './asking-server.ts';

const test = suite('tasks through a gateway');

interface TaskStage {
  readonly gateway: Server;
  readonly clock: SimulatedClock;
  /** What the upstream's tool did, in order. */
  readonly log: string[];
  /** Ends the work of the upstream. */
  readonly finish: () => void;
  open(onMessage?: (message: { readonly text: string }) => void): TestClient;
  close(): Promise<void>;
}

const POLL_MS = 1_000;

async function stage(era: Era): Promise<TaskStage> {
  const clock = new SimulatedClock();
  const log: string[] = [];
  let finish = (): void => {};
  const finished = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const upstream = createServer({ name: 'worker', version: '1.0.0', clock, log() {}, limits: { taskPollMs: POLL_MS } });
  if (era === 'legacy') speakLegacy(upstream);
  upstream.tool('work', { task: 'required' }, async (_, ctx) => {
    log.push('began');
    ctx.signal.addEventListener('abort', () => log.push('aborted'));
    ctx.progress(1, 2, 'half way');
    await finished;
    log.push('finished');
    return 'worked';
  });
  upstream.tool('ask', { task: 'required' }, async (_, ctx) => {
    log.push('began');
    const answer = await ctx.elicit({ message: 'Which size?', schema: FORM });
    return answer.status === 'accepted' ? answer.content.size : answer.status;
  });
  upstream.tool('fail', { task: 'required' }, () => {
    throw new Error('broken');
  });
  upstream.tool('optional', { task: 'allowed' }, (_, ctx) => {
    log.push(ctx.client.era);
    return 'quick';
  });
  const gateway = createServer({ name: 'gateway', version: '1.0.0', clock, log() {}, limits: { taskPollMs: POLL_MS } });
  await gateway.mount('up', upstream);
  const { transport, connect } = memory();
  await gateway.listen(transport);
  return {
    gateway,
    clock,
    log,
    finish,
    open: (onMessage) => new TestClient(connect(), onMessage ? { onMessage } : {}),
    async close() {
      await gateway.close();
      await upstream.close();
    },
  };
}

/** Lets time pass until a promise resolves. */
async function inTime<T>(clock: SimulatedClock, promise: Promise<T>): Promise<T> {
  let done = false;
  const end = (): void => {
    done = true;
  };
  promise.then(end, end);
  for (let turn = 0; turn < 40 && !done; turn += 1) {
    await settled();
    if (!done) await clock.advance(POLL_MS / 4);
  }
  return promise;
}

for (const era of ['legacy', 'modern'] as const) {
  test(`a client that takes tasks gets the task of a ${era} upstream as one of the gateway's`, async () => {
    const { open, clock, log, finish, close } = await stage(era);
    const client = new Modern(open());
    const id = idOf(await inTime(clock, client.call('up_work')));
    await untilPassed(clock, async () => (await client.get(id)).statusMessage === 'half way', POLL_MS / 4);
    assert.is(await client.status(id), 'working');
    finish();
    await untilPassed(clock, async () => (await client.status(id)) === 'completed', POLL_MS / 4);
    assert.is(await client.said(id), 'worked');
    assert.equal(log, ['began', 'finished']);
    await close();
  });

  test(`a task of a ${era} upstream asks the client of the call`, async () => {
    const { open, clock, log, close } = await stage(era);
    const client = new Modern(open());
    const id = idOf(await inTime(clock, client.call('up_ask')));
    await untilPassed(clock, async () => (await client.status(id)) === 'input_required', POLL_MS / 4);
    const { inputRequests } = await client.get(id);
    assert.ok(isObjectInTest(inputRequests));
    const [[key, request] = []] = Object.entries(inputRequests);
    assert.ok(isObjectInTest(request) && isObjectInTest(request.params));
    assert.is(request.params.message, '[up] Which size?');
    assert.equal(request.params.requestedSchema, FORM);
    await client.update(id, { [String(key)]: { action: 'accept', content: { size: 'S' } } });
    await untilPassed(clock, async () => (await client.status(id)) === 'completed', POLL_MS / 4);
    assert.is(await client.said(id), 'S');
    assert.equal(log, ['began']);
    await close();
  });

  test(`a cancelled task is cancelled at a ${era} upstream`, async () => {
    const { open, clock, log, close } = await stage(era);
    const client = new Modern(open());
    const id = idOf(await inTime(clock, client.call('up_work')));
    await settled();
    await client.cancel(id);
    await untilPassed(clock, async () => log.includes('aborted'), POLL_MS / 4);
    assert.is(await client.status(id), 'cancelled');
    await close();
  });

  test(`a session without tasks waits for the task of a ${era} upstream, and gets its status as progress`, async () => {
    const { open, clock, log, finish, close } = await stage(era);
    const progress: string[] = [];
    const client = open(({ text }) => {
      const message = readJson(text);
      if (isObjectInTest(message) && isObjectInTest(message.params) && message.method === 'notifications/progress')
        progress.push(String(message.params.message));
    });
    const params = { name: 'up_work', arguments: {}, _meta: { progressToken: 'p' } };
    await client.initialize('2025-11-25', {});
    const result = client.send('tools/call', params);
    await untilPassed(clock, async () => progress.includes('half way'), POLL_MS / 4);
    finish();
    const ended = (await inTime(clock, result)) as JsonObject;
    assert.is(textOf(ended), 'worked');
    // The task of the upstream is not the client's to know.
    assert.is(ended._meta, undefined);
    assert.equal(log, ['began', 'finished']);
    await close();
  });

  test(`a modern client that does not declare tasks gets the error of a tool that needs them, of a ${era} upstream`, async () => {
    const { open, clock, log, close } = await stage(era);
    const called = open().modern('tools/call', { name: 'up_work', arguments: {} });
    const error = await inTime(clock, called).catch((thrown: unknown) => thrown);
    assert.equal(
      [Object(error).code, Object(error).data],
      [-32021, { requiredCapabilities: { extensions: EXTENSION.extensions } }],
    );
    assert.equal(log, []);
    await close();
  });

  test(`a session asks for a task, and a ${era} upstream gets one call`, async () => {
    const { open, clock, log, close } = await stage(era);
    const client = open();
    await client.initialize('2025-11-25', { elicitation: {} });
    const tools = await client.send('tools/list');
    assert.ok(isObjectInTest(tools) && Array.isArray(tools.tools));
    for (const tool of tools.tools) assert.equal(tool.execution, { taskSupport: 'optional' });
    for (const name of ['up_optional', 'up_ask']) {
      const created = (await client.send('tools/call', {
        name,
        arguments: {},
        task: { ttl: 60_000 },
      })) as JsonObject;
      const taskId = idOf(created);
      if (name === 'up_ask') {
        const waiting = client.send('tasks/result', { taskId });
        const asked = (await inTime(
          clock,
          client.next((each) => isObjectInTest(each) && each.method === 'elicitation/create', 'a question'),
        )) as JsonObject;
        client.raw(
          JSON.stringify({ jsonrpc: '2.0', id: asked.id, result: { action: 'accept', content: { size: 'S' } } }),
        );
        assert.is(textOf((await inTime(clock, waiting)) as JsonObject), 'S');
      } else assert.is(textOf((await inTime(clock, client.send('tasks/result', { taskId }))) as JsonObject), 'quick');
    }
    assert.equal(log, [era, 'began']);
    await close();
  });
}

test('a failed task is a failed call', async () => {
  const { open, clock, close } = await stage('modern');
  const client = open();
  await client.initialize('2025-11-25', {});
  const takesNone = await inTime(clock, client.send('tools/call', { name: 'up_fail', arguments: {} }));
  assert.is(Object(takesNone).isError, true);
  await close();
});

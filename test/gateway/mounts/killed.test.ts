/** The process of a gateway is killed between question and answer, and while a task works and asks. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer, http, type Server } from 'troupe';
import * as assert from 'uvu/assert';
import { isObject, type JsonObject } from '../../../src/core/protocol/json.ts';
import { META } from '../../../src/core/protocol/meta.ts';
import { TASKS_EXTENSION } from '../../../src/core/protocol/task-params.ts';
import { SELF, send } from '../../core/http/modern.ts';
import { accept } from '../../features/asking/support.ts';
import { startable } from '../../harness/compiled.ts';
import { fullOnly, suite } from '../../harness/door.ts';
import { textOf } from '../../harness/results.ts';
import { elapse } from '../../harness/wait.ts';
import { type Era, FORM, speakLegacy } from './asking-server.ts';

fullOnly('kills gateways; the quick test of a restart is restarts.test.ts');

const test = suite('a gateway that is killed');

const CAPABILITIES = { elicitation: { form: {} }, extensions: { [TASKS_EXTENSION]: {} } };
const ANSWER = accept({ size: 'S', gift: true });
const POLL_MS = 20;

interface World {
  readonly runs: string[];
  readonly finish: () => void;
  /** Sends a request to the gateway that runs now. */
  ask(method: string, params: JsonObject, tasks?: boolean): Promise<JsonObject>;
  /** Kills the gateway and starts the next one. */
  replace(): Promise<void>;
}

const closers: (() => Promise<void>)[] = [];
test.afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

async function worldOf(era: Era): Promise<World> {
  const folder = mkdtempSync(join(tmpdir(), 'gateway-'));
  const runs: string[] = [];
  let finish = (): void => {};
  const finished = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const upstream: Server = createServer({ name: 'up', version: '1.0.0', log() {}, limits: { taskPollMs: 50 } });
  if (era === 'legacy') speakLegacy(upstream);
  upstream.tool('form', {}, async (_, ctx) => {
    runs.push('form');
    const answer = await ctx.elicit({ message: 'Which size?', schema: FORM });
    runs.push('formed');
    return answer.status === 'accepted' ? answer.content.size : answer.status;
  });
  upstream.tool('work', { task: 'required' }, async (_, ctx) => {
    runs.push('work');
    await finished;
    const answer = await ctx.elicit({ message: 'Which size?', schema: FORM });
    runs.push('worked');
    return answer.status === 'accepted' ? answer.content.size : answer.status;
  });
  const transport = http({ port: 0 });
  await upstream.listen(transport);
  let gateway: { readonly child: ChildProcess; readonly url: string } | undefined;
  const start = async (): Promise<void> => {
    const args = [startable('test/fixtures/mounts/lasting.ts'), String(transport.url), join(folder, 'store.db')];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    const [line] = await once(child.stdout, 'data');
    gateway = { child, url: String(line).trim() };
  };
  const kill = async (): Promise<void> => {
    if (!gateway) return;
    gateway.child.kill('SIGKILL');
    await once(gateway.child, 'exit');
  };
  closers.push(async () => {
    await kill();
    await upstream.close();
    rmSync(folder, { recursive: true, force: true });
  });
  await start();
  return {
    runs,
    finish,
    async ask(method, params, tasks = false) {
      const { extensions, ...asked } = CAPABILITIES;
      const meta = { ...SELF, [META.clientCapabilities]: tasks ? { ...asked, extensions } : asked };
      const headers = typeof params.taskId === 'string' ? { 'mcp-name': params.taskId } : {};
      const message = await (await send(gateway?.url ?? '', method, { params, meta, headers })).json();
      if (!isObject(message) || !isObject(message.result)) throw new Error(`no result: ${JSON.stringify(message)}`);
      return message.result as JsonObject;
    },
    async replace() {
      await kill();
      await start();
    },
  };
}

for (const era of ['modern', 'legacy'] as const)
  test(`U-12: a call of a ${era} upstream over HTTP is answered after the process was killed, and runs once`, async () => {
    const { ask, replace, runs } = await worldOf(era);
    const asked = await ask('tools/call', { name: 'up_form', arguments: {} });
    assert.is(asked.resultType, 'input_required');
    const [key = ''] = Object.keys(asked.inputRequests ?? {});
    await replace();
    const { requestState = '' } = asked;
    const retry = { name: 'up_form', arguments: {}, requestState, inputResponses: { [key]: ANSWER } };
    assert.is(textOf(await ask('tools/call', retry)), 'S');
    assert.equal(runs, ['form', 'formed']);
  });

test('U-13: a task of a modern upstream is followed and answered over two kills, and runs once', async () => {
  const { ask, replace, runs, finish } = await worldOf('modern');
  const { taskId = '' } = await ask('tools/call', { name: 'up_work', arguments: {} }, true);
  const look = (): Promise<JsonObject> => ask('tasks/get', { taskId }, true);
  const until = async (status: string): Promise<JsonObject> => {
    for (;;) {
      const task = await look();
      if (task.status === status) return task;
      if (task.status !== 'working' && task.status !== 'input_required') throw new Error(JSON.stringify(task));
      await elapse(POLL_MS, 'a client polls');
    }
  };
  await until('working');
  await replace();
  finish();
  const { inputRequests } = await until('input_required');
  await replace();
  const [key = ''] = Object.keys(inputRequests ?? {});
  await ask('tasks/update', { taskId, inputResponses: { [key]: ANSWER } }, true);
  const { result } = await until('completed');
  assert.is(textOf(isObject(result) ? result : {}), 'S');
  assert.equal(runs, ['work', 'worked']);
});

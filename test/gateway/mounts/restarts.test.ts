/** A gateway that ends between a question and its answer, or while a task works: the call continues, or ends in words, and never runs twice. */
import { createServer, http, type Mount, type Server } from 'troupe';
import { SimulatedClock, settled } from 'troupe/testing';
import * as assert from 'uvu/assert';
import type { JsonObject } from '../../../src/core/protocol/json.ts';
import { ALL, accept } from '../../features/asking/support.ts';
import { Disk, type Process, start as startProcess } from '../../features/tasks/durable/support.ts';
import { idOf, type Modern } from '../../features/tasks/support.ts';
import { suite } from '../../harness/door.ts';
import { textOf } from '../../harness/results.ts';
import { SCALE } from '../../harness/scale.ts';
import { elapse, inTime, untilPassed, whilePassing } from '../../harness/wait.ts';
import { askingServer, type Era, FORM, speakLegacy } from './asking-server.ts';

const test = suite('a gateway that restarts');

const CAPABILITIES: JsonObject = ALL;

interface Question {
  readonly key: string;
  readonly requestState: string;
}

/** Sends a call, or continues it. @returns the open question, or the text of the result */
async function send(client: Modern, name: string, more: JsonObject = {}): Promise<Question | string> {
  const result = await client.send('tools/call', { name, arguments: {}, ...more }, CAPABILITIES);
  if (result.resultType !== 'input_required') return textOf(result);
  const [key = ''] = Object.keys(result.inputRequests ?? {});
  return { key, requestState: String(result.requestState) };
}

function answered({ key, requestState }: Question): JsonObject {
  return { requestState, inputResponses: { [key]: accept({ size: 'S', gift: false }) } };
}

function asQuestion(said: Question | string): Question {
  if (typeof said === 'string') throw new Error(`expected a question, got ${said}`);
  return said;
}

/** The mounts of all processes: those of a killed one hold connections until they close. */
const mounts: Promise<Mount>[] = [];

const upstreams = new Set<Server>();
/** All processes of a test: connections of those that are killed, or that a failed test leaves, close as their time passes. */
const processes: Process[] = [];

/** Starts a gateway, and resolves when it has listed its upstream: no time passes while it loads code and opens sockets. */
async function start(...given: Parameters<typeof startProcess>): Promise<Process> {
  const process = await startProcess(...given);
  processes.push(process);
  await (await mounts.at(-1))?.ready();
  return process;
}

const gatewayTo =
  (upstream: Server) =>
  (server: Server): void => {
    upstreams.add(upstream);
    mounts.push(server.mount('up', upstream));
  };

test.afterEach(async () => {
  const closed = [...upstreams].map((upstream) => upstream.close());
  const ended = Promise.all([...closed, ...mounts.splice(0).map(async (mount) => (await mount).close())]);
  await withTime(processes.splice(0), ended);
  upstreams.clear();
});

test('U-12: a call of a modern upstream continues in the next process, and the upstream runs it once', async () => {
  const { server, runs } = askingServer('modern');
  const disk = new Disk();
  const first = await start(disk, gatewayTo(server));
  const question = asQuestion(await send(first.modern(), 'up_form'));
  first.kill();
  const second = await start(disk, gatewayTo(server));
  assert.is(await send(second.modern(), 'up_form', answered(question)), 'S false');
  assert.equal(runs, ['form', 'formed']);
  await second.server.close();
});

test('U-12: the same with keys and without a store', async () => {
  const { server, runs } = askingServer('modern');
  const keys = ['a secret that is long enough to be one of this server'];
  const make = async (): Promise<Process> =>
    start(new Disk(), gatewayTo(server), {}, new SimulatedClock(), { keys, store: undefined });
  const first = await make();
  const question = asQuestion(await send(first.modern(), 'up_form'));
  first.kill();
  const second = await make();
  assert.is(await send(second.modern(), 'up_form', answered(question)), 'S false');
  assert.equal(runs, ['form', 'formed']);
  await second.server.close();
});

test('U-12: killed at any commit, a call has one outcome, and no round reaches the upstream twice', async () => {
  const step = SCALE === 'quick' ? 2 : 1;
  // Quick: each other commit, and the others the other way.
  for (const when of ['before', 'after'] as const)
    for (let at = when === 'before' ? 1 : step; at <= 8; at += step) {
      const { server, runs } = askingServer('modern');
      const disk = new Disk();
      let process = await start(disk, gatewayTo(server));
      process.store.killAt(at, when);
      let more: JsonObject = {};
      let said: Question | string = '';
      for (let attempt = 1; attempt <= 6; attempt += 1) {
        const client = process.modern();
        // A dead process does not respond.
        const outcome = await Promise.race([send(client, 'up_form', more), silence()]);
        if (outcome === undefined) {
          process.kill();
          process = await start(disk, gatewayTo(server));
          // Without a state, the first request has no outcome: its client does not know whether it ran.
          if (more.requestState === undefined) {
            said = 'no outcome';
            break;
          }
          continue;
        }
        said = outcome;
        if (typeof outcome === 'string') break;
        more = answered(outcome);
      }
      const label = `killed ${when} commit ${at}: ${JSON.stringify(said)} ${runs.join()}`;
      assert.ok(['S false', 'no outcome'].includes(String(said)) || /not known whether/.test(String(said)), label);
      assert.ok(runs.filter((run) => run === 'form').length === 1, label);
      assert.ok(runs.filter((run) => run === 'formed').length <= 1, label);
      await process.server.close();
    }
});

/** Resolves when nothing more happens. */
async function silence(): Promise<undefined> {
  for (let turn = 0; turn < 30; turn += 1) await settled();
  return undefined;
}

test('U-12: a call of a legacy upstream in memory or over stdio ends in words, and is not made again', async () => {
  const { server, runs } = askingServer('legacy');
  const disk = new Disk();
  const first = await start(disk, gatewayTo(server));
  const question = asQuestion(await send(first.modern(), 'up_form'));
  first.kill();
  const second = await start(disk, gatewayTo(server));
  assert.match(
    String(await send(second.modern(), 'up_form', answered(question))),
    /not known whether the call was carried out/,
  );
  assert.equal(runs, ['form']);
  await second.server.close();
});

/** Lets the time of processes pass until something has happened that also needs sockets. @throws Error if it does not happen */
async function withTime<T>(processes: readonly Process[], work: Promise<T>): Promise<T> {
  const ended = inTime(work, 'what happens while the time of the gateways passes');
  let done = false;
  const settle = (): void => {
    done = true;
  };
  ended.then(settle, settle);
  // What waits for minutes is not to take as many turns of a busy machine; what waits for a moment is not to be late.
  for (let step = 100; !done; step = Math.min(step * 1.01, 1_000)) {
    await elapse(5, 'what sockets bring');
    for (const { clock } of processes) await clock.advance(step);
  }
  return ended;
}

/** Serves over HTTP, as an upstream whose sessions outlive the gateway. */
async function overHttp(upstream: Server): Promise<(server: Server) => void> {
  const transport = http({ port: 0 });
  await upstream.listen(transport);
  return (server) => {
    upstreams.add(upstream);
    mounts.push(server.mount('up', String(transport.url)));
  };
}

test('U-12: a call of a legacy upstream over HTTP continues in its session, and the upstream runs it once', async () => {
  const { server, runs } = askingServer('legacy');
  const gateway = await overHttp(server);
  const disk = new Disk();
  const first = await start(disk, gateway);
  const question = asQuestion(await send(first.modern(), 'up_form'));
  first.kill();
  const second = await start(disk, gateway);
  assert.is(await send(second.modern(), 'up_form', answered(question)), 'S false');
  assert.equal(runs, ['form', 'formed']);
  await second.server.close();
});

test('U-12: a gateway that stops leaves the call of a legacy upstream over HTTP to the next process', async () => {
  const { server, runs } = askingServer('legacy');
  const gateway = await overHttp(server);
  const disk = new Disk();
  const first = await start(disk, gateway);
  const question = asQuestion(await send(first.modern(), 'up_form'));
  await withTime([first], first.server.close());
  const second = await start(disk, gateway);
  assert.is(await send(second.modern(), 'up_form', answered(question)), 'S false');
  assert.equal(runs, ['form', 'formed']);
  await second.server.close();
});

test('U-12: a call of a legacy upstream over HTTP that asks twice is killed at each question', async () => {
  const { server, runs } = askingServer('legacy');
  server.tool('twice', {}, async (_, ctx) => {
    runs.push('twice');
    const first = await ctx.elicit({ message: 'First?', schema: FORM });
    const second = await ctx.elicit({ message: 'Second?', schema: FORM });
    return `${first.status} ${second.status}`;
  });
  const gateway = await overHttp(server);
  const disk = new Disk();
  const first = await start(disk, gateway);
  const one = asQuestion(await send(first.modern(), 'up_twice'));
  first.kill();
  const second = await start(disk, gateway);
  const two = asQuestion(await send(second.modern(), 'up_twice', answered(one)));
  second.kill();
  const third = await start(disk, gateway);
  assert.is(await send(third.modern(), 'up_twice', answered(two)), 'accepted accepted');
  assert.equal(runs, ['twice']);
  await third.server.close();
});

test('U-12: a call of a legacy upstream over HTTP whose session has ended meanwhile ends in words', async () => {
  const { server, runs } = askingServer('legacy');
  const gateway = await overHttp(server);
  const disk = new Disk();
  const first = await start(disk, gateway);
  const question = asQuestion(await send(first.modern(), 'up_form'));
  first.kill();
  // The session of the upstream ends with the connections of the first gateway.
  const ended = Promise.all(mounts.splice(0).map(async (mount) => (await mount).close()));
  await withTime([first], ended);
  const second = await start(disk, gateway);
  const said = await send(second.modern(), 'up_form', answered(question));
  assert.match(String(said), /not known whether .* was carried out/);
  assert.equal(runs, ['form']);
  await second.server.close();
});

/** An upstream whose tasks work until they are told, and ask. */
function worker(era: Era, clock: SimulatedClock): { server: Server; runs: string[]; finish: () => void } {
  const runs: string[] = [];
  let finish = (): void => {};
  const finished = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const server = createServer({ name: 'worker', version: '1.0.0', clock, log() {} });
  if (era === 'legacy') speakLegacy(server);
  server.tool('work', { task: 'required' }, async () => {
    runs.push('work');
    await finished;
    return 'worked';
  });
  server.tool('ask', { task: 'required' }, async (_, ctx) => {
    runs.push('ask');
    const answer = await ctx.elicit({ message: 'Which size?', schema: FORM });
    return answer.status === 'accepted' ? answer.content.size : answer.status;
  });
  return { server, runs, finish };
}

/** Starts a task of an upstream through a gateway that ends: while the task works, or once it asks. */
async function inNextProcess(era: Era, tool: 'work' | 'ask', ends: 'killed' | 'stopped' = 'killed') {
  const clock = new SimulatedClock();
  const { server, runs, finish } = worker(era, clock);
  const disk = new Disk();
  const first = await start(disk, gatewayTo(server), {}, clock);
  const before = first.modern('ada');
  const id = idOf(await before.call(`up_${tool}`));
  if (tool === 'ask') await untilPassed(clock, async () => (await before.status(id)) === 'input_required', 500);
  else await settled();
  if (ends === 'killed') first.kill();
  else await first.server.close();
  const second = await start(disk, gatewayTo(server), {}, clock);
  const client = second.modern('ada');
  return {
    client,
    id,
    finish,
    /** Resolves when the task has ended, with its text. The upstream has run the tool once. */
    async said(): Promise<string> {
      await untilPassed(
        clock,
        async () => {
          const status = await client.status(id);
          return status !== 'working' && status !== 'input_required';
        },
        500,
      );
      const text = await client.said(id);
      assert.equal(runs, [tool]);
      await second.server.close();
      return text;
    },
  };
}

test('U-13: a working task of a modern upstream is followed by the next process', async () => {
  const { client, id, finish, said } = await inNextProcess('modern', 'work');
  assert.is(await client.status(id), 'working');
  finish();
  assert.is(await said(), 'worked');
});

test('U-13: a task of a modern upstream that asks is answered in the next process', async () => {
  const { client, id, said } = await inNextProcess('modern', 'ask');
  const { inputRequests } = await client.get(id);
  const [key = ''] = Object.keys(inputRequests ?? {});
  await client.update(id, { [key]: accept({ size: 'S' }) });
  assert.is(await said(), 'S');
});

test('U-13: a task that a legacy upstream knows only in its session ends in words', async () => {
  const { said } = await inNextProcess('legacy', 'work');
  assert.match(await said(), /not known whether the call was carried out/);
});

test('U-13: a gateway that stops does not cancel the task that the next process follows', async () => {
  const { finish, said } = await inNextProcess('modern', 'work', 'stopped');
  finish();
  assert.is(await said(), 'worked');
});

test('a mount closes within two seconds although the store does not answer', async () => {
  const { server } = askingServer('modern');
  // The catalogue of an upstream in the same process is not stored.
  const process = await start(new Disk(), await overHttp(server));
  const { clock, store } = process;
  const [mount] = await Promise.all(mounts.splice(0));
  store.hold();
  server.tool('later', {}, () => 'later');
  await mount?.refresh();
  const began = clock.now();
  await whilePassing(clock, mount?.close() ?? Promise.reject(new Error('no mount')), 100);
  assert.ok(clock.now() - began <= 2_500, `${clock.now() - began} ms`);
  await store.letThrough();
  await process.server.close();
});

test('U-20: with a full disk a question is not put: the call fails, and later calls are served', async () => {
  const { server, runs } = askingServer('modern');
  const disk = new Disk();
  const { store, server: gateway, modern } = await start(disk, gatewayTo(server));
  store.full = true;
  const client = modern();
  const failed = await send(client, 'up_form').catch((error: Error) => error.message);
  assert.type(failed, 'string');
  assert.equal(runs, ['form']);
  store.full = false;
  const question = asQuestion(await send(client, 'up_form'));
  assert.is(await send(client, 'up_form', answered(question)), 'S false');
  assert.equal(runs, ['form', 'form', 'formed']);
  await gateway.close();
});

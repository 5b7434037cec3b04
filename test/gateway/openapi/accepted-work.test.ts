/** Work that an API has accepted: where its state is, when it ends, and its task over a kill of the process. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { isObject, type JsonObject } from '../../../src/core/protocol/json.ts';
import { META } from '../../../src/core/protocol/meta.ts';
import { acceptedWork, hasFailed, workState } from '../../../src/gateway/openapi/accepted-work.ts';
import type { ApiResponse } from '../../../src/gateway/openapi/api-connection.ts';
import { SimulatedClock } from '../../../src/testing/testing.ts';
import { SELF, send } from '../../core/http/modern.ts';
import { EXTENSION, idOf } from '../../features/tasks/support.ts';
import { startable } from '../../harness/compiled.ts';
import { suite } from '../../harness/door.ts';
import { jsonResponse, type RawRequest, type RawServer, rawServer, response } from '../../harness/raw-server.ts';
import { textOf } from '../../harness/results.ts';
import { until } from '../../harness/wait.ts';
import { apiStage } from './api-stage.ts';

const test = suite('accepted work of an API');
const HOME = new URL('https://api.example.com/v1');

function answer(status: number, headers: Readonly<Record<string, string>> = {}, body: unknown = ''): ApiResponse {
  const json = typeof body === 'string' ? {} : { 'content-type': 'application/json' };
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const url = new URL('https://api.example.com/v1/jobs');
  return { status, headers: new Headers({ ...json, ...headers }), body: Buffer.from(text), url };
}

/** The response, and the place of the state of its work; undefined: it is the result. */
const PLACES: readonly (readonly [why: string, response: ApiResponse, place: string | undefined])[] = [
  ['202 with Location', answer(202, { location: '/v1/jobs/7' }), 'location https://api.example.com/v1/jobs/7'],
  [
    '202 with a relative Location',
    answer(202, { location: 'jobs/7?a=b' }),
    'location https://api.example.com/v1/jobs/7?a=b',
  ],
  [
    'Operation-Location',
    answer(202, { 'operation-location': '/op', location: '/x' }),
    'operation https://api.example.com/op',
  ],
  [
    'Azure-AsyncOperation of a 201',
    answer(201, { 'azure-asyncoperation': '/op' }),
    'operation https://api.example.com/op',
  ],
  ['202 without an address', answer(202), undefined],
  ['201 with Location', answer(201, { location: '/v1/pets/7' }), undefined],
  ['another origin', answer(202, { location: 'https://evil.example/jobs/7' }), undefined],
  ['another port', answer(202, { location: 'https://api.example.com:8443/jobs/7' }), undefined],
  ['another scheme', answer(202, { location: 'http://api.example.com/jobs/7' }), undefined],
  ['an address with credentials', answer(202, { location: 'https://a:b@api.example.com/jobs/7' }), undefined],
  ['no address', answer(202, { location: 'http://' }), undefined],
];

for (const [why, given, place] of PLACES)
  test(`${why} ${place === undefined ? 'is no work to wait for' : 'names the place of the state'}`, () => {
    const work = acceptedWork(given, HOME);
    assert.is(work && `${work.by} ${work.url}`, place);
  });

const LOCATION = { url: 'https://api.example.com/v1/jobs/7', by: 'location' } as const;
const OPERATION = { url: 'https://api.example.com/v1/jobs/7', by: 'operation' } as const;

/** The work, the response of a poll, and what it says. */
const STATES: readonly (readonly [
  why: string,
  work: typeof LOCATION | typeof OPERATION,
  response: ApiResponse,
  said: string,
])[] = [
  ['202', LOCATION, answer(202, {}, { status: 'queued' }), 'running queued'],
  ['202 without a body', LOCATION, answer(202), 'running accepted'],
  ['200 that runs', LOCATION, answer(200, {}, { status: 'in_progress' }), 'running in_progress'],
  ['200 that has ended', LOCATION, answer(200, {}, { status: 'succeeded' }), 'ended'],
  ['200 with other data', LOCATION, answer(200, {}, { id: 7 }), 'ended'],
  ['204', LOCATION, answer(204), 'ended'],
  ['404', LOCATION, answer(404), 'ended'],
  ['303', LOCATION, answer(303, { location: '/v1/pets/7' }), 'moved https://api.example.com/v1/pets/7'],
  ['303 to another origin', LOCATION, answer(303, { location: 'https://evil.example/' }), 'ended'],
  ['a running operation', OPERATION, answer(200, {}, { status: 'Running' }), 'running Running'],
  [
    'an operation in Azure',
    OPERATION,
    answer(200, {}, { properties: { state: 'Provisioning' } }),
    'running Provisioning',
  ],
  [
    'an operation with a result',
    OPERATION,
    answer(200, {}, { status: 'Succeeded', resourceLocation: '/v1/pets/7' }),
    'moved https://api.example.com/v1/pets/7',
  ],
  [
    'an operation with a result elsewhere',
    OPERATION,
    answer(200, {}, { status: 'Succeeded', resourceLocation: 'https://evil.example/' }),
    'ended',
  ],
  ['a failed operation', OPERATION, answer(200, {}, { status: 'Failed' }), 'ended failed'],
];

for (const [why, work, given, said] of STATES)
  test(`a poll with ${why} is ${said}`, () => {
    const state = workState(work, given);
    const more = state.state === 'running' ? ` ${state.status}` : state.state === 'moved' ? ` ${state.to.href}` : '';
    assert.is(`${state.state}${more}${hasFailed(given) ? ' failed' : ''}`, said);
  });

interface Jobs {
  readonly api: RawServer;
  readonly polls: () => number;
  readonly posts: () => number;
  finish(how: 'done' | 'failed'): void;
}

/** An API that accepts a job, and reports its state. */
async function jobs(): Promise<Jobs> {
  let status = 'running';
  const of = ({ method }: RawRequest): boolean => method === 'POST';
  const api = await rawServer((request) =>
    of(request)
      ? response(202, { location: '/v1/jobs/7' }, '')
      : jsonResponse({ status, pet: status === 'done' ? 'Rex' : null }),
  );
  return {
    api,
    posts: () => api.requests.filter(of).length,
    polls: () => api.requests.filter((request) => !of(request)).length,
    finish: (how) => {
      status = how;
    },
  };
}

const JOB = { method: 'POST', path: '/jobs' };

test('accepted work is a task of a client that takes tasks, with its state as the status and its result at the end', async () => {
  const { api, finish, polls, posts } = await jobs();
  const clock = new SimulatedClock();
  const desk = await apiStage(api.url, { clock, request: JOB });
  const created = await desk.send({}, EXTENSION);
  const taskId = idOf(created);
  const look = (): Promise<JsonObject> =>
    desk.connect().modern('tasks/get', { taskId }, { [META.clientCapabilities]: EXTENSION });
  const passed = async (holds: () => boolean | Promise<boolean>): Promise<void> =>
    until(async () => {
      await clock.advance(500);
      return holds();
    });
  await passed(() => polls() >= 2);
  const working = await look();
  assert.equal([working.status, working.statusMessage], ['working', 'running']);
  finish('done');
  await passed(async () => (await look()).status === 'completed');
  const { result } = await look();
  assert.equal(isObject(result) ? result.structuredContent : undefined, { status: 'done', pet: 'Rex' });
  assert.is(posts(), 1);
  await desk.close();
  await api.close();
});

test('work that fails is an error', async () => {
  const { api, finish } = await jobs();
  const clock = new SimulatedClock();
  const desk = await apiStage(api.url, { clock, request: JOB });
  const taskId = idOf(await desk.send({}, EXTENSION));
  finish('failed');
  let task: JsonObject = {};
  await until(async () => {
    await clock.advance(500);
    task = await desk.connect().modern('tasks/get', { taskId }, { [META.clientCapabilities]: EXTENSION });
    return task.status !== 'working';
  });
  const { result } = task;
  assert.is(isObject(result) ? result.isError : undefined, true);
  await desk.close();
  await api.close();
});

test('a client without tasks gets the 202 with its address, and so does each client with async: false', async () => {
  const { api, polls } = await jobs();
  for (const more of [{}, { async: false }]) {
    const desk = await apiStage(api.url, { request: JOB, ...more });
    const result = await desk.send({}, 'async' in more ? EXTENSION : {});
    assert.is(textOf(result), '202 Accepted');
    const meta = isObject(result._meta) ? result._meta[META.http] : undefined;
    assert.equal(meta, { status: 202, location: '/v1/jobs/7' });
    await desk.close();
  }
  assert.is(polls(), 0);
  await api.close();
});

// The quick test of the next process is that of operation-options.test.ts, in memory.
test.full('a task is polled by the next process after a kill, and its request was sent once', async () => {
  const { api, finish, polls, posts } = await jobs();
  const folder = mkdtempSync(join(tmpdir(), 'openapi-'));
  const start = async (): Promise<{ readonly child: ChildProcess; readonly url: string }> => {
    const args = [startable('test/fixtures/openapi/lasting.ts'), api.url, join(folder, 'store.db')];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    const [line] = await once(child.stdout, 'data');
    return { child, url: String(line).trim() };
  };
  let running = await start();
  const kill = async (): Promise<void> => {
    running.child.kill('SIGKILL');
    await once(running.child, 'exit');
  };
  const ask = async (method: string, params: JsonObject): Promise<JsonObject> => {
    const headers = typeof params.taskId === 'string' ? { 'mcp-name': params.taskId } : {};
    const meta = { ...SELF, [META.clientCapabilities]: EXTENSION };
    const message = await (await send(running.url, method, { params, meta, headers })).json();
    if (!isObject(message) || !isObject(message.result)) throw new Error(JSON.stringify(message));
    return message.result as JsonObject;
  };
  try {
    const taskId = idOf(await ask('tools/call', { name: 'use', arguments: {} }));
    // Once before the first poll, and once after it.
    await kill();
    running = await start();
    await until(() => polls() > 0);
    await kill();
    running = await start();
    finish('done');
    let task: JsonObject = {};
    await until(async () => {
      task = await ask('tasks/get', { taskId });
      return task.status !== 'working';
    });
    const { result } = task;
    assert.equal(isObject(result) ? result.structuredContent : task, { status: 'done', pet: 'Rex' });
    assert.is(posts(), 1);
  } finally {
    await kill();
    await api.close();
    rmSync(folder, { recursive: true, force: true });
  }
});

test('an idempotency key is that of the call over each repeat, and differs between calls, callers and tools', async () => {
  let failures = 2;
  const api = await rawServer(() => {
    failures -= 1;
    return failures >= 0 ? response(502) : jsonResponse({});
  });
  const desk = await apiStage(api.url, { request: { ...JOB, idempotencyHeader: 'Idempotency-Key' } });
  await desk.call();
  await desk.call({}, { [META.idempotencyKey]: 'mine' });
  await desk.call({}, { [META.idempotencyKey]: 'other' });
  const keys = api.requests.map(({ headers }) => headers['idempotency-key']);
  assert.is(keys.length, 5);
  assert.is(new Set(keys.slice(0, 3)).size, 1);
  assert.is(new Set(keys).size, 3);
  assert.ok(keys.every((key) => typeof key === 'string' && key.length === 36 && key !== 'mine'));
  await desk.close();
  const again = await apiStage(api.url, { request: { ...JOB, idempotencyHeader: 'Idempotency-Key' } });
  await again.call({}, { [META.idempotencyKey]: 'mine' });
  assert.is(api.requests.at(-1)?.headers['idempotency-key'], keys[3]);
  await again.close();
  await api.close();
});

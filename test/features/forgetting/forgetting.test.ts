/** A principal is forgotten: its data leaves the memory of each node and the store, and that of others stays. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { createMachine, setup } from 'xstate';
import type { JsonObject } from '../../../src/core/protocol/json.ts';
import { memoryStore } from '../../../src/core/store/memory-store.ts';
import type { StoredKind } from '../../../src/core/store/store.ts';
import {
  type AuditRecord,
  createServer,
  fromSteps,
  http,
  memory,
  postgres,
  type Server,
  type ServerOptions,
  type Store,
  sqlite,
} from '../../../src/index.ts';
import { connect, settled, TestClient } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { httpWire } from '../../harness/http-wire.ts';
import { nodesSuite } from '../../harness/postgres.ts';
import { haveShares } from '../../harness/shares.ts';
import { until } from '../../harness/wait.ts';
import { type Receiver, receiver, subscription } from '../events/delivery/support.ts';
import { Modern, NAME } from '../tasks/support.ts';

const folder = mkdtempSync(join(tmpdir(), 'troupe-forgetting-'));
const test = suite('forgetting a principal');
let endpoint: Receiver;
test.before(async () => {
  endpoint = await receiver();
});
test.after(async () => {
  await endpoint.close();
  rmSync(folder, { recursive: true, force: true });
});

const ALL = { instances: 2, tasks: 1, questions: 1, sessions: 1, state: 1, approvals: 1, runs: 0, subscriptions: 1 };
const NONE = { instances: 0, tasks: 0, questions: 0, sessions: 0, state: 0, approvals: 0, runs: 0, subscriptions: 0 };
const KINDS: readonly StoredKind[] = [
  ...(['handle', 'task', 'question', 'session', 'state', 'approval', 'grant', 'run', 'webhook'] as const),
];

const machine = createMachine({
  initial: 'open',
  states: { open: { on: { note: { actions: () => {} } }, after: { 90000: 'over' } }, over: {} },
});

async function start(options: Partial<ServerOptions>, callback?: string): Promise<Server> {
  const server = createServer({
    ...{ name: 'shop', version: '1.0.0', log: () => {} },
    ...(callback === undefined ? {} : { events: { callbacks: { allow: [new URL(callback).origin] } } }),
    http: { authenticate: ({ header }) => ({ principal: (header('authorization') ?? '').slice('Bearer '.length) }) },
    ...options,
  });
  server.machine('order', machine, { events: { note: true } });
  server.machine('profile', machine, { key: 'principal', events: { note: true } });
  server.tool('work', { task: 'required' }, () => new Promise(() => {}));
  server.tool('ask', {}, async (_, ctx) => {
    await ctx.step('look', () => 'looked');
    return JSON.stringify(await ctx.elicit(NAME));
  });
  server.tool('refund', { approve: { by: { scope: 'ops' } } }, () => 'refunded');
  server.event('note', {
    description: 'A note was taken.',
    payload: { type: 'object', properties: { n: { type: 'number' } } },
  });
  await server.listen(memory().transport);
  return server;
}

/**
 * Leaves data of each kind.
 *
 * @param url of a node: its requests find what another node has
 * @returns how to use it
 */
async function fill(server: Server, principal: string, callback?: string, url?: string) {
  const client = url ? new TestClient(httpWire(url, principal)) : await connect(server, { auth: { principal } });
  const fetched = (asked: Request): Promise<Response> => (url ? fetch(new Request(url, asked)) : server.fetch(asked));
  const modern = new Modern(client);
  const { handle } = Object(await client.data('order_create', {}));
  assert.is((await client.call('profile_note', {})).isError, undefined);
  await server.stateOf(principal).set('colour', 'green');
  const task = await modern.start('work');
  assert.is((await modern.call('ask')).resultType, 'input_required');
  const refused = await client.call('refund', {});
  assert.is(refused.isError, true);
  if (callback !== undefined) await modern.send('events/subscribe', subscription(callback));
  const opened = await fetched(
    request(principal, {
      method: 'initialize',
      id: 1,
      params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } },
    }),
  );
  const session = String(opened.headers.get('mcp-session-id'));
  await opened.text();
  return {
    client,
    /** What is left for a client that knows all ids. */
    async found(): Promise<object> {
      const order = await client.call('order_get', { handle });
      const profile = await client.data('profile_get', {});
      const running = await modern.status(task).catch(() => 'unknown');
      const ping = await fetched(request(principal, { method: 'ping', id: 2 }, session));
      await ping.text();
      return {
        order: order.isError !== true,
        profile: Object(profile).status,
        colour: await server.stateOf(principal).get('colour'),
        task: running,
        session: ping.status,
      };
    },
  };
}

function request(principal: string, message: JsonObject, session?: string): Request {
  return new Request('http://localhost/mcp', {
    method: 'POST',
    body: JSON.stringify({ jsonrpc: '2.0', ...message }),
    headers: {
      ...{ 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      ...{ authorization: `Bearer ${principal}`, 'mcp-protocol-version': '2025-11-25' },
      ...(session === undefined ? {} : { 'mcp-session-id': session }),
    },
  });
}

/** The rows of all kinds. */
async function rowsIn(store: Store): Promise<readonly string[]> {
  const rows = await Promise.all(KINDS.map((kind) => store.list({ kind, limit: 1_000 })));
  return rows
    .flat()
    .map(({ id }) => id)
    .sort();
}

const FORGOTTEN = { order: false, profile: 'absent', colour: undefined, task: 'unknown', session: 404 };
const LEFT = { order: true, profile: 'active', colour: 'green', task: 'working', session: 200 };

const STORES: Readonly<Record<string, () => Store>> = {
  memory: () => memoryStore(),
  SQLite: () => sqlite(join(folder, 'one.db')),
};
for (const [name, create] of Object.entries(STORES))
  test(`S-170: the data of a principal is deleted, that of another stays, and the audit says so (${name})`, async () => {
    const store = create();
    const audited: AuditRecord[] = [];
    const server = await start({ store, audit: { to: (record) => void audited.push(record) } }, endpoint.url);
    const bob = await fill(server, 'bob', endpoint.url);
    const before = await rowsIn(store);
    const ada = await fill(server, 'ada', `${endpoint.url}/ada`);
    const only = store.durable ? ALL : { ...ALL, questions: 0, sessions: 0 };
    assert.equal(await server.forget({ principal: 'ada' }), only);
    assert.equal(await rowsIn(store), before);
    assert.equal(await ada.found(), FORGOTTEN);
    assert.equal(await bob.found(), LEFT);
    assert.equal(await server.forget({ principal: 'ada' }), NONE);
    await until(() => audited.some(({ event }) => event === 'control'));
    const [record] = audited.filter(({ event }) => event === 'control');
    assert.equal([record?.principal, record?.outcome], ['ada', 'forget']);
    // The principal may come back.
    assert.is((await ada.client.call('order_create', {})).isError, undefined);
    await server.close();
  });

test('S-170: the data of a principal from an earlier process is deleted, a suspended call with it', async () => {
  const path = join(folder, 'restarted.db');
  const first = await start({ store: sqlite(path) }, endpoint.url);
  await fill(first, 'ada', endpoint.url);
  await first.close();
  const store = sqlite(path);
  const second = await start({ store }, endpoint.url);
  const { questions, instances, tasks } = await second.forget({ principal: 'ada' });
  assert.equal({ questions, instances, tasks }, { questions: 1, instances: 2, tasks: 1 });
  assert.equal(await rowsIn(store), []);
  await second.close();
});

test('S-170: work that runs while its principal is forgotten stores nothing afterwards', async () => {
  let go: (value: string) => void = () => {};
  const steps: string[] = [];
  const work = fromSteps<undefined, string>(async ({ step }) => {
    await step(
      'first',
      () =>
        new Promise<string>((resolve) => {
          go = resolve;
        }),
    );
    steps.push('after the first');
    return step('second', () => {
      steps.push('second');
      return 'done';
    });
  });
  const store = memoryStore();
  const server = createServer({ name: 'shop', version: '1.0.0', store, log: () => {} });
  const working = setup({ actors: { work } }).createMachine({
    initial: 'idle',
    states: { idle: { on: { note: 'busy' } }, busy: { invoke: { src: 'work', onDone: 'over' } }, over: {} },
  });
  server.machine('order', working, { events: { note: true } });
  await server.listen(memory().transport);
  const client = await connect(server, { auth: { principal: 'ada' } });
  const { handle } = Object(await client.data('order_create', {}));
  await client.call('order_note', { handle });
  assert.is((await server.forget({ principal: 'ada' })).instances, 1);
  go('late');
  for (let turn = 0; turn < 5; turn += 1) await settled();
  assert.not.ok(steps.includes('second'));
  assert.equal(await rowsIn(store), []);
  assert.equal(await store.streams(`handle/order/${handle}`), []);
  await server.close();
});

test('only a principal is forgotten, not everybody without one', async () => {
  const server = await start({}, endpoint.url);
  for (const principal of ['', 'anonymous'])
    await server.forget({ principal }).then(
      () => assert.unreachable(),
      (error: Error) => assert.match(error.message, 'expected the principal of a client that has signed in'),
    );
  await server.close();
});

const { nodes, servers, database } = nodesSuite('forgetting in a cluster');

nodes('S-170: each node of a cluster forgets a principal, whichever node is called', async () => {
  const url = await database();
  const secret = 'a secret that all nodes of this test share';
  const node = async () => {
    const store = postgres(url);
    const server = await start({ store, cluster: { listen: '127.0.0.1:0', secret }, limits: { graceMs: 300 } });
    servers.push(server);
    const transport = http({ port: 0, ...server.options.http });
    await server.listen(transport);
    return { server, store, url: transport.url };
  };
  const [one, two] = [await node(), await node()];
  await haveShares(one.server, two.server);
  const bob = await fill(one.server, 'bob', undefined, one.url);
  const before = await rowsIn(one.store);
  for (const { server, url: node } of [one, two]) await fill(server, 'ada', undefined, node);
  const { instances, tasks, sessions, state } = await two.server.forget({ principal: 'ada' });
  // Two orders, and one profile for both.
  assert.equal({ instances, tasks, sessions, state }, { instances: 3, tasks: 2, sessions: 2, state: 1 });
  assert.equal(await rowsIn(two.store), before);
  assert.equal(await bob.found(), LEFT);
  assert.equal(await one.server.forget({ principal: 'ada' }), NONE);
});

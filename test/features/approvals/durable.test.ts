/** Approvals that outlive processes: a held call that is killed at any step runs once as approved, or never. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import type { JsonObject } from '../../../src/core/protocol/json.ts';
import { META } from '../../../src/core/protocol/meta.ts';
import { memoryStore } from '../../../src/core/store/memory-store.ts';
import { createServer, http, memory, postgres, type Server, StoreError, sqlite } from '../../../src/index.ts';
import { isObjectInTest } from '../../../src/testing/test-json.ts';
import { startable } from '../../harness/compiled.ts';
import { suite } from '../../harness/door.ts';
import { nodesSuite } from '../../harness/postgres.ts';
import { errorResponse, textOf } from '../../harness/results.ts';
import { times } from '../../harness/scale.ts';
import { TestStore } from '../../harness/test-store.ts';
import { until } from '../../harness/wait.ts';
import { EXTENSION, idOf } from '../tasks/support.ts';
import { ALSO_OPS, ASKABLE, answer, as, BY_OPS, OPS, pendingId, questionOf, refund, shop, textIn } from './support.ts';

const folder = mkdtempSync(join(tmpdir(), 'troupe-approvals-'));
const test = suite('durable approvals');
test.after(() => rmSync(folder, { recursive: true, force: true }));

const DYING_STORE = new URL('../../fixtures/approvals/dying-store.cjs', import.meta.url);

interface Killed {
  readonly server: Server;
  /** The number of times that the handler has run, in both processes. */
  ran(): number;
  /** The last text of the process that died. */
  readonly last: string;
  readonly log: string;
}

/**
 * Runs the fixture until it kills itself, and opens its store again.
 *
 * @param dies its store kills it on this side of the COMMIT of the transaction that uses the approval
 */
async function killed(step: string, dies?: 'before' | 'after'): Promise<Killed> {
  const name = step.replaceAll(' ', '-');
  const [path, log] = [join(folder, `${name}.db`), join(folder, `${name}.log`)];
  // The thread of the store has no arguments of its own, and reads the variable.
  const dying = dies && { DIES: dies, NODE_OPTIONS: `--require "${fileURLToPath(DYING_STORE)}"` };
  const program = spawn(process.execPath, [startable('test/fixtures/approvals/holding.ts'), path, step, log], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, ...dying },
  });
  const [code, signal] = await once(program, 'exit');
  assert.is(signal, 'SIGKILL', `the fixture ended with ${code} instead of dying at "${step}"`);
  const lines = (): readonly string[] => (existsSync(log) ? readFileSync(log, 'utf8').split('\n') : []);
  const server = createServer({ name: 'shop', version: '1.0.0', store: sqlite(path), log: () => {} });
  server.tool('look', { annotations: { readOnlyHint: true } }, () => 'would refund');
  let here = 0;
  const count = (what: string): string => {
    here += 1;
    return `${what} ${here}`;
  };
  server.tool('refund', { rerun: false }, () => count('refunded'));
  server.tool('wipe', { task: 'required', approve: { by: { scope: 'ops' }, quorum: 2 } }, () => count('wiped'));
  server.authorize(
    ({ element }) =>
      element.name !== 'refund' || {
        approve: step === 'question' ? { by: 'caller' } : { by: { scope: 'ops' }, quorum: 2, preview: 'look' },
      },
    { name: 'refunds', version: '1' },
  );
  await server.listen(memory().transport);
  return {
    server,
    log,
    last: lines()
      .filter((line) => line !== 'ran')
      .join(''),
    ran: () => here + lines().filter((line) => line.startsWith('ran')).length,
  };
}

/** After a kill at a step: the state in the store, those who must still approve, and the runs in the end. */
const STEPS: readonly (readonly [string, string | undefined, readonly (typeof OPS)[], number])[] = [
  ['preview', undefined, [], 0],
  ['asked', 'asked', [OPS, ALSO_OPS], 1],
  ['partly approved', 'partly approved', [ALSO_OPS], 1],
  ['approved', 'approved', [], 1],
  ['used', 'unknown', [], 0],
  ['running', 'unknown', [], 1],
  ['done', 'done', [], 1],
];

// The quick run kills a process in the transaction below, which uses the approval, and one whose task waits.
for (const [step, state, missing, runs] of STEPS)
  test.full(`R-56: a call whose process is killed at "${step}" runs ${runs === 0 ? 'never' : 'once'}`, async () => {
    const { server, ran } = await killed(step);
    const [stored] = await server.approvals.list({ state: 'all' });
    assert.is(stored?.state, state);
    for (const approver of missing) await server.approvals.decide(stored?.id ?? '', { approver, decision: 'approve' });
    const client = await as(server);
    const call = (): Promise<JsonObject> => client.modern('tools/call', { name: 'refund', arguments: {} });
    if (['asked', 'partly approved', 'approved'].includes(step)) assert.match(textIn(await call()), /^refunded 1/);
    assert.is(ran(), runs);
    // The next call needs another approval.
    assert.is.not(pendingId(await call()), stored?.id);
    assert.is(ran(), runs);
    await server.close();
  });

/** The process is killed within the transaction that uses the approval: the state in the store, and the runs in the end. */
for (const [dies, state, runs] of [
  ['before', 'approved', 1],
  ['after', 'unknown', 0],
] as const)
  (dies === 'after' ? test : test.full)(
    `R-56: a call whose process is killed ${dies} the transaction that uses its approval is durable runs ${runs === 0 ? 'never' : 'once'}`,
    async () => {
      const { server, ran } = await killed(`in the transaction, ${dies}`, dies);
      const [stored] = await server.approvals.list({ state: 'all' });
      assert.is(stored?.state, state);
      assert.is(ran(), 0);
      const client = await as(server);
      const call = (): Promise<JsonObject> => client.modern('tools/call', { name: 'refund', arguments: {} });
      if (runs === 1) assert.match(textIn(await call()), /^refunded 1/);
      assert.is.not(pendingId(await call()), stored?.id);
      assert.is(ran(), runs);
      await server.close();
    },
  );

test.full(
  'R-56: a question whose process is killed is answered to the next process, and the call runs once, also with rerun: false',
  async () => {
    const { server, ran, last } = await killed('question');
    const { key, state } = questionOf(JSON.parse(last));
    const client = await as(server);
    const retry = (decision: string): Promise<JsonObject> =>
      client.modern(
        'tools/call',
        { name: 'refund', arguments: {}, requestState: state, inputResponses: { [key]: answer(decision) } },
        { [META.clientCapabilities]: ASKABLE },
      );
    assert.is(textIn(await retry('approve')), 'refunded 1');
    assert.is((await errorResponse(retry('approve'))).code, -32602);
    assert.is(ran(), 1);
    await server.close();
  },
);

test('R-56: a task that waits for people still waits in the next process, and runs once when the last has approved', async () => {
  const { server, ran, last } = await killed('task');
  const id = idOf(JSON.parse(last));
  const client = await as(server);
  const look = (): Promise<JsonObject> =>
    client.modern('tasks/get', { taskId: id }, { [META.clientCapabilities]: EXTENSION });
  await until(async () => (await server.approvals.list()).length === 1);
  const [waiting] = await server.approvals.list();
  assert.is(waiting?.state, 'partly approved');
  await server.approvals.decide(waiting?.id ?? '', { approver: ALSO_OPS, decision: 'approve' });
  await until(async () => (await look()).status === 'completed');
  const { result } = await look();
  assert.is(textOf(isObjectInTest(result) ? result : {}), 'wiped 1');
  assert.is(ran(), 1);
  await server.close();
});

test('C4-5: an approval of an earlier version of its rule approves no call', async () => {
  const inner = memoryStore();
  const ids: string[] = [];
  for (const version of ['1', '1', '2']) {
    const made = shop(undefined, { store: new TestStore(inner) });
    made.server.authorize(({ element }) => element.name !== 'refund' || { approve: BY_OPS }, { name: 'r', version });
    ids.push(pendingId(await refund(await as(made.server))));
    if (ids.length === 2) await made.server.approvals.decide(ids[1] ?? '', { approver: OPS, decision: 'approve' });
    assert.equal(made.ran, []);
    await made.server.close();
  }
  assert.is(ids[1], ids[0], 'the same version finds the approval of the earlier process');
  assert.is.not(ids[2], ids[1]);
});

/** A store that fails from a moment on. */
class Failing extends TestStore {
  override readonly durable = true;
  fails = false;
  override write(...given: Parameters<TestStore['write']>): Promise<void> {
    if (this.fails) return Promise.reject(new StoreError('full', 'no space'));
    return super.write(...given);
  }
}

for (const moment of ['asking', 'approving', 'using'] as const)
  test(`C4-25: with a store that is full when ${moment}, nothing runs`, async () => {
    const store = new Failing(memoryStore());
    const made = shop(BY_OPS, { store, audit: undefined });
    const client = await as(made.server);
    store.fails = moment === 'asking';
    const first = await refund(client);
    if (moment === 'asking') assert.match(textIn(first), /was not carried out/);
    else {
      const id = pendingId(first);
      store.fails = moment === 'approving';
      const decided = made.server.approvals.decide(id, { approver: OPS, decision: 'approve' });
      if (moment === 'approving')
        await decided.then(
          () => assert.unreachable(),
          () => {},
        );
      else {
        await decided;
        store.fails = true;
        await refund(client).then(
          (result) => assert.match(textIn(result), /was not carried out/),
          () => {},
        );
      }
    }
    assert.equal(made.ran, []);
    store.fails = false;
    await made.server.close();
  });

const { nodes, servers, database } = nodesSuite('approvals of several nodes');

interface Node {
  readonly server: Server;
  ran: number;
}

async function node(url: string): Promise<Node> {
  const server = createServer({
    ...{ name: 'shop', version: '1.0.0', store: postgres(url), log: () => {} },
    cluster: { listen: '127.0.0.1:0', secret: 'a secret that all nodes of this test share' },
  });
  const made: Node = { server, ran: 0 };
  const count = (what: string): string => {
    made.ran += 1;
    return `${what} ${made.ran}`;
  };
  server.tool('refund', {}, () => count('refunded'));
  server.tool('wipe', { task: 'required' }, () => count('wiped'));
  server.authorize(() => ({ approve: BY_OPS }), { name: 'all', version: '1' });
  servers.push(server);
  await server.listen(http({ port: 0 }));
  return made;
}

let one: Node;
let two: Node;
nodes.before(async () => {
  const url = await database();
  [one, two] = [await node(url), await node(url)];
});

nodes('R-57: any node takes a decision, and of calls at several nodes with one approval one runs', async () => {
  const clients = [await as(one.server), await as(two.server)] as const;
  for (let turn = 1; turn <= times(5, { quick: 2 }); turn += 1) {
    const args = { turn };
    const call = (client: (typeof clients)[number]): Promise<JsonObject> =>
      client.modern('tools/call', { name: 'refund', arguments: args });
    const id = pendingId(await call(clients[0]));
    assert.is(pendingId(await call(clients[1])), id);
    await two.server.approvals.decide(id, { approver: OPS, decision: 'approve' });
    assert.is((await one.server.approvals.get(id))?.state, 'approved');
    const results = await Promise.all([call(clients[0]), call(clients[1]), call(clients[0]), call(clients[1])]);
    assert.is(results.filter((result) => result.isError !== true).length, 1, JSON.stringify(results));
    assert.is(one.ran + two.ran, turn);
  }
});

nodes('R-57: a task at one node runs after a decision at another', async () => {
  const ran = one.ran + two.ran;
  const client = await as(one.server);
  const send = (method: string, params: JsonObject): Promise<JsonObject> =>
    client.modern(method, params, { [META.clientCapabilities]: EXTENSION });
  const id = idOf(await send('tools/call', { name: 'wipe', arguments: {} }));
  // Calls of the test before wait, too.
  const atTwo = async () => (await two.server.approvals.list()).find(({ tool }) => tool === 'wipe');
  await until(async () => (await atTwo()) !== undefined, 'the approval at the other node');
  const waiting = await atTwo();
  await two.server.approvals.decide(waiting?.id ?? '', { approver: OPS, decision: 'approve' });
  await until(async () => (await send('tasks/get', { taskId: id })).status === 'completed');
  assert.is(one.ran + two.ran, ran + 1);
});

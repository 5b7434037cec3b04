/** `tasks/list` at nodes that share a store: all tasks of a principal and no other, wherever they run. */
import * as assert from 'uvu/assert';
import { systemClock } from '../../../src/core/kernel/clock.ts';
import { cellIn } from '../../../src/core/protocol/cell.ts';
import { isObject } from '../../../src/core/protocol/json.ts';
import { META } from '../../../src/core/protocol/meta.ts';
import { TASKS_EXTENSION } from '../../../src/core/protocol/task-params.ts';
import { createServer, http, type Server } from '../../../src/index.ts';
import { call, send } from '../../core/http/modern.ts';
import { type Answer, ask, type Message, openSession, type Session } from '../../core/http/support.ts';
import { suite } from '../../harness/door.ts';
import { MemoryDatabase, type MemoryProcess } from '../../harness/memory-nodes.ts';
import { haveShares } from '../../harness/shares.ts';
import { until } from '../../harness/wait.ts';

const test = suite('lists of tasks across nodes');

const SECRET = 'a secret that all nodes of this test share';
const PAGE = 2;

interface Node {
  readonly server: Server;
  readonly process: MemoryProcess;
  readonly url: string;
}

async function start(database: MemoryDatabase, name: string): Promise<Node> {
  const process = database.process(name);
  const server = createServer({
    ...{ name: 'shop', version: '1.0.0', store: process.store, log: () => {} },
    cluster: { listen: '127.0.0.1:0', secret: SECRET, spread: 'session' },
    limits: { graceMs: 1_000, pageSize: PAGE },
  });
  server.tool('work', { task: 'required' }, () => `worked at ${name}`);
  server.tool(
    'wait',
    { task: 'required' },
    (_, { signal }) => new Promise((resolve) => signal.addEventListener('abort', resolve)),
  );
  server.tool('audit', { task: 'required', scopes: ['audit'] }, () => 'audited');
  const transport = http({
    port: 0,
    authenticate({ header }) {
      return { principal: header('x-user') ?? 'ann', scopes: (header('x-scopes') ?? '').split(' ').filter(Boolean) };
    },
  });
  await server.listen(transport);
  return { server, process, url: transport.url };
}

interface Pair {
  readonly database: MemoryDatabase;
  readonly one: Node;
  readonly two: Node;
}

/** Two nodes, each with its share of the cells. All tests share them, and each has users of its own. */
let paired: Promise<Pair> | undefined;
async function openPair(): Promise<Pair> {
  const database = new MemoryDatabase(systemClock);
  const one = await start(database, 'one');
  const two = await start(database, 'two');
  await haveShares(one.server, two.server);
  return { database, one, two };
}

function pair(): Promise<Pair> {
  paired ??= openPair();
  return paired;
}

test.after(async () => {
  const { one, two } = await pair();
  for (const { server, process } of [one, two]) {
    if (process.state === 'killed') process.clear();
    await server.close();
  }
});

async function messageIn(answer: Answer): Promise<Message> {
  const body = await answer.text();
  return JSON.parse([...body.matchAll(/^data: (.+)$/gm)].at(-1)?.[1] ?? body);
}

const CAPABLE = { [META.clientCapabilities]: { extensions: { [TASKS_EXTENSION]: {} } } };

/** Creates a task by a call of 2026-07-28, later than all tasks before, and awaits its end if it has one. @returns its id */
async function started({ url }: Node, tool: string, user: string, scopes = ''): Promise<string> {
  const before = systemClock.date();
  await until(() => systemClock.date() !== before, 'the next millisecond');
  const headers = { 'x-user': user, 'x-scopes': scopes };
  const { result, error } = await messageIn(await call(url, tool, {}, { meta: CAPABLE, headers }));
  const taskId = result?.taskId;
  if (typeof taskId !== 'string') throw new Error(`expected a task, got ${JSON.stringify(error ?? result)}`);
  const named = { params: { taskId }, meta: CAPABLE, headers: { ...headers, 'mcp-name': taskId } };
  for (let status: unknown; tool !== 'wait' && status !== 'completed'; ) {
    const got = await messageIn(await send(url, 'tasks/get', named));
    if (got.error) throw new Error(got.error.message);
    status = got.result?.status;
  }
  return taskId;
}

async function page(session: Session, url: string, cursor?: unknown): Promise<Message> {
  const body = { jsonrpc: '2.0', id: 1, method: 'tasks/list', params: cursor === undefined ? {} : { cursor } };
  return messageIn(await ask(url, { headers: session.headers, body }));
}

/** All tasks of a session, each page from the next of these nodes. @returns their ids and statuses, and the cursors */
async function listed(session: Session, nodes: readonly Node[]) {
  const found: [unknown, unknown][] = [];
  const cursors: unknown[] = [];
  for (let n = 0; ; n += 1) {
    const { result, error } = await page(session, nodes[n % nodes.length]?.url ?? '', cursors.at(-1));
    const tasks = result?.tasks;
    if (!Array.isArray(tasks)) throw new Error(`expected tasks, got ${JSON.stringify(error ?? result)}`);
    assert.ok(tasks.length <= PAGE);
    for (const task of tasks) if (isObject(task)) found.push([task.taskId, task.status]);
    if (result?.nextCursor === undefined) return { found, cursors };
    cursors.push(result.nextCursor);
  }
}

test('a principal lists the tasks of all nodes at each node, in order, over cursors of other nodes', async () => {
  const { database, one, two } = await pair();
  const nodes = [one, two];
  const own: [string, string][] = [];
  for (let n = 0; n < 5; n += 1) {
    own.push([await started(nodes[n % 2] ?? one, 'work', 'ann'), 'completed']);
    await started(nodes[n % 2] ?? one, 'work', 'bob');
  }
  own.push([await started(two, 'wait', 'ann'), 'working']);
  const owners = own.map(([id]) => database.ownerOf(cellIn(id) ?? -1));
  assert.is(new Set(owners).size, 2, owners.join(', '));
  // One session at each node at least, because sessions are spread.
  const sessions = await Promise.all([one, one, one, two, two, two].map(({ url }) => openSession(url)));
  assert.is(new Set(sessions.map(({ id }) => database.ownerOf(cellIn(id) ?? -1))).size, 2);
  const cursors = new Set<string>();
  for (const session of sessions) {
    const seen = await listed(session, nodes);
    assert.equal(seen.found, own);
    cursors.add(JSON.stringify(seen.cursors));
  }
  // A cursor of one session holds in another, at each node.
  assert.is(cursors.size, 1);
  const session = sessions[0] ?? (await openSession(one.url));
  for (const wrong of ['', 't1', 't0.short', 'o1'])
    assert.is((await page(session, one.url, wrong)).error?.code, -32602, wrong);
  const stranger = await openSession(two.url, '2025-11-25', { 'x-user': 'eve' });
  assert.equal((await listed(stranger, nodes)).found, []);
  // 2026-07-28 has no such method (ext-tasks, "Cross-caller correlation").
  for (const { url } of nodes) assert.is((await messageIn(await send(url, 'tasks/list'))).error?.code, -32601);
});

test('a list leaves out tasks of other nodes whose scopes the token lacks, and no cursor names them', async () => {
  const { one, two } = await pair();
  const nodes = [one, two];
  const [plain, secret]: [string[], string[]] = [[], []];
  for (let n = 0; n < 3; n += 1) {
    plain.push(await started(nodes[n % 2] ?? one, 'work', 'cam'));
    secret.push(await started(nodes[n % 2] ?? one, 'audit', 'cam', 'audit'));
  }
  const few = await listed(await openSession(one.url, '2025-11-25', { 'x-user': 'cam' }), nodes);
  assert.equal(
    few.found.map(([id]) => id),
    plain,
  );
  for (const id of secret) assert.not.match(JSON.stringify(few.cursors), id);
  const all = await listed(await openSession(two.url, '2025-11-25', { 'x-user': 'cam', 'x-scopes': 'audit' }), nodes);
  assert.is(all.found.length, 6);
});

test('tasks whose node is dead are listed before another node has taken them over', async () => {
  const { database, one, two } = await pair();
  const ids = [await started(one, 'work', 'dan'), await started(two, 'work', 'dan'), await started(one, 'wait', 'dan')];
  const opened = [two, two, two, two].map(({ url }) => openSession(url, '2025-11-25', { 'x-user': 'dan' }));
  const session = (await Promise.all(opened)).find(({ id }) => database.ownerOf(cellIn(id) ?? -1) === two.process.id);
  const row = database.nodes.get(one.process.id);
  if (!session || !row) throw new Error('expected a session at the second node, and the row of the first');
  one.process.kill();
  // The database does not know of the death.
  Object.assign(row, { locked: true, beatAt: Number.POSITIVE_INFINITY });
  assert.equal((await listed(session, [two])).found, [
    [ids[0], 'completed'],
    [ids[1], 'completed'],
    [ids[2], 'working'],
  ]);
  assert.is(database.ownerOf(cellIn(ids[0] ?? '') ?? -1), one.process.id);
  Object.assign(row, { locked: false, beatAt: 0 });
});

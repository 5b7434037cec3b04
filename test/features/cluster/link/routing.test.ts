/** Requests reach the owner of their cell, whichever node they enter by. */
import * as assert from 'uvu/assert';
import { z } from 'zod';
import { topView } from '../../../../src/cli/top/top-view.ts';
import { ForwardedRequest } from '../../../../src/core/http/forwarded-request.ts';
import type { ForwardListener } from '../../../../src/core/http/other-nodes.ts';
import { metricsText } from '../../../../src/core/kernel/telemetry/prometheus.ts';
import { CELLS, cellIn, withCell } from '../../../../src/core/protocol/cell.ts';
import { isObject } from '../../../../src/core/protocol/json.ts';
import { META } from '../../../../src/core/protocol/meta.ts';
import { TASKS_EXTENSION } from '../../../../src/core/protocol/task-params.ts';
import { defineMachine, defineResource, defineTool } from '../../../../src/index.ts';
import type { ChartFrame } from '../../../../src/inspector/frames.ts';
import { LIVE, Model, nodeWaits, timelineRows, type WireExchange } from '../../../../src/inspector/model/index.ts';
import { Redactor } from '../../../../src/inspector/redaction/redact.ts';
import { FrameEncoder } from '../../../../src/inspector/stream/frame-encoder.ts';
import { call, type Modern, send } from '../../../core/http/modern.ts';
import { type Answer, ask, type Message, openSession } from '../../../core/http/support.ts';
import { suite } from '../../../harness/door.ts';
import { orderMachine, orderOptions } from '../../machines/shop.ts';
import { type Offers, type StaticCells, type StaticNode, staticNodes } from './static-nodes.ts';

const test = suite('routing between nodes');
const SCREEN = { columns: 200, rows: 40, sort: 'tree', offset: 0, status: 'live', keys: '' } as const;

let nodes: readonly StaticNode[];
let cells: StaticCells;
/** The nodes at which the tool `where` has run. */
const ran: string[] = [];
let whileHeld: () => Promise<void> = () => Promise.resolve();

function define({ tools, machines, resources }: Offers, id: string): void {
  const where = (_args: unknown, { principal }: { readonly principal: string }): string => {
    ran.push(id);
    return `${id} ${principal}`;
  };
  tools.register(defineTool({ name: 'where', input: z.object({ text: z.string().optional() }), handler: where }));
  tools.register(
    defineTool({
      name: 'asks',
      input: z.object({}),
      async handler(_args, ctx) {
        const answer = await ctx.elicit({ message: 'Who?', schema: z.object({ name: z.string() }) });
        return `${id} ${answer.status}`;
      },
    }),
  );
  tools.register(
    defineTool({
      name: 'held',
      input: z.object({}),
      async handler(_args, ctx) {
        ctx.progress(1, 2);
        await whileHeld();
        return `held at ${id}`;
      },
    }),
  );
  tools.register(defineTool({ name: 'slow', input: z.object({}), task: 'required', handler: () => `task at ${id}` }));
  resources.register(defineResource({ uri: 'notes://a', handler: () => `note of ${id}` }));
  machines.register(defineMachine({ name: 'order', machine: orderMachine, ...orderOptions }));
}

test.before(async () => {
  const authenticate = ({ header }: { header(name: string): string | undefined }): string =>
    header('x-user') ?? 'anonymous';
  ({ nodes, cells } = await staticNodes(['node-a', 'node-b'], define, { http: { authenticate } }));
});
test.after(async () => {
  for (const node of nodes) await node.close();
});

const node = (id: string): StaticNode => {
  const found = nodes.find((each) => each.id === id);
  if (!found) throw new Error(`no ${id}`);
  return found;
};
const entries = (): readonly (readonly [string, string])[] => nodes.map(({ id, url }) => [id, url]);

/** The message of a response: its JSON body, or its last event. */
async function messageIn(answer: Answer): Promise<Message> {
  const body = await answer.text();
  return JSON.parse([...body.matchAll(/^data: (.+)$/gm)].at(-1)?.[1] ?? body);
}

async function textOf(answer: Answer): Promise<string> {
  const { result, error } = await messageIn(answer);
  const content = result?.content;
  const first: unknown = Array.isArray(content) ? content[0] : undefined;
  return isObject(first) && typeof first.text === 'string' ? first.text : JSON.stringify(result ?? error);
}

/** The data of the next event that contains a text. */
async function until({ events }: Answer, part: string): Promise<string> {
  for (;;) {
    const { data = '' } = await events.next();
    if (data.includes(part)) return data;
  }
}

function handleIn({ result }: Message): string {
  const content = result?.structuredContent;
  if (!isObject(content) || typeof content.handle !== 'string') throw new Error('expected a handle');
  return content.handle;
}

const as = (user: string, more: Modern = {}): Modern => ({ ...more, headers: { 'x-user': user, ...more.headers } });
const nobodyIsIn = (): void =>
  assert.equal(
    nodes.map(({ entered }) => entered()),
    [0, 0],
  );

test('a session of a principal opens at the owner of its cell, and each node serves it', async () => {
  const user = cells.principalOf('node-b');
  const session = await openSession(node('node-a').url, '2025-11-25', { 'x-user': user });
  assert.is(cells.ownerOf(cellIn(session.id) ?? -1), 'node-b');
  for (const [id, url] of entries()) {
    const params = { name: 'where', arguments: {} };
    const body = { jsonrpc: '2.0', id, method: 'tools/call', params };
    assert.is(await textOf(await ask(url, { headers: session.headers, body })), `node-b ${user}`);
  }
  const gone = await ask(node('node-a').url, { method: 'DELETE', headers: session.headers });
  assert.is(gone.status, 204);
  await gone.text();
  const again = await ask(node('node-b').url, { method: 'DELETE', headers: session.headers });
  assert.is(again.status, 404);
  await again.text();
  nobodyIsIn();
});

test('only an exchange whose client disconnects before its end is cancelled', () => {
  for (const end of ['whole', 'ended', undefined] as const) {
    let answering: ForwardListener | undefined;
    let cancelled = 0;
    const forward = (_node: string, _exchange: unknown, listener: ForwardListener) => {
      answering = listener;
      const cancel = (): void => {
        cancelled += 1;
      };
      return { resume() {}, cancel };
    };
    const response = { gone: false, send() {}, begin() {}, end() {} };
    const entry = { waitMs: 1_000, link: { forward }, placeOf: () => ({ at: 'peer', peer: { node: 'node-b' } }) };
    const forwarded = new ForwardedRequest(
      { request: { response, pick: () => ({}) }, principal: 'ada', cell: 7, text: '{}' } as never,
      {
        ...{
          nodes: entry,
          host: { clock: { now: () => 0 }, metrics: { forwarded() {} } },
          leaving: () => false,
          begun() {},
          over() {},
        },
        hops: { cause: 0 },
      } as never,
    );
    forwarded.begin();
    if (end === 'whole') answering?.whole(200, {}, '{}');
    if (end === 'ended') answering?.begun(200, {});
    if (end === 'ended') answering?.ended();
    forwarded.closed();
    assert.is(cancelled, end === undefined ? 1 : 0, end);
  }
});

test('a session of an anonymous client opens at its entry, and each node serves it', async () => {
  for (const [id, url] of entries()) {
    const session = await openSession(url);
    assert.is(cells.ownerOf(cellIn(session.id) ?? -1), id);
    for (const [, other] of entries()) {
      const body = { jsonrpc: '2.0', id: other, method: 'tools/call', params: { name: 'where', arguments: {} } };
      assert.is(await textOf(await ask(other, { headers: session.headers, body })), `${id} anonymous`);
    }
  }
});

test('the stream of a session, its events and its resumption pass through another node', async () => {
  const session = await openSession(node('node-b').url);
  const own = await ask(node('node-a').url, { method: 'GET', headers: session.headers });
  assert.is(own.status, 200);
  assert.is(own.headers['content-type'], 'text/event-stream');
  const params = { name: 'asks', arguments: {} };
  // The tool asks on its own stream, and the answer enters at the other node.
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params };
  const asking = await openSession(node('node-b').url, '2025-11-25', {}, { elicitation: {} });
  const called = await ask(node('node-a').url, { headers: asking.headers, body });
  const first = await called.events.next();
  const question = await until(called, 'elicitation/create');
  called.cut();
  const { id } = JSON.parse(question);
  const result = { action: 'accept', content: { name: 'Ada' } };
  const answered = await ask(node('node-b').url, { headers: asking.headers, body: { jsonrpc: '2.0', id, result } });
  assert.is(answered.status, 202);
  await answered.text();
  const resumed = await ask(node('node-a').url, {
    method: 'GET',
    headers: { ...asking.headers, 'last-event-id': first.id ?? '' },
  });
  const last = await until(resumed, '"result"');
  assert.match(last, 'node-b accepted');
  own.cut();
});

test('a message for a stream of 2024-11-05 reaches the node that holds the stream', async () => {
  const opened = await ask(node('node-b').url, { method: 'GET' });
  const { data = '' } = await opened.events.next();
  const posted = new URL(data, node('node-a').url).href;
  const params = { protocolVersion: '2024-11-05', capabilities: {}, clientInfo: { name: 'old', version: '1' } };
  const sent = await ask(posted, { body: { jsonrpc: '2.0', id: 0, method: 'initialize', params } });
  assert.is(sent.status, 202);
  await sent.text();
  assert.match(await until(opened, 'result'), '"protocolVersion":"2024-11-05"');
  opened.cut();
});

test('the tools, resources and completions of a machine are served by the owner of the handle, from each node', async () => {
  const user = cells.principalOf('node-a', 'bob');
  const created = await messageIn(await call(node('node-b').url, 'order_create', { customer: 'Ada' }, as(user)));
  const handle = handleIn(created);
  assert.is(cells.ownerOf(cellIn(handle) ?? -1), 'node-a');
  for (const [, url] of entries()) {
    assert.match(await textOf(await call(url, 'order_add_item', { handle, sku: 'tea', quantity: 1 }, as(user))), 'tea');
    const uri = `troupe://order/${handle}`;
    const read = await messageIn(await send(url, 'resources/read', as(user, { params: { uri } })));
    assert.match(JSON.stringify(read.result), 'customer');
    const ref = { type: 'ref/resource', uri: 'troupe://order/{handle}' };
    const params = { ref, argument: { name: 'handle', value: handle.slice(0, 3) } };
    const completed = await messageIn(await send(url, 'completion/complete', as(user, { params })));
    assert.match(JSON.stringify(completed.result), handle);
    assert.match(await textOf(await call(url, 'order_list', {}, as(user))), handle);
  }
  // A handle of another principal is unknown from each node.
  for (const [, url] of entries())
    assert.match(await textOf(await call(url, 'order_get', { handle }, as('mallory'))), 'unknown');
  const anonymous = await messageIn(await call(node('node-b').url, 'order_create', { customer: 'x' }));
  const theirs = handleIn(anonymous);
  assert.is(cells.ownerOf(cellIn(theirs) ?? -1), 'node-b');
  assert.match(await textOf(await call(node('node-a').url, 'order_get', { handle: theirs })), theirs);
  nobodyIsIn();
});

test('a call with an idempotency key reaches one node, from each node', async () => {
  for (const user of [cells.principalOf('node-a'), cells.principalOf('node-b'), 'anonymous']) {
    const meta = { [META.idempotencyKey]: `a key of ${user} 0123456789` };
    const answers = await Promise.all(
      entries().map(([, url]) => call(url, 'where', {}, as(user, { meta })).then(textOf)),
    );
    const [first = ''] = answers;
    if (user !== 'anonymous')
      assert.ok(
        answers.every((each) => each.startsWith(cells.ownerOf(cells.cellFor(user)) ?? '?')),
        `${answers}`,
      );
    assert.is(answers[1], first);
  }
});

test('a task is served by the owner of its cell, by its header or its body', async () => {
  const meta = { [META.clientCapabilities]: { extensions: { [TASKS_EXTENSION]: {} } } };
  const created = await messageIn(await call(node('node-b').url, 'slow', {}, { meta }));
  const { taskId } = created.result as { readonly taskId: string };
  assert.is(cells.ownerOf(cellIn(taskId) ?? -1), 'node-b');
  for (const [, url] of entries())
    for (const headers of [{ 'mcp-name': taskId }]) {
      const got = await messageIn(await send(url, 'tasks/get', { meta, headers, params: { taskId } }));
      assert.match(JSON.stringify(got.result), 'task at node-b');
    }
});

test('a request state leads to the node that asked', async () => {
  const meta = { [META.clientCapabilities]: { elicitation: { form: {} } } };
  const asked = await messageIn(await call(node('node-b').url, 'asks', {}, { meta }));
  const { requestState, inputRequests } = asked.result as {
    readonly requestState: string;
    readonly inputRequests: Readonly<Record<string, unknown>>;
  };
  const [name = ''] = Object.keys(inputRequests);
  const params = { requestState, inputResponses: { [name]: { action: 'accept', content: { name: 'Ada' } } } };
  assert.is(await textOf(await call(node('node-a').url, 'asks', {}, { meta, params })), 'node-b accepted');
});

test('discover, lists, reads, prompts and plain tools are served by the entry', async () => {
  for (const [id, url] of entries()) {
    const user = cells.principalOf(id === 'node-a' ? 'node-b' : 'node-a');
    assert.is(await textOf(await call(url, 'where', {}, as(user))), `${id} ${user}`);
    const read = await messageIn(await send(url, 'resources/read', as(user, { params: { uri: 'notes://a' } })));
    assert.match(JSON.stringify(read.result), `note of ${id}`);
    for (const method of ['server/discover', 'tools/list', 'resources/list'])
      assert.ok((await messageIn(await send(url, method, as(user)))).result);
  }
});

test('a response that streams through another node arrives in pieces, and its client can cancel it', async () => {
  const user = cells.principalOf('node-b');
  const session = await openSession(node('node-a').url, '2025-11-25', { 'x-user': user });
  let release = (): void => {};
  whileHeld = () =>
    new Promise((done) => {
      release = done;
    });
  const params = { name: 'held', arguments: {}, _meta: { progressToken: 1 } };
  const body = { jsonrpc: '2.0', id: 5, method: 'tools/call', params };
  const called = await ask(node('node-a').url, { headers: session.headers, body });
  await until(called, 'notifications/progress');
  release();
  assert.match(await until(called, '"result"'), 'held at node-b');
});

/** The records of a node as an inspector shows them, until its end. */
function inspected({ offers: { inspection } }: StaticNode): { readonly model: Model; readonly end: () => void } {
  const model = new Model();
  const chart = (frame: ChartFrame): void => model.take(frame);
  const encoder = new FrameEncoder({ redactor: new Redactor(), wants: () => false, chart });
  const end = inspection.listen((record) => model.take({ type: 'records', records: [encoder.encode(record)] }));
  return { model, end };
}

test('the inspector follows a call to the other node, where it has the same number', async () => {
  const user = cells.principalOf('node-b');
  const { headers } = await openSession(node('node-a').url, '2025-11-25', { 'x-user': user });
  const [entry, owner] = [inspected(node('node-a')), inspected(node('node-b'))];
  const callOf = ({ model }: typeof entry): WireExchange => {
    const found = model.exchanges.all.until(LIVE).find(({ method }) => method === 'tools/call');
    if (!found) throw new Error('no call');
    return found;
  };
  let release = (): void => {};
  whileHeld = () =>
    new Promise((done) => {
      release = done;
    });
  const params = { name: 'held', arguments: {}, _meta: { progressToken: 1 } };
  const called = await ask(node('node-a').url, {
    headers,
    body: { jsonrpc: '2.0', id: 5, method: 'tools/call', params },
  });
  await until(called, 'notifications/progress');
  const sent = callOf(entry);
  const arrived = callOf(owner);
  const { number = 0 } = sent.hop ?? {};
  assert.ok(number > 0);
  const hopIn = ({ hop }: WireExchange): unknown[] => [hop?.way, hop?.node, hop?.number, hop?.cause];
  assert.equal(hopIn(sent), ['to', 'node-b', number, sent.seq]);
  assert.equal(hopIn(arrived), ['from', 'node-a', number, arrived.seq]);
  assert.equal(
    nodeWaits(entry.model, { id: '', kind: 'exchange', label: '', children: [], exchange: sent }, LIVE).map(
      ({ what, whom }) => [what, whom],
    ),
    [['its result', `node node-b, exchange ${number}`]],
  );
  assert.is(sent.notices.length, 1);
  const top = topView(entry.model, { ...SCREEN, now: entry.model.timeAt(LIVE) }).map(({ text }) => text);
  assert.ok(top.some((text) => text.includes('tools/call held') && text.includes('node node-b')));
  release();
  await until(called, '"result"');
  assert.is(sent.status, 'ok');
  assert.is(arrived.status, 'ok');
  const spans = timelineRows(entry.model).flatMap(({ wire = [] }) => wire);
  assert.ok(spans.some(({ label, outcome }) => label === 'tools/call held → node-b' && outcome === 'ok'));
  entry.end();
  owner.end();
  const text = metricsText(node('node-a').runtime.readMetrics(), 'prometheus');
  assert.match(text, /troupe_node_forwarded_total\{troupe_outcome="answered"\} [1-9]/);
});

test('a cell without an owner is settled first, by this node or another', async () => {
  const user = cells.principalOf('node-b', 'cy');
  const cell = cells.cellFor(user);
  for (const next of ['node-a', 'node-b']) {
    cells.move(cell, undefined);
    cells.settles = () => Promise.resolve(next);
    const meta = { [META.idempotencyKey]: `the key that settles at ${next}` };
    assert.is(await textOf(await call(node('node-a').url, 'where', {}, as(user, { meta }))), `${next} ${user}`);
    const session = await openSession(node('node-a').url, '2025-11-25', { 'x-user': user });
    cells.move(cell, undefined);
    const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'where', arguments: {} } };
    assert.is(await textOf(await ask(node('node-a').url, { headers: session.headers, body })), `${next} ${user}`);
  }
  cells.move(cell, undefined);
  cells.settles = () => Promise.reject(new Error('the database is away'));
  const refused = await ask(node('node-a').url, {
    headers: { 'x-user': user },
    body: {
      jsonrpc: '2.0',
      id: 1,
      method: 'initialize',
      params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } },
    },
  });
  assert.is(refused.status, 503);
  assert.is(refused.headers['retry-after'], '1');
  await refused.text();
  cells.move(cell, 'node-b');
  nobodyIsIn();
});

test('an invalid request is rejected once, with its id, by the node that reads it', async () => {
  const user = cells.principalOf('node-b');
  const bad = await ask(node('node-a').url, {
    headers: { 'x-user': user },
    body: { jsonrpc: '2.0', id: 7, method: 'initialize', params: {} },
  });
  const { id, error } = await messageIn(bad);
  assert.equal([id, error?.code], [7, -32602]);
});

test('GHSA-g53w-w6mj-hrpp: a header from outside names no caller and no node, and opens nothing', async () => {
  const user = cells.principalOf('node-b');
  const forged = {
    'link-from': 'node-b',
    'link-signature': '1.x',
    'link-not-mine': '1',
    'x-link-auth': '{"principal":"root"}',
    'mcp-principal': 'root',
    authorization: 'Bearer secret',
    cookie: 'session=secret',
    'x-user': user,
  };
  const seen: string[] = [];
  const { links } = node('node-b');
  const { exchange } = links;
  links.exchange = (each) => {
    seen.push(...Object.keys(each.pick(() => true)));
    exchange.call(links, each);
  };
  const session = await openSession(node('node-a').url, '2025-11-25', forged);
  const params = { name: 'where', arguments: {} };
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params };
  const answer = await ask(node('node-a').url, { headers: { ...forged, ...session.headers }, body });
  assert.is(await textOf(answer), `node-b ${user}`);
  links.exchange = exchange;
  assert.ok(seen.includes('mcp-session-id'));
  assert.equal(
    seen.filter((name) => /^(link-|x-|authorization|cookie|host)/.test(name)),
    [],
  );
  for (const path of ['/hello', '/proof', '/exchange', '/news'])
    for (const [, url] of entries()) {
      const asked = await ask(new URL(path, url).href, { body: '{}', headers: forged });
      assert.is(asked.status, 404, path);
      await asked.text();
    }
});

test('GHSA-mvgg-jvj2-4frq: a session id serves its principal alone, whichever node and method it enters by', async () => {
  const user = cells.principalOf('node-b');
  const session = await openSession(node('node-a').url, '2025-11-25', { 'x-user': user });
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'where', arguments: {} } };
  for (const [, url] of entries())
    for (const other of ['mallory', 'anonymous'])
      for (const method of ['POST', 'GET', 'DELETE']) {
        const headers = { ...session.headers, 'x-user': other };
        const stolen = await ask(url, { method, headers, ...(method === 'POST' ? { body } : {}) });
        assert.is(stolen.status, 404, `${method} by ${other}`);
        await stolen.text();
      }
  // An id that a client has invented, for a cell of another node.
  const invented = `${session.id.slice(0, 2)}${'x'.repeat(22)}`;
  const unknown = await ask(node('node-a').url, { headers: { ...session.headers, 'mcp-session-id': invented }, body });
  assert.is(unknown.status, 404);
  await unknown.text();
});

test('a node that does not own the cell of a forwarded request rejects it, and forwards it nowhere', async () => {
  const id = withCell(cells.ownCell('node-a'), 'x'.repeat(22));
  const failed = await new Promise((done) =>
    node('node-a').links.link.forward(
      'node-b',
      {
        ...{ endpoint: 0, method: 'POST', url: '/mcp', auth: undefined, remoteAddress: undefined, deadlineMs: 100 },
        cell: cellIn(id) ?? -1,
        headers: { 'mcp-session-id': id, accept: 'application/json', 'content-type': 'application/json' },
        text: '{"jsonrpc":"2.0","id":1,"method":"ping"}',
      },
      { whole: done, begun: done, text: () => true, ended: () => done('ended'), failed: done },
    ),
  );
  assert.is(failed, 'not mine');
});

test('a session of a node that cannot be reached gets 503 with Retry-After, and other requests are served', async () => {
  const three = await staticNodes(['node-a', 'node-b', 'node-c'], define, { waitMs: 150 });
  const [a, b] = three.nodes;
  if (!a || !b) throw new Error('no nodes');
  const session = await openSession(b.url);
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'where', arguments: {} } };
  await b.die();
  const cut = await ask(a.url, { headers: session.headers, body });
  assert.is(cut.status, 503);
  assert.is(cut.headers['retry-after'], '1');
  assert.match((await messageIn(cut)).error?.message ?? '', 'cannot be reached');
  assert.is(await textOf(await call(a.url, 'where')), 'node-a anonymous');
  assert.is(await textOf(await ask(b.url, { headers: session.headers, body })), 'node-b anonymous');
  for (const each of three.nodes) await each.close();
});

test('an entry that closes before the owner has answered does not invite its client to repeat what may have run', async () => {
  const two = await staticNodes(['node-a', 'node-b'], define, { waitMs: 100, server: { limits: { graceMs: 100 } } });
  const [a, b] = two.nodes;
  if (!a || !b) throw new Error('no nodes');
  const handle = handleIn(await messageIn(await call(b.url, 'order_create', { customer: 'Ada' })));
  let closing: Promise<void> | undefined;
  b.links.exchange = () => {
    closing = a.runtime.close('the test closes it');
  };
  const cut = await call(a.url, 'order_add_item', { handle, sku: 'tea' });
  assert.is(cut.status, 500);
  assert.is(cut.headers['retry-after'], undefined);
  assert.match((await messageIn(cut)).error?.message ?? '', 'may or may not have run');
  await closing;
  for (const each of two.nodes) await each.close();
});

test('after the death of an owner the next owner gets what may be repeated; the outcome of anything else is unknown', async () => {
  const meta = { [META.idempotencyKey]: 'the key of a call that is held' };
  const die = async ({ nodes: [, owner], cells: places }: Awaited<ReturnType<typeof staticNodes>>): Promise<void> => {
    whileHeld = () => Promise.resolve();
    for (let cell = 0; cell < CELLS; cell += 1) places.move(cell, 'node-a');
    await owner?.die();
  };
  for (const repeatable of [true, false]) {
    const two = await staticNodes(['node-a', 'node-b'], define);
    const [a, b] = two.nodes;
    if (!a || !b) throw new Error('no nodes');
    two.cells.move(two.cells.cellFor('key the key of a call that is held'), 'node-b');
    whileHeld = () => die(two);
    if (repeatable) assert.is(await textOf(await call(a.url, 'held', {}, { meta })), 'held at node-a');
    else {
      const created = await messageIn(await call(b.url, 'order_create', { customer: 'Ada' }));
      const handle = handleIn(created);
      // The owner dies after it has received the event and before it responds.
      b.links.exchange = () => void die(two);
      const lost = await call(a.url, 'order_add_item', { handle, sku: 'tea' });
      assert.is(lost.status, 500);
      const { error } = await messageIn(lost);
      assert.is(error?.code, -32603);
      assert.match(error?.message ?? '', 'may or may not have run');
    }
    for (const each of two.nodes) await each.close();
  }
});

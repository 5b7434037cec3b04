/** Streams, questions and calls with a name continue at another node: each event once, each answer once, each run once. */
import * as assert from 'uvu/assert';
import { z } from 'zod';
import { systemClock } from '../../../src/core/kernel/clock.ts';
import { CELLS, cellIn } from '../../../src/core/protocol/cell.ts';
import { isObject } from '../../../src/core/protocol/json.ts';
import { META } from '../../../src/core/protocol/meta.ts';
import { TASKS_EXTENSION } from '../../../src/core/protocol/task-params.ts';
import { createServer, http, type Server } from '../../../src/index.ts';
import { call, type Modern, send } from '../../core/http/modern.ts';
import { type Answer, ask, type Message, openSession } from '../../core/http/support.ts';
import { conclusive, suite, timeLimit } from '../../harness/door.ts';
import { MemoryDatabase, type MemoryProcess } from '../../harness/memory-nodes.ts';
import { atScale } from '../../harness/scale.ts';
import { haveShares } from '../../harness/shares.ts';
import { HANG_MS, until } from '../../harness/wait.ts';

const test = suite('continuity across nodes');
timeLimit(atScale({ quick: 120_000, full: 300_000, proof: 3_600_000 }));

const ROUNDS = atScale({ quick: 3, full: 3, proof: 1_000 });
const SECRET = 'a secret that all nodes of this test share';

interface Node {
  readonly server: Server;
  readonly process: MemoryProcess;
  readonly url: string;
  readonly ran: string[];
  /** Ends the calls of `wait` at this node. */
  readonly ends: (() => void)[];
}

/** @param survey whether that tool may run twice, and how often it reports progress */
async function start(
  database: MemoryDatabase,
  name: string,
  survey = { readOnlyHint: true, reports: 2 },
): Promise<Node> {
  const process = database.process(name);
  const ran: string[] = [];
  const ends: (() => void)[] = [];
  const server = createServer({
    ...{ name: 'continuity', version: '1.0.0', store: process.store, log: () => {} },
    cluster: { listen: '127.0.0.1:0', secret: SECRET },
    // A request waits as long for the owner of its cell.
    limits: { graceMs: HANG_MS, taskAfterMs: 250 },
  });
  server.tool('count', { input: z.object({ to: z.number() }) }, ({ to }, { progress }) => {
    for (let done = 1; done <= to; done += 1) progress(done, to);
    return `counted to ${to}`;
  });
  server.tool('order', { input: z.object({ n: z.number() }) }, async ({ n }, ctx) => {
    ran.push(`begin ${n}`);
    await ctx.step('pay', () => {
      ran.push(`pay ${n}`);
      return n;
    });
    const { status } = await ctx.elicit({ message: 'Which size?', schema: z.object({ size: z.number() }) });
    return `${status} ${n}`;
  });
  server.tool('ship', { task: 'allowed', rerun: true }, async (_, ctx) => {
    const answer = await ctx.elicit({ message: 'Where to?', schema: z.object({ city: z.string() }) });
    await new Promise<void>((resolve) => ends.push(resolve));
    return answer.status === 'accepted' ? `accepted ${answer.content.city}` : answer.status;
  });
  server.tool('pay', { input: z.object({ n: z.number() }) }, ({ n }) => {
    ran.push(`pay ${n}`);
    return `paid ${n}`;
  });
  server.tool('wait', { input: z.object({ n: z.number() }) }, async ({ n }) => {
    ran.push(`wait ${n}`);
    await new Promise<void>((resolve) => ends.push(resolve));
    return `waited ${n}`;
  });
  const { reports, ...annotations } = survey;
  server.tool('survey', { input: z.object({ n: z.number(), note: z.string() }), annotations }, async ({ n }, ctx) => {
    ran.push(`survey ${n}`);
    for (let done = 1; done <= reports; done += 1) ctx.progress(done, reports);
    await new Promise<void>((resolve) => ends.push(resolve));
    return `surveyed ${n}`;
  });
  const authenticate = ({ header }: { header(name: string): string | undefined }): string => header('x-user') ?? 'ann';
  const transport = http({ port: 0, authenticate });
  await server.listen(transport);
  return { server, process, ran, ends, url: transport.url };
}

async function messageIn(answer: Answer): Promise<Message> {
  const body = await answer.text();
  return JSON.parse([...body.matchAll(/^data: (.+)$/gm)].at(-1)?.[1] ?? body);
}

const textIn = ({ result, error }: Message): string => JSON.stringify(result?.content ?? error);
const counted = (nodes: readonly Node[], what: string): number =>
  nodes.flatMap(({ ran }) => ran).filter((each) => each === what).length;

async function kill(database: MemoryDatabase, dead: Node, rest: readonly Node[]): Promise<void> {
  dead.process.kill();
  database.fence(dead.process.id);
  const cells = (): number => rest.reduce((sum, { server }) => sum + (server.cluster()?.cells ?? 0), 0);
  await until(() => cells() === CELLS, 'all cells');
}

async function stop(...nodes: readonly Node[]): Promise<void> {
  for (const { process, server } of nodes) {
    if (process.state === 'killed') process.clear();
    await server.close();
  }
}

test('D-07: the events after a Last-Event-ID are the same at a node that never saw the session, also after the death of its node', async () => {
  const database = new MemoryDatabase(systemClock);
  const one = await start(database, 'one');
  const streams: { headers: Awaited<ReturnType<typeof openSession>>['headers']; first: string; rest: string }[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const session = await openSession(one.url, '2025-11-25', { 'x-user': `user ${round % 37}` });
    const params = { name: 'count', arguments: { to: 5 }, _meta: { progressToken: round } };
    const body = { jsonrpc: '2.0', id: round, method: 'tools/call', params };
    const called = await ask(one.url, { headers: session.headers, body });
    const text = await called.text();
    const [, first = ''] = /^id: (.+)$/m.exec(text) ?? [];
    assert.match(text, 'counted to 5');
    streams.push({ headers: session.headers, first, rest: text.slice(text.indexOf('\n\n') + 2) });
  }
  const two = await start(database, 'two');
  const resume = async (
    { url }: Node,
    { headers, first }: { readonly headers: (typeof streams)[number]['headers']; readonly first: string },
  ): Promise<string> => {
    const answer = await ask(url, { method: 'GET', headers: { ...headers, 'last-event-id': first } });
    assert.is(answer.status, 200);
    return answer.text();
  };
  const events = (text: string): string => [...text.matchAll(/^(id|data): .+$/gm)].join('\n');
  for (const stream of streams) assert.is(events(await resume(two, stream)), events(stream.rest));
  await kill(database, one, [two]);
  for (const stream of streams) assert.is(events(await resume(two, stream)), events(stream.rest));
  conclusive(() => assert.equal(database.violations, []));
  await stop(one, two);
});

/** A client of 2026-07-28 that can be asked, and what it was asked. */
async function asked(node: Node, n: number): Promise<{ readonly again: Modern; readonly args: object }> {
  const meta = { [META.clientCapabilities]: { elicitation: { form: {} } } };
  const { result, error } = await messageIn(await call(node.url, 'order', { n }, { meta }));
  const state = result?.requestState;
  if (typeof state !== 'string' || !isObject(result?.inputRequests)) throw new Error(JSON.stringify(error ?? result));
  const [name = ''] = Object.keys(result.inputRequests);
  const inputResponses = { [name]: { action: 'accept', content: { size: 3 } } };
  return { args: { n }, again: { meta, params: { requestState: state, inputResponses } } };
}

/** Two nodes, each with its share of the cells: a call that waits for an answer would begin again with a cell that moves. */
let paired: Promise<{ readonly database: MemoryDatabase; readonly one: Node; readonly two: Node }> | undefined;
function pair(): NonNullable<typeof paired> {
  const open = async () => {
    const database = new MemoryDatabase(systemClock);
    const one = await start(database, 'one');
    const two = await start(database, 'two');
    await haveShares(one.server, two.server);
    return { database, one, two };
  };
  paired ??= open();
  return paired;
}

test('D-18: one request state, and one idempotency key, that reach two nodes at once run once', async () => {
  const { database, one, two } = await pair();
  const all = [one, two];
  // Other numbers than those of D-17, at the same nodes.
  for (let n = -1; n >= -ROUNDS; n -= 1) {
    const { args, again } = await asked(all[-n % 2] ?? one, n);
    const answers = await Promise.all(all.map(({ url }) => call(url, 'order', args, again).then(messageIn)));
    assert.is(answers.filter(({ result }) => result?.content !== undefined).length, 1, answers.map(textIn).join('\n'));
    assert.is(counted(all, `begin ${n}`), 1);
    const meta = { [META.idempotencyKey]: `the key of the call ${n} 0123456789` };
    const headers = { 'x-user': `user ${n}` };
    const paid = await Promise.all(
      all.map(({ url }) => call(url, 'pay', { n: n + 0.5 }, { meta, headers }).then(messageIn)),
    );
    assert.is(counted(all, `pay ${n + 0.5}`), 1, paid.map(textIn).join('\n'));
    for (const each of paid) assert.match(textIn(each), /paid|in progress/);
  }
  conclusive(() => assert.equal(database.violations, []));
});

test('D-17: a question that one node asks is answered at another, also after the death of the first: steps run once', async () => {
  const { database, one, two } = await pair();
  const all = [one, two];
  for (let n = 0; n < ROUNDS; n += 1) {
    const { args, again } = await asked(one, n);
    assert.match(textIn(await messageIn(await call(two.url, 'order', args, again))), `accepted ${n}`);
    assert.equal([counted(all, `begin ${n}`), counted(all, `pay ${n}`)], [1, 1]);
  }
  const waiting: { readonly n: number; readonly question: Awaited<ReturnType<typeof asked>> }[] = [];
  for (let n = ROUNDS; n < 2 * ROUNDS; n += 1) waiting.push({ n, question: await asked(one, n) });
  await kill(database, one, [two]);
  for (const { n, question } of waiting) {
    const answer = await messageIn(await call(two.url, 'order', question.args, question.again));
    assert.match(textIn(answer), `accepted ${n}`);
    // It began again at the next owner, and its step did not.
    assert.equal([counted(all, `begin ${n}`), counted(all, `pay ${n}`)], [2, 1]);
  }
  conclusive(() => assert.equal(database.violations, []));
  await stop(one, two);
});

/** The question of a call of `ship`. On a busy machine the call may become a task before it asks: then another one asks. */
async function askedByShip({ url }: Node, meta: NonNullable<Modern['meta']>): Promise<Message['result']> {
  for (;;) {
    const { result } = await messageIn(await call(url, 'ship', {}, { meta }));
    if (result?.inputRequests !== undefined) return result;
  }
}

test.full(
  'D-17: a question that was answered before its call became a task is not asked again after the death of the node',
  async () => {
    const database = new MemoryDatabase(systemClock);
    const one = await start(database, 'one');
    const meta = { [META.clientCapabilities]: { elicitation: { form: {} }, extensions: { [TASKS_EXTENSION]: {} } } };
    const question = await askedByShip(one, meta);
    const [name = ''] = Object.keys(Object(question?.inputRequests));
    const inputResponses = { [name]: { action: 'accept', content: { city: 'Oslo' } } };
    const params = { requestState: question?.requestState, inputResponses };
    const { result: created } = await messageIn(await call(one.url, 'ship', {}, { meta, params }));
    const taskId = String(created?.taskId);
    const two = await start(database, 'two');
    await kill(database, one, [two]);
    const look = async (): Promise<Message> =>
      messageIn(await send(two.url, 'tasks/get', { params: { taskId }, headers: { 'mcp-name': taskId }, meta }));
    let looked = await look();
    while (looked.result?.status === 'working') {
      for (const end of two.ends) end();
      looked = await look();
    }
    assert.is(looked.result?.status, 'completed', JSON.stringify(looked));
    assert.match(JSON.stringify(looked), 'accepted Oslo');
    conclusive(() => assert.equal(database.violations, []));
    for (const end of one.ends) end();
    await stop(one, two);
  },
);

test.full(
  'D-18: a call that is sent again with its answers, because its response was lost, is answered with the task that it became',
  async () => {
    const database = new MemoryDatabase(systemClock);
    const one = await start(database, 'one');
    const two = await start(database, 'two');
    const meta = { [META.clientCapabilities]: { elicitation: { form: {} }, extensions: { [TASKS_EXTENSION]: {} } } };
    const question = await askedByShip(one, meta);
    const [name = ''] = Object.keys(Object(question?.inputRequests));
    const inputResponses = { [name]: { action: 'accept', content: { city: 'Oslo' } } };
    const params = { requestState: question?.requestState, inputResponses };
    const answered = async ({ url }: Node): Promise<Message> =>
      messageIn(await call(url, 'ship', {}, { meta, params }));
    const { result: created } = await answered(one);
    assert.is(created?.resultType, 'task');
    for (const node of [two, one]) assert.equal((await answered(node)).result?.taskId, created?.taskId);
    assert.is(one.ends.length + two.ends.length, 1, 'it runs once');
    for (const end of [...one.ends, ...two.ends]) end();
    conclusive(() => assert.equal(database.violations, []));
    await stop(one, two);
  },
);

test('D-18: the cells of one principal are the same at every node', async () => {
  const database = new MemoryDatabase(systemClock);
  const one = await start(database, 'one');
  const two = await start(database, 'two');
  const sessions = await Promise.all([one, two].map(({ url }) => openSession(url)));
  assert.is(new Set(sessions.map(({ id }) => cellIn(id))).size, 1);
  await stop(one, two);
});

test.full('a call of a session that a balancer sends once more, to another node, runs at most once', async () => {
  const database = new MemoryDatabase(systemClock);
  const one = await start(database, 'one');
  const two = await start(database, 'two');
  const all = [one, two];
  const { headers } = await openSession(one.url, '2025-11-25');
  const post = (node: Node, id: number, name: string) =>
    ask(node.url, {
      headers,
      body: { jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: { n: id } } },
    }).then(messageIn);
  const begun = async (id: number): Promise<Node> => {
    await until(() => counted(all, `wait ${id}`) === 1, 'the call begins');
    return one.ran.includes(`wait ${id}`) ? one : two;
  };

  // The node that has forwarded the call dies: its owner still runs it.
  const forwarded = post(one, 1, 'wait');
  const owner = await begun(1);
  const other = owner === one ? two : one;
  assert.match(textIn(await post(other, 1, 'wait')), 'id 1 is in flight');
  for (const end of owner.ends) end();
  assert.match(textIn(await forwarded), 'waited 1');
  assert.match(textIn(await post(other, 1, 'wait')), 'waited 1');

  // The owner dies: after a call whose response is lost, and during a call.
  assert.match(textIn(await post(owner, 2, 'pay')), 'paid 2');
  void post(owner, 3, 'wait').catch(() => {});
  await begun(3);
  await kill(database, owner, [other]);
  assert.match(textIn(await post(other, 2, 'pay')), 'paid 2');
  assert.match(textIn(await post(other, 3, 'wait')), 'It may have run and will not run again');

  assert.equal([counted(all, 'wait 1'), counted(all, 'pay 2'), counted(all, 'wait 3')], [1, 1, 1]);
  conclusive(() => assert.equal(database.violations, []));
  for (const end of owner.ends) end();
  await stop(...all);
});

/** The events of a survey: a progress is its number, and any other message its text. */
function surveyed({ events }: Answer): Promise<readonly unknown[]> {
  return events.rest().then((rest) =>
    rest
      .filter(({ data }) => data)
      .map(({ data = '' }) => {
        const { params, ...message }: Message = JSON.parse(data);
        return params?.progress ?? textIn(message);
      }),
  );
}

test('D-01: a call of a tool that may run twice runs again when its client resumes its stream at another node, once', async () => {
  const database = new MemoryDatabase(systemClock);
  const one = await start(database, 'one');
  const { headers } = await openSession(one.url, '2025-11-25');
  const resume = ({ url }: Node, id: string | undefined): Promise<Answer> =>
    ask(url, { method: 'GET', headers: { ...headers, 'last-event-id': id } });
  /** Begins a survey. @returns the id of the event with its second progress */
  const begin = async ({ url }: Node, n: number, note = ''): Promise<string | undefined> => {
    const params = { name: 'survey', arguments: { n, note }, _meta: { progressToken: n } };
    const answer = await ask(url, { headers, body: { jsonrpc: '2.0', id: n, method: 'tools/call', params } });
    for (;;) {
      const { id, data } = await answer.events.next();
      if (!data || JSON.parse(data).params.progress < 2) continue;
      answer.cut();
      return id;
    }
  };
  const ids = [await begin(one, 1), await begin(one, 2), await begin(one, 3)];
  const long = await begin(one, 5, 'x'.repeat(16_384));

  const two = await start(database, 'two', { readOnlyHint: true, reports: 3 });
  await kill(database, one, [two]);
  const [first, second] = await Promise.all([resume(two, ids[0]), resume(two, ids[1])]);
  await until(() => two.ends.length === 2, 'both surveys');
  two.ends[two.ran.indexOf('survey 1')]?.();
  // The first run has reported 1 and 2: what is reported next must be more.
  assert.equal(await surveyed(first), [3, '[{"type":"text","text":"surveyed 1"}]']);
  second.cut();
  // The arguments of the longest call are not stored.
  assert.match(String((await surveyed(await resume(two, long))).at(-1)), 'the server restarted while this request ran');

  // The node of a second run dies, too. A call that ends its process would end the next one.
  const three = await start(database, 'three');
  await kill(database, two, [three]);
  assert.match(String((await surveyed(await resume(three, ids[1]))).at(-1)), 'its outcome is unknown');

  // A new version of the tool may not run twice.
  const four = await start(database, 'four', { readOnlyHint: false, reports: 2 });
  await kill(database, three, [four]);
  assert.match(String((await surveyed(await resume(four, ids[2]))).at(-1)), 'its outcome is unknown');
  assert.match(String((await surveyed(await resume(four, ids[0]))).at(-1)), 'surveyed 1');
  const last = await begin(four, 4);
  const five = await start(database, 'five');
  await kill(database, four, [five]);
  assert.match(
    String((await surveyed(await resume(five, last))).at(-1)),
    'the server restarted while this request ran',
  );

  const all = [one, two, three, four, five];
  assert.equal(
    [1, 2, 3, 4, 5].map((n) => counted(all, `survey ${n}`)),
    [2, 2, 1, 1, 1],
  );
  conclusive(() => assert.equal(database.violations, []));
  for (const { ends } of all) for (const end of ends) end();
  await stop(...all);
});

/** The audit log: the records of each event, repeated refusals, required records, its file, its rows, and what never gets into it. */

import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { z } from 'zod';
import { Metrics } from '../../../../src/core/kernel/telemetry/metrics.ts';
import type { Telemetry } from '../../../../src/core/kernel/telemetry/telemetry.ts';
import type { CommitRiders } from '../../../../src/core/store/commit-rider.ts';
import { meteredStore } from '../../../../src/core/store/metered-store.ts';
import type { Write } from '../../../../src/core/store/store.ts';
import { AuditFile, readAuditFile } from '../../../../src/features/guard/audit/audit-file.ts';
import { AuditRows, readAuditRows, type StoredEvents } from '../../../../src/features/guard/audit/audit-rows.ts';
import { INTERNALS } from '../../../../src/features/server/internals.ts';
import {
  type AuditRecord,
  createServer,
  type Feature,
  http,
  type JsonObject,
  type ServerOptions,
  sqlite,
} from '../../../../src/index.ts';
import { connect, ErrorResponse, SimulatedClock, settled } from '../../../../src/testing/testing.ts';
import { suite } from '../../../harness/door.ts';
import { inSession } from '../../../harness/memory.ts';
import { assertRejects } from '../../../harness/results.ts';
import { TestStore } from '../../../harness/test-store.ts';
import { accept, Modern } from '../../asking/support.ts';

const test = suite('the audit log');
const folder = mkdtempSync(join(tmpdir(), 'troupe-audit-'));
test.after(() => rmSync(folder, { recursive: true, force: true }));

type Options = Partial<ServerOptions['audit']> & object;

function stage(options: Options = {}, more: Partial<ServerOptions> = {}) {
  const clock = new SimulatedClock();
  const records: AuditRecord[] = [];
  const logged: string[] = [];
  const server = createServer({
    ...{ name: 's', version: '1', clock, log: (level, message) => void logged.push(`${level}: ${message}`) },
    audit: { to: (record) => void records.push(record), ...options },
    ...more,
  });
  let ran = 0;
  server.tool('pay', { input: z.object({ sum: z.number(), card: z.string().optional() }) }, ({ sum }) => {
    ran += 1;
    return `paid ${sum}`;
  });
  server.tool('look', { annotations: { readOnlyHint: true } }, () => 'seen');
  server.tool('fail', {}, () => {
    throw new Error('out of order');
  });
  server.tool(
    'ask',
    {},
    async (_, ctx) => (await ctx.elicit({ message: 'Really?', schema: { type: 'object', properties: {} } })).status,
  );
  return { server, clock, records, logged, ran: () => ran };
}

const of = (records: readonly AuditRecord[], event: string) => records.filter((record) => record.event === event);

test('a call that ended the process before is recorded as a dead letter', async () => {
  const supervising: Feature = {
    name: 'supervising',
    open: ({ bus }) => ({
      service: undefined,
      restore: async () => bus.emit('call.dead', { element: 'tool "pay"', incident: 'i-1' }),
    }),
  };
  const { server, records } = stage({}, { features: [supervising] });
  await (await connect(server)).close();
  await server.close();
  const [letter] = records.filter(({ event }) => event === 'dead letter');
  assert.equal([letter?.element, letter?.incident], ['tool "pay"', 'i-1']);
});

test('records the end of each call that may change something, and no call of a read-only tool', async () => {
  const { server, records } = stage();
  const client = await inSession(server);
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  await client.send('tools/call', { name: 'pay', arguments: { sum: 3 }, _meta: { traceparent } });
  await client.send('tools/call', { name: 'pay', arguments: { sum: 3 } });
  await client.send('tools/call', { name: 'look', arguments: {} });
  await client.send('tools/call', { name: 'fail', arguments: {} });
  await client.close();
  await server.close('the test is over');
  const [first, second, third, ...rest] = of(records, 'call');
  assert.equal(rest, []);
  assert.equal(of(records, 'read'), []);
  const { at, node, session, argumentsDigest, ...shown } = first ?? { at: '', node: '' };
  assert.equal(shown, {
    ...{ event: 'call', principal: 'anonymous', client: 'troupe-test-client 1.0.0', element: 'tool pay' },
    ...{ traceId: '0af7651916cd43dd8448eb211c80319c', decision: 'allowed', outcome: 'ok', ms: 0 },
  });
  assert.match(at, /^2026-01-01T00:00:00\.\d{3}Z$/);
  assert.ok(node.length > 0);
  assert.match(session ?? '', /^[\w-]{43}$/);
  // Equal arguments have equal digests, under the key of this server.
  assert.match(argumentsDigest ?? '', /^[\w-]{43}$/);
  assert.is(second?.argumentsDigest, argumentsDigest);
  assert.is(third?.outcome, 'error');
  assert.is(third?.errorType, 'tool_error');
  assert.equal(
    records.filter(({ event }) => event !== 'call').map(({ event, outcome }) => [event, outcome]),
    [
      ['started', undefined],
      ['session opened', undefined],
      ['session ended', of(records, 'session ended')[0]?.outcome],
      ['stopped', 'the test is over'],
    ],
  );
});

test('a call whose handler throws: its record has the incident of the log, also if the client cannot see it', async () => {
  for (const errors of [undefined, 'masked'] as const) {
    const { server, records, logged } = stage({ events: ['call'] }, { errors });
    const client = await connect(server);
    await client.modern('tools/call', { name: 'fail', arguments: {} });
    await client.modern('tools/call', { name: 'pay', arguments: { sum: 'much' } });
    await client.close();
    await server.close();
    const [thrown, invalid] = records;
    assert.match(thrown?.incident ?? '', /^[\w-]{10}$/);
    assert.ok(
      logged.some((line) => line.includes(`incident ${thrown?.incident} in tool "fail"`)),
      String(logged),
    );
    assert.equal([invalid?.errorType, invalid?.incident], ['tool_error', undefined]);
  }
});

test('a record has the address of the client and the trace of the span, else of _meta, else of the headers', async () => {
  const trace = (digit: string): string => `00-${digit.repeat(32)}-${digit.repeat(16)}-01`;
  const span = {
    ...{ traceparent: trace('a'), sampled: undefined, run: <T>(work: () => T): T => work() },
    ...{ link: () => {}, end: () => {} },
  };
  const traced: Telemetry = { begin: () => span, ask: () => undefined, session: () => {} };
  for (const telemetry of [undefined, traced]) {
    const { server, records } = stage(
      { events: ['call', 'denied', 'limited', 'asked'] },
      { ...(telemetry ? { telemetry } : {}) },
    );
    server.tool('closed', { allow: () => ({ deny: 'never' }) }, () => 'open');
    server.tool('none', { limits: { perDay: 1, cost: () => 2 } }, () => 'ran');
    const transport = http({ port: 0 });
    await server.listen(transport);
    const send = async (name: string, headers: Record<string, string>, meta: JsonObject): Promise<void> => {
      const _meta = {
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {} } },
        ...meta,
      };
      const params = { name, arguments: name === 'pay' ? { sum: 1 } : {}, _meta };
      const response = await fetch(transport.url, {
        method: 'POST',
        headers: {
          ...{ 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
          ...{ 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': name },
          ...headers,
        },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
      });
      await response.text();
    };
    for (const name of ['pay', 'closed', 'none', 'ask']) {
      await send(name, { traceparent: trace('c') }, { traceparent: trace('b') });
      await send(name, { traceparent: trace('c') }, {});
    }
    await server.close();
    const found = (event: string): readonly unknown[] =>
      of(records, event).map(({ element, remoteAddress, traceId }) => [element, remoteAddress, traceId?.[0]]);
    const [first, second] = telemetry ? ['a', 'a'] : ['b', 'c'];
    assert.equal(found('call').slice(0, 2), [
      ['tool pay', '127.0.0.1', first],
      ['tool pay', '127.0.0.1', second],
    ]);
    assert.equal(found('asked'), [
      ['tool ask', '127.0.0.1', first],
      ['tool ask', '127.0.0.1', second],
    ]);
    // Equal refusals make one record.
    assert.equal(found('denied').slice(0, 1), [['tool closed', '127.0.0.1', first]]);
    assert.equal(found('limited').slice(0, 1), [['tool none', '127.0.0.1', first]]);
  }
});

test('records questions and their answers, by the client, in both eras', async () => {
  const { server, records } = stage({ events: ['asked', 'answered'] });
  const client = await Modern.of(server);
  const { inputRequests, requestState } = await client.ask('ask');
  const [key = ''] = Object.keys(inputRequests);
  await client.send({ name: 'ask', arguments: {}, requestState, inputResponses: { [key]: { action: 'decline' } } });
  const session = await connect(server, { elicit: () => ({ action: 'accept', content: {} }) });
  await session.initialize();
  await session.call('ask');
  await server.close();
  assert.equal(
    records.map(({ event, element, question, from, outcome }) => [event, element, question, from, outcome]),
    ['declined', 'accepted'].flatMap((outcome) => [
      ['asked', 'tool ask', 'elicitation/create', 'client', undefined],
      ['answered', 'tool ask', 'elicitation/create', 'client', outcome],
    ]),
  );
});

test('writes equal rejections of one principal once in ten seconds, with their number', async () => {
  const { server, clock, records } = stage({ events: ['denied', 'limited'] });
  const { audit } = server[INTERNALS];
  const deny = (principal: string): void =>
    audit?.send({ type: 'denied', by: { principal }, element: 'tool pay', rule: 'too much', scopesNeeded: ['pay'] });
  for (let n = 0; n < 500; n += 1) deny('ada');
  deny('bob');
  assert.equal(
    records.map(({ principal, count, decision, rule }) => [principal, count, decision, rule]),
    [
      ['ada', undefined, 'denied', 'too much'],
      ['bob', undefined, 'denied', 'too much'],
    ],
  );
  await clock.advance(9_999);
  assert.is(records.length, 2);
  await clock.advance(1);
  assert.equal([records.length, records[2]?.principal, records[2]?.count], [3, 'ada', 499]);
  deny('ada');
  deny('ada');
  assert.is(records.length, 3);
  await clock.advance(10_000);
  assert.equal([records.length, records[3]?.count], [4, 2]);
  // Quiet for a window: the next refusal is written at once.
  await clock.advance(10_000);
  deny('ada');
  assert.equal([records.length, records[4]?.count], [5, undefined]);
  deny('ada');
  deny('ada');
  await server.close();
  assert.is(records.at(-1)?.count, 2);
});

test('G-12 reasons that contain what a client has sent are cut', async () => {
  const { server, records } = stage({ events: ['denied'] });
  server.authorize(({ element }) => ({ deny: `no ${element.name}` }));
  const client = await connect(server);
  await client.modern('tools/call', { name: 'é'.repeat(50_000), arguments: {} }).catch(() => {});
  assert.equal(
    records.map(({ rule }) => rule),
    [`no ${'é'.repeat(497)}…`],
  );
  await client.close();
  await server.close();
});

test('G-11 the end of a call records the arguments that its handler received, also if a middleware has changed them', async () => {
  const { server, records } = stage(
    { required: true, include: ['arguments'], redact: (args) => ({ ...args }) },
    { store: sqlite(join(folder, 'changed.db')) },
  );
  server.use('tools/call', (call, _ctx, next) => next({ ...call, params: { ...call.params, arguments: { sum: 9 } } }));
  // A session of HTTP records the start of a call with its marker, before any middleware.
  const post = (method: string, params: object, session: Record<string, string> = {}) =>
    server.fetch(
      new Request('http://localhost/mcp', {
        method: 'POST',
        headers: { accept: 'application/json, text/event-stream', 'content-type': 'application/json', ...session },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
      }),
    );
  const clientInfo = { name: 'c', version: '1' };
  const opened = await post('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo });
  const session = { 'mcp-session-id': opened.headers.get('mcp-session-id') ?? '' };
  await (await post('tools/call', { name: 'pay', arguments: { sum: 1 } }, session)).text();
  await server.close();
  const [started, ended] = of(records, 'call');
  assert.equal([started?.outcome, ended?.outcome, started?.call === ended?.call], ['started', 'ok', true]);
  assert.equal([started?.arguments, ended?.arguments], [{ sum: 1 }, { sum: 9 }]);
  assert.is.not(started?.argumentsDigest, ended?.argumentsDigest);
});

test('counts records that the destination does not keep, and reports them', async () => {
  let broken = true;
  const records: AuditRecord[] = [];
  const to = (record: AuditRecord): Promise<void> | void => {
    if (broken) return Promise.reject(new Error('no space left'));
    records.push(record);
  };
  const { server, logged, ran } = stage({ to, events: ['call'] });
  const client = await connect(server);
  for (let n = 0; n < 3; n += 1) await client.modern('tools/call', { name: 'pay', arguments: { sum: n } });
  broken = false;
  await client.modern('tools/call', { name: 'pay', arguments: { sum: 9 } });
  await settled();
  assert.is(ran(), 4);
  assert.equal(
    records.map(({ event, count }) => [event, count]),
    [
      ['call', undefined],
      ['lost', 3],
    ],
  );
  assert.equal(
    logged.filter((line) => line.includes('audit')),
    ['error: the audit log lost 1 records: no space left'],
  );
  await server.close();
});

test('G-11 runs the handler after its required record is stored, and not at all if it cannot be stored', async () => {
  const order: string[] = [];
  let keep: (error?: Error) => void = () => {};
  const to = ({ event, outcome }: AuditRecord): Promise<void> => {
    order.push(`${event} ${outcome}`);
    if (outcome !== 'started') return Promise.resolve();
    return new Promise((resolve, reject) => {
      keep = (error) => (error ? reject(error) : resolve());
    });
  };
  const { server, clock, ran } = stage({ to, required: true, events: ['call'] });
  const client = await connect(server);
  const first = client.modern('tools/call', { name: 'pay', arguments: { sum: 1 } });
  await settled();
  assert.is(ran(), 0);
  keep();
  await first;
  assert.is(ran(), 1);
  const second = client.modern('tools/call', { name: 'pay', arguments: { sum: 1 } }).catch((error: unknown) => error);
  await settled();
  keep(new Error('ENOSPC: no space left on device'));
  const error = await second;
  assert.ok(error instanceof ErrorResponse && error.code === -32603);
  assert.match(
    String(error.message),
    /^the call did not run, because the audit log of this server could not keep its record/,
  );
  assert.not.match(String(error.message), 'ENOSPC');
  assert.is(ran(), 1);
  // A destination that does not answer is one that cannot keep it.
  const third = client.modern('tools/call', { name: 'pay', arguments: { sum: 1 } }).catch((error: unknown) => error);
  await settled();
  await clock.advance(5_000);
  assert.ok((await third) instanceof ErrorResponse);
  assert.is(ran(), 1);
  // A read-only tool needs no record.
  await client.modern('tools/call', { name: 'look', arguments: {} });
  assert.equal(order, ['call started', 'call ok', 'call started', 'call not run', 'call started', 'call not run']);
  keep();
  await server.close();
});

test('G-11 a required record that cannot be stored: HTTP answers 503 with Retry-After', async () => {
  const { server } = stage({ to: () => Promise.reject(new Error('no space')), required: true });
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  const response = await server.fetch(
    new Request('http://localhost/mcp', {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'mcp-protocol-version': '2026-07-28',
        'mcp-method': 'tools/call',
        'mcp-name': 'pay',
      },
      body: JSON.stringify({
        ...{ jsonrpc: '2.0', id: 1, method: 'tools/call' },
        params: { name: 'pay', arguments: { sum: 1 }, _meta: meta },
      }),
    }),
  );
  assert.is(response.status, 503);
  assert.is(response.headers.get('retry-after'), '1');
  assert.match(await response.text(), '"code":-32603');
  await server.close();
});

test('G-12 no argument, result, answer, token, session id or meta of a client is in a record', async () => {
  const { server, records } = stage({
    events: ['denied', 'limited', 'call', 'read', 'asked', 'answered', 'session opened'],
  });
  const canary = 'canary-5d1c';
  server.tool(
    'say',
    { input: z.object({ text: z.string() }), annotations: { readOnlyHint: true } },
    ({ text }) => text,
  );
  server.tool('form', {}, async (_, ctx) => {
    const answer = await ctx.elicit({
      message: `${canary}?`,
      schema: { type: 'object', properties: { it: { type: 'string' } } },
    });
    throw new Error(`${canary} ${answer.status}`);
  });
  const client = await connect(server, { elicit: () => accept({ it: canary }) });
  await client.initialize();
  const meta: JsonObject = {
    ...{ traceparent: `00-${canary}`, tracestate: canary, baggage: canary },
    'io.troupe/idempotency-key': `${canary}-${canary}`,
  };
  await client.send('tools/call', { name: 'say', arguments: { text: canary }, _meta: meta });
  await client.send('tools/call', { name: 'pay', arguments: { sum: 1, card: canary }, _meta: meta });
  await client.send('tools/call', { name: 'form', arguments: {}, _meta: meta });
  await server.close();
  assert.equal(
    records.map(({ event, element }) => [event, element]),
    [
      ['session opened', undefined],
      ['read', 'tool say'],
      ['call', 'tool pay'],
      ['asked', 'tool form'],
      ['answered', 'tool form'],
      ['call', 'tool form'],
    ],
  );
  const text = JSON.stringify(records);
  assert.not.match(text, canary);
  const [, id = ''] = /"id":"([\w-]{24})"/.exec(JSON.stringify(client.messages)) ?? [];
  if (id) assert.not.match(text, id);
});

test('G-12 a denial names the element of the server, and not the text of the client', async () => {
  const { server, records } = stage({ events: ['denied'] });
  server.resource('order://{id}{?token}', () => 'order');
  server.authorize(({ element }) => element.name === 'look' || { deny: 'the shop is closed' });
  const client = await connect(server, { auth: { principal: 'ada', scopes: ['read'] } });
  const canary = 'canary-77ab';
  for (const [method, params] of [
    ['resources/read', { uri: `order://7?token=${canary}` }],
    ['resources/read', { uri: `unknown://${canary}` }],
    ['tools/call', { name: canary, arguments: {} }],
    ['tools/call', { name: 'pay', arguments: { sum: 1, card: canary } }],
  ] as const)
    await client.modern(method, params).then(
      () => assert.unreachable(),
      () => {},
    );
  await server.close();
  assert.equal(
    records.map(({ element, rule, scopesHad, principal }) => [element, rule, scopesHad, principal]),
    ['resource order://{id}{?token}', 'resource _unknown', 'tool _unknown', 'tool pay'].map((element) => [
      element,
      'the shop is closed',
      ['read'],
      'ada',
    ]),
  );
  assert.not.match(JSON.stringify(records), canary);
});

test('G-12 include: the arguments are recorded as redact returns them; a redact that throws records none', async () => {
  const redact = ({ card, ...args }: JsonObject): JsonObject => {
    if (args.sum === 2) throw new Error('no');
    return { ...args, card: card === undefined ? 'none' : 'hidden' };
  };
  const { server, records, ran } = stage({ include: ['arguments'], redact, events: ['call'] });
  const client = await connect(server);
  await client.modern('tools/call', { name: 'pay', arguments: { sum: 1, card: '4111' } });
  await client.modern('tools/call', { name: 'pay', arguments: { sum: 2, card: '4111' } });
  assert.equal(
    records.map((record) => record.arguments),
    [{ sum: 1, card: 'hidden' }, undefined],
  );
  assert.is(ran(), 2);
  await server.close();
});

test('rejects queries that are wrong, by the names of their members', async () => {
  const { server } = stage();
  await assertRejects(server.audit(), /the function in the option audit\.to receives the records/);
  const queried = createServer({ name: 's', version: '1', audit: { to: join(folder, 'queried.jsonl') } });
  const read = (query: object) => queried.audit(JSON.parse(JSON.stringify(query)));
  await assertRejects(
    read({ tool: 'refund' }),
    /server\.audit: tool: no such member; there are since, principal, element/,
  );
  await assertRejects(read({ event: 'calls' }), /server\.audit: event: expected one of denied, .* got string "calls"/);
  await assertRejects(
    read({ since: '12h' }),
    /server\.audit: since: expected a Date, milliseconds since 1970, or text/,
  );
  const none = createServer({ name: 's', version: '1' });
  await assertRejects(none.audit(), /this server has no audit/);
});

test('a file: lines of JSON that only its owner reads, rotated, continued after a cut line', async () => {
  const path = join(folder, 'deep', 'audit.jsonl');
  const clock = new SimulatedClock();
  const record = (n: number): AuditRecord => ({ at: `2026-01-01T00:00:0${n}.000Z`, node: 'n', event: 'call', ms: n });
  const file = new AuditFile(path, { clock, sync: true, maxBytes: 200 });
  await file.open();
  if (process.platform !== 'win32') assert.is(statSync(path).mode & 0o777, 0o600);
  for (let n = 0; n < 5; n += 1) await file.write(record(n));
  await file.close();
  assert.equal(readdirSync(join(folder, 'deep')).sort(), [
    'audit.jsonl',
    'audit.jsonl.2026-01-01T00-00-00.000Z',
    'audit.jsonl.2026-01-01T00-00-00.000Z-1',
  ]);
  writeFileSync(path, `${readFileSync(path, 'utf8')}{"at":"2026-01-01T00:00:05`, { mode: 0o644 });
  const again = new AuditFile(path, { clock, sync: false });
  await again.open();
  await again.write(record(6));
  await again.close();
  const damaged: string[] = [];
  const read: unknown[] = [];
  for await (const { ms } of readAuditFile(path, (name, lines) =>
    damaged.push(`${name.slice(folder.length)} ${lines}`),
  ))
    read.push(ms);
  assert.equal(read, [0, 1, 2, 3, 4, 6]);
  assert.equal(damaged, ['/deep/audit.jsonl 1']);
});

test('a file that cannot be written: the server does not start', async () => {
  const path = join(folder, 'a-directory');
  await new AuditFile(join(path, 'x'), { clock: new SimulatedClock(), sync: false }).open();
  const { server } = stage({ to: path });
  await assertRejects(connect(server), /EISDIR/);
});

test('the store: server.audit returns the latest records that a query selects, also after a restart', async () => {
  const store = (): ReturnType<typeof sqlite> => sqlite(join(folder, 'audited.db'));
  const { server } = stage({ to: 'store' }, { store: store() });
  const client = await inSession(server);
  for (const sum of [1, 2, 3]) await client.send('tools/call', { name: 'pay', arguments: { sum } });
  await client.send('tools/call', { name: 'fail', arguments: {} });
  await server.close();
  const next = stage({ to: 'store' }, { store: store() }).server;
  const all = await next.audit();
  assert.equal(
    all.map(({ event, element }) => element ?? event),
    ['started', 'session opened', 'tool pay', 'tool pay', 'tool pay', 'tool fail', 'session ended', 'stopped'],
  );
  assert.is((await next.audit({ element: 'pay' })).length, 3);
  assert.is((await next.audit({ element: 'tool fail' })).length, 1);
  assert.is((await next.audit({ event: 'call', limit: 2 })).at(-1)?.element, 'tool fail');
  assert.equal(await next.audit({ principal: 'ada' }), []);
  assert.equal(await next.audit({ since: '2026-01-02' }), []);
  await assertRejects(next.audit({ since: 'yesterday' }), /since: expected a Date, milliseconds since 1970/);
  await next.close();
});

test.full(
  'the store: rows of 1,000 records, which expire after 30 days, and a rejected batch that leaves no gap',
  async () => {
    const clock = new SimulatedClock();
    const path = join(folder, 'rows.db');
    const file = sqlite(path);
    let fails = false;
    const failing = new (class extends TestStore {
      override write(writes: readonly Write[]): Promise<void> {
        return fails ? Promise.reject(new Error('full')) : super.write(writes);
      }

      override close(): Promise<void> {
        return file.close();
      }
    })(file);
    const riders: CommitRiders = { rider: undefined };
    const store = meteredStore(failing, clock, new Metrics(), riders);
    await store.open({ clock, log: () => {} });
    const rows = new AuditRows(store, clock);
    riders.rider = rows;
    const record = (n: number): AuditRecord => ({
      at: new Date(clock.date()).toISOString(),
      node: '',
      event: 'call',
      ms: n,
    });
    for (let n = 0; n < 1_500; n += 1) await rows.write(record(n), true);
    fails = true;
    await assertRejects(rows.write(record(-1), true), /full/);
    fails = false;
    // Records for which no call waits join the next commit, or are committed after 20 ms.
    const joined = rows.write(record(1_500), false);
    await store.commit([{ type: 'reply', actor: 'a', request: 'r', data: 'd', expires: 1 }]);
    await joined;
    const alone = rows.write(record(1_501), false);
    await clock.advance(20);
    await alone;
    const read = () => readAuditRows(store, Number.NEGATIVE_INFINITY, 10_000, () => true);
    assert.equal(
      (await read()).map(({ ms }) => ms),
      Array.from({ length: 1_502 }, (_, n) => n),
    );
    await store.sweep(clock.date() + 30 * 86_400_000);
    assert.is((await read()).length, 1_502);
    await store.sweep(clock.date() + 31 * 86_400_000 + 1);
    assert.is((await read()).length, 0);
    await store.close();
  },
);

test('the latest records of several processes are read, although one of them began its row before all rows of the other', async () => {
  const clock = new SimulatedClock();
  const store = sqlite(join(folder, 'processes.db'));
  await store.open({ clock, log: () => {} });
  const processes = [0, 1].map(() => {
    const riders: CommitRiders = { rider: undefined };
    const rows = new AuditRows(meteredStore(store, clock, new Metrics(), riders), clock);
    riders.rider = rows;
    return rows;
  });
  let written = 0;
  const write = async (process: number, count: number): Promise<void> => {
    const at = new Date(clock.date()).toISOString();
    const records = Array.from({ length: count }, () => {
      written += 1;
      return processes[process]?.write({ at, node: '', event: 'call', ms: written }, true);
    });
    await Promise.all(records);
    await clock.advance(1_000);
  };
  await write(0, 1);
  // Three rows.
  for (const count of [1_000, 1_000, 500]) await write(1, count);
  await write(0, 2);
  let reads = 0;
  const counted: StoredEvents = {
    list: (query) => store.list(query),
    events(...of) {
      reads += 1;
      return store.events(...of);
    },
  };
  const latest = async (limit: number, since = Number.NEGATIVE_INFINITY): Promise<readonly unknown[]> =>
    (await readAuditRows(counted, since, limit, () => true)).map(({ ms }) => ms);
  assert.equal(await latest(4), [2_500, 2_501, 2_502, 2_503]);
  reads = 0;
  assert.equal(await latest(2), [2_502, 2_503]);
  // The full rows of a process end where its next row begins: they are not read.
  assert.is(reads, 2);
  await latest(10_000, clock.date() - 1_000);
  assert.is(reads, 4);
  assert.equal(
    await latest(10_000),
    Array.from({ length: 2_503 }, (_, n) => n + 1),
  );
  await store.close();
});

/** The operator log for programs: its fields, lines of JSON, pino, and what never gets into it. */
import { hash } from 'node:crypto';
import { hostname } from 'node:os';
import { pino } from 'pino';
import * as assert from 'uvu/assert';
import { z } from 'zod';
import { printable } from '../../../src/core/kernel/operator-log.ts';
import { isObject } from '../../../src/core/protocol/json.ts';
import { createServer, fromPino, http, jsonLog, type LogFields, type OperatorLog } from '../../../src/index.ts';
import { connect } from '../../../src/testing/testing.ts';
import { accept, Modern } from '../../features/asking/support.ts';
import { suite } from '../../harness/door.ts';

const test = suite('the operator log');

interface Line {
  readonly level: string;
  readonly message: string;
  readonly fields: LogFields | undefined;
}

function collected(): { readonly lines: Line[]; readonly log: OperatorLog } {
  const lines: Line[] = [];
  return { lines, log: (level, message, fields) => void lines.push({ level, message, fields }) };
}

function read(line: string): Readonly<Record<string, unknown>> {
  const value: unknown = JSON.parse(line);
  assert.ok(isObject(value) && line.endsWith('\n'));
  return value;
}

/** The error of another library: it keeps the request, with its token. */
class RequestFailed extends Error {
  override readonly name = 'RequestFailed';
  readonly config = { headers: { authorization: 'Bearer canary-6f1e' } };
}

test('no text of a client forges a line on stderr, or controls a terminal', () => {
  const forged = 'rejected\ntroupe error: the disk is full\u001b[2J\r\u2028\u009b0m';
  assert.is(printable(forged), 'rejected\n  troupe error: the disk is full·[2J···0m');
});

test('an incident has its id, its element, its caller, its session as a digest, its trace, and its error', async () => {
  const { lines, log } = collected();
  const traceId = '0af7651916cd43dd8448eb211c80319c';
  const span = { traceparent: `00-${traceId}-b7ad6b7169203331-01`, sampled: undefined, link() {}, end() {} };
  const server = createServer({
    ...{ name: 's', version: '1', log, errors: 'masked' },
    telemetry: { begin: () => ({ ...span, run: (work) => work() }), ask: () => undefined, session() {} },
  });
  let session = '';
  server.tool('fail', async (_, ctx) => {
    session = ctx.session?.id ?? '';
    await ctx.progress(1);
    throw new RequestFailed('the bank is closed\nuntil nine');
  });
  const client = await connect(server, { auth: { principal: 'ada' } });
  await client.initialize();
  const answer = JSON.stringify(await client.send('tools/call', { name: 'fail', arguments: {} }));
  await client.close();
  await server.close();
  assert.is(lines.length, 1);
  const { level, message, fields } = lines[0] ?? { level: '', message: '', fields: undefined };
  assert.is(level, 'error');
  const { err, incident = '', ...rest } = fields ?? { event: 'command' };
  assert.match(answer, `incident ${incident};`);
  assert.equal(rest, {
    event: 'incident',
    element: 'tool fail',
    principal: 'ada',
    sessionHash: hash('sha256', session, 'base64url'),
    traceId,
    spanId: 'b7ad6b7169203331',
    node: hostname(),
  });
  assert.equal([err?.type, err?.message], ['RequestFailed', 'the bank is closed\nuntil nine']);
  assert.match(err?.stack ?? '', 'operator-log.test');
  // The line for people is what it was, with the stack.
  assert.ok(message.startsWith(`incident ${incident} in tool "fail": RequestFailed: the bank is closed\n`));
  assert.match(message, 'operator-log.test');
});

test('a rejection by a rule names its caller and its element; a forgotten await its element', async () => {
  const { lines, log } = collected();
  const server = createServer({ name: 's', version: '1', log });
  server.tool('refund', { allow: () => ({ deny: 'only on weekdays' }) }, () => 'refunded');
  server.tool('hasty', (_, ctx) => {
    ctx.elicit({ message: 'Sure?', schema: { type: 'object', properties: {} } }).catch(() => {});
    return 'done';
  });
  const client = await connect(server, { auth: { principal: 'ada' } });
  await client.modern('tools/call', { name: 'refund', arguments: {} }).catch(() => {});
  await client.close();
  const hasty = await Modern.of(server);
  await hasty.ask('hasty').catch(() => {});
  await server.close();
  assert.equal(
    lines.map(({ level, fields }) => [level, fields?.event, fields?.element, fields?.principal]),
    [
      ['info', 'denied', 'tool refund', 'ada'],
      ['warning', 'program', 'tool hasty', 'anonymous'],
    ],
  );
});

test("jsonLog writes pino's lines: the same level, members and error as pino itself", async () => {
  const ours: string[] = [];
  const theirs: string[] = [];
  const one = jsonLog((line) => void ours.push(line));
  const other = fromPino(pino({ level: 'trace' }, { write: (line: string) => void theirs.push(line) }));
  const err = { type: 'RangeError', message: 'too far', stack: 'RangeError: too far\n    at here' };
  for (const log of [one, other]) {
    log('info', 'It started.');
    log('warning', 'A client is slow.', { event: 'client', node: 'pod-1' });
    log('error', 'incident 1 in tool "far": RangeError: too far\n    at here', {
      event: 'incident',
      incident: '1',
      err,
    });
  }
  const [told, same] = [ours, theirs].map((lines) =>
    lines.map(read).map(({ time, ...line }) => {
      assert.ok(Math.abs(Number(time) - Date.now()) < 60_000);
      return line;
    }),
  );
  assert.equal(told, same);
  const { pid } = process;
  assert.equal(told, [
    { level: 30, pid, hostname: hostname(), msg: 'It started.' },
    { level: 40, pid, hostname: hostname(), event: 'client', node: 'pod-1', msg: 'A client is slow.' },
    {
      ...{ level: 50, pid, hostname: hostname(), event: 'incident', incident: '1', err },
      msg: 'incident 1 in tool "far": RangeError: too far',
    },
  ]);
});

test('a name that a client makes up takes a bounded part of a line', async () => {
  const { lines, log } = collected();
  const server = createServer({ name: 's', version: '1', log });
  server.tool('one', () => 'one');
  server.authorize(() => ({ deny: 'closed' }));
  const client = await connect(server);
  await client.modern('tools/call', { name: 'n'.repeat(100_000), arguments: {} }).catch(() => {});
  await server.close();
  assert.is(lines[0]?.fields?.element?.length, 105);
});

test('G-12 no argument, result, answer, token, requestState or session id is in the log', async () => {
  const shown: string[] = [];
  const canary = 'canary-6f1e';
  const json = jsonLog((line) => void shown.push(line));
  const inPino = fromPino(pino({ level: 'trace' }, { write: (line: string) => void shown.push(line) }));
  const log: OperatorLog = (level, message, fields) => {
    shown.push(message, JSON.stringify(fields));
    json(level, message, fields);
    inPino(level, message, fields);
  };
  const server = createServer({ name: 's', version: '1', log });
  const sessions: string[] = [];
  server.tool('fail', { input: z.object({ card: z.string() }) }, ({ card }, ctx) => {
    if (ctx.session) sessions.push(ctx.session.id);
    throw Object.assign(new RequestFailed('the bank is closed', { cause: new RequestFailed('so is the door') }), {
      card,
    });
  });
  server.tool('hasty', {}, (_, ctx) => {
    ctx.elicit({ message: `${canary}?`, schema: { type: 'object', properties: {} } }).catch(() => {});
    return canary;
  });
  server.tool('asks', {}, async (_, ctx) => {
    const { status } = await ctx.elicit({
      message: 'Which?',
      schema: { type: 'object', properties: { it: { type: 'string' } } },
    });
    throw new Error(`it was ${status}`);
  });
  server.tool('denied', { allow: () => ({ deny: 'closed' }) }, () => canary);
  const client = await connect(server, { auth: { principal: 'ada' }, elicit: () => accept({ it: canary }) });
  await client.initialize();
  const meta = { 'com.example/token': canary, traceparent: canary };
  const call = (name: string) =>
    client.send('tools/call', { name, arguments: { card: canary }, _meta: meta }).catch(() => {});
  for (const name of ['fail', 'asks', 'denied']) await call(name);
  await client.close();
  const modern = await Modern.of(server);
  const { requestState } = await modern.ask('asks');
  await modern.retry('asks', requestState, { elicit: accept({ it: canary }) }).catch(() => {});
  await modern.retry('asks', `${requestState}${canary}`, { elicit: accept({ it: canary }) }).catch(() => {});
  await modern.ask('hasty').catch(() => {});
  // An authenticator that fails with the token in its error's members.
  const transport = http({
    port: 0,
    authenticate: ({ header }) => {
      throw Object.assign(new RequestFailed('the directory is down'), { token: header('authorization') });
    },
  });
  await server.listen(transport);
  const headers = { authorization: `Bearer ${canary}`, 'content-type': 'application/json', accept: 'application/json' };
  await (await fetch(`${transport.url}?access_token=${canary}`, { method: 'POST', headers, body: '{}' })).text();
  await server.close();
  const text = shown.join('\n');
  for (const said of ['the bank is closed', 'the directory is down', 'it was accepted', 'closed', 'hasty'])
    assert.match(text, said);
  assert.not.match(text, canary);
  assert.not.match(text, requestState);
  assert.is(sessions.length, 1);
  for (const id of sessions) assert.ok(id !== '' && !text.includes(id));
});

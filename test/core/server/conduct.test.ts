/** What a server promises its authors and clients at the edges: results that conform, handlers that are counted, words that help. */
import { spawnSync } from 'node:child_process';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import { z } from 'zod';
import { createServer, envelopeOf, toolResult } from '../../../src/index.ts';
import { connect, type ErrorResponse, SimulatedClock, settled } from '../../../src/testing/testing.ts';
import { TROUPE } from '../../cli/cli.ts';
import { suite } from '../../harness/door.ts';
import { inSession } from '../../harness/memory.ts';

const test = suite('conduct');

const make = (options: Partial<Parameters<typeof createServer>[0]> = {}) =>
  createServer({ name: 'test', version: '1.0.0', log: () => {}, ...options });

const refusal = (promise: Promise<unknown>): Promise<ErrorResponse> =>
  promise.then(
    () => assert.unreachable('it was not refused') as never,
    (error: ErrorResponse) => error,
  );

test('a structured result is sent as its output schema gives it: without unknown members, with defaults', async () => {
  const server = make();
  const output = z.object({ id: z.number(), kind: z.string().default('user') });
  // A row of a database has more columns than the schema shows, and fewer than it promises.
  const row = { id: 1, password_hash: 'x' };
  server.tool('row', { output: output as unknown as { type: 'object' } }, () => row);
  server.tool('rows', { output: envelopeOf(z.array(output)) }, () => toolResult({ data: [row] }));
  const client = await inSession(server, '2025-06-18');
  const { structuredContent, content } = await client.call('row');
  assert.equal(structuredContent, { id: 1, kind: 'user' });
  assert.equal(content, [{ type: 'text', text: '{"id":1,"kind":"user"}' }]);
  const { structuredContent: rows } = await client.call('rows');
  assert.equal((rows as { data: unknown }).data, [{ id: 1, kind: 'user' }]);
  await client.close();
});

test('data that is cut keeps its shape, and says so where the schema cannot hold what is left', async () => {
  const server = make({ limits: { maxResultLength: 200 } });
  const rows = Array.from({ length: 100 }, (_, id) => ({ id }));
  server.tool(
    'page',
    { output: envelopeOf(z.object({ total: z.number(), rows: z.array(z.object({ id: z.number() })) })) },
    () => toolResult({ data: { total: 100, rows } }),
  );
  server.tool('all', { output: envelopeOf(z.array(z.object({ id: z.number() })).length(100)) }, () =>
    toolResult({ data: rows }),
  );
  const client = await inSession(server, '2025-06-18');
  const { data, meta } = (await client.call('page')).structuredContent as {
    data: { total: number; rows: unknown[] };
    meta: { note: string; truncated: boolean };
  };
  assert.is(data.total, 100);
  assert.ok(data.rows.length > 5 && data.rows.length < 100);
  assert.is(meta.truncated, true);
  assert.match(meta.note, `of "rows" the first ${data.rows.length} of 100 rows`);
  const failed = await client.call('all');
  assert.is(failed.isError, true);
  assert.match(JSON.stringify(failed.content), /too large to send\. Request less data/);
  await client.close();
});

test('handlers that do not heed their signal are counted until they end', async () => {
  const server = make({ limits: { maxInFlight: 2, maxRunning: 4 } });
  const ends: (() => void)[] = [];
  server.tool('deaf', {}, () => new Promise<void>((done) => ends.push(done)));
  server.tool('good', {}, () => 'good');
  const client = await inSession(server, '2025-06-18');
  for (let id = 100; id < 104; id += 1) {
    client.raw(`{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"deaf"}}`);
    client.notify('notifications/cancelled', { requestId: id });
  }
  await settled();
  const refused = await refusal(client.call('good'));
  assert.is(refused.code, -31001);
  assert.match(refused.message, /4 handlers of this connection still run.*ctx\.signal.*maxRunning/);
  for (const end of ends) end();
  await settled();
  assert.equal((await client.call('good')).content, [{ type: 'text', text: 'good' }]);
  await client.close();
});

test('listen says what it expected', async () => {
  const refused = (promise: Promise<unknown>) =>
    promise.then(
      () => assert.unreachable() as never,
      (error: Error) => error.message,
    );
  assert.match(await refused(make().listen()), /expected at least one transport, such as stdio\(\), got none/);
  assert.match(
    await refused(make().listen({} as never)),
    /expected transports, such as stdio\(\) or memory\(\)\.transport, got object/,
  );
});

test("a prompt's numbers and booleans are read from its strings", async () => {
  const server = make();
  server.prompt(
    'p',
    { input: z.object({ n: z.number(), on: z.boolean().default(false) }) },
    ({ n, on }) => `${typeof n} ${n + 1} ${on}`,
  );
  const client = await inSession(server, '2025-06-18');
  const said = async (args: Record<string, string>) =>
    JSON.stringify(await client.send('prompts/get', { name: 'p', arguments: args }));
  assert.match(await said({ n: '41', on: 'true' }), 'number 42 true');
  assert.is((await refusal(client.send('prompts/get', { name: 'p', arguments: { n: 'many' } }))).code, -32602);
  await client.close();
});

test('a result that cannot be written names its incident', async () => {
  const told: string[] = [];
  const server = make({ log: (_level, message) => void told.push(message) });
  const unwritable = {
    toJSON() {
      throw new Error('no');
    },
  };
  server.tool('big', {}, () => ({ unwritable }));
  const client = await inSession(server, '2025-06-18');
  const { code, message } = await refusal(client.call('big'));
  assert.is(code, -32603);
  const [, incident = 'none'] = /incident ([\w-]+)/.exec(message) ?? [];
  assert.ok(told.some((line) => line.includes(incident)));
  await client.close();
});

test('a value that is no result is reported to the model, and to the operator', async () => {
  const told: string[] = [];
  const server = make({ log: (_level, message) => void told.push(message) });
  server.tool('map', {}, () => new Map([[1, 2]]));
  server.tool('fn', {}, async () => () => {});
  const client = await inSession(server, '2025-06-18');
  for (const [name, words] of [
    ['map', /Object\.fromEntries/],
    ['fn', /expected the tool to return a string, data/],
  ] as const) {
    const result = await client.call(name);
    assert.is(result.isError, true);
    assert.match(JSON.stringify(result.content), words);
  }
  assert.is(told.length, 2);
  await client.close();
});

test('an executor of the author may answer with a promise of its own kind', async () => {
  // biome-ignore lint/suspicious/noThenProperty: that is the point
  const thenable = { then: (done: (result: object) => void) => done({ content: [{ type: 'text', text: 'later' }] }) };
  const server = make({ executors: { tools: { execute: () => thenable as never } } });
  server.tool('x', {}, () => 'never');
  const client = await inSession(server, '2025-06-18');
  assert.equal((await client.call('x')).content, [{ type: 'text', text: 'later' }]);
  await client.close();
});

test('a handler may take its context apart', async () => {
  const server = make();
  server.tool('apart', {}, async (_args, { progress, step, log, signal }) => {
    progress(1, 2);
    log.info('x');
    return `${await step('once', () => 1)} ${signal.aborted}`;
  });
  const client = await inSession(server, '2025-06-18');
  assert.equal((await client.call('apart')).content, [{ type: 'text', text: '1 false' }]);
  await client.close();
});

test('the error for a modern request with a legacy revision describes how to open one', async () => {
  const client = await connect(make());
  const refused = await refusal(
    client.send('ping', {
      _meta: {
        'io.modelcontextprotocol/protocolVersion': '2025-11-25',
        'io.modelcontextprotocol/clientCapabilities': {},
      },
    }),
  );
  assert.is(refused.code, -32022);
  assert.match(refused.message, /Open one with "initialize"/);
  await client.close();
});

test('a cursor beyond what was ever given is refused', async () => {
  const server = make();
  server.tool('x', {}, () => 'x');
  const client = await inSession(server, '2025-06-18');
  assert.is((await refusal(client.send('tools/list', { cursor: 'ozzz' }))).code, -32602);
  await client.close();
});

test('close resolves although a handler waits for nothing that keeps the process', async () => {
  const clock = new SimulatedClock();
  const server = make({ clock });
  server.tool('never', {}, () => new Promise(() => {}));
  const client = await inSession(server, '2025-06-18');
  client.raw('{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"never"}}');
  const closed = server.close();
  await clock.advance(3_000);
  await closed;
});

test("an embedder's own rejections still reach it", () => {
  const root = resolve(dirname(fileURLToPath(import.meta.url)), '../../..');
  const program = `
    import { createServer, memory } from '${TROUPE}';
    process.on('uncaughtException', (error) => { console.log('embedder: ' + error.message); process.exit(7); });
    const server = createServer({ name: 'x', version: '1' });
    await server.listen(memory().transport);
    Promise.reject(new Error('mine'));
    setTimeout(() => {}, 1000);`;
  const { stdout, status } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
    cwd: root,
    encoding: 'utf8',
  });
  assert.is(stdout.trim(), 'embedder: mine');
  assert.is(status, 7);
});

/** Compiled, never called: the types that reach handlers. */
export function typed(server: ReturnType<typeof make>): void {
  server.prompt(
    'p',
    { arguments: [{ name: 'who', required: true }, { name: 'how' }] },
    ({ who, how }) => `${who.length}${how?.length ?? 0}`,
  );
  server.tool('t', { output: z.object({ sum: z.number() }) }, () => ({ sum: 1 }));
  // @ts-expect-error: the output schema promises a number
  server.tool('t', { output: z.object({ sum: z.number() }) }, () => ({ sum: 'one' }));
  server.tool('t', {}, () => new Promise((done) => done('anything')));
}

test('a transport that never closes does not delay the end of the server, and the operator is notified', async () => {
  const told: string[] = [];
  const clock = new SimulatedClock();
  const server = make({ clock, log: (_level, message) => void told.push(message) });
  await server.listen({ name: 'stuck', open: () => {}, close: () => new Promise(() => {}) });
  const closing = server.close();
  await clock.advance(30_000);
  await closing;
  assert.match(told.join('\n'), /the transport "stuck" did not close within 30 s/);
});

/** What authors do with a server while it runs, as a client sees it. */
import * as assert from 'uvu/assert';
import {
  createServer,
  DefinitionError,
  type InspectionRecord,
  ProtocolError,
  type ToolExecution,
} from '../../../src/index.ts';
import { connect, SimulatedClock } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { inSession } from '../../harness/memory.ts';

const test = suite('server at runtime');

const make = (options: Partial<Parameters<typeof createServer>[0]> = {}) =>
  createServer({ name: 'test', version: '1.0.0', log: () => {}, ...options });

test('a burst of changes reaches clients as one list_changed for each kind', async () => {
  const clock = new SimulatedClock();
  const server = make({ clock, offers: ['tools', 'prompts'] });
  const client = await inSession(server);
  for (let i = 0; i < 20; i += 1) server.tool(`t${i}`, {}, () => 'x');
  server.tools.disable('t0');
  server.tools.remove('t1');
  server.prompt('p', {}, () => 'x');
  await clock.advance(10);
  assert.equal(client.notifications.map(({ method }) => method).sort(), [
    'notifications/prompts/list_changed',
    'notifications/tools/list_changed',
  ]);
  const { tools } = await client.send('tools/list');
  assert.is((tools as unknown[]).length, 18);
  await client.close();
});

test('nothing is announced to a client that has not said initialized', async () => {
  const clock = new SimulatedClock();
  const server = make({ clock, offers: ['tools'] });
  const client = await connect(server);
  client.raw(
    '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}',
  );
  await client.next();
  server.tool('late', {}, () => 'x');
  await clock.advance(50);
  assert.equal(client.notifications, []);
  await client.close();
});

test('a registered element can be disabled, enabled and removed by its name', async () => {
  const server = make();
  server.tool('echo', {}, () => 'x');
  const client = await inSession(server);
  server.tools.disable('echo');
  await client.send('tools/call', { name: 'echo' }).then(
    () => assert.unreachable(),
    (error: { code: number }) => assert.is(error.code, -32602),
  );
  server.tools.enable('echo');
  assert.equal((await client.call('echo')).content, [{ type: 'text', text: 'x' }]);
  server.tools.remove('echo');
  assert.equal(await client.send('tools/list'), { tools: [] });
  await client.close();
});

test('an update changes what is shown and what runs, and nothing of the old is kept', async () => {
  const server = make();
  server.tool('echo', { description: 'old' }, () => 'old');
  server.tools.update({ name: 'echo', description: 'new', handler: () => 'new' });
  const client = await inSession(server);
  const { tools } = await client.send('tools/list');
  assert.match(JSON.stringify(tools), /"description":"new"/);
  assert.equal((await client.call('echo')).content, [{ type: 'text', text: 'new' }]);
  await client.close();
});

test('definitions that are wrong are refused in words that say how to mend them', () => {
  const server = make();
  server.tool('taken', {}, () => 'x');
  const refused = (body: () => unknown): string => {
    try {
      body();
    } catch (error) {
      assert.instance(error, Error);
      return (error as Error).message;
    }
    return assert.unreachable('it was not refused') as never;
  };
  assert.match(
    refused(() => server.tool('taken', {}, () => 'x')),
    /tool "taken" is already registered \(by code\): choose another name/,
  );
  assert.match(
    refused(() => server.tool('has space', {}, () => 'x')),
    /1 to 128 letters, digits/,
  );
  assert.match(
    refused(() => server.tool('a', {}, 'x' as never)),
    /handler: expected a function \(the handler is the last argument: name, options, handler\), got string "x"/,
  );
  assert.match(
    refused(() => server.tool('a', { input: { type: 'string' } }, () => 'x')),
    /tool "a": input/,
  );
  assert.match(
    refused(() => server.tool('a', { input: { $ref: 'https://example.com/s.json' } }, () => 'x')),
    /example\.com/,
  );
  assert.match(
    refused(() => server.resource('no-scheme', {}, () => 'x')),
    /expected a uri with a scheme/,
  );
  assert.match(
    refused(() => server.resource('x://{a', {}, () => 'x')),
    /\{a/,
  );
  assert.match(
    refused(() => server.tools.update({ name: 'nobody', handler: () => 'x' })),
    /no tool "nobody" is registered/,
  );
  assert.throws(
    () => server.tools.remove('nobody'),
    (error: unknown) => error instanceof DefinitionError,
  );
});

test('a refused definition leaves nothing behind', async () => {
  const server = make();
  server.tool('a', {}, () => 'first');
  assert.throws(() => server.tool('a', {}, () => 'second'));
  assert.throws(() =>
    server.tools.replaceSource('dir', [
      { name: 'b', handler: () => 'b' },
      { name: 'a', handler: () => 'third' },
    ]),
  );
  const client = await inSession(server);
  assert.equal((await client.call('a')).content, [{ type: 'text', text: 'first' }]);
  assert.is(server.tools.catalogue.all().length, 1);
  await client.close();
});

test('an executor of the author replaces or wraps ours, and gets every argument unfiltered', async () => {
  const seen: unknown[] = [];
  const wrap = (inner: ToolExecution): ToolExecution => ({
    async execute(call, ctx) {
      seen.push(call.arguments);
      const result = await inner.execute(call, ctx);
      return { ...result, _meta: { wrapped: true } };
    },
  });
  const server = make({
    executors: { tools: wrap, prompts: { execute: () => ({ messages: [], description: 'replaced' }) } },
  });
  server.tool(
    'strict',
    { input: { type: 'object', properties: { a: { type: 'number' } }, additionalProperties: false } },
    () => 'ran',
  );
  server.prompt('p', { arguments: [{ name: 'x', required: true }] }, () => 'never');
  const client = await inSession(server);
  const result = await client.send('tools/call', { name: 'strict', arguments: { a: 1, unknown: { deep: [1] } } });
  assert.equal(seen, [{ a: 1, unknown: { deep: [1] } }]);
  assert.is(result.isError, true);
  assert.equal(result._meta, { wrapped: true });
  assert.equal(await client.send('prompts/get', { name: 'p' }), { messages: [], description: 'replaced' });
  await client.close();
});

test('ctx tells who is asking, in both eras', async () => {
  const server = make();
  server.tool('who', {}, (_args, ctx) => ({
    client: ctx.client,
    session: ctx.session !== undefined,
    principal: ctx.principal,
    id: ctx.requestId,
    trace: ctx.meta.traceparent ?? null,
  }));
  const client = await inSession(server, '2025-06-18', { roots: {} });
  const legacy = (await client.call('who')).structuredContent as {
    client: { revision: string; era: string; capabilities: object };
    session: boolean;
    principal: string;
  };
  assert.is(legacy.client.revision, '2025-06-18');
  assert.is(legacy.client.era, 'legacy');
  assert.equal(legacy.client.capabilities, { roots: {} });
  assert.is(legacy.session, true);
  assert.is(legacy.principal, 'anonymous');
  const modern = (await client.modern('tools/call', { name: 'who' }, { traceparent: '00-1-2-01' }))
    .structuredContent as typeof legacy & { trace: string };
  assert.is(modern.client.era, 'modern');
  assert.is(modern.session, false);
  assert.is(modern.trace, '00-1-2-01');
  await client.close();
});

test('a step runs once for its request and is remembered, failures too', async () => {
  const server = make();
  let runs = 0;
  server.tool('steps', {}, async (_args, ctx) => {
    const once = () => ctx.step('charge', () => ++runs);
    const failing = () =>
      ctx.step('fail', () => Promise.reject(new Error(`failed ${++runs}`))).catch((error: Error) => error.message);
    return [await once(), await once(), await failing(), await failing()].join();
  });
  const client = await inSession(server);
  assert.equal((await client.call('steps')).content, [{ type: 'text', text: '1,1,failed 2,failed 2' }]);
  assert.equal((await client.call('steps')).content, [{ type: 'text', text: '3,3,failed 4,failed 4' }]);
  await client.close();
});

test('a ProtocolError of a handler reaches the client as it is; another error of a resource does not', async () => {
  const logged: string[] = [];
  const server = make({ log: (_level, message) => void logged.push(message) });
  server.tool('needs', {}, () => {
    throw new ProtocolError(-32021, 'this needs elicitation', { requiredCapabilities: { elicitation: {} } });
  });
  server.resource('x://secret', {}, () => {
    throw new Error('password=hunter2 in /home/me/secret.ts');
  });
  const client = await inSession(server);
  const refusal = await client
    .send('tools/call', { name: 'needs' })
    .catch((error: unknown) => error as { code: number; message: string; data: unknown });
  assert.is(refusal.code, -32021);
  assert.equal(refusal.data, { requiredCapabilities: { elicitation: {} } });
  const hidden = await client
    .send('resources/read', { uri: 'x://secret' })
    .catch((error: unknown) => error as { code: number; message: string });
  assert.is(hidden.code, -32603);
  assert.not.match(String(hidden.message), /hunter2|secret\.ts/);
  const incident = /incident ([\w-]+)/.exec(String(hidden.message))?.[1] ?? 'none';
  assert.ok(logged.some((line) => line.includes(incident) && line.includes('hunter2')));
  await client.close();
});

test('a tool with its own time times out by it, and a deadline is put off by progress where the revision allows', async () => {
  const clock = new SimulatedClock();
  const server = make({ clock, limits: { timeoutMs: 1_000, maxTimeoutMs: 2_500 } });
  const reasons: string[] = [];
  const forever = (signal: AbortSignal): Promise<never> =>
    new Promise((_, reject) => {
      signal.addEventListener('abort', () => {
        reasons.push(String(signal.reason));
        reject(signal.reason);
      });
    });
  server.tool('short', { timeoutMs: 100 }, (_args, ctx) => forever(ctx.signal));
  server.tool('busy', {}, (_args, ctx) => {
    let done = 0;
    const work = (): void => {
      clock.after(400, () => {
        done += 1;
        ctx.progress(done);
        work();
      });
    };
    work();
    return forever(ctx.signal);
  });
  const timedOut = async (revision: string, name: string): Promise<number> => {
    const client = await inSession(server, revision);
    const started = clock.now();
    let ended = 0;
    const call = client.send('tools/call', { name }).then(
      () => assert.unreachable(),
      (error: { code: number }) => {
        assert.is(error.code, -31002);
        ended = clock.now() - started;
      },
    );
    for (let step = 0; step < 40 && ended === 0; step += 1) await clock.advance(100);
    await call;
    await client.close();
    return ended;
  };
  assert.is(await timedOut('2025-06-18', 'short'), 100);
  assert.is(await timedOut('2024-11-05', 'busy'), 1_000);
  assert.is(await timedOut('2025-06-18', 'busy'), 2_500);
  assert.is(reasons.length, 3);
});

test('inspect shows the way of a request, each step caused by the one before', async () => {
  const server = make();
  server.tool('echo', {}, async () => 'x');
  const client = await inSession(server);
  const records: InspectionRecord[] = [];
  const stop = server.inspect((record) => records.push(record));
  await client.call('echo');
  stop();
  const out = records.find((record) => record.type === 'wire' && record.direction === 'out');
  const chain: string[] = [];
  for (let record = out; record; record = records.find(({ seq }) => seq === record?.cause))
    chain.unshift(record.type === 'mail' ? `${record.actor.split('/')[0]} ${record.mail.type}` : record.type);
  assert.equal(chain[0], 'wire');
  assert.equal(chain.slice(-3), ['requests answer', 'emitter answer', 'wire']);
  assert.equal(chain.slice(0, 5), [
    'wire',
    'session request',
    'requests request',
    'registry request',
    'executor execute',
  ]);
  const kinds = new Set(
    records
      .filter((record) => record.type === 'created')
      .map((record) => (record.type === 'created' ? record.kind : '')),
  );
  assert.equal([...kinds].sort(), [
    'emitter',
    'executor',
    'registry',
    'requests',
    'server',
    'session',
    'subscriptions',
  ]);
  await client.close();
});

test('a page of a list is written once for each dialect, however many clients ask', async () => {
  let reads = 0;
  const server = make();
  server.tools.register({
    name: 'watched',
    get description() {
      reads += 1;
      return 'x';
    },
    handler: () => 'x',
  });
  const before = reads;
  const clients = await Promise.all(Array.from({ length: 5 }, () => connect(server)));
  for (const client of clients) {
    await client.initialize('2025-06-18');
    await client.send('tools/list');
  }
  assert.is(reads, before);
  await Promise.all(clients.map((client) => client.close()));
});

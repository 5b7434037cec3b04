/** Viewers call a server, where they may: as a client of any revision, within bounds, without secrets, each call with its record. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { PassThrough } from 'node:stream';
import * as assert from 'uvu/assert';
import { createMachine } from 'xstate';
import * as z from 'zod';
import { running } from '../../src/core/requests/running.ts';
import { createServer, memory, type ServerOptions, stdio, type Transport } from '../../src/index.ts';
import type { TraceRecord } from '../../src/inspector/frames.ts';
import { openInspector, readRecording } from '../../src/inspector/inspector.ts';
import { suite } from '../harness/door.ts';
import { viewerOf } from './viewing.ts';

const test = suite('inspector: calls');

const SECRET = 'zq7wxk3v9zq7wxk3v9';
const quiet: Pick<ServerOptions, 'log'> = { log: () => {} };

function shop(options: Partial<ServerOptions> = {}) {
  const server = createServer({ name: 'shop', version: '1.0.0', ...quiet, ...options });
  server.tool('echo', { input: z.object({ text: z.string(), password: z.string().optional() }) }, (args) => args);
  server.tool('greet', {}, async (_, ctx) => {
    const answer = await ctx.elicit({ message: 'Who are you?', schema: z.object({ name: z.string() }) });
    return answer.status === 'accepted' ? `Hello, ${answer.content.name}!` : answer.status;
  });
  server.tool('ask_all', {}, async (_, ctx) => {
    const { page, said, where } = await ctx.ask({
      page: { elicitUrl: { message: 'Sign in.', url: 'https://example.com/' } },
      said: { sample: { messages: [{ role: 'user', content: { type: 'text', text: 'Hi' } }], maxTokens: 10 } },
      where: { roots: true },
    });
    return { page: page.status, said: said.content, where };
  });
  server.tool('job', { task: 'required' }, async (_, ctx) => {
    ctx.progress(1, 2, 'half');
    const answer = await ctx.elicit({ message: 'Go on?', schema: z.object({ sure: z.boolean() }) });
    return answer.status;
  });
  return server;
}

async function opened(server: ReturnType<typeof createServer>, control = true) {
  return viewerOf((await openInspector(server, { control })).url);
}

test('calls a tool, answers its forms, and follows its task, as a client of each era', async () => {
  const server = shop();
  const { tool, ended, answer, text, state } = await opened(server);
  for (const revision of ['2026-07-28', '2025-11-25', '2025-06-18']) {
    const caller = { revision };
    const echo = await ended(await tool('echo', { text: revision }, caller));
    assert.is(echo.status, 'done');
    const greet = await tool('greet', {}, caller);
    await answer({ action: 'accept', content: { name: 'Ada' } }, 'form');
    await ended(greet);
    assert.is(await text(greet), 'Hello, Ada!');
    const job = await tool('job', {}, caller);
    if (revision === '2025-06-18') {
      assert.match((await ended(job)).error ?? '', /runs only as a task/);
      continue;
    }
    await answer({ action: 'decline' }, 'form');
    const done = await ended(job);
    assert.ok(done.task);
    assert.is(await text(job), 'declined');
  }
  assert.equal(
    (await state()).sessions.map(({ revision }) => revision),
    ['2026-07-28', '2025-11-25', '2025-06-18'],
  );
  await server.close();
});

test('a closed inspector leaves no context that Node copies to each promise of the process', async () => {
  const { run, disable } = AsyncLocalStorage.prototype;
  const copied = new Set<unknown>();
  AsyncLocalStorage.prototype.run = function (this: AsyncLocalStorage<unknown>, ...args: Parameters<typeof run>) {
    // The context of the running call is one for the whole process.
    if (this !== running) copied.add(this);
    return run.apply(this, args);
  } as typeof run;
  AsyncLocalStorage.prototype.disable = function () {
    copied.delete(this);
    disable.call(this);
  };
  try {
    const server = shop();
    const { tool, ended } = await opened(server);
    await ended(await tool('echo', { text: 'a' }));
    assert.is(copied.size, 1);
    await server.close();
    assert.is(copied.size, 0);
  } finally {
    Object.assign(AsyncLocalStorage.prototype, { run, disable });
  }
});

test('answers pages, sampling and roots; a client that answers nothing is one', async () => {
  const server = shop();
  const { post, tool, ended, answer, result, until } = await opened(server);
  const call = await tool('ask_all');
  await answer({ action: 'accept' }, 'url');
  const said = { role: 'assistant', content: { type: 'text', text: 'Hello' }, model: 'me' };
  await answer({ action: 'sample', result: said }, 'sampling');
  await answer({ action: 'roots', roots: [{ uri: 'file:///home' }] }, 'roots');
  assert.is((await ended(call)).status, 'done');
  assert.match(JSON.stringify(await result(call)), /accepted.*Hello.*file:\/\/\/home/);
  const dropped = await tool('ask_all');
  await until(({ questions }) => questions.length === 3);
  await post({ action: 'cancel', call: dropped });
  await until(({ questions }) => questions.length === 0);
  const alone = await ended(await tool('greet', {}, { answers: [] }));
  assert.is(alone.isError, true);
  await server.close();
});

test('reads resources and templates, completes, gets prompts, watches, sends any request', async () => {
  const server = shop();
  server.resource('notes://today', {}, () => 'tea');
  server.resource(
    'notes://{day}',
    { complete: { day: (typed) => [`${typed}day`] } },
    ({ variables }) => `${variables.day}`,
  );
  server.prompt('review', { arguments: [{ name: 'code' }] }, ({ code }) => `Review ${code}`);
  const { post, start, ended, until, result } = await opened(server);
  const texts = async (request: object, caller = {}) => {
    const id = await start(request, caller);
    await ended(id);
    const [first] = (await result(id)).blocks;
    return first;
  };
  assert.match(JSON.stringify(await texts({ kind: 'resource', uri: 'notes://today' })), /"text":"tea"/);
  const template = { kind: 'template', template: 'notes://{day}', variables: { day: 'mon day' } };
  assert.match(JSON.stringify(await texts(template)), /notes:\/\/mon%20day.*"text":"mon day"/);
  assert.equal(await texts({ kind: 'prompt', name: 'review', arguments: { code: 'x' } }), {
    role: 'user',
    block: { type: 'text', text: 'Review x' },
  });
  const complete = {
    action: 'complete',
    reference: { resource: 'notes://{day}' },
    argument: { name: 'day', value: 'mon' },
  };
  assert.equal(await post({ ...complete, known: {} }), [200, '{"values":["monday"],"total":1}']);
  const ping = await start({ kind: 'request', method: 'ping', params: {} }, { revision: '2025-11-25' });
  assert.is((await ended(ping)).status, 'done');
  for (const caller of [{}, { revision: '2025-11-25' }]) {
    assert.is((await post({ action: 'watch', uri: 'notes://today', caller }))[0], 200);
    const before = await until(({ watched }) => watched.length === 1);
    // The subscription is on its way: announce until it is heard.
    const heard = until(({ notices }) => notices.filter(({ type }) => type === 'resource changed').length > 0);
    let seen = false;
    void heard.then(() => {
      seen = true;
    });
    for (; !seen; await new Promise((done) => setImmediate(done))) server.resourceUpdated('notes://today');
    assert.is((await post({ action: 'unwatch', uri: 'notes://today' }))[0], 200);
    await post({ action: 'forget' });
    assert.ok((await until(({ watched }) => watched.length === 0)).version > before.version);
  }
  await server.close();
});

test('S-52 without control no call is possible, and calls need the token', async () => {
  const server = shop();
  let called = 0;
  server.tool('count', {}, () => {
    called += 1;
    return 'counted';
  });
  const request = { kind: 'tool', name: 'count', arguments: {} };
  const commands = [
    { action: 'start', request, caller: {} },
    { action: 'call', tool: 'count' },
    { action: 'again', call: 1 },
    { action: 'watch', uri: 'notes://today' },
    { action: 'answer', question: 1, answer: { action: 'accept' } },
  ];
  const reader = await opened(server, false);
  for (const command of commands) assert.is((await reader.post(command))[0], 403, command.action);
  for (const path of ['/api/calls?since=0', '/api/result?call=1'])
    assert.is((await reader.get(path)).status, 403, path);
  const actor = await opened(server);
  const stranger = { 'content-type': 'application/json' };
  for (const command of commands) assert.is((await actor.post(command, stranger))[0], 401, command.action);
  for (const path of ['/api/calls?since=0', '/api/result?call=1'])
    assert.is((await actor.get(path, stranger)).status, 401, path);
  const origin = { ...stranger, origin: 'https://evil.example' };
  assert.is((await actor.post(commands[0], origin))[0], 403);
  assert.is(called, 0);
  await actor.ended(await actor.tool('count'));
  assert.is(called, 1);
  await server.close();
});

test('S-52 a call is a record, and the cause of its messages; no session is opened before it', async () => {
  const server = shop();
  const connections = new Set<string>();
  server.inspect((entry) => {
    if (entry.type === 'created' && entry.connection !== undefined) connections.add(entry.connection);
  });
  const { get, tool, ended, state } = await opened(server);
  await get('/api/stream?viewer=v');
  await state();
  assert.is(connections.size, 0);
  const call = await ended(await tool('echo', { text: 'hi' }));
  const { frames } = readRecording(await (await get('/api/recording')).text());
  const records = frames.flatMap((frame): readonly TraceRecord[] => (frame.type === 'records' ? frame.records : []));
  const start = records.find((record) => record.type === 'control' && record.action === 'start');
  assert.is(start?.seq, call.record);
  const sent = records.filter((record) => record.type === 'wire' && record.direction === 'in');
  assert.ok(sent.length >= 2);
  for (const record of sent) assert.is(record.cause, call.record);
  assert.match(JSON.stringify(sent.at(-1)), /"tools\/call".*"name":"inspector"/);
  await server.close();
});

test('the handles of a principal are for calls of that principal', async () => {
  const server = createServer({ name: 'lamps', version: '1.0.0', ...quiet });
  const lamp = createMachine({ initial: 'off', states: { off: { on: { flip: 'on' } }, on: {} } });
  server.machine('lamp', lamp, { description: 'A lamp', events: { flip: true } });
  const { tool, ended, result } = await opened(server);
  const made = await tool('lamp_create', {}, { principal: 'alice' });
  await ended(made);
  const { handle } = Object((await result(made)).structured);
  for (const [principal, fails] of [
    ['alice', undefined],
    ['mallory', true],
  ] as const) {
    const call = await ended(await tool('lamp_get', { handle }, { principal }));
    assert.is(call.isError, fails, principal);
  }
  await server.close();
});

const LOCAL_CLIENTS: Readonly<Record<string, readonly [as: object, principal: string, scopes: readonly string[]]>> = {
  'the local user': [{}, 'local user', ['*']],
  'a principal with scopes': [{ principal: 'ada', scopes: ['orders:refund'] }, 'ada', ['orders:refund']],
};

for (const [who, [as, principal, scopes]] of Object.entries(LOCAL_CLIENTS))
  test(`the page of a stdio server calls as its client, ${who}, and sees the state that this client stored`, async () => {
    const server = createServer({ name: 'notes', version: '1.0.0', ...quiet });
    server.tool('note', { input: z.object({ text: z.string() }) }, async ({ text }, ctx) => {
      await ctx.state.set('note', text);
      return 'stored';
    });
    server.tool('read', {}, async (_, ctx) => String(await ctx.state.get('note')));
    server.tool('refund', { scopes: ['orders:refund'] }, (_, ctx) => JSON.stringify(ctx.auth?.scopes));
    // The page is open before the server listens, as under `troupe dev`.
    const { post, state, tool, ended, text } = await opened(server);
    const commands: string[] = [];
    const unlisten = server.inspect((record) => {
      if (record.type === 'control') commands.push(JSON.stringify(record));
    });
    const [input, output] = [new PassThrough(), new PassThrough()];
    await server.listen(stdio({ input, output, ...as }));
    const answered = new Promise<string>((resolve) => {
      let all = '';
      output.on('data', (chunk) => {
        all += String(chunk);
        if (all.includes('"id":2')) resolve(all);
      });
    });
    const clientInfo = { name: 'agent', version: '1' };
    for (const message of [
      { id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo } },
      { method: 'notifications/initialized' },
      { id: 2, method: 'tools/call', params: { name: 'note', arguments: { text: 'tea' } } },
    ])
      input.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
    assert.match(await answered, /stored/);
    assert.is((await state()).principal, principal);
    for (const caller of [{}, { revision: '2025-11-25' }, { principal }]) {
      const [read, refund] = [await tool('read', {}, caller), await tool('refund', {}, caller)];
      assert.is((await ended(read)).caller.principal, principal);
      assert.is(await text(read), 'tea');
      await ended(refund);
      assert.is(await text(refund), JSON.stringify(scopes));
    }
    assert.match((await post({ action: 'call', tool: 'read', arguments: {} }))[1], /"read" answered:.*tea/);
    // Another principal is one entry away, also the anonymous one.
    const other = await tool('read', {}, { principal: 'mallory' });
    await ended(other);
    assert.is(await text(other), 'undefined');
    const anonymous = await ended(await tool('read', {}, { principal: 'anonymous' }));
    assert.ok(anonymous.isError === true || anonymous.status === 'failed');
    unlisten();
    assert.match(commands[0] ?? '', new RegExp(`"principal":"${principal}"`));
    await server.close();
  });

test('the page of a server without stdio and socket calls as anonymous, also if stdio could not open', async () => {
  const server = createServer({ name: 'notes', version: '1.0.0', ...quiet });
  server.tool('who', {}, (_, ctx) => ctx.principal);
  const { state, tool, ended, text } = await opened(server);
  const failing: Transport = {
    ...{ name: 'stdio', everyClient: { principal: 'local user' } },
    open: () => Promise.reject(new Error('no input')),
    close: () => Promise.resolve(),
  };
  await server.listen(failing).then(
    () => assert.unreachable(),
    () => {},
  );
  await server.listen(memory().transport);
  assert.is((await state()).principal, undefined);
  const who = await tool('who');
  assert.is((await ended(who)).caller.principal, undefined);
  assert.is(await text(who), 'anonymous');
  await server.close();
});

test('rules decide about the calls of a viewer, with the principal that the viewer chose', async () => {
  const server = shop();
  const asked: string[] = [];
  server.authorize(({ element, principal }) => {
    if (element.name !== 'echo') return true;
    asked.push(principal);
    return principal === 'alice' || { deny: 'only alice' };
  });
  server.tool('refund', { scopes: ['orders:refund'] }, () => 'refunded');
  const { tool, ended, text } = await opened(server);
  for (const revision of ['2026-07-28', '2025-11-25']) {
    const allowed = await tool('echo', { text: 'hi' }, { principal: 'alice', revision });
    assert.is((await ended(allowed)).status, 'done');
    assert.match(await text(allowed), /hi/);
    const denied = await ended(await tool('echo', { text: 'hi' }, { principal: 'mallory', revision }));
    assert.is(denied.status, 'failed');
    const lacking = await ended(await tool('refund', {}, { principal: 'alice', revision }));
    assert.match(lacking.error ?? '', /orders:refund/);
  }
  assert.equal([...new Set(asked)], ['alice', 'mallory']);
  await server.close();
});

test('a call is cancelled, and made again; the history has 50 calls', async () => {
  const server = shop();
  const aborted: string[] = [];
  server.tool('wait', {}, (_, ctx) => {
    ctx.progress(3, 4, 'nearly');
    return new Promise((resolve) =>
      ctx.signal.addEventListener('abort', () => {
        aborted.push('wait');
        resolve('stopped');
      }),
    );
  });
  const { post, tool, ended, until, state } = await opened(server);
  const call = await tool('wait');
  const running = await until(({ calls }) => calls[0]?.progress !== undefined);
  assert.equal(running.calls[0]?.progress, { progress: 3, total: 4, message: 'nearly' });
  assert.is((await post({ action: 'cancel', call }))[0], 200);
  assert.is((await ended(call)).status, 'cancelled');
  assert.equal(aborted, ['wait']);
  assert.is((await post({ action: 'cancel', call }))[0], 409);
  const first = await tool('echo', { text: 'x' });
  await ended(first);
  let last = first;
  // With the two before, the history is full, and the first two have left it.
  for (let count = 0; count < 50; count += 1) {
    const [, text] = await post({ action: 'again', call: last });
    last = JSON.parse(text).call;
    await ended(last);
  }
  assert.is((await state()).calls.length, 50);
  assert.is((await post({ action: 'again', call: first }))[0], 404);
  await server.close();
});

test('S-52 S-29 a call on the page shows no secret; a repeat sends the entered values', async () => {
  const server = shop();
  const { get, post, tool, ended, result } = await opened(server);
  const call = await tool('echo', { text: `Bearer ${SECRET}`, password: SECRET });
  await ended(call);
  const [, text] = await post({ action: 'again', call });
  await ended(JSON.parse(text).call);
  for (const path of ['/api/calls?since=0', `/api/result?call=${call}`, '/api/recording'])
    assert.not.ok((await (await get(path)).text()).includes(SECRET), path);
  // Both received the same arguments, whose secrets are hidden in both results.
  const raws = [call, JSON.parse(text).call].map(async (id) => JSON.stringify((await result(id)).structured));
  assert.equal(await raws[0], await raws[1]);
  await server.close();
});

test('S-52 a result of 10 MB is cut, and one with images, sounds and other bytes keeps what can be shown', async () => {
  const server = shop({ limits: { maxResultLength: 30_000_000 } });
  const svg = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>').toString('base64');
  const bytes = Buffer.from([0, 1, 2, 255]).toString('base64');
  server.tool('long', {}, () => ({ content: [{ type: 'text', text: 'x'.repeat(10_000_000) }] }));
  server.tool('media', {}, () => ({
    content: [
      { type: 'image', data: bytes, mimeType: 'image/png' },
      { type: 'image', data: svg, mimeType: 'image/svg+xml' },
      { type: 'audio', data: bytes, mimeType: 'audio/wav' },
      { type: 'resource', resource: { uri: 'a:b', blob: bytes, mimeType: 'application/pdf' } },
      { type: 'image', data: 'A'.repeat(5_000_000), mimeType: 'image/png' },
      { type: 'resource_link', uri: 'javascript:alert(1)', name: 'link' },
    ],
  }));
  const { get, tool, ended, result } = await opened(server);
  const long = await tool('long');
  await ended(long);
  const text = await (await get(`/api/result?call=${long}`)).text();
  assert.ok(text.length < 500_000, String(text.length));
  assert.is(JSON.parse(text).cut, true);
  const media = await tool('media');
  await ended(media);
  const { blocks, cut } = await result(media);
  assert.is(cut, true);
  assert.equal(
    blocks.map(({ block }) => (block.type === 'resource' ? block.inside.type : block.type)),
    ['image', 'text', 'audio', 'binary', 'binary', 'link'],
  );
  const [, , , , large] = blocks;
  assert.equal(large?.block, { type: 'binary', mimeType: 'image/png', bytes: 3_750_000 });
  await server.close();
});

test('commands of any shape are rejected with what was expected', async () => {
  const server = shop();
  const { post } = await opened(server);
  const wrong: readonly (readonly [object, RegExp])[] = [
    [{ action: 'start' }, /request: expected an object/],
    [{ action: 'start', request: { kind: 'shell' } }, /request.kind: expected/],
    [{ action: 'start', request: { kind: 'tool' } }, /name: expected a tool's name/],
    [{ action: 'start', request: { kind: 'prompt', name: 'x', arguments: { a: 1 } } }, /arguments.a: expected a text/],
    [{ action: 'start', request: { kind: 'template', template: '{' } }, /template/i],
    [
      { action: 'start', request: { kind: 'tool', name: 'echo' }, caller: { revision: '1999-01-01' } },
      /caller.revision/,
    ],
    [{ action: 'start', request: { kind: 'tool', name: 'echo' }, caller: { principal: 'x'.repeat(201) } }, /principal/],
    [{ action: 'answer', question: 1, answer: { action: 'explode' } }, /answer.action/],
    [{ action: 'launch' }, /action: expected one of/],
  ];
  for (const [command, why] of wrong) {
    const [status, text] = await post(command);
    assert.is(status, 400, JSON.stringify(command));
    assert.match(text, why);
  }
  assert.is((await post({ action: 'answer', question: 9, answer: { action: 'accept' } }))[0], 404);
  await server.close();
});

test('a server closes although viewers call it, and wait for it', async () => {
  const server = shop({ limits: { graceMs: 20 } });
  const { tool, until, state } = await opened(server);
  await tool('greet');
  const { version } = await until(({ questions }) => questions.length === 1);
  const waiting = state(version).catch(() => undefined);
  await server.close();
  await waiting;
});

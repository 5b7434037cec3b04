/** The test client: it asks in both eras, waits for what comes, keeps what it saw, and says what was missing. */
import * as assert from 'uvu/assert';
import { createServer, ErrorCode, ProtocolError, type Server } from '../../src/index.ts';
import { connect, ErrorResponse, TestClient, type TestClientOptions, type Wire } from '../../src/testing/testing.ts';
import { suite } from '../harness/door.ts';
import { rejection } from '../harness/results.ts';

const test = suite('TestClient');

function served(): Server {
  const server = createServer({ name: 's', version: '1', log: () => {} });
  server.tool('echo', { input: { type: 'object' } as const }, (args) => JSON.stringify(args));
  server.tool('tell', {}, (_, ctx) => {
    ctx.log.error('told');
    ctx.progress(1, 2);
    return 'done';
  });
  server.tool('deny', {}, () => {
    throw new ProtocolError(ErrorCode.InvalidParams, 'no', { why: 'because' });
  });
  return server;
}

async function using<T>(body: (client: TestClient) => Promise<T>, options?: TestClientOptions): Promise<T> {
  const server = served();
  const client = await connect(server, options);
  try {
    return await body(client);
  } finally {
    await server.close();
  }
}

/** The other end of a wire that the test speaks for. */
class Script implements Wire {
  readonly sent: string[] = [];
  readonly closed: Promise<string>;
  say: (text: string) => void = () => {};
  end: (reason: string) => void = () => {};
  closes = true;

  constructor() {
    this.closed = new Promise((resolve) => {
      this.end = resolve;
    });
  }

  send(text: string): void {
    this.sent.push(text);
  }

  onText(listener: (text: string) => void): void {
    this.say = listener;
  }

  close(): void {
    if (this.closes) this.end('done');
  }
}

test('opens a session in the revision that is asked for, and calls tools in it', () =>
  using(async (client) => {
    const opened = await client.initialize('2025-06-18', { roots: {} });
    assert.is(opened.protocolVersion, '2025-06-18');
    const result = await client.call('echo', { a: 1 });
    assert.equal(result, { content: [{ type: 'text', text: '{"a":1}' }] });
    assert.equal(
      client.messages.map(({ direction, parsed }) => [direction, Object(parsed).method]),
      [
        ['in', 'initialize'],
        ['out', undefined],
        ['in', 'notifications/initialized'],
        ['in', 'tools/call'],
        ['out', undefined],
      ],
    );
  }));

test('asks as a modern client where no session is open, and describes itself', () =>
  using(async (client) => {
    const result = await client.call('echo');
    assert.equal(result.content, [{ type: 'text', text: '{}' }]);
    const [asked] = client.messages;
    assert.match(asked?.text ?? '', /"io\.modelcontextprotocol\/protocolVersion":"2026-07-28"/);
    const unsupported = await rejection(
      client.modern('server/discover', {}, { 'io.modelcontextprotocol/protocolVersion': '2099-01-01' }),
    );
    assert.is(unsupported instanceof ErrorResponse && unsupported.code, -32022);
    const missing = await rejection(
      client.modern('server/discover', {}, { 'io.modelcontextprotocol/clientCapabilities': undefined }),
    );
    assert.is(missing instanceof ErrorResponse && missing.code, -32602);
  }));

test('an error rejects with its code, message and data', () =>
  using(async (client) => {
    const error = await rejection(client.call('deny'));
    assert.ok(error instanceof ErrorResponse);
    assert.equal([error.code, error.text, error.data], [-32602, 'no', { why: 'because' }]);
    assert.match(
      error.stack ?? '',
      /^ErrorResponse: the server under test: no \(code -32602\)\n[\s\S]*client\.test\.[jt]s/,
    );
  }));

test('many requests at once get each their own answer', () =>
  using(async (client) => {
    await client.initialize();
    const results = await Promise.all([1, 2, 3].map((n) => client.call('echo', { n })));
    assert.equal(
      results.map(({ content }) => content[0]),
      [1, 2, 3].map((n) => ({ type: 'text', text: `{"n":${n}}` })),
    );
  }));

test('notifications can be awaited before or after they came, and are all kept', () =>
  using(async (client) => {
    await client.initialize();
    const waiting = client.notification('notifications/message');
    await client.send('tools/call', { name: 'tell', _meta: { progressToken: 'p' } });
    assert.equal(await waiting, { level: 'error', data: 'told' });
    assert.equal(await client.notification('notifications/progress'), { progressToken: 'p', progress: 1, total: 2 });
    assert.equal(
      client.notifications.map(({ method }) => method),
      ['notifications/message', 'notifications/progress'],
    );
    assert.equal(client.rest(), []);
  }));

test('next takes each message once, in order, and leaves answers to their requests', async () => {
  const wire = new Script();
  const client = new TestClient(wire);
  const answer = client.send('a');
  wire.say('{"jsonrpc":"2.0","method":"one"}');
  wire.say('{"jsonrpc":"2.0","method":"two"}');
  wire.say('{"jsonrpc":"2.0","id":1,"result":{"x":1}}');
  wire.say('{"jsonrpc":"2.0","id":2,"result":{}}');
  assert.equal(await answer, { x: 1 });
  assert.equal(await client.next((message) => Object(message).method === 'two'), { jsonrpc: '2.0', method: 'two' });
  assert.equal(await client.next(), { jsonrpc: '2.0', method: 'one' });
  assert.equal(client.rest(), [{ jsonrpc: '2.0', id: 2, result: {} }]);
  const [first, second] = [client.next(), client.next()];
  wire.say('3');
  wire.say('4');
  assert.equal(await Promise.all([first, second]), [3, 4]);
  await client.close();
});

test('a batch answers the requests in it, and the rest of it can be awaited', async () => {
  const wire = new Script();
  const client = new TestClient(wire);
  const answers = [client.send('a'), client.send('b')];
  wire.say(
    '[{"jsonrpc":"2.0","id":2,"result":{"b":1}},{"jsonrpc":"2.0","id":9,"result":{}},{"jsonrpc":"2.0","id":1,"result":{"a":1}}]',
  );
  assert.equal(await Promise.all(answers), [{ a: 1 }, { b: 1 }]);
  assert.equal(client.rest(), [[{ jsonrpc: '2.0', id: 9, result: {} }]]);
  await client.close();
});

test('sends raw text as it is, and keeps it', async () => {
  const wire = new Script();
  const client = new TestClient(wire);
  client.raw('{"jsonrpc":');
  client.notify('notifications/initialized');
  assert.equal(wire.sent, ['{"jsonrpc":', '{"jsonrpc":"2.0","method":"notifications/initialized"}']);
  assert.equal(client.messages[0], { direction: 'in', text: '{"jsonrpc":', parsed: undefined });
  await client.close();
});

test('a message that does not come is missed at the deadline, with its name and the messages that came instead', async () => {
  const wire = new Script();
  const client = new TestClient(wire, { deadlineMs: 20 });
  const empty = await rejection(client.send('tools/list'));
  assert.is(empty.message, 'waited 20 ms for the response to request 1 (tools/list); received nothing');
  assert.match(empty.stack ?? '', /client\.test\.[jt]s/);
  wire.say('{"jsonrpc":"2.0","method":"other"}');
  const other = await rejection(client.notification('wanted'));
  assert.is(other.message, 'waited 20 ms for wanted; received:\n  {"jsonrpc":"2.0","method":"other"}');
  wire.closes = false;
  const open = await rejection(client.close());
  assert.match(open.message, /^waited 20 ms for the server to close the connection/);
});

test('callers that wait when the connection closes fail at once, and later callers too', async () => {
  const wire = new Script();
  const client = new TestClient(wire);
  const [request, next] = [client.send('a'), client.next()];
  wire.say('{"jsonrpc":"2.0","method":"one"}');
  const another = client.next();
  wire.end('went away');
  assert.is((await rejection(request)).message, 'the connection is closed (went away)');
  assert.is(Object(await next).method, 'one');
  assert.is((await rejection(another)).message, 'the connection is closed (went away)');
  assert.is((await rejection(client.next())).message, 'the connection is closed (went away)');
  assert.is(await client.closed, 'went away');
});

test('an error of onMessage rejects the pending waits, and close', async () => {
  const wire = new Script();
  const client = new TestClient(wire, {
    onMessage({ direction, text }) {
      if (direction === 'out') throw new Error(`bad: ${text}`);
    },
  });
  const waiting = client.send('a');
  wire.say('{"jsonrpc":"2.0","id":1,"result":{}}');
  assert.is((await rejection(waiting)).message, 'bad: {"jsonrpc":"2.0","id":1,"result":{}}');
  assert.match((await rejection(client.next())).message, /^bad: /);
  assert.match((await rejection(client.close())).message, /^bad: /);
});

test('a server that sends what is no JSON fails the client', async () => {
  const wire = new Script();
  const client = new TestClient(wire);
  const waiting = client.next();
  wire.say('oops');
  assert.is((await rejection(waiting)).message, 'the server sent text that is not JSON: oops');
});

test('several clients share one server, and one that closes leaves the others', async () => {
  const server = served();
  const [one, two] = await Promise.all([connect(server), connect(server)]);
  await Promise.all([one.initialize('2024-11-05'), two.initialize('2025-11-25')]);
  await one.close();
  assert.equal((await two.call('echo')).content.length, 1);
  await server.close();
  assert.match(await two.closed, /closed/);
  assert.match((await rejection(connect(server))).message, /not open/);
});

test('connect rejects a caller that would be anonymous without a warning', async () => {
  const server = served();
  for (const [auth, message] of [
    ['ada', /^connect: auth: expected \{ principal, scopes \}, got string "ada"$/],
    [{ principal: 'ada', scopes: 'a' }, /^connect: auth: scopes: expected an array of scopes, .* got string "a"$/],
    [{ principal: 7 }, /^connect: auth: principal: expected the name of a user, such as "ada", got number 7$/],
  ] as const) {
    const connecting: Promise<unknown> = Reflect.apply(connect, undefined, [server, { auth }]);
    assert.match((await rejection(connecting)).message, message);
  }
  await server.close();
});

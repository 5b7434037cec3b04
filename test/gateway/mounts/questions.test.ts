/** Questions of an upstream in detail: what is declared, what is counted, remembered and translated, and what cannot be asked. */
import { createServer, type Mount, type MountOptions, type Server } from 'troupe';
import { settled, TestClient } from 'troupe/testing';
import * as assert from 'uvu/assert';
import type { Channel, ChannelHost, OutgoingMessage } from '../../../src/client/channels/channel.ts';
import { type Client, type ConnectOptions, connect } from '../../../src/client/client.ts';
import type { JsonObject, JsonValue } from '../../../src/core/protocol/json.ts';
import { memory } from '../../../src/index.ts';
import { isObjectInTest, readJson } from '../../../src/testing/test-json.ts';
import { suite } from '../../harness/door.ts';
import { textOf } from '../../harness/results.ts';
import { type Era, FORM } from './asking-server.ts';
import { type Stage, stageOf } from './stage.ts';

const test = suite('questions of an upstream');

const PAIRINGS: readonly (readonly [Era, Era])[] = [
  ['legacy', 'legacy'],
  ['legacy', 'modern'],
  ['modern', 'legacy'],
  ['modern', 'modern'],
];

const inMemory = (downstream: Era, upstream: Era, client?: ConnectOptions): Promise<Stage> =>
  stageOf({ era: downstream, over: 'memory' }, { era: upstream, over: 'memory' }, client ? { client } : {});

async function said(client: Client, tool: string, args: JsonObject = {}): Promise<string> {
  return textOf(await client.call(tool, args));
}

test('an upstream learns the capabilities of the client of the call, and of no other', async () => {
  for (const [downstream, upstream] of PAIRINGS) {
    const stage = await inMemory(downstream, upstream);
    const other = await connect(stage.gateway as Server, { elicit: () => 'cancel', eras: downstream, log() {} });
    const { extensions: _, ...mine } = JSON.parse(await said(stage.client, 'up_declared'));
    assert.equal(Object.keys(mine).sort(), ['elicitation', 'roots', 'sampling']);
    const { extensions: __, ...others } = JSON.parse(await said(other, 'up_declared'));
    assert.equal(others, { elicitation: { form: {} } });
    await other.close();
    await stage.close();
  }
});

test('a user declines, a client refuses, and an undeclared question is not put', async () => {
  for (const [downstream, upstream] of PAIRINGS) {
    const declines = await inMemory(downstream, upstream, { elicit: () => 'decline', elicitUrl: () => 'cancel' });
    assert.is(await said(declines.client, 'up_form'), 'declined');
    assert.is(await said(declines.client, 'up_page'), 'cancelled');
    const mute = await connect(declines.gateway as Server, { eras: downstream, log() {} });
    assert.match(await said(mute, 'up_form'), /needs an answer from the user/);
    await mute.close();
    await declines.close();
  }
});

test('one call may ask for 8 samplings', async () => {
  for (const [downstream, upstream] of PAIRINGS) {
    const stage = await inMemory(downstream, upstream);
    const result = await stage.client.call('up_samples');
    assert.is(result.isError, true);
    assert.is(stage.asked.length, 8, `${downstream} ${upstream}`);
    await stage.close();
  }
});

test('a session is asked for its roots once, and again after it has announced others', async () => {
  for (const upstream of ['legacy', 'modern'] as const) {
    let roots = [{ uri: 'file:///one' }];
    let asked = 0;
    const stage = await inMemory('legacy', upstream, {
      roots() {
        asked += 1;
        return roots;
      },
    });
    for (let call = 1; call <= 3; call += 1) assert.is(await said(stage.client, 'up_dirs'), 'file:///one');
    assert.is(asked, 1);
    roots = [{ uri: 'file:///two' }];
    stage.client.rootsChanged();
    assert.is(await said(stage.client, 'up_dirs'), 'file:///two');
    assert.is(asked, 2);
    await stage.close();
  }
});

/** An upstream of 2025-11-25 that a test scripts: it answers each request of the gateway itself. */
class Scripted implements Channel {
  readonly kind = 'stream';
  #host: ChannelHost | undefined;
  readonly #serve: (method: string, params: JsonObject, upstream: Scripted) => JsonObject | Promise<JsonObject>;
  readonly #era: Era;
  /** The methods of the notifications of the gateway. */
  readonly notified: string[] = [];
  /** The responses of the gateway, by id. */
  readonly responses = new Map<unknown, JsonObject>();

  constructor(
    serve: (method: string, params: JsonObject, upstream: Scripted) => JsonObject | Promise<JsonObject>,
    era: Era = 'legacy',
  ) {
    this.#serve = serve;
    this.#era = era;
  }

  open(host: ChannelHost): void {
    this.#host = host;
    host.send({ type: 'opened' });
  }

  send({ text }: OutgoingMessage): void {
    const message = readJson(text);
    if (!isObjectInTest(message)) return;
    const { id, method, params } = message;
    if (typeof method !== 'string') {
      this.responses.set(id, message);
      return;
    }
    if (id === undefined) return void this.notified.push(method);
    const handshake: Readonly<Record<string, JsonObject>> = {
      'server/discover':
        this.#era === 'legacy'
          ? { error: { code: -32601, message: 'unknown' } }
          : {
              result: {
                resultType: 'complete',
                supportedVersions: ['2026-07-28'],
                capabilities: { tools: {} },
                serverInfo: { name: 'scripted', version: '1' },
                ttlMs: 0,
                cacheScope: 'private',
              },
            },
      initialize: {
        result: {
          protocolVersion: '2025-11-25',
          capabilities: { tools: {} },
          serverInfo: { name: 'scripted', version: '1' },
        },
      },
      'tools/list': { result: { tools: [{ name: 'go', inputSchema: { type: 'object' } }] } },
    };
    void (async () => {
      const answer = handshake[method] ?? (await this.#serve(method, isObjectInTest(params) ? params : {}, this));
      this.say({ id, ...answer });
    })();
  }

  say(message: JsonObject): void {
    this.text(JSON.stringify({ jsonrpc: '2.0', ...message }));
  }

  text(text: string): void {
    this.#host?.send({ type: 'text', text, about: undefined });
  }

  /** Sends a request to the gateway. @returns its response */
  async request(id: string, method: string, params: JsonObject): Promise<JsonObject> {
    this.say({ id, method, params });
    for (let turn = 0; turn < 100; turn += 1) {
      const response = this.responses.get(id);
      if (response) return response;
      await settled();
    }
    throw new Error(`no response to ${method}`);
  }

  abandon(): void {}
  answered(): void {}
  close(): Promise<void> {
    this.#host = undefined;
    return Promise.resolve();
  }
}

interface ScriptedStage {
  readonly gateway: Server;
  readonly mount: Mount;
  open(onMessage?: (message: { readonly text: string }) => void): TestClient;
}

async function scripted(
  serve: ConstructorParameters<typeof Scripted>[0],
  options: MountOptions = {},
  era: Era = 'legacy',
): Promise<ScriptedStage> {
  const gateway = createServer({ name: 'gateway', version: '1.0.0', log() {} });
  const mount = await gateway.mount('up', { name: 'scripted', channel: () => new Scripted(serve, era) }, options);
  const { transport, connect: open } = memory();
  await gateway.listen(transport);
  return { gateway, mount, open: (onMessage) => new TestClient(open(), onMessage ? { onMessage } : {}) };
}

test('an upstream that asks for roots outside of a call gets them once they are known, and no empty list before', async () => {
  let upstream: Scripted | undefined;
  let asks = false;
  const { gateway, open } = await scripted(async (_method, _params, server) => {
    upstream = server;
    if (asks) await server.request('in a call', 'roots/list', {});
    return { result: { content: [] } };
  });
  const roots = [{ uri: 'file:///tea' }];
  const client = open(({ text }) => {
    const { id, method } = Object(readJson(text));
    if (method === 'roots/list') client.raw(JSON.stringify({ jsonrpc: '2.0', id, result: { roots } }));
  });
  await client.initialize('2025-11-25', { roots: { listChanged: true } });
  const ask = (id: string): Promise<JsonObject> | undefined => upstream?.request(id, 'roots/list', {});
  const changes = (): number =>
    upstream?.notified.filter((method) => method === 'notifications/roots/list_changed').length ?? 0;
  await client.call('up_go');
  assert.match(String(Object(Object(await ask('too early')).error).message), 'ask again during one of its calls');
  assert.is(changes(), 0);
  asks = true;
  await client.call('up_go');
  assert.is(changes(), 1);
  assert.equal(Object(await ask('later')).result, { roots });
  await client.call('up_go');
  assert.is(changes(), 1);
  await client.close();
  await gateway.close();
});

const PAGES = {
  error: {
    code: -32042,
    message: 'a page first',
    data: { elicitations: [{ mode: 'url', elicitationId: 'e1', url: 'https://example.com/pay', message: 'Pay' }] },
  },
};
const DONE = { result: { content: [{ type: 'text', text: 'done' }] } };

test('an upstream that demands a page first is called once more after the user has agreed', async () => {
  for (const action of ['accept', 'decline'] as const)
    for (const eras of ['legacy', 'modern'] as const) {
      let calls = 0;
      const { gateway } = await scripted(() => {
        calls += 1;
        return calls === 1 ? PAGES : DONE;
      });
      const seen: unknown[] = [];
      const client = await connect(gateway as never, {
        eras,
        log() {},
        elicitUrl({ message, url }) {
          seen.push([message, url]);
          return action;
        },
      });
      const text = await said(client, 'up_go');
      assert.equal(seen, [['[up] Pay', 'https://example.com/pay']]);
      if (action === 'accept') assert.is(text, 'done');
      else assert.match(text, /did not open https:\/\/example\.com\/pay\. The call was not carried out/);
      assert.is(calls, action === 'accept' ? 2 : 1);
      await client.close();
      await gateway.close();
    }
});

test('a client that opens no pages gets the address in words, and so does one whose page is not completed', async () => {
  const { gateway } = await scripted(() => PAGES);
  const opens = await connect(gateway as never, { eras: 'modern', log() {}, elicitUrl: () => 'accept' });
  const none = await connect(gateway as never, { eras: 'modern', log() {} });
  for (const client of [opens, none])
    assert.match(await said(client, 'up_go'), /https:\/\/example\.com\/pay.*Call again afterwards/);
  await opens.close();
  await none.close();
  await gateway.close();
});

test('a completed page is reported to the session that was asked, under the id that it knows', async () => {
  const { gateway, open } = await scripted(async (_method, _params, upstream) => {
    const page = { mode: 'url', elicitationId: 'e1', url: 'https://example.com/pay', message: 'Pay' };
    await upstream.request('q1', 'elicitation/create', page);
    upstream.say({ method: 'notifications/elicitation/complete', params: { elicitationId: 'e1' } });
    return DONE;
  });
  const completed: JsonObject[] = [];
  const client = open(({ text }) => {
    const message = readJson(text);
    if (isObjectInTest(message) && message.method === 'notifications/elicitation/complete') completed.push(message);
  });
  await client.initialize('2025-11-25', { elicitation: { url: {} } });
  const result = client.call('up_go');
  const question = await client.next((each) => isObjectInTest(each) && each.method === 'elicitation/create', 'a page');
  assert.ok(isObjectInTest(question) && isObjectInTest(question.params));
  const { elicitationId } = question.params;
  client.raw(JSON.stringify({ jsonrpc: '2.0', id: question.id, result: { action: 'accept' } }));
  assert.is(textOf(await result), 'done');
  await settled();
  assert.equal(
    completed.map(({ params }) => params),
    [{ elicitationId }],
  );
  await client.close();
  await gateway.close();
});

test("the error of a session reaches the upstream as the session's, and an unknown question is rejected", async () => {
  const errors: unknown[] = [];
  const { gateway, open } = await scripted(async (_method, _params, upstream) => {
    errors.push((await upstream.request('q1', 'sampling/createMessage', { messages: [], maxTokens: 1 })).error);
    errors.push((await upstream.request('q2', 'no/such', {})).error);
    errors.push((await upstream.request('q3', 'elicitation/create', { message: 'Who?' })).error);
    return DONE;
  });
  const client = open();
  await client.initialize('2025-11-25', { sampling: {} });
  const result = client.call('up_go');
  const question = await client.next(
    (each) => isObjectInTest(each) && each.method === 'sampling/createMessage',
    'a sampling',
  );
  assert.ok(isObjectInTest(question));
  client.raw(
    JSON.stringify({ jsonrpc: '2.0', id: question.id, error: { code: -1, message: 'User rejected sampling' } }),
  );
  assert.is(textOf(await result), 'done');
  const codes = errors.map((error) => (isObjectInTest(error as JsonObject) ? (error as JsonObject).code : error));
  assert.equal(codes, [-1, -32601, -32601]);
  assert.equal((errors[0] as JsonObject).message, 'User rejected sampling');
  await client.close();
  await gateway.close();
});

for (const [downstream, upstream] of PAIRINGS)
  test(`S-75 of the _meta of a question only the trace context passes, from a ${upstream} upstream to a ${downstream} client`, async () => {
    const trace = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', tracestate: 'a=b' };
    const hidden = {
      baggage: 'user=bob',
      progressToken: 7,
      'io.modelcontextprotocol/related-task': { taskId: 'other' },
      'io.troupe/upstream-failure': {},
      'example.com/approval': 'not needed',
    };
    const questions = [
      { method: 'elicitation/create', params: { message: 'Who?', requestedSchema: FORM } },
      { method: 'sampling/createMessage', params: { messages: [], maxTokens: 1 } },
      { method: 'roots/list', params: {} },
    ].map(({ method, params }) => ({
      method,
      params: { ...params, task: { ttl: 1 }, _meta: { ...trace, ...hidden } },
    }));
    const { gateway, open } = await scripted(
      async (_method, params, server) => {
        if (upstream === 'legacy')
          for (const { method, params: of } of questions) await server.request(method, method, of);
        else if (params.inputResponses === undefined)
          return { result: { resultType: 'input_required', inputRequests: { ...questions }, requestState: 's' } };
        return { result: { ...DONE.result, resultType: 'complete' } };
      },
      {},
      upstream,
    );
    const asked = new Map<unknown, JsonObject>();
    const see = (question: JsonValue | undefined): void => {
      if (isObjectInTest(question) && isObjectInTest(question.params)) asked.set(question.method, question.params);
    };
    const capabilities = { elicitation: {}, sampling: {}, roots: {} };
    const reply = (method: unknown): JsonObject =>
      method === 'roots/list'
        ? { roots: [] }
        : method === 'elicitation/create'
          ? { action: 'decline' }
          : { role: 'assistant', model: 'm', content: { type: 'text', text: 'hi' } };
    const client = open(({ text }) => {
      const message = readJson(text);
      if (!isObjectInTest(message) || !questions.some(({ method }) => method === message.method)) return;
      see(message);
      client.raw(JSON.stringify({ jsonrpc: '2.0', id: message.id, result: reply(message.method) }));
    });
    if (downstream === 'legacy') {
      await client.initialize('2025-11-25', capabilities);
      assert.is(textOf(await client.call('up_go')), 'done');
    } else {
      const call = { name: 'up_go', arguments: {} };
      const meta = { 'io.modelcontextprotocol/clientCapabilities': capabilities };
      let result = await client.modern('tools/call', call, meta);
      while (isObjectInTest(result) && result.resultType === 'input_required') {
        const { inputRequests, requestState } = result;
        assert.ok(isObjectInTest(inputRequests));
        const inputResponses: Record<string, JsonObject> = {};
        for (const [key, question] of Object.entries(inputRequests)) {
          see(question);
          inputResponses[key] = reply(isObjectInTest(question) && question.method);
        }
        result = await client.modern('tools/call', { ...call, inputResponses, requestState }, meta);
      }
      assert.is(textOf(result), 'done');
    }
    assert.is(asked.size, 3);
    for (const params of asked.values()) {
      assert.equal(params._meta, trace);
      assert.not.ok('task' in params);
    }
    await client.close();
    await gateway.close();
  });

test('progress that is no finite number is dropped, and the call has its result', async () => {
  const { gateway } = await scripted((_method, params, upstream) => {
    const token = isObjectInTest(params._meta) ? params._meta.progressToken : undefined;
    for (const progress of ['1', '1e999'])
      upstream.text(
        `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":${token},"progress":${progress},"total":1e999}}`,
      );
    return DONE;
  });
  const client = await connect(gateway, { log() {} });
  const reported: unknown[] = [];
  const result = await client.call(
    'up_go',
    {},
    { onProgress: ({ progress, total }) => reported.push([progress, total]) },
  );
  assert.is(textOf(result), 'done');
  assert.equal(reported, [[1, undefined]]);
  await client.close();
  await gateway.close();
});

test('an upstream that all share can ask no client, and its log messages reach no caller while another has a call', async () => {
  const waiting: (() => void)[] = [];
  const asked: unknown[] = [];
  const { gateway } = await scripted(
    async (_method, { arguments: args }, upstream) => {
      if (isObjectInTest(args) && args.first === true) await new Promise<void>((go) => waiting.push(go));
      else {
        asked.push((await upstream.request('q1', 'elicitation/create', { message: 'Who?' })).error);
        upstream.say({ method: 'notifications/message', params: { level: 'error', data: 'of the second' } });
        for (const go of waiting) go();
      }
      return DONE;
    },
    { share: 'everyone' },
  );
  const put: unknown[] = [];
  const logged: unknown[] = [];
  const elicit = () => {
    put.push('asked');
    return 'cancel' as const;
  };
  const [one, other] = await Promise.all([1, 2].map(() => connect(gateway, { eras: 'modern', log() {}, elicit })));
  const first = one?.call('up_go', { first: true }, { logLevel: 'debug', onLog: ({ data }) => logged.push(data) });
  while (waiting.length === 0) await settled();
  assert.is(textOf((await other?.call('up_go')) as never), 'done');
  assert.is(textOf((await first) as never), 'done');
  assert.equal(put, []);
  assert.equal(logged, []);
  assert.is((asked[0] as JsonObject).code, -32601);
  await Promise.all([one?.close(), other?.close()]);
  await gateway.close();
});

test('only a web page is passed on as a page: another scheme could start a program', async () => {
  for (const url of ['javascript:alert(1)', 'file:///etc/passwd', 'https://bank.example@evil.example/?alert', 7]) {
    const errors: unknown[] = [];
    const page = { mode: 'url', elicitationId: 'e1', url, message: 'Open' };
    const { gateway } = await scripted(async (_method, { arguments: args }, upstream) => {
      if (isObjectInTest(args) && args.first === true)
        return { error: { code: -32042, message: 'first', data: { elicitations: [page] } } };
      errors.push((await upstream.request('q1', 'elicitation/create', page)).error);
      return DONE;
    });
    const opened: unknown[] = [];
    const elicitUrl = (given: unknown) => {
      opened.push(given);
      return 'accept' as const;
    };
    const client = await connect(gateway, { log() {}, elicitUrl });
    assert.is(await said(client, 'up_go'), 'done');
    assert.match(String((errors[0] as JsonObject).message), /http or https/);
    const pages = await client.call('up_go', { first: true });
    assert.is(pages.isError, true);
    assert.not.match(textOf(pages), 'alert');
    assert.equal(opened, []);
    await client.close();
    await gateway.close();
  }
});

test('a legacy upstream asks in at most maxRounds rounds, too', async () => {
  let answered = 0;
  const { gateway } = await scripted(
    async (_method, _params, upstream) => {
      for (let at = 0; at < 20; at += 1)
        if ((await upstream.request(`q${at}`, 'elicitation/create', { message: 'Again?', requestedSchema: {} })).result)
          answered += 1;
      return DONE;
    },
    { maxRounds: 3 },
  );
  const client = await connect(gateway, { log() {}, elicit: () => 'decline' });
  assert.is(await said(client, 'up_go'), 'done');
  assert.is(answered, 3);
  await client.close();
  await gateway.close();
});

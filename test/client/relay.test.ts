/** Requests that a gateway passes on: which call a question belongs to, what is declared, and what the log level becomes. */
import * as assert from 'uvu/assert';
import type { Channel, ChannelHost, OutgoingMessage } from '../../src/client/channels/channel.ts';
import { ClientError, ErrorResponse } from '../../src/client/client-errors.ts';
import type { ConnectedClient } from '../../src/client/connected-client.ts';
import { openClient } from '../../src/client/open-client.ts';
import type { AskedRequest } from '../../src/client/relayed-request.ts';
import { ErrorCode, ProtocolError } from '../../src/core/protocol/errors.ts';
import { isObject, type JsonObject } from '../../src/core/protocol/json.ts';
import { META } from '../../src/core/protocol/meta.ts';
import type { ClientCapabilities } from '../../src/core/protocol/types.ts';
import { SimulatedClock } from '../../src/testing/simulated-clock.ts';
import { suite } from '../harness/door.ts';

const test = suite('a relayed request');

interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly params?: JsonObject;
  readonly result?: JsonObject;
  readonly error?: JsonObject;
}

/** A server that the test plays: it answers handshakes, and keeps everything else. */
class Played {
  readonly clock = new SimulatedClock();
  readonly received: Message[] = [];
  readonly #kind: 'stream' | 'http';
  readonly #era: 'legacy' | 'modern';
  #host: ChannelHost | undefined;

  constructor(kind: 'stream' | 'http', era: 'legacy' | 'modern') {
    this.#kind = kind;
    this.#era = era;
  }

  open(capabilities: ClientCapabilities, oneCaller = true): Promise<ConnectedClient> {
    return openClient(
      { name: 'played', channel: () => this.#channel() },
      { clock: this.clock, eras: this.#era, log: () => {}, timeoutMs: 1_000 },
      capabilities,
      oneCaller,
    );
  }

  #channel(): Channel {
    return {
      kind: this.#kind,
      open: (host) => {
        this.#host = host;
        host.send({ type: 'opened' });
      },
      send: ({ text }: OutgoingMessage) => this.#receive(JSON.parse(text)),
      abandon() {},
      answered() {},
      close: () => Promise.resolve(),
    };
  }

  #receive(message: Message): void {
    this.received.push(message);
    const capabilities = { tools: {}, logging: {} };
    if (message.method === 'initialize')
      this.says({
        id: message.id,
        result: { protocolVersion: '2025-11-25', capabilities, serverInfo: { name: 'played', version: '1' } },
      });
    if (message.method === 'server/discover')
      this.says({ id: message.id, result: { supportedVersions: ['2026-07-28'], capabilities } });
    if (message.method === 'tools/list') this.says({ id: message.id, result: { tools: [] } });
    if (message.method === 'logging/setLevel') this.says({ id: message.id, result: {} });
  }

  /** @param about the request on whose stream the message arrives, over HTTP */
  says(message: object, about?: number): void {
    this.#host?.send({ type: 'text', text: JSON.stringify({ jsonrpc: '2.0', ...message }), about });
  }

  /** The server's process ends. */
  ends(): void {
    this.#host?.send({
      type: 'gone',
      failure: { reason: 'closed', message: 'ended', carriedOut: 'unknown' },
      final: false,
    });
  }

  of(method: string): readonly Message[] {
    return this.received.filter((message) => message.method === method);
  }

  /** The id of the call of this tool. */
  id(name: string): number {
    const call = this.of('tools/call').findLast(({ params }) => params?.name === name);
    assert.ok(call?.id !== undefined, `${name} was not called`);
    return Number(call?.id);
  }

  /** The answer to a request of the server. */
  answer(id: number): Message | undefined {
    return this.received.find((message) => message.id === id && message.method === undefined);
  }
}

const call = (name: string): { method: string; params: JsonObject } => ({
  method: 'tools/call',
  params: { name, arguments: {} },
});
const FORM = { message: 'Which size?', requestedSchema: { type: 'object', properties: {} } };
const settled = async (): Promise<void> => {
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
};

test('the capabilities declared to a legacy server are the given ones, and no more', async () => {
  const server = new Played('stream', 'legacy');
  const client = await server.open({ elicitation: { form: {} } });
  assert.equal(server.of('initialize')[0]?.params?.capabilities, { elicitation: { form: {} } });
  await client.close();
});

test('each request to a modern server declares its own capabilities, and its result passes as it came', async () => {
  const server = new Played('stream', 'modern');
  const client = await server.open({});
  const first = client.relay({
    ...call('first'),
    capabilities: { sampling: {}, roots: {} },
    meta: { traceparent: 't' },
  });
  const second = client.relay({ ...call('second') });
  await settled();
  const meta = (name: string): unknown =>
    server.of('tools/call').find(({ params }) => params?.name === name)?.params?._meta;
  const [ofFirst, ofSecond] = [meta('first'), meta('second')];
  assert.ok(isObject(ofFirst) && isObject(ofSecond));
  assert.equal(ofFirst[META.clientCapabilities], { sampling: {}, roots: {} });
  assert.is(ofFirst.traceparent, 't');
  assert.equal(ofSecond[META.clientCapabilities], {});
  const asked = {
    resultType: 'input_required',
    inputRequests: { a: { method: 'roots/list' } },
    requestState: 's',
    x: 1,
  };
  server.says({ id: server.id('first'), result: asked });
  server.says({ id: server.id('second'), result: { resultType: 'task', taskId: '7' } });
  assert.equal(await first, asked);
  assert.equal(await second, { resultType: 'task', taskId: '7' });
  const third = client.relay(call('third'));
  await settled();
  server.says({ id: server.id('third'), error: { code: -32042, message: 'open it', data: { elicitations: [] } } });
  const error = await third.catch((reason: unknown) => reason);
  assert.ok(error instanceof ErrorResponse);
  assert.equal([error.code, error.data], [-32042, { elicitations: [] }]);
  await client.close();
});

test('over HTTP the stream names the call that a question belongs to', async () => {
  const server = new Played('http', 'legacy');
  const client = await server.open({ elicitation: {} });
  const ask =
    (name: string) =>
    ({ method, params }: AskedRequest): Promise<JsonObject> =>
      Promise.resolve({ name, method, params });
  const calls = ['old', 'new'].map((name) => client.relay({ ...call(name), ask: ask(name) }));
  await settled();
  server.says({ id: 70, method: 'elicitation/create', params: FORM }, server.id('old'));
  server.says({ id: 71, method: 'sampling/createMessage', params: { messages: [] } }, server.id('new'));
  await settled();
  assert.equal(server.answer(70)?.result, { name: 'old', method: 'elicitation/create', params: FORM });
  assert.equal(server.answer(71)?.result, { name: 'new', method: 'sampling/createMessage', params: { messages: [] } });
  for (const name of ['old', 'new']) server.says({ id: server.id(name), result: {} }, server.id(name));
  await Promise.all(calls);
  await client.close();
});

test('over one stream a question belongs to its task, to the only call, or to the newest that can ask', async () => {
  const server = new Played('stream', 'legacy');
  const client = await server.open({ elicitation: {} });
  const ask = (name: string) => () => Promise.resolve({ name });
  const put = async (id: number, params: JsonObject): Promise<unknown> => {
    server.says({ id, method: 'elicitation/create', params });
    await settled();
    return server.answer(id)?.result?.name ?? server.answer(id)?.error?.code;
  };
  const first = client.relay({ ...call('first'), ask: ask('first') });
  await settled();
  assert.is(await put(70, FORM), 'first');
  const task = client.relay({ method: 'tasks/result', params: { taskId: '7' }, ask: ask('task') });
  const last = client.relay({ ...call('last'), ask: ask('last') });
  const mute = client.relay({ method: 'prompts/get', params: { name: 'p' } });
  await settled();
  assert.is(await put(71, FORM), 'last');
  assert.is(await put(72, { ...FORM, _meta: { [META.relatedTask]: { taskId: '7' } } }), 'task');
  for (const { id, method } of server.received)
    if (method === 'tools/call' || method === 'tasks/result' || method === 'prompts/get')
      server.says({ id, result: {} });
  await Promise.all([first, task, last, mute]);
  assert.is(await put(73, FORM), ErrorCode.MethodNotFound);
  await client.close();
});

test('S-95 on a stream of several callers a question reaches its caller or no caller, and calls take turns after one that was uncertain', async () => {
  const server = new Played('stream', 'legacy');
  const client = await server.open({ elicitation: {}, roots: {} }, false);
  const relay = (name: string, signal?: AbortSignal): Promise<JsonObject> =>
    client.relay({ ...call(name), signal, ask: () => Promise.resolve({ name }) });
  const names = (): readonly unknown[] => server.of('tools/call').map(({ params }) => params?.name);
  const put = async (id: number, method = 'elicitation/create'): Promise<unknown> => {
    server.says({ id, method, params: method === 'roots/list' ? {} : FORM });
    await settled();
    return server.answer(id)?.result?.name ?? server.answer(id)?.error?.message;
  };
  const end = async (name: string): Promise<void> => {
    server.says({ id: server.id(name), result: {} });
    await settled();
  };
  const calls = [relay('a'), relay('b')];
  await settled();
  // Servers ask for roots when they start: that is no reason to take turns.
  assert.match(String(await put(70, 'roots/list')), 'not certain whose call asks');
  calls.push(relay('c'));
  await settled();
  assert.equal(names(), ['a', 'b', 'c']);
  assert.match(String(await put(71)), 'Call again when no other call runs');
  const given = new AbortController();
  const rejected = relay('d', given.signal).catch((error: ClientError) => error.carriedOut);
  calls.push(relay('e'), relay('f'));
  for (const name of ['a', 'b']) await end(name);
  assert.equal(names(), ['a', 'b', 'c']);
  given.abort();
  assert.is(await rejected, 'no', 'it waited, and was not sent');
  await end('c');
  assert.equal(names(), ['a', 'b', 'c', 'e']);
  assert.is(await put(72), 'e');
  await end('e');
  await end('f');
  await Promise.all(calls);
  // A call that was given up may still ask.
  const abort = new AbortController();
  const left = relay('left', abort.signal).catch(() => {});
  await settled();
  abort.abort();
  await left;
  const next = relay('next');
  await settled();
  assert.match(String(await put(73)), 'a call that was cancelled may ask for another minute');
  // Some servers answer a call that was cancelled.
  server.says({ id: server.id('left'), error: { code: 0, message: 'Request cancelled' } });
  assert.is(await put(74), 'next');
  await end('next');
  await next;
  const abandon = new AbortController();
  const silent = relay('silent', abandon.signal).catch(() => {});
  await settled();
  abandon.abort();
  await silent;
  await server.clock.advance(60_000);
  const last = relay('last');
  await settled();
  assert.is(await put(75), 'last');
  await end('last');
  await last;
  await client.close();
});

test('S-95 a call waits two seconds for its turn, and a call whose user thinks holds up no other', async () => {
  const server = new Played('stream', 'legacy');
  const client = await server.open({ elicitation: {} }, false);
  const relay = (name: string, answer: Promise<JsonObject> = Promise.resolve({ name })): Promise<JsonObject> =>
    client.relay({ ...call(name), timeoutMs: 600_000, ask: () => answer });
  const names = (): readonly unknown[] => server.of('tools/call').map(({ params }) => params?.name);
  const put = async (id: number): Promise<unknown> => {
    server.says({ id, method: 'elicitation/create', params: FORM });
    await settled();
    return server.answer(id)?.result?.name ?? server.answer(id)?.error?.message;
  };
  let answer: (given: JsonObject) => void = () => {};
  const calls = [relay('thinks', new Promise((resolve) => (answer = resolve)))];
  await settled();
  assert.is(await put(70), undefined);
  // It may ask several questions at once, so another call waits.
  calls.push(relay('second'));
  await settled();
  assert.equal(names(), ['thinks']);
  await server.clock.advance(2_000);
  assert.equal(names(), ['thinks', 'second']);
  assert.is(await put(71), 'second', 'the handler of the first call waits for its answer');
  calls.push(relay('third'));
  await server.clock.advance(1_999);
  assert.equal(names(), ['thinks', 'second'], 'the second call may ask again');
  await server.clock.advance(1);
  assert.equal(names(), ['thinks', 'second', 'third']);
  assert.match(String(await put(72)), 'not certain whose call asks');
  for (const name of ['third', 'second']) server.says({ id: server.id(name), result: {} });
  await settled();
  // The only question is open: it can be about no other call.
  calls.push(relay('fourth'));
  await settled();
  assert.is(await put(73), 'fourth', 'it has not waited for the call whose user thinks');
  answer({ name: 'late' });
  await settled();
  assert.is(server.answer(70)?.result?.name, 'late');
  assert.match(String(await put(74)), 'not certain whose call asks', 'the first call goes on, and may ask');
  for (const name of ['fourth', 'thinks']) server.says({ id: server.id(name), result: {} });
  await Promise.all(calls);
  await client.close();
});

test('a question that may be one of another call is answered although the call that it was given to has ended', async () => {
  const server = new Played('stream', 'legacy');
  const client = await server.open({ elicitation: {} });
  const answers: ((result: JsonObject) => void)[] = [];
  const outcomes: string[] = [];
  const relay = (name: string, signal?: AbortSignal): Promise<unknown> =>
    client.relay({ ...call(name), signal, ask: () => new Promise((resolve) => void answers.push(resolve)) }).then(
      () => outcomes.push(name),
      (error: ClientError) => outcomes.push(`${name}: ${error.reason}`),
    );
  const abort = new AbortController();
  const calls = [relay('asks'), relay('newest'), relay('cancelled', abort.signal)];
  await settled();
  server.says({ id: server.id('cancelled'), result: {} });
  await settled();
  server.says({ id: 70, method: 'elicitation/create', params: FORM });
  await settled();
  server.says({ id: server.id('newest'), result: {} });
  await settled();
  assert.is(server.answer(70), undefined);
  answers[0]?.({ action: 'accept' });
  await settled();
  assert.equal(server.answer(70)?.result, { action: 'accept' });
  server.says({ id: server.id('asks'), result: {} });
  await Promise.all(calls);
  assert.equal(outcomes, ['cancelled', 'newest', 'asks']);
  // A caller that gives its call up waits for no answer.
  const more = [relay('first'), relay('second', abort.signal)];
  await settled();
  server.says({ id: 71, method: 'elicitation/create', params: FORM });
  await settled();
  server.says({ id: server.id('second'), result: {} });
  await settled();
  abort.abort();
  await more[1];
  assert.is(outcomes.at(-1), 'second');
  server.says({ id: server.id('first'), result: {} });
  await more[0];
  await client.close();
});

test('an answer that fails becomes the error that the server gets', async () => {
  const server = new Played('stream', 'legacy');
  const client = await server.open({ sampling: {} });
  const calling = client.relay({
    ...call('think'),
    ask: () => Promise.reject(new ProtocolError(ErrorCode.InvalidRequest, 'the user declined', { by: 'ada' })),
  });
  await settled();
  server.says({ id: 70, method: 'sampling/createMessage', params: {} });
  await settled();
  assert.equal(server.answer(70)?.error, {
    code: ErrorCode.InvalidRequest,
    message: 'the user declined',
    data: { by: 'ada' },
  });
  server.says({ id: server.id('think'), result: {} });
  await calling;
  await client.close();
});

test('no call times out while a question is open, and an open question ends with its call', async () => {
  const server = new Played('stream', 'legacy');
  const client = await server.open({ elicitation: {} });
  const signals: AbortSignal[] = [];
  const abort = new AbortController();
  const calling = client.relay({
    ...call('slow'),
    signal: abort.signal,
    ask: (_request, signal) =>
      new Promise((_resolve, reject) => {
        signals.push(signal);
        signal.addEventListener('abort', () => reject(new Error('not needed')));
      }),
  });
  const outcome = calling.catch((error: unknown) => error);
  await settled();
  server.says({ id: 70, method: 'elicitation/create', params: FORM });
  await settled();
  await server.clock.advance(600_000);
  assert.equal([signals.length, signals[0]?.aborted], [1, false]);
  abort.abort(new Error('the browser is closed'));
  const error = await outcome;
  assert.ok(error instanceof ClientError && error.reason === 'cancelled');
  await settled();
  assert.ok(signals[0]?.aborted);
  assert.is(server.answer(70)?.error?.code, ErrorCode.InvalidRequest);
  assert.is(server.of('notifications/cancelled')[0]?.params?.requestId, server.id('slow'));
  await client.close();
});

test('a read that has asked is not repeated after a lost connection', async () => {
  const server = new Played('stream', 'legacy');
  const client = await server.open({ elicitation: {} });
  const reading = client.relay({
    method: 'prompts/get',
    params: { name: 'review' },
    ask: () => Promise.resolve({ action: 'decline' }),
  });
  const outcome = reading.catch((error: unknown) => error);
  await settled();
  server.says({ id: 70, method: 'elicitation/create', params: FORM });
  await settled();
  server.ends();
  const error = await outcome;
  assert.ok(error instanceof ClientError);
  assert.equal([error.reason, error.carriedOut, server.of('prompts/get').length], ['closed', 'unknown', 1]);
  await client.close();
});

test('a legacy server logs at the least severe level of all callers, and each gets what it wanted', async () => {
  const server = new Played('stream', 'legacy');
  const client = await server.open({});
  const logged: string[] = [];
  const relay = (name: string, logLevel: 'debug' | 'error' | 'info'): Promise<JsonObject> =>
    client.relay({ ...call(name), logLevel, onLog: ({ data }) => void logged.push(`${name}: ${String(data)}`) });
  const say = (level: string): void => server.says({ method: 'notifications/message', params: { level, data: level } });
  const calls = [relay('first', 'error')];
  await settled();
  say('error');
  say('info');
  calls.push(relay('second', 'info'), relay('third', 'error'));
  await settled();
  say('alert');
  say('info');
  assert.equal(
    server.of('logging/setLevel').map(({ params }) => params?.level),
    ['error', 'info'],
  );
  await settled();
  assert.equal(logged, ['first: error', 'third: alert', 'second: info']);
  for (const name of ['first', 'second', 'third']) server.says({ id: server.id(name), result: {} });
  await Promise.all(calls);
  await client.close();
});

test('on a connection of several callers a log message without a call is dropped, unless one call is in flight', async () => {
  const server = new Played('stream', 'modern');
  const client = await server.open({}, false);
  const logged: string[] = [];
  const relay = (name: string): Promise<JsonObject> =>
    client.relay({
      ...call(name),
      logLevel: 'info',
      onLog: ({ data }) => void logged.push(`${name}: ${String(data)}`),
    });
  const say = (data: string): void => server.says({ method: 'notifications/message', params: { level: 'info', data } });
  const first = relay('first');
  await settled();
  say('one');
  await settled();
  const second = relay('second');
  await settled();
  say('two');
  await settled();
  assert.equal(logged, ['first: one']);
  for (const name of ['first', 'second']) server.says({ id: server.id(name), result: {} });
  await Promise.all([first, second]);
  await client.close();
});

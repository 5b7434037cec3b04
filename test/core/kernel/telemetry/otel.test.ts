/** Spans and metrics through the real OpenTelemetry SDK in memory: every method, both eras, every transport, every parent. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { context, metrics, propagation, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { CompositePropagator, W3CBaggagePropagator, W3CTraceContextPropagator } from '@opentelemetry/core';
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import * as assert from 'uvu/assert';
import { createMachine } from 'xstate';
import { z } from 'zod';
import type { Telemetry } from '../../../../src/core/kernel/telemetry/telemetry.ts';
import type { JsonObject } from '../../../../src/core/protocol/json.ts';
import { type OtelOptions, otel } from '../../../../src/features/telemetry/otel.ts';
import {
  createServer,
  http,
  ProtocolError,
  type Server,
  type ServerOptions,
  socket,
  sqlite,
} from '../../../../src/index.ts';
import { connect, SimulatedClock } from '../../../../src/testing/testing.ts';
import { ALL, accept, Modern } from '../../../features/asking/support.ts';
import {
  deliveryStage,
  receiver,
  SEP,
  subscription,
  untilDelivered,
} from '../../../features/events/delivery/support.ts';
import { startable } from '../../../harness/compiled.ts';
import { suite } from '../../../harness/door.ts';
import { inSession } from '../../../harness/memory.ts';

const test = suite('OpenTelemetry');

const exporter = new InMemorySpanExporter();
const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
const measured = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
const reader = new PeriodicExportingMetricReader({ exporter: measured, exportIntervalMillis: 1_000_000 });
const meters = new MeterProvider({ readers: [reader] });

test.before(() => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(
    new CompositePropagator({ propagators: [new W3CTraceContextPropagator(), new W3CBaggagePropagator()] }),
  );
  trace.setGlobalTracerProvider(provider);
  metrics.setGlobalMeterProvider(meters);
});
test.beforeEach(() => exporter.reset());
test.after(() => meters.shutdown());

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const PARENT = `00-${TRACE}-00f067aa0ba902b7-01`;
const OTHER = '00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-bbbbbbbbbbbbbbbb-01';

function shop(options: OtelOptions = {}, more: Partial<ServerOptions> = {}): Server {
  const server = createServer({ name: 's', version: '1', log: () => {}, telemetry: otel(options), ...more });
  server.tool('echo', { input: z.object({ say: z.string() }) }, ({ say }) => say);
  server.tool('inner', async () => {
    await Promise.resolve();
    const own = trace.getTracer('author').startSpan('query');
    own.end();
    return propagation.getBaggage(context.active())?.getEntry('user')?.value ?? 'no baggage';
  });
  server.tool('fail', () => {
    throw new Error('the kettle is empty');
  });
  server.tool('wrong', () => {
    throw new ProtocolError(-32602, 'not like this');
  });
  server.tool('ask', async (_, ctx) => {
    const { status } = await ctx.elicit({ message: 'Who?', schema: z.object({ name: z.string() }) });
    return status;
  });
  server.tool('slow', { task: 'required' }, () => 'done');
  server.prompt('advise', { arguments: [{ name: 'need', complete: () => ['rest'] }] }, () => 'Rest.');
  server.resource('note://{id}', ({ uri }) => uri);
  server.machine(
    'order',
    createMachine({ initial: 'open', states: { open: { on: { pay: 'paid' } }, paid: { type: 'final' } } }),
    {
      events: { pay: true },
    },
  );
  return server;
}

/** The spans that ended, by name. */
const spans = (): readonly ReadableSpan[] => exporter.getFinishedSpans();
function spanOf(name: string): ReadableSpan {
  const found = spans().filter((span) => span.name === name);
  assert.is(found.length, 1, `expected one span "${name}", got ${spans().map((span) => span.name)}`);
  return found[0] as ReadableSpan;
}
const linksOf = ({ links }: ReadableSpan): string[] => links.map(({ context: { spanId } }) => spanId);

async function callWith(server: Server, name: string, meta: JsonObject, args: JsonObject = {}): Promise<JsonObject> {
  const client = await connect(server);
  const result = await client.modern('tools/call', { name, arguments: args }, meta);
  await client.close();
  return result;
}

test('(G-13) every method of both eras has a span with the name and the attributes of the conventions', async () => {
  const server = shop();
  for (const revision of ['2025-06-18', '2026-07-28'] as const) {
    exporter.reset();
    const legacy = revision === '2025-06-18';
    const client = await connect(server);
    if (legacy) await client.initialize(revision);
    const send = (method: string, params: JsonObject = {}): Promise<unknown> =>
      (legacy ? client.send(method, params) : client.modern(method, params)).catch(() => {});
    const ref = { type: 'ref/prompt', name: 'advise' };
    const shared: readonly (readonly [string, JsonObject, string, JsonObject])[] = [
      ['tools/list', {}, 'tools/list', {}],
      ['tools/call', { name: 'echo', arguments: { say: 'hi' } }, 'tools/call echo', tool('echo')],
      ['tools/call', { name: 'fail' }, 'tools/call fail', { ...tool('fail'), 'error.type': 'tool_error' }],
      ['tools/call', { name: 'wrong' }, 'tools/call wrong', { ...tool('wrong'), ...code('-32602') }],
      ['tools/call', { name: 'nothing' }, 'tools/call', { ...tool('_unknown'), ...code('-32602') }],
      ['prompts/list', {}, 'prompts/list', {}],
      ['prompts/get', { name: 'advise' }, 'prompts/get advise', { 'gen_ai.prompt.name': 'advise' }],
      ['resources/list', {}, 'resources/list', {}],
      ['resources/templates/list', {}, 'resources/templates/list', {}],
      ['resources/read', { uri: 'note://1' }, 'resources/read', { 'mcp.resource.uri': 'note://1' }],
      [
        'completion/complete',
        { ref, argument: { name: 'need', value: '' } },
        'completion/complete advise',
        { 'gen_ai.prompt.name': 'advise' },
      ],
    ];
    const own: typeof shared = legacy
      ? [
          ['ping', {}, 'ping', {}],
          ['logging/setLevel', { level: 'error' }, 'logging/setLevel', {}],
          ['resources/subscribe', { uri: 'note://1' }, 'resources/subscribe', { 'mcp.resource.uri': 'note://1' }],
          ['resources/unsubscribe', { uri: 'note://1' }, 'resources/unsubscribe', { 'mcp.resource.uri': 'note://1' }],
        ]
      : [['server/discover', {}, 'server/discover', {}]];
    for (const [method, params, name, attributes] of [...shared, ...own]) {
      exporter.reset();
      await send(method, params);
      const span = spanOf(name);
      const id = span.attributes['jsonrpc.request.id'];
      const session = span.attributes['mcp.session.id'];
      assert.equal(span.attributes, {
        'mcp.method.name': method,
        'mcp.protocol.version': revision,
        'jsonrpc.request.id': id,
        ...(session === undefined ? {} : { 'mcp.session.id': session }),
        ...attributes,
      });
      assert.type(id, 'string');
      assert.is(span.kind, SpanKind.SERVER);
      assert.is(span.status.code, 'error.type' in attributes ? SpanStatusCode.ERROR : SpanStatusCode.UNSET);
      assert.is(span.status.message, undefined);
      assert.is(typeof session, legacy ? 'string' : 'undefined');
    }
    await client.close();
  }
  await server.close();
});

const tool = (name: string): JsonObject => ({ 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': name });
const code = (text: string): JsonObject => ({ 'error.type': text, 'rpc.response.status_code': text });

test('(G-13) initialize, a subscription and a cancelled call have spans, too', async () => {
  const server = shop();
  const client = await inSession(server, '2025-11-25');
  assert.is(spanOf('initialize').attributes['mcp.protocol.version'], '2025-11-25');
  await client.close();
  const modern = await connect(server);
  modern.modern('subscriptions/listen', { notifications: { toolsListChanged: true } }).catch(() => {});
  await modern.notification('notifications/subscriptions/acknowledged');
  await modern.close();
  await server.close();
  assert.is(spanOf('subscriptions/listen').status.code, SpanStatusCode.UNSET);
});

test('(G-13) the parent is in _meta, else in the HTTP headers; a broken one is ignored', async () => {
  const transport = http({ port: 0 });
  const server = shop();
  await server.listen(transport);
  const post = async (headers: Record<string, string>, meta: JsonObject): Promise<ReadableSpan> => {
    exporter.reset();
    const _meta = {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': { name: 'c', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': {},
      ...meta,
    };
    const response = await fetch(transport.url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'mcp-protocol-version': '2026-07-28',
        'mcp-method': 'tools/call',
        'mcp-name': 'inner',
        ...headers,
      },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name: 'inner', arguments: {}, _meta },
      }),
    });
    assert.is(response.status, 200, await response.text());
    return spanOf('tools/call inner');
  };
  const parentOf = ({ parentSpanContext }: ReadableSpan): string | undefined => parentSpanContext?.traceId;
  const span = await post({}, { traceparent: PARENT, tracestate: 'rojo=1' });
  assert.equal([parentOf(span), span.parentSpanContext?.traceState?.serialize()], [TRACE, 'rojo=1']);
  assert.is(parentOf(await post({ traceparent: PARENT }, {})), TRACE);
  assert.is(parentOf(await post({ traceparent: OTHER }, { traceparent: PARENT })), TRACE);
  assert.is(parentOf(await post({ traceparent: PARENT }, { traceparent: 'broken' })), TRACE);
  assert.is(parentOf(await post({ traceparent: PARENT }, { traceparent: 7, baggage: 7 })), TRACE);
  assert.is(parentOf(await post({ traceparent: `${PARENT}-and-more` }, {})), undefined);
  assert.is(parentOf(await post({}, { traceparent: `00-${'0'.repeat(32)}-00f067aa0ba902b7-01` })), undefined);
  const { attributes } = span;
  assert.equal(
    [
      ...['network.transport', 'network.protocol.name', 'network.protocol.version'],
      ...['client.address', 'server.address', 'server.port'],
    ].map((name) => attributes[name]),
    ['tcp', 'http', '1.1', '127.0.0.1', '127.0.0.1', Number(new URL(transport.url).port)],
  );
  await server.close();
});

test('(G-13) a request that a limit, a rule or a missing scope rejects has a span with the code of its error', async () => {
  const server = shop({}, { limits: { maxInFlight: 1 }, clock: new SimulatedClock() });
  server.tool('closed', { allow: () => ({ deny: 'never' }) }, () => 'open');
  server.tool('scoped', { scopes: ['more'] }, () => 'open');
  server.tool('once', { limits: { perDay: 1 } }, () => 'ran');
  server.tool('wait', (_, { signal }) => new Promise((_resolve, reject) => signal.addEventListener('abort', reject)));
  const client = await inSession(server);
  const call = (name: string): Promise<unknown> => client.send('tools/call', { name, arguments: {} }).catch(() => {});
  for (const name of ['closed', 'scoped', 'once', 'once']) await call(name);
  for (const name of ['closed', 'scoped'])
    assert.is(spanOf(`tools/call ${name}`).attributes['error.type'], '-31004', name);
  assert.equal(
    spans().flatMap(({ name, attributes }) => (name.endsWith('once') ? [attributes['error.type']] : [])),
    [undefined, 'tool_error'],
  );
  client.raw(JSON.stringify({ jsonrpc: '2.0', id: 'w', method: 'tools/call', params: { name: 'wait' } }));
  await call('echo');
  const rejected = spanOf('tools/call echo');
  assert.is(rejected.attributes['error.type'], '-31001');
  assert.is(rejected.status.code, SpanStatusCode.ERROR);
  exporter.reset();
  for (let n = 0; n < 200; n += 1) await call('echo');
  // One of the hundred was used above, and the clock stands still.
  assert.is(spans().length, 99);
  client.notify('notifications/cancelled', { requestId: 'w' });
  await client.close();
  await server.close();
});

test('(G-13) a handler runs inside of its span, with the baggage of the client', async () => {
  const server = shop();
  await callWith(server, 'inner', {});
  assert.is(spanOf('query').parentSpanContext?.spanId, spanOf('tools/call inner').spanContext().spanId);
  exporter.reset();
  server.use(async (_call, _ctx, next) => {
    trace.getTracer('author').startSpan('middleware').end();
    return next();
  });
  const result = await callWith(server, 'inner', { traceparent: PARENT, baggage: 'user=ada' });
  assert.equal(result.content, [{ type: 'text', text: 'ada' }]);
  const call = spanOf('tools/call inner');
  for (const name of ['query', 'middleware']) {
    assert.is(spanOf(name).parentSpanContext?.spanId, call.spanContext().spanId);
    assert.is(spanOf(name).spanContext().traceId, TRACE);
  }
  await server.close();
});

test('(G-13) the span that is active when a request arrives is linked if _meta names another parent', async () => {
  const server = shop();
  const client = await connect(server);
  const outer = trace.getTracer('author').startSpan('http');
  await context.with(trace.setSpan(context.active(), outer), () =>
    client.modern('tools/call', { name: 'echo', arguments: { say: 'hi' } }, { traceparent: PARENT }),
  );
  assert.equal(linksOf(spanOf('tools/call echo')), [outer.spanContext().spanId]);
  await context.with(trace.setSpan(context.active(), outer), () => client.modern('tools/call', { name: 'fail' }, {}));
  const inner = spanOf('tools/call fail');
  assert.equal([inner.parentSpanContext?.spanId, linksOf(inner)], [outer.spanContext().spanId, []]);
  await client.close();
  await server.close();
});

test('(G-13) a question of a session is a CLIENT span, whose context the client receives', async () => {
  const server = shop();
  const client = await inSession(server, '2025-11-25', ALL);
  client.raw(
    JSON.stringify({
      jsonrpc: '2.0',
      id: 7,
      method: 'tools/call',
      params: { name: 'ask', _meta: { traceparent: PARENT } },
    }),
  );
  const asked = (await client.next((message) => hasMethod(message, 'elicitation/create'))) as JsonObject;
  const { _meta } = asked.params as { _meta: { traceparent: string } };
  client.raw(JSON.stringify({ jsonrpc: '2.0', id: asked.id, result: accept({ name: 'Ada' }) }));
  await client.next(
    (message) => typeof message === 'object' && message !== null && 'id' in message && message.id === 7,
  );
  const question = spanOf('elicitation/create');
  const call = spanOf('tools/call ask');
  assert.is(question.kind, SpanKind.CLIENT);
  assert.is(question.parentSpanContext?.spanId, call.spanContext().spanId);
  assert.equal(_meta, { traceparent: `00-${TRACE}-${question.spanContext().spanId}-01` });
  assert.is(question.attributes['jsonrpc.request.id'], asked.id);
  assert.is(question.attributes['mcp.method.name'], 'elicitation/create');
  await client.close();
  await server.close();
});

function hasMethod(message: unknown, method: string): boolean {
  return typeof message === 'object' && message !== null && 'method' in message && message.method === method;
}

test('(G-13) the retry of a request links the request that asked, also in another process', async () => {
  for (const restarts of [false, true]) {
    exporter.reset();
    const keys = ['a secret that is long enough to be one of this server'];
    let server = shop({}, { keys });
    const { requestState } = await (await Modern.of(server)).ask('ask');
    const first = spanOf('tools/call ask');
    exporter.reset();
    if (restarts) {
      await server.close();
      server = shop({}, { keys });
    }
    await (await Modern.of(server)).retry('ask', requestState, { elicit: accept({ name: 'Ada' }) });
    assert.equal(linksOf(spanOf('tools/call ask')), [first.spanContext().spanId], restarts ? 'after a restart' : '');
    await server.close();
  }
});

test('(G-13) requests about a task or a handle link the request that created it, also after a restart', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'troupe-otel-'));
  const open = (): Server => shop({}, { store: sqlite(join(directory, 'store.db')) });
  let server = open();
  const capabilities = { extensions: { 'io.modelcontextprotocol/tasks': {} } };
  const modern = async (): Promise<Modern> => Modern.of(server, capabilities);
  const { taskId } = (await (await modern()).send({ name: 'slow' })) as { taskId: string };
  const created = spanOf('tools/call slow').spanContext().spanId;
  const made = (await (await modern()).send({ name: 'order_create', arguments: {} })) as JsonObject;
  const { handle } = made.structuredContent as { handle: string };
  const creating = spanOf('tools/call order_create').spanContext().spanId;
  for (const restarts of [false, true]) {
    if (restarts) {
      await server.close();
      server = open();
    }
    exporter.reset();
    await (await modern()).send({ taskId }, 'tasks/get');
    assert.equal(linksOf(spanOf('tasks/get')), [created], restarts ? 'after a restart' : '');
    await (await modern()).send({ name: 'order_get', arguments: { handle } });
    assert.equal(linksOf(spanOf('tools/call order_get')), [creating], restarts ? 'after a restart' : '');
  }
  await server.close();
  rmSync(directory, { recursive: true });
});

test('(G-13) sockets are named as their transport', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'troupe-otel-'));
  const path = join(directory, 's.sock');
  const server = shop();
  await server.listen(socket(path));
  const { connect: open } = await import('../../../../src/client/client.ts');
  const client = await open({ socket: path });
  await client.call('echo', { say: 'hi' });
  await client.close();
  await server.close();
  assert.is(spanOf('tools/call echo').attributes['network.transport'], 'unix');
  rmSync(directory, { recursive: true, force: true });
});

test('(G-13) each attempt to deliver an event has a span of its own trace, which links what has emitted it, without the path', async () => {
  const hook = await receiver();
  const { server, as, clock, close } = deliveryStage([hook.origin], { telemetry: otel() });
  server.tool('note', {}, async (_, ctx) => {
    await ctx.emit('note', { n: 1 }, { id: 'e1' });
    return 'noted';
  });
  const ada = await as('ada');
  await ada.modern('events/subscribe', subscription(hook.url), SEP);
  hook.answer = () => 500;
  await ada.modern('tools/call', { name: 'note', arguments: {} });
  await untilDelivered(hook, 1);
  hook.answer = () => 204;
  await untilDelivered(hook, 2, clock, 500);
  const call = spanOf('tools/call note');
  const found = spans().filter(({ name }) => name === 'POST note');
  const { port } = new URL(hook.url);
  assert.equal(
    found.map(({ kind, attributes }) => [kind, attributes]),
    [{ 'error.type': 'http_5xx' }, { 'http.request.resend_count': 1 }].map((more) => [
      SpanKind.CLIENT,
      {
        ...{ 'http.request.method': 'POST', 'server.address': '127.0.0.1', 'server.port': Number(port) },
        ...{ 'troupe.event.name': 'note', 'troupe.event.id': 'e1', ...more },
      },
    ]),
  );
  for (const { parentSpanContext, links } of found) {
    assert.is(parentSpanContext, undefined);
    assert.equal(
      links.map((link) => link.context.spanId),
      [call.spanContext().spanId],
    );
  }
  await close();
  await hook.close();
});

test.full('(G-13) requests over stdio have spans with their transport', async () => {
  const child = spawn(process.execPath, [startable('test/fixtures/telemetry/traced.ts')]);
  let printed = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (printed += text));
  child.stdout.resume();
  const clientInfo = { name: 'c', version: '1' };
  const lines = [
    { id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo } },
    { method: 'notifications/initialized' },
    { id: 2, method: 'tools/call', params: { name: 'echo', arguments: {} } },
  ].map((message) => `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  child.stdin.end(lines.join(''));
  await once(child, 'close');
  const found: readonly { name: string; attributes: JsonObject }[] = JSON.parse(printed);
  assert.equal(
    found.map(({ name, attributes }) => [name, attributes['network.transport'], attributes['mcp.protocol.version']]),
    ['initialize', 'tools/call echo'].map((name) => [name, 'pipe', '2025-11-25']),
  );
});

test('the modes: propagate makes no spans and passes the context on, off does neither', async () => {
  for (const [mode, parent] of [
    ['propagate', '00f067aa0ba902b7'],
    ['off', undefined],
  ] as const) {
    exporter.reset();
    const server = shop({ mode });
    await callWith(server, 'inner', { traceparent: PARENT });
    assert.equal(
      spans().map(({ name, parentSpanContext }) => [name, parentSpanContext?.spanId]),
      [['query', parent]],
    );
    await server.close();
  }
});

test('(G-12) arguments and results are recorded only on request, and redacted', async () => {
  const recorded = async (options: OtelOptions): Promise<unknown[]> => {
    exporter.reset();
    const server = shop(options);
    await callWith(server, 'echo', {}, { say: 'canary' });
    await server.close();
    const { attributes } = spanOf('tools/call echo');
    return [attributes['gen_ai.tool.call.arguments'], attributes['gen_ai.tool.call.result']];
  };
  assert.equal(await recorded({}), [undefined, undefined]);
  assert.equal(await recorded({ arguments: true, results: true }), [
    '{"say":"canary"}',
    '{"content":[{"type":"text","text":"canary"}]}',
  ]);
  const redact = (_value: unknown, what: string): unknown => (what === 'result' ? undefined : { hidden: true });
  assert.equal(await recorded({ arguments: true, results: true, redact }), ['{"hidden":true}', undefined]);
  const broken = (): unknown => {
    throw new Error('cannot');
  };
  assert.equal(await recorded({ arguments: true, results: true, redact: broken }), [undefined, undefined]);
});

test('(G-12) no secret of a request is in a span or in a metric', async () => {
  const server = shop();
  const client = await connect(server, { elicit: () => ({ action: 'accept', content: {} }) });
  await client.initialize('2025-11-25', ALL);
  const session: string[] = [];
  server.tool('session', async (_, ctx) => {
    session.push(ctx.session?.id ?? '');
    await ctx.elicit({ message: 'canary of a question', schema: { type: 'object', properties: {} } });
    throw new Error('canary of an error');
  });
  const meta = { 'com.example/token': 'canary of the meta', progressToken: 'canary of progress' };
  await client.send('tools/call', { name: 'session', arguments: { say: 'canary of arguments' }, _meta: meta });
  await client.send('tools/call', { name: 'canary of a name', arguments: {} }).catch(() => {});
  await client.send('tools/call', { name: 'wrong', arguments: { 'canary of a key': 1 } }).catch(() => {});
  await client.send('prompts/get', { name: 'canary of a prompt', arguments: { need: 'canary' } }).catch(() => {});
  await client.close();
  const modern = await Modern.of(server);
  const { requestState } = await modern.ask('ask');
  await modern.retry('ask', requestState, { elicit: accept({ name: 'canary of an answer' }) });
  await server.close();
  await reader.forceFlush();
  const shown = JSON.stringify([
    spans().map(({ name, attributes, events, links, status }) => ({ name, attributes, events, links, status })),
    measured.getMetrics(),
    server.metrics(),
    server.metrics('openmetrics'),
  ]);
  assert.not.match(shown, 'canary');
  assert.not.match(shown, requestState);
  // Of a request and of a question.
  for (const name of ['tools/call session', 'elicitation/create']) {
    const found = spans().find((span) => span.name === name);
    assert.match(String(found?.attributes['mcp.session.id']), /^[\w-]{22}$/, name);
  }
  assert.is(session.length, 1);
  for (const id of session) assert.ok(id !== '' && !shown.includes(id));
});

test('metrics are recorded with the attributes of the conventions, and read from what the server counts', async () => {
  const server = shop();
  const client = await inSession(server, '2025-11-25');
  await client.send('tools/call', { name: 'fail' });
  await client.close();
  await server.close();
  await reader.forceFlush();
  const found =
    measured
      .getMetrics()
      .at(-1)
      ?.scopeMetrics.flatMap(({ metrics: each }) => each) ?? [];
  const durations = found.find(({ descriptor }) => descriptor.name === 'mcp.server.operation.duration');
  const failed = durations?.dataPoints.find(
    ({ attributes }) =>
      attributes['gen_ai.tool.name'] === 'fail' && attributes['mcp.protocol.version'] === '2025-11-25',
  );
  assert.equal(failed?.attributes, {
    'mcp.method.name': 'tools/call',
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.name': 'fail',
    'mcp.protocol.version': '2025-11-25',
    'error.type': 'tool_error',
  });
  const value = failed?.value as { buckets: { boundaries: number[] } };
  assert.equal(value.buckets.boundaries, [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300]);
  const names = found.map(({ descriptor }) => descriptor.name);
  for (const name of ['mcp.server.session.duration', 'troupe.in_flight', 'troupe.sessions', 'troupe.quarantined'])
    assert.ok(names.includes(name), `${name} in ${names}`);
});

test('a bucket of OpenMetrics names the trace of its last request', async () => {
  const server = shop();
  await callWith(server, 'echo', { traceparent: PARENT }, { say: 'hi' });
  const { spanId } = spanOf('tools/call echo').spanContext();
  assert.match(server.metrics('openmetrics'), `# {trace_id="${TRACE}",span_id="${spanId}"}`);
  assert.not.match(server.metrics(), TRACE);
  await server.close();
});

test('a tracing system that throws fails no request, and is logged', async () => {
  const logged: string[] = [];
  const fail = (): never => {
    throw new Error('the collector burns');
  };
  const systems: Telemetry[] = [
    { begin: fail, ask: fail, session: fail, observe: fail },
    {
      begin: () => ({ traceparent: undefined, sampled: undefined, run: (work) => work(), link: fail, end: fail }),
      ask: () => ({ inject: fail, end: fail }),
      session: fail,
    },
    {
      begin: () => ({
        get traceparent(): string {
          return fail();
        },
        get sampled(): undefined {
          return fail();
        },
        run: fail,
        link: fail,
        end: fail,
      }),
      ask: () => undefined,
      session() {},
    },
  ];
  for (const telemetry of systems) {
    const server = shop({}, { telemetry, log: (_level, message) => void logged.push(message) });
    const client = await connect(server, { elicit: () => ({ action: 'accept', content: { name: 'Ada' } }) });
    await client.initialize('2025-11-25', ALL);
    const { content } = await client.send('tools/call', { name: 'echo', arguments: { say: 'hi' } });
    assert.equal(content, [{ type: 'text', text: 'hi' }]);
    await client.close();
    await server.close();
  }
  assert.is(logged.filter((message) => message.includes('the collector burns')).length, 3);
});

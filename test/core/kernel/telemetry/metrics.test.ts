/** Metrics: what is counted, under which names, and that no client can make their number grow. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { z } from 'zod';
import { Histogram } from '../../../../src/core/kernel/telemetry/instruments.ts';
import { Metrics } from '../../../../src/core/kernel/telemetry/metrics.ts';
import { formatFor, metricsText } from '../../../../src/core/kernel/telemetry/prometheus.ts';
import { createServer, ProtocolError, type Server, type ServerOptions, sqlite } from '../../../../src/index.ts';
import { connect, SimulatedClock, settled } from '../../../../src/testing/testing.ts';
import { accept, Modern } from '../../../features/asking/support.ts';
import { suite } from '../../../harness/door.ts';
import { inSession } from '../../../harness/memory.ts';
import { atScale, times } from '../../../harness/scale.ts';

const test = suite('metrics');

function shop(options: Partial<ServerOptions> = {}): Server {
  const server = createServer({ name: 's', version: '1', log: () => {}, ...options });
  server.tool('echo', { input: z.object({ say: z.string() }) }, ({ say }) => say);
  server.tool('fail', () => {
    throw new Error('the kettle is empty');
  });
  server.tool('odd', () => {
    throw new ProtocolError(-12345 as -32603, 'a code of its own');
  });
  server.tool('wait', (_, { signal }) => new Promise((_resolve, reject) => signal.addEventListener('abort', reject)));
  server.tool('ask', async (_, ctx) => {
    await ctx.elicit({ message: 'Who?', schema: z.object({ name: z.string() }) });
    return 'asked';
  });
  server.prompt('advise', () => 'Rest.');
  server.resource('note://{id}', ({ uri }) => uri);
  return server;
}

/** The value of the sample whose line begins so; undefined if there is none. */
function sample(server: Server, start: string): number | undefined {
  const line = server
    .metrics()
    .split('\n')
    .find((candidate) => candidate.startsWith(`${start} `));
  return line === undefined ? undefined : Number(line.slice(start.length + 1));
}

const count = (labels: string): string => `mcp_server_operation_duration_seconds_count{${labels}}`;
const tool = (name: string, error?: string): string =>
  `mcp_method_name="tools/call",gen_ai_operation_name="execute_tool",gen_ai_tool_name="${name}"${error === undefined ? '' : `,error_type="${error}"`}`;

test('each request is counted once, with its method, its element and its error, in both eras', async () => {
  const server = shop();
  for (const era of ['legacy', 'modern'] as const) {
    const client = await connect(server);
    if (era === 'legacy') await client.initialize();
    const send = (method: string, params = {}): Promise<unknown> =>
      (era === 'modern' ? client.modern(method, params) : client.send(method, params)).catch(() => {});
    await send('tools/list');
    await send('tools/call', { name: 'echo', arguments: { say: 'hi' } });
    await send('tools/call', { name: 'echo', arguments: { say: 1 } });
    await send('tools/call', { name: 'fail' });
    await send('tools/call', { name: 'odd' });
    await send('tools/call', { name: 'nothing' });
    await send('prompts/get', { name: 'advise' });
    await send('prompts/get', { name: 'nothing' });
    await send('resources/read', { uri: 'note://1' });
    await client.close();
  }
  assert.is(sample(server, count('mcp_method_name="initialize"')), 1);
  assert.is(sample(server, count('mcp_method_name="tools/list"')), 2);
  assert.is(sample(server, count(tool('echo'))), 2);
  assert.is(sample(server, count(tool('echo', 'tool_error'))), 2);
  assert.is(sample(server, count(tool('fail', 'tool_error'))), 2);
  assert.is(sample(server, count(tool('odd', '_OTHER'))), 2);
  assert.is(sample(server, count(`${tool('_unknown', '-32602')},rpc_response_status_code="-32602"`)), 2);
  assert.is(sample(server, count('mcp_method_name="prompts/get",gen_ai_prompt_name="advise"')), 2);
  assert.is(sample(server, count('mcp_method_name="resources/read"')), 2);
  assert.is(sample(server, 'troupe_in_flight'), 0);
  assert.is(sample(server, 'troupe_sessions'), 0);
  await server.close();
});

test('durations are those of the clock, and a cancelled request has a duration', async () => {
  const clock = new SimulatedClock();
  const server = shop({ clock });
  const client = await inSession(server);
  client.raw(JSON.stringify({ jsonrpc: '2.0', id: 'w', method: 'tools/call', params: { name: 'wait' } }));
  await settled();
  assert.is(sample(server, 'troupe_in_flight'), 1);
  assert.is(sample(server, 'troupe_sessions'), 1);
  await clock.advance(1_500);
  client.notify('notifications/cancelled', { requestId: 'w' });
  await settled();
  const labels = tool('wait', 'cancelled');
  assert.is(sample(server, `mcp_server_operation_duration_seconds_sum{${labels}}`), 1.5);
  assert.is(sample(server, `mcp_server_operation_duration_seconds_bucket{${labels},le="1.0"}`), 0);
  assert.is(sample(server, `mcp_server_operation_duration_seconds_bucket{${labels},le="2.0"}`), 1);
  assert.is(sample(server, 'troupe_in_flight'), 0);
  await clock.advance(500);
  await client.close();
  await server.close();
  const session = 'mcp_protocol_version="2025-11-25"';
  assert.is(sample(server, `mcp_server_session_duration_seconds_sum{${session}}`), 2);
});

test('a question is counted while it is open, and its duration when it is answered', async () => {
  const server = shop();
  const client = await Modern.of(server);
  const { requestState } = await client.ask('ask');
  assert.is(sample(server, 'troupe_questions'), 1);
  await client.retry('ask', requestState, { elicit: accept({ name: 'Ada' }) });
  assert.is(sample(server, 'troupe_questions'), 0);
  assert.is(sample(server, 'mcp_client_operation_duration_seconds_count{mcp_method_name="elicitation/create"}'), 1);
  await client.client.close();
  await server.close();
});

test('a rejection by a limit is counted under the option of the limit', async () => {
  const server = shop({ limits: { maxInFlight: 1 } });
  const client = await inSession(server);
  client.raw(JSON.stringify({ jsonrpc: '2.0', id: 'w', method: 'tools/call', params: { name: 'wait' } }));
  for (let n = 0; n < 3; n += 1) await client.send('tools/list').catch(() => {});
  assert.is(sample(server, 'troupe_refused_total{troupe_bound="limits.maxInFlight"}'), 3);
  await client.close();
  await server.close();
});

test('the commits of a durable store are measured', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'troupe-metrics-'));
  const server = shop({ store: sqlite(join(directory, 'store.db')) });
  const client = await inSession(server);
  await client.send('tools/call', { name: 'echo', arguments: { say: 'hi' }, _meta: {} });
  await client.close();
  await server.close();
  assert.is(sample(server, 'troupe_store_waiting'), 0);
  assert.ok((sample(server, 'troupe_store_commit_duration_seconds_count') ?? 0) > 0);
  rmSync(directory, { recursive: true });
});

const NAMES = atScale({ quick: 1_000, full: 10_000, proof: 10_000 });
test(`(G-14) ${NAMES} names that do not exist share one series, and the names of an author are bounded`, async () => {
  const server = shop();
  const client = await inSession(server);
  const lines = server.metrics().split('\n').length;
  for (let n = 0; n < NAMES; n += 50) {
    const names = Array.from({ length: 50 }, (_, at) => `made-up-${n + at}`);
    await Promise.allSettled(names.map((name) => client.send('tools/call', { name })));
  }
  const unknown = `${tool('_unknown', '-32602')},rpc_response_status_code="-32602"`;
  assert.is(sample(server, count(unknown)), NAMES);
  // The buckets, the sum and the count of two series: successes, of which there are none, and failures.
  assert.is(server.metrics().split('\n').length - lines, 2 * 17);
  assert.not.match(server.metrics(), 'made-up');
  await client.close();
  await server.close();

  const call = (name: string) =>
    ({ method: 'tools/call', name, arguments: {}, input: undefined, task: undefined }) as const;
  const metrics = new Metrics();
  for (let n = 0; n < 10_000; n += 1) metrics.operation(call(`tool-${n}`), 1, undefined);
  assert.is(metrics.operations.labels.length, 1);
  metrics.knows({ tool: () => true, prompt: () => true });
  for (let n = 0; n < 10_000; n += 1) metrics.operation(call(`tool-${n}`), 1, undefined);
  assert.is(metrics.operations.labels.length, 501);
  for (let n = 0; n < 10_000; n += 1) metrics.refused(`bound ${n}`);
  assert.match(metricsText(metrics.all(), 'prometheus'), 'troupe_refused_total{otel_metric_overflow="true"} 8000');
});

test('(G-14) promtool accepts both formats', async () => {
  const server = shop();
  const client = await inSession(server);
  await client.send('tools/call', { name: 'echo', arguments: { say: 'hi' } });
  await client.send('tools/call', { name: 'nothing' }).catch(() => {});
  const metrics = new Metrics();
  const ids = { traceId: '4bf92f3577b34da6a3ce929d0e0e4736', spanId: '00f067aa0ba902b7' };
  for (const ms of [2, 3])
    metrics.operations.exemplify(
      metrics.operation({ method: 'ping' }, ms, undefined),
      ids,
      ms / 1_000,
      1_700_000_000_123,
    );
  metrics.looped(3);
  metrics.tookOver(341);
  metrics.forwarded('lost');
  const traced = metricsText(metrics.all(), 'openmetrics');
  assert.match(traced, 'troupe_node_takeovers_total 341');
  assert.match(traced, 'troupe_node_forwarded_total{troupe_outcome="lost"} 1');
  assert.match(
    traced,
    /le="0\.01"} 2 # {trace_id="4bf92f3577b34da6a3ce929d0e0e4736",span_id="00f067aa0ba902b7"} 0\.003 1700000000\.123\n/,
  );
  assert.ok(traced.endsWith('\n# EOF\n'));
  const checked = spawnSync('promtool', ['check', 'metrics'], { input: server.metrics(), encoding: 'utf8' });
  if (checked.error) console.error('no promtool here: the syntax of the metrics is not checked by it');
  else {
    assert.equal([checked.status, checked.stderr], [0, '']);
    const directory = mkdtempSync(join(tmpdir(), 'troupe-promtool-'));
    // The full run has the metrics of a server in the second format, too: they have the same writer.
    for (const text of [traced, server.metrics('openmetrics')].slice(0, times(2, { quick: 1 }))) {
      // This command of promtool is the one that reads OpenMetrics. It wants a time in each sample.
      const timed = text.replace(/^([^#\n]+? )([\d.e+-]+)(?= #|$)/gm, '$1$2 1700000000');
      writeFileSync(join(directory, 'metrics'), timed);
      const args = ['tsdb', 'create-blocks-from', 'openmetrics', join(directory, 'metrics'), join(directory, 'blocks')];
      const read = spawnSync('promtool', args, { encoding: 'utf8' });
      assert.equal([read.status, read.stderr], [0, '']);
    }
    rmSync(directory, { recursive: true });
  }
  await client.close();
  await server.close();
});

test('a scraper gets the format that it reads', () => {
  assert.is(formatFor(undefined), 'prometheus');
  assert.is(formatFor('text/plain;version=0.0.4'), 'prometheus');
  assert.is(
    formatFor('application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3'),
    'openmetrics',
  );
  assert.throws(
    () => shop().metrics('xml' as 'prometheus'),
    /expected "prometheus" or "openmetrics", got the string "xml"|got/,
  );
});

test('docs/observe.md lists every metric, with its attributes', () => {
  const page = readFileSync(new URL('../../../../docs/observe.md', import.meta.url), 'utf8');
  const listed = [...page.matchAll(/^\| (`(?:mcp|troupe)\.[^|]*) \| (gauge|counter|histogram)/gm)].flatMap(
    ([, names = '', kind]) => [...names.matchAll(/`([^`]+)`/g)].map(([, name]) => `${name} ${kind}`),
  );
  const kinds = { read: 'gauge', gauge: 'gauge', counter: 'counter', histogram: 'histogram' };
  const server = shop();
  // Every family has its line: those without a series by their description.
  const own = ['sessions', 'tasks', 'handles', 'state.scopes'].map((name) => `troupe.${name} gauge`);
  // Those of a feature that this server does not use.
  const others = [
    ...['nodes', 'cells', 'approvals.open', 'approvals.oldest', 'code.open'].map((name) => `troupe.${name} gauge`),
    ...['webhook.subscriptions', 'webhook.suspended', 'webhook.lag', 'hook.open', 'event.streams'].map(
      (name) => `troupe.${name} gauge`,
    ),
    'troupe.schedule.lateness histogram',
    ...['approvals', 'code.runs', 'code.calls', 'attempts'].map((name) => `troupe.${name} counter`),
    ...['hook.requests', 'events'].map((name) => `troupe.${name} counter`),
  ];
  const counted = new Metrics().all().map(({ description, type }) => `${description.name} ${kinds[type]}`);
  assert.equal(listed.sort(), [...counted, ...own, ...others].sort());
  for (const name of own) assert.match(server.metrics(), `# TYPE ${name.replaceAll('.', '_')}`);
});

test('the delay of the event loop is measured once something reads the metrics', async () => {
  const clock = new SimulatedClock();
  const server = shop({ clock });
  await clock.advance(1_000);
  assert.is(sample(server, 'troupe_loop_delay_seconds_count'), 0);
  await clock.advance(1_000);
  assert.is(sample(server, 'troupe_loop_delay_seconds_count'), 10);
  await server.close();
});

test('a label is escaped, and a bucket counts what is at its bound', () => {
  const histogram = new Histogram({ name: 'a.b', help: 'Help', unit: 's' }, [1, 2]);
  const series = histogram.series({ odd: 'a"b\\c\nd' });
  for (const seconds of [0.5, 1, 1.5, 2, 9]) histogram.observe(series, seconds);
  assert.is(
    metricsText([histogram], 'prometheus'),
    [
      '# HELP a_b_seconds Help',
      '# TYPE a_b_seconds histogram',
      'a_b_seconds_bucket{odd="a\\"b\\\\c\\nd",le="1.0"} 2',
      'a_b_seconds_bucket{odd="a\\"b\\\\c\\nd",le="2.0"} 4',
      'a_b_seconds_bucket{odd="a\\"b\\\\c\\nd",le="+Inf"} 5',
      'a_b_seconds_sum{odd="a\\"b\\\\c\\nd"} 14',
      'a_b_seconds_count{odd="a\\"b\\\\c\\nd"} 5',
      '',
    ].join('\n'),
  );
});

/** Broken builds: traces and metrics. */
import type { BrokenBuild } from './broken-build.ts';

const SPANS = 'test/telemetry/otel.test.ts';
const LOG = 'test/runtime/operator-log.test.ts';
const METRICS = 'test/telemetry/metrics.test.ts';

export const TELEMETRY: readonly BrokenBuild[] = [
  {
    id: 'G-12',
    test: SPANS,
    file: 'src/otel.ts',
    find: "if (takes && operation.method === 'tools/call')",
    replace: "if (operation.method === 'tools/call')",
    why: 'arguments are recorded without being asked for',
  },
  {
    id: 'G-12',
    test: SPANS,
    file: 'src/telemetry/conventions.ts',
    find: "'mcp.session.id': sessionDigest(session)",
    replace: "'mcp.session.id': session",
    why: 'a span has the id of a session, which is the key to it',
  },
  {
    id: 'G-12',
    test: SPANS,
    file: 'src/otel.ts',
    find: 'gives && outcome?.ok === false ?',
    replace: 'outcome?.ok === false ?',
    why: 'the message of an error is recorded without being asked for',
  },
  {
    id: 'G-12',
    test: LOG,
    file: 'src/operator-log.ts',
    find: 'return { type: typeOf(error), message: messageOf(error), stack };',
    replace: 'return { ...(error as object), type: typeOf(error), message: messageOf(error), stack };',
    why: 'an error carries the headers of the request of another library into the log',
  },
  {
    id: 'G-12',
    test: LOG,
    file: 'src/operator-log.ts',
    find: "{ sessionHash: hash('sha256', client.session.id, 'base64url') }",
    replace: '{ sessionHash: client.session.id }',
    why: 'the log has the id of a session, which is the key to it',
  },
  {
    id: 'G-13',
    test: SPANS,
    file: 'src/otel.ts',
    find: 'return meta ? propagation.extract(base, meta, META) : base;',
    replace: 'return base;',
    why: 'the parent in _meta is ignored',
  },
  {
    id: 'G-13',
    test: SPANS,
    file: 'src/executors/executor.ts',
    find: 'span === undefined\n',
    replace: 'span === undefined || request.id !== undefined\n',
    why: 'a handler runs outside of its span',
  },
  {
    id: 'G-13',
    test: SPANS,
    file: 'src/input/interactive-requests.ts',
    find: 'if (state.trace !== undefined)',
    replace: 'if (state.round < 0 && state.trace !== undefined)',
    why: 'a retry does not link the request that asked',
  },
  {
    id: 'G-13',
    test: SPANS,
    file: 'src/handles/load-instance.ts',
    find: '  entry.trace = stored.trace;\n',
    replace: '',
    why: 'a handle forgets the request that created it when its instance leaves memory',
  },
  {
    id: 'G-13',
    test: SPANS,
    file: 'src/telemetry/metrics.ts',
    find: "? 'tool_error' : undefined",
    replace: '? undefined : undefined',
    why: 'a failed tool counts as a success',
  },
  {
    id: 'G-14',
    test: METRICS,
    file: 'src/telemetry/metrics.ts',
    find: 'this.#known.tool(given) ? nameWithin(this.#tools, given) : UNKNOWN',
    replace: 'given',
    why: 'each name that a client invents is a time series',
  },
  {
    id: 'G-14',
    test: METRICS,
    file: 'src/telemetry/prometheus.ts',
    find: 'count += histogram.bucket(series, bucket);',
    replace: 'count = histogram.bucket(series, bucket);',
    why: 'the buckets of a histogram are not cumulative',
  },
  {
    id: 'G-14',
    test: 'test/telemetry/metrics-listener.test.ts',
    file: 'src/transports/http/metrics-listener.ts',
    find: "if (!isLoopback(this.#address.host ?? '127.0.0.1')) return true;",
    replace: 'if (headers !== undefined) return true;',
    why: 'a page under another name can read the metrics',
  },
];

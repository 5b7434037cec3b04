/** Troupe as it is built, for the part of the benchmark that compares tracing with none: `telemetry.mjs none|api|spans|scraped`. */
import { context, propagation, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import { BasicTracerProvider, BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { createServer, http } from 'troupe';
import { otel } from 'troupe/otel';
import { served } from './telling.mjs';

const [way = 'none'] = process.argv.slice(2);
if (way === 'spans') {
  // What a collector costs is another process's: the exporter takes the spans, and drops them.
  const exporter = {
    export: (spans, done) => done({ code: spans.length >= 0 ? 0 : 1 }),
    shutdown: () => Promise.resolve(),
  };
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  trace.setGlobalTracerProvider(
    new BasicTracerProvider({ spanProcessors: [new BatchSpanProcessor(exporter, { maxQueueSize: 65_536 })] }),
  );
}
const server = createServer({
  name: 'bench',
  version: '1.0.0',
  ...(way === 'api' || way === 'spans' ? { telemetry: otel() } : {}),
});
server.tool(
  'echo',
  {
    description: 'Answers the text',
    input: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
  },
  async ({ text }) => text,
);
if (way === 'scraped') setInterval(() => server.metrics('openmetrics'), 1_000).unref();

const transport = http({ port: 0 });
await server.listen(transport);
served(transport.url, () => void server.close().then(() => process.exit()));

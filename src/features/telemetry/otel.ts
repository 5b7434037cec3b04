/** Traces and metrics by OpenTelemetry (`troupe/otel`), with the names of its semantic conventions for MCP. */
import {
  type Context,
  context,
  createNoopMeter,
  isSpanContextValid,
  type Meter,
  metrics,
  type Observable,
  ProxyTracerProvider,
  propagation,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type TextMapGetter,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import * as conventions from '../../core/kernel/telemetry/conventions.ts';
import type { Instrument } from '../../core/kernel/telemetry/instruments.ts';
import { DURATION_BOUNDS } from '../../core/kernel/telemetry/metrics.ts';
import type {
  DeliverySpan,
  EndedSession,
  SeenDelivery,
  SeenQuestion,
  SeenRequest,
  Telemetry,
} from '../../core/kernel/telemetry/telemetry.ts';
import type { InputRequest } from '../../core/messages/client-input.ts';
import type { Ended, QuestionSpan, RequestSpan, TraceIds } from '../../core/messages/spans.ts';
import { isObject } from '../../core/protocol/json.ts';
import * as option from '../../core/protocol/option-rows.ts';
import { toText } from '../../core/store/serialize.ts';

export interface OtelOptions {
  /**
   * `spans` (default): a span for each request and each question. `propagate`: no spans, because another instrumentation
   * makes them; handlers run in the context that the client has sent. `off`: neither.
   */
  readonly mode?: 'spans' | 'propagate' | 'off' | undefined;
  /** Records metrics, too. Default true. */
  readonly metrics?: boolean | undefined;
  /** Records the arguments of tools in spans (`gen_ai.tool.call.arguments`). Default false: they may be secret. */
  readonly arguments?: boolean | undefined;
  /** Records the results of tools (`gen_ai.tool.call.result`) and the messages of errors in spans. Default false. */
  readonly results?: boolean | undefined;
  /** Replaces what is recorded of arguments and results. `undefined` leaves the value out. If it throws, so is the value. */
  redact?(value: unknown, what: 'arguments' | 'result', tool: string): unknown;
}

const SCOPE = 'troupe';
const TRACEPARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;

/**
 * A tracing system for `createServer({ telemetry })`. Uses the providers that the program has registered with
 * `@opentelemetry/api`; without any, it costs little and records nothing. See docs/observe.md.
 *
 * @throws {TypeError} for an unknown or invalid option, with its name and the expected value
 * @example createServer({ name: 'orders', version: '1.0.0', telemetry: otel() });
 */
export function otel(options: OtelOptions = {}): Telemetry {
  // A misspelled `redact` would record secrets.
  option.check('otel: ', options, ROWS);
  return new Otel(options);
}

const ROWS: option.Rows<OtelOptions> = {
  mode: option.oneOf('spans', 'propagate', 'off'),
  metrics: option.flag,
  arguments: option.flag,
  results: option.flag,
  redact: option.expected('a function (value, what, tool)', option.isFunction),
};

class Otel implements Telemetry {
  readonly #options: OtelOptions;
  readonly #recorded: ReturnType<typeof durationsOf> | undefined;
  /** Undefined until the program has registered an SDK. */
  #tracer: Tracer | undefined;

  constructor(options: OtelOptions) {
    this.#options = options;
    const meter = options.metrics === false ? createNoopMeter() : metrics.getMeter(SCOPE);
    this.#recorded = meter === createNoopMeter() ? undefined : durationsOf(meter);
  }

  begin(request: SeenRequest): RequestSpan | undefined {
    const { mode = 'spans' } = this.#options;
    const parent = mode === 'off' ? undefined : parentOf(request);
    const tracer = mode === 'spans' ? this.#tracing() : undefined;
    // Without an SDK, nothing is recorded and nothing has a context.
    if (!tracer && !this.#recorded && (!parent || parent === context.active())) return undefined;
    const attributes = this.#recorded && conventions.meteredAttributes(request);
    const recorded = ({ error, seconds }: Ended, at: Context): void =>
      this.#recorded?.server?.record(seconds, { ...attributes, ...conventions.errorAttributes(error) }, at);
    if (!parent || !tracer) return new OtelSpan(undefined, parent, recorded);
    const ambient = trace.getSpanContext(context.active());
    const links = ambient && ambient !== trace.getSpanContext(parent) ? [{ context: ambient }] : [];
    const begin = { kind: SpanKind.SERVER, attributes: conventions.requestAttributes(request), links };
    const span = tracer.startSpan(conventions.spanNameOf(request), begin, parent);
    const { arguments: takes, results: gives } = this.#options;
    const { operation } = request;
    if (takes && operation.method === 'tools/call') this.#show(span, 'arguments', operation.arguments, operation.name);
    return new OtelSpan(span, trace.setSpan(parent, span), (ended, at) => {
      const { error, outcome } = ended;
      if (gives && operation.method === 'tools/call' && outcome?.ok && outcome.result.kind === 'call')
        this.#show(span, 'result', outcome.result.result, operation.name);
      finish(span, error, gives && outcome?.ok === false ? outcome.error.message : undefined);
      recorded(ended, at);
    });
  }

  ask({ by, method, protocolVersion, session }: SeenQuestion): QuestionSpan {
    const parent = by instanceof OtelSpan ? by.context : context.active();
    const attributes = { 'mcp.method.name': method, ...conventions.sessionAttributes({ protocolVersion, session }) };
    const { mode = 'spans' } = this.#options;
    const begin = { kind: SpanKind.CLIENT, attributes };
    const span = mode === 'spans' ? this.#tracing()?.startSpan(method, begin, parent) : undefined;
    const own = span ? trace.setSpan(parent, span) : parent;
    return {
      inject(id, input) {
        span?.setAttribute('jsonrpc.request.id', id);
        return mode === 'off' ? input : injected(input, own);
      },
      end: ({ error, seconds }) => {
        if (span) finish(span, error, undefined);
        const labels = { 'mcp.method.name': method, 'mcp.protocol.version': protocolVersion };
        this.#recorded?.client?.record(seconds, { ...labels, ...conventions.errorAttributes(error) }, own);
      },
    };
  }

  deliver({ event, id, address, port, failures, traceparent }: SeenDelivery): DeliverySpan | undefined {
    const { mode = 'spans' } = this.#options;
    const attributes = {
      ...{ 'http.request.method': 'POST', 'server.address': address, 'server.port': port },
      ...{ 'troupe.event.name': event, 'troupe.event.id': id },
      ...(failures === 0 ? {} : { 'http.request.resend_count': failures }),
    };
    // A trace of its own: one event may have thousands of deliveries, and the last one may be days later.
    const begin = { kind: SpanKind.CLIENT, attributes, root: true };
    const span = mode === 'spans' ? this.#tracing()?.startSpan(`POST ${event}`, begin) : undefined;
    if (!span) return undefined;
    const own = new OtelSpan(span, undefined, ({ error }) => finish(span, error, undefined));
    if (traceparent !== undefined) own.link(traceparent);
    return own;
  }

  session(ended: EndedSession): void {
    this.#recorded?.sessions?.record(ended.seconds, conventions.endedAttributes(ended));
  }

  observe(instruments: readonly Instrument[], reading: () => void): void {
    if (this.#recorded) for (const instrument of instruments) watch(instrument, this.#recorded.meter, reading);
  }

  #tracing(): Tracer | undefined {
    if (this.#tracer) return this.#tracer;
    const provider = trace.getTracerProvider();
    const registered = provider instanceof ProxyTracerProvider ? provider.getDelegateTracer(SCOPE) : provider;
    if (registered) this.#tracer = trace.getTracer(SCOPE);
    return this.#tracer;
  }

  /** Adds the arguments or the result of a tool to its span. */
  #show(span: Span, what: 'arguments' | 'result', value: unknown, tool: string): void {
    const { redact } = this.#options;
    try {
      const shown = redact ? redact(value, what, tool) : value;
      if (shown !== undefined) span.setAttribute(`gen_ai.tool.call.${what}`, toText(shown));
    } catch {
      // A value that could not be redacted must not be recorded.
    }
  }
}

/** The span of a request, or only its context. */
class OtelSpan implements RequestSpan {
  readonly #span: Span | undefined;
  /** The root if nothing runs in a context of its own. */
  readonly context: Context;
  readonly #ended: (ended: Ended, at: Context) => void;

  constructor(span: Span | undefined, own = ROOT_CONTEXT, ended: (ended: Ended, at: Context) => void) {
    this.#span = span;
    this.context = own;
    this.#ended = ended;
  }

  get traceparent(): string | undefined {
    const ids = trace.getSpanContext(this.context);
    if (!ids || !isSpanContextValid(ids)) return undefined;
    return `00-${ids.traceId}-${ids.spanId}-${ids.traceFlags.toString(16).padStart(2, '0')}`;
  }

  get sampled(): TraceIds | undefined {
    return this.#span?.isRecording() ? this.#span.spanContext() : undefined;
  }

  run<T>(work: () => T): T {
    return this.context === ROOT_CONTEXT ? work() : context.with(this.context, work);
  }

  link(traceparent: string): void {
    const [, traceId, spanId, flags] = TRACEPARENT.exec(traceparent) ?? [];
    if (!traceId || !spanId || !flags || spanId === this.#span?.spanContext().spanId) return;
    this.#span?.addLink({ context: { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true } });
  }

  end(ended: Ended): void {
    this.#ended(ended, this.context);
  }
}

/** The durations, which OpenTelemetry records itself: it cannot read a histogram of the server. */
function durationsOf(meter: Meter) {
  const options = { unit: 's', advice: { explicitBucketBoundaries: [...DURATION_BOUNDS] } };
  const [server, client, sessions] = ['server.operation', 'client.operation', 'server.session'].map((name) =>
    meter.createHistogram(`mcp.${name}.duration`, options),
  );
  return { meter, server, client, sessions };
}

/** Lets OpenTelemetry read what the server counts: of a histogram, the count and the sum. */
function watch(instrument: Instrument, meter: Meter, reading: () => void): void {
  const { name, help: description, unit } = instrument.description;
  const options = { description, unit };
  if (name.startsWith('mcp.')) return;
  if (instrument.type === 'read')
    return meter.createObservableUpDownCounter(name, options).addCallback((to) => to.observe(instrument.read()));
  const show = (observable: Observable, of: (series: number) => number): void =>
    observable.addCallback((to) => {
      reading();
      for (const [series, labels] of instrument.labels.entries()) to.observe(of(series), labels);
    });
  if (instrument.type === 'histogram') {
    show(meter.createObservableCounter(`${name}.count`, { description }), (series) => instrument.count(series));
    show(meter.createObservableCounter(`${name}.sum`, options), (series) => instrument.sum(series));
  } else if (instrument.type === 'counter')
    show(meter.createObservableCounter(name, options), (series) => instrument.value(series));
  else show(meter.createObservableUpDownCounter(name, options), (series) => instrument.value(series));
}

/**
 * The context in which a request is served. `params._meta` has precedence, then what already runs (an instrumentation of
 * HTTP has read the headers), then the HTTP headers. The propagators ignore invalid values.
 */
function parentOf({ http, meta }: SeenRequest): Context {
  const active = context.active();
  const base = http && !trace.getSpanContext(active) ? propagation.extract(active, http, HEADERS) : active;
  return meta ? propagation.extract(base, meta, META) : base;
}

const HEADERS: TextMapGetter<NonNullable<SeenRequest['http']>> = {
  get: (http, name) => http.header(name.toLowerCase()),
  keys: () => [],
};

const META: TextMapGetter<Readonly<Record<string, unknown>>> = {
  get: (meta, name) => (typeof meta[name] === 'string' ? meta[name] : undefined),
  keys: () => [],
};

/** A request to the client, with the context in its `_meta` (SEP-414). */
function injected(input: InputRequest, at: Context): InputRequest {
  const carrier: Record<string, string> = {};
  propagation.inject(at, carrier);
  const { _meta } = input.params;
  return { ...input, params: { ...input.params, _meta: { ...(isObject(_meta) ? _meta : {}), ...carrier } } };
}

function finish(span: Span, error: string | undefined, message: string | undefined): void {
  const code = SpanStatusCode.ERROR;
  if (error !== undefined)
    span
      .setAttributes(conventions.errorAttributes(error))
      .setStatus(message === undefined ? { code } : { code, message });
  span.end();
}

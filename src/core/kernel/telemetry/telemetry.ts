/** The port to a tracing system: spans around requests and around questions to clients, and the ends of sessions. Types only. */
import type { QuestionSpan, RequestSpan } from '../../messages/spans.ts';
import type { Operation } from '../../protocol/operations.ts';
import type { Instrument } from './instruments.ts';

export type { Ended, QuestionSpan, RequestSpan, TraceIds } from '../../messages/spans.ts';

/** The way of a message to the server: its transport, the revision, and the session. */
export interface Carrier {
  /** `stdio`, `socket`, `http`, `http+sse`, `memory`, or the name of a transport of your own. */
  readonly transport: string;
  readonly protocolVersion: string;
  /** The session of a client up to 2025-11-25. A secret: over HTTP it is the key to the session. */
  readonly session: string | undefined;
}

/** A request that was admitted. */
export interface SeenRequest extends Carrier {
  readonly operation: Operation;
  /** Its JSON-RPC id. */
  readonly id: string | number;
  /** The tool or the prompt that it names; `_unknown` for a name that does not exist. */
  readonly element: string | undefined;
  /** `params._meta`, unchanged. */
  readonly meta: Readonly<Record<string, unknown>> | undefined;
  /** The HTTP request that carried it. */
  readonly http: SeenHttp | undefined;
}

interface SeenHttp {
  /** The value of a header, by its name in lower case. */
  header(name: string): string | undefined;
  /** Its version, such as `1.1`. */
  readonly version?: string | undefined;
  readonly remoteAddress?: string | undefined;
  /** The address and the port at which the request arrived. */
  readonly localAddress?: string | undefined;
  readonly localPort?: number | undefined;
}

/** A question that is sent to a client. */
export interface SeenQuestion extends Omit<Carrier, 'transport'> {
  readonly method: string;
  /** The span of the request that asks. */
  readonly by: RequestSpan | undefined;
}

/** An attempt to deliver an event to a callback. */
export interface SeenDelivery {
  /** The name of its type, and its id. */
  readonly event: string;
  readonly id: string;
  /** The host of the callback, without its port. Its path may be a secret. */
  readonly address: string;
  readonly port: number;
  /** The attempts that have failed since its endpoint last accepted something. */
  readonly failures: number;
  /** The `traceparent` of what has emitted the event. */
  readonly traceparent: string | undefined;
}

/** The span of a delivery. `error` of its end is the category of the failure. */
export type DeliverySpan = Pick<RequestSpan, 'end'>;

/** The end of a session. */
export interface EndedSession extends Carrier {
  readonly seconds: number;
  readonly error: string | undefined;
}

/** A tracing system. `troupe/otel` is one; each function may throw, and is then logged and ignored. */
export interface Telemetry {
  /** A request was admitted. @returns its span; undefined if it has none */
  begin(request: SeenRequest): RequestSpan | undefined;
  /** A question is sent to a client. @returns its span; undefined if it has none */
  ask(question: SeenQuestion): QuestionSpan | undefined;
  /** An event is sent to a callback. @returns its span; undefined if it has none */
  deliver?(delivery: SeenDelivery): DeliverySpan | undefined;
  /** A session has ended. */
  session(ended: EndedSession): void;
  /** Called once, with the server's metrics. @param reading must be called when the metrics are read */
  observe?(instruments: readonly Instrument[], reading: () => void): void;
}

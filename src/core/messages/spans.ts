/** The spans of a tracing system, as the parts of the server use them. Types only. */
import type { InputRequest } from './client-input.ts';
import type { Outcome } from './results.ts';

/** The end of a span. */
export interface Ended {
  /** `error.type`: a JSON-RPC code, `tool_error` or `cancelled`; undefined for a success. */
  readonly error: string | undefined;
  readonly seconds: number;
  /** Absent if there was no response. */
  readonly outcome?: Outcome;
}

/** The ids of a trace, in hexadecimal digits. */
export interface TraceIds {
  readonly traceId: string;
  readonly spanId: string;
}

/** The span of a request. */
export interface RequestSpan {
  /** The span as a W3C `traceparent`, which is stored with tasks, handles and sealed states; undefined if there is no trace. */
  readonly traceparent: string | undefined;
  /** Set if the trace is recorded, so that a metric may name it. */
  readonly sampled: TraceIds | undefined;
  /** Runs a function inside of the span, so that what it calls belongs to the trace. @returns what the function returns */
  run<T>(work: () => T): T;
  /** Links another span: that of the request that began what this one continues. @param traceparent of the other */
  link(traceparent: string): void;
  end(ended: Ended): void;
}

/** The span of a question. */
export interface QuestionSpan {
  /** Adds the context of the span to a request that is sent, with its JSON-RPC id. @returns the request to send */
  inject(id: string, input: InputRequest): InputRequest;
  end(ended: Ended): void;
}

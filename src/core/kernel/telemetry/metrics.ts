/**
 * The metrics of one server, which are always counted: names and attributes of OpenTelemetry's conventions for MCP, and
 * Troupe's own under `troupe.`.
 */

import type { HopEnd } from '../../messages/hop-records.ts';
import type { Outcome, Result } from '../../messages/results.ts';
import { ErrorCode } from '../../protocol/errors.ts';
import type { Operation } from '../../protocol/operations.ts';
import { elementAttributes, errorAttributes, UNKNOWN } from './conventions.ts';
import { type Description, Histogram, type Instrument, type Labels, ReadGauge, Sum } from './instruments.ts';

/** The bounds that OpenTelemetry's conventions for MCP ask for, in seconds. */
export const DURATION_BOUNDS: readonly number[] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300];
/** Sessions live longer than operations: up to a day. */
const SESSION_BOUNDS: readonly number[] = [1, 10, 60, 300, 900, 1_800, 3_600, 14_400, 43_200, 86_400];
const DELAY_BOUNDS: readonly number[] = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 5];
const COMMIT_BOUNDS: readonly number[] = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 5];

/** The label of an error code that is not one of {@link ErrorCode}, and of names beyond {@link MAX_NAMES}. */
const OTHER = '_OTHER';
/** Maximum number of names of tools, and of prompts, with series of their own. Further ones share a series. */
const MAX_NAMES = 500;
/** The error of a request that its client has cancelled: it has no response and so no code. */
export const CANCELLED = 'cancelled';

const CODES: ReadonlySet<string> = new Set(Object.values(ErrorCode).map(String));

/** The reason for the denial of a request. */
export type Denial =
  /** No token, or no principal. */
  | 'unauthenticated'
  /** A token that is malformed, expired, or for another server. */
  | 'invalid token'
  /** Scopes are missing. */
  | 'scope'
  /** A rule denied. */
  | 'rule'
  /** A rule hides the element. */
  | 'hidden'
  /** A rule failed, or took too long. */
  | 'failed rule'
  /** The issuer of the token could not be asked. */
  | 'unavailable';

/** The time series of one element or method: of its successes, and of each kind of failure. */
interface OperationSeries {
  readonly labels: Labels;
  readonly ok: number;
  readonly failed: Map<string, number>;
}

/** Finds out if a tool or a prompt of this name exists. */
interface KnownNames {
  tool(name: string): boolean;
  prompt(name: string): boolean;
}

export class Metrics {
  readonly operations = new Histogram(
    duration('mcp.server.operation.duration', 'Time from the admission of a request to its response.'),
    DURATION_BOUNDS,
  );
  readonly sessions = new Histogram(
    duration('mcp.server.session.duration', 'Lifetime of a session of a client up to 2025-11-25.'),
    SESSION_BOUNDS,
  );
  /** Requests of this server to its clients: elicitation, sampling, roots. */
  readonly asked = new Histogram(
    duration('mcp.client.operation.duration', 'Time from a question to the client until its answer.'),
    DURATION_BOUNDS,
  );
  readonly loopDelay = new Histogram(
    duration('troupe.loop.delay', 'Time by which the event loop runs a timer late.'),
    DELAY_BOUNDS,
  );
  readonly commits = new Histogram(
    duration('troupe.store.commit.duration', 'Time from a commit until its data is durable.'),
    COMMIT_BOUNDS,
  );
  /** Requests without a response, except subscriptions. Their in-flight tables count them. */
  inFlight = 0;
  readonly #inFlight = new ReadGauge(
    { name: 'troupe.in_flight', unit: '{request}', help: 'Requests without a response, except subscriptions.' },
    () => this.inFlight,
  );
  readonly #questions = gauge('troupe.questions', '{question}', 'Questions to clients without an answer.');
  readonly #waiting = gauge('troupe.store.waiting', '{commit}', 'Commits that are not durable yet.');
  readonly #refused = counter('troupe.refused', '{request}', 'Requests rejected by a limit, by its option.');
  readonly #denied = counter('troupe.denied', '{request}', 'Requests denied by authentication or a rule.');
  readonly #deadLetters = counter(
    'troupe.dead_letters',
    '{letter}',
    'Messages that failed and are never processed again.',
  );
  readonly #quarantined = counter(
    'troupe.quarantined',
    '{actor}',
    'Actors quarantined because they crashed too often.',
  );
  readonly #dropped = counter('troupe.stream.dropped', '{notification}', 'Notifications dropped for slow clients.');
  readonly #takeovers = counter('troupe.node.takeovers', '{cell}', 'Cells taken over from a node that has died.');
  readonly #forwarded = counter(
    'troupe.node.forwarded',
    '{request}',
    'Requests forwarded to the owners of their cells.',
  );
  readonly #read: Instrument[] = [];
  /** By method, and by the name of the tool or the prompt; the name is empty for other methods. */
  readonly #series = new Map<string, Map<string, OperationSeries>>();
  readonly #asks = new Map<string, OperationSeries>();
  readonly #sessionSeries = new Map<string, number>();
  #known: KnownNames = { tool: () => false, prompt: () => false };
  #beforeRead: () => void = () => {};
  readonly #only = {
    questions: this.#questions.series({}),
    waiting: this.#waiting.series({}),
    deadLetters: this.#deadLetters.series({}),
    quarantined: this.#quarantined.series({}),
    dropped: this.#dropped.series({}),
    takeovers: this.#takeovers.series({}),
    loopDelay: this.loopDelay.series({}),
    commits: this.commits.series({}),
  };

  /** Sets the registries. Until then no tool and no prompt has a name. */
  knows(known: KnownNames): void {
    this.#known = known;
  }

  /** Adds a gauge whose value is read with the metrics. */
  gauge(name: string, unit: string, help: string, read: () => number): void {
    this.#read.push(new ReadGauge({ name, unit, help }, read));
  }

  /** Adds a counter. @returns counts one more with a label */
  counter(name: string, unit: string, help: string, label: string): (value: string) => void {
    const sum = counter(name, unit, help);
    this.#read.push(sum);
    return (value) => sum.count(label, value);
  }

  /** Adds an instrument of a feature. */
  add(instrument: Instrument): void {
    this.#read.push(instrument);
  }

  /** Calls a function each time before the metrics are read. */
  whenRead(callback: () => void): void {
    this.#beforeRead = callback;
  }

  /** Everything that is counted, with its values. */
  read(): readonly Instrument[] {
    this.#beforeRead();
    return this.all();
  }

  /** Everything that is counted. */
  all(): readonly Instrument[] {
    return [
      this.operations,
      this.sessions,
      this.asked,
      this.#inFlight,
      this.#questions,
      ...this.#read,
      this.#refused,
      this.#denied,
      this.loopDelay,
      this.commits,
      this.#waiting,
      this.#deadLetters,
      this.#quarantined,
      this.#dropped,
      this.#takeovers,
      this.#forwarded,
    ];
  }

  /**
   * Counts a request that has ended.
   *
   * @param error {@link errorTypeOf} of its outcome, or {@link CANCELLED}
   * @returns the place of its bucket in {@link operations}, for the exemplar of its trace
   */
  operation(operation: Operation, ms: number, error: string | undefined): number {
    const name = 'name' in operation ? operation.name : '';
    const series = this.#series.get(operation.method)?.get(name) ?? this.#newSeries(operation);
    return this.operations.observe(
      error === undefined ? series.ok : failureOf(this.operations, series, error),
      ms / 1_000,
    );
  }

  /** The tool or the prompt that an operation names, as metrics show it: a client may name any. */
  elementOf(operation: Operation): string | undefined {
    if (operation.method === 'tools/call') return this.#known.tool(operation.name) ? operation.name : UNKNOWN;
    const prompt =
      operation.method === 'prompts/get'
        ? operation.name
        : operation.method === 'completion/complete' && operation.ref.type === 'ref/prompt'
          ? operation.ref.name
          : undefined;
    return prompt === undefined || this.#known.prompt(prompt) ? prompt : UNKNOWN;
  }

  /** A question was sent to a client. */
  asking(): void {
    this.#questions.add(this.#only.questions, 1);
  }

  /** A question has ended. @param error undefined if the client has answered it */
  answered(method: string, ms: number, error: string | undefined): void {
    this.#questions.add(this.#only.questions, -1);
    let series = this.#asks.get(method);
    if (!series) {
      series = seriesOf(this.asked, { 'mcp.method.name': method });
      this.#asks.set(method, series);
    }
    this.asked.observe(error === undefined ? series.ok : failureOf(this.asked, series, error), ms / 1_000);
  }

  /** A session has ended. Its protocol version is one of those that this server speaks. */
  session(protocolVersion: string, ms: number): void {
    let series = this.#sessionSeries.get(protocolVersion);
    if (series === undefined) {
      series = this.sessions.series({ 'mcp.protocol.version': protocolVersion });
      this.#sessionSeries.set(protocolVersion, series);
    }
    this.sessions.observe(series, ms / 1_000);
  }

  /** A request was rejected by a limit. @param bound the option that sets the limit, as in the message to the client */
  refused(bound: string): void {
    this.#refused.count('troupe.bound', bound);
  }

  /** A request was denied. */
  denied(why: Denial): void {
    this.#denied.count('troupe.rule', why);
  }

  committing(): void {
    this.#waiting.add(this.#only.waiting, 1);
  }

  /** A commit is durable, or has failed. */
  committed(ms: number): void {
    this.#waiting.add(this.#only.waiting, -1);
    this.commits.observe(this.#only.commits, ms / 1_000);
  }

  deadLetter(): void {
    this.#deadLetters.add(this.#only.deadLetters, 1);
  }

  quarantined(): void {
    this.#quarantined.add(this.#only.quarantined, 1);
  }

  dropped(notifications: number): void {
    this.#dropped.add(this.#only.dropped, notifications);
  }

  tookOver(cells: number): void {
    this.#takeovers.add(this.#only.takeovers, cells);
  }

  /** A request that this node has forwarded has ended. */
  forwarded(end: HopEnd): void {
    this.#forwarded.count('troupe.outcome', end);
  }

  looped(ms: number): void {
    this.loopDelay.observe(this.#only.loopDelay, ms / 1_000);
  }

  #newSeries(operation: Operation): OperationSeries {
    const { method } = operation;
    const all = this.#series.get(method) ?? new Map<string, OperationSeries>();
    this.#series.set(method, all);
    const element = 'name' in operation ? this.elementOf(operation) : undefined;
    const name = element === undefined || element === UNKNOWN || all.size < MAX_NAMES ? element : OTHER;
    const known = all.get(name ?? '');
    if (known) return known;
    const series = seriesOf(this.operations, elementAttributes(method, name));
    all.set(name ?? '', series);
    return series;
  }
}

/**
 * The `error.type` of an outcome: the code of its error; `tool_error` for a tool result with `isError`, which neither
 * JSON-RPC nor HTTP shows; undefined for a success.
 */
export function errorTypeOf(outcome: Outcome): string | undefined {
  if (!outcome.ok) return errorTypeOfCode(outcome.error.code);
  // An executor of the author's may give nothing, despite its type: the emitter answers such a request with an error.
  let result: Result | null | undefined = outcome.result;
  while (result?.kind === 'task result') result = result.result;
  return result?.kind === 'call' && result.result?.isError === true ? 'tool_error' : undefined;
}

/** The `error.type` of an error with this code: a client may send any. */
export function errorTypeOfCode(code: number): string {
  const text = String(code);
  return CODES.has(text) ? text : OTHER;
}

function seriesOf(histogram: Histogram, labels: Labels): OperationSeries {
  return { labels, ok: histogram.series(labels), failed: new Map() };
}

/** There are as many kinds of failures as codes, so the map is small. */
function failureOf(histogram: Histogram, { labels, failed }: OperationSeries, error: string): number {
  const known = failed.get(error);
  if (known !== undefined) return known;
  const series = histogram.series({ ...labels, ...errorAttributes(error) });
  failed.set(error, series);
  return series;
}

function duration(name: string, help: string): Description {
  return { name, help, unit: 's' };
}

function gauge(name: string, unit: string, help: string): Sum {
  return new Sum('gauge', { name, unit, help });
}

function counter(name: string, unit: string, help: string): Sum {
  return new Sum('counter', { name, unit, help });
}

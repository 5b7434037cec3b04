/** The context of one request: creates each expensive member on first use, and follows the request that carries its handler. */

import type { Context, Log } from '../../core/execution/context.ts';
import type { ToolImplementation } from '../../core/execution/execution.ts';
import type { Asking } from '../../core/execution/questions.ts';

import { LONGEST_TIMER_MS } from '../../core/kernel/clock.ts';
import { ANONYMOUS } from '../../core/kernel/quota.ts';
import type { Auth } from '../../core/messages/auth.ts';
import type { ListView } from '../../core/messages/authorization-rule.ts';
import type { SessionFacts } from '../../core/messages/client-facts.ts';
import type { InputRequest, Reply } from '../../core/messages/client-input.ts';
import type { RequestView } from '../../core/messages/request-view.ts';
import { describe, isJsonObject, type JsonObject } from '../../core/protocol/json.ts';
import type { RequestId } from '../../core/protocol/jsonrpc.ts';
import { type ClientCapabilities, LOG_LEVELS, type LogLevel } from '../../core/protocol/types.ts';
import { showsViews } from '../../core/protocol/views.ts';
import { notifyAborted } from '../../core/requests/active-request.ts';
import { type Asker, type AskerOptions, makeAsking } from './asker.ts';
import type { HandlerRun } from './input-messages.ts';
import type { InteractiveRequests } from './interactive-requests.ts';
import { type RequestStorage, stepLabel } from './request-record.ts';
import { copyOf, StepLog } from './step-log.ts';

/** The run of a handler, where it differs from a request that ends with its process. */
export interface RunOptions {
  /** Set if the model that called is asked when the client cannot be. */
  readonly model?: AskerOptions['model'];
  /** The call is a task or may become one: another process may continue it, even if it has asked nothing. */
  readonly lasting?: boolean;
}

const STRUCTURED = Object.freeze({ structured: true });
const UNSTRUCTURED = Object.freeze({ structured: false });

/** Describes how to ask the model that calls this tool. */
export function modelFor({ output }: ToolImplementation): RunOptions['model'] {
  return output === undefined ? UNSTRUCTURED : STRUCTURED;
}

const AS_REQUEST: RunOptions = Object.freeze({});

/** The checkpoints of a statechart that runs for a call. */
export interface Checkpoints {
  /** The last checkpoint of an earlier run; undefined if there is none. */
  readonly before: string | undefined;
  /** The call may be continued by another process although it has asked nothing. */
  readonly lasting: boolean;
  /** Returns the durable record of the call; undefined if nothing of this call is persisted. */
  storage(): RequestStorage | undefined;
}

/** Works only for a context of this package: an author's executor may pass its handlers another. */
export function checkpointsOf(ctx: Context): Checkpoints | undefined {
  return ctx instanceof RequestContext ? ctx.checkpoints : undefined;
}

/** Calls back once the request is aborted. A signal with a listener would take a kilobyte for each waiting call. */
export function whenAborted(ctx: Context, callback: () => void): void {
  if (ctx instanceof RequestContext) ctx.whenAborted(callback);
  else ctx.signal.addEventListener('abort', callback, { once: true });
}

/** The client on whose behalf a call is made elsewhere: its state there must not be mixed with that of other clients. */
export interface CallOwner {
  /** The same for all calls of a session, a connection or an authenticated principal; unique for an anonymous call. */
  readonly key: string;
  /** The capabilities that the client declares now. */
  readonly capabilities: ClientCapabilities;
  readonly principal: string;
  /** Its session; undefined for a modern client. */
  readonly session: SessionFacts | undefined;
  /** The key is that of one anonymous call, and ends with it. */
  readonly once: boolean;
}

/**
 * Asks the client questions of another server: method and params unchanged, as far as the client's revision can represent
 * them. They wait, are sealed and persisted as those of `ctx.ask`. If the handler runs again, it must ask the same
 * questions in the same order.
 *
 * @param requests 1 to 32 questions by name
 * @returns the replies by the same names, unchecked. A client of a session may reply with an error
 * @throws {CannotAsk} for a question whose capability the client has not declared; {@link Unanswered} as `ctx.ask`
 * @example const { a: reply } = await askVerbatim(ctx, { a: { method: 'roots/list', params: {} } });
 */
export function askVerbatim(
  ctx: Context,
  requests: Readonly<Record<string, InputRequest>>,
  signal?: AbortSignal,
): Promise<Readonly<Record<string, Reply>>> {
  return ours(ctx).askVerbatim(requests, signal);
}

/**
 * Turns a call of a tool into a task now, if its client has declared that it takes tasks.
 *
 * @returns true if the call is a task, or becomes one as soon as the task is durable
 */
export function becomeTask(ctx: Context): boolean {
  return ours(ctx).becomeTask();
}

/** True if a call is a task, or will be one once the task is durable. */
export function isTask(ctx: Context): boolean {
  return ours(ctx).isTask;
}

/** Returns the client on whose behalf a handler makes calls elsewhere. */
export function ownerOfCall(ctx: Context): CallOwner {
  return ours(ctx).owner;
}

/**
 * Gives a call another time from now on, such as more while it waits for a person who signs in.
 *
 * @returns gives the call its own time again
 */
export function prolong(ctx: Context, ms: number): () => void {
  return ours(ctx).prolong(ms);
}

/** Returns the part of a list that the caller of a request sees; undefined: all of it. */
export function listViewOf(ctx: Context): ListView | undefined {
  return ours(ctx).view;
}

/** Returns the least severe log messages that the client of a call wants; undefined: none. */
export function logLevelOf(ctx: Context): LogLevel | undefined {
  return ours(ctx).logLevel;
}

/** Returns the steps that earlier runs of the same call have recorded, by name; undefined in the first run. */
export function earlierSteps(ctx: Context): JsonObject | undefined {
  return ours(ctx).earlier;
}

/** True if another process continues this call, which ends here: what it has begun elsewhere must not be cancelled. */
export function continuesElsewhere(ctx: Context): boolean {
  return ours(ctx).continuesElsewhere;
}

/** Extends the deadline of a call that waits for the task of another server, to `limits.maxTimeoutMs`. */
export function waitLonger(ctx: Context): void {
  ours(ctx).waitLonger();
}

function ours(ctx: Context): RequestContext {
  if (ctx instanceof RequestContext) return ctx;
  throw new TypeError('expected the context of a call as this package passes it to handlers');
}

/** The context of one request. Expensive members are created on first use. */
export class RequestContext implements Context, HandlerRun {
  /** The current request. A client that was asked something continues with a new request. */
  #request: RequestView;
  readonly #first: RequestView;
  readonly #interactive: InteractiveRequests;
  readonly #options: RunOptions;
  #timeoutMs: number | undefined;
  #progress: Context['progress'] | undefined;
  #step: Context['step'] | undefined;
  #closeStream: Context['closeStream'] | undefined;
  #log: Log | undefined;
  #asking: Asker | undefined;
  #steps: StepLog | undefined;
  /** Milliseconds of running time until the handler last began to wait for its client. */
  #ran = 0;
  /** The time at which it last continued; undefined while it waits. */
  #since: number | undefined;

  /**
   * @param interactive holds the requests that ask, and their durable records
   * @param timeoutMs milliseconds, if the handler needs another timeout than the server's default
   */
  constructor(request: RequestView, interactive: InteractiveRequests, timeoutMs?: number, options = AS_REQUEST) {
    this.#request = request;
    this.#first = request;
    this.#since = request.admitted;
    this.#interactive = interactive;
    this.#options = options;
    this.#timeoutMs = timeoutMs;
    this.#allow();
    // Continues a request of another process, or one that was evicted. From now on no other request may continue it.
    if (request.recorded?.id !== undefined) interactive.interact(request, this);
  }

  continueFor(request: RequestView): void {
    this.#request = request;
    this.#allow();
  }

  steps(): JsonObject {
    return this.#steps?.recorded() ?? this.#first.recorded?.steps ?? {};
  }

  #allow(): void {
    const request = this.#request;
    const timeoutMs = this.#timeoutMs;
    if (timeoutMs !== undefined) request.requests.send({ type: 'extend deadline', request, timeoutMs });
  }

  waits(waiting: boolean): void {
    const now = this.#interactive.clock.now();
    if (!waiting) {
      this.#since ??= now;
      return;
    }
    if (this.#since !== undefined) this.#ran += now - this.#since;
    this.#since = undefined;
  }

  get elapsedMs(): number {
    return this.#ran + (this.#since === undefined ? 0 : this.#interactive.clock.now() - this.#since);
  }

  get signal(): AbortSignal {
    return this.#first.signal;
  }

  whenAborted(callback: () => void): void {
    notifyAborted(this.#first, callback);
  }

  get elicit(): Asking['elicit'] {
    return this.#ask.elicit;
  }

  get elicitUrl(): Asking['elicitUrl'] {
    return this.#ask.elicitUrl;
  }

  get sample(): Asking['sample'] {
    return this.#ask.sample;
  }

  get roots(): Asking['roots'] {
    return this.#ask.roots;
  }

  get ask(): Asking['ask'] {
    return this.#ask.ask;
  }

  get #ask(): Asker {
    this.#asking ??= makeAsking({
      interactiveRequest: () => this.#interactive.interact(this.#first, this),
      client: () => this.#request.client,
      contextDropped: () => this.#interactive.contextDropped(this.#request),
      model: this.#options.model,
    });
    return this.#asking;
  }

  askVerbatim(requests: Readonly<Record<string, InputRequest>>, signal?: AbortSignal): ReturnType<Asker['verbatim']> {
    return this.#ask.verbatim(requests, signal);
  }

  prolong(ms: number): () => void {
    const request = this.#request;
    const { timeoutMs } = request;
    request.requests.send({ type: 'extend deadline', request, timeoutMs: ms });
    return () => {
      if (!request.settled) request.requests.send({ type: 'extend deadline', request, timeoutMs });
    };
  }

  /** @returns whether the call is a task now, or will be once the task is durable */
  becomeTask(): boolean {
    return this.isTask;
  }

  get isTask(): boolean {
    return this.#options.lasting === true;
  }

  /** The steps that earlier runs of the call have recorded; undefined in its first run. */
  get earlier(): JsonObject | undefined {
    const { recorded } = this.#first;
    return recorded?.id === undefined ? undefined : recorded.steps;
  }

  get continuesElsewhere(): boolean {
    return this.#interactive.continuesElsewhere(this.#first);
  }

  waitLonger(): void {
    this.#timeoutMs = this.#interactive.maxTimeoutMs;
    this.#allow();
  }

  get view(): ListView | undefined {
    return this.#request.view;
  }

  get logLevel(): LogLevel | undefined {
    return this.#request.client.logLevel;
  }

  get owner(): CallOwner {
    const { client, exchange, key, requests } = this.#first;
    const { session, principal } = client;
    const { capabilities } = this.#request.client;
    const of = { capabilities, principal, session, once: false };
    if (session) return { key: `session/${session.id}`, ...of };
    // A connection that is not shared belongs to one client.
    if (!exchange) return { key: requests.address, ...of };
    return principal === ANONYMOUS
      ? { ...of, key: `call/${key}`, once: true }
      : { ...of, key: `principal/${principal}` };
  }

  get client(): Context['client'] {
    const { info, capabilities, dialect } = this.#request.client;
    return { info, capabilities, revision: dialect.revision, era: dialect.era, views: showsViews(capabilities) };
  }

  get session(): Context['session'] {
    const { session } = this.#request.client;
    return session && { id: session.id };
  }

  get principal(): string {
    return this.#request.client.principal;
  }

  get auth(): Auth | undefined {
    return this.#request.auth;
  }

  get requestId(): RequestId {
    return this.#request.id;
  }

  get meta(): JsonObject {
    const { meta } = this.#request;
    return isJsonObject(meta) ? meta : {};
  }

  get log(): Log {
    this.#log ??= makeLog(() => this.#request);
    return this.#log;
  }

  /** Bound like `step`, because handlers destructure `ctx`. */
  get progress(): Context['progress'] {
    this.#progress ??= makeProgress(() => this.#request);
    return this.#progress;
  }

  get closeStream(): Context['closeStream'] {
    this.#closeStream ??= makeCloseStream(() => this.#request);
    return this.#closeStream;
  }

  /** The checkpoints of its statechart; undefined for a call that ends with its process. */
  get checkpoints(): Checkpoints | undefined {
    const { client, recorded } = this.#first;
    const { lasting = false } = this.#options;
    if (client.session && !lasting) return undefined;
    return {
      before: recorded?.checkpoint,
      lasting: lasting || recorded?.id !== undefined,
      storage: () => this.#interactive.storageOf(this.#first, this),
    };
  }

  get step(): Context['step'] {
    this.#steps ??= new StepLog({
      remembersFailures: true,
      recorded: this.#first.recorded?.steps,
      storage: this.#interactive.storageOf(this.#first, this),
      memory: this.#interactive.memoryOf(this.#first),
      maxLength: this.#interactive.maxStepsLength,
      label: stepLabel,
      copy: copyOf,
    });
    this.#step ??= this.#steps.step;
    return this.#step;
  }
}

function makeProgress(current: () => RequestView): Context['progress'] {
  return (done, total, message) => {
    if (!Number.isFinite(done))
      throw new TypeError(`ctx.progress: expected a finite number for what is done, got ${describe(done)}`);
    if (total !== undefined && !Number.isFinite(total))
      throw new TypeError(`ctx.progress: expected a finite number for the total, got ${describe(total)}`);
    if (message !== undefined && typeof message !== 'string')
      throw new TypeError(`ctx.progress: expected a string for the message, got ${describe(message)}`);
    const request = current();
    request.requests.send({ type: 'progress', request, progress: done, total, message });
    // A task shows it as its status message.
    if (message !== undefined) request.interactive?.send({ type: 'progressed', message });
  };
}

function makeCloseStream(current: () => RequestView): Context['closeStream'] {
  return (retryMs = 1_000) => {
    if (!Number.isSafeInteger(retryMs) || retryMs < 0 || retryMs > LONGEST_TIMER_MS)
      throw new RangeError(
        `ctx.closeStream: expected whole milliseconds from 0 to ${LONGEST_TIMER_MS}, got ${describe(retryMs)}`,
      );
    const request = current();
    request.requests.send({ type: 'release', request, retryMs });
  };
}

function makeLog(current: () => RequestView): Log {
  const write = (level: LogLevel, data: unknown, logger?: string): void => {
    const request = current();
    const wanted = request.client.logLevel;
    if (wanted === undefined || LOG_LEVELS.indexOf(level) < LOG_LEVELS.indexOf(wanted)) return;
    request.requests.send({ type: 'log', request, level, data, logger });
  };
  return Object.assign(write, {
    debug: (data: unknown, logger?: string) => write('debug', data, logger),
    info: (data: unknown, logger?: string) => write('info', data, logger),
    warning: (data: unknown, logger?: string) => write('warning', data, logger),
    error: (data: unknown, logger?: string) => write('error', data, logger),
  });
}

/** The context of one request: creates each expensive member on first use, and follows the request that carries its handler. */

import { type Clock, LONGEST_TIMER_MS } from '../kernel/clock.ts';
import type { Auth } from '../messages/auth.ts';
import type { ListView } from '../messages/authorization-rule.ts';
import type { ClientFacts, SessionFacts } from '../messages/client-facts.ts';
import type { RequestView } from '../messages/request-view.ts';
import { describe, isJsonObject, type JsonObject } from '../protocol/json.ts';
import type { RequestId } from '../protocol/jsonrpc.ts';
import { type ClientCapabilities, LOG_LEVELS, type LogLevel } from '../protocol/types.ts';
import { showsViews } from '../protocol/views.ts';
import { notifyAborted } from '../requests/active-request.ts';
import { innerOwnerOf } from '../requests/inner-requests.ts';
import type { ApprovalRequest, CallApproval } from './approving.ts';
import type { Context, EmitOptions, EmittedEvent, EmittedType, Log } from './context.ts';
import type { ToolImplementation } from './execution.ts';
import type { Asking } from './questions.ts';
import type { WatchedState } from './state.ts';

/** The part of a context that a feature makes when a handler first needs it: the questions to the client, and the steps. */
export interface ContextExtension {
  readonly ask: Asking;
  readonly step: Context['step'];
  /** The results of the steps that were begun here; undefined if there are none. */
  steps(): JsonObject | undefined;
}

/** The parts of a server that contexts use. */
export interface ContextHost {
  readonly clock: Clock;
  extendContext(context: RequestContext): ContextExtension;
  /** Makes the state of the caller of a request. */
  stateOf(request: RequestView): WatchedState;
  /** Emits an event. */
  emit(name: string, data: unknown, options: EmitOptions): Promise<EmittedEvent>;
  /** Waits until people have approved a part of a handler. */
  approve(context: RequestContext, request: ApprovalRequest): Promise<CallApproval>;
}

/** The way in which a handler runs. Another process may continue a call that is a task or may become one, even if it has asked nothing. */
type RunMode = 'request' | 'may become a task' | 'task';

/** Calls back once the request is aborted. A signal with a listener would take a kilobyte for each waiting call. */
export function whenAborted(ctx: Context, callback: () => void): void {
  if (ctx instanceof RequestContext) ctx.whenAborted(callback);
  else ctx.signal.addEventListener('abort', callback, { once: true });
}

/** The client on whose behalf a call is made elsewhere: its state there must not be mixed with that of other clients. */
export interface CallOwner {
  /** The same for all calls of a session, of a connection, or of a principal without sessions. */
  readonly key: string;
  /** The capabilities that the client declares now. */
  readonly capabilities: ClientCapabilities;
  readonly principal: string;
  /** Its session; undefined for a modern client. */
  readonly session: SessionFacts | undefined;
  /** Several clients may be this owner: those of a principal without sessions. */
  readonly several: boolean;
}

/**
 * Turns a call of a tool into a task now, if its client has declared that it takes tasks.
 *
 * @returns true if the call is a task, or becomes one as soon as the task is durable
 */
export function becomeTask(ctx: Context): boolean {
  return requestContextOf(ctx).becomeTask();
}

/** True if a call is a task, or will be one once the task is durable. */
export function isTask(ctx: Context): boolean {
  return requestContextOf(ctx).isTask;
}

/** Returns the client of a session. */
export function callOwnerOfSession({ capabilities, principal }: ClientFacts, session: SessionFacts): CallOwner {
  return { key: `session/${session.id}`, capabilities, principal, session, several: false };
}

/** Returns the client of a request, with the capabilities that it declares now. */
export function callOwnerOf(
  request: RequestView,
  capabilities: ClientCapabilities = request.client.capabilities,
): CallOwner {
  const { client, exchange, requests } = request;
  const { session, principal } = client;
  if (session) return callOwnerOfSession({ ...client, capabilities }, session);
  const of = { capabilities, principal, session };
  const inner = innerOwnerOf(request);
  if (inner) return { ...of, key: inner.key, several: inner.several };
  // A connection that is not shared belongs to one client.
  if (!exchange) return { ...of, key: requests.address, several: false };
  return { ...of, key: `principal/${principal}`, several: true };
}

/** Returns the client on whose behalf a handler makes calls elsewhere. */
export function ownerOfCall(ctx: Context): CallOwner {
  return requestContextOf(ctx).owner;
}

/**
 * Gives a call another time from now on, such as more while it waits for a person who signs in.
 *
 * @returns gives the call its own time again
 */
export function prolong(ctx: Context, ms: number): () => void {
  return requestContextOf(ctx).prolong(ms);
}

/** Returns the part of a list that the caller of a request sees; undefined: all of it. */
export function listViewOf(ctx: Context): ListView | undefined {
  return requestContextOf(ctx).view;
}

/** Returns the least severe log messages that the client of a call wants; undefined: none. */
export function logLevelOf(ctx: Context): LogLevel | undefined {
  return requestContextOf(ctx).logLevel;
}

/** Returns the steps that earlier runs of the same call have recorded, by name; undefined in the first run. */
export function earlierSteps(ctx: Context): JsonObject | undefined {
  return requestContextOf(ctx).earlier;
}

/** The context behind that of a handler. @throws {TypeError} for one that this package has not made */
export function requestContextOf(ctx: Context): RequestContext {
  if (ctx instanceof RequestContext) return ctx;
  throw new TypeError('expected the context of a call as this package passes it to handlers');
}

/** The context of one request. Expensive members are created on first use. */
export class RequestContext implements Context {
  /** The current request. A client that was asked something continues with a new request. */
  #begins = false;
  #request: RequestView;
  readonly #first: RequestView;
  readonly #host: ContextHost;
  readonly #implementation: ToolImplementation | undefined;
  readonly #mode: RunMode;
  #timeoutMs: number | undefined;
  #progress: Context['progress'] | undefined;
  #closeStream: Context['closeStream'] | undefined;
  #log: Log | undefined;
  #extension: ContextExtension | undefined;
  #state: WatchedState | undefined;
  /** The approval with which the call runs. */
  approval: CallApproval | undefined;
  /** The latest end of the call that its handler waits for, in milliseconds since 1970. If it becomes a task, the task lives until then. */
  lastsUntil = 0;
  /** Milliseconds of running time until the handler last began to wait for its client. */
  #ran = 0;
  /** The time at which it last continued; undefined while it waits. */
  #since: number | undefined;

  constructor(request: RequestView, host: ContextHost, implementation?: ToolImplementation, mode: RunMode = 'request') {
    this.#request = request;
    this.#first = request;
    this.#since = request.admitted;
    this.#host = host;
    this.#implementation = implementation;
    this.#mode = mode;
    this.#timeoutMs = implementation?.timeoutMs;
    if (this.#timeoutMs !== undefined) this.#allow(this.#timeoutMs);
    // Continues a request of another process, or one that was evicted. From now on no other request may continue it.
    if (request.recorded?.id !== undefined) this.#extension = host.extendContext(this);
  }

  /** The request with which the call began. */
  get first(): RequestView {
    return this.#first;
  }

  /** The request that carries the handler now. */
  get current(): RequestView {
    return this.#request;
  }

  /** The tool that runs; undefined for another element. */
  get implementation(): ToolImplementation | undefined {
    return this.#implementation;
  }

  get mode(): RunMode {
    return this.#mode;
  }

  /** The part that a feature adds. */
  get extension(): ContextExtension {
    this.#extension ??= this.#host.extendContext(this);
    return this.#extension;
  }

  /** Continues the handler for a newer request of its client. */
  continueFor(request: RequestView): void {
    this.#request = request;
    if (this.#timeoutMs !== undefined) this.#allow(this.#timeoutMs);
  }

  /** The results of completed steps, as far as they are JSON. */
  steps(): JsonObject {
    return this.#extension?.steps() ?? this.#first.recorded?.steps ?? {};
  }

  #allow(timeoutMs: number): void {
    const request = this.#request;
    request.requests.send({ type: 'extend deadline', request, timeoutMs });
  }

  /** Sets the timeout of the call from now on, in milliseconds. */
  allow(timeoutMs: number): void {
    this.#timeoutMs = timeoutMs;
    this.#allow(timeoutMs);
  }

  /** Called when the handler begins or ends waiting for its client. */
  waits(waiting: boolean): void {
    const now = this.#host.clock.now();
    if (!waiting) {
      this.#since ??= now;
      return;
    }
    if (this.#since !== undefined) this.#ran += now - this.#since;
    this.#since = undefined;
  }

  get elapsedMs(): number {
    return this.#ran + (this.#since === undefined ? 0 : this.#host.clock.now() - this.#since);
  }

  get signal(): AbortSignal {
    return this.#first.signal;
  }

  whenAborted(callback: () => void): void {
    notifyAborted(this.#first, callback);
  }

  get elicit(): Asking['elicit'] {
    return this.extension.ask.elicit;
  }

  get elicitUrl(): Asking['elicitUrl'] {
    return this.extension.ask.elicitUrl;
  }

  get sample(): Asking['sample'] {
    return this.extension.ask.sample;
  }

  get roots(): Asking['roots'] {
    return this.extension.ask.roots;
  }

  get ask(): Asking['ask'] {
    return this.extension.ask.ask;
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
    return this.#mode === 'task';
  }

  /** The steps that earlier runs of the call have recorded; undefined if none of them has reached the handler. */
  get earlier(): JsonObject | undefined {
    const { recorded } = this.#first;
    return recorded?.id === undefined || this.#begins ? undefined : recorded.steps;
  }

  /** No earlier run has reached the handler: the steps are those of a gate. */
  begin(): void {
    this.#begins = true;
  }

  get view(): ListView | undefined {
    return this.#request.view;
  }

  get logLevel(): LogLevel | undefined {
    return this.#request.client.logLevel;
  }

  get owner(): CallOwner {
    return callOwnerOf(this.#first, this.#request.client.capabilities);
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

  get state(): WatchedState {
    this.#state ??= this.#host.stateOf(this.#first);
    return this.#state;
  }

  /** The operations of `ctx.state` that have not ended. */
  get unfinishedState(): readonly string[] {
    return this.#state?.unfinished ?? [];
  }

  get step(): Context['step'] {
    return this.extension.step;
  }

  /** Bound like `step`. */
  get emit(): Context['emit'] {
    return <Data>(event: EmittedType<Data> | string, data: Data, options: EmitOptions = {}) => {
      const trace = this.#request.span?.traceparent;
      const name = typeof event === 'string' ? event : event.name;
      return this.#host.emit(name, data, trace === undefined ? options : { trace, ...options });
    };
  }

  /** Bound like `step`. */
  get approve(): Context['approve'] {
    return (request) => this.#host.approve(this, request);
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

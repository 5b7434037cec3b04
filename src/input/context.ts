/** What a handler is given beside its arguments: the signal, progress, the log, who is asking, and recorded steps. */

import { type Clock, LONGEST_TIMER_MS } from '../clock.ts';
import type { ActiveRequest } from '../messages/active-request.ts';
import type { HandlerRun, InteractiveRequestMail } from '../messages/input-messages.ts';
import type { Mailbox } from '../messages/mailbox.ts';
import { describe, isJsonObject, type JsonObject } from '../protocol/json.ts';
import type { RequestId } from '../protocol/jsonrpc.ts';
import type { Era, Revision } from '../protocol/revisions.ts';
import { type ClientCapabilities, type Implementation, LOG_LEVELS, type LogLevel } from '../protocol/types.ts';
import { type AskerOptions, makeAsking } from './asker.ts';
import type { Asking } from './questions.ts';
import { type StepStore, Steps } from './steps.ts';

/** Sends log messages to the client that asked, at or above the level that it wants. Data is any JSON value. */
export interface Log {
  (level: LogLevel, data: unknown, logger?: string): void;
  debug(data: unknown, logger?: string): void;
  info(data: unknown, logger?: string): void;
  warning(data: unknown, logger?: string): void;
  error(data: unknown, logger?: string): void;
}

export interface Context extends Asking {
  /** Aborted when the client cancels, leaves, or the deadline passes; for a task, when it is cancelled, its time to live is over, or the server stops. Hand it to `fetch` and the like. */
  readonly signal: AbortSignal;
  /**
   * Reports progress, if the client asked for it; of a task, the message is what it shows. Puts the deadline off, where the revision allows.
   *
   * @param done grows with each call; a call that does not grow it is ignored
   * @example ctx.progress(3, 10, 'third file')
   */
  progress(done: number, total?: number, message?: string): void;
  readonly log: Log;
  /**
   * Lets go of the client's HTTP connection while the handler works on; the client comes back for the rest ("polling",
   * SEP-1699). Does nothing where that cannot be: on other transports, in other revisions than 2025-03-26 to 2025-11-25, or
   * where the client has been told no event id to come back with (before 2025-11-25: until something was sent).
   *
   * @param retryMs milliseconds after which the client is to come back. Default 1,000
   * @throws {RangeError} for a time that is no whole number from 0 to 2^31-1
   * @example ctx.closeStream(5_000);
   */
  closeStream(retryMs?: number): void;
  /** The client as it describes itself: for display and logs, never for decisions about what it may do. */
  readonly client: {
    readonly info: Implementation | undefined;
    readonly capabilities: ClientCapabilities;
    readonly revision: Revision;
    readonly era: Era;
  };
  /** Absent for a modern client: there is no session. */
  readonly session: { readonly id: string } | undefined;
  /** Who the request is authorised as; `anonymous` where nothing authenticates. */
  readonly principal: string;
  readonly requestId: RequestId;
  /** Milliseconds since the request was admitted, without what its client took to answer what it was asked. */
  readonly elapsedMs: number;
  /** The request's `_meta`, as it came (trace context and the like). */
  readonly meta: JsonObject;
  /**
   * Runs `fn` once for this request and records its result: the same name again gives the recorded one, also when the request
   * is run anew because the process that asked the client something is gone. Then the result is what JSON made of it. With a
   * durable store the result is kept before the promise resolves, so that a step runs once although the process ends right
   * after it; the promise rejects where it could not be kept.
   *
   * @param name unique among the steps of the request
   * @example const charge = await ctx.step('charge', () => pay(order))
   */
  step<T>(name: string, fn: () => T | Promise<T>): Promise<T>;
}

/** What a context is lent. */
export interface ContextHost {
  readonly clock: Clock;
  /** The conversation of a request that asks its client something. */
  converse(request: ActiveRequest, carrier: HandlerRun): Mailbox<InteractiveRequestMail>;
  /** Where the results of its steps are kept; undefined where they end with the process. */
  journal?(request: ActiveRequest, carrier: HandlerRun): StepStore | undefined;
  /** Where the client cannot be asked, the model that called is. */
  readonly model?: AskerOptions['model'];
  /** The call is a task, or may become one: another process may go on with it, whether or not it has asked. */
  readonly lasting?: boolean;
  /** From now on the handler runs for this request. */
  carried?(request: ActiveRequest): void;
}

/** The places that a statechart comes to in its call. */
export interface Checkpoints {
  /** Where an earlier run of the call was, as it was kept; undefined where none was. */
  readonly before: string | undefined;
  /** The call may be gone on with although it has asked nothing. */
  readonly lasting: boolean;
  /** Undefined where nothing is kept of this call. */
  journal(): StepStore | undefined;
}

/** Of a context of ours: an author's executor may hand its handlers another. */
export function checkpointsOf(ctx: Context): Checkpoints | undefined {
  return ctx instanceof RequestContext ? ctx.places : undefined;
}

/** The context of one request. Everything that costs is made when it is first asked for. */
export class RequestContext implements Context, HandlerRun {
  /** The one that runs now: a client that was asked something comes back with another. */
  #request: ActiveRequest;
  readonly #first: ActiveRequest;
  readonly #host: ContextHost;
  readonly #timeoutMs: number | undefined;
  #progress: Context['progress'] | undefined;
  #step: Context['step'] | undefined;
  #closeStream: Context['closeStream'] | undefined;
  #log: Log | undefined;
  #asking: Asking | undefined;
  #steps: Steps | undefined;
  /** Milliseconds that it has run until it last waited for its client. */
  #ran = 0;
  /** When it last went on; undefined while it waits. */
  #since: number | undefined;

  /** @param timeoutMs milliseconds, where what runs needs another time than the server's default */
  constructor(request: ActiveRequest, host: ContextHost, timeoutMs?: number) {
    this.#request = request;
    this.#first = request;
    this.#since = request.admitted;
    this.#host = host;
    this.#timeoutMs = timeoutMs;
    this.#allow();
    // It goes on with a request of another process, or of one that gave way: nobody else may, from now on.
    if (request.recorded?.id !== undefined) host.converse(request, this);
  }

  carryOn(request: ActiveRequest): void {
    this.#request = request;
    this.#allow();
    this.#host.carried?.(request);
  }

  steps(): JsonObject {
    return this.#steps?.recorded() ?? this.#first.recorded?.steps ?? {};
  }

  #allow(): void {
    const request = this.#request;
    const timeoutMs = this.#timeoutMs;
    if (timeoutMs !== undefined) request.requests.send({ type: 'allow', request, timeoutMs });
  }

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

  get #ask(): Asking {
    this.#asking ??= makeAsking({
      conversation: () => this.#host.converse(this.#first, this),
      client: () => this.#request.client,
      model: this.#host.model,
    });
    return this.#asking;
  }

  get client(): Context['client'] {
    const { info, capabilities, dialect } = this.#request.client;
    return { info, capabilities, revision: dialect.revision, era: dialect.era };
  }

  get session(): Context['session'] {
    const { session } = this.#request.client;
    return session && { id: session.id };
  }

  get principal(): string {
    return this.#request.client.principal;
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

  /** A function of its own, like `step`: handlers take `ctx` apart. */
  get progress(): Context['progress'] {
    this.#progress ??= makeProgress(() => this.#request);
    return this.#progress;
  }

  get closeStream(): Context['closeStream'] {
    this.#closeStream ??= makeCloseStream(() => this.#request);
    return this.#closeStream;
  }

  /** Where the place of a statechart that runs for it is kept; undefined for a call that ends with its process. */
  get places(): Checkpoints | undefined {
    const { client, recorded } = this.#first;
    const { journal, lasting = false } = this.#host;
    if (!journal || (client.session && !lasting)) return undefined;
    return {
      before: recorded?.place,
      lasting: lasting || recorded?.id !== undefined,
      journal: () => journal(this.#first, this),
    };
  }

  get step(): Context['step'] {
    this.#steps ??= new Steps(this.#first.recorded?.steps, this.#host.journal?.(this.#first, this));
    this.#step ??= this.#steps.step;
    return this.#step;
  }
}

function makeProgress(current: () => ActiveRequest): Context['progress'] {
  return (done, total, message) => {
    if (!Number.isFinite(done))
      throw new TypeError(`ctx.progress: expected a finite number for what is done, got ${describe(done)}`);
    if (total !== undefined && !Number.isFinite(total))
      throw new TypeError(`ctx.progress: expected a finite number for the total, got ${describe(total)}`);
    if (message !== undefined && typeof message !== 'string')
      throw new TypeError(`ctx.progress: expected a string for the message, got ${describe(message)}`);
    const request = current();
    request.requests.send({ type: 'progress', request, progress: done, total, message });
    // A task shows it.
    if (message !== undefined) request.conversation?.send({ type: 'progressed', message });
  };
}

function makeCloseStream(current: () => ActiveRequest): Context['closeStream'] {
  return (retryMs = 1_000) => {
    if (!Number.isSafeInteger(retryMs) || retryMs < 0 || retryMs > LONGEST_TIMER_MS)
      throw new RangeError(
        `ctx.closeStream: expected whole milliseconds from 0 to ${LONGEST_TIMER_MS}, got ${describe(retryMs)}`,
      );
    const request = current();
    request.requests.send({ type: 'release', request, retryMs });
  };
}

function makeLog(current: () => ActiveRequest): Log {
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

/** What a handler is given beside its arguments: the signal, progress, the log, who is asking, and recorded steps. */

import { type Clock, LONGEST_TIMER_MS } from '../clock.ts';
import type { InFlight } from '../messages/in-flight.ts';
import { describe, isObject, type JsonObject } from '../protocol/json.ts';
import type { RequestId } from '../protocol/jsonrpc.ts';
import type { Era, Revision } from '../protocol/revisions.ts';
import { type ClientCapabilities, type Implementation, LOG_LEVELS, type LogLevel } from '../protocol/types.ts';

/** Sends log messages to the client that asked, at or above the level that it wants. Data is any JSON value. */
export interface Log {
  (level: LogLevel, data: unknown, logger?: string): void;
  debug(data: unknown, logger?: string): void;
  info(data: unknown, logger?: string): void;
  warning(data: unknown, logger?: string): void;
  error(data: unknown, logger?: string): void;
}

export interface Context {
  /** Aborted when the client cancels, leaves, or the deadline passes. Hand it to `fetch` and the like. */
  readonly signal: AbortSignal;
  /**
   * Reports progress, if the client asked for it. Puts the deadline off, where the revision allows.
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
  /** Milliseconds since the request was admitted. */
  readonly elapsedMs: number;
  /** The request's `_meta`, as it came (trace context and the like). */
  readonly meta: JsonObject;
  /**
   * Runs `fn` once for this request and records its result: the same name again gives the recorded one.
   *
   * @param name unique among the steps of the request
   * @example const charge = await ctx.step('charge', () => pay(order))
   */
  step<T>(name: string, fn: () => T | Promise<T>): Promise<T>;
}

/** The context of one request. Everything that costs is made when it is first asked for. */
export class RequestContext implements Context {
  readonly #request: InFlight;
  readonly #clock: Clock;
  #progress: Context['progress'] | undefined;
  #step: Context['step'] | undefined;
  #closeStream: Context['closeStream'] | undefined;
  #log: Log | undefined;

  constructor(request: InFlight, clock: Clock) {
    this.#request = request;
    this.#clock = clock;
  }

  get elapsedMs(): number {
    return this.#clock.now() - this.#request.admitted;
  }

  get signal(): AbortSignal {
    return this.#request.signal;
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
    this.#log ??= makeLog(this.#request);
    return this.#log;
  }

  /** A function of its own, like `step`: handlers take `ctx` apart. */
  get progress(): Context['progress'] {
    this.#progress ??= makeProgress(this.#request);
    return this.#progress;
  }

  get closeStream(): Context['closeStream'] {
    this.#closeStream ??= makeCloseStream(this.#request);
    return this.#closeStream;
  }

  get step(): Context['step'] {
    this.#step ??= makeStep();
    return this.#step;
  }
}

function makeProgress(request: InFlight): Context['progress'] {
  return (done, total, message) => {
    if (!Number.isFinite(done))
      throw new TypeError(`ctx.progress: expected a finite number for what is done, got ${describe(done)}`);
    if (total !== undefined && !Number.isFinite(total))
      throw new TypeError(`ctx.progress: expected a finite number for the total, got ${describe(total)}`);
    if (message !== undefined && typeof message !== 'string')
      throw new TypeError(`ctx.progress: expected a string for the message, got ${describe(message)}`);
    request.requests.send({ type: 'progress', request, progress: done, total, message });
  };
}

function makeCloseStream(request: InFlight): Context['closeStream'] {
  return (retryMs = 1_000) => {
    if (!Number.isSafeInteger(retryMs) || retryMs < 0 || retryMs > LONGEST_TIMER_MS)
      throw new RangeError(
        `ctx.closeStream: expected whole milliseconds from 0 to ${LONGEST_TIMER_MS}, got ${describe(retryMs)}`,
      );
    request.requests.send({ type: 'release', request, retryMs });
  };
}

function makeStep(): Context['step'] {
  const steps = new Map<string, Promise<unknown>>();
  return <T>(name: string, fn: () => T | Promise<T>): Promise<T> => {
    const recorded = steps.get(name);
    // The name is the author's promise that the step is the same, and with it its type.
    if (recorded) return recorded as Promise<T>;
    const running = (async () => fn())();
    steps.set(name, running);
    return running;
  };
}

function isJsonObject(value: unknown): value is JsonObject {
  return isObject(value);
}

function makeLog(request: InFlight): Log {
  const write = (level: LogLevel, data: unknown, logger?: string): void => {
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

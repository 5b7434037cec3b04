/** The context of a handler: signal, progress, log, client, recorded steps, and the questions that it may ask. Types only. */

import type { Auth } from '../messages/auth.ts';
import type { JsonObject } from '../protocol/json.ts';
import type { RequestId } from '../protocol/jsonrpc.ts';
import type { Era, Revision } from '../protocol/revisions.ts';
import type { ClientCapabilities, Implementation, LogLevel } from '../protocol/types.ts';
import type { ApprovalRequest, CallApproval } from './approving.ts';
import type { Asking } from './questions.ts';
import type { CallerState } from './state.ts';

/** Sends log messages to the client that called, at or above its log level. Data is any JSON value. */
export interface Log {
  (level: LogLevel, data: unknown, logger?: string): void;
  debug(data: unknown, logger?: string): void;
  info(data: unknown, logger?: string): void;
  warning(data: unknown, logger?: string): void;
  error(data: unknown, logger?: string): void;
}

/** The context of a middleware and of the method of a feature: that of a handler, without what asks the client and without `step`. */
export type MethodContext = Pick<
  Context,
  'signal' | 'progress' | 'log' | 'client' | 'session' | 'principal' | 'auth' | 'requestId' | 'elapsedMs' | 'meta'
>;

/** The options of an emitted event. */
export interface EmitOptions {
  /**
   * The id of the event, such as that of its source: an id that the topic has already is stored once. 1 to 256 visible ASCII
   * characters. Default: a random one.
   */
  readonly id?: string | undefined;
  /** When it happened: a date, or milliseconds since 1970. Default: now. */
  readonly at?: Date | number | undefined;
  /** The W3C `traceparent` of what emits it. */
  readonly trace?: string | undefined;
  /** The only principal whose subscriptions get it. Default: all subscriptions may. */
  readonly owner?: string | undefined;
}

/** An event that is durable. */
export interface EmittedEvent {
  readonly id: string;
  /** Its number in its topic. */
  readonly seq: number;
}

/** A registered event type, as `ctx.emit` takes it. */
export interface EmittedType<Data> {
  readonly name: string;
  emit(data: Data, options?: EmitOptions): Promise<EmittedEvent>;
}

export interface Context extends Asking {
  /**
   * Aborted when the client cancels or disconnects, or the deadline passes. For a task: when it is cancelled, its time to
   * live has passed, or the server stops. Pass it to `fetch` and similar functions.
   */
  readonly signal: AbortSignal;
  /**
   * Reports progress if the client requested it; a task shows the message as its status. Extends the deadline if the
   * revision allows.
   *
   * @param done must increase with each call; otherwise the call is ignored
   * @example ctx.progress(3, 10, 'third file')
   */
  progress(done: number, total?: number, message?: string): void;
  readonly log: Log;
  /**
   * Closes the client's HTTP connection while the handler continues; the client reconnects for the rest ("polling",
   * SEP-1699). Does nothing on other transports, in revisions other than 2025-03-26 to 2025-11-25, or if the client has
   * received no event id to resume from (before 2025-11-25: until something was sent).
   *
   * @param retryMs milliseconds after which the client should reconnect. Default 1,000
   * @throws {RangeError} for a time that is not a whole number from 0 to 2^31-1
   * @example ctx.closeStream(5_000);
   */
  closeStream(retryMs?: number): void;
  /** The client's description of itself. Use it for display and logs, never for authorization. */
  readonly client: {
    readonly info: Implementation | undefined;
    readonly capabilities: ClientCapabilities;
    readonly revision: Revision;
    readonly era: Era;
    /** True if the client has declared that it shows views (the extension MCP Apps). */
    readonly views: boolean;
  };
  /** Undefined for a modern client, which has no session. */
  readonly session: { readonly id: string } | undefined;
  /** The principal of the request: the user that a transport has authenticated; `local user` over stdio and sockets; otherwise `anonymous`. */
  readonly principal: string;
  /**
   * The authenticated caller with its scopes and claims; undefined for an anonymous one. In a session, that of this
   * request's token. It never contains the token.
   */
  readonly auth: Auth | undefined;
  /** The approval with which this call of a tool runs; undefined if it needed none. See docs/approvals.md. */
  readonly approval: CallApproval | undefined;
  /**
   * Waits until people have approved the rest of a handler, for a decision that needs what only the handler knows. The approval is
   * bound to the caller, the tool, its arguments, and `show`, and is used once. Do what has effects after it, or in a step.
   *
   * @returns the approval
   * @throws {NotApproved} if it was denied, or the call cannot wait for the people who must approve; then the call ends with a result
   *   that says so, and the next call with the same arguments continues with the same approval
   * @throws {TypeError} for an invalid request, and outside of tools
   * @example await ctx.approve({ title: `Refund ${order}`, show: { amount }, by: { scope: 'ops' } });
   */
  approve(request: ApprovalRequest): Promise<CallApproval>;
  readonly requestId: RequestId;
  /** Milliseconds since the request was admitted, without the time that its client took to answer questions. */
  readonly elapsedMs: number;
  /** The `_meta` of the request, unchanged (trace context and similar data). */
  readonly meta: JsonObject;
  /**
   * Values of the caller that outlive the call: of its principal, or of its session if it is anonymous. With a durable store they
   * outlive the process, and each node has the same. See docs/state.md.
   *
   * @example const visits = await ctx.state.update('visits', (n) => (typeof n === 'number' ? n + 1 : 1));
   */
  readonly state: CallerState;
  /**
   * Emits an event of this server (docs/events.md; experimental), with the trace of this call.
   *
   * @param event the registered type, or its name
   * @returns once the event is durable
   * @throws {EventError}
   * @example await ctx.emit(paid, { order: 'o1' }, { id: payment.id });
   */
  emit<Data>(event: EmittedType<Data> | string, data: Data, options?: EmitOptions): Promise<EmittedEvent>;
  /**
   * Runs `fn` once for this request and records its result. Another call with the same name returns the recorded result,
   * also if the request runs again because the process that asked the client has ended; the result is then a JSON copy. With
   * a durable store, the result is persisted before the promise resolves, so the step runs only once even if the process
   * ends right afterwards. The promise rejects if the result cannot be persisted. A step whose function fails stays failed in this
   * run; if the request runs again, the step does, too.
   *
   * @param name unique among the steps of the request
   * @example const charge = await ctx.step('charge', () => pay(order))
   */
  step<T>(name: string, fn: () => T | Promise<T>): Promise<T>;
}

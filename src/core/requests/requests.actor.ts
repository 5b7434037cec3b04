/** The in-flight table of one connection or session: one id, one response; cancellation, deadlines and admission. */

import type { RequestEvent } from '../../../machines/request.ts';
import { type Actor, type ActorSystem, type AfterTurn, type Behaviour, spawn } from '../kernel/actor.ts';
import type { Clock, Timer } from '../kernel/clock.ts';
import { durationOf } from '../kernel/duration.ts';
import { factsOf, nameOfClient, waitOf } from '../kernel/inspection/display-names.ts';
import type { Facts, Waits } from '../kernel/inspection/records.ts';
import { type Excess, isExcess, type Quota } from '../kernel/quota.ts';
import type { GuardedTelemetry } from '../kernel/telemetry/guarded-telemetry.ts';
import { CANCELLED, errorTypeOf, type Metrics } from '../kernel/telemetry/metrics.ts';
import type { SeenRequest } from '../kernel/telemetry/telemetry.ts';
import type { ClientFacts } from '../messages/client-facts.ts';
import type { ConnectionEventEmitter, ConnectionId } from '../messages/connection-events.ts';
import type { EmitterMail } from '../messages/emitter-messages.ts';
import type { Mailbox } from '../messages/mailbox.ts';
import type { AnswerMail, RequestMail, RequestRoutes, RequestsMail } from '../messages/request-messages.ts';
import type { Outcome } from '../messages/results.ts';
import type { ServerMail } from '../messages/server-messages.ts';
import { ErrorCode, type ErrorCodeValue, toWireError, wireError } from '../protocol/errors.ts';
import type { RequestId } from '../protocol/jsonrpc.ts';
import { STAY_OPEN } from '../protocol/operations.ts';
import { type ActiveRequest, activeRequestOf } from './active-request.ts';
import { InFlightTable } from './in-flight-table.ts';
import { OpenSubscriptions, type OpenSubscriptionsOptions } from './open-subscriptions.ts';

interface RequestLimits {
  /** Name of the option that sets `maxInFlight`. */
  readonly limit: 'maxInFlight' | 'maxStatelessInFlight';
  /** Limit for requests in flight, and separately for running handlers, including those whose request has ended. */
  readonly maxInFlight: number;
  readonly maxRunning: number;
}

interface RequestsOptions extends OpenSubscriptionsOptions, RequestLimits {
  readonly system: ActorSystem;
  readonly connection: ConnectionId;
  /** The name of the transport that carries its requests. */
  readonly transport: string;
  readonly emitter: Mailbox<EmitterMail>;
  /** Passes admitted requests on. */
  readonly stages: RequestRoutes;
  /** Reports rejected requests and the end of the connection to its transport. */
  readonly bus: ConnectionEventEmitter;
  /** While draining, gets `connection idle` when no request is in flight any more. */
  readonly server: Pick<Mailbox<ServerMail>, 'send'>;
  /** Quota in bytes for messages from clients. Messages above {@link SMALL_BYTES} count until their handlers end. */
  readonly retained: Quota;
  /** Milliseconds until a request times out, and the most to which progress can extend that time. */
  readonly timeoutMs: number;
  readonly maxTimeoutMs: number;
}

/** A limit that is reached: the option that sets it, and the message for the client. */
type FullLimit = Pick<Excess, 'option' | 'message'>;

/** Messages of at most this size count by number only: `maxInFlight` and similar limits bound them. */
const SMALL_BYTES = 16_384;

/** The reason of a handler's signal: its request ended before the handler did. */
export class Aborted extends Error {
  override readonly name = 'AbortError';
}

export function spawnRequests(options: RequestsOptions): Actor<RequestsMail> {
  const { connection, system } = options;
  return spawn(
    { kind: 'requests', address: requestsAddress(connection), connection },
    system,
    (self, afterwards) => new Requests(options, self, afterwards),
  );
}

/** The address of the in-flight table of a connection. */
export function requestsAddress(connection: ConnectionId): string {
  return `requests/${connection}`;
}

class Requests implements Behaviour<RequestsMail> {
  readonly #options: RequestsOptions;
  readonly #self: Mailbox<RequestsMail>;
  readonly #afterwards: AfterTurn;
  readonly #clock: Clock;
  readonly #metrics: Metrics;
  readonly #telemetry: GuardedTelemetry | undefined;
  readonly #table = new InFlightTable<ActiveRequest>(({ key }) => key);
  /** Created with the first subscription: most connections have none. */
  #listens: OpenSubscriptions | undefined;
  /** Handlers that still run although their requests have ended. */
  #detached = 0;
  /** The client of the last request: one without a session names itself in each. */
  #client: ClientFacts | undefined;
  #draining = false;
  /** The client has ended its input: the connection ends once it is idle. */
  #inputEnded = false;
  #timer: Timer | undefined;
  #alarm = Number.POSITIVE_INFINITY;

  constructor(options: RequestsOptions, self: Mailbox<RequestsMail>, afterwards: AfterTurn) {
    this.#options = options;
    this.#self = self;
    this.#afterwards = afterwards;
    this.#clock = options.system.clock;
    this.#metrics = options.system.metrics;
    this.#telemetry = options.system.telemetry;
  }

  facts(): Facts {
    return {
      // A subscription has no deadline.
      'in flight': [
        ...this.#table.all().map(factsOf),
        ...(this.#listens?.all() ?? []).map((request) => ({ ...factsOf(request), deadline: undefined })),
      ],
      subscriptions: this.#listens?.size ?? 0,
      'run on': this.#detached,
      ...this.#lastClient(),
      ...(this.#shared ? { shared: true } : {}),
    };
  }

  get #shared(): boolean {
    return this.#options.limit === 'maxStatelessInFlight';
  }

  /** The client of the last request, if it has no session: then its name is nowhere else. */
  #lastClient(): Facts {
    const { info, session } = this.#client ?? {};
    return info && session === undefined ? { client: nameOfClient(info) } : {};
  }

  waits(): readonly Waits[] {
    return this.#table.all().map(waitOf);
  }

  state(): string {
    return `${this.#draining ? 'draining' : 'admitting'} (${this.#size})`;
  }

  get #size(): number {
    return this.#table.size + (this.#listens?.size ?? 0);
  }

  receive(mail: RequestsMail): void {
    switch (mail.type) {
      case 'request':
        return this.#admit(mail);
      case 'answer':
        return this.#answer(activeRequestOf(mail.request), mail);
      case 'cancel':
        return this.#cancel(mail.key, mail.reason);
      case 'progress':
        return this.#progress(mail);
      case 'log': {
        const { request, level, data, logger } = mail;
        if (!request.settled)
          this.#options.emitter.send({
            type: 'log',
            dialect: request.client.dialect,
            about: request,
            level,
            data,
            logger,
          });
        return;
      }
      case 'detached':
        this.#step(activeRequestOf(mail.request), 'detach');
        return;
      case 'notify':
        if (!mail.request.settled)
          this.#options.emitter.send({ type: 'notification', about: mail.request, notice: mail.notice });
        return;
      case 'release':
        if (!mail.request.settled) this.#options.emitter.send(mail);
        return;
      case 'deadline':
        return this.#expire();
      case 'drain':
        this.#draining = true;
        if (mail.inputEnded) this.#inputEnded = true;
        // After this turn: the receiver may close this connection and send it a message.
        if (this.#size === 0) this.#afterwards(this.#idle, undefined);
        return this.#listens?.endInSlices(this.#clock);
      case 'abandon':
        for (const request of this.#table.all()) this.#end(request, 'abandon', ErrorCode.ShuttingDown, mail.reason);
        this.#listens?.endAll();
        // No request is in flight and none will come; a timer would only keep this table in memory.
        this.#timer?.cancel();
        this.#alarm = Number.POSITIVE_INFINITY;
        return;
      case 'extend deadline': {
        const now = this.#clock.now();
        const request = activeRequestOf(mail.request);
        request.timeoutMs = mail.timeoutMs;
        request.deadline = now + mail.timeoutMs;
        request.latest = Math.max(request.latest, request.deadline);
        if (request.deadline < this.#alarm) this.#watch(request.deadline, now);
      }
    }
  }

  #admit(mail: RequestMail): void {
    const request = activeRequestOf(mail.request);
    const { bus, connection, timeoutMs, maxTimeoutMs } = this.#options;
    if (this.#table.get(request.key) ?? this.#listens?.get(request.key)) {
      bus.emit('connection.rejected', { connection, id: request.id });
      return this.#refuse(
        request,
        ErrorCode.InvalidRequest,
        `id ${quoted(request.id)} is in flight: use an id that no unanswered request has`,
      );
    }
    if (this.#draining)
      return this.#refuse(request, ErrorCode.ShuttingDown, 'the server is shutting down and accepts no new requests');
    const now = this.#clock.now();
    const isLarge = request.bytes > SMALL_BYTES;
    if (STAY_OPEN.has(request.operation.method)) {
      this.#listens ??= new OpenSubscriptions(this.#options);
      const full = (isLarge ? this.#hold(request) : undefined) ?? this.#listens.add(request, now);
      if (full === undefined) {
        request.take('admit');
        if (this.#telemetry) this.#trace(request, this.#telemetry);
        return this.#afterwards(this.#options.stages.route, mail);
      }
      request.held?.release();
      return this.#overloaded(request, full);
    }
    const full =
      overloadReason(this.#options, this.#table.size, this.#detached) ?? (isLarge ? this.#hold(request) : undefined);
    if (full !== undefined) return this.#overloaded(request, full);
    request.take('admit');
    this.#client = request.client;
    request.timeoutMs = timeoutMs;
    request.admitted = now;
    request.deadline = now + timeoutMs;
    request.latest = now + maxTimeoutMs;
    this.#table.add(request);
    this.#metrics.inFlight += 1;
    if (this.#telemetry) this.#trace(request, this.#telemetry);
    if (request.deadline < this.#alarm) this.#watch(request.deadline, now);
    // After this turn: log messages and progress of a handler that never awaits are then sent at once and do not pile
    // up.
    this.#afterwards(this.#options.stages.route, mail);
  }

  /** Counts the bytes of a large message. @returns the exhausted quota, if there is no room */
  #hold(request: ActiveRequest): FullLimit | undefined {
    const { bytes, client } = request;
    const taken = this.#options.retained.reserve(client.principal, bytes, client.session?.id);
    if (isExcess(taken))
      return { option: taken.option, message: `${taken.message}: send less at once, or retry later` };
    request.held = taken;
    return undefined;
  }

  #overloaded(request: ActiveRequest, { option, message }: FullLimit): void {
    this.#metrics.refused(option);
    this.#refuse(request, ErrorCode.Overloaded, message);
  }

  #refuse(request: ActiveRequest, code: ErrorCodeValue, message: string): void {
    const outcome: Outcome = { ok: false, error: wireError(code, message) };
    request.take('respond');
    this.#metrics.operation(request.operation, 0, String(code));
    this.#telemetry?.rejected(() => this.#seen(request), { error: String(code), seconds: 0, outcome });
    this.#options.emitter.send({ type: 'answer', request, outcome });
    // A rejected "initialize" has opened nothing: the client may send it again.
    if (request.operation.method === 'initialize')
      request.client.session?.mailbox.send({ type: 'close', reason: message });
  }

  /** The outcome of a request in flight is its response. Otherwise it marks the end of a handler that outlived its request. */
  #answer(request: ActiveRequest, mail: AnswerMail): void {
    request.held?.release();
    const { settled } = request;
    if (!request.take('respond')) return;
    if (settled) {
      this.#detached -= 1;
      return;
    }
    this.#remove(request);
    this.#ended(request, errorTypeOf(mail.outcome), mail.outcome);
    this.#options.emitter.send(mail);
  }

  /** Counts a request that has just been settled. @param error its `error.type`; undefined for a success */
  #ended(request: ActiveRequest, error: string | undefined, outcome?: Outcome): void {
    const ms = this.#clock.now() - request.admitted;
    const place = this.#metrics.operation(request.operation, ms, error);
    const { span } = request;
    if (!span) return;
    const seconds = ms / 1_000;
    const { sampled } = span;
    if (sampled) this.#metrics.operations.exemplify(place, sampled, seconds, this.#clock.date());
    span.end(outcome ? { error, seconds, outcome } : { error, seconds });
  }

  /** Begins the span of a request. */
  #trace(request: ActiveRequest, telemetry: GuardedTelemetry): void {
    request.span = telemetry.begin(this.#seen(request));
  }

  #seen({ client, exchange, id, meta, operation }: ActiveRequest): SeenRequest {
    return {
      operation,
      id,
      element: this.#metrics.elementOf(operation),
      meta,
      http: exchange?.incoming,
      transport: this.#options.transport,
      protocolVersion: client.dialect.revision,
      session: client.session?.id,
    };
  }

  /**
   * Steps the lifecycle of a request, and removes the request if that settles it.
   *
   * @returns false if its state does not accept the event: the caller must not respond
   */
  #step(request: ActiveRequest, event: RequestEvent['type']): boolean {
    const { settled, detached } = request;
    if (!request.take(event)) return false;
    if (request.detached !== detached) this.#detached += detached ? -1 : 1;
    if (!settled && request.settled) this.#remove(request);
    return true;
  }

  #remove(request: ActiveRequest): void {
    if (this.#table.delete(request)) this.#metrics.inFlight -= 1;
    else this.#listens?.delete(request);
    // After this turn, so that the response that emptied the table is sent first.
    if (this.#draining && this.#size === 0) this.#clock.soon(this.#idle);
  }

  /** No request is in flight any more, and none is accepted. */
  readonly #idle = (): void => {
    const { bus, connection, emitter, server } = this.#options;
    if (this.#inputEnded) {
      const reason = 'the client ended its input';
      emitter.send({ type: 'close', reason });
      bus.emit('connection.end', { connection, reason });
    }
    server.send({ type: 'connection idle', connection });
  };

  #cancel(key: RequestId, reason: string | undefined): void {
    const request = this.#table.get(key) ?? this.#listens?.get(key);
    // Unknown, already answered, or `initialize`, which cannot be cancelled: ignored (MCP "Cancellation").
    if (!request || request.operation.method === 'initialize') return;
    if (this.#listens?.ended(request)) {
      request.held?.release();
      // The end that every subscription has, and so no error.
      if (this.#step(request, 'unsubscribe')) this.#ended(request, undefined);
    } else if (this.#step(request, 'cancel')) this.#ended(request, CANCELLED);
    this.#options.emitter.send({ type: 'unanswered', request });
    request.abort(new Aborted(reason ?? 'the client cancelled the request'));
  }

  #progress({ request: view, progress, total, message }: Extract<RequestsMail, { type: 'progress' }>): void {
    const request = activeRequestOf(view);
    // Progress ends with the response and must increase (MCP "Progress").
    if (request.settled || progress <= request.progress) return;
    request.progress = progress;
    const { dialect } = request.client;
    if (dialect.progressResetsDeadline)
      request.deadline = Math.min(this.#clock.now() + request.timeoutMs, request.latest);
    if (request.progressToken === undefined) return;
    this.#options.emitter.send({
      type: 'progress',
      dialect,
      about: request,
      token: request.progressToken,
      progress,
      total,
      message,
    });
  }

  #watch(deadline: number, now: number): void {
    this.#timer?.cancel();
    this.#timer = this.#clock.after(Math.max(0, Math.ceil(deadline - now)), () => this.#ring());
    this.#alarm = deadline;
  }

  /** The time of the earliest deadline has come. An empty table needs no turn. */
  #ring(): void {
    this.#alarm = Number.POSITIVE_INFINITY;
    if (this.#table.size > 0) this.#self.send({ type: 'deadline' });
    else this.#table.shrink();
  }

  #expire(): void {
    const now = this.#clock.now();
    let next = Number.POSITIVE_INFINITY;
    for (const request of this.#table.all()) {
      if (request.deadline > now) {
        next = Math.min(next, request.deadline);
        continue;
      }
      this.#end(
        request,
        'expire',
        ErrorCode.TimedOut,
        `${request.operation.method} took longer than its timeout of ${durationOf(request.timeoutMs)} (the server's options are timeoutMs and maxTimeoutMs)`,
      );
    }
    if (next < Number.POSITIVE_INFINITY) this.#watch(next, now);
  }

  /** Ends a request before its handler ends. */
  #end(request: ActiveRequest, event: 'expire' | 'abandon', code: ErrorCodeValue, why: string): void {
    const outcome: Outcome = { ok: false, error: wireError(code, why) };
    if (this.#step(request, event)) this.#ended(request, String(code), outcome);
    this.#options.emitter.send({ type: 'answer', request, outcome });
    request.abort(new Aborted(why));
  }

  crashed(mail: RequestsMail, error: unknown, quarantined: boolean): void {
    const { bus, connection, system } = this.#options;
    const incident = system.incident(requestsAddress(connection), error);
    // A single client can live with a table that only rejects. A shared connection is replaced instead.
    if (quarantined && this.#shared)
      bus.emit('connection.end', { connection, reason: `the in-flight table failed (incident ${incident})` });
    if (!('request' in mail)) return;
    const request = activeRequestOf(mail.request);
    if (request.settled) return;
    this.#listens?.ended(request);
    request.held?.release();
    const outcome: Outcome = { ok: false, error: toWireError(error, incident) };
    if (this.#step(request, 'respond')) this.#ended(request, errorTypeOf(outcome), outcome);
    this.#options.emitter.send({ type: 'answer', request, outcome });
  }
}

function quoted(id: RequestId): string {
  return typeof id === 'string' ? `"${id}"` : String(id);
}

/**
 * @param size requests in flight
 * @param orphans handlers that still run although their requests have ended
 * @returns the limit that is reached; undefined if the table has room
 */
function overloadReason(
  { limit, maxInFlight, maxRunning }: RequestLimits,
  size: number,
  orphans: number,
): FullLimit | undefined {
  if (size + orphans >= maxRunning)
    return {
      option: 'limits.maxRunning',
      message: `${orphans} handlers of this connection still run although their requests were cancelled or timed out, because they ignore ctx.signal (the server's option is maxRunning)`,
    };
  if (size < maxInFlight) return undefined;
  const where = limit === 'maxInFlight' ? 'on this connection' : 'without a session';
  return {
    option: `limits.${limit}`,
    message: `${maxInFlight} requests are in flight ${where}, which is the limit: wait for a response (the server's option is ${limit})`,
  };
}

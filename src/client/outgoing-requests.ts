/** The in-flight table of a client: each request by its id, with its deadline, until its one outcome. */
import type { Clock, Timer } from '../core/kernel/clock.ts';
import type { JsonObject } from '../core/protocol/json.ts';
import type { RequestId } from '../core/protocol/jsonrpc.ts';
import type { ClientCapabilities, LogLevel } from '../core/protocol/types.ts';
import { InFlightTable } from '../core/requests/in-flight-table.ts';
import type { Authorization } from './authorization.ts';
import type { ServerLogMessage, ServerProgress } from './client-options.ts';
import type { AnswerAsked } from './relayed-request.ts';

/** A request of the client, from its call to its outcome. Its table alone changes the writable members. */
export interface OutgoingRequest {
  readonly method: string;
  readonly params: JsonObject | undefined;
  readonly meta?: JsonObject | undefined;
  /** Headers of this request over HTTP: `Mcp-Param-*`. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Authorizes this request over HTTP, instead of the connection's. The connection obtains no token for it. */
  readonly authorization?: Authorization | undefined;
  readonly logLevel?: LogLevel | undefined;
  /** Milliseconds; undefined for a request that stays open, such as a subscription. */
  readonly timeoutMs: number | undefined;
  readonly maxTimeoutMs: number | undefined;
  /** A repeat does no harm: the request only reads. The server's first question ends that. */
  repeatable: boolean;
  readonly onProgress?: ((progress: ServerProgress) => void) | undefined;
  readonly onLog?: ((message: ServerLogMessage) => void) | undefined;
  /** Declared in place of the capabilities of the connection (modern era). */
  readonly capabilities?: ClientCapabilities | undefined;
  /** Sent by another process: the stream of its response is continued after this event. */
  readonly resumesAfter?: string | undefined;
  /** Answers what a legacy server asks for this request; undefined: the client's own answerers do. */
  readonly ask?: AnswerAsked | undefined;
  /** The result of the server, not yet checked. */
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
  /** The id of the attempt that is in flight. */
  id: number;
  /** The number of times that the request was sent. */
  attempts: number;
  /** Times of the clock: when the request times out, and when it does in spite of progress. */
  due: number;
  lastDue: number;
  sentAt: number;
  /** The time of the clock at which a socket was refused for the first time. */
  refusedSince?: number;
  /** An earlier attempt may have been carried out. */
  doubtful: boolean;
}

export class OutgoingRequests {
  readonly #clock: Clock;
  readonly #late: (request: OutgoingRequest) => void;
  readonly #paused: () => boolean;
  readonly #byId = new InFlightTable<OutgoingRequest>(({ id }) => id);
  #lastId = 0;
  #timer: Timer | undefined;
  #timerDue = Number.POSITIVE_INFINITY;

  /**
   * @param late receives each request whose deadline has passed; it is removed already
   * @param paused true while a person answers a question of the server: no request then times out
   * @param firstId the id of the first request
   */
  constructor(clock: Clock, late: (request: OutgoingRequest) => void, paused: () => boolean, firstId: number) {
    this.#lastId = firstId - 1;
    this.#clock = clock;
    this.#late = late;
    this.#paused = paused;
  }

  get size(): number {
    return this.#byId.size;
  }

  /** The id of the next request that is sent. */
  get nextId(): number {
    return this.#lastId + 1;
  }

  /** Adds a request, or its next attempt, under a new id: ids are never used twice (MCP base protocol, "Requests"). */
  add(request: OutgoingRequest): void {
    const now = this.#clock.now();
    this.#lastId += 1;
    request.id = this.#lastId;
    request.attempts += 1;
    request.sentAt = now;
    if (request.timeoutMs !== undefined) {
      request.due = now + request.timeoutMs;
      if (request.attempts === 1) request.lastDue = now + (request.maxTimeoutMs ?? request.timeoutMs);
      request.due = Math.min(request.due, request.lastDue);
      this.#arm(request.due);
    }
    this.#byId.add(request);
  }

  get(id: RequestId): OutgoingRequest | undefined {
    return typeof id === 'number' ? this.#byId.get(id) : undefined;
  }

  /** Removes a request; the remover gives it its outcome. */
  take(id: RequestId): OutgoingRequest | undefined {
    const request = this.get(id);
    if (request) this.#byId.delete(request);
    return request;
  }

  /** Progress has arrived: the time starts again, up to the request's last deadline. */
  extend(request: OutgoingRequest): void {
    if (request.timeoutMs === undefined) return;
    request.due = Math.min(this.#clock.now() + request.timeoutMs, request.lastDue);
  }

  /** Puts a request back whose deadline has passed: its response still counts, for its timeout once more. */
  putBack(request: OutgoingRequest): void {
    request.due = this.#clock.now() + (request.timeoutMs ?? 0);
    request.lastDue = request.due;
    this.#byId.add(request);
    this.#arm(request.due);
  }

  /** All requests, in the order in which they were sent. */
  values(): readonly OutgoingRequest[] {
    return [...this.#byId.all()].sort((one, other) => one.id - other.id);
  }

  /** Removes and returns all requests, in the order in which they were sent. */
  drain(): readonly OutgoingRequest[] {
    const all = this.values();
    for (const request of all) this.#byId.delete(request);
    this.#byId.shrink();
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#timerDue = Number.POSITIVE_INFINITY;
    return all;
  }

  /** One timer serves all requests: it fires at the earliest deadline, which progress may have moved. */
  #arm(due: number): void {
    if (due >= this.#timerDue) return;
    this.#timer?.cancel();
    this.#timerDue = due;
    this.#timer = this.#clock.after(Math.max(0, Math.ceil(due - this.#clock.now())), () => this.#expire());
  }

  #expire(): void {
    this.#timer = undefined;
    this.#timerDue = Number.POSITIVE_INFINITY;
    const now = this.#clock.now();
    const paused = this.#paused();
    let next = Number.POSITIVE_INFINITY;
    for (const request of this.values()) {
      // The outcome of one request may end others.
      if (request.timeoutMs === undefined || this.#byId.get(request.id) !== request) continue;
      if (paused) {
        request.due = Math.max(request.due, now + request.timeoutMs);
        request.lastDue = Math.max(request.lastDue, request.due);
      }
      if (request.due > now) {
        next = Math.min(next, request.due);
        continue;
      }
      this.#byId.delete(request);
      this.#late(request);
    }
    if (next !== Number.POSITIVE_INFINITY) this.#arm(next);
    this.#byId.shrink();
  }
}

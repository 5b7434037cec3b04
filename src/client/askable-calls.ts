/**
 * The calls that a legacy server may ask about without naming them. Calls of several callers take turns, so that it is certain whose
 * call asks.
 */
import type { Clock, Timer } from '../core/kernel/clock.ts';
import { isObject, type JsonObject } from '../core/protocol/json.ts';
import type { RequestId } from '../core/protocol/jsonrpc.ts';
import { META } from '../core/protocol/meta.ts';
import type { OutgoingRequest, OutgoingRequests } from './outgoing-requests.ts';
import type { ServerRequests } from './server-requests.ts';

/** Milliseconds for which a server may still ask for a call that its caller has given up. */
const ABANDONED_MS = 60_000;
/** Milliseconds that a call waits for its turn. A call that takes longer, or whose user thinks, holds up no other. */
const TURN_MS = 2_000;
/** Milliseconds after a question of a call in which it may ask another one at the same time. Later it waits for the answer. */
const ASKS_MS = 1_000;

export class AskableCalls {
  readonly #clock: Clock;
  readonly #requests: OutgoingRequests;
  readonly #questions: ServerRequests;
  readonly #due: () => void;
  /** Calls take turns: the server has asked without naming the call. */
  #inTurn = false;
  /** The calls that wait for their turn, in order, with the time at which they take it beside others. */
  #queue: { readonly request: OutgoingRequest; readonly until: number }[] = [];
  #timer: Timer | undefined;
  /** The calls that were given up and not answered, with the time until when the server may ask for them. */
  readonly #abandoned = new Map<RequestId, number>();

  /**
   * @param requests the requests in flight
   * @param questions the open requests of the server
   * @param due is called when a call has waited long enough: {@link takeDue} returns it
   */
  constructor(clock: Clock, requests: OutgoingRequests, questions: ServerRequests, due: () => void) {
    this.#clock = clock;
    this.#requests = requests;
    this.#questions = questions;
    this.#due = due;
  }

  // The call that the server means

  /**
   * The call for which a legacy server asks. Over HTTP the stream tells it. Over one stream the task does (2025-11-25 tasks,
   * "Associating Task-Related Messages"); else it is the only call in flight that does not wait for an answer. Of several that
   * relay questions it is the newest: all of them have one caller.
   *
   * @param about the call whose stream brought the question
   */
  askedFor(params: JsonObject, about: RequestId | undefined): OutgoingRequest | undefined {
    const named = about === undefined ? undefined : this.#requests.get(about);
    if (named) return named;
    const task = taskOf(params);
    const ofTask =
      task === undefined ? undefined : this.#requests.values().findLast((call) => call.params?.taskId === task);
    if (ofTask) return ofTask;
    const likely = this.#likely();
    const [only, second] = likely;
    return second ? likely.findLast((call) => call.ask !== undefined) : only;
  }

  /** True if no other call can be meant than the one that {@link askedFor} found. */
  isCertain(call: OutgoingRequest, params: JsonObject): boolean {
    const task = taskOf(params);
    if (task !== undefined) return call.params?.taskId === task;
    this.#forgetAbandoned();
    const others = this.#likely().filter((each) => mayBeAsked(each) && each !== call).length;
    return others === 0 && this.#abandoned.size === 0;
  }

  /** The requests in flight that the server may ask about now: those whose handlers do not wait for an answer, or else all. */
  #likely(): readonly OutgoingRequest[] {
    const calls = this.#requests.values();
    const active = calls.filter((call) => !this.#awaitsAnswer(call));
    return active.length > 0 ? active : calls;
  }

  /** True if the handler of a request waits for its user: what the server asks now is about another request. */
  #awaitsAnswer(call: OutgoingRequest): boolean {
    const askedAt = this.#questions.askedAt(call);
    return askedAt !== undefined && askedAt + ASKS_MS <= this.#clock.now();
  }

  // Abandoned calls

  /** The caller of a call in flight gives it up. */
  abandon(call: OutgoingRequest): void {
    if (!mayBeAsked(call)) return;
    this.#forgetAbandoned();
    this.#abandoned.set(call.id, this.#clock.now() + ABANDONED_MS);
  }

  /** The server has responded to a call that was given up. */
  answered(id: RequestId): void {
    this.#abandoned.delete(id);
  }

  /** The server has ended: it asks no more. */
  forget(): void {
    this.#abandoned.clear();
  }

  #forgetAbandoned(): void {
    const now = this.#clock.now();
    for (const [id, until] of this.#abandoned) if (until <= now) this.#abandoned.delete(id);
  }

  // Turns

  /** The number of calls that wait for their turn. */
  get waiting(): number {
    return this.#queue.length;
  }

  /** From now on, calls take turns. */
  takeTurns(): void {
    this.#inTurn = true;
  }

  /** Queues a call until the server can ask about no other one. @returns false if it may be sent now */
  wait(request: OutgoingRequest): boolean {
    if (!this.#inTurn || !mayBeAsked(request) || this.#isFree) return false;
    this.#queue.push({ request, until: this.#clock.now() + TURN_MS });
    this.#arm();
    return true;
  }

  /** The call whose turn it is, if the server can ask about no other one. It leaves the queue. */
  takeNext(): OutgoingRequest | undefined {
    return this.#queue.length > 0 && this.#isFree ? this.#queue.shift()?.request : undefined;
  }

  /** The calls that have waited long enough. They leave the queue. */
  takeDue(): readonly OutgoingRequest[] {
    const now = this.#clock.now();
    return this.take((_, until) => until <= now);
  }

  /** Takes calls out of the queue. */
  take(which: (request: OutgoingRequest, until: number) => boolean = () => true): readonly OutgoingRequest[] {
    const taken = this.#queue.filter(({ request, until }) => which(request, until));
    this.#queue = this.#queue.filter(({ request, until }) => !which(request, until));
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#arm();
    return taken.map(({ request }) => request);
  }

  /** True if no request is in flight about which the server may ask without naming it. */
  get #isFree(): boolean {
    return !this.#requests.values().some((request) => mayBeAsked(request) && !this.#awaitsAnswer(request));
  }

  #arm(): void {
    const [first] = this.#queue;
    if (!first || this.#timer) return;
    this.#timer = this.#clock.after(Math.max(0, first.until - this.#clock.now()), () => {
      this.#timer = undefined;
      this.#due();
    });
  }
}

/** True if a legacy server may ask about a request without naming it: what it asks for a task names the task. */
function mayBeAsked({ ask, params }: OutgoingRequest): boolean {
  return ask !== undefined && params?.taskId === undefined;
}

/** The task that a message belongs to (2025-11-25 tasks, "Associating Task-Related Messages"). */
function taskOf({ _meta: meta }: JsonObject): unknown {
  const related = isObject(meta) ? meta[META.relatedTask] : undefined;
  return isObject(related) ? related.taskId : undefined;
}

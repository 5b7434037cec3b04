/** The entry of an interactive request in its table: its round, its suspension, its durable answers, and its end. */

import { Unanswered } from '../../core/execution/input-errors.ts';
import type { Actor } from '../../core/kernel/actor.ts';
import type { ActorSystem } from '../../core/kernel/actor-system.ts';
import type { SlicedQueue } from '../../core/kernel/clock.ts';
import { nameOfOperation } from '../../core/kernel/inspection/display-names.ts';
import type { Limits } from '../../core/kernel/limits.ts';
import { fieldsOf } from '../../core/kernel/operator-log.ts';
import type { Question } from '../../core/messages/client-input.ts';
import type { Mailbox } from '../../core/messages/mailbox.ts';
import type { HeldMemory, RequestView } from '../../core/messages/request-view.ts';
import type { Outcome, Result } from '../../core/messages/results.ts';
import { heapBytes } from '../../core/protocol/heap.ts';
import type { StateKeys } from '../../core/store/state-keys.ts';
import type { AuditMail } from '../guard/audit/audit-messages.ts';
import type { HandlerRun, InteractiveRequestMail } from './input-messages.ts';
import { makeInteractive, rejectingMailbox } from './interactive-mailbox.ts';
import type { ModelAnswers } from './model-answers.ts';
import { RecordedReplies } from './recorded-replies.ts';
import type { RequestLog } from './request-log.ts';
import { sealState } from './request-state.ts';
import type { Reserved, SuspendedRequest, SuspendedRequests } from './suspended.ts';

/** The services that all interactive requests of a server share. */
export interface InteractiveRequestServices {
  readonly system: ActorSystem;
  readonly limits: Limits;
  /** The keys that seal states. */
  readonly keys: StateKeys;
  readonly requestLog: RequestLog;
  readonly suspended: SuspendedRequests;
  readonly models: ModelAnswers;
  /** The interactive requests that have not ended, by id. */
  readonly entries: Map<string, InteractiveRequestEntry>;
  /** The tasks whose handlers have ended. Each holds its place among the running handlers until it is processed. */
  readonly taskEnds: SlicedQueue<TaskEnd>;
  readonly audit?: Mailbox<AuditMail> | undefined;
}

/** The end of a handler whose request has become a task. */
interface TaskEnd {
  readonly entry: InteractiveRequestEntry;
  readonly outcome: Outcome;
  /** The inspection record that caused it. */
  readonly cause: number;
}

export function endTask({ entry, outcome, cause }: TaskEnd): void {
  entry.system.inspection.withCause(cause, () => entry.mailbox.send({ type: 'task ends', outcome }));
}

/** The run of a handler that needs input, as its interactive request begins. */
interface InteractiveRun {
  /** Its id in sealed states, known only to this server. */
  readonly id: string;
  /** The first request, which is retained as long as the handler. */
  readonly request: RequestView;
  readonly run: HandlerRun;
  /** Counts its open input requests and the replies to them. */
  readonly memory: HeldMemory;
}

export const REQUEST_ENDED = 'the request has ended, so its questions are withdrawn';

export class InteractiveRequestEntry implements SuspendedRequest, InteractiveRun {
  readonly id: string;
  readonly request: RequestView;
  readonly run: HandlerRun;
  readonly memory: HeldMemory;
  /** The replies of its client so far. */
  readonly replies: RecordedReplies;
  /** The span of the request that asked first. */
  readonly #trace: string | undefined;
  round: number;
  until: number | undefined;
  length = 0;
  reserved: Reserved | undefined;
  ending: SuspendedRequest['ending'];
  readonly #services: InteractiveRequestServices;
  #actor: Actor<InteractiveRequestMail> | undefined;

  constructor({ id, request, run, memory }: InteractiveRun, services: InteractiveRequestServices) {
    this.id = id;
    this.request = request;
    this.run = run;
    this.memory = memory;
    this.replies = new RecordedReplies(request.recorded?.replies ?? {}, memory);
    this.round = request.recorded?.round ?? 0;
    this.#trace = request.recorded?.trace ?? request.span?.traceparent;
    this.#services = services;
  }

  /** Adds the entry to its table. @param actor the actor that tracks the request */
  begin(actor: Actor<InteractiveRequestMail>): void {
    this.#actor = actor;
    this.#services.entries.set(this.id, this);
  }

  /** Records questions and their answers; undefined without an audit. */
  get audit(): Mailbox<AuditMail> | undefined {
    return this.#services.audit;
  }

  get system(): ActorSystem {
    return this.#services.system;
  }

  /** Milliseconds that a client has to answer. */
  get askMs(): number {
    return this.#services.limits.askMs;
  }

  get principal(): string {
    return this.request.client.principal;
  }

  get mailbox(): Mailbox<InteractiveRequestMail> {
    if (!this.#actor) throw new Error('expected an interactive request that has begun');
    return this.#actor.mailbox;
  }

  /**
   * Suspends it until its client returns.
   *
   * @param replies the replies so far, which the state carries
   * @returns the request state that the client sends with its next request
   */
  suspend(round: number, replies: Readonly<Record<string, unknown>>, request: RequestView): string {
    const { keys, limits, system } = this.#services;
    const { clock, log } = system;
    this.wait(round, replies, request);
    const until = clock.date() + limits.askMs;
    const trace = this.#trace;
    const state = { id: this.id, round, until, whole: true, replies, steps: this.run.steps(), trace };
    const { text, without } = sealState(keys.ring, state, request, limits.maxStateLength);
    if (without !== undefined)
      log(
        'warning',
        `the requestState of ${nameOfOperation(request.operation)} cannot survive a restart of this process: ${without}. Return less from its steps, such as ids`,
        { event: 'program', ...fieldsOf(request) },
      );
    return text;
  }

  /**
   * Suspends it until the model of its client answers.
   *
   * @returns the result that asks the model
   */
  askModel(round: number, questions: readonly Question[], request: RequestView): Result {
    this.wait(round, questions, request);
    return { kind: 'call', result: this.#services.models.ask(this.mailbox, questions, request) };
  }

  /**
   * Suspends it without a new state: its client repeats its last request.
   *
   * @param kept the data to hold in memory besides the current request; the memory of the first request counts its bytes
   */
  wait(round: number, kept: unknown, current: RequestView): void {
    const { entries, suspended } = this.#services;
    if (!entries.has(this.id)) return;
    this.round = round;
    // While it is suspended, its memory counts as suspended and no longer as in flight.
    current.held?.release();
    const first = this.request === current ? 0 : this.request.bytes;
    const bytes = first + Math.max(current.bytes, heapBytes(current.operation));
    suspended.add(this.id, this, [current.operation, kept], bytes);
    // Its client returns to the node that owns its cell now, and that node runs the request again.
    if (this.#services.requestLog.isLeaving(this.id))
      this.mailbox.send({ type: 'aborted', reason: new Unanswered('another node continues this request') });
  }

  /** Ends its suspension: its client has returned, or will not return. */
  resume(): void {
    const { models, suspended } = this.#services;
    if (suspended.remove(this.id)) models.forget(this.mailbox);
  }

  /**
   * Stores the answer to the current request: the next input requests, or the final result.
   *
   * @param round the round of the state that the request brought
   * @returns a promise that resolves when the answer may be sent; undefined if it may be sent immediately
   */
  store(round: number, outcome: Outcome, ends: boolean): Promise<void> | undefined {
    const stored = this.#services.requestLog.recordAnswer(this.id, round, outcome, ends);
    if (!stored || !ends) return stored;
    return stored.then(() => {
      this.ending = 'answered';
    });
  }

  /** The request has ended and must not be continued. */
  end(): void {
    const { entries, requestLog } = this.#services;
    if (entries.delete(this.id)) requestLog.ended(this.id, this.round, this.ending);
  }

  /** Ends its task at once, or in a later turn of the event loop if this one has ended many. */
  endTaskSoon(outcome: Outcome): void {
    this.#services.taskEnds.add({ entry: this, outcome, cause: this.system.inspection.cause });
  }

  /** Its handler has ended. */
  handlerEnded(): void {
    const { request } = this;
    this.#actor?.stop('its handler has ended');
    request.memory?.release();
    // Code that the handler left running may still ask.
    makeInteractive(
      request,
      rejectingMailbox(() => new Unanswered(REQUEST_ENDED), this.system.clock),
    );
  }
}

/** The interactive requests of a server: creates them, suspends them, and routes returning requests to them. */

import { Unanswered } from '../../core/execution/input-errors.ts';
import { type ActorSystem, wireErrorOf } from '../../core/kernel/actor-system.ts';
import { type Clock, eachInSlices, SlicedQueue } from '../../core/kernel/clock.ts';
import { durationOf } from '../../core/kernel/duration.ts';
import { nameOfOperation } from '../../core/kernel/inspection/display-names.ts';
import type { Limits } from '../../core/kernel/limits.ts';
import { fieldsOf } from '../../core/kernel/operator-log.ts';
import type { Quota, Reservation } from '../../core/kernel/quota.ts';
import type { Quotas } from '../../core/kernel/server-quotas.ts';
import type { CellHolder } from '../../core/messages/cell-holder.ts';
import type { RecordedReply } from '../../core/messages/client-input.ts';
import type { Mailbox } from '../../core/messages/mailbox.ts';
import type { HeldMemory, RequestView } from '../../core/messages/request-view.ts';
import { cellIn, isOfCells } from '../../core/protocol/cell.ts';
import { ErrorCode, ProtocolError } from '../../core/protocol/errors.ts';
import { setMemory, setRecorded, settleUnsent } from '../../core/requests/active-request.ts';
import type { StateKeys } from '../../core/store/state-keys.ts';
import type { AuditMail } from '../guard/audit/audit-messages.ts';
import type { HandlerRun, InteractiveRequestMail } from './input-messages.ts';
import { interactiveOf, makeInteractive, rejectingMailbox } from './interactive-mailbox.ts';
import { spawnInteractiveRequest } from './interactive-request.actor.ts';
import {
  endTask,
  InteractiveRequestEntry,
  type InteractiveRequestServices,
  REQUEST_ENDED,
} from './interactive-request-entry.ts';
import { ModelAnswers } from './model-answers.ts';
import type { Consumed, RequestLog } from './request-log.ts';
import type { RequestStorage } from './request-record.ts';
import { openState, type RequestState } from './request-state.ts';
import { SuspendedRequests } from './suspended.ts';

interface InteractiveRequestsOptions {
  readonly system: ActorSystem;
  /** The keys that seal states. With a durable store they are available once the store is open. */
  readonly keys: StateKeys;
  readonly requestLog: RequestLog;
  readonly limits: Limits;
  readonly quotas: Quotas;
  /** Records questions and their answers. */
  readonly audit?: Mailbox<AuditMail> | undefined;
}

export class InteractiveRequests implements CellHolder {
  readonly #options: InteractiveRequestsOptions;
  readonly #services: InteractiveRequestServices;
  #contextDropped = false;
  readonly #ids = new WeakMap<Mailbox<InteractiveRequestMail>, string>();

  constructor(options: InteractiveRequestsOptions) {
    const { limits, quotas, system } = options;
    this.#options = options;
    this.#services = {
      ...options,
      suspended: new SuspendedRequests(system.clock, limits, quotas),
      models: new ModelAnswers(limits.askMs, system.ids),
      taskEnds: new SlicedQueue(system.clock, (entry) => endTask(entry)),
      entries: new Map(),
    };
  }

  get clock(): Clock {
    return this.#options.system.clock;
  }

  /** Warns, once for the server, that a sampling request is sent without its `includeContext`. */
  contextDropped(request: RequestView): void {
    if (this.#contextDropped) return;
    this.#contextDropped = true;
    this.#options.system.log(
      'warning',
      `${nameOfOperation(request.operation)}: ctx.sample: includeContext is not sent, because this client has not declared sampling.context. Put the context into the messages; this warning is not repeated`,
      { event: 'program', ...fieldsOf(request) },
    );
  }

  /** Finds out if an interactive request with this id exists. */
  has(id: string): boolean {
    return this.#services.entries.has(id);
  }

  /** Number of suspended requests. */
  get suspended(): number {
    return this.#services.suspended.size;
  }

  /** Returns the interactive request of a request; creates it if needed. */
  interact(request: RequestView, run: HandlerRun): Mailbox<InteractiveRequestMail> {
    const existing = interactiveOf(request);
    if (existing) return existing;
    const { system, requestLog } = this.#options;
    const { clock } = system;
    const refusal = refusalFor(request);
    if (refusal) return rejectingMailbox(() => refusal, clock);
    const id = request.recorded?.id ?? system.ids.within(request.client.session?.id, request.exchange?.cell);
    const memory = this.memoryOf(request);
    const entry = new InteractiveRequestEntry({ id, request, run, memory }, this.#services);
    spawnInteractiveRequest(entry);
    const { mailbox } = entry;
    this.#ids.set(mailbox, id);
    if (requestLog.durable && request.recorded?.id !== undefined) requestLog.recordOf(id, false, request);
    makeInteractive(request, mailbox);
    if (request.recorded?.waits) {
      entry.wait(entry.round, {}, request);
      settleUnsent(request);
    }
    return mailbox;
  }

  /** Returns the durable record of a request, which has the id of its interactive request; undefined without a durable store. */
  storageOf(request: RequestView, run: HandlerRun): RequestStorage | undefined {
    const { requestLog } = this.#options;
    if (!requestLog.durable) return undefined;
    const id = this.#ids.get(this.interact(request, run));
    // A request that cannot ask is never continued.
    return id === undefined ? undefined : requestLog.recordOf(id, request.recorded?.id === undefined, request);
  }

  get maxStepsLength(): number {
    return this.#options.limits.maxStepsLength;
  }

  get maxTimeoutMs(): number {
    return this.#options.limits.maxTimeoutMs;
  }

  /** True if another process continues this request when it ends here. */
  continuesElsewhere(request: RequestView): boolean {
    const mailbox = interactiveOf(request);
    const id = mailbox && this.#ids.get(mailbox);
    return id !== undefined && this.#options.requestLog.durable && this.#options.requestLog.isLeaving(id);
  }

  /** Counts the memory that the handler of a request makes the server retain, until handler and interactive request have ended. */
  memoryOf(request: RequestView): HeldMemory {
    if (request.memory) return request.memory;
    const memory = new RequestMemory(this.#options.quotas.retained, request);
    setMemory(request, memory);
    return memory;
  }

  /** Returns the id of an interactive request in the store, its last round, and the replies so far. */
  identityOf(
    interactiveRequest: Mailbox<InteractiveRequestMail>,
  ): { readonly id: string; readonly round: number; readonly replies: RecordedReply['replies'] } | undefined {
    const id = this.#ids.get(interactiveRequest);
    if (id === undefined) return undefined;
    const { round = 0, replies } = this.#services.entries.get(id) ?? {};
    return { id, round, replies: replies?.all ?? {} };
  }

  /** The id of the interactive request that a request continues by its state; undefined for a state that cannot be read. */
  continuedBy(request: RequestView): string | undefined {
    const { operation } = request;
    const text = 'input' in operation ? operation.input?.state : undefined;
    try {
      return text === undefined ? undefined : openState(this.#options.keys.ring, text, request).id;
    } catch {
      // Its error is worded where the request is served.
      return undefined;
    }
  }

  /** The number of times that a call has asked its client so far. */
  roundOf(request: RequestView): number {
    const interactive = interactiveOf(request);
    return (interactive && this.identityOf(interactive)?.round) ?? request.recorded?.round ?? 0;
  }

  /** The request has become a task, which now persists its records. */
  tasked(interactiveRequest: Mailbox<InteractiveRequestMail>): void {
    const live = this.#services.entries.get(this.#ids.get(interactiveRequest) ?? '');
    if (live) live.ending = 'task';
  }

  /**
   * Handles a call with which a model answers.
   *
   * @returns false for any other request
   */
  answers(request: RequestView): boolean {
    return this.#services.models.takes(request);
  }

  /** The scopes of the call that a model continues by its answers; none for any other request. */
  neededFor(request: RequestView): readonly string[] {
    return this.#services.models.neededFor(request);
  }

  /**
   * Handles a request that continues an earlier one.
   *
   * @param again runs the request, once its recorded data is available
   * @returns false for a request that runs now, possibly with recorded data
   */
  continues(request: RequestView, again: () => void): boolean {
    const { operation, client } = request;
    const input = 'input' in operation ? operation.input : undefined;
    // Sessions are asked over their stream; in their revisions these parameters have no meaning.
    if (!input || client.session || request.recorded) return false;
    try {
      return this.#continue(request, input.responses, input.state, again);
    } catch (error) {
      this.#refuse(request, error);
      return true;
    }
  }

  #continue(request: RequestView, responses: Responses, text: string | undefined, again: () => void): boolean {
    if (text === undefined) {
      // A client that knows the questions may send the answers with its first request.
      setRecorded(request, { id: undefined, round: 0, replies: responses, steps: {} });
      return false;
    }
    const { keys, requestLog } = this.#options;
    const state = openState(keys.ring, text, request);
    if (state.trace !== undefined) request.span?.link(state.trace);
    if (this.#passOn(state, request, responses)) return true;
    if (!requestLog.durable) {
      this.#record(state, request, responses);
      return false;
    }
    Promise.all([requestLog.statusOf(state.id, state.round), requestLog.checkpoint(state.id)]).then(
      ([taken, checkpoint]) => this.#look({ ...state, checkpoint }, taken, request, responses, again),
      (error: unknown) => this.#refuse(request, error),
    );
    return true;
  }

  /**
   * Passes the request to the interactive request that waits for it.
   *
   * @returns false if none waits
   * @throws {ProtocolError} for a state that is no longer valid
   */
  #passOn(state: RequestState, request: RequestView, responses: Responses): boolean {
    const { system, requestLog, limits } = this.#options;
    const live = this.#services.entries.get(state.id);
    if (state.until <= system.clock.date() || (!live && requestLog.isExpired(state.until)))
      throw refused(`its question expired after ${durationOf(limits.askMs)}`);
    // The request was answered with the task that it has become, which the store has.
    if (live?.ending === 'task' && requestLog.durable) return false;
    if (live) {
      if (live.until === undefined || live.round !== state.round) throw answeredAlready();
      live.mailbox.send({ type: 'resumed', request, responses });
      return true;
    }
    if (requestLog.isConsumed(state.id)) throw answeredAlready();
    return false;
  }

  /** The store has loaded the status of a state. In the meantime another request may have brought the same state. */
  #look(state: RequestState, taken: Consumed, request: RequestView, responses: Responses, again: () => void): void {
    if (request.settled) return;
    try {
      if (this.#passOn(state, request, responses)) return;
      const isTask = this.#services.entries.has(state.id);
      if (taken === 'yes' || (taken === 'no' && isTask)) throw answeredAlready();
      if (taken !== 'no') return request.requests.send({ type: 'answer', request, outcome: taken });
      this.#record(state, request, responses);
      again();
    } catch (error) {
      this.#refuse(request, error);
    }
  }

  #record(state: RequestState, request: RequestView, responses: Responses): void {
    if (!state.whole && state.checkpoint === undefined)
      throw refused(
        'its question is no longer open, and the request cannot be run again because its recorded steps did not fit into the state',
      );
    // Recorded answers take precedence, because recorded steps may depend on them.
    setRecorded(request, { ...state, replies: { ...responses, ...state.replies } });
  }

  #refuse(request: RequestView, error: unknown): void {
    const wire = wireErrorOf(this.#options.system, 'params.requestState', error);
    request.requests.send({ type: 'answer', request, outcome: { ok: false, error: wire } });
  }

  /** The server is stopping: with a durable store, another process continues the requests that end now. */
  leave(): void {
    this.#options.requestLog.leave();
  }

  /** Does nothing else: the store is read when a client returns. */
  take(cells: readonly number[] | undefined): Promise<void> {
    if (cells) this.#options.requestLog.takeCells(cells);
    return Promise.resolve();
  }

  /** Lets go of the requests that wait for their clients. Requests in flight continue; without `flush` they end, too. */
  drop(cells: ReadonlySet<number>, flush: boolean): Promise<void> {
    this.#options.requestLog.leaveCells(cells);
    const reason = new Unanswered('another node continues this request');
    const leaving = [...this.#services.entries.values()].filter(
      ({ id, until, ending }) => isOfCells(cells, id) && ending !== 'task' && !(flush && until === undefined),
    );
    for (const { mailbox } of leaving) mailbox.send({ type: 'aborted', reason });
    return Promise.resolve();
  }

  /** The cells of the requests in flight: their handlers could record nothing more. */
  *working(): Iterable<number> {
    for (const { id, until, ending } of this.#services.entries.values()) {
      const cell = until === undefined && ending === undefined ? cellIn(id) : undefined;
      if (cell !== undefined) yield cell;
    }
  }

  /** Resolves when each task whose handler has ended has its result. */
  finished(): Promise<void> {
    return this.#services.taskEnds.empty();
  }

  /** Ends all interactive requests, in slices. */
  stop(reason: string): Promise<void> {
    this.#services.suspended.stop();
    return eachInSlices(this.#options.system.clock, [...this.#services.entries.values()], ({ mailbox }) =>
      mailbox.send({ type: 'aborted', reason: new Unanswered(reason) }),
    );
  }
}

type Responses = Readonly<Record<string, unknown>>;

/** Returns the reason why a request cannot ask its client; undefined if it can. */
function refusalFor(request: RequestView): Error | undefined {
  const { client, operation, settled, signal } = request;
  // Only some methods may be answered with questions (2026-07-28 MRTR, "Supported Requests").
  if (!client.session && !('input' in operation))
    return new Unanswered(`${operation.method} cannot ask its client anything in revision ${client.dialect.revision}`);
  if (!settled) return undefined;
  const reason: unknown = signal.reason;
  return reason instanceof Error ? reason : new Unanswered(REQUEST_ENDED);
}

function answeredAlready(): ProtocolError {
  return refused('its question was already answered');
}

function refused(why: string): ProtocolError {
  return new ProtocolError(
    ErrorCode.InvalidParams,
    `params.requestState: ${why}. Send the request again without requestState and inputResponses`,
  );
}

class RequestMemory implements HeldMemory {
  readonly #taken: Reservation;
  #released = false;

  constructor(retained: Quota, { client }: RequestView) {
    this.#taken = retained.take(client.principal, 0, client.session?.id);
  }

  hold(bytes: number, forced?: 'forced'): string | undefined {
    return this.#released ? undefined : this.#taken.resize(this.#taken.amount + bytes, forced)?.message;
  }

  free(bytes: number): void {
    if (!this.#released) this.#taken.resize(Math.max(0, this.#taken.amount - bytes));
  }

  release(): void {
    this.#released = true;
    this.#taken.release();
  }
}

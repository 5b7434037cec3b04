/** The interactive requests of a server: creates them, suspends them, and routes returning requests to them. */

import { nanoid } from 'nanoid';
import type { ActorSystem } from '../actor/actor.ts';
import type { Clock } from '../clock.ts';
import type { Limits } from '../limits.ts';
import type { HandlerRun, InteractiveRequestMail } from '../messages/input-messages.ts';
import type { Mailbox } from '../messages/mailbox.ts';
import type { HeldMemory, RequestView } from '../messages/request-view.ts';
import type { Outcome } from '../messages/results.ts';
import { ErrorCode, isProtocolError, ProtocolError, toWireError } from '../protocol/errors.ts';
import { heapBytes } from '../protocol/heap.ts';
import type { Quota, Reservation } from '../quota.ts';
import { makeInteractive, setMemory, setRecorded, settleUnsent } from '../requests/active-request.ts';
import type { Quotas } from '../server-quotas.ts';
import { Unanswered } from './input-errors.ts';
import { refuseInput } from './input-request.ts';
import { spawnInteractiveRequest } from './interactive-request.ts';
import { ModelAnswers } from './model-answers.ts';
import type { Consumed, RequestLog } from './request-log.ts';
import type { RequestStorage } from './request-record.ts';
import { openState, type RequestState, sealState } from './request-state.ts';
import type { KeyRing } from './seal.ts';
import { type SuspendedRequest, SuspendedRequests, tooLate } from './suspended.ts';

export interface InteractiveRequestsOptions {
  readonly system: ActorSystem;
  /** Returns the keys that seal states. With a durable store they are available once the store is open. */
  keys(): KeyRing;
  readonly ledger: RequestLog;
  readonly limits: Limits;
  readonly quotas: Quotas;
}

const ENDED = 'the request has ended, so its questions are withdrawn';

export class InteractiveRequests {
  readonly #options: InteractiveRequestsOptions;
  readonly #live = new Map<string, SuspendedRequest>();
  readonly #suspended: SuspendedRequests;
  readonly #ids = new WeakMap<Mailbox<InteractiveRequestMail>, string>();
  readonly #models: ModelAnswers;

  constructor(options: InteractiveRequestsOptions) {
    this.#options = options;
    this.#suspended = new SuspendedRequests(options.system.clock, options.limits, options.quotas);
    this.#models = new ModelAnswers(options.limits.askMs);
  }

  /** Finds out if an interactive request with this id exists. */
  has(id: string): boolean {
    return this.#live.has(id);
  }

  /** Number of suspended requests. */
  get suspended(): number {
    return this.#suspended.size;
  }

  /** Returns the interactive request of a request; creates it if needed. */
  interact(request: RequestView, run: HandlerRun): Mailbox<InteractiveRequestMail> {
    if (request.conversation) return request.conversation;
    const { system, ledger, limits } = this.#options;
    const { clock } = system;
    const refusal = refusalFor(request);
    if (refusal) return refusing(() => refusal, clock);
    const id = request.recorded?.id ?? nanoid();
    const actor = spawnInteractiveRequest({
      system,
      id,
      request,
      recorded: request.recorded,
      run,
      askMs: limits.askMs,
      memory: this.memoryOf(request),
      suspend: (round, replies, current) => this.#suspend(id, round, replies, current, run),
      suspendAgain: (round, current) => this.#wait(id, round, {}, current),
      askModel: (round, questions, current) => {
        this.#wait(id, round, questions, current);
        return { kind: 'call', result: this.#models.ask(actor.mailbox, questions, current) };
      },
      resume: () => this.#resume(id),
      store: (round, outcome, ends) => this.#store(id, round, outcome, ends),
      ended: () => this.#ended(id),
      handlerEnded: () => {
        actor.stop('its handler has ended');
        request.memory?.release();
        // Code that the handler left running may still ask.
        makeInteractive(
          request,
          refusing(() => new Unanswered(ENDED), clock),
        );
      },
      expired: () => tooLate(limits.askMs),
    });
    const { principal } = request.client;
    const round = request.recorded?.round ?? 0;
    this.#live.set(id, {
      actor,
      principal,
      round,
      request,
      until: undefined,
      length: 0,
      place: undefined,
      kept: undefined,
    });
    this.#ids.set(actor.mailbox, id);
    if (ledger.durable && request.recorded?.id !== undefined) ledger.recordOf(id, false, request);
    makeInteractive(request, actor.mailbox);
    if (request.recorded?.waits) {
      this.#wait(id, round, {}, request);
      settleUnsent(request);
    }
    return actor.mailbox;
  }

  /** Returns the durable record of a request, which has the id of its interactive request; undefined without a durable store. */
  storageOf(request: RequestView, run: HandlerRun): RequestStorage | undefined {
    const { ledger } = this.#options;
    if (!ledger.durable) return undefined;
    const id = this.#ids.get(this.interact(request, run));
    // A request that cannot ask is never continued.
    return id === undefined ? undefined : ledger.recordOf(id, request.recorded?.id === undefined, request);
  }

  get maxStepsLength(): number {
    return this.#options.limits.maxStepsLength;
  }

  /** Counts the memory that the handler of a request makes the server retain, until handler and interactive request have ended. */
  memoryOf(request: RequestView): HeldMemory {
    if (request.memory) return request.memory;
    const memory = new RequestMemory(this.#options.quotas.retained, request);
    setMemory(request, memory);
    return memory;
  }

  /** Returns the id of an interactive request in the store, and its last round. */
  identityOf(
    conversation: Mailbox<InteractiveRequestMail>,
  ): { readonly id: string; readonly round: number } | undefined {
    const id = this.#ids.get(conversation);
    return id === undefined ? undefined : { id, round: this.#live.get(id)?.round ?? 0 };
  }

  /** The request has become a task, which now persists its records. */
  tasked(conversation: Mailbox<InteractiveRequestMail>): void {
    const live = this.#live.get(this.#ids.get(conversation) ?? '');
    if (live) live.kept = 'task';
  }

  /**
   * Handles a call with which a model answers.
   *
   * @returns false for any other request
   */
  answers(request: RequestView): boolean {
    return this.#models.takes(request);
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
    const { keys, ledger } = this.#options;
    const state = openState(keys(), text, request);
    if (this.#passOn(state, request, responses)) return true;
    if (!ledger.durable) {
      this.#record(state, request, responses);
      return false;
    }
    Promise.all([ledger.taken(state.id, state.round), ledger.place(state.id)]).then(
      ([taken, place]) => this.#look({ ...state, place }, taken, request, responses, again),
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
    const { system, ledger, limits } = this.#options;
    const live = this.#live.get(state.id);
    if (state.until <= system.clock.date() || (!live && ledger.isForgotten(state.until)))
      throw refused(`its question expired after ${limits.askMs} ms`);
    if (live) {
      if (live.until === undefined || live.round !== state.round) throw answeredAlready();
      live.actor.mailbox.send({ type: 'resumed', request, responses });
      return true;
    }
    if (ledger.isSpent(state.id)) throw answeredAlready();
    return false;
  }

  /** The store has loaded the status of a state. In the meantime another request may have brought the same state. */
  #look(state: RequestState, taken: Consumed, request: RequestView, responses: Responses, again: () => void): void {
    if (request.settled) return;
    try {
      if (this.#passOn(state, request, responses)) return;
      if (taken === 'yes') throw answeredAlready();
      if (taken !== 'no') return request.requests.send({ type: 'answer', request, outcome: taken });
      this.#record(state, request, responses);
      again();
    } catch (error) {
      this.#refuse(request, error);
    }
  }

  #record(state: RequestState, request: RequestView, responses: Responses): void {
    if (!state.whole && state.place === undefined)
      throw refused(
        'its question is no longer open, and the request cannot be run again because its recorded steps did not fit into the state',
      );
    // Recorded answers take precedence, because recorded steps may depend on them.
    setRecorded(request, { ...state, replies: { ...responses, ...state.replies } });
  }

  #refuse(request: RequestView, error: unknown): void {
    const incident = isProtocolError(error) ? '' : this.#options.system.incident('params.requestState', error);
    request.requests.send({ type: 'answer', request, outcome: { ok: false, error: toWireError(error, incident) } });
  }

  /** The server is stopping: with a durable store, another process continues the requests that end now. */
  leave(): void {
    this.#options.ledger.leave();
  }

  get leaving(): boolean {
    return this.#options.ledger.leaving;
  }

  /** Ends all interactive requests. */
  stop(reason: string): void {
    this.#suspended.stop();
    for (const { actor } of [...this.#live.values()])
      actor.mailbox.send({ type: 'aborted', reason: new Unanswered(reason) });
  }

  #suspend(id: string, round: number, replies: Responses, request: RequestView, run: HandlerRun): string {
    const { keys, limits, system } = this.#options;
    const { clock, log } = system;
    const { askMs, maxStateLength } = limits;
    this.#wait(id, round, replies, request);
    const state = { id, round, until: clock.date() + askMs, whole: true, replies, steps: run.steps() };
    const { text, without } = sealState(keys(), state, request, maxStateLength);
    if (without !== undefined)
      log(
        'warning',
        `the requestState of ${nameOf(request)} cannot survive a restart of this process: ${without}. Return less from its steps, such as ids`,
      );
    return text;
  }

  /** @param kept the data to hold in memory besides the current request; the memory of the first request counts its bytes */
  #wait(id: string, round: number, kept: unknown, current: RequestView): void {
    const live = this.#live.get(id);
    if (!live) return;
    live.round = round;
    // While it is suspended, its memory counts as suspended and no longer as in flight.
    current.held?.release();
    const first = live.request === current ? 0 : live.request.bytes;
    const bytes = first + Math.max(current.bytes, heapBytes(current.operation));
    this.#suspended.add(id, live, [current.operation, kept], bytes);
  }

  #resume(id: string): void {
    const live = this.#live.get(id);
    if (live && this.#suspended.remove(id)) this.#models.forget(live.actor.mailbox);
  }

  #store(id: string, round: number, outcome: Outcome, ends: boolean): Promise<void> | undefined {
    const kept = this.#options.ledger.keep(id, round, outcome, ends);
    const live = this.#live.get(id);
    if (!kept || !live || !ends) return kept;
    return kept.then(() => {
      live.kept = 'answered';
    });
  }

  #ended(id: string): void {
    const live = this.#live.get(id);
    if (!live) return;
    this.#live.delete(id);
    this.#options.ledger.over(id, live.round, live.kept);
  }
}

type Responses = Readonly<Record<string, unknown>>;

function nameOf({ operation }: RequestView): string {
  const name = 'name' in operation ? operation.name : 'uri' in operation ? operation.uri : '';
  return `${operation.method} ${name}`;
}

/** Returns the reason why a request cannot ask its client; undefined if it can. */
function refusalFor(request: RequestView): Error | undefined {
  const { client, operation, settled, signal } = request;
  // Only some methods may be answered with questions (2026-07-28 MRTR, "Supported Requests").
  if (!client.session && !('input' in operation))
    return new Unanswered(`${operation.method} cannot ask its client anything in revision ${client.dialect.revision}`);
  if (!settled) return undefined;
  const reason: unknown = signal.reason;
  return reason instanceof Error ? reason : new Unanswered(ENDED);
}

/** A mailbox that rejects every question of a handler that cannot ask. */
function refusing(reason: () => Error, clock: Clock): Mailbox<InteractiveRequestMail> {
  return {
    address: 'request/ended',
    send(mail) {
      if (mail.type === 'ask') refuseInput(mail.questions, reason(), clock);
    },
  };
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

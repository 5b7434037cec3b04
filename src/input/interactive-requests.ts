/** The conversations of a server: who waits for its client, who has been answered, and what a request that comes back is for. */
import { nanoid } from 'nanoid';
import type { ActorSystem } from '../actor/actor.ts';
import type { Clock } from '../clock.ts';
import type { Limits } from '../limits.ts';
import type { ActiveRequest } from '../messages/active-request.ts';
import type { HandlerRun, InteractiveRequestMail } from '../messages/input-messages.ts';
import type { Mailbox } from '../messages/mailbox.ts';
import type { Outcome } from '../messages/results.ts';
import type { OperatorLog } from '../operator-log.ts';
import { ErrorCode, isProtocolError, ProtocolError, toWireError } from '../protocol/errors.ts';
import { heapBytes } from '../protocol/heap.ts';
import type { Quotas } from '../server-quotas.ts';
import { Unanswered } from './input-errors.ts';
import { refuseInput } from './input-request.ts';
import { spawnInteractiveRequest } from './interactive-request.ts';
import { ModelAnswers } from './model-answers.ts';
import type { Consumed, RequestLog } from './request-log.ts';
import { openState, type RequestState, sealState } from './request-state.ts';
import type { KeyRing } from './seal.ts';
import type { StepStore } from './steps.ts';
import { type SuspendedRequest, SuspendedRequests, tooLate } from './suspended.ts';

export interface InteractiveRequestsOptions extends ActorSystem {
  /** What seals states: with a durable store it is known once that is open. */
  keys(): KeyRing;
  readonly ledger: RequestLog;
  readonly limits: Limits;
  readonly quotas: Quotas;
  log: OperatorLog;
  incident(where: string, error: unknown): string;
}

const ENDED = 'the request has ended, and nobody waits for what it asks';

export class InteractiveRequests {
  readonly #options: InteractiveRequestsOptions;
  readonly #live = new Map<string, SuspendedRequest>();
  readonly #parking: SuspendedRequests;
  readonly #ids = new WeakMap<Mailbox<InteractiveRequestMail>, string>();
  readonly #models: ModelAnswers;

  constructor(options: InteractiveRequestsOptions) {
    this.#options = options;
    this.#parking = new SuspendedRequests(options.clock, options.limits, options.quotas);
    this.#models = new ModelAnswers(options.limits.askMs);
  }

  /** Whether a conversation is there that goes by this id. */
  has(id: string): boolean {
    return this.#live.has(id);
  }

  /** How many conversations wait for their clients. */
  get parked(): number {
    return this.#parking.size;
  }

  /** The conversation of a request: the one that it has, or a new one. */
  converse(request: ActiveRequest, carrier: HandlerRun): Mailbox<InteractiveRequestMail> {
    if (request.conversation) return request.conversation;
    const { clock, inspection, ledger, limits, incident } = this.#options;
    const refusal = refusalFor(request);
    if (refusal) return refusing(refusal, clock);
    const id = request.recorded?.id ?? nanoid();
    const actor = spawnInteractiveRequest({
      clock,
      inspection,
      id,
      request,
      recorded: request.recorded,
      carrier,
      askMs: limits.askMs,
      park: (round, replies, current) => this.#park(id, round, replies, current, carrier),
      parkAgain: (round, current) => this.#wait(id, round, {}, current),
      askModel: (round, questions, current) => {
        this.#wait(id, round, questions, current);
        return { kind: 'call', result: this.#models.ask(actor.mailbox, questions, current) };
      },
      unpark: () => this.#unpark(id),
      keep: (round, outcome, ends) => this.#keep(id, round, outcome, ends),
      over: () => this.#over(id),
      gone: () => {
        actor.stop('its handler has ended');
        // What it left running may ask still.
        request.conversation = refusing(new Unanswered(ENDED), clock);
      },
      expired: () => tooLate(limits.askMs),
      incident,
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
    if (ledger.durable && request.recorded?.id !== undefined) ledger.journal(id, false, request);
    request.conversation = actor.mailbox;
    if (request.recorded?.waits) this.#wait(id, round, {}, request);
    request.settled ||= request.recorded?.waits === true;
    return actor.mailbox;
  }

  /** Where the results of a request's steps are kept: with a durable store, under the identity of its conversation. */
  journal(request: ActiveRequest, carrier: HandlerRun): StepStore | undefined {
    const { ledger } = this.#options;
    if (!ledger.durable) return undefined;
    const id = this.#ids.get(this.converse(request, carrier));
    // What cannot ask is never gone on with.
    return id === undefined ? undefined : ledger.journal(id, request.recorded?.id === undefined, request);
  }

  /** What names a conversation in the store, and the round that its client was last asked in. */
  identityOf(
    conversation: Mailbox<InteractiveRequestMail>,
  ): { readonly id: string; readonly round: number } | undefined {
    const id = this.#ids.get(conversation);
    return id === undefined ? undefined : { id, round: this.#live.get(id)?.round ?? 0 };
  }

  /** Its request has become a task, which keeps what it recorded. */
  tasked(conversation: Mailbox<InteractiveRequestMail>): void {
    const live = this.#live.get(this.#ids.get(conversation) ?? '');
    if (live) live.kept = 'task';
  }

  /** Takes a call by which a model answers. @returns false for any other request */
  answers(request: ActiveRequest): boolean {
    return this.#models.takes(request);
  }

  /**
   * Takes a request that goes on with an earlier one.
   *
   * @param again runs it, once it is known what to run it with
   * @returns false for one that is to be run now, maybe with what was recorded
   */
  resumes(request: ActiveRequest, again: () => void): boolean {
    const { operation, client } = request;
    const input = 'input' in operation ? operation.input : undefined;
    // A session is asked over its stream: to its revisions these parameters mean nothing.
    if (!input || client.session || request.recorded) return false;
    try {
      return this.#resumes(request, input.responses, input.state, again);
    } catch (error) {
      this.#refuse(request, error);
      return true;
    }
  }

  #resumes(request: ActiveRequest, responses: Responses, text: string | undefined, again: () => void): boolean {
    if (text === undefined) {
      // Whoever knows what will be asked may answer at once.
      request.recorded = { id: undefined, round: 0, replies: responses, steps: {} };
      return false;
    }
    const { keys, ledger } = this.#options;
    const state = openState(keys(), text, request);
    if (this.#goesOn(state, request, responses)) return true;
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

  /** Hands it to the conversation that waits for it. @returns false where none does. @throws {ProtocolError} for a state that is not taken any more */
  #goesOn(state: RequestState, request: ActiveRequest, responses: Responses): boolean {
    const { clock, ledger, limits } = this.#options;
    const live = this.#live.get(state.id);
    if (state.until <= clock.date() || (!live && ledger.isForgotten(state.until)))
      throw refused(`its question was open for longer than ${limits.askMs} ms`);
    if (live) {
      if (live.until === undefined || live.round !== state.round) throw answeredAlready();
      live.actor.mailbox.send({ type: 'resumed', request, responses });
      return true;
    }
    if (ledger.isSpent(state.id)) throw answeredAlready();
    return false;
  }

  /** The store has said what became of a state. Meanwhile another request may have brought it too. */
  #look(state: RequestState, taken: Consumed, request: ActiveRequest, responses: Responses, again: () => void): void {
    if (request.settled) return;
    try {
      if (this.#goesOn(state, request, responses)) return;
      if (taken === 'yes') throw answeredAlready();
      if (taken !== 'no') return request.requests.send({ type: 'answer', request, outcome: taken });
      this.#record(state, request, responses);
      again();
    } catch (error) {
      this.#refuse(request, error);
    }
  }

  #record(state: RequestState, request: ActiveRequest, responses: Responses): void {
    if (!state.whole && state.place === undefined)
      throw refused('its question is no longer open, and what was done before it is too much to be done again');
    // What was answered before stays: steps that are not run again may rest on it.
    request.recorded = { ...state, replies: { ...responses, ...state.replies } };
  }

  #refuse(request: ActiveRequest, error: unknown): void {
    const incident = isProtocolError(error) ? '' : this.#options.incident('params.requestState', error);
    request.requests.send({ type: 'answer', request, outcome: { ok: false, error: toWireError(error, incident) } });
  }

  /** From now on what ends does so because the server does: with a durable store, another process goes on with it. */
  leave(): void {
    this.#options.ledger.leave();
  }

  get leaving(): boolean {
    return this.#options.ledger.leaving;
  }

  /** Nobody is waited for any more. */
  stop(reason: string): void {
    this.#parking.stop();
    for (const { actor } of [...this.#live.values()])
      actor.mailbox.send({ type: 'aborted', reason: new Unanswered(reason) });
  }

  #park(id: string, round: number, replies: Responses, request: ActiveRequest, carrier: HandlerRun): string {
    const { clock, keys, limits, log } = this.#options;
    const { askMs, maxStateLength } = limits;
    this.#wait(id, round, replies, request);
    const state = { id, round, until: clock.date() + askMs, whole: true, replies, steps: carrier.steps() };
    const { text, without } = sealState(keys(), state, request, maxStateLength);
    if (without !== undefined)
      log(
        'warning',
        `${nameOf(request)} waits for its client with a requestState that cannot be run anew, should this process end: ${without}. Let its steps give less, such as ids`,
      );
    return text;
  }

  /** @param kept beside the request that carries it now */
  #wait(id: string, round: number, kept: unknown, current: ActiveRequest): void {
    const live = this.#live.get(id);
    if (!live) return;
    live.round = round;
    // What it takes in flight, it takes from now on as one that waits.
    current.held?.release();
    const first = live.request === current ? 0 : live.request.bytes;
    const bytes = first + Math.max(current.bytes, heapBytes(current.operation)) + heapBytes(kept);
    this.#parking.add(id, live, [current.operation, kept], bytes);
  }

  #unpark(id: string): void {
    const live = this.#live.get(id);
    if (live && this.#parking.remove(id)) this.#models.forget(live.actor.mailbox);
  }

  #keep(id: string, round: number, outcome: Outcome, ends: boolean): Promise<void> | undefined {
    const kept = this.#options.ledger.keep(id, round, outcome, ends);
    const live = this.#live.get(id);
    if (!kept || !live || !ends) return kept;
    return kept.then(() => {
      live.kept = 'answered';
    });
  }

  #over(id: string): void {
    const live = this.#live.get(id);
    if (!live) return;
    this.#live.delete(id);
    this.#options.ledger.over(id, live.round, live.kept);
  }
}

type Responses = Readonly<Record<string, unknown>>;

function nameOf({ operation }: ActiveRequest): string {
  const name = 'name' in operation ? operation.name : 'uri' in operation ? operation.uri : '';
  return `${operation.method} ${name}`;
}

/** Why nobody can be asked for a request; undefined where its client can. */
function refusalFor(request: ActiveRequest): Error | undefined {
  const { client, operation, settled, signal } = request;
  // Only some requests may be answered with what is asked (2026-07-28 MRTR, "Supported Requests").
  if (!client.session && !('input' in operation))
    return new Unanswered(`${operation.method} cannot ask its client anything in revision ${client.dialect.revision}`);
  if (!settled) return undefined;
  const reason: unknown = signal.reason;
  return reason instanceof Error ? reason : new Unanswered(ENDED);
}

/** Where the questions of a handler go that nobody can be asked. */
function refusing(reason: Error, clock: Clock): Mailbox<InteractiveRequestMail> {
  return {
    address: 'request/ended',
    send(mail) {
      if (mail.type === 'ask') refuseInput(mail.questions, reason, clock);
    },
  };
}

function answeredAlready(): ProtocolError {
  return refused('its question has been answered already');
}

function refused(why: string): ProtocolError {
  return new ProtocolError(
    ErrorCode.InvalidParams,
    `params.requestState: ${why}: send the request again without requestState and inputResponses`,
  );
}

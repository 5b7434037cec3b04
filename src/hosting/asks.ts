/** The conversations of a server: who waits for its client, who has been answered, and what a request that comes back is for. */
import { nanoid } from 'nanoid';
import type { Actor, ActorHost } from '../actors/actor.ts';
import { spawnConversation } from '../actors/conversation.ts';
import { refuse } from '../actors/open-question.ts';
import { Unanswered } from '../asking/errors.ts';
import type { KeyRing } from '../asking/seal.ts';
import { openState, sealState } from '../asking/state.ts';
import type { Clock, Timer } from '../clock.ts';
import type { Carrier, ConversationMail } from '../messages/asking.ts';
import type { InFlight } from '../messages/in-flight.ts';
import type { Mailbox } from '../messages/mailbox.ts';
import type { Limits } from '../options.ts';
import { ErrorCode, isProtocolError, ProtocolError, toWireError } from '../protocol/errors.ts';
import { jsonLength } from '../results/size.ts';
import { ANONYMOUS } from './directory.ts';
import { ModelAnswers } from './model-answers.ts';

export interface AsksOptions extends ActorHost {
  readonly keys: KeyRing;
  readonly limits: Limits;
  incident(where: string, error: unknown): string;
}

/** One conversation that is not over. */
interface Live {
  readonly actor: Actor<ConversationMail>;
  readonly principal: string;
  /** The round whose answer is awaited. */
  round: number;
  /** When its client must be back, in milliseconds of the server's clock; undefined while its handler runs. */
  until: number | undefined;
  /** What is kept for it while it waits, in characters of JSON. */
  bytes: number;
}

/** Most conversations that are remembered as over. What is forgotten is refused all the same, as too old. */
const MAX_SPENT = 100_000;
const ENDED = 'the request has ended, and nobody waits for what it asks';

export class Asks {
  readonly #options: AsksOptions;
  readonly #live = new Map<string, Live>();
  /** Those that wait, the oldest first. */
  readonly #parked = new Map<string, Live>();
  /** The same by principal, where somebody is known. */
  readonly #parkedOf = new Map<string, Set<string>>();
  /** Those that are over, and until when their states could be brought back. */
  readonly #spent = new Map<string, number>();
  readonly #models: ModelAnswers;
  /** What is kept for all that wait, in characters of JSON. */
  #bytes = 0;
  #forgottenUntil = 0;
  #timer: Timer | undefined;

  constructor(options: AsksOptions) {
    this.#options = options;
    this.#models = new ModelAnswers(options.limits.askMs);
  }

  /** How many conversations wait for their clients. */
  get parked(): number {
    return this.#parked.size;
  }

  /** The conversation of a request: the one that it has, or a new one. */
  converse(request: InFlight, carrier: Carrier): Mailbox<ConversationMail> {
    if (request.conversation) return request.conversation;
    const { clock, inspection, limits, incident } = this.#options;
    const refusal = refusalFor(request);
    if (refusal) return refusing(refusal, clock);
    const id = request.recorded?.id ?? nanoid();
    const actor = spawnConversation({
      clock,
      inspection,
      id,
      request,
      recorded: request.recorded,
      carrier,
      askMs: limits.askMs,
      park: (round, replies, current) => this.#park(id, round, replies, current, carrier),
      askModel: (round, questions, current) => {
        this.#wait(id, round, [current.operation, questions]);
        return { kind: 'call', result: this.#models.ask(actor.mailbox, questions, current) };
      },
      unpark: () => this.#unpark(id),
      over: () => this.#over(id),
      gone: () => {
        actor.stop('its handler has ended');
        // What it left running may ask still.
        request.conversation = refusing(new Unanswered(ENDED), clock);
      },
      expired: () => new Unanswered(`nobody answered within ${limits.askMs} ms (the server's option is limits.askMs)`),
      incident,
    });
    this.#live.set(id, {
      actor,
      principal: request.client.principal,
      round: request.recorded?.round ?? 0,
      until: undefined,
      bytes: 0,
    });
    request.conversation = actor.mailbox;
    return actor.mailbox;
  }

  /** Takes a call by which a model answers. @returns false for any other request */
  answers(request: InFlight): boolean {
    return this.#models.takes(request);
  }

  /** Takes a request that goes on with an earlier one. @returns false for one that is to be run, maybe with what was recorded */
  resumes(request: InFlight): boolean {
    const { operation, client } = request;
    const input = 'input' in operation ? operation.input : undefined;
    // A session is asked over its stream: to its revisions these parameters mean nothing.
    if (!input || client.session) return false;
    try {
      return this.#resumes(request, input.responses, input.state);
    } catch (error) {
      const incident = isProtocolError(error) ? '' : this.#options.incident('params.requestState', error);
      request.requests.send({ type: 'answer', request, outcome: { ok: false, error: toWireError(error, incident) } });
      return true;
    }
  }

  #resumes(request: InFlight, responses: Readonly<Record<string, unknown>>, text: string | undefined): boolean {
    if (text === undefined) {
      // Whoever knows what will be asked may answer at once.
      request.recorded = { id: undefined, round: 0, replies: responses, steps: {} };
      return false;
    }
    const { clock, keys, limits } = this.#options;
    const state = openState(keys, text, request);
    const live = this.#live.get(state.id);
    if (state.until <= clock.date() || (!live && state.until <= this.#forgottenUntil))
      throw refused(`its question was open for longer than ${limits.askMs} ms`);
    if (live) {
      if (live.until === undefined || live.round !== state.round)
        throw refused('its question has been answered already');
      live.actor.mailbox.send({ type: 'resumed', request, responses });
      return true;
    }
    if (this.#spent.has(state.id)) throw refused('its question has been answered already');
    if (!state.whole)
      throw refused('its question is no longer open, and what was done before it is too much to be done again');
    // What was answered before stays: steps that are not run again may rest on it.
    request.recorded = { ...state, replies: { ...responses, ...state.replies } };
    return false;
  }

  /** Nobody is waited for any more. */
  stop(reason: string): void {
    this.#timer?.cancel();
    for (const { actor } of [...this.#live.values()])
      actor.mailbox.send({ type: 'aborted', reason: new Unanswered(reason) });
  }

  #park(
    id: string,
    round: number,
    replies: Readonly<Record<string, unknown>>,
    request: InFlight,
    carrier: Carrier,
  ): string {
    const { clock, keys, limits } = this.#options;
    const { askMs, maxStateLength } = limits;
    this.#wait(id, round, [request.operation, replies]);
    const state = { id, round, until: clock.date() + askMs, whole: true, replies, steps: carrier.steps() };
    return sealState(keys, state, request, maxStateLength);
  }

  /** @param kept what is kept in memory for it, as far as this server knows */
  #wait(id: string, round: number, kept: unknown): void {
    const { clock, limits } = this.#options;
    const live = this.#live.get(id);
    if (!live) return;
    live.round = round;
    live.until = clock.now() + limits.askMs;
    live.bytes = jsonLength(kept, limits.maxParkedBytes);
    this.#bytes += live.bytes;
    this.#parked.set(id, live);
    this.#makeRoom(id, live.principal);
    this.#watch();
  }

  #unpark(id: string): void {
    const live = this.#parked.get(id);
    if (!live) return;
    live.until = undefined;
    this.#bytes -= live.bytes;
    this.#models.forget(live.actor.mailbox);
    this.#parked.delete(id);
    const own = this.#parkedOf.get(live.principal);
    own?.delete(id);
    if (own?.size === 0) this.#parkedOf.delete(live.principal);
  }

  #over(id: string): void {
    const live = this.#live.get(id);
    if (!live) return;
    this.#live.delete(id);
    // Of one that never waited nobody has a state.
    if (live.round === 0) return;
    const { clock, limits } = this.#options;
    this.#spent.delete(id);
    this.#spent.set(id, clock.date() + limits.askMs);
    for (const [oldest, until] of this.#spent) {
      if (this.#spent.size <= MAX_SPENT && until > clock.date()) break;
      this.#spent.delete(oldest);
      this.#forgottenUntil = Math.max(this.#forgottenUntil, until);
    }
  }

  /** The oldest give way: of this principal first, then of all. */
  #makeRoom(id: string, principal: string): void {
    const { maxParked, maxParkedPerPrincipal, maxParkedBytes } = this.#options.limits;
    if (principal !== ANONYMOUS) {
      const own = this.#parkedOf.get(principal) ?? new Set();
      this.#parkedOf.set(principal, own.add(id));
      if (own.size > maxParkedPerPrincipal) this.#evict(own.values().next().value, 'maxParkedPerPrincipal');
    }
    if (this.#parked.size > maxParked) this.#evict(this.#parked.keys().next().value, 'maxParked');
    if (this.#bytes <= maxParkedBytes) return;
    for (const oldest of [...this.#parked.keys()]) {
      if (this.#bytes <= maxParkedBytes || oldest === id) break;
      this.#evict(oldest, 'maxParkedBytes');
    }
  }

  #evict(id: string | undefined, limit: 'maxParked' | 'maxParkedPerPrincipal' | 'maxParkedBytes'): void {
    const live = id === undefined ? undefined : this.#parked.get(id);
    if (id === undefined || !live) return;
    const reason = new Unanswered(`the oldest of too many open questions (the server's option is limits.${limit})`);
    live.actor.mailbox.send({ type: 'expired', reason });
    // Its client may come back still: then the request is run anew.
    this.#spent.delete(id);
  }

  #watch(): void {
    if (this.#timer) return;
    const [first] = this.#parked.values();
    if (first?.until === undefined) return;
    const { clock, limits } = this.#options;
    this.#timer = clock.after(Math.max(0, Math.ceil(first.until - clock.now())), () => {
      this.#timer = undefined;
      const now = clock.now();
      const reason = new Unanswered(`nobody answered within ${limits.askMs} ms (the server's option is limits.askMs)`);
      for (const { actor, until } of [...this.#parked.values()]) {
        if (until === undefined || until > now) break;
        actor.mailbox.send({ type: 'expired', reason });
      }
      this.#watch();
    });
  }
}

/** Why nobody can be asked for a request; undefined where its client can. */
function refusalFor(request: InFlight): Error | undefined {
  const { client, operation, settled, signal } = request;
  // Only some requests may be answered with what is asked (2026-07-28 MRTR, "Supported Requests").
  if (!client.session && !('input' in operation))
    return new Unanswered(`${operation.method} cannot ask its client anything in revision ${client.dialect.revision}`);
  if (!settled) return undefined;
  const reason: unknown = signal.reason;
  return reason instanceof Error ? reason : new Unanswered(ENDED);
}

/** Where the questions of a handler go that nobody can be asked. */
function refusing(reason: Error, clock: Clock): Mailbox<ConversationMail> {
  return {
    address: 'request/ended',
    send(mail) {
      if (mail.type === 'ask') refuse(mail.questions, reason, clock);
    },
  };
}

function refused(why: string): ProtocolError {
  return new ProtocolError(
    ErrorCode.InvalidParams,
    `params.requestState: ${why}: send the request again without requestState and inputResponses`,
  );
}

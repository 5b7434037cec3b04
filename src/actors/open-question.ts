/** One question that a conversation has open: where it was put, and what became of it. */
import { initialTransition, transition } from 'xstate';
import { type AskEvent, askMachine } from '../../machines/ask.ts';
import { cannotAsk } from '../asking/declared.ts';
import type { Clock } from '../clock.ts';
import type { Question, Reply } from '../messages/asking.ts';
import type { Client } from '../messages/client.ts';
import type { InFlight } from '../messages/in-flight.ts';
import type { AskMail } from '../messages/session.ts';
import { isObject } from '../protocol/json.ts';

/** Where each begins. A snapshot never changes, so all begin with the same one. */
const INITIAL = initialTransition(askMachine)[0];

export class OpenQuestion {
  readonly question: Question;
  #ask: AskMail | undefined;
  #snapshot = INITIAL;

  constructor(question: Question) {
    this.question = question;
  }

  /** The client of a session has been asked over its stream. */
  get streaming(): boolean {
    return this.#ask !== undefined;
  }

  /** Asks the client of a session over its stream; there is none in the modern era. */
  putTo(about: InFlight, reply: (reply: Reply) => void): void {
    const { session } = about.client;
    if (!session) return;
    this.#ask = { type: 'ask', about, input: this.question.request, reply };
    session.mailbox.send(this.#ask);
  }

  reply(reply: Reply): void {
    this.#judge(eventOf(reply));
    this.question.reply(reply);
  }

  /** Nobody will answer, or nobody waits for the answer. */
  fail(client: Client, reason: Error): void {
    this.withdraw(client, reason.message);
    this.question.fail(reason);
  }

  /** Tells whoever was asked that the answer is not wanted any more. */
  withdraw({ session }: Client, reason: string): void {
    this.#judge({ type: 'expire' });
    if (this.#ask) session?.mailbox.send({ type: 'withdraw', ask: this.#ask, reason });
  }

  #judge(event: AskEvent): void {
    [this.#snapshot] = transition(askMachine, this.#snapshot, event);
  }
}

/** What may not be put to this client, by key: it declares less than the one that was there when it was asked. */
export function unaskable(
  open: ReadonlyMap<string, OpenQuestion>,
  { capabilities }: Client,
): readonly (readonly [key: string, why: Error])[] {
  return [...open].flatMap(([key, { question }]) => {
    const why = question.model ? undefined : cannotAsk(question.request, capabilities);
    return why ? [[key, why] as const] : [];
  });
}

/** Nobody can be asked these. Not in this turn: a handler that asks on and on holds up nobody else. */
export function refuse(questions: readonly Question[], why: Error, clock: Clock): void {
  for (const question of questions) clock.soon(() => question.fail(why));
}

/** Whether one of them is asked over the stream of a session. */
export function isStreaming(open: ReadonlyMap<string, OpenQuestion>): boolean {
  return [...open.values()].some(({ streaming }) => streaming);
}

function eventOf(reply: Reply): AskEvent {
  const action = reply.ok && isObject(reply.result) ? reply.result.action : undefined;
  if (!reply.ok || action === 'cancel') return { type: 'cancel' };
  return { type: action === 'decline' ? 'decline' : 'answer' };
}

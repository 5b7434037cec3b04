/** One open question of an interactive request: where it was sent, and its outcome. */
import { initialTransition } from 'xstate';
import { type AskEvent, askMachine } from '../../machines/ask.ts';
import type { Clock } from '../clock.ts';
import type { Inspection } from '../inspection/inspection.ts';
import type { Waits } from '../inspection/records.ts';
import { step } from '../inspection/stepping.ts';
import type { ActiveRequest } from '../messages/active-request.ts';
import type { Client } from '../messages/client-facts.ts';
import type { Question, Reply } from '../messages/input-messages.ts';
import type { AskMail } from '../messages/session-messages.ts';
import { isObject } from '../protocol/json.ts';
import { cannotAsk } from './declared-capabilities.ts';

/** The initial snapshot, shared by all because snapshots are immutable. */
const INITIAL = initialTransition(askMachine)[0];

export interface PendingInputOptions {
  readonly inspection: Inspection;
  /** The address of the interactive request. */
  readonly parent: string;
  readonly label: string;
  waits(): Omit<Waits, 'what'>;
}

export class PendingInput {
  readonly question: Question;
  readonly bytes: number;
  readonly #options: PendingInputOptions;
  readonly #address: string;
  #ask: AskMail | undefined;
  #snapshot = INITIAL;

  /** @param bytes that the question takes in memory */
  constructor(question: Question, options: PendingInputOptions, bytes: number) {
    this.question = question;
    this.bytes = bytes;
    this.#options = options;
    const { inspection, parent, label } = options;
    this.#address = `ask/${parent}/${question.key}`;
    inspection.born(this.#address, {
      kind: 'ask',
      parent,
      label,
      state: () => String(this.#snapshot.value),
      chart: () => ({ machine: askMachine, snapshot: this.#snapshot }),
      facts: () => ({ key: question.key, method: question.request.method, asks: question.request.params }),
      waits: () => this.waits(),
    });
  }

  waits(): readonly Waits[] {
    return this.#snapshot.status === 'active' ? [{ ...this.#options.waits(), what: this.#options.label }] : [];
  }

  /** Returns the reason why this client cannot be asked; it may declare fewer capabilities than the client of the original request. */
  refusedBy({ capabilities }: Client): Error | undefined {
    return this.question.model ? undefined : cannotAsk(this.question.request, capabilities);
  }

  /** The client of a session was asked over its stream. */
  get streaming(): boolean {
    return this.#ask !== undefined;
  }

  /** Asks the client of a session over its stream, which does not exist in the modern era. */
  putTo(about: ActiveRequest, reply: (reply: Reply) => void): void {
    const { session } = about.client;
    if (!session) return;
    this.#ask = { type: 'ask', about, input: this.question.request, reply };
    session.mailbox.send(this.#ask);
  }

  reply(reply: Reply): void {
    this.#judge(eventOf(reply));
    this.question.reply(reply);
  }

  /** Rejects the question: no answer will arrive, or none is needed. */
  fail(client: Client, reason: Error): void {
    this.withdraw(client, reason.message);
    this.question.fail(reason);
  }

  /** Notifies the client or the task that the answer is no longer needed. */
  withdraw({ session }: Client, reason: string): void {
    this.#judge({ type: 'expire' });
    if (this.#ask) session?.mailbox.send({ type: 'withdraw', ask: this.#ask, reason });
  }

  #judge(event: AskEvent): void {
    const { inspection } = this.#options;
    this.#snapshot = step(inspection, this.#address, askMachine, this.#snapshot, event);
    inspection.stated(this.#address, String(this.#snapshot.value));
    inspection.gone(this.#address, `it was ${this.#snapshot.value}`);
  }
}

/** Rejects questions that cannot be asked. Deferred, so that a handler that asks in a loop does not block others. */
export function refuseInput(questions: readonly Question[], why: Error, clock: Clock): void {
  for (const question of questions) clock.soon(() => question.fail(why));
}

function eventOf(reply: Reply): AskEvent {
  const action = reply.ok && isObject(reply.result) ? reply.result.action : undefined;
  if (!reply.ok || action === 'cancel') return { type: 'cancel' };
  return { type: action === 'decline' ? 'decline' : 'answer' };
}

/** One input request of an interactive request: where it was sent, and its outcome. Governed by `machines/input-request.ts`. */
import { type InputRequestEvent, inputRequestMachine } from '../../../machines/input-request.ts';
import type { ActorSystem } from '../../core/kernel/actor-system.ts';
import type { Clock } from '../../core/kernel/clock.ts';
import type { Waits } from '../../core/kernel/inspection/records.ts';
import { step } from '../../core/kernel/step.ts';
import { CANCELLED, errorTypeOfCode } from '../../core/kernel/telemetry/metrics.ts';
import type { ClientFacts } from '../../core/messages/client-facts.ts';
import type { Question, RepliedMail, Reply } from '../../core/messages/client-input.ts';
import type { Mailbox } from '../../core/messages/mailbox.ts';
import type { RequestView } from '../../core/messages/request-view.ts';
import type { AskMail } from '../../core/messages/session-messages.ts';
import type { QuestionSpan } from '../../core/messages/spans.ts';
import { isObject } from '../../core/protocol/json.ts';
import { cannotAsk } from './declared-capabilities.ts';

/** The initial snapshot, shared by all because snapshots are immutable. */
const INITIAL = inputRequestMachine.initial;

interface PendingInputOptions {
  readonly system: ActorSystem;
  /** The request that asks. */
  readonly request: RequestView;
  /** The address of the interactive request. */
  readonly parent: string;
  readonly label: string;
  waits(): Omit<Waits, 'what'>;
}

export class PendingInput {
  readonly question: Question;
  readonly bytes: number;
  readonly #options: PendingInputOptions;
  /** The time when it was asked, in milliseconds of the server's clock. */
  readonly #asked: number;
  readonly #address: string;
  readonly #span: QuestionSpan | undefined;
  /** The request to the client of a session. */
  #sent: AskMail | undefined;
  #snapshot = INITIAL;

  /** @param bytes that the question takes in memory */
  constructor(question: Question, options: PendingInputOptions, bytes: number) {
    this.question = question;
    this.bytes = bytes;
    this.#options = options;
    const { parent, label } = options;
    const { clock, inspection, metrics } = options.system;
    this.#asked = clock.now();
    metrics.asking();
    const { span, client } = options.request;
    this.#span = options.system.telemetry?.ask({
      method: question.request.method,
      by: span,
      protocolVersion: client.dialect.revision,
      session: client.session?.id,
    });
    this.#address = `ask/${parent}/${question.key}`;
    inspection.born(this.#address, {
      kind: 'ask',
      parent,
      label,
      state: () => this.#snapshot.path,
      chart: () => this.#snapshot.charted(),
      facts: () => ({ key: question.key, method: question.request.method, asks: question.request.params }),
      waits: () => this.waits(),
    });
  }

  waits(): readonly Waits[] {
    return this.#snapshot.status === 'active' ? [{ ...this.#options.waits(), what: this.#options.label }] : [];
  }

  /** Returns the reason why this client cannot be asked; it may declare fewer capabilities than the client of the original request. */
  refusedBy({ capabilities }: ClientFacts): Error | undefined {
    return this.question.model ? undefined : cannotAsk(this.question.request, capabilities);
  }

  /** True if the client of a session was asked over its stream. */
  get streamed(): boolean {
    return this.#snapshot.hasTag('streamed');
  }

  /** Asks the client of a session over its stream, which does not exist in the modern era. */
  sendTo(about: RequestView, from: Mailbox<RepliedMail>): void {
    const { session } = about.client;
    if (!session) return;
    const { key, request: input } = this.question;
    this.#sent = { type: 'ask', about, input, span: this.#span, key, from };
    this.#step({ type: 'send' });
    session.mailbox.send(this.#sent);
  }

  /** Passes the reply to the handler, unless the input request has ended. */
  reply(reply: Reply): void {
    if (this.#end(eventOf(reply), reply.ok ? undefined : errorTypeOfCode(reply.error.code)))
      replyTo(this.question, reply);
  }

  /** Rejects the input request: no answer will arrive, or none is needed. */
  fail(client: ClientFacts, reason: Error): void {
    if (this.withdraw(client, reason.message)) failQuestion(this.question, reason);
  }

  /**
   * Notifies the client of a session that its answer is no longer needed.
   *
   * @returns false if the input request had ended before
   */
  withdraw({ session }: ClientFacts, reason: string): boolean {
    const { streamed } = this;
    if (!this.#end({ type: 'withdraw' }, CANCELLED)) return false;
    if (streamed && this.#sent) session?.mailbox.send({ type: 'withdraw', ask: this.#sent, reason });
    return true;
  }

  /** @param error the reason why there is no answer, as `error.type` @returns false if it had ended before */
  #end(event: InputRequestEvent, error: string | undefined): boolean {
    if (this.#snapshot.status === 'done') return false;
    this.#step(event);
    const { clock, inspection, metrics } = this.#options.system;
    const ms = clock.now() - this.#asked;
    metrics.answered(this.question.request.method, ms, error);
    this.#span?.end({ error, seconds: ms / 1_000 });
    inspection.stated(this.#address, this.#snapshot.path);
    inspection.gone(this.#address, `it was ${this.#snapshot.path}`);
    return true;
  }

  #step(event: InputRequestEvent): void {
    const recorder = { inspection: this.#options.system.inspection, actor: this.#address };
    this.#snapshot = step(this.#snapshot, event, recorder) ?? this.#snapshot;
  }
}

/** Rejects questions that cannot be asked. Deferred, so that a handler that asks in a loop does not block others. */
export function refuseInput(questions: readonly Question[], why: Error, clock: Clock): void {
  for (const question of questions) clock.soon(() => failQuestion(question, why));
}

export function replyTo({ key, from }: Question, reply: Reply): void {
  from.send({ type: 'replied', key, reply });
}

export function failQuestion({ key, from }: Question, error: Error): void {
  from.send({ type: 'unanswered', key, error });
}

function eventOf(reply: Reply): InputRequestEvent {
  const action = reply.ok && isObject(reply.result) ? reply.result.action : undefined;
  if (!reply.ok || action === 'cancel') return { type: 'cancel' };
  return { type: action === 'decline' ? 'decline' : 'answer' };
}

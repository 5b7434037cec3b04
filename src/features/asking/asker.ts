/** The asking methods of a handler's context: prepare questions, wait for replies, and repeat a question whose answer is invalid. */

import { CannotAsk, Unanswered } from '../../core/execution/input-errors.ts';
import type { AnyQuestion, Asking } from '../../core/execution/questions.ts';
import type { ClientFacts } from '../../core/messages/client-facts.ts';
import type { ByModel, InputRequest, Question, QuestionOutcome, Reply } from '../../core/messages/client-input.ts';
import type { Mailbox } from '../../core/messages/mailbox.ts';
import { describe, isObject } from '../../core/protocol/json.ts';
import type { InteractiveRequestMail } from './input-messages.ts';
import { ANY_CLIENT } from './model-fallback.ts';
import { askAgain, type Prepared, prepare, prepareVerbatim } from './prepare.ts';

export interface AskerOptions {
  /** Returns the interactive request, which is created with the first question. */
  interactiveRequest(): Mailbox<InteractiveRequestMail>;
  /** Returns the client of the newest request, which receives the question. */
  client(): ClientFacts;
  /** Called when a question is sent without its `includeContext`. */
  contextDropped(): void;
  /** Set if the model that called is asked when the client cannot be. */
  readonly model: Pick<ByModel, 'structured'> | undefined;
}

export interface Asker extends Asking {
  /** Asks questions as they are, and returns the unchecked replies under the same names. */
  verbatim(
    requests: Readonly<Record<string, InputRequest>>,
    signal?: AbortSignal,
  ): Promise<Readonly<Record<string, Reply>>>;
}

/** Maximum number of questions in one `ctx.ask`. */
const MAX_QUESTIONS = 32;
/** Number of times that a question is asked until its answers are valid. */
const MAX_TRIES = 3;

export function makeAsking({ interactiveRequest, client, contextDropped, model }: AskerOptions): Asker {
  /** Number of uses of each name. The second question with a name gets another key. */
  const used = new Map<string, number>();

  /** Keys are unique (2026-07-28 MRTR, "Server Requirements"), even if an author names a question "a-2". */
  const keyFor = (name: string): string => {
    let times = used.get(name) ?? 0;
    let key = name;
    while (used.has(key)) {
      times += 1;
      key = `${name}-${times}`;
    }
    used.set(name, Math.max(times, 1)).set(key, used.get(key) ?? 1);
    return key;
  };

  /** Questions without an outcome, by key. */
  const open = new Map<string, { resolve(reply: Reply): void; reject(error: Error): void }>();

  const from: Mailbox<QuestionOutcome> = {
    address: 'handler',
    send(mail) {
      const waiting = open.get(mail.key);
      open.delete(mail.key);
      if (mail.type === 'replied') waiting?.resolve(mail.reply);
      else waiting?.reject(mail.error);
    },
  };

  const pose = (key: string, { request, model }: Prepared): { question: Question; replied: Promise<Reply> } => ({
    question: { key, request, model, from },
    replied: new Promise((resolve, reject) => open.set(key, { resolve, reject })),
  });

  /** Prepares a question for the client, or for the model if the client cannot be asked. */
  const preparedFor = (question: AnyQuestion): Prepared => {
    try {
      const prepared = prepare(question, client());
      if (prepared.contextDropped) contextDropped();
      return prepared;
    } catch (error) {
      if (!model || !(error instanceof CannotAsk || error instanceof Unanswered)) throw error;
      return { ...prepare(question, ANY_CLIENT), model: { ...model, otherwise: error } };
    }
  };

  const answer = async (key: string, prepared: Prepared, first: Promise<Reply>): Promise<unknown> => {
    let reply = await first;
    let why = '';
    for (let tries = 1; ; tries += 1) {
      if (!reply.ok) throw new Unanswered(`the client did not answer: ${reply.error.message} (${reply.error.code})`);
      const read = await prepared.read(reply.result);
      if (read.ok) return read.answer;
      why = read.why;
      if (tries === MAX_TRIES) throw new Unanswered(`${MAX_TRIES} answers were invalid: ${why}`);
      const { question, replied } = pose(key, askAgain(prepared, why));
      interactiveRequest().send({ type: 'ask', questions: [question] });
      reply = await replied;
    }
  };

  /**
   * Asks several questions in one round.
   *
   * @param read waits for the answer to one of them
   */
  const askTogether = async <Q, A>(
    questions: Readonly<Record<string, Q>>,
    toRequest: (question: Q) => Prepared,
    read: (key: string, prepared: Prepared, replied: Promise<Reply>) => Promise<A>,
    signal: AbortSignal | undefined,
  ): Promise<Record<string, A>> => {
    signal?.throwIfAborted();
    const named = Object.entries(questions);
    if (named.length === 0 || named.length > MAX_QUESTIONS)
      throw new TypeError(`ctx.ask: expected 1 to ${MAX_QUESTIONS} questions, got ${named.length}`);
    // The parser rejects a message with this key, so no answer could arrive.
    if (Object.hasOwn(questions, '__proto__'))
      throw new TypeError('ctx.ask: expected another name for a question than "__proto__", which no client can answer');
    // Prepare all questions before the first is asked, so that none fails half-way.
    const prepared = named.map(([name, question]) => ({ name, prepared: toRequest(question) }));
    const posed = prepared.map((each) => {
      const key = keyFor(each.name);
      return { ...each, key, ...pose(key, each.prepared) };
    });
    const answers = posed.map(({ key, prepared: one, replied }) => read(key, one, replied));
    interactiveRequest().send({ type: 'ask', questions: posed.map(({ question }) => question) });
    const keys = posed.map(({ key }) => key);
    const drop = (): void => interactiveRequest().send({ type: 'dropped', keys, reason: reasonOf(signal) });
    signal?.addEventListener('abort', drop, { once: true });
    const all = await Promise.all(answers).finally(() => signal?.removeEventListener('abort', drop));
    return Object.fromEntries(all.map((each, index) => [named[index]?.[0] ?? '', each]));
  };

  const askAll = (
    questions: Readonly<Record<string, AnyQuestion>>,
    signal?: AbortSignal,
  ): Promise<Record<string, unknown>> => askTogether(questions, preparedFor, answer, signal);

  const one = async (name: string, question: AnyQuestion): Promise<unknown> =>
    (await askAll({ [name]: question }))[name];

  // Each answer is read by the question that it belongs to, so its type fits.
  return {
    elicit: (question) => one('elicit', { elicit: question }) as never,
    elicitUrl: (question) => one('elicitUrl', { elicitUrl: question }) as never,
    sample: (question) => one('sample', { sample: question }) as never,
    roots: () => one('roots', { roots: true }) as never,
    ask(questions, { signal } = {}) {
      if (!isObject(questions))
        return Promise.reject(new TypeError(`ctx.ask: expected an object of questions, got ${describe(questions)}`));
      return askAll(questions, signal) as never;
    },
    verbatim: (requests, signal) =>
      askTogether(
        requests,
        (request) => prepareVerbatim(request, client()),
        (_key, _prepared, replied) => replied,
        signal,
      ),
  };
}

function reasonOf(signal: AbortSignal | undefined): Error {
  const reason: unknown = signal?.reason;
  return reason instanceof Error ? reason : new Error(String(reason));
}

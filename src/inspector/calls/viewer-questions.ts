/** Requests of the server that wait for a viewer: forms, pages, sampling and roots. */

import type { ClientRoot, FormAnswer, PageAnswer } from '../../client/client-options.ts';
import type { Answerers } from '../../client/server-requests.ts';
import type { Clock } from '../../core/kernel/clock.ts';
import { durationOf } from '../../core/kernel/duration.ts';
import { ErrorCode, ProtocolError } from '../../core/protocol/errors.ts';
import { isJsonObject, isObject, type JsonObject } from '../../core/protocol/json.ts';
import { InputError } from '../http/viewer-input.ts';
import type { Answerable } from './call-messages.ts';

/** Maximum number of open questions. A further one is rejected. */
const MAX_QUESTIONS = 64;
/** Milliseconds until an unanswered question is rejected. */
const QUESTION_MS = 3_600_000;
const ALL_ANSWERS = ['form', 'url', 'sampling', 'roots'] as const;

interface OpenQuestion {
  readonly id: number;
  readonly kind: Answerable;
  readonly call: number | undefined;
  readonly at: number;
  readonly params: JsonObject;
}

interface PendingQuestion extends OpenQuestion {
  settle(answer: JsonObject | Error): void;
}

/** The calls of viewers, as the questions need them. */
interface QuestionedCalls {
  /** The call whose handler asks. */
  callOf(about: string | undefined): number | undefined;
  changed(): void;
}

export class ViewerQuestions {
  readonly #clock: Clock;
  readonly #open = new Map<number, PendingQuestion>();
  #calls: QuestionedCalls | undefined;
  #last = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A server may ask as soon as a client connects, which can be before there are calls. */
  attach(calls: QuestionedCalls): void {
    this.#calls = calls;
  }

  get all(): readonly OpenQuestion[] {
    return [...this.#open.values()];
  }

  /** The functions of a client that answers these kinds of requests. */
  answerers(kinds: readonly Answerable[] = ALL_ANSWERS): Answerers {
    const has = (kind: Answerable): boolean => kinds.includes(kind);
    return {
      ...(has('form')
        ? {
            elicit: async ({ message, requestedSchema }, { signal, about }) =>
              formAnswer(await this.#ask('form', { message, requestedSchema }, signal, about)),
          }
        : {}),
      ...(has('url')
        ? {
            elicitUrl: async ({ message, url }, { signal, about }) =>
              pageAnswer(await this.#ask('url', { message, url }, signal, about)),
          }
        : {}),
      ...(has('sampling')
        ? {
            sample: async (request, { signal, about }) =>
              samplingAnswer(await this.#ask('sampling', request, signal, about)),
          }
        : {}),
      ...(has('roots') ? { roots: async () => rootsAnswer(await this.#ask('roots', {}, undefined, undefined)) } : {}),
    };
  }

  /** @throws {InputError} for an unknown question */
  answer(id: unknown, answer: JsonObject): void {
    const question = typeof id === 'number' ? this.#open.get(id) : undefined;
    if (!question) throw new InputError(404, 'question: it is no longer open');
    question.settle(checked(question.kind, answer));
  }

  /** Rejects the questions of a call that has ended. A client asks for roots without a signal. */
  end(call: number): void {
    for (const question of [...this.#open.values()])
      if (question.call === call) question.settle(new Error('the call has ended'));
  }

  /** Rejects all questions: the inspector closes. */
  close(): void {
    for (const question of [...this.#open.values()]) question.settle(new Error('the inspector closed'));
  }

  #ask(
    kind: Answerable,
    params: JsonObject,
    signal: AbortSignal | undefined,
    about: string | undefined,
  ): Promise<JsonObject> {
    if (this.#open.size >= MAX_QUESTIONS)
      throw new ProtocolError(ErrorCode.Overloaded, `${MAX_QUESTIONS} questions are open in the inspector`);
    this.#last += 1;
    const id = this.#last;
    return new Promise((resolve, reject) => {
      const abort = (): void => settle(new Error('the server or the caller gave the question up'));
      const timer = this.#clock.after(QUESTION_MS, () =>
        settle(new Error(`no answer within ${durationOf(QUESTION_MS)}`)),
      );
      const settle = (answer: JsonObject | Error): void => {
        if (!this.#open.delete(id)) return;
        timer.cancel();
        signal?.removeEventListener('abort', abort);
        this.#calls?.changed();
        if (answer instanceof Error) reject(answer);
        else resolve(answer);
      };
      this.#open.set(id, { id, kind, call: this.#calls?.callOf(about), at: this.#clock.now(), params, settle });
      if (signal?.aborted) return abort();
      signal?.addEventListener('abort', abort, { once: true });
      this.#calls?.changed();
    });
  }
}

/** Checks the shape of an answer before the question leaves the table. @throws {InputError} */
function checked(kind: Answerable, answer: JsonObject): JsonObject {
  const { action } = answer;
  if (action === 'decline' || action === 'cancel') return answer;
  const fits =
    kind === 'sampling'
      ? action === 'sample' && isObject(answer.result)
      : kind === 'roots'
        ? action === 'roots' && Array.isArray(answer.roots)
        : action === 'accept';
  if (fits) return answer;
  throw new InputError(400, `answer: expected an answer to a question of the kind "${kind}"`);
}

function formAnswer({ action, content }: JsonObject): FormAnswer {
  if (action === 'decline' || action === 'cancel') return action;
  return isJsonObject(content) ? content : {};
}

function pageAnswer({ action }: JsonObject): PageAnswer {
  return action === 'decline' || action === 'cancel' ? action : 'accept';
}

function samplingAnswer({ result }: JsonObject): JsonObject {
  if (isJsonObject(result)) return result;
  throw new ProtocolError(ErrorCode.InvalidRequest, 'the user rejected the sampling request');
}

function rootsAnswer({ roots }: JsonObject): readonly ClientRoot[] {
  if (!Array.isArray(roots))
    throw new ProtocolError(ErrorCode.InvalidRequest, 'the user rejected the request for roots');
  return roots.flatMap((root: unknown) => {
    const { uri, name } = isObject(root) ? root : {};
    if (typeof uri !== 'string') return [];
    return [typeof name === 'string' ? { uri, name } : { uri }];
  });
}

/** The input requests of one instance. Each stays open until it is answered or its state is left; any current call may ask it. */
import type { AnyActorRef } from 'xstate';
import { actorPath } from '../charts/system-actors.ts';
import type { Context } from '../input/context.ts';
import { CannotAsk } from '../input/input-errors.ts';
import type { Invoked } from '../input/invocations.ts';
import type { Answers, AnyQuestion, Questions } from '../input/questions.ts';
import type { HandleAsk } from '../messages/handle-messages.ts';

interface OpenInput {
  readonly by: AnyActorRef;
  /** The name of the question for clients: it is the same after a restart, and differs each time the question is asked again. */
  readonly key: string;
  readonly question: AnyQuestion;
  readonly signal: AbortSignal;
  /** Its number among all questions since the instance was activated. */
  readonly ordinal: number;
  /** A call is asking it now. */
  asking: boolean;
  answer(answers: unknown): void;
  fail(error: unknown): void;
}

export class InstanceInputs implements Invoked {
  readonly #open = new Set<OpenInput>();
  readonly #entryOf: (path: string) => number;
  #count = 0;

  /** @param entryOf number of starts of the invocation at a path */
  constructor(entryOf: (path: string) => number) {
    this.#entryOf = entryOf;
  }

  /** The number of questions so far. A call that begins now causes those with a higher number. */
  get count(): number {
    return this.#count;
  }

  get isOpen(): boolean {
    return this.#open.size > 0;
  }

  /** Returns whether an actor only waits for an answer that no call is asking for. */
  readonly isWaiting = (actor: AnyActorRef): boolean => {
    for (const { by, asking } of this.#open) if (by === actor) return !asking;
    return false;
  };

  /** Lists the open questions for clients. */
  list(): readonly HandleAsk[] {
    return [...this.#open].map(({ by, question }) => inputView(by.id, question));
  }

  ask<const Q extends Questions>(
    questions: Q,
    { signal, by }: { readonly signal: AbortSignal; readonly by: AnyActorRef },
  ): Promise<Answers<Q>> {
    // An invocation asks a single question, under its own name.
    const [named] = Object.entries(questions);
    if (!named) return Promise.reject(new TypeError('expected a question, got none'));
    const [name, question] = named;
    const path = actorPath(by);
    const entry = this.#entryOf(path);
    this.#count += 1;
    return new Promise((resolve, reject) => {
      const close = (): void => {
        this.#open.delete(open);
        signal.removeEventListener('abort', aborted);
      };
      const aborted = (): void => {
        close();
        reject(signal.reason);
      };
      const open: OpenInput = {
        by,
        key: entry > 1 ? `${path}.${entry}` : path,
        question,
        signal,
        ordinal: this.#count,
        asking: false,
        // Each question is renamed on the way to the client and back. Its answer has the type of the question.
        answer: (answer) => {
          close();
          resolve({ [name]: answer } as Answers<Q>);
        },
        fail: (error) => {
          close();
          reject(error);
        },
      };
      this.#open.add(open);
      signal.addEventListener('abort', aborted, { once: true });
    });
  }

  /**
   * Asks the open questions, and those that follow from the answers, until this call can ask no more.
   *
   * @param since number of the last question before this call. If the client cannot be asked one of its own questions, the
   *   machine receives the error. Older questions stay open for another call.
   *
   * @param settled resolves when the results of the answers are durable and their effects have started
   */
  async askAll(ctx: Context, since: number, settled: () => Promise<void>): Promise<void> {
    const asked = new Set<OpenInput>();
    while (!ctx.signal.aborted) {
      const open = [...this.#open].filter((each) => !each.asking && !asked.has(each));
      if (open.length === 0) return;
      for (const each of open) asked.add(each);
      await Promise.all(open.map((each) => this.#askOne(each, ctx, since)));
      await settled();
    }
  }

  async #askOne(open: OpenInput, ctx: Context, since: number): Promise<void> {
    open.asking = true;
    const over = ended(open.by);
    try {
      const answers = await ctx.ask({ [open.key]: open.question }, { signal: open.signal });
      open.answer(answers[open.key]);
    } catch (error) {
      open.asking = false;
      if (!this.#open.has(open)) return;
      // The question stays open. Only the call that caused it reports to the machine that its client cannot be asked.
      if (!(error instanceof CannotAsk) || open.ordinal <= since) return;
      open.fail(error);
    }
    await over;
  }
}

/** Resolves when an actor has reported its result to its parent or was stopped. */
function ended(actor: AnyActorRef): Promise<void> {
  return new Promise((resolve) => {
    actor.subscribe({ complete: resolve, error: () => resolve() });
  });
}

function inputView(id: string, question: AnyQuestion): HandleAsk {
  if ('elicit' in question) return { id, kind: 'elicit', message: question.elicit.message };
  if ('elicitUrl' in question) return { id, kind: 'elicitUrl', message: question.elicitUrl.message };
  return { id, kind: 'sample' in question ? 'sample' : 'roots' };
}

/** What one instance asks: each question stays open until it is answered or its state is left, and is put by whichever call is there. */
import type { AnyActorRef } from 'xstate';
import { actorPath } from '../charts/system-actors.ts';
import type { Context } from '../input/context.ts';
import { CannotAsk } from '../input/input-errors.ts';
import type { Invoked } from '../input/invocations.ts';
import type { Answers, AnyQuestion, Questions } from '../input/questions.ts';
import type { HandleAsk } from '../messages/handle-messages.ts';

interface Open {
  readonly by: AnyActorRef;
  /** Names the question to clients: the same after a restart, another when it is asked anew. */
  readonly key: string;
  readonly question: AnyQuestion;
  readonly signal: AbortSignal;
  /** Its place among all that the instance has asked since it was read. */
  readonly ordinal: number;
  /** A call is putting it now. */
  put: boolean;
  answer(answers: unknown): void;
  fail(error: unknown): void;
}

export class InstanceInputs implements Invoked {
  readonly #open = new Set<Open>();
  readonly #entryOf: (path: string) => number;
  #asked = 0;

  /** @param entryOf how often the invocation at a path has begun */
  constructor(entryOf: (path: string) => number) {
    this.#entryOf = entryOf;
  }

  /** How many questions it has asked so far: a call that begins now leads to those with a higher ordinal. */
  get asked(): number {
    return this.#asked;
  }

  get isOpen(): boolean {
    return this.#open.size > 0;
  }

  /** Whether an actor does nothing but wait for an answer that nobody is giving now. */
  readonly waits = (actor: AnyActorRef): boolean => {
    for (const { by, put } of this.#open) if (by === actor) return !put;
    return false;
  };

  /** What is open, for clients. */
  look(): readonly HandleAsk[] {
    return [...this.#open].map(({ by, question }) => shown(by.id, question));
  }

  ask<const Q extends Questions>(
    questions: Q,
    { signal, by }: { readonly signal: AbortSignal; readonly by: AnyActorRef },
  ): Promise<Answers<Q>> {
    // An invocation asks one thing, by its own name.
    const [named] = Object.entries(questions);
    if (!named) return Promise.reject(new TypeError('expected a question, got none'));
    const [name, question] = named;
    const path = actorPath(by);
    const entry = this.#entryOf(path);
    this.#asked += 1;
    return new Promise((resolve, reject) => {
      const close = (): void => {
        this.#open.delete(open);
        signal.removeEventListener('abort', dropped);
      };
      const dropped = (): void => {
        close();
        reject(signal.reason);
      };
      const open: Open = {
        by,
        key: entry > 1 ? `${path}.${entry}` : path,
        question,
        signal,
        ordinal: this.#asked,
        put: false,
        // The answer is that of the question: the names are ours on this side, and the invocation's on the other.
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
      signal.addEventListener('abort', dropped, { once: true });
    });
  }

  /**
   * Puts what is open, and what the answers lead to, until nothing is open that this call can put.
   *
   * @param since the ordinal after which questions are of this call's making: where its client cannot be asked them, the
   *   machine is told; others stay open for another
   * @param settled resolves when what the answers led to is durable, and has begun
   */
  async put(ctx: Context, since: number, settled: () => Promise<void>): Promise<void> {
    const given = new Set<Open>();
    while (!ctx.signal.aborted) {
      const open = [...this.#open].filter((each) => !each.put && !given.has(each));
      if (open.length === 0) return;
      for (const each of open) given.add(each);
      await Promise.all(open.map((each) => this.#putOne(each, ctx, since)));
      await settled();
    }
  }

  async #putOne(open: Open, ctx: Context, since: number): Promise<void> {
    open.put = true;
    const over = ended(open.by);
    try {
      const answers = await ctx.ask({ [open.key]: open.question }, { signal: open.signal });
      open.answer(answers[open.key]);
    } catch (error) {
      open.put = false;
      if (!this.#open.has(open)) return;
      // Nobody has answered: the question is as open as before. Only who brought it about learns that it cannot be put.
      if (!(error instanceof CannotAsk) || open.ordinal <= since) return;
      open.fail(error);
    }
    await over;
  }
}

/** Resolves when an actor has told its parent what it came to, or was stopped. */
function ended(actor: AnyActorRef): Promise<void> {
  return new Promise((resolve) => {
    actor.subscribe({ complete: resolve, error: () => resolve() });
  });
}

function shown(id: string, question: AnyQuestion): HandleAsk {
  if ('elicit' in question) return { id, kind: 'elicit', message: question.elicit.message };
  if ('elicitUrl' in question) return { id, kind: 'elicitUrl', message: question.elicitUrl.message };
  return { id, kind: 'sample' in question ? 'sample' : 'roots' };
}

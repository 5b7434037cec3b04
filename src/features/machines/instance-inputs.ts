/** The input requests of one instance. Each stays open until it is answered or its state is left; any current call may ask it. */
import type { AnyActorRef } from 'xstate';
import type { Context } from '../../core/execution/context.ts';
import { CannotAsk, Unanswered } from '../../core/execution/input-errors.ts';
import type { Answers, AnyQuestion, Questions } from '../../core/execution/questions.ts';
import { actorPath } from '../../core/kernel/charts/system-actors.ts';
import { isObject, type JsonValue } from '../../core/protocol/json.ts';
import { SchemaError } from '../../core/schema/schema-error.ts';
import { compileForm } from '../asking/form.ts';
import { formFieldsOf } from '../asking/form-model.ts';
import type { Invoked } from '../asking/invocations.ts';
import { ANY_CLIENT } from '../asking/model-fallback.ts';
import { prepare } from '../asking/prepare.ts';
import { questionClosed } from './course.ts';
import type { ActedBy, HandleAsk, LiveAsk } from './handle-messages.ts';

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
  /** Withdraws the question from the client that is asked now, because a view has answered it. */
  withdraw: AbortController | undefined;
  answer(answers: unknown): void;
  fail(error: unknown): void;
}

/** The activation whose machine asks. */
export interface InputsOwner {
  /** True if views show the instance. */
  readonly hasViews: boolean;
  /** Number of starts of the invocation at a path. */
  startsOf(path: string): number;
  /** Reports that a question of the invocation with this id is no longer open, and what happened to it, in words. */
  closed(id: string, what: string): void;
  /** Reports an answer. */
  answered(key: string, by: ActedBy): void;
}

/** The reason why an answer in a view is rejected if its question is no longer asked. */
export const NOT_OPEN = 'This question is no longer open: it was answered, or the state that asked it was left.';

/** The questions that a call may ask, and whether its client may still answer. */
interface AskingRights {
  /** Asks questions with a higher number only. */
  readonly least: number;
  may(): boolean;
}

const EVERY_QUESTION: AskingRights = { least: 0, may: () => true };

export class InstanceInputs implements Invoked {
  readonly #open = new Set<OpenInput>();
  readonly #owner: InputsOwner;
  #count = 0;

  constructor(owner: InputsOwner) {
    this.#owner = owner;
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

  /** Lists the open questions for views. @param until the latest date at which they can be answered, ISO 8601 */
  live(until: string): readonly LiveAsk[] {
    return [...this.#open].map(({ key, by, question }) => ({
      ...inputView(by.id, question),
      id: key,
      ...detailsOf(question),
      until,
    }));
  }

  /**
   * Answers a question for a person in a view.
   *
   * @param id the id of the question among those that {@link live} lists
   * @returns the reason why the answer does not fit; the question then stays open
   */
  async answer(id: string, result: unknown): Promise<string | undefined> {
    const find = (): OpenInput | undefined => [...this.#open].find(({ key }) => key === id);
    const open = find();
    if (!open) return NOT_OPEN;
    if (!isForPerson(open.question)) return 'This question is for the model.';
    const read = await prepare(open.question, ANY_CLIENT).read(result);
    if (!read.ok) return read.why;
    // A client may have answered it while the answer was checked.
    if (find() !== open) return NOT_OPEN;
    const over = ended(open.by);
    open.answer(read.answer);
    open.withdraw?.abort(new Unanswered('the user answered in a view'));
    this.#owner.answered(id, 'view');
    await over;
    return undefined;
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
    const entry = this.#owner.startsOf(path);
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
        withdraw: undefined,
        // Each question is renamed on the way to the client and back. Its answer has the type of the question.
        answer: (answer) => {
          close();
          this.#owner.closed(by.id, questionClosed(question, { answer }));
          resolve({ [name]: answer } as Answers<Q>);
        },
        fail: (error) => {
          close();
          this.#owner.closed(by.id, questionClosed(question, { error }));
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
   * @param rights default: every question, and every client may answer
   * @returns why questions are still open, in words
   */
  async askAll(
    ctx: Context,
    since: number,
    settled: () => Promise<void>,
    { least, may }: AskingRights = EVERY_QUESTION,
  ): Promise<readonly string[]> {
    const asked = new Set<OpenInput>();
    const unanswered: string[] = [];
    while (!ctx.signal.aborted) {
      const open = [...this.#open].filter((each) => !each.asking && !asked.has(each) && each.ordinal > least);
      if (open.length === 0) break;
      for (const each of open) asked.add(each);
      const failed = await Promise.all(open.map((each) => this.#askOne(each, ctx, since, may)));
      unanswered.push(...failed.filter((why) => why !== undefined));
      await settled();
    }
    return unanswered;
  }

  /** Ends when the state is left or, if views show the instance, when a view has answered. */
  #signalOf(open: OpenInput): AbortSignal {
    if (!this.#owner.hasViews) return open.signal;
    open.withdraw = new AbortController();
    return AbortSignal.any([open.signal, open.withdraw.signal]);
  }

  /** @returns why the question is still open, in words */
  async #askOne(open: OpenInput, ctx: Context, since: number, may: () => boolean): Promise<string | undefined> {
    const inView = this.#owner.hasViews && ctx.client.views && isForPerson(open.question);
    // The model does not stand in for a user who can answer in a view (S-65).
    if (inView && !isAskable(open.question, ctx)) return undefined;
    open.asking = true;
    const over = ended(open.by);
    try {
      const answers = await ctx.ask({ [open.key]: open.question }, { signal: this.#signalOf(open) });
      // The caller may have lost its role while it thought.
      if (!may()) {
        open.asking = false;
        return undefined;
      }
      open.answer(answers[open.key]);
      this.#owner.answered(open.key, isAskable(open.question, ctx) ? 'client' : 'model');
    } catch (error) {
      open.asking = false;
      if (!this.#open.has(open)) return undefined;
      // A view can answer what the client's own dialogs cannot ask.
      if (inView && error instanceof CannotAsk) return undefined;
      // No client can show such a form: a question that stays open would hide the mistake of its author.
      if (error instanceof SchemaError) {
        open.fail(error);
        await over;
        return undefined;
      }
      // The question stays open. Only the call that caused it reports to the machine that its client cannot be asked.
      if (!(error instanceof CannotAsk) || open.ordinal <= since) return questionClosed(open.question, { error });
      open.fail(error);
    }
    await over;
    return undefined;
  }
}

/** True for a question that a person can answer in a view. */
function isForPerson(
  question: AnyQuestion,
): question is Extract<AnyQuestion, { elicit: unknown } | { elicitUrl: unknown }> {
  return 'elicit' in question || 'elicitUrl' in question;
}

/** True if the client itself can be asked a question; if it answers anyway, its model has. */
function isAskable(question: AnyQuestion, { client }: Context): boolean {
  const { elicitation, sampling, roots } = client.capabilities;
  if ('roots' in question) return roots !== undefined;
  return ('sample' in question ? sampling : elicitation) !== undefined;
}

/** Resolves when an actor has reported its result to its parent or was stopped. */
function ended(actor: AnyActorRef): Promise<void> {
  return new Promise((resolve) => {
    actor.subscribe({ complete: resolve, error: () => resolve() });
  });
}

/** The form or the page of a question. A form that no client could show has none. */
function detailsOf(question: AnyQuestion): Pick<LiveAsk, 'schema' | 'fields' | 'url'> {
  if ('elicitUrl' in question) return { url: question.elicitUrl.url };
  if (!('elicit' in question)) return {};
  try {
    const schema = compileForm(question.elicit.schema, 'elicit').shown(ANY_CLIENT.dialect);
    // Forms are flat and have no references.
    return schema === undefined ? {} : { schema, fields: formFieldsOf(schema, plain) as JsonValue };
  } catch {
    return {};
  }
}

const plain = (schema: unknown) => (isObject(schema) ? schema : undefined);

function inputView(id: string, question: AnyQuestion): HandleAsk {
  if ('elicit' in question) return { id, kind: 'elicit', message: question.elicit.message };
  if ('elicitUrl' in question) return { id, kind: 'elicitUrl', message: question.elicitUrl.message };
  return { id, kind: 'sample' in question ? 'sample' : 'roots' };
}

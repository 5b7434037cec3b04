/** Actor logic for statecharts that ask the client of their call: `elicit`, `elicitUrl`, `sample` and `roots`. */
import { type AnyActorRef, fromPromise, type PromiseActorLogic } from 'xstate';
import type {
  Answered,
  Answers,
  AnswerTo,
  AnyQuestion,
  Elicitation,
  Questions,
  Root,
  Sampled,
  Sampling,
  UrlAnswered,
  UrlElicitation,
} from '../../core/execution/questions.ts';
import { processWide } from '../../core/kernel/global-registry.ts';
import { Lazy } from '../../core/kernel/lazy.ts';
import type { AuthorSchema, Infer } from '../../core/schema/schema-types.ts';

/**
 * The askers of XState systems, for all actors of a system at any depth. Process-wide, because a machine may import another
 * copy of this package than the one that runs it.
 */
const askers = processWide('troupe.invocations', () => new WeakMap<object, Invoked>());

/** The asking interface of an invocation: `ctx`, or a substitute if there is no call. */
export interface Invoked {
  /** @param options `by` is the actor that asks */
  ask<const Q extends Questions>(
    questions: Q,
    options: { readonly signal: AbortSignal; readonly by: AnyActorRef },
  ): Promise<Answers<Q>>;
}

/** Sets the asker for all actors of this actor's system. */
export function provideInput(actor: AnyActorRef, asking: Invoked): void {
  askers.set(actor.system, asking);
}

type Asked = 'the user' | 'the user to open a page' | 'the model of the client' | 'for the directories of the user';

/** The addressee of each logic, for the description of a machine. */
const addressees = new WeakMap<object, Asked>();

/**
 * The logic of an invocation. It loads XState when an actor first runs it: a server without statecharts needs none. It has no
 * `restoreSnapshot`: XState then restores the stored snapshot as it is, as its own promises do.
 */
function asking<O, I>(whom: Asked, ask: Parameters<typeof fromPromise<O, I>>[0]): PromiseActorLogic<O, I> {
  const made = new Lazy(() => fromPromise(ask));
  const logic: PromiseActorLogic<O, I> = {
    config: ask,
    transition: (...step) => made.value.transition(...step),
    start: (...started) => made.value.start?.(...started),
    getInitialSnapshot: (...begun) => made.value.getInitialSnapshot(...begun),
    getPersistedSnapshot: (...stored) => made.value.getPersistedSnapshot(...stored),
  };
  addressees.set(logic, whom);
  return logic;
}

/** Returns the addressee of an invoked logic; undefined if it asks nothing. */
export function askedBy(logic: unknown): Asked | undefined {
  return typeof logic === 'object' && logic !== null ? addressees.get(logic) : undefined;
}

/**
 * Asks the user to fill in a form, like `ctx.elicit`. The content of the answer matches the schema; {@link elicitWith}
 * also gives it its type.
 *
 * @throws {CannotAsk | Unanswered} as `ctx.elicit` does; the machine receives the error in `onError`
 * @example
 * setup({ actors: { elicit } }).createMachine({
 *   invoke: { src: 'elicit', input: { message: 'Which size?', schema }, onDone: 'packing', onError: 'unasked' },
 * });
 */
export const elicit: PromiseActorLogic<Answered<unknown>, Elicitation> = asking('the user', ({ input, self, signal }) =>
  asked(self, signal, { elicit: input }),
);

/**
 * The same for a fixed form, whose schema determines the type of the answer. The input contains the message for the user.
 *
 * @example
 * setup({ actors: { askSize: elicitWith(z.object({ size: z.enum(['S', 'L']) })) } }).createMachine({
 *   invoke: { src: 'askSize', input: { message: 'Which size?' }, onDone: 'packing' },
 * });
 */
export function elicitWith<const S extends AuthorSchema>(
  schema: S,
): PromiseActorLogic<Answered<Infer<S>>, { readonly message: string }> {
  const logic = asking<Answered<Infer<S>>, { readonly message: string }>('the user', ({ input, self, signal }) =>
    asked(self, signal, { elicit: { message: input.message, schema } }),
  );
  forms.set(logic, { schema });
  return logic;
}

/** The schemas of {@link elicitWith}, by its logic. */
const forms = processWide('troupe.forms', () => new WeakMap<object, { readonly schema: AuthorSchema }>());

/** Returns the schema of a fixed form; undefined for any other logic. */
export function askedForm(logic: unknown): { readonly schema: AuthorSchema } | undefined {
  return typeof logic === 'object' && logic !== null ? forms.get(logic) : undefined;
}

/** Asks the user to open a page, like `ctx.elicitUrl`. */
export const elicitUrl: PromiseActorLogic<UrlAnswered, UrlElicitation> = asking(
  'the user to open a page',
  ({ input, self, signal }) => asked(self, signal, { elicitUrl: input }),
);

/** Asks the client's model, like `ctx.sample`. */
export const sample: PromiseActorLogic<Sampled, Sampling> = asking(
  'the model of the client',
  ({ input, self, signal }) => asked(self, signal, { sample: input }),
);

/** Asks for the user's directories, like `ctx.roots`. */
export const roots: PromiseActorLogic<readonly Root[], void> = asking(
  'for the directories of the user',
  ({ self, signal }) => asked(self, signal, { roots: true }),
);

/**
 * The id of the invocation is the name of the question, so that it is the same in every run, regardless of timing. The
 * signal is aborted when the state is left.
 */
async function asked<const Q extends AnyQuestion>(
  self: AnyActorRef,
  signal: AbortSignal,
  question: Q,
): Promise<AnswerTo<Q>> {
  const asking = askers.get(self.system);
  if (!asking)
    throw new Error(
      `"${self.id}" asks a client, but this machine runs without one. Offer it as a tool (server.tool(name, { machine })), or provide another actor in its place (machine.provide({ actors: { … } }))`,
    );
  const answers = await asking.ask({ [self.id]: question }, { signal, by: self });
  // The answer belongs to this question, so its type fits.
  return answers[self.id] as AnswerTo<Q>;
}

/** The logic that a statechart invokes to ask the client of the call that it runs for: `elicit`, `elicitUrl`, `sample` and `roots`. */
import { type AnyActorRef, fromPromise, type PromiseActorLogic } from 'xstate';
import { processWide } from '../global-registry.ts';
import type { AuthorSchema, Infer } from '../schema/schema-types.ts';
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
} from './questions.ts';

/**
 * Who asks for the actors of one XState system: all that a statechart invokes and spawns, at any depth. Process-wide, because
 * a machine may import another copy of this package than the one that runs it.
 */
const askers = processWide('troupe.invocations', () => new WeakMap<object, Invoked>());

/** What an invocation asks through: `ctx`, or what stands for it where no call is there. */
export interface Invoked {
  /** @param options `by` is the actor that asks */
  ask<const Q extends Questions>(
    questions: Q,
    options: { readonly signal: AbortSignal; readonly by: AnyActorRef },
  ): Promise<Answers<Q>>;
}

/** From now on the actors of this one's system may ask. */
export function provideInput(actor: AnyActorRef, asking: Invoked): void {
  askers.set(actor.system, asking);
}

/**
 * Asks the user to fill in a form: the same as `ctx.elicit`. The content of the answer fits the schema; {@link elicitWith}
 * also gives it its type.
 *
 * @throws {CannotAsk | Unanswered} as `ctx.elicit` does: the machine hears it in `onError`
 * @example
 * setup({ actors: { elicit } }).createMachine({
 *   invoke: { src: 'elicit', input: { message: 'Which size?', schema }, onDone: 'packing', onError: 'unasked' },
 * });
 */
export const elicit: PromiseActorLogic<Answered<unknown>, Elicitation> = fromPromise(({ input, self, signal }) =>
  asked(self, signal, { elicit: input }),
);

/**
 * The same for one form, whose schema gives the answer its type; the input is what the user is told.
 *
 * @example
 * setup({ actors: { askSize: elicitWith(z.object({ size: z.enum(['S', 'L']) })) } }).createMachine({
 *   invoke: { src: 'askSize', input: { message: 'Which size?' }, onDone: 'packing' },
 * });
 */
export function elicitWith<const S extends AuthorSchema>(
  schema: S,
): PromiseActorLogic<Answered<Infer<S>>, { readonly message: string }> {
  return fromPromise(({ input, self, signal }) => asked(self, signal, { elicit: { message: input.message, schema } }));
}

/** Asks the user to open a page: the same as `ctx.elicitUrl`. */
export const elicitUrl: PromiseActorLogic<UrlAnswered, UrlElicitation> = fromPromise(({ input, self, signal }) =>
  asked(self, signal, { elicitUrl: input }),
);

/** Asks the client's model: the same as `ctx.sample`. */
export const sample: PromiseActorLogic<Sampled, Sampling> = fromPromise(({ input, self, signal }) =>
  asked(self, signal, { sample: input }),
);

/** Asks where the user works: the same as `ctx.roots`. */
export const roots: PromiseActorLogic<readonly Root[], void> = fromPromise(({ self, signal }) =>
  asked(self, signal, { roots: true }),
);

/** The id of the invocation names the question: it is the same in every run, however the others are timed. The signal is aborted when the state is left. */
async function asked<const Q extends AnyQuestion>(
  self: AnyActorRef,
  signal: AbortSignal,
  question: Q,
): Promise<AnswerTo<Q>> {
  const asking = askers.get(self.system);
  if (!asking)
    throw new Error(
      `"${self.id}" asks a client, and this machine runs for none: offer it as a tool (server.tool(name, { machine })), or provide another actor in its place (machine.provide({ actors: { … } }))`,
    );
  const answers = await asking.ask({ [self.id]: question }, { signal, by: self });
  // What comes back is what was asked for.
  return answers[self.id] as AnswerTo<Q>;
}

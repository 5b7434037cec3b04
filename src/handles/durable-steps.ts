/** The logic of invoked work that goes on after a restart where it was: each step runs once, its result is kept before it is used. */
import { nanoid } from 'nanoid';
import { type AnyActorRef, fromPromise, type NonReducibleUnknown, type PromiseActorLogic } from 'xstate';
import { processWide } from '../global-registry.ts';

/** What the work of {@link fromSteps} is given. */
export interface StepsScope<Input> {
  readonly input: Input;
  /**
   * Runs `fn` once and keeps its result: the same name again gives the kept one, also after a restart. Then it is what JSON
   * made of it. A step that fails is not kept.
   *
   * @param name unique among the steps of this work
   */
  step<T>(name: string, fn: () => T | Promise<T>): Promise<T>;
  /** Aborted when the state that invoked the work is left. */
  readonly signal: AbortSignal;
  /** Names this work for others: the same after a restart, another whenever the state is entered anew. Hand it to whoever takes idempotency keys: a process may die between a step and its record. */
  readonly key: string;
}

/** What the work of one actor is lent. */
export interface StepProvider {
  readonly key: string;
  step<T>(name: string, fn: () => T | Promise<T>): Promise<T>;
}

/** Who keeps the steps of the actors of a system. Process-wide, because a machine may import another copy of this package. */
const lenders = processWide(
  'troupe.steps',
  () => new WeakMap<object, (actor: AnyActorRef) => StepProvider | Promise<StepProvider>>(),
);

/** From now on the steps of this one's system are kept. */
export function withSteps(
  actor: AnyActorRef,
  lend: (actor: AnyActorRef) => StepProvider | Promise<StepProvider>,
): void {
  lenders.set(actor.system, lend);
}

/**
 * Logic that a machine invokes, for work whose parts must not be done twice. Behind a handle (`server.machine`), the result of
 * each step is durable before the work goes on with it; the work itself is run anew after a restart, and its steps give what
 * they gave. In a tool that is a statechart its steps are those of the call (`ctx.step`), and as durable. Elsewhere steps are
 * kept for one run. What is invoked with `fromPromise` is run anew as a whole.
 *
 * @example
 * const charge = fromSteps<{ total: number }, string>(async ({ input, step, key }) => {
 *   const payment = await step('pay', () => pay(input.total, { idempotencyKey: key }));
 *   await step('mail', () => mail(payment.receipt));
 *   return payment.id;
 * });
 * setup({ actors: { charge } }).createMachine({ invoke: { src: 'charge', input: ({ context }) => context, onDone: 'paid' } });
 */
export function fromSteps<Input extends NonReducibleUnknown, Output>(
  work: (scope: StepsScope<Input>) => Output | Promise<Output>,
): PromiseActorLogic<Output, Input> {
  return fromPromise(async ({ input, self, signal }) => {
    const { key, step } = (await lenders.get(self.system)?.(self)) ?? unkept();
    signal.throwIfAborted();
    return work({ input, step, signal, key });
  });
}

/** Where nobody keeps them: a step of a name runs once for each run of the work. */
function unkept(): StepProvider {
  const running = new Map<string, Promise<unknown>>();
  return {
    key: nanoid(),
    step<T>(name: string, fn: () => T | Promise<T>): Promise<T> {
      // The name is the author's promise that the step is the same, and with it its type.
      const before = running.get(name) as Promise<T> | undefined;
      if (before) return before;
      const run = (async () => fn())();
      running.set(name, run);
      return run;
    },
  };
}

/** Actor logic for work that resumes after a restart: each step runs once, and its result is durable before it is used. */

import { type AnyActorRef, fromPromise, type NonReducibleUnknown, type PromiseActorLogic } from 'xstate';
import { processWide } from '../../core/kernel/global-registry.ts';
import { randomId } from '../../core/kernel/random-id.ts';
import { copyOf, StepLog } from '../asking/step-log.ts';

/** The argument of the work in {@link fromSteps}. */
export interface StepsScope<Input> {
  readonly input: Input;
  /**
   * Runs `fn` once and records its result. Another call with the same name returns the recorded result, also after a
   * restart; it is then a JSON copy. A step that fails is not recorded.
   *
   * @param name unique among the steps of this work
   */
  step<T>(name: string, fn: () => T | Promise<T>): Promise<T>;
  /** Aborted when the state that invoked the work is left. */
  readonly signal: AbortSignal;
  /**
   * An idempotency key of this work: it is the same after a restart, and differs each time the state is entered. Pass it to
   * external services, because the process may die between a step and its record.
   */
  readonly key: string;
}

/** The step functions for the work of one actor. */
export interface StepProvider {
  readonly key: string;
  step<T>(name: string, fn: () => T | Promise<T>): Promise<T>;
}

/** The step providers of actor systems. Process-wide, because a machine may import another copy of this package. */
const providers = processWide(
  'troupe.steps',
  () => new WeakMap<object, (actor: AnyActorRef) => StepProvider | Promise<StepProvider>>(),
);

/** Sets the step provider for the system of this actor. */
export function withSteps(
  actor: AnyActorRef,
  provide: (actor: AnyActorRef) => StepProvider | Promise<StepProvider>,
): void {
  providers.set(actor.system, provide);
}

/**
 * Creates logic that a machine invokes, for work whose parts must not run twice. Behind a handle (`server.machine`), the
 * result of each step is durable before the work continues. After a restart the work runs again, and its completed steps
 * return their recorded results. In a tool that is a statechart, the steps are those of the call (`ctx.step`) and equally
 * durable. Elsewhere, steps are recorded for one run. Work invoked with `fromPromise` runs again as a whole.
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
    const { key, step } = (await providers.get(self.system)?.(self)) ?? stepsInMemory();
    signal.throwIfAborted();
    return work({ input, step, signal, key });
  });
}

/** Steps of one run of the work, without a store. */
function stepsInMemory(): StepProvider {
  const { step } = new StepLog({
    remembersFailures: false,
    recorded: undefined,
    storage: undefined,
    memory: { hold: () => undefined, free: () => {} },
    maxLength: Number.POSITIVE_INFINITY,
    label: invocationStepLabel,
    copy: copyOf,
  });
  return { key: randomId(), step };
}

/** Names a step of an invocation in errors. */
export function invocationStepLabel(name: string): string {
  return `step "${name}"`;
}

/**
 * Defers the effects of an XState system until the turn that caused them is durable: an author's actions, and the start of
 * promises, callbacks and observables. Changes within the system are not deferred; they belong to the same turn.
 */
import { type AnyActorRef, isMachineSnapshot } from 'xstate';
import { childrenOf, isActor } from '../../core/kernel/charts/system-actors.ts';
import { actorLogic, type ExecutableAction, interceptEffects, parentOf } from '../../core/kernel/xstate-internals.ts';
import { isObject } from '../../core/protocol/json.ts';

/** An effect that runs once its turn is durable. It may throw. */
export interface Effect {
  readonly name: string;
  run(): void;
}

export class DeferredEffects {
  #effects: Effect[] = [];
  /** Work that XState's own actions defer while an effect runs outside of a turn. */
  #deferred: (() => void)[] | undefined;
  #closed = false;
  readonly #isMessage: (action: ExecutableAction) => boolean;

  /** @param isMessage takes an action that writes a message, which belongs to the turn itself */
  constructor(isMessage: (action: ExecutableAction) => boolean) {
    this.#isMessage = isMessage;
  }

  get any(): boolean {
    return this.#effects.length > 0;
  }

  /** Returns the effects that were deferred since the last call. */
  take(): readonly Effect[] {
    const effects = this.#effects;
    // Replace the array even if it is empty, so that a later effect is not among what was taken.
    this.#effects = [];
    return effects;
  }

  /**
   * Runs deferred effects in order.
   *
   * @returns the first error; the remaining effects do not run
   */
  run(effects: readonly Effect[]): { readonly effect: string; readonly error: unknown } | undefined {
    for (const effect of effects) {
      try {
        effect.run();
      } catch (error) {
        return { effect: effect.name, error };
      }
    }
    return undefined;
  }

  /** Discards all deferred effects and defers no more. */
  close(): void {
    this.#closed = true;
    this.#effects = [];
  }

  /**
   * Defers the effects of this actor from now on. The actor has just been created and has done nothing yet.
   *
   * @throws {Error} for an actor of an incompatible XState version
   */
  adopt(actor: AnyActorRef): void {
    interceptEffects(actor, {
      execute: (action, execute) => {
        if (this.#closed || !isEffect(action)) return execute(action);
        if (this.#isMessage(action)) return;
        this.#effects.push({ name: action.type, run: () => this.#execute(action) });
      },
      defer: (run, defer) => (this.#deferred ? void this.#deferred.push(run) : defer(run)),
    });
    if (!parentOf(actor) || !hasEffects(actor)) return;
    const start = actor.start;
    actor.start = () => {
      if (this.#closed) return;
      this.#effects.push({
        name: `start of ${actor.id}`,
        // The state that invoked it may have been left in the meantime.
        run: () => (!this.#closed && isChild(actor) ? start.call(actor) : undefined),
      });
    };
  }

  /** An effect that runs after its turn must also run the work that it defers. */
  #execute({ exec, info, params }: ExecutableAction): void {
    const deferred: (() => void)[] = [];
    this.#deferred = deferred;
    try {
      exec?.(info, params);
    } finally {
      this.#deferred = undefined;
    }
    for (const run of deferred) run();
  }
}

/**
 * Returns whether an action affects the outside: an author's action, a log, or mail to an actor with effects. XState's own
 * actions only change the system.
 */
function isEffect({ type, params }: ExecutableAction): boolean {
  if (!type.startsWith('xstate.')) return true;
  if (type === 'xstate.log') return true;
  return (
    type === 'xstate.sendTo' &&
    isObject(params) &&
    params.delay === undefined &&
    isActor(params.to) &&
    hasEffects(params.to)
  );
}

/**
 * Returns whether an actor has effects when it starts. Promises, callbacks and observables do; machines do not, because each
 * of their effects is deferred separately.
 */
function hasEffects(actor: AnyActorRef): boolean {
  const logic = actorLogic(actor);
  return isObject(logic) && 'start' in logic && !('getStateNodeById' in logic);
}

function isChild(actor: AnyActorRef): boolean {
  const snapshot: unknown = parentOf(actor)?.getSnapshot();
  return isObject(snapshot) && isObject(snapshot.children) && snapshot.children[actor.id] === actor;
}

/** Returns whether an actor below this one is working: any actor that is neither a machine nor waiting according to `waits`. */
export function hasPendingWork(actor: AnyActorRef, waits: (child: AnyActorRef) => boolean): boolean {
  return childrenOf(actor).some((child) => {
    const inner: unknown = child.getSnapshot();
    if (isMachineSnapshot(inner)) return hasPendingWork(child, waits);
    return isObject(inner) && inner.status === 'active' && hasEffects(child) && !waits(child);
  });
}

/**
 * Holds back what the actors of an XState system do to the world, until what led to it is durable: an author's actions, and the
 * start of promises, callbacks and observables. What only changes the system goes on at once: it is part of the same turn.
 */
import { type AnyActorRef, isMachineSnapshot } from 'xstate';
import { childrenOf, isActor } from '../charts/system-actors.ts';
import { isObject } from '../protocol/json.ts';

/** Something that is done once the turn is durable. It may throw. */
export interface Effect {
  readonly what: string;
  run(): void;
}

/** As XState 5.33 hands an action to the actor that executes it. */
interface Action {
  readonly type: string;
  readonly info: unknown;
  readonly params: unknown;
  readonly exec?: (info: unknown, params: unknown) => void;
}

/** What each actor does its effects through; not public, and the only way to all of them, whoever made the actor. */
interface Scope {
  actionExecutor(action: Action): void;
  defer(run: () => void): void;
}

export class DeferredEffects {
  #effects: Effect[] = [];
  /** What XState's own actions leave to be done, while one is executed outside of a turn. */
  #deferred: (() => void)[] | undefined;
  #closed = false;

  get some(): boolean {
    return this.#effects.length > 0;
  }

  /** What was held back since it was last asked. */
  take(): readonly Effect[] {
    const effects = this.#effects;
    // Also of none: what is held back from now on is not among what was taken.
    this.#effects = [];
    return effects;
  }

  /** Does what was held back. @returns what one threw; the rest are not done then */
  run(effects: readonly Effect[]): { readonly effect: string; readonly error: unknown } | undefined {
    for (const effect of effects) {
      try {
        effect.run();
      } catch (error) {
        return { effect: effect.what, error };
      }
    }
    return undefined;
  }

  /** Nothing is held any more, and nothing that was is begun. */
  close(): void {
    this.#closed = true;
    this.#effects = [];
  }

  /** From now on the effects of this actor are held back. It has just been made, and has done nothing yet. @throws {Error} for an actor of an XState that does them in another way */
  adopt(actor: AnyActorRef): void {
    const scope = scopeOf(actor);
    if (!scope)
      throw new Error(
        'this version of xstate runs its actions in another way than 5.33, so that they cannot be held back until they are durable: use xstate 5.33',
      );
    const execute = scope.actionExecutor;
    const defer = scope.defer;
    scope.actionExecutor = (action) => {
      if (this.#closed || !isEffect(action)) return execute(action);
      this.#effects.push({ what: action.type, run: () => this.#execute(action) });
    };
    scope.defer = (run) => (this.#deferred ? void this.#deferred.push(run) : defer(run));
    if (!actor._parent || !hasEffects(actor)) return;
    const start = actor.start;
    actor.start = () => {
      if (this.#closed) return;
      this.#effects.push({
        what: `start of ${actor.id}`,
        // Its state may have been left meanwhile.
        run: () => (!this.#closed && isChild(actor) ? start.call(actor) : undefined),
      });
    };
  }

  /** What is executed after its turn has no turn that would do what it defers. */
  #execute({ exec, info, params }: Action): void {
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

/** An author's action, a log, or mail to an actor that does something with it. XState's own actions only change the system. */
function isEffect({ type, params }: Action): boolean {
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

/** Promises, callbacks and observables: whatever is started, but for machines, whose effects are held back one by one. */
function hasEffects(actor: AnyActorRef): boolean {
  const logic: unknown = 'logic' in actor ? actor.logic : undefined;
  return isObject(logic) && 'start' in logic && !('getStateNodeById' in logic);
}

function isChild(actor: AnyActorRef): boolean {
  const snapshot: unknown = actor._parent?.getSnapshot();
  return isObject(snapshot) && isObject(snapshot.children) && snapshot.children[actor.id] === actor;
}

function scopeOf(actor: AnyActorRef): Scope | undefined {
  const scope: unknown = '_actorScope' in actor ? actor._actorScope : undefined;
  return isScope(scope) ? scope : undefined;
}

function isScope(value: unknown): value is Scope {
  return isObject(value) && typeof value.actionExecutor === 'function' && typeof value.defer === 'function';
}

/** Whether an actor below this one is at work: one that is no machine, and none of those that `waits` knows to wait. */
export function hasPendingWork(actor: AnyActorRef, waits: (child: AnyActorRef) => boolean): boolean {
  return childrenOf(actor).some((child) => {
    const inner: unknown = child.getSnapshot();
    if (isMachineSnapshot(inner)) return hasPendingWork(child, waits);
    return isObject(inner) && inner.status === 'active' && hasEffects(child) && !waits(child);
  });
}

/**
 * The members of XState that its documentation does not promise: the only file that touches them. Everything else reaches
 * them through these functions, so a new version of XState is checked in one place (`test/core/kernel/xstate-internals.test.ts`).
 */
import {
  type AnyActorRef,
  type AnyEventObject,
  type AnyMachineSnapshot,
  type AnyStateMachine,
  type AnyStateNode,
  type AnyTransitionDefinition,
  createActor,
  createMachine,
  type InspectedMicrostepEvent,
} from 'xstate';
import { isObject } from '../protocol/json.ts';

/** The minor versions of XState with which all tests of this file have passed. */
export const TESTED_VERSIONS: readonly string[] = ['5.33'];

/** An action, as XState passes it to the actor that executes it. */
export interface ExecutableAction {
  readonly type: string;
  readonly info: unknown;
  readonly params: unknown;
  readonly exec?: (info: unknown, params: unknown) => void;
}

/** The object through which an XState actor runs its effects. No other way reaches all of them, however the actor was created. */
interface EffectScope {
  actionExecutor(action: ExecutableAction): void;
  defer(run: () => void): void;
  stopChild(child: AnyActorRef): void;
}

/** A running delay of an XState system. Another object under the same key is another delay. */
type ScheduledEvent = ReturnType<AnyActorRef['system']['getSnapshot']>['_scheduledEvents'][string];

/** The actor that invoked or spawned this one; undefined for a root. */
export function parentOf(actor: AnyActorRef): AnyActorRef | undefined {
  return actor._parent;
}

/** The delays that run in the system of an actor, by XState's keys. */
export function scheduledEvents(actor: AnyActorRef): Readonly<Record<string, ScheduledEvent>> {
  return actor.system.getSnapshot()._scheduledEvents;
}

/** Starts a delay, as XState does for `after` and `raise`. @param id XState's name of the delay within its actor */
export function scheduleEvent(
  source: AnyActorRef,
  target: AnyActorRef,
  event: AnyEventObject,
  ms: number,
  id: string,
): void {
  source.system.scheduler.schedule(source, target, event, ms, id);
}

/** The transitions that a machine took in one microstep. */
export function transitionsOf(event: InspectedMicrostepEvent): readonly AnyTransitionDefinition[] {
  return event._transitions;
}

/** The active state nodes of a snapshot. */
export function activeNodes(snapshot: AnyMachineSnapshot): readonly AnyStateNode[] {
  return snapshot._nodes;
}

/** The logic of an actor; undefined for an object that has none. */
export function actorLogic(actor: AnyActorRef): unknown {
  return 'logic' in actor ? actor.logic : undefined;
}

/** Returns whether an actor was created from a persisted snapshot. */
export function isRestored(actor: AnyActorRef): boolean {
  const options: unknown = 'options' in actor ? actor.options : undefined;
  return isObject(options) && options.snapshot !== undefined;
}

/**
 * Replaces the execution of an actor's effects. The actor has just been created and has done nothing yet.
 *
 * @param by receives each action and each deferred work, with the function that executes it as XState would
 * @throws {Error} for an actor of an incompatible XState version
 */
export function interceptEffects(
  actor: AnyActorRef,
  by: {
    execute(action: ExecutableAction, execute: (action: ExecutableAction) => void): void;
    defer(run: () => void, defer: (run: () => void) => void): void;
  },
): void {
  const scope = effectScope(actor);
  const { actionExecutor, defer } = scope;
  scope.actionExecutor = (action) => by.execute(action, actionExecutor);
  scope.defer = (run) => by.defer(run, defer);
}

/** @throws {Error} for an actor of a version that has no such object */
function effectScope(actor: AnyActorRef): EffectScope {
  const scope = scopeOf(actor);
  if (isEffectScope(scope)) return scope;
  throw new Error(
    `expected an actor of xstate ${tested()}, got one without an effect scope (_actorScope). Its actions cannot be deferred until their turn is durable. Use xstate ${tested()}`,
  );
}

/** Stops a child of an actor. XState itself stops it only within a turn of its parent. */
export function stopChild(parent: AnyActorRef, child: AnyActorRef): void {
  effectScope(parent).stopChild(child);
}

/** A scope in which a machine computes its next state and has no effect. @param self an actor that is never started */
export function inertScope(self: AnyActorRef): Parameters<AnyStateMachine['transition']>[2] {
  return {
    self,
    id: self.id,
    sessionId: self.sessionId,
    system: self.system,
    logger: nothing,
    defer: nothing,
    stopChild: nothing,
    emit: nothing,
    actionExecutor: nothing,
  };
}

function nothing(): void {}

function scopeOf(actor: AnyActorRef): unknown {
  return '_actorScope' in actor ? actor._actorScope : undefined;
}

function isEffectScope(value: unknown): value is EffectScope {
  return (
    isObject(value) &&
    typeof value.actionExecutor === 'function' &&
    typeof value.defer === 'function' &&
    typeof value.stopChild === 'function'
  );
}

/** Lists the members above that the installed XState does not have. */
export function missingMembers(): readonly string[] {
  const machine = createMachine({
    initial: 'one',
    invoke: { id: 'child', src: createMachine({}) },
    states: { one: { after: { 60000: 'two' }, on: { go: 'two' } }, two: {} },
  });
  const actor = createActor(machine);
  let took = 0;
  const watched = actor.system.inspect((event) => {
    if (event.type === '@xstate.microstep' && '_transitions' in event) took += event._transitions.length;
  });
  actor.start();
  const { child } = actor.getSnapshot().children;
  const system: unknown = actor.system.getSnapshot();
  const checks: Readonly<Record<string, boolean>> = {
    '_parent of an actor': child !== undefined && child._parent === actor,
    '_scheduledEvents of a system':
      isObject(system) && isObject(system._scheduledEvents) && Object.keys(system._scheduledEvents).length === 1,
    '_actorScope of an actor, with actionExecutor, defer and stopChild': isEffectScope(scopeOf(actor)),
    '_nodes of a snapshot': activeNodes(actor.getSnapshot()).some(({ key }) => key === 'one'),
    'logic of an actor': actorLogic(actor) === machine,
    'options of an actor': 'options' in actor && isObject(actor.options),
  };
  actor.send({ type: 'go' });
  watched.unsubscribe();
  actor.stop();
  const missing = Object.entries(checks).flatMap(([member, there]) => (there ? [] : [member]));
  return took > 0 ? missing : [...missing, '_transitions of an inspected microstep'];
}

/**
 * Describes an untested version of XState for the operator.
 *
 * @param missing the members that it does not have
 * @returns undefined for a tested version with all members
 */
export function untestedVersion(version: string, missing: readonly string[]): string | undefined {
  const known = TESTED_VERSIONS.includes(version.split('.').slice(0, 2).join('.'));
  if (known && missing.length === 0) return undefined;
  const fault =
    missing.length === 0 ? 'It has all members that Troupe needs' : `It does not have: ${missing.join('; ')}`;
  return `xstate ${version} is installed, and Troupe was tested with ${tested()}. ${fault}. If a statechart behaves wrongly, install xstate@~${TESTED_VERSIONS.at(-1) ?? ''}`;
}

function tested(): string {
  return TESTED_VERSIONS.join(' and ');
}

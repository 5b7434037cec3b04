/** One instance of an author's machine in memory: an XState actor, what it held back, and what happened since it was last asked. */
import {
  type ActorLogic,
  type AnyActorRef,
  type AnyEventObject,
  type AnyMachineSnapshot,
  type AnyStateMachine,
  createActor,
  type Actor as XStateActor,
} from 'xstate';
import { actorAt, actorPath, isActor, isLifecycle } from '../charts/system-actors.ts';
import type { XStateTimers } from '../clock.ts';
import { type Invoked, provideInput } from '../input/invocations.ts';
import { isObject, type JsonObject } from '../protocol/json.ts';
import { DeferredEffects, type Effect, hasPendingWork } from './deferred-effects.ts';
import { type StepProvider, withSteps } from './durable-steps.ts';
import { NotSerializable } from './serializable.ts';

type InstanceLogic = ActorLogic<AnyMachineSnapshot, AnyEventObject, unknown>;

export interface HostedMachineDeps {
  readonly timers: XStateTimers;
  readonly asking: Invoked;
  steps(actor: AnyActorRef): StepProvider | Promise<StepProvider>;
  log(said: unknown): void;
  /** Runs a step that nobody called for. */
  alone?<T>(step: () => T): T;
  /** It has changed, or failed, by itself: what it invoked came to something, or a time was over. */
  stirred(): void;
}

export type Beginning =
  | { readonly input: unknown }
  | { readonly snapshot: JsonObject; readonly entries: Readonly<Record<string, number>> };

/** A timer of XState's, by the paths of its actors. */
export interface Scheduled {
  readonly key: string;
  /** XState's own object: another one under the same key is another timer. */
  readonly mark: object;
  readonly source: string;
  readonly target: string;
  readonly id: string;
  readonly event: AnyEventObject;
  readonly delay: number;
}

export class HostedMachine {
  readonly machine: AnyStateMachine;
  /** How often each invocation, by its path, has begun. */
  readonly entries: Record<string, number>;
  readonly #host: HostedMachineDeps;
  readonly #held = new DeferredEffects();
  readonly #root: XStateActor<InstanceLogic>;
  #events: AnyEventObject[] = [];
  #thrown: { readonly error: unknown } | undefined;
  #within = true;
  #stopped = false;

  /** Nothing is done yet: what it does at its beginning is held back. */
  constructor(machine: AnyStateMachine, beginning: Beginning, host: HostedMachineDeps) {
    this.machine = machine;
    this.#host = host;
    this.entries = 'entries' in beginning ? { ...beginning.entries } : {};
    this.#root = createActor(this.#logic(machine), {
      ...('input' in beginning ? { input: beginning.input } : { snapshot: restorable(beginning.snapshot) }),
      id: machine.id,
      clock: host.timers,
      logger: (...said: unknown[]) => host.log(said.length === 1 ? said[0] : said),
      inspect: (event) => {
        const { actorRef } = event;
        if (event.type === '@xstate.actor' && isActor(actorRef)) this.#adopt(actorRef);
        // The root itself is made only when its beginning has been inspected.
        if (event.type === '@xstate.event' && isRoot(actorRef) && !isLifecycle(event.event))
          this.#events.push(event.event);
        if (event.type === '@xstate.snapshot') this.#changed();
      },
    });
    provideInput(this.#root, host.asking);
    withSteps(this.#root, host.steps);
    // Without it, an actor that fails ends the process with its error.
    this.#root.subscribe({ error: () => this.#changed() });
    const { status, error } = this.snapshot;
    if (status === 'error' && !('snapshot' in beginning && beginning.snapshot.status === 'error'))
      this.#thrown = { error };
    this.#within = false;
  }

  get actor(): AnyActorRef {
    return this.#root;
  }

  get snapshot(): AnyMachineSnapshot {
    return this.#root.getSnapshot();
  }

  start(): void {
    this.#inTurn(() => this.#root.start());
  }

  /** One turn: when it returns, everything that the event led to within the system has happened. */
  send(event: AnyEventObject): void {
    this.#inTurn(() => this.#root.send(event));
  }

  /** What the machine threw, since it was last asked. Then it is good for nothing more. */
  takeCrash(): { readonly error: unknown } | undefined {
    const thrown = this.#thrown;
    this.#thrown = undefined;
    return thrown;
  }

  /** The events that the machine was given since it was last asked. */
  takeEvents(): readonly AnyEventObject[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }

  /** Whether anything is held back. */
  get holds(): boolean {
    return this.#held.some;
  }

  takeEffects(): readonly Effect[] {
    return this.#held.take();
  }

  /** Does what was held back. @returns what one threw */
  run(effects: readonly Effect[]): { readonly effect: string; readonly error: unknown } | undefined {
    return this.#held.run(effects);
  }

  /** What XState keeps of it. @throws {Unkeepable | Error} for what cannot be kept at all */
  persisted(): unknown {
    try {
      return this.#root.getPersistedSnapshot();
    } catch (error) {
      // XState looks for actors in the whole context, however deep it is.
      if (error instanceof RangeError) throw new NotSerializable('context: nested too deep to be kept');
      throw error;
    }
  }

  scheduled(): readonly Scheduled[] {
    const all = this.#root.system.getSnapshot()._scheduledEvents;
    const list: Scheduled[] = [];
    for (const key in all) {
      const mark = all[key];
      if (!mark) continue;
      const { source, target, id, event, delay } = mark;
      const from = actorPath(source);
      list.push({ key: `${from}#${id}`, mark, source: from, target: actorPath(target), id, event, delay });
    }
    return list;
  }

  /** Puts a timer back. One of an actor that is no longer there is of no use to anybody. */
  schedule({ source, target, id, event }: Omit<Scheduled, 'key' | 'mark' | 'delay'>, ms: number): void {
    const from = actorAt(this.#root, source);
    const to = actorAt(this.#root, target);
    if (from && to) this.#root.system.scheduler.schedule(from, to, event, ms, id);
  }

  /** Whether something that it invoked is at work; what waits for a client's answer is not. */
  atWork(waits: (actor: AnyActorRef) => boolean): boolean {
    return this.snapshot.status === 'active' && hasPendingWork(this.#root, waits);
  }

  /** Breaks off what it does. It reports nothing more. */
  stop(): void {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#held.close();
    const { children } = this.snapshot;
    this.#root.stop();
    // One that crashed was stopped without its children.
    for (const child of Object.values(children ?? {})) if (isActor(child)) stopChild(this.#root, child);
  }

  #logic(machine: AnyStateMachine): InstanceLogic {
    return {
      transition: (snapshot, event, scope) => {
        const step = () => machine.transition(snapshot, event, scope);
        try {
          return this.#within || !this.#host.alone ? step() : this.#host.alone(step);
        } catch (error) {
          this.#thrown = { error };
          throw error;
        }
      },
      getInitialSnapshot: (scope, input) => machine.getInitialSnapshot(scope, input),
      getPersistedSnapshot: (snapshot) => machine.getPersistedSnapshot(snapshot),
      restoreSnapshot: (snapshot, scope) => machine.restoreSnapshot(snapshot, scope),
      start: (snapshot) => machine.start(snapshot),
    };
  }

  #adopt(actor: AnyActorRef): void {
    this.#held.adopt(actor);
    const options: unknown = 'options' in actor ? actor.options : undefined;
    if (!actor._parent || (isObject(options) && options.snapshot !== undefined)) return;
    const path = actorPath(actor);
    this.entries[path] = (this.entries[path] ?? 0) + 1;
  }

  #changed(): void {
    if (!this.#within && !this.#stopped) this.#host.stirred();
  }

  #inTurn(run: () => void): void {
    const before = this.#within;
    this.#within = true;
    try {
      run();
    } finally {
      this.#within = before;
    }
  }
}

/** What was kept, in the form that XState takes: it has these members as undefined, which JSON leaves out. */
function restorable(snapshot: JsonObject): AnyMachineSnapshot {
  // XState reads it as what it persisted itself; `checkRestorable` has looked at what it names.
  return { output: undefined, error: undefined, ...snapshot } as unknown as AnyMachineSnapshot;
}

function isRoot(actor: unknown): boolean {
  return isActor(actor) && actor._parent === undefined;
}

/** XState stops the children of an actor only from within its turn. */
function stopChild(root: object, child: AnyActorRef): void {
  const scope: unknown = '_actorScope' in root ? root._actorScope : undefined;
  if (isObject(scope) && typeof scope.stopChild === 'function') scope.stopChild(child);
}

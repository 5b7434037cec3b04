/** Hosts one instance of an author's machine: an XState actor, its deferred effects, and its events and errors since the last turn. */
import {
  type ActorLogic,
  type AnyActorRef,
  type AnyEventObject,
  type AnyMachineSnapshot,
  type AnyStateMachine,
  createActor,
  type InspectedMicrostepEvent,
  type InspectionEvent,
  isMachineSnapshot,
  type Actor as XStateActor,
} from 'xstate';
import { actorAt, actorPath, isActor, isLifecycle } from '../../core/kernel/charts/system-actors.ts';
import type { XStateTimers } from '../../core/kernel/clock.ts';
import {
  type ExecutableAction,
  isRestored,
  parentOf,
  scheduledEvents,
  scheduleEvent,
  stopChild,
} from '../../core/kernel/xstate-internals.ts';
import type { JsonObject } from '../../core/protocol/json.ts';
import { type Invoked, provideInput } from '../asking/invocations.ts';
import { DeferredEffects, type Effect, hasPendingWork } from './deferred-effects.ts';
import { type StepProvider, withSteps } from './durable-steps.ts';
import { NotSerializable } from './serializable.ts';

type InstanceLogic = ActorLogic<AnyMachineSnapshot, AnyEventObject, unknown>;

interface HostedMachineDeps {
  readonly timers: XStateTimers;
  readonly asking: Invoked;
  /** Absent if steps are recorded for one run only. */
  readonly steps?: (actor: AnyActorRef) => StepProvider | Promise<StepProvider>;
  /** False if nothing waits for durability: effects run at once, and neither events nor starts are counted. */
  readonly defers?: boolean;
  log(message: unknown): void;
  /** Takes an action of `tell`, in the turn that runs it. @returns false for any other action. Absent: it has no messages */
  tells?(action: ExecutableAction): boolean;
  /** Called after each step of the root, in the turn. What it throws fails the turn. Absent: nothing follows the steps */
  stepped?(step: InspectedMicrostepEvent, snapshot: AnyMachineSnapshot): void;
  /** Runs a step that no call has caused. */
  withoutCall?<T>(step: () => T): T;
  /** Called when the machine changed or failed without a call, through an invocation or a timer. */
  changed(): void;
}

type MachineStart =
  | { readonly input: unknown }
  | { readonly snapshot: JsonObject; readonly entries: Readonly<Record<string, number>> };

/** A timer of XState, with the paths of its actors. */
export interface Scheduled {
  readonly key: string;
  /** XState's own object. A different object under the same key is a different timer. */
  readonly mark: object;
  readonly source: string;
  readonly target: string;
  readonly id: string;
  readonly event: AnyEventObject;
  readonly delay: number;
}

export class HostedMachine {
  readonly machine: AnyStateMachine;
  /** Number of starts of each invocation, by its path. */
  readonly entries: Record<string, number>;
  readonly #host: HostedMachineDeps;
  readonly #effects: DeferredEffects;
  readonly #root: XStateActor<InstanceLogic>;
  #events: AnyEventObject[] = [];
  #thrown: { readonly error: unknown } | undefined;
  #inTurn = true;
  #stopped = false;
  #started = 0;

  /** Creates the actor without starting it. The effects of its start are deferred. */
  constructor(machine: AnyStateMachine, start: MachineStart, host: HostedMachineDeps) {
    this.machine = machine;
    this.#host = host;
    this.#effects = new DeferredEffects((action) => host.tells?.(action) ?? false);
    this.entries = 'entries' in start ? { ...start.entries } : {};
    const defers = host.defers ?? true;
    this.#root = createActor(this.#logic(machine), {
      ...('input' in start ? { input: start.input } : { snapshot: restorable(start.snapshot) }),
      id: machine.id,
      clock: host.timers,
      logger: (...messages: unknown[]) => host.log(messages.length === 1 ? messages[0] : messages),
      ...(defers ? { inspect: (event: InspectionEvent) => this.#inspect(event) } : {}),
    });
    provideInput(this.#root, host.asking);
    if (host.steps) withSteps(this.#root, host.steps);
    const changed = (): void => this.#changed();
    // Without an error listener, the error of a failed actor would end the process.
    this.#root.subscribe(defers ? { error: changed } : { error: changed, complete: changed });
    const { status, error } = this.snapshot;
    if (status === 'error' && !('snapshot' in start && start.snapshot.status === 'error')) this.#thrown = { error };
    this.#inTurn = false;
  }

  get actor(): AnyActorRef {
    return this.#root;
  }

  get snapshot(): AnyMachineSnapshot {
    return this.#root.getSnapshot();
  }

  start(): void {
    this.#runTurn(() => this.#root.start());
  }

  /** Runs one turn. When it returns, the system has processed the event completely. */
  send(event: AnyEventObject): void {
    this.#runTurn(() => this.#root.send(event));
  }

  /** Number of invocations that have started since the instance is in memory. */
  get started(): number {
    return this.#started;
  }

  /** Returns the error that the machine threw since the last call. After an error the machine is unusable. */
  takeCrash(): { readonly error: unknown } | undefined {
    const thrown = this.#thrown;
    this.#thrown = undefined;
    return thrown;
  }

  /** Returns the events that the machine received since the last call. */
  takeEvents(): readonly AnyEventObject[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }

  /** True while any effect is deferred. */
  get hasEffects(): boolean {
    return this.#effects.any;
  }

  takeEffects(): readonly Effect[] {
    return this.#effects.take();
  }

  /**
   * Runs deferred effects.
   *
   * @returns the first error
   */
  run(effects: readonly Effect[]): { readonly effect: string; readonly error: unknown } | undefined {
    return this.#effects.run(effects);
  }

  /**
   * Returns XState's persisted snapshot.
   *
   * @throws {NotSerializable | Error} for a machine that cannot be persisted
   */
  persisted(): unknown {
    try {
      return this.#root.getPersistedSnapshot();
    } catch (error) {
      // XState searches the whole context for actors, at any depth.
      if (error instanceof RangeError) throw new NotSerializable('context: nested too deep to be stored');
      throw error;
    }
  }

  scheduled(): readonly Scheduled[] {
    const all = scheduledEvents(this.#root);
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

  /** Restores a timer. A timer of an actor that no longer exists is ignored. */
  schedule({ source, target, id, event }: Omit<Scheduled, 'key' | 'mark' | 'delay'>, ms: number): void {
    const from = actorAt(this.#root, source);
    const to = actorAt(this.#root, target);
    if (from && to) scheduleEvent(from, to, event, ms, id);
  }

  /** Returns whether any invocation is working. An invocation that waits for a client's answer is not. */
  atWork(waits: (actor: AnyActorRef) => boolean): boolean {
    return this.snapshot.status === 'active' && hasPendingWork(this.#root, waits);
  }

  /** Aborts all work of the machine. It reports nothing afterwards. */
  stop(): void {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#effects.close();
    const { children } = this.snapshot;
    this.#root.stop();
    // XState stops a crashed actor without its children.
    for (const child of Object.values(children ?? {})) if (isActor(child)) stopChild(this.#root, child);
  }

  #logic(machine: AnyStateMachine): InstanceLogic {
    return {
      transition: (snapshot, event, scope) => {
        const step = () => machine.transition(snapshot, event, scope);
        try {
          return this.#inTurn || !this.#host.withoutCall ? step() : this.#host.withoutCall(step);
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

  #inspect(event: InspectionEvent): void {
    const { actorRef } = event;
    if (event.type === '@xstate.actor' && isActor(actorRef)) this.#adopt(actorRef);
    // XState creates the root only after it has inspected the root's start.
    if (event.type === '@xstate.event' && isRoot(actorRef) && !isLifecycle(event.event)) this.#events.push(event.event);
    if (event.type === '@xstate.microstep') this.#step(event);
    if (event.type === '@xstate.snapshot') this.#changed();
  }

  #step(event: InspectedMicrostepEvent): void {
    const { stepped } = this.#host;
    if (stepped && isRoot(event.actorRef) && isMachineSnapshot(event.snapshot)) stepped(event, event.snapshot);
  }

  #adopt(actor: AnyActorRef): void {
    this.#effects.adopt(actor);
    if (!parentOf(actor) || isRestored(actor)) return;
    const path = actorPath(actor);
    this.entries[path] = (this.entries[path] ?? 0) + 1;
    this.#started += 1;
  }

  #changed(): void {
    if (!this.#inTurn && !this.#stopped) this.#host.changed();
  }

  #runTurn(run: () => void): void {
    const before = this.#inTurn;
    this.#inTurn = true;
    try {
      run();
    } finally {
      this.#inTurn = before;
    }
  }
}

/** Converts a stored snapshot to the form that XState expects: with these members as undefined, which JSON omits. */
function restorable(snapshot: JsonObject): AnyMachineSnapshot {
  // XState reads it like a snapshot that it persisted itself; `checkRestorable` has checked the names in it.
  return { output: undefined, error: undefined, ...snapshot } as unknown as AnyMachineSnapshot;
}

function isRoot(actor: unknown): boolean {
  return isActor(actor) && parentOf(actor) === undefined;
}

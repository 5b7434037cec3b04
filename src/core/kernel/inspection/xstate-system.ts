/**
 * Observes a running XState system: events sent to its actors, transitions taken, timers. The only reader of XState's
 * own inspection.
 */
import {
  type AnyActorRef,
  type AnyEventObject,
  type InspectionEvent,
  isMachineSnapshot,
  type Subscription,
} from 'xstate';
import { isObject } from '../../protocol/json.ts';
import { edgeOf } from '../charts/chart.ts';
import { pathOf } from '../charts/paths.ts';
import { actorPath, childrenOf, isActor, isLifecycle } from '../charts/system-actors.ts';
import { parentOf, scheduledEvents, transitionsOf } from '../xstate-internals.ts';
import type { Inspection } from './inspection.ts';
import type { NewRecord, Watching } from './records.ts';

/** A running timer. */
interface Running {
  readonly mark: object;
  readonly actor: string;
  readonly id: string;
  readonly event: string;
  readonly delay: number;
  readonly due: number;
  /** The record of its start. */
  readonly seq: number;
}

/**
 * Records what happens in the system of `root` until the observation ends. The inspection must already have
 * `root`; this function adds the actors that `root` invokes and spawns.
 *
 * @param now the time by the inspection's clock, in milliseconds
 */
export function watchSystem(root: AnyActorRef, address: string, inspection: Inspection, now: () => number): Watching {
  return new SystemWatch(root, address, inspection, now);
}

/** The running timers in the system of an actor. Milliseconds from the start of each. */
export function runningDelays(root: AnyActorRef): readonly { readonly event: string; readonly delay: number }[] {
  return Object.values(scheduledEvents(root)).map(({ event, delay }) => ({
    event: event.type,
    delay,
  }));
}

class SystemWatch implements Watching {
  readonly #root: AnyActorRef;
  readonly #address: string;
  readonly #inspection: Inspection;
  readonly #now: () => number;
  readonly #subscriptions: Subscription[] = [];
  /** The invoked actors that were recorded, by address. */
  readonly #recorded = new Map<string, AnyActorRef>();
  /** The record of each event. An event is the same object from its sending to its last consequence. */
  readonly #sent = new WeakMap<object, number>();
  /** The cause of everything that each actor sends: the record that it processed last. */
  readonly #acting = new WeakMap<object, number>();
  /**
   * The event that each actor is processing, and the transitions taken so far. XState reports the resulting snapshot
   * last.
   */
  readonly #begun = new Map<AnyActorRef, { readonly event: AnyEventObject; readonly edges: string[] }>();
  #running = new Map<string, Running>();

  constructor(root: AnyActorRef, address: string, inspection: Inspection, now: () => number) {
    this.#root = root;
    this.#address = address;
    this.#inspection = inspection;
    this.#now = now;
    for (const child of childrenOf(root)) this.#discovered(child);
    this.#timers();
    this.#subscriptions.push(
      root.system.inspect((event) => this.#guarded(event)),
      root.on('*', (event) => this.#emitted(event)),
    );
  }

  running(): readonly NewRecord[] {
    return [...this.#running.values()].map(({ actor, id, event, delay, due }) => ({
      type: 'timer',
      actor,
      id,
      event,
      delay,
      due,
    }));
  }

  end(): void {
    // XState reports the last step of an ending actor after its subscription ends: record it now.
    for (const [actor, { event }] of this.#begun) this.#stepped(actor, event, Object(actor.getSnapshot()));
    for (const subscription of this.#subscriptions) subscription.unsubscribe();
    for (const actor of this.#recorded.keys()) this.#inspection.gone(actor, 'it is no longer observed');
    this.#recorded.clear();
  }

  /** An observer that throws would end the actor that it observes. */
  #guarded(event: InspectionEvent): void {
    try {
      this.#observe(event);
    } catch (error) {
      this.end();
      this.#inspection.record({
        type: 'crashed',
        actor: this.#address,
        mail: `its observation (${event.type})`,
        error,
        quarantined: true,
      });
    }
  }

  #observe(event: InspectionEvent): void {
    const { actorRef } = event;
    if (!isActor(actorRef)) return;
    switch (event.type) {
      case '@xstate.event':
        // A new actor is known by its address only when it starts. It reports its own creation then.
        if (actorRef !== this.#root) this.#discovered(actorRef);
        return this.#mailed(actorRef, event.sourceRef, event.event);
      case '@xstate.microstep': {
        const begun = this.#begun.get(actorRef) ?? { event: event.event, edges: [] };
        begun.edges.push(...transitionsOf(event).map(edgeOf));
        this.#begun.set(actorRef, begun);
        const sent = this.#sent.get(event.event);
        if (sent !== undefined) this.#acting.set(actorRef, sent);
        return;
      }
      case '@xstate.snapshot':
        return this.#stepped(actorRef, event.event, event.snapshot);
    }
  }

  #mailed(actor: AnyActorRef, source: unknown, event: AnyEventObject): void {
    if (this.#sent.has(event)) return;
    const acting = isObject(source) ? this.#acting.get(source) : undefined;
    const timer = source === actor ? this.#fired(actor, event) : undefined;
    const cause = timer ?? acting ?? this.#inspection.cause;
    // Events to an actor that is no machine are internal to XState: its start, and the outcome of its promise.
    if (isLifecycle(event) || !isMachineSnapshot(actor.getSnapshot())) {
      this.#sent.set(event, cause);
      this.#acting.set(actor, cause);
      return;
    }
    const seq = this.#inspection.withCause(cause, () =>
      this.#inspection.record({ type: 'mail', actor: this.#addressOf(actor), mail: event }),
    );
    this.#sent.set(event, seq);
  }

  #stepped(actor: AnyActorRef, event: AnyEventObject, snapshot: object): void {
    const address = this.#addressOf(actor);
    // An ended actor reports its last state after its parent has recorded the end.
    if (actor !== this.#root && !this.#recorded.has(address)) return;
    const { edges } = this.#begun.get(actor) ?? { edges: [] };
    this.#begun.delete(actor);
    const cause = this.#sent.get(event) ?? this.#inspection.cause;
    this.#acting.set(actor, cause);
    this.#inspection.withCause(cause, () => {
      if (isMachineSnapshot(snapshot)) {
        // A machine need not handle XState's own events: it may ignore how its child ended.
        const handled = edges.length > 0 || event.type.startsWith('xstate.');
        this.#inspection.record({ type: 'step', actor: address, event, edges, snapshot, handled });
        this.#inspection.stated(address, pathOf(snapshot));
      } else if ('status' in snapshot) {
        this.#inspection.stated(address, String(snapshot.status));
      }
      this.#timers();
      this.#sweep();
    });
  }

  #emitted(event: AnyEventObject): void {
    this.#inspection.withCause(this.#acting.get(this.#root) ?? this.#inspection.cause, () =>
      this.#inspection.record({ type: 'emit', actor: this.#address, event }),
    );
  }

  /** Adds an invoked actor when it first appears. */
  #discovered(actor: AnyActorRef): void {
    const address = this.#addressOf(actor);
    if (this.#recorded.get(address) === actor) return;
    if (this.#recorded.has(address)) this.#inspection.gone(address, 'another actor took its address');
    this.#recorded.set(address, actor);
    const above = parentOf(actor);
    const parent = above ? this.#addressOf(above) : this.#address;
    this.#inspection.withCause(above ? (this.#acting.get(above) ?? this.#inspection.cause) : 0, () =>
      this.#inspection.born(address, {
        kind: 'invoked',
        parent,
        label: nameOf(actor),
        state: () => stateOf(actor),
        chart: () => chartOf(actor),
      }),
    );
    for (const child of childrenOf(actor)) this.#discovered(child);
  }

  /** Records the end of actors that are done, or were stopped with the state that invoked them. */
  #sweep(): void {
    for (const [address, actor] of this.#recorded) {
      const status = stateOfStatus(actor);
      const above = parentOf(actor);
      const there = above ? childrenOf(above).includes(actor) : false;
      if (status === 'active' && there) continue;
      this.#recorded.delete(address);
      const stopped = stateOfStatus(this.#root) === 'stopped' ? 'its parent was stopped' : 'its state was left';
      const why = status === 'done' ? 'it is done' : status === 'error' ? 'it failed' : stopped;
      this.#inspection.gone(address, why);
    }
  }

  #fired(actor: AnyActorRef, event: AnyEventObject): number | undefined {
    for (const running of this.#running.values())
      if (running.event === event.type && running.actor === this.#addressOf(actor)) return running.seq;
    return undefined;
  }

  /** Compares the running timers with the recorded ones. */
  #timers(): void {
    const before = this.#running;
    this.#running = new Map();
    const scheduled = scheduledEvents(this.#root);
    for (const key in scheduled) {
      const mark = scheduled[key];
      if (!mark) continue;
      const known = before.get(key);
      before.delete(key);
      if (known?.mark === mark) {
        this.#running.set(key, known);
        continue;
      }
      const { source, event, delay, id } = mark;
      const actor = this.#addressOf(source);
      // `startedAt` is by the wall clock, not by the inspection's clock. A timer is recorded in the turn in which it
      // starts.
      const record = { type: 'timer', actor, id, event: event.type, delay, due: this.#now() + delay } as const;
      const seq = this.#inspection.record({ ...record });
      this.#running.set(key, { ...record, mark, seq });
    }
    for (const { actor, id, event, delay } of before.values())
      this.#inspection.record({ type: 'timer', actor, id, event, delay });
  }

  #addressOf(actor: AnyActorRef): string {
    const path = actorPath(actor);
    return path === '' ? this.#address : `${this.#address}/${path}`;
  }
}

/** XState names an actor without an author's id by its position. Its source is the better name then. */
function nameOf(actor: AnyActorRef): string {
  const { src, id } = actor;
  return typeof src === 'string' && !src.startsWith('xstate.') && /^\d+\./.test(id) ? src : id;
}

function stateOfStatus(actor: AnyActorRef): string {
  const snapshot: unknown = actor.getSnapshot();
  return isObject(snapshot) ? String(snapshot.status) : '';
}

function stateOf(actor: AnyActorRef): string {
  const snapshot: unknown = actor.getSnapshot();
  return isMachineSnapshot(snapshot) ? pathOf(snapshot) : stateOfStatus(actor);
}

function chartOf(actor: AnyActorRef) {
  const snapshot: unknown = actor.getSnapshot();
  return isMachineSnapshot(snapshot) ? { machine: snapshot.machine, snapshot } : undefined;
}

/** Watches a running XState system: what its actors are sent, which transitions they take, what they wait for. The only file that reads XState's own inspection. */
import {
  type AnyActorRef,
  type AnyEventObject,
  type InspectionEvent,
  isMachineSnapshot,
  type Subscription,
} from 'xstate';
import { edgeOf } from '../charts/chart.ts';
import { pathOf } from '../charts/paths.ts';
import { actorPath, childrenOf, isActor, isLifecycle } from '../charts/system-actors.ts';
import { isObject } from '../protocol/json.ts';
import type { Inspection } from './inspection.ts';

/** A delay that runs. */
interface Running {
  readonly mark: object;
  readonly actor: string;
  readonly id: string;
  readonly event: string;
  readonly delay: number;
  /** The record that told of its beginning. */
  readonly seq: number;
}

/**
 * Tells what happens in the system of `root` until the returned function is called: `root` itself must be known to the
 * inspection already; the actors that it invokes and spawns are told here.
 *
 * @param now the time by the clock of the inspection, in milliseconds
 */
export function watchSystem(root: AnyActorRef, address: string, inspection: Inspection, now: () => number): () => void {
  const watch = new SystemWatch(root, address, inspection, now);
  return () => watch.end();
}

/** The delays that run in the system of an actor. Milliseconds, from when each began. */
export function runningDelays(root: AnyActorRef): readonly { readonly event: string; readonly delay: number }[] {
  return Object.values(root.system.getSnapshot()._scheduledEvents).map(({ event, delay }) => ({
    event: event.type,
    delay,
  }));
}

class SystemWatch {
  readonly #root: AnyActorRef;
  readonly #address: string;
  readonly #inspection: Inspection;
  readonly #now: () => number;
  readonly #subscriptions: Subscription[] = [];
  /** The invoked actors that were told of, by their addresses. */
  readonly #told = new Map<string, AnyActorRef>();
  /** Where each event was told of. An event is one object from its sending to what it led to. */
  readonly #sent = new WeakMap<object, number>();
  /** What each actor acted on last: what it sends is caused by that. */
  readonly #acting = new WeakMap<object, number>();
  /** What each actor has begun to act on, and the transitions that it took: XState tells of what it came to last. */
  readonly #begun = new Map<AnyActorRef, { readonly event: AnyEventObject; readonly edges: string[] }>();
  #running = new Map<string, Running>();

  constructor(root: AnyActorRef, address: string, inspection: Inspection, now: () => number) {
    this.#root = root;
    this.#address = address;
    this.#inspection = inspection;
    this.#now = now;
    for (const child of childrenOf(root)) this.#met(child);
    this.#timers();
    this.#subscriptions.push(
      root.system.inspect((event) => this.#guarded(event)),
      root.on('*', (event) => this.#emitted(event)),
    );
  }

  end(): void {
    // One that comes to its end is let go of before XState tells of its last step.
    for (const [actor, { event }] of this.#begun) this.#stepped(actor, event, Object(actor.getSnapshot()));
    for (const subscription of this.#subscriptions) subscription.unsubscribe();
    for (const actor of this.#told.keys()) this.#inspection.gone(actor, 'it is watched no more');
    this.#told.clear();
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
        mail: `the watching of it (${event.type})`,
        error,
        setAside: true,
      });
    }
  }

  #observe(event: InspectionEvent): void {
    const { actorRef } = event;
    if (!isActor(actorRef)) return;
    switch (event.type) {
      case '@xstate.event':
        // What has just been made tells of itself when it is begun: only then is it known by its place.
        if (actorRef !== this.#root) this.#met(actorRef);
        return this.#mailed(actorRef, event.sourceRef, event.event);
      case '@xstate.microstep': {
        const begun = this.#begun.get(actorRef) ?? { event: event.event, edges: [] };
        begun.edges.push(...event._transitions.map(edgeOf));
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
    // What an actor that is no machine is sent is between XState and itself: its beginning, what its promise came to.
    if (isLifecycle(event) || !isMachineSnapshot(actor.getSnapshot())) {
      this.#sent.set(event, cause);
      this.#acting.set(actor, cause);
      return;
    }
    const seq = this.#inspection.because(cause, () =>
      this.#inspection.record({ type: 'mail', actor: this.#addressOf(actor), mail: event }),
    );
    this.#sent.set(event, seq);
  }

  #stepped(actor: AnyActorRef, event: AnyEventObject, snapshot: object): void {
    const address = this.#addressOf(actor);
    // What has ended tells of its last state when its parent has been told already.
    if (actor !== this.#root && !this.#told.has(address)) return;
    const { edges } = this.#begun.get(actor) ?? { edges: [] };
    this.#begun.delete(actor);
    const cause = this.#sent.get(event) ?? this.#inspection.cause;
    this.#acting.set(actor, cause);
    this.#inspection.because(cause, () => {
      if (isMachineSnapshot(snapshot)) {
        // What XState sends of its own accord need not be taken: a machine may not care how its child ended.
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
    this.#inspection.because(this.#acting.get(this.#root) ?? this.#inspection.cause, () =>
      this.#inspection.record({ type: 'emit', actor: this.#address, event }),
    );
  }

  /** An invoked actor, when it is first heard of. */
  #met(actor: AnyActorRef): void {
    const address = this.#addressOf(actor);
    if (this.#told.get(address) === actor) return;
    if (this.#told.has(address)) this.#inspection.gone(address, 'another took its place');
    this.#told.set(address, actor);
    const parent = actor._parent ? this.#addressOf(actor._parent) : this.#address;
    this.#inspection.because(actor._parent ? (this.#acting.get(actor._parent) ?? this.#inspection.cause) : 0, () =>
      this.#inspection.born(address, {
        kind: 'invoked',
        parent,
        label: nameOf(actor),
        state: () => stateOf(actor),
        chart: () => chartOf(actor),
      }),
    );
    for (const child of childrenOf(actor)) this.#met(child);
  }

  /** Tells of those that have ended, or were stopped with the state that they belonged to. */
  #sweep(): void {
    for (const [address, actor] of this.#told) {
      const status = stateOfStatus(actor);
      const there = actor._parent ? childrenOf(actor._parent).includes(actor) : false;
      if (status === 'active' && there) continue;
      this.#told.delete(address);
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

  /** Compares the delays that run with those that were told of. */
  #timers(): void {
    const before = this.#running;
    this.#running = new Map();
    const scheduled = this.#root.system.getSnapshot()._scheduledEvents;
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
      // `startedAt` is by the wall clock, which is not ours: a delay is told of in the turn in which it begins.
      const record = { type: 'timer', actor, id, event: event.type, delay } as const;
      const seq = this.#inspection.record({ ...record, due: this.#now() + delay });
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

/** XState names what an author has not by its place: then it is called by what it runs. */
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

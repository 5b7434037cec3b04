/** The turn loop of an instance in memory: serves calls in order and commits their changes. Answers and effects follow once the commit is durable. */
import type { AnyEventObject } from 'xstate';
import { nameOfInvocation } from '../../core/kernel/charts/chart.ts';
import { pathOf } from '../../core/kernel/charts/paths.ts';
import type { Clock } from '../../core/kernel/clock.ts';
import { type GatedWrites, OutputGate } from '../../core/kernel/output-gate.ts';
import type { Store, TimerRow, Write } from '../../core/store/store.ts';
import type { Activation } from './activation.ts';
import { type BoundedMailbox, type QueuedCall, queuedCall } from './bounded-mailbox.ts';
import { type Commit, commitOf, commitUndone, type OwnChange, type ServedCall } from './commit.ts';
import { reasonsOf } from './course.ts';
import type { Effect } from './deferred-effects.ts';
import { CREATED } from './event-history.ts';
import { endedBy, quarantinedBefore } from './failures.ts';
import { HandleError } from './handle-error.ts';
import type { HandleView } from './handle-messages.ts';
import { type HandleRecord, handleAddress } from './handle-record.ts';
import type { InstanceServices } from './instance-services.ts';
import { instanceView } from './instance-view.ts';
import type { InstanceLifecycle } from './lifecycle.ts';
import type { Caller } from './machine-definition.ts';
import type { OutBatch } from './messages/outboxes.ts';
import type { StoredInstance } from './restore.ts';
import type { Role } from './role-types.ts';
import { EVERY_RIGHT, roleOf } from './roles.ts';
import { eventFor, follow, serveCall } from './serve-call.ts';

/** Maximum number of calls in one batch before the event loop continues. */
const MOST_TURNS = 64;
/** The longest time that a call waits for work which it has started, in milliseconds, so that a client sees the result of short work. */
const REST_MS = 50;
/** The same in turns of the event loop, if the test that waits for the call moves the clock. */
const REST_TURNS = 3;

/** The owner of the turns. */
export interface TurnLoopOwner {
  readonly entry: HandleRecord;
  /** Decides what the loop may do now. */
  readonly life: InstanceLifecycle;
  /** Reports a durable change. */
  changed(type: 'created' | 'changed', view: () => HandleView): void;
  /** Reports the states before and after a durable change, each on one line. */
  moved(change: Moved): void;
  answer(served: readonly ServedCall[]): void;
  /** Reports that the instance has ended. */
  ended(): void;
  /** Reports an error that no call has caused. */
  crashed(events: readonly AnyEventObject[], error: unknown): void;
  /** Reports an error that the last of these calls caused. The changes of all of them are discarded. */
  poisoned(calls: readonly QueuedCall[], error: unknown): void;
  /** Reports that the changes could not be made durable. */
  notPersisted(served: readonly ServedCall[], error: unknown): void;
}

/** A durable change of the state. */
export interface Moved {
  readonly from: string;
  readonly to: string;
  readonly reasons: readonly string[];
  /** True if no call has caused it. */
  readonly own: boolean;
}

/** The stored data before a batch. */
interface Before {
  readonly stored: string;
  readonly timers: readonly TimerRow[];
}

/** The writes of one batch. If they cannot be made durable, their changes are discarded. */
class BatchWrites implements GatedWrites<readonly Write[]> {
  readonly #store: Store;
  #next: readonly Write[] = [];

  constructor(store: Store) {
    this.#store = store;
  }

  put(writes: readonly Write[]): void {
    this.#next = this.#next.length === 0 ? writes : [...this.#next, ...writes];
  }

  take(): readonly Write[] {
    const next = this.#next;
    this.#next = [];
    return next;
  }

  commit(batch: readonly Write[]): Promise<void> {
    return this.#store.commit(batch);
  }

  durable(): void {}

  rejected(): 'discard' {
    return 'discard';
  }
}

export class TurnLoop {
  readonly #owner: TurnLoopOwner;
  readonly #host: InstanceServices;
  readonly #mail: BoundedMailbox;
  readonly #writes: BatchWrites;
  /** Holds back answers and effects until the batch that led to them is durable. */
  readonly #output: OutputGate<readonly Write[]>;
  #activation: Activation | undefined;
  /** The last turn; increases with each change. */
  #turn = 0;
  /** The stored data of the instance, as last written. */
  #stored = '';
  #failure: string | undefined;
  /** The state after the last batch, on one line. */
  #path = '';
  /** Number of calls in the last batch. */
  #batch = 0;
  #waitingForSettled: (() => void)[] = [];

  constructor(owner: TurnLoopOwner, host: InstanceServices, mail: BoundedMailbox) {
    this.#owner = owner;
    this.#host = host;
    this.#mail = mail;
    this.#writes = new BatchWrites(host.store);
    this.#output = new OutputGate(this.#writes, host);
  }

  get activation(): Activation | undefined {
    return this.#activation;
  }

  get stored(): string {
    return this.#stored;
  }

  /** The state after the last batch, on one line. */
  get path(): string {
    return this.#path;
  }

  /**
   * Starts a new instance.
   *
   * @throws the error of its start, or of data that cannot be stored
   */
  create(activation: Activation, input: unknown, caller: Caller, more: readonly Write[]): Promise<HandleView> {
    this.#activation = activation;
    activation.start();
    throwCrash(activation);
    follow(this.#owner.entry, activation, this.#host);
    activation.hosted.takeEvents();
    const { call, answer } = queuedCall({ type: 'get' }, caller);
    const own: OwnChange = { kind: 'created', turn: 1, events: [{ type: CREATED, input }], reasons: [] };
    this.#commit(activation, [{ call, answer: { view: this.view(1) }, turn: 1, events: [] }], own, more);
    return answer;
  }

  /**
   * Resumes an instance from the store.
   *
   * @throws the error of resuming it
   */
  resume(activation: Activation, stored: StoredInstance, data: string, migrated: boolean): void {
    this.#activation = activation;
    this.#stored = data;
    this.#turn = stored.turn;
    this.#failure = stored.failure;
    throwCrash(activation);
    const { entry } = this.#owner;
    if (entry.status === 'active') this.#host.poisonEvents.runMarked(entry.id, () => activation.start());
    throwCrash(activation);
    activation.hosted.takeEvents();
    this.#path = pathOf(activation.hosted.snapshot);
    // Persist a migrated snapshot before running any of its effects.
    if (migrated || activation.isReplanned) return this.#commit(activation, [], this.#own(activation));
    this.#durable(activation, [], activation.hosted.takeEffects(), undefined);
  }

  /** Drops the instance from memory. */
  drop(): void {
    this.#activation?.hosted.stop();
    this.#activation?.schedules.stop();
    this.#activation = undefined;
  }

  /** Notes a change without a call. All such changes within one turn of the event loop form one batch. */
  markChanged(activation: Activation): void {
    if (activation === this.#activation && this.#owner.life.take('change')) this.again();
  }

  /** Schedules the next batch as a microtask, so that the current caller does not wait; after a full batch, as a turn of the event loop. */
  again(): void {
    if (this.#mail.size === 0 && !this.#owner.life.has('changed')) return;
    if (this.#batch === MOST_TURNS) this.#host.clock.soon(() => this.#run());
    else queueMicrotask(() => this.#run());
    this.#batch = 0;
  }

  /** Resolves when all changes so far are durable and their effects have started. */
  settled(): Promise<void> {
    if (this.isSettled) return Promise.resolve();
    return new Promise((resolve) => this.#waitingForSettled.push(resolve));
  }

  /** True if all changes so far are durable. */
  get isSettled(): boolean {
    return !this.#owner.life.has('pending');
  }

  /** True if the call of a client has started work that runs now. */
  hasBegun({ caller, begun }: QueuedCall): boolean {
    const { isProgram, isInstance } = caller;
    const activation = this.#activation;
    return (
      !isProgram && !isInstance && activation !== undefined && activation.hosted.started > begun && activation.atWork
    );
  }

  /**
   * Resolves when all changes so far are durable, and when the work that the call has started rests or {@link REST_MS}
   * are over.
   */
  async rested(call: QueuedCall): Promise<void> {
    const activation = this.#activation;
    if (!activation || !this.hasBegun(call)) return this.settled();
    call.begun = activation.hosted.started;
    await this.#shortly(() => this.#activation !== activation || !activation.atWork);
    // A machine that changes all the time never settles.
    await (this.#host.clock.isManual ? this.settled() : this.isSettled || this.#shortly(() => true));
  }

  /** Resolves at the first moment at which all changes are durable and `rests` holds, or when {@link REST_MS} are over. */
  #shortly(rests: () => boolean): Promise<void> {
    const { clock } = this.#host;
    return new Promise((resolve) => {
      let isOver = false;
      const end = (): void => {
        isOver = true;
        timer?.cancel();
        resolve();
      };
      const check = (): void => {
        if (isOver) return;
        if (rests()) end();
        else this.#waitingForSettled.push(check);
      };
      const timer = clock.isManual ? afterTurns(clock, REST_TURNS, end) : clock.after(REST_MS, end);
      this.#waitingForSettled.push(check);
    });
  }

  notifySettled(): void {
    for (const resolve of this.#waitingForSettled.splice(0)) resolve();
  }

  /** Returns the current view for clients. */
  view(turn = this.#turn, role: Role = EVERY_RIGHT): HandleView {
    const activation = this.#activation;
    if (!activation) throw new Error('expected an instance in memory');
    const { entry } = this.#owner;
    const asks = entry.status === 'active' ? activation.inputs.list() : [];
    return instanceView(
      entry,
      activation.kind,
      this.#host,
      activation.hosted.snapshot,
      turn,
      asks,
      this.#failure,
      activation.pending,
      role,
    );
  }

  /** Returns the role of a caller now; undefined for none. */
  roleOf(caller: Caller): Role | undefined {
    const { entry } = this.#owner;
    return (
      this.#activation && roleOf(this.#activation.kind, entry, caller, this.#activation.hosted.snapshot, this.#host)
    );
  }

  #run(): void {
    const activation = this.#activation;
    const { life } = this.#owner;
    if (!activation || !life.has('ready')) return;
    // A change without a call is committed separately, so that an event that crashes does not undo it.
    if (life.has('changed')) return this.#commitOwnChange(activation);
    try {
      this.#serveAll(activation);
    } finally {
      this.#host.poisonEvents.clearMark();
    }
  }

  #serveAll(activation: Activation): void {
    const { entry } = this.#owner;
    const { poisonEvents } = this.#host;
    const served: ServedCall[] = [];
    let turn = this.#turn;
    while (served.length < MOST_TURNS) {
      const call = this.#mail.first();
      const history = call && poisonEvents.ofCall(entry.id, call);
      const isQuarantined = history?.incident !== undefined;
      if (call && history?.incident !== undefined && !isSlot(call)) {
        this.#mail.take();
        call.reject(quarantinedBefore(call, history.deaths, history.incident));
        continue;
      }
      if (call && history && !isQuarantined)
        call.attempts = Math.max(call.attempts, history.poison ? history.deaths - 1 : 1);
      // Retry alone an event that crashed the instance or ended the process.
      if (!call || (call.attempts > 0 && served.length > 0)) break;
      this.#mail.take();
      call.asked = activation.inputs.count;
      call.begun = activation.hosted.started;
      try {
        if (history?.poison && !isQuarantined) throw endedBy(history.deaths);
        poisonEvents.markCall(entry.id, call);
        const one = this.#serve(call, activation, turn, isQuarantined);
        turn = one.turn;
        served.push(one);
      } catch (error) {
        return this.#owner.poisoned([...served.map((each) => each.call), call], error);
      }
      // Deferred effects must run before the next event, as they would without a store.
      if (call.attempts > 0 || entry.status !== 'active' || activation.hosted.hasEffects) break;
    }
    this.#batch = served.length;
    if (served.length > 0) this.#commit(activation, served, undefined);
    for (const { call } of served) poisonEvents.survived(entry.id, call);
  }

  #serve(call: QueuedCall, activation: Activation, turn: number, isQuarantined: boolean): ServedCall {
    const { inspection } = this.#host;
    const run = (): ServedCall =>
      serveCall(
        call,
        this.#owner.entry,
        activation.kind,
        activation,
        turn,
        this.#host,
        (at, role) => this.view(at, role),
        isQuarantined,
      );
    return inspection.on ? inspection.withCause(call.cause, () => this.#watched(call, activation, run())) : run();
  }

  /** A rejected event does not reach the machine, so it is recorded here. */
  #watched(call: QueuedCall, { kind, hosted: { snapshot } }: Activation, one: ServedCall): ServedCall {
    if (call.type !== 'event' || !('refusal' in one.answer)) return one;
    const event = eventFor(kind, call.event, call.caller);
    const actor = handleAddress(this.#owner.entry);
    this.#host.inspection.record({ type: 'step', actor, event, edges: [], snapshot, handled: false });
    return one;
  }

  #commitOwnChange(activation: Activation): void {
    const crash = activation.hosted.takeCrash();
    if (crash) return this.#owner.crashed(activation.hosted.takeEvents(), crash.error);
    this.#commit(activation, [], this.#own(activation));
  }

  #own(activation: Activation): OwnChange {
    const events = activation.hosted.takeEvents();
    const nameOf = (invocation: string): string => nameOfInvocation(activation.hosted.machine, invocation);
    return { kind: 'own', turn: this.#turn + 1, events, reasons: reasonsOf(events, activation.takeClosed(), nameOf) };
  }

  /** Commits the changes. Answers and effects wait until the commit is durable (the output gate). */
  #commit(
    activation: Activation,
    served: readonly ServedCall[],
    own: OwnChange | undefined,
    more: readonly Write[] = [],
  ): void {
    const before = own ? undefined : { stored: this.#stored, timers: activation.timerRows() };
    if (!own && served.every(({ events }) => events.length === 0))
      return this.#durable(activation, served, [], undefined);
    const turn = served.at(-1)?.turn ?? own?.turn ?? this.#turn;
    const { entry } = this.#owner;
    let batch: Commit;
    try {
      follow(entry, activation, this.#host);
      batch = commitOf(entry, this.#host, activation, { served, own, turn });
    } catch (error) {
      if (own?.kind === 'created') throw error;
      if (error instanceof HandleError && error.reason === 'busy') return this.#owner.notPersisted(served, error);
      if (own) return this.#owner.crashed(own.events, error);
      const calls = served.map(({ call }) => call);
      return this.#owner.poisoned(calls, error);
    }
    const effects = activation.hosted.takeEffects();
    const moved = this.#move(activation, served, own);
    this.#turn = turn;
    const { out } = batch;
    const { outboxes } = this.#host;
    const messages = out && { durable: () => outboxes.deliver(out), rejected: () => outboxes.release(out) };
    this.#persist(batch, more, served, messages, () => {
      this.#owner.changed(own?.kind === 'created' ? 'created' : 'changed', () => this.view());
      this.#owner.moved(moved);
      this.#durable(activation, served, effects, before, out);
    });
  }

  #move({ hosted }: Activation, served: readonly ServedCall[], own: OwnChange | undefined): Moved {
    const from = this.#path;
    this.#path = pathOf(hosted.snapshot);
    const events = served.flatMap(({ call }) => (call.type === 'event' ? [call.event.type] : []));
    const isOwn = own ? own.kind === 'own' : served.length > 0 && served.every(({ call }) => isSlot(call));
    return { from, to: this.#path, reasons: own?.reasons ?? events, own: isOwn };
  }

  /** @param messages what becomes of its messages if the instance is not in memory any more, or the store rejects the commit */
  #persist(
    { data, writes }: Commit,
    more: readonly Write[],
    served: readonly ServedCall[],
    messages: { readonly durable: () => void; readonly rejected: () => void } | undefined,
    then: () => void,
  ): void {
    const { life } = this.#owner;
    life.take('commit');
    this.#stored = data;
    this.#writes.put(writes);
    if (more.length > 0) this.#writes.put(more);
    this.#output.add(true);
    this.#output.after(
      () => {
        life.take('durable');
        // Answer the calls in any case, because their changes are durable.
        if (this.#activation) return then();
        messages?.durable();
        this.#owner.answer(served);
        this.notifySettled();
      },
      (_why, error) => {
        messages?.rejected();
        this.#owner.notPersisted(served, error);
      },
    );
  }

  #durable(
    activation: Activation,
    served: readonly ServedCall[],
    effects: readonly Effect[],
    before: Before | undefined,
    out?: OutBatch,
  ): void {
    const { entry } = this.#owner;
    const failed =
      effects.length > 0
        ? this.#host.poisonEvents.runMarked(entry.id, () => activation.hosted.run(effects))
        : undefined;
    if (failed && before) return this.#undo(activation, served, before, failed.error, out);
    // Its effects have run, so that nothing undoes the turn any more.
    if (out) this.#host.outboxes.deliver(out);
    this.#owner.answer(served);
    if (failed) return this.#owner.crashed([{ type: failed.effect }], failed.error);
    if (entry.status !== 'active') this.#owner.ended();
    if (this.isSettled) this.notifySettled();
    this.again();
  }

  /** An action of the last event has thrown, so the event is undone. Its earlier effects may run again. */
  #undo(
    activation: Activation,
    served: readonly ServedCall[],
    before: Before,
    thrown: unknown,
    out: OutBatch | undefined,
  ): void {
    const { entry } = this.#owner;
    entry.status = 'active';
    this.#turn += 1;
    const { withdrawal, ...batch } = commitUndone(entry, this.#host, activation, before, this.#turn, out);
    const { outboxes } = this.#host;
    const withdrawn = (): void => void (out && outboxes.withdrawn(out, withdrawal));
    // If the store rejects it, the event has taken place.
    const messages = out && { durable: withdrawn, rejected: () => outboxes.deliver(out) };
    this.#persist(batch, [], served, messages, () => {
      withdrawn();
      const calls = served.map(({ call }) => call);
      this.#owner.poisoned(calls, thrown);
    });
  }
}

/** Returns whether a call is a slot of a schedule. */
function isSlot(call: QueuedCall): boolean {
  return call.type === 'event' && call.slot !== undefined;
}

/** Runs `callback` after so many turns of the event loop. */
function afterTurns(clock: Clock, turns: number, callback: () => void): undefined {
  clock.soon(() => (turns > 1 ? afterTurns(clock, turns - 1, callback) : callback()));
}

function throwCrash({ hosted }: Activation): void {
  const crash = hosted.takeCrash();
  if (crash) throw crash.error;
}

/** The turn loop of an instance in memory: serves calls in order and commits their changes. Answers and effects follow once the commit is durable. */
import type { AnyEventObject } from 'xstate';
import type { HandleView } from '../messages/handle-messages.ts';
import type { TimerRow, Write } from '../store/store.ts';
import type { Activation } from './activation.ts';
import { type BoundedMailbox, type QueuedCall, queuedCall } from './bounded-mailbox.ts';
import { type Commit, commitOf, commitUndone, type OwnChange, type ServedCall } from './commit.ts';
import type { Effect } from './deferred-effects.ts';
import { CREATED } from './event-history.ts';
import { endedBy, setAsideBefore } from './failures.ts';
import { HandleError } from './handle-error.ts';
import { type HandleRecord, handleAddress } from './handle-record.ts';
import type { InstanceDeps } from './instance-deps.ts';
import { instanceView } from './instance-view.ts';
import type { InstanceLifecycle } from './lifecycle.ts';
import type { Caller } from './machine-definition.ts';
import type { StoredInstance } from './restore.ts';
import { follow, serveCall } from './serve-call.ts';

/** Maximum number of calls in one batch before the event loop continues. */
const MOST_TURNS = 64;

/** The owner of the turns. */
export interface TurnLoopOwner {
  readonly entry: HandleRecord;
  /** Decides what the loop may do now. */
  readonly life: InstanceLifecycle;
  /** Reports a durable change. */
  changed(type: 'created' | 'changed', view: () => HandleView): void;
  answer(applied: readonly ServedCall[]): void;
  /** Reports that the instance has ended. */
  ended(): void;
  /** Reports an error that no call has caused. */
  crashed(events: readonly AnyEventObject[], error: unknown): void;
  /** Reports an error that the last of these calls caused. The changes of all of them are discarded. */
  poisoned(jobs: readonly QueuedCall[], error: unknown): void;
  /** Reports that the changes could not be made durable. */
  unkept(applied: readonly ServedCall[], error: unknown): void;
}

/** The stored data before a batch. */
interface Before {
  readonly kept: string;
  readonly timers: readonly TimerRow[];
}

export class TurnLoop {
  readonly #owner: TurnLoopOwner;
  readonly #host: InstanceDeps;
  readonly #mail: BoundedMailbox;
  #awake: Activation | undefined;
  /** The last turn; increases with each change. */
  #turn = 0;
  /** The stored data of the instance, as last written. */
  #kept = '';
  #failure: string | undefined;
  /** Number of calls in the last batch. */
  #served = 0;
  #waiting: (() => void)[] = [];

  constructor(owner: TurnLoopOwner, host: InstanceDeps, mail: BoundedMailbox) {
    this.#owner = owner;
    this.#host = host;
    this.#mail = mail;
  }

  get awake(): Activation | undefined {
    return this.#awake;
  }

  get kept(): string {
    return this.#kept;
  }

  /**
   * Starts a new instance.
   *
   * @throws the error of its start, or of data that cannot be stored
   */
  create(awake: Activation, input: unknown, caller: Caller, more: readonly Write[]): Promise<HandleView> {
    this.#awake = awake;
    awake.start();
    throwCrash(awake);
    follow(this.#owner.entry, awake);
    awake.living.takeEvents();
    const { job, answer } = queuedCall({ type: 'look' }, caller);
    const own: OwnChange = { kind: 'created', turn: 1, events: [{ type: CREATED, input }] };
    this.#commit(awake, [{ job, answer: { view: this.view(1) }, turn: 1, events: [] }], own, more);
    return answer;
  }

  /**
   * Resumes an instance from the store.
   *
   * @throws the error of resuming it
   */
  goOn(awake: Activation, kept: StoredInstance, data: string, migrated: boolean): void {
    this.#awake = awake;
    this.#kept = data;
    this.#turn = kept.turn;
    this.#failure = kept.failure;
    throwCrash(awake);
    const { entry } = this.#owner;
    if (entry.status === 'active') this.#host.poisonEvents.runMarked(entry.id, () => awake.start());
    throwCrash(awake);
    awake.living.takeEvents();
    // Persist a migrated snapshot before running any of its effects.
    if (migrated) return this.#commit(awake, [], this.#own(awake));
    this.#durable(awake, [], awake.living.takeEffects(), undefined);
  }

  /** Drops the instance from memory. */
  drop(): void {
    this.#awake?.living.stop();
    this.#awake = undefined;
  }

  /** Notes a change without a call. All such changes within one turn of the event loop form one batch. */
  stir(awake: Activation): void {
    if (awake === this.#awake && this.#owner.life.take('change')) this.again();
  }

  /** Schedules the next batch as a microtask, so that the current caller does not wait; after a full batch, as a turn of the event loop. */
  again(): void {
    if (this.#mail.size === 0 && !this.#owner.life.has('changed')) return;
    if (this.#served === MOST_TURNS) this.#host.clock.soon(() => this.#pump());
    else queueMicrotask(() => this.#pump());
    this.#served = 0;
  }

  /** Resolves when all changes so far are durable and their effects have started. */
  settled(): Promise<void> {
    if (!this.#owner.life.has('pending')) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  tellSettled(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  /** Returns the current view for clients. */
  view(turn = this.#turn): HandleView {
    const awake = this.#awake;
    if (!awake) throw new Error('expected an instance in memory');
    const { entry } = this.#owner;
    const asks = entry.status === 'active' ? awake.desk.look() : [];
    return instanceView(entry, awake.kind, this.#host, awake.living.snapshot, turn, asks, this.#failure);
  }

  #pump(): void {
    const awake = this.#awake;
    const { life } = this.#owner;
    if (!awake || !life.has('ready')) return;
    // A change without a call is committed separately, so that an event that crashes does not undo it.
    if (life.has('changed')) return this.#changed(awake);
    try {
      this.#serveAll(awake);
    } finally {
      this.#host.poisonEvents.clearMark();
    }
  }

  #serveAll(awake: Activation): void {
    const { entry } = this.#owner;
    const { poisonEvents } = this.#host;
    const applied: ServedCall[] = [];
    let turn = this.#turn;
    while (applied.length < MOST_TURNS) {
      const job = this.#mail.first();
      const history = job && poisonEvents.ofCall(entry.id, job);
      if (job && history?.incident !== undefined) {
        this.#mail.take();
        job.reject(setAsideBefore(job, history.deaths, history.incident));
        continue;
      }
      if (job && history) job.attempts = Math.max(job.attempts, history.poison ? history.deaths - 1 : 1);
      // Retry alone an event that crashed the instance or ended the process.
      if (!job || (job.attempts > 0 && applied.length > 0)) break;
      this.#mail.take();
      job.asked = awake.desk.asked;
      try {
        if (history?.poison) throw endedBy(history.deaths);
        poisonEvents.markCall(entry.id, job);
        const one = this.#serve(job, awake, turn);
        turn = one.turn;
        applied.push(one);
      } catch (error) {
        return this.#owner.poisoned([...applied.map((each) => each.job), job], error);
      }
      // Deferred effects must run before the next event, as they would without a store.
      if (job.attempts > 0 || entry.status !== 'active' || awake.living.holds) break;
    }
    this.#served = applied.length;
    if (applied.length > 0) this.#commit(awake, applied, undefined);
    for (const { job } of applied) poisonEvents.survived(entry.id, job);
  }

  #serve(job: QueuedCall, awake: Activation, turn: number): ServedCall {
    const { inspection } = this.#host;
    const run = (): ServedCall => serveCall(job, this.#owner.entry, awake.kind, awake, turn, (at) => this.view(at));
    return inspection.on ? inspection.withCause(job.cause, () => this.#watched(job, awake, run())) : run();
  }

  /** A rejected event does not reach the machine, so it is recorded here. */
  #watched(job: QueuedCall, { living: { snapshot } }: Activation, one: ServedCall): ServedCall {
    if (job.type !== 'event' || !('refusal' in one.answer)) return one;
    const event = { ...job.event.data, type: job.event.type };
    const actor = handleAddress(this.#owner.entry);
    this.#host.inspection.record({ type: 'step', actor, event, edges: [], snapshot, handled: false });
    return one;
  }

  #changed(awake: Activation): void {
    const crash = awake.living.takeCrash();
    if (crash) return this.#owner.crashed(awake.living.takeEvents(), crash.error);
    this.#commit(awake, [], this.#own(awake));
  }

  #own(awake: Activation): OwnChange {
    return { kind: 'own', turn: this.#turn + 1, events: awake.living.takeEvents() };
  }

  /** Commits the changes. Answers and effects wait until the commit is durable (the output gate). */
  #commit(
    awake: Activation,
    applied: readonly ServedCall[],
    own: OwnChange | undefined,
    more: readonly Write[] = [],
  ): void {
    const before = own ? undefined : { kept: this.#kept, timers: awake.timerRows() };
    if (!own && applied.every(({ events }) => events.length === 0)) return this.#durable(awake, applied, [], undefined);
    const turn = applied.at(-1)?.turn ?? own?.turn ?? this.#turn;
    const { entry } = this.#owner;
    let batch: Commit;
    try {
      follow(entry, awake);
      batch = commitOf(entry, this.#host, awake, { applied, own, turn });
    } catch (error) {
      if (own?.kind === 'created') throw error;
      if (error instanceof HandleError && error.reason === 'busy') return this.#owner.unkept(applied, error);
      if (own) return this.#owner.crashed(own.events, error);
      const jobs = applied.map(({ job }) => job);
      return this.#owner.poisoned(jobs, error);
    }
    const effects = awake.living.takeEffects();
    this.#turn = turn;
    this.#keep(batch, more, applied, () => {
      this.#owner.changed(own?.kind === 'created' ? 'created' : 'changed', () => this.view());
      this.#durable(awake, applied, effects, before);
    });
  }

  #keep({ data, writes }: Commit, more: readonly Write[], applied: readonly ServedCall[], then: () => void): void {
    const { life } = this.#owner;
    life.take('commit');
    this.#kept = data;
    this.#host.store.commit(more.length === 0 ? writes : [...writes, ...more]).then(
      () => {
        life.take('durable');
        // Answer the calls in any case, because their changes are durable.
        if (this.#awake) return then();
        this.#owner.answer(applied);
        this.tellSettled();
      },
      (error: unknown) => this.#owner.unkept(applied, error),
    );
  }

  #durable(
    awake: Activation,
    applied: readonly ServedCall[],
    effects: readonly Effect[],
    before: Before | undefined,
  ): void {
    const { entry } = this.#owner;
    const failed =
      effects.length > 0 ? this.#host.poisonEvents.runMarked(entry.id, () => awake.living.run(effects)) : undefined;
    if (failed && before) return this.#undo(awake, applied, before, failed.error);
    this.#owner.answer(applied);
    if (failed) return this.#owner.crashed([{ type: failed.effect }], failed.error);
    if (entry.status !== 'active') this.#owner.ended();
    if (!this.#owner.life.has('pending')) this.tellSettled();
    this.again();
  }

  /** An action of the last event has thrown, so the event is undone. Its earlier effects may run again. */
  #undo(awake: Activation, applied: readonly ServedCall[], before: Before, thrown: unknown): void {
    const { entry } = this.#owner;
    entry.status = 'active';
    this.#turn += 1;
    const batch = commitUndone(entry, this.#host, awake, before, this.#turn);
    this.#keep(batch, [], applied, () => {
      const jobs = applied.map(({ job }) => job);
      this.#owner.poisoned(jobs, thrown);
    });
  }
}

function throwCrash({ living }: Activation): void {
  const crash = living.takeCrash();
  if (crash) throw crash.error;
}

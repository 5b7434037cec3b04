/** The turns of an instance in memory: calls are served in order, what they change becomes durable, then it is told and takes effect. */
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
import type { Caller } from './machine-definition.ts';
import type { StoredInstance } from './restore.ts';
import { follow, serveCall } from './serve-call.ts';

/** Most calls that are served before others are given a turn. */
const MOST_TURNS = 64;

/** Whose turns they are. */
export interface TurnLoopOwner {
  readonly entry: HandleRecord;
  readonly gone: boolean;
  /** It has changed, durably. */
  changed(type: 'created' | 'changed', view: () => HandleView): void;
  answer(applied: readonly ServedCall[]): void;
  /** It can change no more. */
  ended(): void;
  /** Something that nobody called for made it throw. */
  crashed(events: readonly AnyEventObject[], error: unknown): void;
  /** The last of these jobs made it throw; nothing of any of them is kept. */
  poisoned(jobs: readonly QueuedCall[], error: unknown): void;
  /** What it came to could not be made durable. */
  unkept(applied: readonly ServedCall[], error: unknown): void;
}

/** What was kept before a batch. */
interface Before {
  readonly kept: string;
  readonly timers: readonly TimerRow[];
}

export class TurnLoop {
  readonly #owner: TurnLoopOwner;
  readonly #host: InstanceDeps;
  readonly #mail: BoundedMailbox;
  #awake: Activation | undefined;
  /** The last one; grows with each change. */
  #turn = 0;
  /** What is kept of the instance, as it was written last. */
  #kept = '';
  #failure: string | undefined;
  /** A batch is on its way: calls wait. */
  #busy = false;
  /** It has changed by itself since the last batch. */
  #stirred = false;
  /** As many were served as may be in one turn. */
  #full = false;
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

  get idle(): boolean {
    return !this.#busy && !this.#stirred;
  }

  /** A new one. @throws what it throws at its beginning, or what of it cannot be kept */
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

  /** One that was read from the store. @throws what it throws when it goes on */
  goOn(awake: Activation, kept: StoredInstance, data: string, migrated: boolean): void {
    this.#awake = awake;
    this.#kept = data;
    this.#turn = kept.turn;
    this.#failure = kept.failure;
    throwCrash(awake);
    const { entry } = this.#owner;
    if (entry.status === 'active') this.#host.suspects.noting(entry.id, () => awake.start());
    throwCrash(awake);
    awake.living.takeEvents();
    this.#stirred = false;
    // What it was made fit for must be durable before it does anything.
    if (migrated) return this.#commit(awake, [], this.#own(awake));
    this.#durable(awake, [], awake.living.takeEffects(), undefined);
  }

  /** Lets go of what is in memory. */
  drop(): void {
    this.#awake?.living.stop();
    this.#awake = undefined;
    this.#stirred = false;
  }

  /** It has changed by itself: what changes in one turn of the event loop is one batch. */
  stir(awake: Activation): void {
    if (awake !== this.#awake || this.#stirred) return;
    this.#stirred = true;
    this.again();
  }

  /** Serves what waits in a turn of its own, so that no caller is kept waiting; after many, in one of the event loop. */
  again(): void {
    if (!this.#stirred && this.#mail.size === 0) return;
    if (this.#full) this.#host.clock.soon(() => this.#pump());
    else queueMicrotask(() => this.#pump());
    this.#full = false;
  }

  /** Resolves when what has happened so far is durable, and what it led to has begun. */
  settled(): Promise<void> {
    if (this.idle || this.#owner.gone) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  tellSettled(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  /** What clients see of it now. */
  view(turn = this.#turn): HandleView {
    const awake = this.#awake;
    if (!awake) throw new Error('an instance was looked at that is not in memory');
    const { entry } = this.#owner;
    const asks = entry.status === 'active' ? awake.desk.look() : [];
    return instanceView(entry, awake.kind, this.#host, awake.living.snapshot, turn, asks, this.#failure);
  }

  #pump(): void {
    const awake = this.#awake;
    if (this.#busy || this.#owner.gone || !awake) return;
    // What changed by itself is a batch of its own: an event that crashes then takes nothing of it back.
    if (this.#stirred) return this.#changed(awake);
    try {
      this.#serveAll(awake);
    } finally {
      this.#host.suspects.over();
    }
  }

  #serveAll(awake: Activation): void {
    const { entry } = this.#owner;
    const { suspects } = this.#host;
    const applied: ServedCall[] = [];
    let turn = this.#turn;
    while (applied.length < MOST_TURNS) {
      const job = this.#mail.first();
      const suspicion = job && suspects.againstJob(entry.id, job);
      if (job && suspicion?.incident !== undefined) {
        this.#mail.take();
        job.reject(setAsideBefore(job, suspicion.deaths, suspicion.incident));
        continue;
      }
      if (job && suspicion) job.attempts = Math.max(job.attempts, suspicion.condemned ? suspicion.deaths - 1 : 1);
      // One that crashed the instance, or ended the process, is tried alone.
      if (!job || (job.attempts > 0 && applied.length > 0)) break;
      this.#mail.take();
      job.asked = awake.desk.asked;
      try {
        if (suspicion?.condemned) throw endedBy(suspicion.deaths);
        suspects.begins(entry.id, job);
        const one = this.#serve(job, awake, turn);
        turn = one.turn;
        applied.push(one);
      } catch (error) {
        return this.#owner.poisoned([...applied.map((each) => each.job), job], error);
      }
      // What is held back is to be done before the next event, as it would be without a store.
      if (job.attempts > 0 || entry.status !== 'active' || awake.living.holds) break;
    }
    this.#full = applied.length === MOST_TURNS;
    if (applied.length > 0) this.#commit(awake, applied, undefined);
    for (const { job } of applied) suspects.survives(entry.id, job);
  }

  #serve(job: QueuedCall, awake: Activation, turn: number): ServedCall {
    const { inspection } = this.#host;
    const run = (): ServedCall => serveCall(job, this.#owner.entry, awake.kind, awake, turn, (at) => this.view(at));
    return inspection.on ? inspection.because(job.cause, () => this.#watched(job, awake, run())) : run();
  }

  /** An event that was refused never came to the machine. */
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

  /** Makes durable what has happened. Only then is it told, and only then does anything come of it (the output gate). */
  #commit(
    awake: Activation,
    applied: readonly ServedCall[],
    own: OwnChange | undefined,
    more: readonly Write[] = [],
  ): void {
    this.#stirred = false;
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
    this.#busy = true;
    this.#kept = data;
    this.#host.store.commit(more.length === 0 ? writes : [...writes, ...more]).then(
      () => {
        this.#busy = false;
        // Its calls are answered, whatever has become of it meanwhile: what they were is durable.
        if (this.#awake) return then();
        this.#owner.answer(applied);
        this.tellSettled();
      },
      (error: unknown) => {
        this.#busy = false;
        this.#owner.unkept(applied, error);
      },
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
      effects.length > 0 ? this.#host.suspects.noting(entry.id, () => awake.living.run(effects)) : undefined;
    if (failed && before) return this.#undo(awake, applied, before, failed.error);
    this.#owner.answer(applied);
    if (failed) return this.#owner.crashed([{ type: failed.effect }], failed.error);
    if (entry.status !== 'active') this.#owner.ended();
    if (this.idle) this.tellSettled();
    this.again();
  }

  /** An action of the last event has thrown: the event has not happened. What it did before that, it may do again. */
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

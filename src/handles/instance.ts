/** The actor of a handle: its mailbox, its life, and what becomes of it when it crashes or cannot be kept. */
import { type AnyEventObject, initialTransition, transition } from 'xstate';
import type { HandleLifeEvent } from '../../machines/handle.ts';
import { supervisorMachine } from '../../machines/supervisor.ts';
import { pathOf } from '../charts/paths.ts';
import type { HandleView } from '../messages/handle-messages.ts';
import { StoreError, type Write } from '../store/store.ts';
import { type ActivatedFrom, Activation, bytesOf } from './activation.ts';
import { BoundedMailbox, type QueuedCall, type QueuedKind } from './bounded-mailbox.ts';
import { commitQuarantine, type ServedCall } from './commit.ts';
import { crashLimitReached, creationFailed, endedBy, poisonLetter } from './failures.ts';
import { HandleError } from './handle-error.ts';
import { type HandleRecord, handleAddress } from './handle-record.ts';
import { InspectableInstance } from './inspectable-instance.ts';
import type { InstanceDeps } from './instance-deps.ts';
import { callInteractively } from './interactive-call.ts';
import { type InstanceLife, lifeOf, stepLife } from './lifecycle.ts';
import { Deactivating, loadInstance, storageError } from './load-instance.ts';
import type { Caller } from './machine-definition.ts';
import { OWN_ACTIVITY } from './poison-events.ts';
import { TurnLoop, type TurnLoopOwner } from './turn-loop.ts';

/** Crashes that are borne, beside those of an event that is tried twice (RELIABILITY 3.2). */
const RESTARTS = { restarts: 3, windowMs: 10_000 };
const CRASHES = RESTARTS.restarts + 1;
/** How often an event is tried that crashes its instance. */
const ATTEMPTS = 2;

export class Instance implements TurnLoopOwner {
  readonly entry: HandleRecord;
  readonly #host: InstanceDeps;
  readonly #mail: BoundedMailbox;
  readonly #turns: TurnLoop;
  readonly #seen: InspectableInstance;
  #life: InstanceLife;
  #version = '';
  /** It is being read, or what becomes of it is being written. */
  #away = false;
  #gone = false;
  /** Calls that put what it asks. */
  #conversing = 0;
  #lastUsed: number;
  #supervisor = initialTransition(supervisorMachine, RESTARTS)[0];

  constructor(entry: HandleRecord, host: InstanceDeps) {
    this.entry = entry;
    this.#host = host;
    this.#mail = new BoundedMailbox(host.limits.handleMailbox);
    this.#turns = new TurnLoop(this, host, this.#mail);
    this.#life = lifeOf(entry.status);
    this.#lastUsed = host.clock.now();
    this.#seen = new InspectableInstance(host, this.#mail, this);
    host.inspection.born(handleAddress(entry), this.#seen);
  }

  get gone(): boolean {
    return this.#gone;
  }

  state(): string {
    const { awake } = this.#turns;
    return this.#life === 'active' && awake ? pathOf(awake.living.snapshot) : this.#life;
  }

  /** Nothing is to be done, and nobody waits. */
  get idle(): boolean {
    if (this.#away || !this.#turns.idle || this.#conversing > 0 || this.#mail.size > 0) return false;
    return this.entry.status !== 'active' || !this.#turns.awake?.atWork;
  }

  /** When it had something to do last, in milliseconds of the server's clock. */
  get lastUsed(): number {
    return this.#lastUsed;
  }

  /** When it must be in memory again, for the next of its timers. */
  get wakeAt(): number | undefined {
    return this.entry.status === 'active' ? this.#turns.awake?.wakeAt() : undefined;
  }

  /** Begins a new one. @param more becomes durable with it. @throws {HandleError} */
  async create(input: unknown, caller: Caller, more: readonly Write[]): Promise<HandleView> {
    this.#step({ type: 'wake' });
    let answer: Promise<HandleView>;
    try {
      const kind = this.#host.kindOf(this.entry.name);
      answer = this.#turns.create(this.#open({ kind, input }), input, caller, more);
    } catch (error) {
      this.leave('it could not begin');
      if (error instanceof HandleError && error.reason === 'busy') throw error;
      throw creationFailed(this.entry, this.#host, error);
    }
    this.#step({ type: 'woken' });
    return answer;
  }

  /** @throws {HandleError} */
  call(kind: QueuedKind, caller: Caller): Promise<HandleView> {
    this.#lastUsed = this.#host.clock.now();
    if (this.#gone) return Promise.reject(new Deactivating());
    const answer = this.#mail.add(kind, caller, this.#seen.mailed(kind, this.#away));
    this.wake();
    return answer;
  }

  /** Reads it from the store, if that is to be done, and serves what waits. */
  wake(): void {
    if (this.#gone || this.#away) return;
    if (this.#turns.awake) return this.#turns.again();
    this.#away = true;
    void this.#read();
  }

  /** As {@link TurnLoop.settled}. */
  settled(): Promise<void> {
    return this.#gone ? Promise.resolve() : this.#turns.settled();
  }

  /** Leaves memory: what it does is broken off, and goes on when it is read again. */
  leave(why: string): void {
    if (this.#gone) return;
    this.#gone = true;
    const { store } = this.#host;
    this.entry.footprint.asleep(store.durable ? 0 : this.#turns.kept.length);
    this.#turns.drop();
    this.#seen.closed();
    this.#host.left(this.entry);
    this.#mail.refuse(new Deactivating());
    this.#turns.tellSettled();
    this.#host.inspection.gone(handleAddress(this.entry), why);
  }

  /** It has nothing to do: it goes on when it is called, or one of its timers is due. */
  rest(): void {
    this.#step({ type: 'rest' });
    this.leave('it hibernates');
  }

  expire(): void {
    this.#step({ type: 'expire' });
    this.leave('it expired');
  }

  async #read(): Promise<void> {
    this.#step({ type: 'wake' });
    try {
      const { from, data, kept, version } = await loadInstance(this.entry, this.#host);
      if (this.#gone) return;
      // What a client calls needs room; what goes on by itself has waited for its time.
      const bytes = bytesOf(data, kept.snapshot);
      if (this.#mail.size > 0) this.#host.takes(this.entry, bytes);
      else this.entry.footprint.awake(bytes, 'forced');
      const own = this.entry.status === 'active' ? this.#host.suspects.against(this.entry.id, OWN_ACTIVITY) : undefined;
      if (own?.condemned)
        return this.#setAside([], endedBy(own.deaths), { kept: data, version, kind: from.kind }, own.deaths);
      this.#away = false;
      this.#turns.goOn(this.#open(from), kept, data, from.resumption.migrated);
      this.#step({ type: 'woken' });
    } catch (error) {
      this.#away = false;
      if (this.#gone) return;
      const unread = error instanceof StoreError || error instanceof HandleError;
      // What is at its end has nothing to begin anew.
      if (unread || this.entry.status !== 'active') this.#unread(error);
      else this.crashed([], error);
    }
  }

  #unread(error: unknown): void {
    this.#step({ type: 'unread' });
    const { entry } = this;
    const known = error instanceof HandleError ? error : undefined;
    const refusal =
      known ?? storageError(error, this.#host.incident(`${handleAddress(entry)}, which cannot be read`, error));
    this.#mail.refuse(refusal);
    this.leave('it cannot be read');
    if (refusal.reason === 'storage' || refusal.reason === 'busy') this.#host.lost(entry);
  }

  #open(from: ActivatedFrom): Activation {
    const awake: Activation = new Activation(this.entry, this.#host, from, () => {
      this.#lastUsed = this.#host.clock.now();
      this.#turns.stir(awake);
    });
    this.#version = awake.version;
    this.#seen.opened(awake);
    return awake;
  }

  // What its turns come to.

  changed(type: 'created' | 'changed', view: () => HandleView): void {
    this.#seen.changed();
    this.#host.changed(this.entry, type, view);
  }

  answer(applied: readonly ServedCall[]): void {
    for (const { job, answer } of applied) {
      if ('refusal' in answer) job.reject(answer.refusal);
      else void this.#tell(job, answer.view);
    }
  }

  /** A call whose client can be asked stays for as long as the instance asks something. */
  async #tell(job: QueuedCall, view: HandleView): Promise<void> {
    const { ctx } = job.caller;
    const desk = this.#turns.awake?.desk;
    const told = job.type === 'look' ? (job.told ?? view) : view;
    if (!ctx || !desk || this.entry.status !== 'active' || !desk.isOpen) return job.resolve(told);
    this.#conversing += 1;
    try {
      await callInteractively(job, ctx, this.#turns);
      // What it came to is durable, though the instance may have left memory meanwhile.
      job.resolve(this.#turns.awake ? this.#turns.view() : told);
    } catch (error) {
      job.reject(error);
    } finally {
      this.#conversing -= 1;
      this.#lastUsed = this.#host.clock.now();
    }
  }

  ended(): void {
    const { status } = this.entry;
    this.#step({ type: status === 'done' ? 'finish' : status === 'failed' ? 'fail' : 'end' });
    this.#turns.awake?.living.stop();
  }

  crashed(events: readonly AnyEventObject[], error: unknown): void {
    const { clock, inspection } = this.#host;
    [this.#supervisor] = transition(supervisorMachine, this.#supervisor, { type: 'crash', at: clock.now() });
    const setAside = this.#supervisor.matches('setAside');
    const mail = events.map(({ type }) => type).join(', ') || 'its beginning';
    if (inspection.on) inspection.record({ type: 'crashed', actor: handleAddress(this.entry), mail, error, setAside });
    if (setAside) return this.#setAside(events, error);
    this.#host.incident(`${handleAddress(this.entry)} (${mail}), which begins anew from what was kept`, error);
    this.#restart();
  }

  poisoned(jobs: readonly QueuedCall[], error: unknown): void {
    const culprit = jobs.at(-1);
    if (!culprit) return;
    culprit.attempts += 1;
    // Nothing of what they led to is kept.
    this.entry.status = this.entry.written;
    if (culprit.attempts < ATTEMPTS) {
      this.#mail.putBack(jobs);
      return this.#restart();
    }
    this.#mail.putBack(jobs.slice(0, -1));
    const { letter, refusal } = poisonLetter(this.entry, this.#host, culprit, error);
    this.#host.suspects.setAside(this.entry.id, culprit, letter.incident);
    this.#turns.drop();
    this.#away = true;
    this.#host.store
      .commit([{ type: 'dead letter', letter }])
      .catch((failed: unknown) => void this.#host.incident('dead letters', failed))
      .then(() => {
        this.#away = false;
        culprit.reject(refusal);
        this.#restart();
      });
  }

  unkept(applied: readonly ServedCall[], error: unknown): void {
    const { entry } = this;
    entry.status = entry.written;
    const refusal =
      error instanceof HandleError
        ? error
        : storageError(error, this.#host.incident(`${handleAddress(entry)}, which cannot be kept`, error));
    for (const { job } of applied) job.reject(refusal);
    this.#mail.refuse(refusal);
    this.leave('it could not be kept');
    this.#host.lost(entry);
  }

  #restart(): void {
    if (this.#gone) return;
    this.#step({ type: 'restart' });
    this.#turns.drop();
    this.wake();
  }

  /** It is kept as it was, with why it failed: nothing more comes of it. */
  #setAside(events: readonly AnyEventObject[], error: unknown, was = this.#was(), crashes = CRASHES): void {
    const { entry } = this;
    const { letter, refusal } = crashLimitReached(entry, this.#host, events, crashes, error);
    this.#host.suspects.setAside(entry.id, undefined, letter.incident);
    entry.status = 'failed';
    this.#away = true;
    const gone = (): void => {
      this.#step({ type: 'set aside' });
      this.#mail.refuse(refusal);
      this.leave('it crashed too often, and was set aside');
      this.#host.lost(entry);
    };
    this.#turns.drop();
    const { writes } = commitQuarantine(entry, this.#host, was, refusal.message, letter);
    this.#host.store.commit(writes).then(gone, (failed: unknown) => this.unkept([], failed));
  }

  #was(): Parameters<typeof commitQuarantine>[2] {
    const { kept, awake } = this.#turns;
    return { kept, version: this.#version, kind: awake?.kind };
  }

  #step(event: HandleLifeEvent): void {
    this.#life = stepLife(this.#life, event);
    this.#seen.changed();
  }
}

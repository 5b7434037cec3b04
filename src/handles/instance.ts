/** The actor of a handle: its mailbox, its lifecycle, and its handling of crashes and of failures of the store. */
import { type AnyEventObject, initialTransition, transition } from 'xstate';
import type { HandleLifeEvent } from '../../machines/handle.ts';
import { supervisorMachine } from '../../machines/supervisor.ts';
import { pathOf } from '../charts/paths.ts';
import type { HandleView } from '../messages/handle-messages.ts';
import { StoreError, type Write } from '../store/store.ts';
import { type ActivatedFrom, Activation, bytesOf } from './activation.ts';
import { BoundedMailbox, type QueuedCall, type QueuedKind } from './bounded-mailbox.ts';
import { commitQuarantine, type ServedCall } from './commit.ts';
import { crashLimitReached, creationFailed, endedBy, poisonLetter, tooLarge } from './failures.ts';
import { HandleError } from './handle-error.ts';
import { type HandleRecord, handleAddress } from './handle-record.ts';
import { InspectableInstance } from './inspectable-instance.ts';
import type { InstanceDeps } from './instance-deps.ts';
import { callInteractively } from './interactive-call.ts';
import { type InstanceLife, lifeOf, stepLife } from './lifecycle.ts';
import { Deactivating, loadInstance, storageError } from './load-instance.ts';
import type { Caller } from './machine-definition.ts';
import { OWN_ACTIVITY } from './poison-events.ts';
import { TooLarge } from './serializable.ts';
import { TurnLoop, type TurnLoopOwner } from './turn-loop.ts';

/** Tolerated crashes, in addition to those of an event that is tried twice (RELIABILITY 3.2). */
const RESTARTS = { restarts: 3, windowMs: 10_000 };
const CRASHES = RESTARTS.restarts + 1;
/** Number of attempts for an event that crashes its instance. */
const ATTEMPTS = 2;

export class Instance implements TurnLoopOwner {
  readonly entry: HandleRecord;
  readonly #host: InstanceDeps;
  readonly #mail: BoundedMailbox;
  readonly #turns: TurnLoop;
  readonly #seen: InspectableInstance;
  #life: InstanceLife;
  #version = '';
  /** The instance is loading from the store, or its quarantine is being written. */
  #away = false;
  #gone = false;
  /** Number of calls that are asking its questions. */
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

  /** Whether it has no work and no queued call. */
  get idle(): boolean {
    if (this.#away || !this.#turns.idle || this.#conversing > 0 || this.#mail.size > 0) return false;
    return this.entry.status !== 'active' || !this.#turns.awake?.atWork;
  }

  /** The time of its last activity, in milliseconds of the server's clock. */
  get lastUsed(): number {
    return this.#lastUsed;
  }

  /** The date at which its next timer is due and it must be in memory. */
  get wakeAt(): number | undefined {
    return this.entry.status === 'active' ? this.#turns.awake?.wakeAt() : undefined;
  }

  /**
   * Starts a new instance.
   *
   * @param more writes that become durable with it
   * @throws {HandleError}
   */
  async create(input: unknown, caller: Caller, more: readonly Write[]): Promise<HandleView> {
    this.#step({ type: 'wake' });
    let answer: Promise<HandleView>;
    try {
      const kind = this.#host.kindOf(this.entry.name);
      answer = this.#turns.create(this.#open({ kind, input }), input, caller, more);
    } catch (error) {
      this.leave('it failed to start');
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

  /** Loads it from the store if needed, and serves its queued calls. */
  wake(): void {
    if (this.#gone || this.#away) return;
    if (this.#turns.awake) return this.#turns.again();
    this.#away = true;
    void this.#read();
  }

  /** See {@link TurnLoop.settled}. */
  settled(): Promise<void> {
    return this.#gone ? Promise.resolve() : this.#turns.settled();
  }

  /** Leaves memory. Its work is aborted, and resumes at the next activation. */
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

  /** Hibernates because it is idle. The next call or timer activates it. */
  rest(): void {
    this.#step({ type: 'rest' });
    this.leave('hibernation');
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
      // Memory for a call must fit the quota. Work without a call is already admitted.
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
      // An instance that has ended has nothing to restart.
      if (unread || this.entry.status !== 'active') this.#unread(error);
      else this.crashed([], error);
    }
  }

  #unread(error: unknown): void {
    this.#step({ type: 'unread' });
    const { entry } = this;
    const known = error instanceof HandleError ? error : undefined;
    const refusal =
      known ?? storageError(error, this.#host.incident(`reading ${handleAddress(entry)} from the store`, error));
    this.#mail.refuse(refusal);
    this.leave('it could not be read');
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

  // The results of its turns.

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

  /** A call whose client can be asked continues as long as the instance has questions. */
  async #tell(job: QueuedCall, view: HandleView): Promise<void> {
    const { ctx } = job.caller;
    const desk = this.#turns.awake?.desk;
    const told = job.type === 'look' ? (job.told ?? view) : view;
    if (!ctx || !desk || this.entry.status !== 'active' || !desk.isOpen) return job.resolve(told);
    this.#conversing += 1;
    try {
      await callInteractively(job, ctx, this.#turns);
      // The result is durable, although the instance may have left memory in the meantime.
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
    const mail = events.map(({ type }) => type).join(', ') || 'its start';
    if (inspection.on) inspection.record({ type: 'crashed', actor: handleAddress(this.entry), mail, error, setAside });
    if (setAside) return this.#setAside(events, error);
    this.#host.incident(`${handleAddress(this.entry)} crashed (${mail}) and restarts from its last snapshot`, error);
    this.#restart();
  }

  poisoned(jobs: readonly QueuedCall[], error: unknown): void {
    const culprit = jobs.at(-1);
    if (!culprit) return;
    culprit.attempts += 1;
    // Discard every effect of these events.
    this.entry.status = this.entry.written;
    // An event whose result is too large crashed nothing. Alone it will not fit in a second attempt, either.
    if (error instanceof TooLarge && jobs.length === 1) {
      culprit.reject(tooLarge(culprit, error));
      return this.#restart();
    }
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
        : storageError(error, this.#host.incident(`persisting ${handleAddress(entry)}`, error));
    for (const { job } of applied) job.reject(refusal);
    this.#mail.refuse(refusal);
    this.leave('it could not be persisted');
    this.#host.lost(entry);
  }

  #restart(): void {
    if (this.#gone) return;
    this.#step({ type: 'restart' });
    this.#turns.drop();
    this.wake();
  }

  /** Quarantines the instance: stores its last snapshot with the failure. It processes no further events. */
  #setAside(events: readonly AnyEventObject[], error: unknown, was = this.#was(), crashes = CRASHES): void {
    const { entry } = this;
    const { letter, refusal } = crashLimitReached(entry, this.#host, events, crashes, error);
    this.#host.suspects.setAside(entry.id, undefined, letter.incident);
    entry.status = 'failed';
    this.#away = true;
    const gone = (): void => {
      this.#step({ type: 'set aside' });
      this.#mail.refuse(refusal);
      this.leave('it crashed too often and was quarantined');
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

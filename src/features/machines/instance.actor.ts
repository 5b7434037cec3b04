/** The actor of a handle: its mailbox, its lifecycle, and its handling of crashes and of failures of the store. */

import type { AnyEventObject } from 'xstate';
import type { HandleLifeEvent } from '../../../machines/handle.ts';
import type { Context } from '../../core/execution/context.ts';
import { pathOf } from '../../core/kernel/charts/paths.ts';
import { isoOf } from '../../core/kernel/clock.ts';
import { Restarts } from '../../core/kernel/restarts.ts';
import { heapBytes } from '../../core/protocol/heap.ts';
import { StoreError, type Write } from '../../core/store/store.ts';
import { type ActivatedFrom, Activation, bytesOf } from './activation.ts';
import { BoundedMailbox, type QueuedCall, type QueuedKind } from './bounded-mailbox.ts';
import { commitQuarantine, type ServedCall } from './commit.ts';
import { continued } from './course.ts';
import { blockedBy } from './event-acceptance.ts';
import { crashLimitReached, creationFailed, endedBy, poisonLetter, tooLarge } from './failures.ts';
import { HandleError } from './handle-error.ts';
import type { ActedBy, HandleCourse, HandleEvent, HandleView, LiveHandle } from './handle-messages.ts';
import { type HandleRecord, handleAddress } from './handle-record.ts';
import { InspectableInstance } from './inspectable-instance.ts';
import { NOT_OPEN } from './instance-inputs.ts';
import { passingOf } from './instance-schedules.ts';
import type { InstanceServices } from './instance-services.ts';
import type { InstanceSlot } from './instance-slot.ts';
import { InstanceLifecycle } from './lifecycle.ts';
import { Deactivating, loadInstance, storageError } from './load-instance.ts';
import type { Caller } from './machine-definition.ts';
import { OWN_ACTIVITY } from './poison-events.ts';
import { PROGRAM_CALLER } from './program-events.ts';
import { includes, mayAnswer, NO_RIGHT } from './roles.ts';
import { TooLarge } from './serializable.ts';
import { type Moved, TurnLoop, type TurnLoopOwner } from './turn-loop.ts';

/** Tolerated crashes, in addition to those of an event that is tried twice. */
const POLICY = { restarts: 3, windowMs: 10_000 };
const CRASHES = POLICY.restarts + 1;
/** Number of attempts for an event that crashes its instance. */
const ATTEMPTS = 2;

export class Instance implements TurnLoopOwner {
  readonly entry: HandleRecord;
  readonly #host: InstanceServices;
  readonly #mail: BoundedMailbox;
  readonly #turns: TurnLoop;
  readonly #inspectable: InspectableInstance;
  readonly life = new InstanceLifecycle();
  #version = '';
  /** Number of calls that are asking its questions. */
  #interactiveCalls = 0;
  /** The courses of the calls that wait for an answer of their client. */
  readonly #courses = new Set<{ course: HandleCourse }>();
  #lastUsed: number;
  /** Undefined until it crashes. */
  #restarts: Restarts | undefined;

  constructor(entry: HandleRecord, host: InstanceServices) {
    this.entry = entry;
    this.#host = host;
    this.#mail = new BoundedMailbox(host.limits.handleMailbox);
    this.#turns = new TurnLoop(this, host, this.#mail);
    this.#lastUsed = host.clock.now();
    this.#inspectable = new InspectableInstance(host, this.#mail, this);
    host.inspection.born(handleAddress(entry), this.#inspectable);
  }

  state(): string {
    const { activation } = this.#turns;
    const { name } = this.life;
    // A machine that is done is in its final state, which says more than `done`.
    return (name === 'active' || name === 'done') && activation ? pathOf(activation.hosted.snapshot) : name;
  }

  /** True if it may hibernate: it has no work and no queued call. */
  get idle(): boolean {
    if (!this.life.can('rest') || this.#interactiveCalls > 0 || this.#mail.size > 0) return false;
    const { activation } = this.#turns;
    return this.entry.status !== 'active' || !(activation?.atWork || this.isDue);
  }

  /** True if one of its timers is due, and has not fired yet. */
  get isDue(): boolean {
    const { wakeAt } = this;
    return wakeAt !== undefined && wakeAt <= this.#host.date();
  }

  /** Resolves when the timers that were due when it was loaded have fired, and what follows is durable. */
  async caughtUp(): Promise<void> {
    if (!this.isDue) return;
    // After the timers of the machine, which began to run before this one.
    await new Promise<void>((resolve) => void this.#host.clock.after(0, resolve));
    await this.settled();
  }

  /** The time of its last activity, in milliseconds of the server's clock. */
  get lastUsed(): number {
    return this.#lastUsed;
  }

  /** The date at which its next timer is due and it must be in memory. */
  get wakeAt(): number | undefined {
    return this.entry.status === 'active' ? this.#turns.activation?.wakeAt() : undefined;
  }

  /**
   * Starts a new instance.
   *
   * @param more writes that become durable with it
   * @throws {HandleError}
   */
  async create(input: unknown, caller: Caller, more: readonly Write[]): Promise<HandleView> {
    this.#step('wake');
    let answer: Promise<HandleView>;
    try {
      const kind = this.#host.machines.kindOf(this.entry.name);
      const activation = this.#open({ kind, input });
      this.life.take('activated');
      answer = this.#turns.create(activation, input, caller, more);
    } catch (error) {
      this.leave('it failed to start');
      if (error instanceof HandleError && error.reason === 'busy') throw error;
      throw creationFailed(this.entry, this.#host, error);
    }
    this.#inspectable.changed();
    return answer;
  }

  /** @throws {HandleError} */
  call(kind: QueuedKind, caller: Caller): Promise<HandleView> {
    this.#lastUsed = this.#host.clock.now();
    if (this.life.over) return Promise.reject(new Deactivating());
    const answer = this.#mail.add(kind, caller, this.#inspectable.mailed(kind, this.life.has('away'), actedBy(caller)));
    void this.wake();
    return answer;
  }

  /** The instance as views show it; undefined if it is not in memory. */
  live(caller: Caller): LiveHandle | undefined {
    const { activation } = this.#turns;
    const role = this.#turns.roleOf(caller);
    if (!activation || !role) return undefined;
    const { asks: _, ...view } = this.#turns.view(undefined, role);
    const active = this.entry.status === 'active';
    const { date } = this.#host;
    return {
      ...view,
      asks: active && mayAnswer(role) ? activation.inputs.live(view.expires) : [],
      timers: (active ? activation.delays() : []).map(({ label, due, lasts }) => ({ label, at: isoOf(due), lasts })),
      blocked: active
        ? blockedBy(
            activation.hosted.snapshot,
            activation.kind.events.filter((type) => includes(role, type)),
          )
        : [],
      now: isoOf(Math.round(date())),
    };
  }

  /**
   * Answers a question for a person in a view. The instance must be in memory.
   *
   * @returns the reason why the answer does not fit
   */
  async answerInView(id: string, result: unknown, caller: Caller): Promise<string | undefined> {
    const role = this.#turns.roleOf(caller);
    if (this.entry.status !== 'active' || (this.#turns.activation && !(role && mayAnswer(role)))) return NOT_OPEN;
    const inputs = this.#turns.activation?.inputs;
    if (!inputs) throw new Deactivating();
    this.#interactiveCalls += 1;
    try {
      const problem = await inputs.answer(id, result);
      await this.#turns.settled();
      return problem;
    } finally {
      this.#interactiveCalls -= 1;
      this.#lastUsed = this.#host.clock.now();
    }
  }

  /**
   * Loads it from the store if needed, and serves its queued calls.
   *
   * @returns a promise that resolves when loading has ended, also if it fails; undefined if this call does not begin to
   *   load
   */
  wake(): Promise<void> | undefined {
    if (!this.life.has('loaded')) return this.#step('wake') ? this.#read() : undefined;
    this.#turns.again();
    return undefined;
  }

  /** See {@link TurnLoop.settled}. */
  settled(): Promise<void> {
    return this.#turns.settled();
  }

  /** Leaves memory. Its work is aborted, and resumes at the next activation. */
  leave(why: string): void {
    if (this.life.take('leave')) this.#leaveMemory(why);
  }

  /** Leaves memory because another node owns it now. Work that does not heed its signal begins no step any more. */
  move(): void {
    this.#leaveFor('another node takes it over');
  }

  /** Leaves memory because its data is deleted. */
  erase(): void {
    const { activation } = this.#turns;
    if (activation) activation.erased = true;
    this.#leaveFor('the data of its owner is deleted');
  }

  #leaveFor(why: string): void {
    const { activation } = this.#turns;
    if (activation) activation.movedAway = true;
    this.leave(why);
  }

  #leaveMemory(why: string): void {
    const { store } = this.#host;
    this.entry.footprint.unloaded(store.durable ? undefined : heapBytes(this.#turns.stored));
    this.#turns.drop();
    this.#inspectable.closed();
    this.#host.directory.leftMemory(this.entry);
    if (this.#mail.size > 0) this.#mail.rejectAll(new Deactivating());
    this.#turns.notifySettled();
    this.#host.inspection.gone(handleAddress(this.entry), why);
  }

  /** Hibernates because it is idle. The next call or timer activates it. */
  rest(): void {
    if (this.#step('rest')) this.leave('hibernation');
  }

  expire(): void {
    if (this.#step('expire')) this.#leaveMemory('it expired');
  }

  async #read(): Promise<void> {
    try {
      const { from, data, stored, version } = await loadInstance(this.entry, this.#host);
      if (this.life.over) return;
      // Memory for a call must fit the quota. Work without a call is already admitted.
      const bytes = bytesOf(data, stored.snapshot);
      if (this.#mail.size > 0) this.#host.directory.reserveMemory(this.entry, bytes);
      else this.entry.footprint.force(bytes);
      const own = this.entry.status === 'active' ? this.#host.poisonEvents.of(this.entry.id, OWN_ACTIVITY) : undefined;
      if (own?.poison)
        return this.#quarantine([], endedBy(own.deaths), { stored: data, version, kind: from.kind }, own.deaths);
      const activation = this.#open(from);
      if (this.entry.status === 'active') this.life.take('activated');
      this.#turns.resume(activation, stored, data, from.resumption.migrated);
      this.#inspectable.changed();
    } catch (error) {
      if (this.life.over) return;
      const unread = error instanceof StoreError || error instanceof HandleError;
      // An instance that has ended has nothing to restart.
      if (unread || this.entry.status !== 'active') this.#unreadable(error);
      else this.crashed([], error);
    }
  }

  #unreadable(error: unknown): void {
    this.#step('unread');
    const { entry } = this;
    const known = error instanceof HandleError ? error : undefined;
    const refusal =
      known ?? storageError(error, this.#host.incident(`reading ${handleAddress(entry)} from the store`, error));
    this.#mail.rejectAll(refusal);
    this.leave('it could not be read');
    if (refusal.reason === 'storage' || refusal.reason === 'busy') this.#host.directory.reactivateLater(entry);
  }

  #open(from: ActivatedFrom): Activation {
    const activation: Activation = new Activation(
      this.entry,
      this.#host,
      from,
      () => {
        this.#lastUsed = this.#host.clock.now();
        this.#turns.markChanged(activation);
      },
      (event, slot) => this.#slotDue(activation, event, slot),
    );
    this.#version = activation.version;
    this.#inspectable.opened(activation);
    return activation;
  }

  /** A slot that the mailbox has no room for is tried again. */
  #slotDue(activation: Activation, event: HandleEvent, slot: InstanceSlot): void {
    this.call({ type: 'event', event, key: undefined, slot }, PROGRAM_CALLER).catch((error: unknown) => {
      if (error instanceof HandleError && error.reason === 'busy') activation.schedules.retry();
    });
  }

  // The results of its turns.

  changed(type: 'created' | 'changed', view: () => HandleView): void {
    this.#inspectable.changed();
    this.#host.listeners.changed(this.entry, type, view);
  }

  moved({ from, to, reasons, own }: Moved): void {
    for (const one of this.#courses) one.course = continued(one.course, to, reasons);
    // A later call of the model reports what no call has seen.
    if (own && this.#courses.size === 0 && (from !== to || reasons.length > 0))
      this.entry.course = continued(this.entry.course ?? { states: [from], reasons: [] }, to, reasons);
  }

  answer(served: readonly ServedCall[]): void {
    for (const { call, answer } of served) {
      if ('refusal' in answer) call.reject(answer.refusal);
      else void this.#respond(call, answer.view);
    }
  }

  /**
   * A call waits a moment for the work that it has started, whose end is often what its client wants to know. A call whose
   * client can be asked continues as long as the instance has questions.
   */
  async #respond(call: QueuedCall, view: HandleView): Promise<void> {
    const current = call.type === 'get' ? (call.earlier ?? view) : view;
    if (this.entry.status !== 'active' || !(this.#turns.hasBegun(call) || this.#canAsk(call)))
      return call.resolve(current);
    this.#interactiveCalls += 1;
    const one = { course: continued(current.course ?? { states: [], reasons: [] }, this.#turns.path, []) };
    this.#courses.add(one);
    try {
      await this.#turns.rested(call);
      const { ctx } = call.caller;
      const asks = ctx && this.entry.status === 'active' && this.#canAsk(call);
      if (asks) {
        const unanswered = await callInteractively(call, ctx, this.#turns);
        one.course = continued(one.course, this.#turns.path, unanswered);
      }
      // The result is durable, although the instance may have left memory in the meantime.
      const now = this.#turns.roleOf(call.caller) ?? NO_RIGHT;
      const isShown = this.#turns.activation && (asks || this.#turns.isSettled);
      call.resolve(isShown ? { ...this.#turns.view(undefined, now), course: one.course } : current);
    } catch (error) {
      call.reject(error);
    } finally {
      this.#courses.delete(one);
      this.#interactiveCalls -= 1;
      this.#lastUsed = this.#host.clock.now();
    }
  }

  /** True if the instance has questions that the client of a call may answer. */
  #canAsk({ type, caller }: QueuedCall): boolean {
    if (!caller.ctx || !this.#turns.activation?.inputs.isOpen) return false;
    const role = this.#turns.roleOf(caller);
    return role !== undefined && (type !== 'get' || mayAnswer(role));
  }

  ended(): void {
    const { status } = this.entry;
    this.#step(status === 'done' ? 'finish' : status === 'failed' ? 'fail' : 'end');
    this.#turns.activation?.hosted.stop();
  }

  crashed(events: readonly AnyEventObject[], error: unknown): void {
    const { clock, inspection } = this.#host;
    this.#restarts ??= new Restarts(POLICY);
    const quarantined = !this.#restarts.crashed(clock.now());
    const mail = events.map(({ type }) => type).join(', ') || 'its start';
    if (inspection.on)
      inspection.record({ type: 'crashed', actor: handleAddress(this.entry), mail, error, quarantined });
    if (quarantined) return this.#quarantine(events, error);
    this.#host.incident(`${handleAddress(this.entry)} crashed (${mail}) and restarts from its last snapshot`, error);
    this.#restart();
  }

  poisoned(calls: readonly QueuedCall[], error: unknown): void {
    const culprit = calls.at(-1);
    if (!culprit) return;
    culprit.attempts += 1;
    // Discard every effect of these events.
    this.entry.status = this.entry.written;
    // An event whose result is too large crashed nothing. Alone it will not fit in a second attempt, either.
    if (error instanceof TooLarge && calls.length === 1) {
      culprit.reject(tooLarge(culprit, error));
      return this.#restart();
    }
    if (culprit.attempts < ATTEMPTS) {
      this.#mail.putBack(calls);
      return this.#restart();
    }
    this.#mail.putBack(calls.slice(0, -1));
    const { letter, refusal } = poisonLetter(this.entry, this.#host, culprit, error);
    this.#host.poisonEvents.quarantine(this.entry.id, culprit, letter.incident);
    const passing =
      culprit.type === 'event' && culprit.slot && passingOf(this.entry, this.#turns.activation?.kind, culprit.slot);
    this.life.take('bury');
    this.#turns.drop();
    this.#host.store
      .commit([{ type: 'dead letter', letter }, ...(passing ? [passing] : [])])
      .catch((failed: unknown) => void this.#host.incident('dead letters', failed))
      .then(() => {
        culprit.reject(refusal);
        this.#restart();
      });
  }

  notPersisted(served: readonly ServedCall[], error: unknown): void {
    const { entry } = this;
    entry.status = entry.written;
    const refusal =
      error instanceof HandleError
        ? error
        : storageError(error, this.#host.incident(`persisting ${handleAddress(entry)}`, error));
    for (const { call } of served) call.reject(refusal);
    this.#mail.rejectAll(refusal);
    this.leave('it could not be persisted');
    this.#host.directory.reactivateLater(entry);
  }

  #restart(): void {
    if (!this.#step('restart')) return;
    this.#turns.drop();
    void this.#read();
  }

  /** Quarantines the instance: stores its last snapshot with the failure. It processes no further events. */
  #quarantine(events: readonly AnyEventObject[], error: unknown, was = this.#lastStored(), crashes = CRASHES): void {
    const { entry } = this;
    const { letter, refusal } = crashLimitReached(entry, this.#host, events, crashes, error);
    this.#host.poisonEvents.quarantine(entry.id, undefined, letter.incident);
    entry.status = 'failed';
    this.#step('quarantine');
    const gone = (): void => {
      this.#step('quarantined');
      this.#mail.rejectAll(refusal);
      this.leave('it crashed too often and was quarantined');
      this.#host.directory.reactivateLater(entry);
    };
    this.#turns.drop();
    const { writes } = commitQuarantine(entry, this.#host, was, refusal.message, letter);
    this.#host.store.commit(writes).then(gone, (failed: unknown) => this.notPersisted([], failed));
  }

  #lastStored(): Parameters<typeof commitQuarantine>[2] {
    const { stored, activation } = this.#turns;
    return { stored, version: this.#version, kind: activation?.kind };
  }

  /** Takes an event and shows the new state. @returns false if the chart does not accept it now */
  #step(event: HandleLifeEvent['type']): boolean {
    const taken = this.life.take(event);
    if (taken) this.#inspectable.changed();
    return taken;
  }
}

/** The origin of a call, for the inspector; undefined for a call that no client has sent. */
function actedBy({ ctx, inView }: Caller): ActedBy | undefined {
  if (inView) return 'view';
  return ctx ? 'model' : undefined;
}

/**
 * Resolves when this call can ask no further question. An instance that crashes in the meantime asks again.
 *
 * @returns why questions are still open, in words
 */
async function callInteractively(call: QueuedCall, ctx: Context, turns: TurnLoop): Promise<readonly string[]> {
  let unanswered: readonly string[] = [];
  for (let last: Activation | undefined; ; ) {
    await turns.rested(call);
    const { activation } = turns;
    if (!activation || activation === last || ctx.signal.aborted) return unanswered;
    last = activation;
    // A question of a shared instance is for the caller whose event has led to it, and for those who look.
    const least = activation.kind.keyed?.roles && call.type !== 'get' ? call.asked : 0;
    const may = (): boolean => {
      const role = turns.roleOf(call.caller);
      return role !== undefined && (call.type !== 'get' || mayAnswer(role));
    };
    unanswered = await activation.inputs.askAll(ctx, call.asked, () => turns.rested(call), { least, may });
  }
}

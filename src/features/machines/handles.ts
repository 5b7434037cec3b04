/** The handles of a server: durable, bounded, hibernating instances of machines, each an actor behind an id. */

import { isoOf, steadyDate, timersOf } from '../../core/kernel/clock.ts';
import { durationOf } from '../../core/kernel/duration.ts';
import type { Facts } from '../../core/kernel/inspection/records.ts';
import { errorFields } from '../../core/kernel/operator-log.ts';
import type { ForgottenPrincipal } from '../../core/messages/forgotten-principal.ts';
import { ownCalls } from '../../core/messages/node-calls.ts';
import { heapBytes } from '../../core/protocol/heap.ts';
import { isJsonObject, type JsonObject, messageOf } from '../../core/protocol/json.ts';
import { ANONYMOUS } from '../../core/protocol/principals.ts';
import { warnOfUntestedXState } from '../../core/registry/xstate-copy.ts';
import { running } from '../../core/requests/running.ts';
import type { DeadLetter, Write } from '../../core/store/store.ts';
import type { QueuedKind } from './bounded-mailbox.ts';
import { ChangeListeners } from './change-listeners.ts';
import { courseText } from './course.ts';
import type { CountedReply } from './creation-replies.ts';
import { HandleDirectory, type HibernatingHandle } from './directory.ts';
import { HandleError } from './handle-error.ts';
import type { HandleEvent, HandleView, LiveHandle } from './handle-messages.ts';
import {
  actorId,
  deadlineOf,
  type HandleRecord,
  handleAddress,
  isStale,
  lifetimeOf,
  noteUnseen,
  rowOf,
  sharedOwner,
} from './handle-record.ts';
import { IdempotentCalls } from './idempotent-calls.ts';
import { planOf } from './instance-schedules.ts';
import type { HandlesOptions } from './instance-services.ts';
import type { KeyedAnswer, KeyedOperation } from './keyed-calls.ts';
import {
  isKeyed,
  KeyedInstances,
  type KeyedMachine,
  type OwnInstances,
  ownerOfKey,
  viewIn,
} from './keyed-instances.ts';
import { Deactivating, damagedHandle, MovedElsewhere, unknownHandle, unknownKey } from './load-instance.ts';
import { checkDelays, checkKind, cutLife } from './machine-checks.ts';
import type { Caller, HandleChange, HandlePage, MachineKind, SendOptions } from './machine-definition.ts';
import { HandleMail } from './messages/handle-mail.ts';
import { type OutMessage, principalOf } from './messages/out-message.ts';
import type { Deliver } from './messages/outbox.ts';
import { type FailedEvent, Outboxes } from './messages/outboxes.ts';
import { OfferedMachines } from './offered-machines.ts';
import { PoisonEvents, type QuarantinedEvent } from './poison-events.ts';
import { readStored, writeStored } from './restore.ts';
import { notSerializable } from './serializable.ts';

export type { HandlesOptions } from './instance-services.ts';

/** Minimum length of an anonymous caller's idempotency key: the key alone grants access to the handle. */
const LEAST_ANONYMOUS_KEY = 21;
const DEFAULT_PAGE = 50;
/** Number of attempts for a call whose instance is leaving memory. */
const TRIES = 3;

export class Handles implements OwnInstances {
  readonly #options: HandlesOptions;
  /** Milliseconds since 1970, unaffected by changes of the wall clock. */
  readonly #date: () => number;
  readonly #machines = new OfferedMachines();
  readonly #listeners: ChangeListeners;
  readonly #poisonEvents: PoisonEvents;
  readonly #outboxes: Outboxes;
  readonly #directory: HandleDirectory;
  readonly #idempotent: IdempotentCalls;
  readonly #keyed: KeyedInstances;
  readonly #mail: HandleMail;
  /** The definitions whose lifetimes were compared with the limit for anonymous clients. */
  readonly #shortLived = new WeakSet<MachineKind>();
  #stopped = false;

  constructor(options: HandlesOptions) {
    this.#options = options;
    const { system, ...deps } = options;
    const date = steadyDate(system.clock);
    this.#date = date;
    this.#listeners = new ChangeListeners(system);
    this.#outboxes = new Outboxes({
      ...{ ...system, ...deps, date },
      notify: (message, event, writes) => this.#notifySender(message, event, writes),
    });
    this.#outboxes.target('instance', (message) => this.#deliver(message));
    this.#poisonEvents = new PoisonEvents({ ...deps, log: system.log, date });
    this.#directory = new HandleDirectory({
      ...deps,
      ...system,
      timers: timersOf(system.clock),
      date,
      poisonEvents: this.#poisonEvents,
      outboxes: this.#outboxes,
      machines: this.#machines,
      listeners: this.#listeners,
    });
    this.#idempotent = new IdempotentCalls(options.store);
    const { limits, store, calls = ownCalls() } = options;
    this.#mail = new HandleMail(calls, (message) => this.#take(message));
    this.#keyed = new KeyedInstances({
      ...{ system, limits, store, date, calls, own: this },
      ...{ directory: this.#directory, idempotent: this.#idempotent },
      kindOf: (name) => this.#machines.kindOf(name),
    });
  }

  /**
   * Offers a machine, and replaces one of the same name.
   *
   * @throws {TypeError} for an invalid machine, with a correction
   */
  define(kind: MachineKind): void {
    const checked = checkKind(kind);
    checkDelays(kind, this.#options.limits);
    const isReplanned = planOf(this.#machines.get(kind.name)) !== planOf(kind);
    this.#machines.set(checked);
    warnOfUntestedXState(this.#options.system.log);
    this.#directory.redefined(kind.name, isReplanned);
  }

  /** Withdraws a machine. Its instances stay in the store; those in memory finish their turn and hibernate. */
  withdraw(name: string): void {
    if (this.#machines.delete(name)) this.#directory.redefined(name, false);
  }

  /**
   * Creates an instance. With an idempotency key, a repeated call returns the first one's instance. Resolves when it is
   * durable.
   *
   * @throws {HandleError}
   */
  async create(name: string, input: unknown, caller: Caller, options: SendOptions = {}): Promise<HandleView> {
    const kind = this.#unkeyed(name);
    const fault = notSerializable(input, this.#options.limits.maxDepth);
    if (fault !== undefined) throw new HandleError('refused', `the input of a new "${name}": ${fault}`);
    const scope = creatorOf(name, caller, options.idempotencyKey);
    const { idempotencyKey: key } = options;
    if (key === undefined || scope === undefined) return this.#create(kind, input, caller, []);
    return this.#idempotent.once(
      scope,
      key,
      (handle) => this.get(name, handle, caller),
      (reply) => this.#create(kind, input, caller, reply),
    );
  }

  async #create(kind: MachineKind, input: unknown, caller: Caller, reply: readonly ReplyOf[]): Promise<HandleView> {
    if (this.#stopped) throw new Deactivating();
    const handle = this.#options.system.ids.ofHandle(caller.ctx?.session?.id, caller.principal);
    if (reply.length === 0)
      return this.#createInstance(kind, { handle, principal: caller.principal }, input, caller, []);
    const expires = this.#date() + this.#options.limits.replyTtlMs;
    const counted = this.#reserveReply(caller, handle, expires);
    try {
      const more = reply.map((writeOf): Write => writeOf(handle, expires));
      return await this.#createInstance(kind, { handle, principal: caller.principal }, input, caller, more);
    } catch (error) {
      counted.release();
      throw error;
    }
  }

  async #createInstance(
    kind: MachineKind,
    { handle, principal, key, inbox }: Pick<HandleRecord, 'handle' | 'principal' | 'inbox'> & { readonly key?: string },
    input: unknown,
    caller: Caller,
    more: readonly Write[],
  ): Promise<HandleView> {
    if (principal === ANONYMOUS) this.#warnOfShortLife(kind);
    const shared = key !== undefined && principal === sharedOwner(kind.name);
    const session = caller.session ?? caller.ctx?.session?.id;
    const footprint = this.#directory.reserveHandle(principal, session, heapBytes(input), shared);
    const now = this.#date();
    const entry: HandleRecord = {
      handle,
      id: actorId(kind.name, handle),
      name: kind.name,
      principal,
      key,
      inbox,
      created: Math.round(now),
      used: now,
      status: 'active',
      incident: undefined,
      written: 'active',
      atWork: false,
      pending: false,
      plan: undefined,
      trace: running.getStore()?.request?.span?.traceparent,
      forgotten: 0,
      footprint,
    };
    const instance = this.#directory.create(entry);
    try {
      return await instance.create(input, caller, more);
    } catch (error) {
      this.#directory.remove(entry);
      throw error;
    }
  }

  /** Creates the instance of a key. See {@link OwnInstances}. */
  createOf(
    kind: KeyedMachine,
    handle: string,
    key: string,
    input: JsonObject,
    caller: Caller,
    inbox: HandleRecord['inbox'],
  ): Promise<HandleView> {
    if (this.#stopped) return Promise.reject(new Deactivating());
    const fault = notSerializable(input, this.#options.limits.maxDepth);
    if (fault !== undefined)
      return Promise.reject(new HandleError('refused', `the input of a new "${kind.name}": ${fault}`));
    const principal = ownerOfKey(kind, key, caller);
    return this.#createInstance(kind, { handle, key, principal, inbox }, input, caller, []);
  }

  /** Returns the messages that a stored instance has taken. See {@link OwnInstances}. */
  async inboxOf(entry: HandleRecord): Promise<HandleRecord['inbox']> {
    const { snapshot } = (await this.#options.store.load(entry.id)) ?? {};
    return snapshot && readStored(snapshot.data, handleAddress(entry)).inbox;
  }

  /** Serves an operation on an instance of this node. See {@link OwnInstances}. */
  callOn(
    entry: HandleRecord,
    operation: Exclude<KeyedOperation, { readonly type: 'create' }>,
    caller: Caller,
    key: string | undefined,
  ): Promise<KeyedAnswer> {
    switch (operation.type) {
      case 'event':
        return this.#call(entry, { type: 'event', event: operation.event, key, message: operation.message }, caller);
      case 'look':
        return this.#look(entry, caller);
      case 'answer':
        return this.#answer(entry, operation.answers, caller);
      default:
        return this.#call(entry, { type: operation.type }, caller);
    }
  }

  checkEvent({ events }: MachineKind, event: HandleEvent, { isProgram, isInstance }: Caller): void {
    const listed = (isProgram || isInstance) && !event.type.startsWith('xstate.') ? [event.type] : events;
    const fault = faultOfEvent(event, listed, this.#options.limits.maxDepth);
    if (fault !== undefined) throw new HandleError('refused', fault);
  }

  /** The machine of a name, whose instances have unguessable handles. @throws {HandleError} */
  #unkeyed(name: string): MachineKind {
    const kind = this.#machines.kindOf(name);
    if (isKeyed(kind)) throw unknownKey(name);
    return kind;
  }

  /**
   * Creates the instance of a key, at the node that owns it.
   *
   * @throws {HandleError} also if there is one
   */
  async createKeyed(name: string, key: string | undefined, input: unknown, caller: Caller): Promise<HandleView> {
    const given = isJsonObject(input) ? input : {};
    return viewIn(await this.keyed(name, key, { type: 'create', input: given }, caller));
  }

  /**
   * Serves an operation on the instance of a key, at the node that owns it.
   *
   * @param key undefined for that of the caller itself
   * @throws {HandleError}
   */
  keyed(
    name: string,
    key: string | undefined,
    operation: KeyedOperation,
    caller: Caller,
    { idempotencyKey }: SendOptions = {},
  ): Promise<KeyedAnswer> {
    const kind = this.#machines.kindOf(name);
    if (!isKeyed(kind)) throw new HandleError('unknown', `the instances of "${name}" have no keys`);
    return this.#keyed.call(kind, key, operation, caller, idempotencyKey);
  }

  /**
   * Sends an event to the instance of a key, and creates the instance if there is none. Resolves when its result is durable.
   *
   * @throws {HandleError}
   */
  async sendTo(
    name: string,
    key: string | undefined,
    event: HandleEvent,
    caller: Caller,
    options: SendOptions = {},
  ): Promise<HandleView> {
    const { create } = options;
    return viewIn(await this.keyed(name, key, { type: 'event', event, create }, caller, options));
  }

  /** Says once for each definition that a client which has not signed in gets less than its author asks for. */
  #warnOfShortLife(kind: MachineKind): void {
    const { limits, system } = this.#options;
    const cut = this.#shortLived.has(kind) ? undefined : cutLife(kind, limits.handleAnonymousTtlMs);
    this.#shortLived.add(kind);
    if (cut !== undefined) system.log('warning', cut, { event: 'program' });
  }

  #reserveReply({ principal, ctx }: Caller, reply: string, expires: number): CountedReply {
    const bytes = this.#options.store.durable ? 0 : heapBytes(reply);
    return this.#directory.reserveReply(principal, ctx?.session?.id, bytes, expires);
  }

  /**
   * Sends an event to an instance. Resolves when its result is durable.
   *
   * @throws {HandleError}
   */
  async send(
    name: string,
    handle: string | undefined,
    event: HandleEvent,
    caller: Caller,
    options: SendOptions = {},
  ): Promise<HandleView> {
    const kind = this.#machines.kindOf(name);
    if (isKeyed(kind)) return this.sendTo(name, handle, event, caller, options);
    const entry = this.#find(name, handle, caller);
    this.checkEvent(kind, event, caller);
    const { idempotencyKey: key } = options;
    if (key === undefined) return this.#call(entry, { type: 'event', event, key }, caller);
    return this.#idempotent.once(
      entry.id,
      key,
      (earlier) => this.#call(entry, { type: 'get', earlier: this.#idempotent.viewOf(earlier) }, caller),
      () => this.#call(entry, { type: 'event', event, key }, caller),
    );
  }

  /**
   * Returns the current view of an instance. Its open questions are put to this caller, unless another call is asking them.
   *
   * @throws {HandleError}
   */
  async get(name: string, handle: string | undefined, caller: Caller): Promise<HandleView> {
    return this.#onOne(name, handle, { type: 'get' }, caller);
  }

  /**
   * Returns an instance as views show it: with its open questions and its delays.
   *
   * @throws {HandleError}
   */
  async look(name: string, handle: string | undefined, caller: Caller): Promise<LiveHandle> {
    const reader = readerOf(caller);
    if (!isKeyed(this.#machines.kindOf(name))) return this.#look(this.#find(name, handle, reader), reader);
    const live = await this.keyed(name, handle, { type: 'look' }, reader);
    if ('now' in live) return live;
    throw unknownKey(name);
  }

  async #look(entry: HandleRecord, caller: Caller): Promise<LiveHandle> {
    const { asks: _, ...view } = await this.#call(entry, { type: 'get' }, caller);
    const live = this.#directory.activeInstance(entry)?.live(caller);
    return live ?? { ...view, asks: [], timers: [], blocked: [], now: isoOf(Math.round(this.#date())) };
  }

  /**
   * Answers open questions of an instance for a person in a view.
   *
   * @param answers the results of the questions, by their ids
   * @returns the view after it; or the reason for each answer that does not fit, whose question stays open
   * @throws {HandleError}
   */
  async answer(
    name: string,
    handle: string,
    answers: JsonObject,
    caller: Caller,
  ): Promise<HandleView | readonly string[]> {
    if (!isKeyed(this.#machines.kindOf(name))) return this.#answer(this.#find(name, handle, caller), answers, caller);
    const answer = await this.keyed(name, handle, { type: 'answer', answers }, caller);
    return 'machine' in answer ? viewIn(answer) : answer;
  }

  async #answer(entry: HandleRecord, answers: JsonObject, caller: Caller): Promise<HandleView | readonly string[]> {
    // A call first: it loads the instance, and rejects one that cannot be loaded.
    await this.#call(entry, { type: 'get' }, caller);
    const problems: string[] = [];
    for (const [id, result] of Object.entries(answers)) {
      const instance = this.#directory.activeInstance(entry);
      const problem = instance ? await instance.answerInView(id, result, caller) : 'The instance is busy. Try again.';
      if (problem !== undefined) problems.push(`${id}: ${problem}`);
    }
    return problems.length > 0 ? problems : this.#call(entry, { type: 'get' }, caller);
  }

  #noteUnseen(entry: HandleRecord, what: string): void {
    const state = this.#directory.activeInstance(entry)?.state() ?? entry.status;
    noteUnseen(entry, `${what}, now ${state} (by the user)`);
  }

  /** Delivers the messages of instances to another kind of target than instances. */
  target(kind: 'topic', deliver: Deliver): void {
    this.#outboxes.target(kind, deliver);
  }

  /** Delivers the message of a dead letter again. See {@link Outboxes.again}. */
  again(letter: DeadLetter): Promise<boolean> {
    return this.#outboxes.again(letter);
  }

  /**
   * Delivers a message to an instance, which may have taken it before. Resolves when its result is durable.
   *
   * @throws {HandleError | Error}
   */
  async #deliver(message: OutMessage): Promise<void> {
    const { to } = message;
    if (to.kind !== 'instance') throw unknownHandle(to.name);
    const kind = this.#machines.kindOf(to.machine);
    if (!isKeyed(kind)) return this.#mail.deliver(message, to.machine, to.key);
    await this.#keyed.call(kind, to.key, takenAs(message), callerOf(message));
  }

  /** Takes a message for an instance with a handle, at the node that owns it. @throws {HandleError} */
  async #take(message: OutMessage): Promise<void> {
    const { to, sender } = message;
    if (to.kind !== 'instance') throw unknownHandle(to.name);
    // An instance that several principals share has no owner among them: it tells whom its chart names.
    const shared = this.isShared(sender.machine) ? this.#directory.entry(actorId(to.machine, to.key)) : undefined;
    const { principal } = shared ?? sender;
    const entry = this.#find(to.machine, to.key, { principal, ctx: undefined });
    const [taken, caller] = [takenAs(message), callerOf(message)];
    this.checkEvent(this.#machines.kindOf(to.machine), taken.event, caller);
    await this.#call(entry, { ...taken, key: undefined }, caller);
  }

  /** Sends an event to the sender of a message that was not delivered; undefined if it has ended. */
  #notifySender(
    { sender, hops }: OutMessage,
    event: FailedEvent,
    writes: readonly Write[],
  ): Promise<HandleView> | undefined {
    const entry = this.#directory.entry(actorId(sender.machine, sender.handle));
    if (entry?.status !== 'active' || !this.#machines.get(entry.name)) return undefined;
    const call = { type: 'event', event, key: undefined, message: { hops, writes } } as const;
    return this.#call(entry, call, { principal: entry.principal, ctx: undefined, isProgram: true });
  }

  /**
   * Ends an instance: aborts its work and rejects further events.
   *
   * @throws {HandleError}
   */
  async end(name: string, handle: string | undefined, caller: Caller): Promise<HandleView> {
    return this.#onOne(name, handle, { type: 'end' }, caller);
  }

  async #onOne(
    name: string,
    handle: string | undefined,
    does: { readonly type: 'get' | 'end' },
    caller: Caller,
  ): Promise<HandleView> {
    if (isKeyed(this.#machines.kindOf(name))) return viewIn(await this.keyed(name, handle, does, caller));
    return this.#call(this.#find(name, handle, caller), does, caller);
  }

  /**
   * Lists the caller's instances of a machine. The list is empty without a principal, because an anonymous handle is
   * protected only by its id.
   *
   * @throws {HandleError}
   */
  async list(
    name: string,
    caller: Caller,
    { after, limit = DEFAULT_PAGE }: { readonly after?: string | undefined; readonly limit?: number | undefined } = {},
  ): Promise<HandlePage> {
    this.#unkeyed(name);
    if (caller.principal === ANONYMOUS) return { handles: [], after: undefined };
    const { limits } = this.#options;
    const page = this.#directory.page(name, caller.principal, after, Math.min(limit, limits.pageSize));
    if (!page) throw new HandleError('refused', `after: unknown handle of "${name}". List again from the start.`);
    // Listing does not ask questions.
    const reader = { principal: caller.principal, ctx: undefined };
    const views = await Promise.all(page.entries.map((entry) => this.#peek(entry, reader)));
    return { handles: views.flatMap((view) => view ?? []), after: page.after };
  }

  /** True if several principals share the instances of a machine. */
  isShared(name: string): boolean {
    const kind = this.#machines.get(name)?.keyed?.kind;
    return kind === 'tenant' || kind === 'argument';
  }

  /** Calls the listener after each durable change, until the returned function is called. */
  onChange(listener: (change: HandleChange) => void): () => void {
    return this.#listeners.add(listener);
  }

  /** Reads which events ended earlier processes, before any handle is taken up. */
  restore(): Promise<void> {
    return this.#poisonEvents.restore();
  }

  async take(cells: readonly number[] | undefined): Promise<void> {
    // The process that had the cells may have died of an event that its client sends again.
    if (cells) await this.#poisonEvents.readEnded();
    await this.#directory.take(cells);
  }

  drop(cells: ReadonlySet<number>, flush: boolean): Promise<void> {
    return this.#directory.drop(cells, flush);
  }

  /** Lists events, and activities of instances, that are quarantined because they ended the process too often. */
  quarantined(): readonly QuarantinedEvent[] {
    return this.#poisonEvents.quarantined();
  }

  /**
   * Releases the event or instance that was quarantined under this incident. An event runs when it is sent again, an
   * instance resumes immediately.
   *
   * @returns false for an unknown incident
   */
  release(incident: string): boolean {
    const released = this.#poisonEvents.release(incident);
    const entry = released?.own ? this.#directory.entry(released.id) : undefined;
    if (entry?.status === 'failed') void this.#resumeReleased(entry);
    return released !== undefined;
  }

  /** Resumes a quarantined instance from its last snapshot, with its timers. */
  async #resumeReleased(entry: HandleRecord): Promise<void> {
    const { limits, store } = this.#options;
    const { id: actor } = entry;
    try {
      const stored = await store.load(actor);
      if (!stored?.snapshot) return;
      const { version, data } = stored.snapshot;
      const released = writeStored({ ...readStored(data, handleAddress(entry)), failure: undefined });
      entry.status = 'active';
      const lifetime = lifetimeOf(this.#machines.get(entry.name), entry.principal, limits);
      await store.commit([
        { type: 'actor', actor: rowOf(entry, lifetime, limits) },
        { type: 'snapshot', actor, version, data: released },
      ]);
      this.#directory.activeInstance(entry)?.leave('it was released');
      this.#directory.reactivateLater(entry);
    } catch (error) {
      entry.status = 'failed';
      this.#options.system.incident(`releasing ${handleAddress(entry)} from quarantine`, error);
    }
  }

  /** Rejects new calls and persists changes in progress. Running invocations are aborted and run again after a restart. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#directory.stop();
  }

  /** Facts about all instances together, for the inspector. */
  facts(): Facts {
    const scheduled = [...this.#machines.all()].filter(({ schedules }) => schedules !== undefined).length;
    const messages = this.#outboxes.waitingInAll();
    return {
      hibernating: this.hibernating(),
      ...(scheduled === 0 ? {} : { 'machines with schedules': scheduled }),
      ...(messages === undefined ? {} : { messages }),
    };
  }

  /** Removes the instances that belong to a principal from memory. Their running work begins no further step. */
  forget({ principal }: Pick<ForgottenPrincipal, 'principal'>): void {
    this.#directory.forget(principal);
  }

  /** Counts the hibernating handles and lists the addresses of some, for the inspector. */
  hibernating(): HibernatingHandle {
    return this.#directory.hibernating();
  }

  /**
   * Finds a handle of this caller. A handle of another principal counts as unknown (S-04).
   *
   * @throws {HandleError} `unknown`, `expired`; `storage` if its row is damaged
   */
  #find(name: string, handle = '', { principal }: Caller): HandleRecord {
    const kind = this.#machines.kindOf(name);
    const id = actorId(name, handle);
    const entry = this.#directory.entry(id);
    if (!entry && this.#options.store.isDamaged(id)) throw damagedHandle(name);
    if (!entry || entry.principal !== principal) throw unknownHandle(name);
    const now = this.#date();
    const lifetime = lifetimeOf(kind, entry.principal, this.#options.limits);
    if (deadlineOf(entry, lifetime) > now) return entry;
    this.#directory.expire(entry);
    throw new HandleError(
      'expired',
      `this handle of "${name}" has expired. A handle lives ${durationOf(lifetime.ttlMs)} at most, or ${durationOf(lifetime.idleMs)} without use.`,
      { tools: ['create'] },
    );
  }

  async #call(entry: HandleRecord, call: QueuedKind, caller: Caller): Promise<HandleView> {
    if (this.#stopped) throw new Deactivating();
    entry.used = this.#date();
    for (let tries = 1; ; tries += 1) {
      try {
        const view = await this.#directory.instanceOf(entry).call(call, caller);
        this.#touch(entry);
        if (caller.inView && call.type !== 'get')
          this.#noteUnseen(entry, call.type === 'event' ? call.event.type : call.type);
        if (entry.trace !== undefined) running.getStore()?.request?.span?.link(entry.trace);
        return caller.ctx ? withUnseen(entry, view) : view;
      } catch (error) {
        if (this.#directory.entry(entry.id) !== entry) throw new MovedElsewhere(error instanceof Deactivating);
        // The instance left memory before it served the call. The next attempt loads it again.
        if (!(error instanceof Deactivating) || this.#stopped || tries === TRIES) throw error;
      }
    }
  }

  /** Writes the date of last use only occasionally; the row in the store leaves room for that. */
  #touch(entry: HandleRecord): void {
    const { limits, store, system } = this.#options;
    const lifetime = lifetimeOf(this.#machines.get(entry.name), entry.principal, limits);
    if (!this.#directory.activeInstance(entry) || !isStale(entry, lifetime, limits)) return;
    store
      .commit([{ type: 'actor', actor: rowOf(entry, lifetime, limits) }])
      .catch((error: unknown) =>
        system.log('warning', `${entry.id} may expire early: ${messageOf(error)}`, errorFields('store', error)),
      );
  }

  /** An instance that cannot be read is omitted from the list, and leaves memory again. */
  async #peek(entry: HandleRecord, caller: Caller): Promise<HandleView | undefined> {
    try {
      return await this.#directory.instanceOf(entry).call({ type: 'get' }, caller);
    } catch {
      return undefined;
    }
  }
}

/** The event of a message, as its receiver takes it. */
function takenAs({ sender, seq, body, hops }: OutMessage): Extract<KeyedOperation, { readonly type: 'event' }> {
  const { type, ...data } = body;
  return {
    type: 'event',
    event: { type: String(type), data },
    message: { from: { sender: sender.handle, seq }, hops },
  };
}

function callerOf({ sender }: OutMessage): Caller {
  return { principal: principalOf(sender), ctx: undefined, isInstance: true };
}

/** The same caller, whose client is not asked. */
export function readerOf({ principal, auth, session, ctx }: Caller): Caller {
  return { principal, auth: auth ?? ctx?.auth, session: session ?? ctx?.session?.id, ctx: undefined };
}

/** Adds the changes that the model has not seen. */
function withUnseen(entry: HandleRecord, view: HandleView): HandleView {
  const { unseen = [], course } = entry;
  if (!course && unseen.length === 0) return view;
  entry.unseen = undefined;
  entry.course = undefined;
  return { ...view, unseen: [...unseen, ...(course ? [courseText(course)] : [])] };
}

/** Creates the row that stores the reply for an idempotency key, within the same batch. */
type ReplyOf = (data: string, expires: number) => Write;

/** The scope of an idempotency key of a create call. An anonymous key must be as hard to guess as the handle that it returns. */
function creatorOf(name: string, { principal, ctx }: Caller, key: string | undefined): string | undefined {
  if (principal !== ANONYMOUS) return `handles/${name}/principal ${principal}`;
  if (ctx?.session) return `handles/${name}/session ${ctx.session.id}`;
  return key !== undefined && key.length >= LEAST_ANONYMOUS_KEY ? `handles/${name}/${ANONYMOUS}` : undefined;
}

/** @param listed the events that the author listed; no other event reaches a machine (S-01) */
function faultOfEvent({ type, data }: HandleEvent, listed: readonly string[], maxDepth: number): string | undefined {
  if (!listed.includes(type))
    return `unknown event "${type.slice(0, 80)}": expected one of ${listed.join(', ') || 'none'}`;
  if (Object.hasOwn(data, 'type'))
    return `the data of "${type}": expected no member "type", which is the name of the event itself`;
  const fault = notSerializable(data, maxDepth);
  return fault === undefined ? undefined : `the data of "${type}": ${fault}`;
}

/** The directory of handles: all records, the instances in memory, and when each is activated, hibernates and expires. */
import { eachInSlices, type Timer } from '../../core/kernel/clock.ts';
import { errorFields } from '../../core/kernel/operator-log.ts';
import type { Excess } from '../../core/kernel/quota.ts';
import { isActorOfCells } from '../../core/protocol/cell.ts';
import { messageOf } from '../../core/protocol/json.ts';
import type { ActorRow, TimerRow, Write } from '../../core/store/store.ts';
import { type CountedReply, CreationReplies } from './creation-replies.ts';
import { Footprint, type NewReplies } from './footprint.ts';
import { HandleError } from './handle-error.ts';
import { deadlineOf, type HandleRecord, handleAddress, lifetimeOf, recordOf } from './handle-record.ts';
import { Instance } from './instance.actor.ts';
import { planOf } from './instance-schedules.ts';
import type { InstanceDirectory, InstanceServices } from './instance-services.ts';
import { Deactivating } from './load-instance.ts';
import { OUT_TIMER } from './messages/out-message.ts';
import { StoredTimers } from './stored-timers.ts';

/** Number of rows per read. */
const PAGE = 1_000;
/** Maximum number of instances to examine in search of an idle one. */
const MOST_EXAMINED = 16;
/** Milliseconds until an instance that could not be persisted is activated again. */
const RETRY_MS = 1_000;
/**
 * Maximum number of instances that are loaded at once without a call, and whose timers are firing, when thousands of timers are
 * due: with all of them half done in memory the first would fire last, and calls would wait for all of them.
 */
const MOST_ACTIVATING = 512;
/** Milliseconds between two sweeps for expired handles. */
const EXPIRY_MS = 60_000;

/** Maximum number of expired handles that a line of the log names. */
const MOST_NAMED = 20;

/** Maximum number of hibernating handles to list, and of handles to examine for that. */
const MOST_LISTED = 50;
const MOST_LISTED_EXAMINED = 1_000;

/** The handles whose instances are not in memory. Their next message or timer activates them. */
export interface HibernatingHandle {
  readonly count: number;
  /** The addresses of some of them: those that hibernated last, the latest first. */
  readonly some: readonly string[];
  /** The next timers of those that have one, by their addresses, in milliseconds of the server's clock. */
  readonly timers: Readonly<Record<string, number>>;
}

export class HandleDirectory implements InstanceDirectory {
  readonly #host: InstanceServices;
  readonly #entries = new Map<string, HandleRecord>();
  /** The expired handles until they are deleted; the oldest first. */
  readonly #expired = new Set<HandleRecord>();
  /** The instances in memory; the least recently used first. */
  readonly #loaded = new Map<HandleRecord, Instance>();
  /** The latest hibernating handles, for the inspector: the latest last, at most {@link MOST_LISTED}. */
  readonly #rested = new Set<HandleRecord>();
  readonly #timers: StoredTimers;
  readonly #creationReplies: CreationReplies;
  /** The handles to activate without a call, in order; those before `#nextToActivate` have had their turn. */
  #toActivate: string[] = [];
  #nextToActivate = 0;
  /** Number of instances that are being loaded without a call, or whose timers are due. */
  #activating = 0;
  /** The instances whose timers fired while their machine was not offered. */
  readonly #withoutMachine = new Set<string>();
  /** The next check for expired handles. */
  #expiry: Timer | undefined;
  /** The next check for unused instances; undefined while all rest. */
  #rest: Timer | undefined;
  #phase: 'restoring' | 'open' | 'stopped' = 'restoring';

  constructor(services: Omit<InstanceServices, 'directory'>) {
    const { clock, date, quotas, store, incident } = services;
    this.#host = { ...services, directory: this };
    this.#creationReplies = new CreationReplies(quotas.retained);
    this.#timers = new StoredTimers({
      ...{ clock, date, store },
      wake: (id) => this.#activate(id),
      found: (row) => this.#found(row),
      failed: (error) => void incident('reading timers from the store', error),
    });
  }

  get loaded(): number {
    return this.#loaded.size;
  }

  hibernating(): HibernatingHandle {
    // An instance that has ended waits for nothing.
    const waits = ({ status }: HandleRecord): boolean => status === 'active';
    const some = [...this.#rested].filter(waits).reverse();
    let examined = 0;
    let ended = 0;
    for (const entry of this.#entries.values()) {
      examined += 1;
      if (examined > MOST_LISTED_EXAMINED || some.length === MOST_LISTED) break;
      const rests = !this.#loaded.has(entry) && !this.#expired.has(entry);
      if (rests && !waits(entry)) ended += 1;
      else if (rests && !this.#rested.has(entry)) some.push(entry);
    }
    const { clock, date } = this.#host;
    const later = clock.now() - date();
    const timers = some.flatMap((entry) => {
      const due = this.#timers.dueOf(entry.id);
      return due === undefined ? [] : [[handleAddress(entry), due + later] as const];
    });
    return {
      count: Math.max(0, this.#entries.size - this.#expired.size - this.#loaded.size - ended),
      some: some.map(handleAddress),
      timers: Object.fromEntries(timers),
    };
  }

  entry(id: string): HandleRecord | undefined {
    return this.#entries.get(id);
  }

  /**
   * Reserves the quota for a new handle, including the bytes of its input.
   *
   * @param shared true if its machine has a limit of its own, because the principal is none of a caller
   * @throws {HandleError} `busy` if there are too many handles or they hold too many bytes
   */
  reserveHandle(principal: string, session: string | undefined, bytes: number, shared = false): Footprint {
    const { limits, quotas } = this.#host;
    const { handles, retained } = quotas;
    const excess = (): Excess | undefined => {
      const full = handles.excess(principal);
      if (!shared || full?.limit === 'total') return full;
      const [has, max] = [handles.of(principal), limits.maxInstancesPerMachine];
      const option = 'limits.maxInstancesPerMachine';
      const message = `there are ${has} of at most ${max} instances of this machine (the server's option is ${option})`;
      return has < max ? undefined : { limit: 'principal', option, message };
    };
    if (excess()?.limit === 'total') this.#expireAll();
    const full = excess();
    if (full) throw this.#tooMany(full);
    let footprint = Footprint.reserve(retained, principal, session, bytes);
    if ('limit' in footprint && this.#hibernateIdle(undefined))
      footprint = Footprint.reserve(retained, principal, session, bytes);
    if ('limit' in footprint) throw this.#tooMany(footprint);
    return footprint;
  }

  /**
   * Reserves memory for the reply to the idempotency key of a new handle. Idle instances hibernate if that makes room.
   *
   * @param bytes of the reply in memory, without its key
   * @throws {HandleError} `busy` if there is no room
   */
  reserveReply(principal: string, session: string | undefined, bytes: number, expires: number): CountedReply {
    this.#creationReplies.expire(this.#host.date());
    let counted = this.#creationReplies.reserve(principal, session, bytes, expires);
    if ('limit' in counted && this.#hibernateIdle(undefined))
      counted = this.#creationReplies.reserve(principal, session, bytes, expires);
    if ('limit' in counted) throw this.#tooMany(counted);
    return counted;
  }

  reserveMemory(entry: HandleRecord, bytes: number, replies?: NewReplies): readonly string[] {
    const { footprint } = entry;
    let taken = footprint.loaded(bytes, replies);
    if ('limit' in taken && this.#hibernateIdle(entry)) taken = footprint.loaded(bytes, replies);
    if ('limit' in taken) throw this.#tooMany(taken);
    return taken.evicted;
  }

  takesSteps(entry: HandleRecord, stream: string, bytes: number): Excess | undefined {
    const { footprint } = entry;
    const excess = footprint.steps(stream, bytes);
    return excess && this.#hibernateIdle(entry) ? footprint.steps(stream, bytes) : excess;
  }

  /** Adds a new handle. @returns its instance, which has not started */
  create(entry: HandleRecord): Instance {
    const instance = new Instance(entry, this.#host);
    this.#add(entry);
    this.#markUsed(instance);
    return instance;
  }

  #add(entry: HandleRecord): void {
    this.#entries.set(entry.id, entry);
    this.#host.quotas.handles.add(entry.principal);
    this.#expireLater();
  }

  leftMemory(entry: HandleRecord): void {
    this.#loaded.delete(entry);
    this.#rests(entry);
  }

  #rests(entry: HandleRecord): void {
    this.#rested.delete(entry);
    if (this.#entries.get(entry.id) !== entry || this.#expired.has(entry)) return;
    this.#rested.add(entry);
    if (this.#rested.size <= MOST_LISTED) return;
    for (const oldest of this.#rested) if (this.#rested.delete(oldest)) break;
  }

  remove(entry: HandleRecord): void {
    // A new instance may have left memory before it was durable.
    if (this.#entries.get(entry.id) !== entry) return;
    this.#entries.delete(entry.id);
    this.#rested.delete(entry);
    if (!this.#expired.delete(entry)) this.#release(entry);
    this.#timers.delete(entry.id);
    this.#withoutMachine.delete(entry.id);
  }

  /**
   * Hibernates the oldest idle instances, except this one.
   *
   * @returns false if none was idle
   */
  #hibernateIdle(except: HandleRecord | undefined): boolean {
    let examined = 0;
    let found = false;
    for (const oldest of this.#loaded.values()) {
      examined += 1;
      if (oldest.idle && oldest.entry !== except) {
        this.#hibernate(oldest);
        found = true;
      }
      if (examined === MOST_EXAMINED) break;
    }
    return found;
  }

  /** Returns the instance in memory. A new one loads itself when it is called. */
  instanceOf(entry: HandleRecord): Instance {
    this.#timers.delete(entry.id);
    const instance = this.#loaded.get(entry) ?? new Instance(entry, this.#host);
    this.#markUsed(instance);
    return instance;
  }

  /** The instance of a handle if it is in memory. */
  activeInstance(entry: HandleRecord): Instance | undefined {
    return this.#loaded.get(entry);
  }

  /** Lists the live handles of a principal, oldest first; undefined if `after` is not one of them. */
  page(
    name: string,
    principal: string,
    after: string | undefined,
    limit: number,
  ): { readonly entries: readonly HandleRecord[]; readonly after: string | undefined } | undefined {
    const entries: HandleRecord[] = [];
    let found = after === undefined;
    for (const entry of this.#entries.values()) {
      if (entry.name !== name || entry.principal !== principal) continue;
      if (!found) {
        found = entry.handle === after;
        continue;
      }
      if (this.#isExpired(entry)) continue;
      if (entries.length === limit) return { entries, after: entries.at(-1)?.handle };
      entries.push(entry);
    }
    return found ? { entries, after: undefined } : undefined;
  }

  /** Expires a handle. Calls on it are then answered only with the fact that it has expired. */
  expire(entry: HandleRecord): void {
    if (this.#expired.has(entry)) return;
    this.#expire(entry);
    this.#sayExpired([entry]);
  }

  #expire(entry: HandleRecord): void {
    this.#loaded.get(entry)?.expire();
    this.#rememberExpired(entry);
    this.#timers.delete(entry.id);
    const { date, listeners, store } = this.#host;
    // Its data is no longer read. A durable store deletes it on its own when it expires.
    if (!store.durable) this.#deleteStored(entry);
    listeners.expired(entry, date());
  }

  /** Removes the instances of a principal. The caller deletes their rows in the store. */
  forget(principal: string): void {
    for (const entry of [...this.#entries.values()]) {
      if (entry.principal !== principal) continue;
      this.#loaded.get(entry)?.erase();
      this.remove(entry);
      this.#host.listeners.expired(entry, this.#host.date());
    }
  }

  /**
   * Removes an instance that has ended, to make room for a new one of its key.
   *
   * @throws {HandleError} `busy` while it is still in use, or has messages to deliver
   */
  replace(entry: HandleRecord): void {
    const instance = this.#loaded.get(entry);
    if ((instance && !instance.idle) || this.#host.outboxes.waiting(entry.id) > 0) throw new Deactivating();
    instance?.leave('a new instance has its key');
    // The store writes in this order: what follows is not deleted.
    this.#remove(entry);
  }

  /**
   * Handles a machine that was replaced or withdrawn: its instances leave memory and are activated again from the store.
   *
   * @param isReplanned its schedules have other dates: all of its instances write their timers again
   */
  redefined(name: string, isReplanned: boolean): void {
    for (const instance of [...this.#loaded.values()]) {
      if (instance.entry.name !== name) continue;
      void instance.settled().then(() => {
        const { wakeAt, idle, entry } = instance;
        instance.leave('its machine was replaced');
        if (isReplanned) this.#activate(entry.id);
        else if (idle && wakeAt !== undefined) this.#timers.add(entry.id, wakeAt);
        else if (!idle) this.#activate(entry.id);
      });
    }
    if (this.#phase === 'restoring' || !this.#host.machines.get(name)) return;
    for (const entry of this.#entries.values()) {
      if (entry.name !== name || entry.status !== 'active') continue;
      if (this.#withoutMachine.delete(entry.id) || entry.atWork || isReplanned) this.#activate(entry.id);
    }
  }

  reactivateLater(entry: HandleRecord): void {
    if (entry.status !== 'active' || this.#phase === 'stopped') return;
    if (this.#entries.get(entry.id) !== entry) return;
    this.#timers.addUnstored(entry.id, this.#host.date() + RETRY_MS);
  }

  /** Takes up the records of the store. Instances with running invocations continue, and overdue timers fire now. */
  async take(cells: readonly number[] | undefined): Promise<void> {
    const { store } = this.#host;
    const taken: HandleRecord[] = [];
    let after: ActorRow | undefined;
    for (;;) {
      const rows: readonly ActorRow[] = await store.list({ kind: 'handle', cells, after, limit: PAGE });
      for (const row of rows) if (!this.#entries.has(row.id)) taken.push(this.#restoreRow(row));
      after = rows.at(-1);
      if (rows.length < PAGE) break;
    }
    await this.#timers.take(cells);
    if (this.#phase === 'restoring') this.#phase = 'open';
    for (const entry of taken) {
      if (entry.status !== 'active' || this.#expired.has(entry)) continue;
      const kind = this.#host.machines.get(entry.name);
      // Schedules that were added, removed or changed since take effect without a call.
      if (entry.atWork || (kind && entry.plan !== planOf(kind))) this.#activate(entry.id);
    }
  }

  /** The store has a timer that is due soon. */
  #found({ actor, timer, due }: TimerRow): void {
    const entry = this.#entries.get(actor);
    if (!entry) return;
    // An instance that has ended may have left messages, too.
    if (timer === OUT_TIMER) return this.#host.outboxes.resume(entry);
    if (entry.status !== 'active' || this.#expired.has(entry)) return;
    // The timers in memory are newer, and the earliest one comes first.
    if (this.#loaded.has(entry) || this.#timers.has(actor)) return;
    if (due <= this.#host.date()) this.#activate(actor);
    else this.#timers.add(actor, due);
  }

  /** Lets go of handles: their instances leave memory, after their changes in progress are durable if `flush` is set. */
  async drop(cells: ReadonlySet<number>, flush: boolean): Promise<void> {
    this.#timers.drop(cells);
    const messages = this.#host.outboxes.drop(cells);
    const leaving = [...this.#entries.values()].filter(({ id }) => isActorOfCells(cells, id));
    const leave = (entry: HandleRecord): void => {
      this.#loaded.get(entry)?.move();
      this.remove(entry);
    };
    if (!flush) return leaving.forEach(leave);
    await Promise.all(leaving.map((entry) => this.#loaded.get(entry)?.settled()));
    await eachInSlices(this.#host.clock, leaving, leave);
    await messages;
  }

  async stop(): Promise<void> {
    this.#phase = 'stopped';
    this.#expiry?.cancel();
    this.#rest?.cancel();
    this.#timers.stop();
    await Promise.all(
      [...this.#loaded.values()].map(async (instance) => {
        await instance.settled();
        instance.leave('the server is stopping');
      }),
    );
    await this.#host.outboxes.stop();
    this.#loaded.clear();
  }

  #restoreRow(row: ActorRow): HandleRecord {
    const { limits, quotas } = this.#host;
    const footprint = Footprint.of(quotas.retained, row.principal);
    const entry = recordOf(
      row,
      lifetimeOf(this.#host.machines.get(row.name), row.principal, limits),
      limits,
      footprint,
    );
    this.#add(entry);
    if (this.#isExpired(entry)) this.#rememberExpired(entry);
    else this.#rests(entry);
    return entry;
  }

  /** Remembers an expired handle, within the limit. */
  #rememberExpired(entry: HandleRecord): void {
    this.#expired.add(entry);
    this.#rested.delete(entry);
    this.#release(entry);
    if (this.#expired.size <= this.#host.limits.maxRememberedHandles) return;
    const [oldest] = this.#expired;
    if (oldest) this.#remove(oldest);
  }

  #release({ principal, footprint }: HandleRecord): void {
    this.#host.quotas.handles.remove(principal);
    footprint.release();
  }

  #isExpired(entry: HandleRecord): boolean {
    const { limits, date } = this.#host;
    return deadlineOf(entry, lifetimeOf(this.#host.machines.get(entry.name), entry.principal, limits)) <= date();
  }

  /** Activates an instance without a call, as soon as few enough others are being loaded. */
  #activate(id: string): void {
    this.#toActivate.push(id);
    this.#activateNext();
  }

  #activateNext(): void {
    while (this.#activating < MOST_ACTIVATING) {
      const id = this.#toActivate[this.#nextToActivate];
      if (id === undefined) {
        this.#toActivate = [];
        this.#nextToActivate = 0;
        return;
      }
      this.#nextToActivate += 1;
      const instance = this.#toWake(id);
      const loaded = instance?.wake();
      if (!instance || !loaded) continue;
      this.#activating += 1;
      void loaded
        .then(() => instance.caughtUp())
        .then(() => {
          this.#activating -= 1;
          // Of thousands that a timer has woken, none stays in memory to wait for its next one.
          if (
            this.#toActivate.length > MOST_ACTIVATING &&
            instance.idle &&
            this.#loaded.get(instance.entry) === instance
          )
            this.#hibernate(instance);
          this.#activateNext();
        });
    }
  }

  #toWake(id: string): Instance | undefined {
    const entry = this.#entries.get(id);
    if (!entry || this.#phase === 'stopped' || this.#isExpired(entry)) return;
    if (this.#host.machines.get(entry.name)) return this.instanceOf(entry);
    // A machine that is not offered now may be offered later. Its instances are then activated.
    this.#withoutMachine.add(id);
    return;
  }

  /** Marks an instance as just used. If too many are in memory, the least recently used idle ones hibernate. */
  #markUsed(instance: Instance): void {
    this.#loaded.delete(instance.entry);
    this.#rested.delete(instance.entry);
    this.#loaded.set(instance.entry, instance);
    this.#restLater();
    if (this.#loaded.size <= this.#host.limits.maxAwakeHandles) return;
    let examined = 0;
    for (const oldest of this.#loaded.values()) {
      examined += 1;
      if (oldest !== instance && oldest.idle) this.#hibernate(oldest);
      if (examined === MOST_EXAMINED || this.#loaded.size <= this.#host.limits.maxAwakeHandles) return;
    }
  }

  #hibernateUnused(): void {
    const { clock, limits } = this.#host;
    const before = clock.now() - limits.handleRestMs;
    for (const instance of this.#loaded.values()) {
      if (instance.lastUsed <= before && instance.idle) this.#hibernate(instance);
    }
  }

  #hibernate(instance: Instance): void {
    const { wakeAt, entry } = instance;
    instance.rest();
    if (wakeAt !== undefined) this.#timers.add(entry.id, wakeAt);
  }

  #expireAll(): void {
    const now = this.#host.date();
    this.#creationReplies.expire(now);
    const expired: HandleRecord[] = [];
    for (const entry of this.#entries.values()) {
      if (!this.#expired.has(entry) && this.#isExpired(entry)) {
        this.#expire(entry);
        expired.push(entry);
      }
      if (this.#expired.has(entry) && entry.forgotten <= now) this.#remove(entry);
    }
    if (expired.length > 0) this.#sayExpired(expired);
  }

  /** Tells the operator which instances have expired that had not ended, in one line. */
  #sayExpired(entries: readonly HandleRecord[]): void {
    const active = entries.filter(({ status }) => status === 'active').map(handleAddress);
    if (active.length === 0) return;
    const named = active.slice(0, MOST_NAMED).join(', ');
    const more = active.length > MOST_NAMED ? ` and ${active.length - MOST_NAMED} more` : '';
    this.#host.log('info', `expired before its final state: ${named}${more}`, { event: 'handle' });
  }

  #remove(entry: HandleRecord): void {
    this.remove(entry);
    this.#deleteStored(entry);
  }

  #deleteStored(entry: HandleRecord): void {
    const writes: readonly Write[] = [{ type: 'forget', actor: entry.id }];
    const { store, log } = this.#host;
    store
      .commit(writes)
      .catch((error: unknown) =>
        log(
          'warning',
          `cannot delete ${entry.id} from the store yet: ${messageOf(error)}`,
          errorFields('store', error),
        ),
      );
  }

  /** Checks for expired handles, and again while the directory is open. */
  #expireLater(): void {
    if (this.#phase === 'stopped') return;
    this.#expiry ??= this.#host.clock.after(EXPIRY_MS, () => {
      this.#expiry = undefined;
      this.#expireAll();
      this.#expireLater();
    });
  }

  /** Checks for unused instances, and again while an instance is in memory: a test that waits for days runs no check. */
  #restLater(): void {
    if (this.#phase === 'stopped' || this.#loaded.size === 0) return;
    const { clock, limits } = this.#host;
    this.#rest ??= clock.after(limits.handleRestMs / 2, () => {
      this.#rest = undefined;
      this.#hibernateUnused();
      this.#restLater();
    });
  }

  #tooMany({ option, message }: Excess): HandleError {
    this.#host.metrics.refused(option);
    return new HandleError('busy', `${message}. Try again when some handles have expired or ended.`);
  }
}

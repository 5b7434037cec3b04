/**
 * The deliveries of the webhooks of a server: stores each before it is answered, runs its handler, attempts it again, and keeps
 * the last ones. Governed by `machines/hook-delivery.ts`.
 */
import { type HookDeliveryEvent, hookDeliveryMachine } from '../../../machines/hook-delivery.ts';
import { delayAfter } from '../../core/kernel/back-off.ts';
import { afterAny, steadyDate, type Timer, within } from '../../core/kernel/clock.ts';
import { durationOf } from '../../core/kernel/duration.ts';
import { errorFields, type RuntimeLog } from '../../core/kernel/operator-log.ts';
import { step } from '../../core/kernel/step.ts';
import type { CellHolder } from '../../core/messages/cell-holder.ts';
import { cellIn } from '../../core/protocol/cell.ts';
import { messageOf, shortened } from '../../core/protocol/json.ts';
import type { Core } from '../../core/server/feature.ts';
import { Attempts } from '../../core/store/attempts.ts';
import { StoreError, type Write } from '../../core/store/store.ts';
import { machines } from '../machines/machines.feature.ts';
import { type DefinedHook, emissionIn, type HookDelivery, targetIn } from './define-hook.ts';
import { readContent } from './hook-content.ts';
import {
  bodyIn,
  bodyPlace,
  type DeliveryRow,
  hookActor,
  hookRowIn,
  newWrites,
  readDelivery,
  type StoredDelivery,
  stateWrites,
} from './hook-record.ts';

/** A delivery that is genuine and about to be stored. */
export type NewDelivery = Pick<StoredDelivery, 'id' | 'key' | 'type' | 'content' | 'resent'>;

/** The outcome of an arrival. `full`: too many deliveries wait. */
export type Arrival = 'accepted' | 'repeated' | 'full';

/** A delivery in memory. */
interface Entry {
  row: DeliveryRow;
  /** The table reads that of an ended delivery when something needs it; until then it is undefined. */
  record: StoredDelivery | undefined;
  /** Its name in the store is known to be its own: no other delivery is the same. */
  claimed: boolean;
  timer: Timer | undefined;
  /** Ends an attempt that runs. */
  abort: AbortController | undefined;
  work: Promise<void> | undefined;
}

/** Milliseconds for which a repeat of a delivery is recognized. */
export const REPEAT_MS = 72 * 3_600_000;
/** The longest wait between two attempts, in milliseconds. */
const MOST_RETRY_MS = 15 * 60_000;
/** Most deliveries of this node that wait for their handlers, and most bytes of their bodies. */
const MAX_OPEN = 10_000;
const MAX_OPEN_BYTES = 128 * 1024 ** 2;
/** Most ended deliveries of one webhook that this node keeps, done and dead ones each, and most bytes of their bodies. */
const MAX_ENDED = 200;
const MAX_ENDED_BYTES = 16 * 1024 ** 2;
/** Longest message of an error that is stored, in characters. */
const MAX_ERROR = 500;
/** Rows in one read of the store. */
const PAGE = 1_000;
/** Milliseconds until a change that the store has not taken is written again, and its first. */
const REWRITE = { fromMs: 1_000, toMs: 60_000 };
/** Milliseconds until a delivery that could not be read is read again. */
const AGAIN_MS = 5_000;
const CLAIM = 'delivery';

function nameOf({ path, ref }: DeliveryRow): string {
  return `webhook ${path}, delivery ${ref}`;
}

/** The place that the first delivery of a name takes. */
function claimPlace(key: string): readonly [actor: string, request: string] {
  return [`server/hook/${key}`, CLAIM];
}

export class HookTable implements CellHolder {
  /** A service that is down fails each delivery. */
  readonly log: RuntimeLog;
  readonly #core: Core;
  readonly #date: () => number;
  readonly #hookAt: (path: string) => DefinedHook | undefined;
  readonly #entries = new Map<string, Entry>();
  /** By path: the deliveries whose time has come, the oldest first. */
  readonly #ready = new Map<string, Set<Entry>>();
  readonly #running = new Map<string, number>();
  /** By state and path: the deliveries that have ended, the oldest first, and the bytes of their bodies. */
  readonly #kept = new Map<string, { readonly entries: Set<Entry>; bytes: number }>();
  /** By name: the arrivals that are being stored. */
  readonly #arriving = new Map<string, Promise<Arrival>>();
  readonly #attempts: Attempts;
  #open = 0;
  #openBytes = 0;
  #serves = false;
  #stopping = false;

  /** @param hookAt the webhook that the program has registered at a path */
  constructor(core: Core, hookAt: (path: string) => DefinedHook | undefined) {
    this.#core = core;
    this.#hookAt = hookAt;
    const date = steadyDate(core.system.clock);
    this.#date = () => Math.floor(date());
    this.#attempts = new Attempts(core.system, 'webhook');
    this.log = this.#attempts.log;
    core.system.metrics.gauge(
      'troupe.hook.open',
      '{delivery}',
      'Deliveries at this node whose handlers have not succeeded.',
      () => this.#open,
    );
  }

  /** Whole milliseconds since 1970. */
  get date(): number {
    return this.#date();
  }

  /** Number of deliveries whose handlers have not succeeded. */
  get open(): number {
    return this.#open;
  }

  /** Stores a delivery, unless it is a repeat. @throws {StoreError} and then it may be stored or not: its sender sends it again */
  arrive(path: string, delivery: NewDelivery, body: Uint8Array): Promise<Arrival> {
    const { key } = delivery;
    // Of equal requests at the same moment, the later ones wait for the first.
    const first = this.#arriving.get(key);
    if (first) return first.then((arrival) => (arrival === 'accepted' ? 'repeated' : arrival));
    const arrival = this.#arrive(path, delivery, body).finally(() => this.#arriving.delete(key));
    this.#arriving.set(key, arrival);
    return arrival;
  }

  async #arrive(path: string, delivery: NewDelivery, body: Uint8Array): Promise<Arrival> {
    const { store } = this.#core;
    const [actor, request] = claimPlace(delivery.key);
    const earlier = await store.reply(actor, request);
    if (earlier) return this.#repeat(path, earlier);
    const entry = await this.#store(path, delivery, body);
    if (!entry) return 'full';
    try {
      if (!(await this.#claim(entry))) return 'repeated';
    } catch (error) {
      this.#later(entry);
      throw error;
    }
    this.#due(entry);
    return 'accepted';
  }

  /** A sender that sends a dead letter again wants another attempt. */
  async #repeat(path: string, earlier: string): Promise<Arrival> {
    const found = this.#entries.get(earlier);
    if (found?.row.state !== 'dead' || found.row.path !== path) return 'repeated';
    return (await this.again(path, earlier)) === undefined ? 'repeated' : 'accepted';
  }

  /** @returns undefined if too many wait */
  async #store(path: string, delivery: NewDelivery, body: Uint8Array): Promise<Entry | undefined> {
    const { store, system } = this.#core;
    const bytes = body.length;
    if (this.#stopping || this.#open >= MAX_OPEN || this.#openBytes + bytes > MAX_OPEN_BYTES) return undefined;
    const now = this.#date();
    const ref = system.ids.local();
    const record: StoredDelivery = {
      ...{ ...delivery, ref, path, bytes, state: 'waiting', at: now, attempt: 1, due: now },
      ...{ error: undefined, ms: undefined },
    };
    const entry = this.#enter(record, record);
    try {
      await store.commit(newWrites(record, body, now));
    } catch (error) {
      this.#leave(entry);
      throw error;
    }
    return entry;
  }

  /**
   * Takes the name of a delivery, after the delivery is durable: so that no name is taken for a delivery that is not stored.
   *
   * @returns false if another delivery has it: this one is then forgotten
   */
  async #claim(entry: Entry): Promise<boolean> {
    const { store } = this.#core;
    const { key, ref } = await this.#recordOf(entry);
    const [actor, request] = claimPlace(key);
    const reply = { type: 'reply', actor, request, data: ref, expires: this.#date() + REPEAT_MS } as const;
    const earlier = await store.claim(reply);
    entry.claimed = earlier === undefined || earlier === ref;
    if (entry.claimed) return true;
    this.#leave(entry);
    await store.commit([{ type: 'forget', actor: hookActor(ref) }]);
    return false;
  }

  /** Sends the body of an earlier delivery to the handler once more, as a delivery of its own. @returns undefined if there is none, or too many wait */
  async again(path: string, ref: string): Promise<string | undefined> {
    const found = await this.#find(path, ref);
    const body = found && (await this.body(path, ref));
    if (!found || !body) return undefined;
    const { id, type, content, key } = found;
    const copy = { id, type, content, resent: ref, key: `${key}.${this.#core.system.ids.local()}` };
    const entry = await this.#store(path, copy, body);
    if (!entry) return undefined;
    await this.#claim(entry);
    // A dead letter that its sender sends again and again is attempted once each time.
    if (found.state === 'dead' && found.resent === undefined) {
      const [actor, request] = claimPlace(key);
      const data = entry.row.ref;
      await this.#core.store.commit([{ type: 'reply', actor, request, data, expires: this.#date() + REPEAT_MS }]);
    }
    this.#due(entry);
    return entry.row.ref;
  }

  /** A delivery; undefined if there is none. It may be another node's. @throws {StoreError} */
  async find(ref: string): Promise<StoredDelivery | undefined> {
    const entry = this.#entries.get(ref);
    if (entry) return this.#recordOf(entry);
    if (cellIn(ref) === undefined) return undefined;
    const stored = await this.#core.store.load(hookActor(ref));
    const row = stored && hookRowIn(stored.actor);
    return row && readDelivery(row, stored?.snapshot);
  }

  async #find(path: string, ref: string): Promise<StoredDelivery | undefined> {
    const found = await this.find(ref);
    return found?.path === path ? found : undefined;
  }

  /** The body of a delivery as it came; undefined if there is none. @throws {StoreError} */
  async body(path: string, ref: string): Promise<Uint8Array | undefined> {
    if (!(await this.#find(path, ref))) return undefined;
    const [event] = await this.#core.store.events(...bodyPlace(ref));
    return event && bodyIn(event);
  }

  /** The deliveries of this node, the newest first. @throws {StoreError} */
  async list(
    path: string | undefined,
    state: StoredDelivery['state'] | undefined,
    limit: number,
  ): Promise<readonly StoredDelivery[]> {
    const found = [...this.#entries.values()]
      .filter(({ row }) => (path === undefined || row.path === path) && (state === undefined || row.state === state))
      .reverse()
      .sort((a, b) => b.row.at - a.row.at)
      .slice(0, limit);
    const records = await Promise.all(found.map((entry) => this.#recordOf(entry).catch(() => undefined)));
    return records.flatMap((record, place) =>
      record ? { ...record, state: found[place]?.row.state ?? record.state } : [],
    );
  }

  /** @throws {StoreError} if the row is damaged, or gone */
  async #recordOf(entry: Entry): Promise<StoredDelivery> {
    if (entry.record) return entry.record;
    const { store } = this.#core;
    const stored = await store.load(hookActor(entry.row.ref));
    entry.record ??= readDelivery(entry.row, stored?.snapshot);
    return entry.record;
  }

  #enter(row: DeliveryRow, record: StoredDelivery | undefined): Entry {
    const entry: Entry = { row, record, claimed: false, timer: undefined, abort: undefined, work: undefined };
    this.#entries.set(row.ref, entry);
    this.#count(entry, 1);
    return entry;
  }

  /** Counts a delivery among those of its state, or no more. */
  #count(entry: Entry, sign: 1 | -1): void {
    const { bytes, path } = entry.row;
    const state = hookDeliveryMachine.at(entry.row.state);
    if (state.hasTag('open')) {
      this.#open += sign;
      this.#openBytes += sign * bytes;
      return;
    }
    const kept = this.#keptAs(path, state.path);
    kept.bytes += sign * bytes;
    if (sign === 1) kept.entries.add(entry);
    else kept.entries.delete(entry);
  }

  #keptAs(path: string, state: string): { readonly entries: Set<Entry>; bytes: number } {
    const key = `${state} ${path}`;
    const kept = this.#kept.get(key) ?? { entries: new Set(), bytes: 0 };
    this.#kept.set(key, kept);
    return kept;
  }

  /** Drops a delivery from memory. */
  #leave(entry: Entry): void {
    const { row } = entry;
    if (!this.#entries.delete(row.ref)) return;
    entry.timer?.cancel();
    this.#ready.get(row.path)?.delete(entry);
    this.#count(entry, -1);
  }

  #step(entry: Entry, event: HookDeliveryEvent): boolean {
    const recorder = { inspection: this.#core.system.inspection, actor: hookActor(entry.row.ref) };
    const next = step(hookDeliveryMachine.at(entry.row.state), event, recorder);
    if (!next) return false;
    this.#count(entry, -1);
    entry.row = { ...entry.row, state: next.path };
    this.#count(entry, 1);
    if (entry.record) entry.record = { ...entry.record, state: next.path };
    return true;
  }

  /** The store has failed: it is not known whether the delivery has its name, or it could not be read. */
  #later(entry: Entry): void {
    if (this.#stopping || entry.row.state !== 'waiting') return;
    entry.timer?.cancel();
    entry.timer = this.#core.system.clock.after(AGAIN_MS, () => this.#due(entry));
  }

  /** Queues a delivery for its handler, now or at its time. */
  #due(entry: Entry): void {
    const { record, row } = entry;
    if (this.#stopping || !this.#entries.has(row.ref)) return;
    entry.timer?.cancel();
    const left = (record?.due ?? 0) - this.#date();
    if (left > 0) {
      entry.timer = afterAny(this.#core.system.clock, left, () => this.#due(entry));
      return;
    }
    const ready = this.#ready.get(row.path) ?? new Set();
    this.#ready.set(row.path, ready.add(entry));
    this.#pump(row.path);
  }

  /** Starts as many attempts of a webhook as may run. */
  #pump(path: string): void {
    const hook = this.#hookAt(path);
    const ready = this.#ready.get(path);
    if (!hook || !ready || !this.#serves || this.#stopping) return;
    for (const entry of ready) {
      const running = this.#running.get(path) ?? 0;
      if (running >= hook.concurrency) return;
      ready.delete(entry);
      this.#running.set(path, running + 1);
      entry.work = this.#attempt(hook, entry)
        .catch((error: unknown) => this.#unreadable(entry, error))
        .finally(() => {
          entry.work = undefined;
          this.#running.set(path, (this.#running.get(path) ?? 1) - 1);
          this.#pump(path);
        });
    }
  }

  /** @throws {StoreError} */
  async #attempt(hook: DefinedHook, entry: Entry): Promise<void> {
    const { store, system } = this.#core;
    if (!entry.claimed && !(await this.#claim(entry))) return;
    const record = await this.#recordOf(entry);
    // Each earlier attempt may have ended its process.
    if (record.attempt > hook.attempts) {
      const error = record.error ?? 'each process that attempted this delivery ended before the handler returned';
      return this.#giveUp(entry, { ...record, attempt: hook.attempts, error }, new Error(error));
    }
    const [event] = await store.events(...bodyPlace(record.ref));
    if (!event) {
      const error = 'its body is gone from the store';
      return this.#giveUp(entry, { ...record, error }, new Error(error));
    }
    if (!this.#step(entry, { type: 'start' })) return;
    const from = system.clock.now();
    const { attempt } = record;
    const abort = new AbortController();
    entry.abort = abort;
    let failure: { readonly error: unknown } | undefined;
    try {
      await this.#handle(hook, record, bodyIn(event), abort);
    } catch (error) {
      failure = { error };
    }
    entry.abort = undefined;
    const ms = Math.round(system.clock.now() - from);
    if (this.#isLost(entry)) return void this.#step(entry, { type: 'lose' });
    if (!failure) return this.#end(entry, 'succeed', { ...record, ms, error: undefined });
    const error = shortened(messageOf(failure.error), MAX_ERROR);
    if (attempt >= hook.attempts) return this.#giveUp(entry, { ...record, ms, error }, failure.error);
    const waitMs = delayAfter({ fromMs: hook.retryMs, toMs: MOST_RETRY_MS }, attempt);
    this.#attempts.failed(nameOf(record), attempt, waitMs, failure.error);
    await this.#end(entry, 'fail', { ...record, ms, error, attempt: attempt + 1, due: this.#date() + waitMs });
  }

  #giveUp(entry: Entry, record: StoredDelivery, error: unknown): Promise<void> {
    this.#attempts.dead(nameOf(record), error);
    this.#core.system.metrics.deadLetter();
    return this.#end(entry, 'give up', record);
  }

  /** The process stops or another node has the cell: it attempts the delivery again. */
  #isLost({ row }: Entry): boolean {
    return !this.#entries.has(row.ref) || (this.#stopping && this.#ended);
  }

  /** The attempts that run now are cut off. */
  #ended = false;

  async #handle(hook: DefinedHook, record: StoredDelivery, raw: Buffer, abort: AbortController): Promise<void> {
    const { path, id, key, type, at, content, attempt } = record;
    const delivery: HookDelivery = { path, id, key, type, at, raw, body: readContent(content, raw) };
    const late = (): Error =>
      new Error(`the handler has not returned within ${durationOf(hook.timeoutMs)} (timeoutMs)`);
    const { signal } = abort;
    const handled = (async () => {
      const result = await hook.to(delivery, { attempt, signal });
      const emission = emissionIn(result);
      if (emission) {
        // Its topic stores an id once, however often the delivery is attempted.
        const { name, data, id = key, at: when = at } = emission;
        return this.#core.elements.emit(name, data, { id, at: when });
      }
      const target = targetIn(result);
      // Once in the state of the instance, however often it is sent.
      const options = { idempotencyKey: `webhook ${key}` };
      return target && this.#core.service(machines).send(target.machine, target.key, target.event, options);
    })();
    try {
      await within(handled, this.#core.system.clock, hook.timeoutMs, late, signal, () => new Error('the server stops'));
    } finally {
      // A handler that is late learns that the server does not wait for it.
      abort.abort();
    }
  }

  /** Ends an attempt, and stores how. A handler that has returned does not run again because the store is busy. */
  async #end(entry: Entry, type: 'succeed' | 'fail' | 'give up', record: StoredDelivery): Promise<void> {
    if (!this.#step(entry, { type })) return;
    const after: StoredDelivery = { ...record, state: entry.row.state };
    entry.record = after;
    if (type !== 'give up') this.#attempts.count(type === 'fail' ? 'failed' : 'done');
    await this.#write(entry, () => stateWrites(after, this.#date()));
    if (type === 'fail') this.#due(entry);
    else await this.#trim(after.path, after.state);
  }

  /** Writes until the store has taken it, or this node has let go of the delivery. */
  async #write(entry: Entry, writes: () => readonly Write[]): Promise<void> {
    const { clock } = this.#core.system;
    for (let failures = 1; this.#entries.has(entry.row.ref); failures += 1) {
      try {
        return await this.#core.store.commit(writes());
      } catch (error) {
        const lost = error instanceof StoreError && (error.fault === 'closed' || error.fault === 'fenced');
        if (lost || this.#ended) throw error;
        if (failures === 1) this.#failedStore(entry, error);
        await new Promise<void>((resolve) => {
          entry.timer = clock.after(delayAfter(REWRITE, failures), resolve);
        });
      }
    }
  }

  /** Reads it again later; one that is damaged is left alone, and keeps no other from its handler. */
  #unreadable(entry: Entry, error: unknown): void {
    this.#failedStore(entry, error);
    if (error instanceof StoreError && error.fault === 'corrupt') this.#leave(entry);
    else this.#later(entry);
  }

  #failedStore({ row }: Entry, error: unknown): void {
    if (this.#ended || !this.#entries.has(row.ref)) return;
    const text = `webhook ${row.path}: delivery ${row.ref} is not up to date in the store, and may be attempted again: ${messageOf(error)}`;
    this.log('warning', text, errorFields('store', error));
  }

  /** Forgets the oldest of the ended deliveries of a webhook, beyond their number and bytes. */
  async #trim(path: string, state: DeliveryRow['state']): Promise<void> {
    const kept = this.#keptAs(path, state);
    const writes: Write[] = [];
    for (const entry of kept.entries) {
      if (kept.entries.size <= MAX_ENDED && kept.bytes <= MAX_ENDED_BYTES) break;
      this.#leave(entry);
      writes.push({ type: 'forget', actor: hookActor(entry.row.ref) });
    }
    if (writes.length > 0) await this.#core.store.commit(writes);
  }

  /** The server serves, or a webhook was registered: the deliveries that wait begin. */
  begin(path?: string): void {
    if (path === undefined) this.#serves = true;
    for (const each of path === undefined ? [...this.#ready.keys()] : [path]) this.#pump(each);
  }

  async take(cells: readonly number[] | undefined): Promise<void> {
    const { store } = this.#core;
    for (let after: { created: number; id: string } | undefined; ; ) {
      const rows = await store.list({ kind: 'hook', cells, after, limit: PAGE });
      for (const actor of rows) {
        const row = hookRowIn(actor);
        if (!row || this.#entries.has(row.ref)) continue;
        const entry = this.#enter(row, undefined);
        if (row.state === 'waiting') await this.#resume(entry);
      }
      const last = rows.at(-1);
      if (!last || rows.length < PAGE) return;
      after = { created: last.created, id: last.id };
    }
  }

  /** Its process may have ended during an attempt: that attempt counts, so that a delivery that ends each process ends. */
  async #resume(entry: Entry): Promise<void> {
    try {
      const record = await this.#recordOf(entry);
      if (record.due <= this.#date()) {
        const next: StoredDelivery = { ...record, attempt: record.attempt + 1 };
        await this.#core.store.commit(stateWrites(next, this.#date()));
        entry.record = next;
      }
      this.#due(entry);
    } catch (error) {
      this.#unreadable(entry, error);
    }
  }

  async drop(cells: ReadonlySet<number>, flush: boolean): Promise<void> {
    const working: Promise<void>[] = [];
    for (const entry of [...this.#entries.values()]) {
      const cell = cellIn(entry.row.ref);
      if (cell === undefined || !cells.has(cell)) continue;
      if (entry.work) working.push(entry.work);
      this.#leave(entry);
      entry.abort?.abort();
    }
    if (flush) await Promise.allSettled(working);
  }

  *working(): Iterable<number> {
    for (const { abort, row } of this.#entries.values()) {
      const cell = abort && cellIn(row.ref);
      if (cell !== undefined) yield cell;
    }
  }

  /** Begins no attempt, and lets those that run end. Those that last longer are cut off. */
  async stop(graceMs: number): Promise<void> {
    this.#stopping = true;
    const entries = [...this.#entries.values()];
    for (const { timer } of entries) timer?.cancel();
    const working = Promise.allSettled(entries.flatMap(({ work }) => work ?? []));
    await within(working, this.#core.system.clock, graceMs, () => new Error('late')).catch(() => {});
    this.#ended = true;
    for (const { abort } of entries) abort?.abort();
    await working;
    if (!this.#core.store.durable && this.#open > 0)
      this.log('warning', `${this.#open} deliveries of webhooks are lost, because the store is not durable`, {
        event: 'program',
      });
  }
}

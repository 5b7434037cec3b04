/** The schedules of one instance in memory: the next slot of each is a timer row, and a slot that is due becomes an event. */
import { afterAny, type Timer } from '../../core/kernel/clock.ts';
import { sha256 } from '../../core/kernel/sha256.ts';
import { isObject } from '../../core/protocol/json.ts';
import { fromText, toText } from '../../core/store/serialize.ts';
import type { TimerRow, Write } from '../../core/store/store.ts';
import { latenessOf } from '../schedules/schedule-metrics.ts';
import { continuedFrom, dueSlot, nextDue, offsetOf, type SlotProgress } from '../schedules/schedule-slots.ts';
import type { HandleEvent } from './handle-messages.ts';
import type { HandleRecord } from './handle-record.ts';
import type { InstanceServices } from './instance-services.ts';
import type { InstanceSchedule, InstanceSlot } from './instance-slot.ts';
import type { MachineKind } from './machine-definition.ts';

/** The timers of XState have a `#` in their names, which names of schedules have not. */
const PREFIX = 'schedule ';

interface Planned extends SlotProgress {
  /** Undefined: no slot follows. */
  readonly row: TimerRow | undefined;
}

/** Returns whether a timer is that of a schedule. */
export function isSlotTimer(timer: string): boolean {
  return timer.startsWith(PREFIX);
}

/** The plans of machines, by their schedules. */
const PLANS = new WeakMap<object, string>();

/** A text that changes with the dates of the schedules of a machine; undefined without schedules. */
export function planOf(kind: Pick<MachineKind, 'schedules'> | undefined): string | undefined {
  const schedules = kind?.schedules;
  if (!schedules || schedules.size === 0) return undefined;
  const known = PLANS.get(schedules);
  if (known !== undefined) return known;
  const dates = [...schedules].map(([name, { pattern, spreadMs }]) => `${name} ${pattern.text} ${spreadMs}`);
  const plan = sha256(dates.sort().join('\n')).slice(0, 16);
  PLANS.set(schedules, plan);
  return plan;
}

export class InstanceSchedules {
  readonly #entry: HandleRecord;
  readonly #host: InstanceServices;
  readonly #schedules: ReadonlyMap<string, InstanceSchedule>;
  readonly #due: (event: HandleEvent, slot: InstanceSlot) => void;
  readonly #planned = new Map<string, Planned>();
  /** The rows in the store, by their schedules. */
  #stored = new Map<string, TimerRow>();
  #timer: Timer | undefined;
  #stopped = false;

  /** @param due receives each slot that is due, once, unless `retry` asks for it again */
  constructor(
    entry: HandleRecord,
    host: InstanceServices,
    { schedules }: MachineKind,
    due: (event: HandleEvent, slot: InstanceSlot) => void,
  ) {
    this.#entry = entry;
    this.#host = host;
    this.#schedules = schedules ?? new Map();
    this.#due = due;
  }

  /**
   * Continues from the store.
   *
   * @returns true if the rows there are not those of the machine as it is now: they are to be written
   */
  restore(rows: readonly TimerRow[]): boolean {
    const now = this.#host.date();
    for (const row of rows) {
      const name = row.timer.slice(PREFIX.length);
      this.#stored.set(name, row);
      const plan = this.#schedules.get(name);
      const found = readProgress(row.actor, row.data);
      if (!plan || found?.timing !== plan.pattern.text) continue;
      const planned = this.#plan(name, plan, continuedFrom(this.#from(found.last), now));
      // The rows are the same unless the clock was wrong, or the spread has changed.
      this.#planned.set(
        name,
        planned.row?.data === row.data && planned.row.due === row.due ? { ...planned, row } : planned,
      );
    }
    const isChanged = this.#update();
    this.#arm();
    return isChanged;
  }

  /** Returns the writes for rows that have changed. Call it in each commit. */
  writes(): readonly Write[] {
    this.#update();
    const writes: Write[] = [];
    const rows = new Map<string, TimerRow>();
    for (const [name, { row }] of this.#planned) {
      if (!row) continue;
      rows.set(name, row);
      if (this.#stored.get(name) !== row) writes.push({ type: 'timer', timer: row });
    }
    for (const [name, { actor, timer }] of this.#stored)
      if (!rows.has(name)) writes.push({ type: 'timer off', actor, timer });
    this.#stored = rows;
    this.#arm();
    return writes;
  }

  /** The rows as last written. */
  rows(): readonly TimerRow[] {
    return [...this.#stored.values()];
  }

  /** The slots that follow: the date of each, and of the one before it. */
  next(): readonly { readonly label: string; readonly due: number; readonly lasts: number }[] {
    return [...this.#planned].flatMap(([label, { row, last }]) =>
      row ? [{ label, due: row.due, lasts: row.due - last }] : [],
    );
  }

  /** The date of the next slot. */
  wakeAt(): number | undefined {
    const dates = this.next().map(({ due }) => due);
    return dates.length === 0 ? undefined : Math.min(...dates);
  }

  /** Takes a slot. @returns false if it was taken before, or its schedule has other dates now */
  take({ schedule, slot }: InstanceSlot): boolean {
    const plan = this.#schedules.get(schedule);
    const planned = this.#planned.get(schedule);
    if (!plan || !planned || slot.at <= planned.last) return false;
    this.#planned.set(schedule, this.#plan(schedule, plan, { ...planned, last: slot.at }));
    if (!slot.skipped)
      latenessOf(this.#host.metrics)(Math.max(0, this.#host.date() - slot.at - this.#offset(schedule, plan)));
    return true;
  }

  /** Tries slots again that the mailbox has not taken. */
  retry(): void {
    this.#timer?.cancel();
    this.#timer = this.#stopped ? undefined : this.#host.clock.after(RETRY_MS, () => this.#fire());
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }

  /** Plans what has no plan yet, and nothing for an instance that has ended. @returns whether anything has changed */
  #update(): boolean {
    if (this.#entry.status !== 'active') this.#planned.clear();
    else
      for (const [name, plan] of this.#schedules)
        if (!this.#planned.has(name)) this.#planned.set(name, this.#plan(name, plan, this.#from(this.#now())));
    const rows = [...this.#planned].flatMap(([name, { row }]) => (row ? [[name, row] as const] : []));
    return rows.length !== this.#stored.size || rows.some(([name, row]) => this.#stored.get(name) !== row);
  }

  #now(): number {
    return Math.floor(this.#host.date());
  }

  /** Intervals count from the creation of the instance. */
  #from(last: number): SlotProgress {
    return { last, anchor: this.#entry.created };
  }

  #plan(name: string, plan: InstanceSchedule, { last, anchor }: SlotProgress): Planned {
    return { last, anchor, row: rowAfter(this.#entry, name, plan, last) };
  }

  #offset(name: string, plan: InstanceSchedule): number {
    return offsetOf(plan, keyOf(this.#entry, name));
  }

  #arm(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    const due = this.#stopped || this.#entry.status !== 'active' ? undefined : this.wakeAt();
    if (due === undefined) return;
    this.#timer = afterAny(this.#host.clock, Math.ceil(due - this.#host.date()), () => this.#fire());
  }

  #fire(): void {
    this.#timer = undefined;
    const now = this.#host.date();
    let isDue = false;
    for (const [schedule, planned] of this.#planned) {
      const plan = this.#schedules.get(schedule);
      const slot = plan && dueSlot(plan, planned, this.#offset(schedule, plan), now);
      if (!slot) continue;
      isDue = true;
      const { scheduledFor, missed } = slot;
      this.#due({ type: plan.event, data: { scheduledFor, missed } }, { schedule, slot });
    }
    // The date of a database is corrected: it may be behind the timer.
    if (!isDue) this.#arm();
  }
}

/** Returns the write that lets a slot pass which has crashed its instance too often. */
export function passingOf(entry: HandleRecord, kind: MachineKind | undefined, { schedule, slot }: InstanceSlot): Write {
  const plan = kind?.schedules?.get(schedule);
  const row = plan && rowAfter(entry, schedule, plan, slot.at);
  return row ? { type: 'timer', timer: row } : { type: 'timer off', actor: entry.id, timer: PREFIX + schedule };
}

/** The row of the slot after a date. Intervals count from the creation of the instance. */
function rowAfter(entry: HandleRecord, name: string, plan: InstanceSchedule, last: number): TimerRow | undefined {
  const due = nextDue(plan, { last, anchor: entry.created }, offsetOf(plan, keyOf(entry, name)));
  if (due === undefined) return undefined;
  return { actor: entry.id, timer: PREFIX + name, due, data: toText({ timing: plan.pattern.text, last }) };
}

/** The key of the offset within a spread. */
function keyOf({ id }: HandleRecord, name: string): string {
  return `${id} ${name}`;
}

/** Milliseconds until a slot is tried again for which the mailbox has no room. */
const RETRY_MS = 1_000;

function readProgress(actor: string, data: string): { readonly timing: string; readonly last: number } | undefined {
  const value: unknown = fromText(data, actor);
  if (!isObject(value)) return undefined;
  const { timing, last } = value;
  return typeof timing === 'string' && typeof last === 'number' ? { timing, last } : undefined;
}

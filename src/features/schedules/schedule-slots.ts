/** The slots of a schedule: its pattern, checked once and then asked for dates, and the slot that is due. Pure. */
import { Cron } from 'croner';
import { isoOf } from '../../core/kernel/clock.ts';
import { sha256 } from '../../core/kernel/sha256.ts';
import { describe, isObject, messageOf } from '../../core/protocol/json.ts';
import * as option from '../../core/protocol/option-rows.ts';
import type { MissedSlots, SlotData, SlotRules } from './schedule-definition.ts';

const LEAST_INTERVAL_MS = 1_000;
/** 366 days. */
const MOST_INTERVAL_MS = 31_622_400_000;
const MOST_SPREAD_MS = 86_400_000;
/** The last year that a date may have. */
const LAST_DATE = Date.UTC(9_999, 11, 31);
/** Milliseconds after which a slot is missed, with `skip`. */
const LATE_MS = 60_000;
/** Maximum number of slots that `all` runs. */
const MOST_RUNS = 100;
/** Maximum number of slots that are counted: a pattern of each second has 600,000 in a week. */
const MOST_COUNTED = 1_000;
/**
 * Milliseconds by which the last slot may lie ahead. A clock that is set back further was wrong before, and the schedule counts from the present
 * (as in cron).
 */
const CORRECTED_MS = 10_800_000;
/** The longest name of a schedule. */
const NAME = /^[A-Za-z0-9_.-]{1,64}$/;

/** The dates of a schedule, in milliseconds since 1970. */
export interface SlotPattern {
  /** Changes if, and only if, the dates do. */
  readonly text: string;
  /** The first slot after a date. @param anchor the date from which intervals are counted */
  next(after: number, anchor: number): number | undefined;
  /** The last slot at or before a date. */
  latest(until: number, anchor: number): number | undefined;
}

/** A schedule with its pattern and its rules. */
export interface SlotPlan {
  readonly pattern: SlotPattern;
  readonly missed: MissedSlots;
  readonly spreadMs: number;
}

/** A slot that is due. */
export interface DueSlot extends SlotData {
  /** The same date in milliseconds since 1970. */
  readonly at: number;
  /** True: the rule for missed slots says that it does not run. */
  readonly skipped: boolean;
}

const RULES = {
  missed: option.oneOf('once', 'skip', 'all'),
  spreadMs: option.expected(`whole milliseconds from 0 to ${MOST_SPREAD_MS} (a day)`, (value) =>
    option.isWhole(value, 0, MOST_SPREAD_MS),
  ),
};
const MEMBERS = { cron: option.filled, timeZone: option.filled, everyMs: option.anything, at: option.anything };
const EXPECTED =
  "expected one of cron, everyMs and at, such as { cron: '0 3 * * *', timeZone: 'Europe/Berlin' }, { everyMs: 60_000 } or { at: '2026-12-24T18:00:00Z' }";

/** @throws {TypeError} for a name that is no name of a schedule */
export function checkScheduleName(where: string, name: unknown): void {
  if (typeof name === 'string' && NAME.test(name)) return;
  throw new TypeError(`${where}: expected a name of 1 to 64 letters, digits, "_", "-" or ".", got ${describe(name)}`);
}

/**
 * Reads the dates and the rules of a schedule.
 *
 * @param where the prefix of errors, such as `schedule "nightly"`
 * @param more the rows of its other members
 * @throws {TypeError | RangeError} for an invalid one, with a correction
 */
export function readPlan(where: string, given: unknown, more: Readonly<Record<string, option.Check>>): SlotPlan {
  option.check(`${where}: `, given, { ...MEMBERS, ...RULES, ...more });
  const { missed, spreadMs }: SlotRules = isObject(given) ? given : {};
  return {
    pattern: readPattern(where, isObject(given) ? given : {}),
    missed: missed ?? 'once',
    spreadMs: spreadMs ?? 0,
  };
}

function readPattern(where: string, { cron, timeZone, everyMs, at }: Readonly<Record<string, unknown>>): SlotPattern {
  const given = [cron, everyMs, at].filter((value) => value !== undefined);
  if (given.length !== 1)
    throw new TypeError(`${where}: ${EXPECTED}, got ${given.length === 0 ? 'none' : 'several'} of them`);
  if (cron !== undefined) return cronPattern(where, String(cron), timeZone === undefined ? 'UTC' : String(timeZone));
  if (timeZone !== undefined) throw new TypeError(`${where}: timeZone: expected it with cron only`);
  if (everyMs !== undefined) return intervalPattern(where, everyMs);
  return datePattern(where, at);
}

function cronPattern(where: string, cron: string, zone: string): SlotPattern {
  try {
    new Intl.DateTimeFormat('en', { timeZone: zone }).format(0);
  } catch {
    throw new TypeError(
      `${where}: timeZone: expected an IANA name of a time zone, such as "Europe/Berlin" or "UTC", got ${describe(zone)}`,
    );
  }
  let job: Cron;
  try {
    // Croner reads a date, too.
    if (/^\s*\d{4}-/.test(cron)) throw new TypeError('a date is the option at');
    // "30 2,14 * * *" keeps its 02:30 in spring, and has it once in autumn.
    job = new Cron(cron, { paused: true, timezone: zone, fixedTimeRule: 'no-wildcard' });
  } catch (error) {
    throw new TypeError(
      `${where}: cron: expected five fields (minute, hour, day of month, month, day of week), or six with seconds in front, got ${describe(cron)}: ${messageOf(error).replace(/^CronPattern: /, '')}`,
    );
  }
  if (!job.nextRun('1999-12-31T23:59:59Z')) throw new TypeError(`${where}: cron: no date matches ${describe(cron)}`);
  return new CronSlots(job, `cron ${cron} ${zone}`);
}

/** Maximum number of dates that a pattern remembers: those that are counted, and some. */
const MOST_KNOWN = MOST_COUNTED + 8;
/** The date of the slot after the last one. */
const NEVER = Number.POSITIVE_INFINITY;

/**
 * Asks croner for dates, which takes a tenth of a millisecond each. All instances of a machine ask for the same ones at the same
 * time, so the last ones are kept.
 */
class CronSlots implements SlotPattern {
  readonly text: string;
  readonly #job: Cron;
  /** Slots without a gap, ascending. */
  #slots: number[] = [];
  /** No slot lies between this date and the first of them. */
  #begin = 0;
  /** The last answer to `latest`, and the slot after it. */
  #latest = NEVER;
  #following = 0;

  constructor(job: Cron, text: string) {
    this.#job = job;
    this.text = text;
  }

  next(after: number): number | undefined {
    const date = Math.floor(after);
    const next = date >= this.#latest && date < this.#following ? this.#following : this.#nextOf(date);
    return next === NEVER ? undefined : next;
  }

  latest(until: number): number | undefined {
    const date = Math.floor(until);
    if (date >= this.#latest && date < this.#following) return this.#latest;
    // Croner finds the runs before a date, and this one may be a slot.
    const [slot] = this.#job.previousRuns(1, isoOf(date + 1));
    if (!slot) return undefined;
    this.#latest = slot.getTime();
    this.#following = this.#runAfter(this.#latest);
    return this.#latest;
  }

  #nextOf(date: number): number {
    if (date === this.#slots.at(-1)) this.#slots.push(this.#runAfter(date));
    else if (date < this.#begin || date >= (this.#slots.at(-1) ?? 0)) {
      this.#begin = date;
      this.#slots = [this.#runAfter(date)];
    }
    const next = this.#slots[this.#countUntil(date)] ?? NEVER;
    if (this.#slots.length > MOST_KNOWN) this.#begin = this.#slots.shift() ?? date;
    return next;
  }

  #runAfter(date: number): number {
    return this.#job.nextRun(isoOf(date))?.getTime() ?? NEVER;
  }

  /** Number of known slots at or before a date. */
  #countUntil(date: number): number {
    let low = 0;
    let high = this.#slots.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#slots[middle] ?? NEVER) <= date) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function intervalPattern(where: string, everyMs: unknown): SlotPattern {
  if (!option.isWhole(everyMs, LEAST_INTERVAL_MS, MOST_INTERVAL_MS))
    throw new RangeError(
      `${where}: everyMs: expected whole milliseconds from ${LEAST_INTERVAL_MS} to ${MOST_INTERVAL_MS} (366 days), got ${describe(everyMs)}`,
    );
  return {
    text: `every ${everyMs}`,
    next: (after, anchor) => anchor + (Math.floor((after - anchor) / everyMs) + 1) * everyMs,
    latest(until, anchor) {
      const slots = Math.floor((until - anchor) / everyMs);
      return slots < 1 ? undefined : anchor + slots * everyMs;
    },
  };
}

function datePattern(where: string, at: unknown): SlotPattern {
  // Without an offset, the date would depend on the zone of the machine.
  const isText = typeof at === 'string' && /^\d{4}-\d\d-\d\dT.*(?:Z|[+-]\d\d:?\d\d)$/.test(at);
  const date = isText ? Date.parse(at) : at instanceof Date ? at.getTime() : Number.NaN;
  if (!(date >= 0 && date <= LAST_DATE))
    throw new TypeError(
      `${where}: at: expected a Date, or ISO 8601 with "Z" or an offset such as "2026-12-24T18:00:00+01:00", got ${describe(at)}`,
    );
  return {
    text: `at ${date}`,
    next: (after) => (date > after ? date : undefined),
    latest: (until) => (date <= until ? date : undefined),
  };
}

/** The progress of a schedule: the last slot that was handled, and the date from which intervals are counted. */
export interface SlotProgress {
  readonly last: number;
  readonly anchor: number;
}

/** The date at which the next slot is due. @param offset the delay of this schedule within its spread */
export function nextDue({ pattern }: SlotPlan, { last, anchor }: SlotProgress, offset: number): number | undefined {
  const next = pattern.next(last, anchor);
  return next === undefined ? undefined : next + offset;
}

/** The slot that runs or is skipped now; undefined if none is due. */
export function dueSlot(
  { pattern, missed }: SlotPlan,
  { last, anchor }: SlotProgress,
  offset: number,
  now: number,
): DueSlot | undefined {
  const until = now - offset;
  const slots: number[] = [];
  for (let at = pattern.next(last, anchor); at !== undefined && at <= until; at = pattern.next(at, anchor)) {
    slots.push(at);
    if (slots.length > MOST_COUNTED) break;
  }
  const isMore = slots.length > MOST_COUNTED;
  const latest = isMore ? pattern.latest(until, anchor) : slots.at(-1);
  if (latest === undefined) return undefined;
  const slot = (at: number, count: number, skipped = false): DueSlot => {
    return { at, scheduledFor: isoOf(at), missed: Math.min(MOST_COUNTED, count), skipped };
  };
  if (missed === 'skip') return slot(latest, slots.length - 1, until - latest >= LATE_MS);
  if (missed === 'once') return slot(latest, slots.length - 1);
  if (!isMore) {
    const first = Math.max(0, slots.length - MOST_RUNS);
    return slot(slots[first] ?? latest, first);
  }
  let first = latest;
  for (let runs = 1; runs < MOST_RUNS; runs += 1) first = pattern.latest(first - 1, anchor) ?? first;
  return slot(first, MOST_COUNTED);
}

/** The progress from which a schedule continues. It counts from the present if the clock was far ahead when it last ran. */
export function continuedFrom(progress: SlotProgress, now: number): SlotProgress {
  return progress.last > now + CORRECTED_MS ? { ...progress, last: now } : progress;
}

/** The part of the spread that belongs to a key, from 0 to `spreadMs`. */
export function offsetOf({ spreadMs }: SlotPlan, key: string): number {
  return spreadMs === 0 ? 0 : Number.parseInt(sha256(key, 'hex').slice(0, 12), 16) % spreadMs;
}

/** The definition of a schedule, as authors write it. Types only. */

/** The dates of a schedule: a cron expression, an interval, or one date. */
export type ScheduleTiming =
  | {
      /**
       * Five fields (minute, hour, day of month, month, day of week), or six with seconds in front. `@daily`, names of days
       * and months, `L`, `W` and `#` are understood.
       */
      readonly cron: string;
      /** An IANA name, such as `Europe/Berlin`. Default: `UTC`, whatever the zone of the machine. */
      readonly timeZone?: string | undefined;
    }
  /** Milliseconds between two slots, at least 1,000, counted from when the schedule or the instance was created. */
  | { readonly everyMs: number }
  /** One date: a `Date`, or ISO 8601 with `Z` or an offset. */
  | { readonly at: string | Date };

/**
 * The handling of slots that passed while nothing could run them. `once` (default): one run for all of them. `skip`: no run, unless the
 * last one is less than a minute late. `all`: a run for each of the latest 100.
 */
export type MissedSlots = 'once' | 'skip' | 'all';

export interface SlotRules {
  readonly missed?: MissedSlots | undefined;
  /**
   * Milliseconds over which slots are spread: each schedule of an instance, and each of a server, is late by an own part of it that
   * never changes. Default 0.
   */
  readonly spreadMs?: number | undefined;
}

/** A schedule of a server. */
export type ScheduleOptions = ScheduleTiming &
  SlotRules & {
    /** Milliseconds after which the signal of a handler aborts. Default: `limits.maxTimeoutMs`. */
    readonly timeoutMs?: number | undefined;
  };

/** A schedule of each instance of a machine: a slot sends the instance an event. */
export type MachineSchedule<Event extends string = string> = ScheduleTiming &
  SlotRules & {
    /** An event of the chart, which clients need not be able to send. It has the members of {@link SlotData}. */
    readonly event: Event;
  };

/** The members of an event of a schedule. */
export interface SlotData {
  /** The date of the slot, ISO 8601: the same however late it runs. */
  readonly scheduledFor: string;
  /** Number of slots before this one that got no run of their own. At most 1,000 are counted. */
  readonly missed: number;
  /** True: an operator or the program has asked for this run. It is no slot, and `scheduledFor` is the date of the request. */
  readonly manual?: true;
}

/** A slot of a schedule of a server. */
export interface ScheduleSlot extends SlotData {
  /** The name of the schedule. */
  readonly schedule: string;
  /** 1, or more if the process ended during earlier attempts. */
  readonly attempt: number;
  /** The same for each attempt of this slot: pass it to services that accept idempotency keys. */
  readonly key: string;
}

/** The context of a handler of a schedule. */
export interface ScheduleContext {
  /** Aborts at the deadline, when the server stops, and when another node takes the schedule over. */
  readonly signal: AbortSignal;
  /** Writes to the log of the operator. */
  log(level: 'info' | 'warning' | 'error', message: string): void;
}

export type ScheduleHandler = (slot: ScheduleSlot, ctx: ScheduleContext) => unknown;

/** A schedule that is registered. */
export interface RegisteredSchedule {
  readonly name: string;
  /** The date of the next slot, ISO 8601; undefined if there is none, or if this process does not run the schedule now. */
  readonly next: string | undefined;
  /** Runs the handler as soon as it is not running, without a slot. @throws {Error} if this process does not run the schedule now */
  run(): void;
  /** Removes the schedule, and its data in the store. A handler that is running ends as usual. */
  remove(): void;
}

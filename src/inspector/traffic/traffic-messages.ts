/** The event traffic of a server as viewers receive it. Types only: plain JSON, without Node and without a browser. */

import type { HookRecord } from '../../features/hooks/registered-hooks.ts';
import type { GivenUp } from '../../features/server/dead-letters.ts';
import type { Plain } from '../frames.ts';

/** Everything by which events enter and leave a server. Dates are milliseconds since 1970. */
export interface TrafficView {
  /** The date of this view. */
  readonly date: number;
  readonly types: readonly EventTypeLine[];
  readonly subscriptions: SubscriptionsView;
  readonly schedules: readonly ScheduleLine[];
  /** The last deliveries of other services to webhooks of this server, the newest first. */
  readonly deliveries: readonly HookRecord[];
  /** The newest first. */
  readonly letters: readonly DeadLetterLine[];
}

/** One event type, with the sums of its topics in the memory of this process. */
export interface EventTypeLine {
  readonly name: string;
  readonly description: string;
  /** The member whose values have topics of their own. */
  readonly by?: string;
  readonly topics: number;
  /** The number of the newest event; the sum of the numbers for several topics. Undefined: the store could not be read. */
  readonly head?: number;
  /** When the newest event was committed. */
  readonly newestAt?: number;
  /** The events that are kept, and their bytes. */
  readonly retained: number;
  readonly bytes: number;
  /** The events that were committed in the last minute. */
  readonly perMinute: number;
  /** Open streams of this process, and subscriptions to callbacks. */
  readonly streams: number;
  readonly webhooks: number;
}

/** The subscriptions to callbacks of this process. */
export interface SubscriptionsView {
  readonly all: number;
  /** Those whose endpoints are down, and those whose last attempt has failed. */
  readonly suspended: number;
  readonly failing: number;
  /** Those with trouble come first. */
  readonly some: readonly SubscriptionLine[];
}

export interface SubscriptionLine {
  readonly id: string;
  /** The address of its actor. */
  readonly actor: string;
  readonly event: string;
  readonly principal: string;
  /** The host of the callback. Its path and its query may be secrets. */
  readonly host: string;
  readonly state: string;
  /** The number of events of its topic that it has not seen. */
  readonly behind: number;
  readonly failedSince?: number;
  readonly failures: number;
  /** The category of the last failure. */
  readonly category?: string;
  readonly nextAttempt?: number;
  readonly lastDelivery?: number;
  readonly dead: number;
  readonly until?: number;
}

/** A schedule of the server, or one that each instance of a machine has. */
export interface ScheduleLine {
  readonly name: string;
  readonly machine?: string;
  /** The event that an instance gets. */
  readonly event?: string;
  /** `each instance` for a machine. */
  readonly state: string;
  /** Its pattern as a text. */
  readonly dates: string;
  readonly missed: string;
  readonly next?: number;
  /** The date of the slot that runs. */
  readonly running?: number;
  readonly last?: {
    readonly began: number;
    readonly tookMs: number;
    readonly manual?: true;
    /** The incident of its error. */
    readonly incident?: string;
  };
  /** The keys or handles of instances in memory, which may get the event now. */
  readonly instances?: readonly string[];
}

/** A schedule of the server, or that of one instance of a machine. */
export interface ScheduleRun {
  readonly schedule: string;
  readonly machine?: string;
  /** The key or the handle of the instance. */
  readonly instance?: string;
}

/** A dead letter: something that was given up. */
export interface DeadLetterLine extends GivenUp {
  /** True: a viewer has had it delivered again, since this process began. */
  readonly delivered?: true;
}

/** The parts of an event type that a form for a test event needs. */
export interface EventForm {
  readonly name: string;
  readonly payload: Plain;
}

/** The mail of the actor of a schedule. Types only. */
import type { Stored } from '../../core/store/store.ts';
import type { ScheduleHandler } from './schedule-definition.ts';
import type { SlotPlan } from './schedule-slots.ts';

/** A schedule of a server, as the program has registered it. */
export interface ScheduleDefinition {
  readonly name: string;
  readonly plan: SlotPlan;
  readonly timeoutMs: number;
  readonly handler: ScheduleHandler;
}

/** `term` counts the times that this process has taken the schedule: late answers of an earlier time have another one. */
export type ScheduleMail =
  | { readonly type: 'take' }
  | { readonly type: 'loaded'; readonly term: number; readonly stored: Stored | undefined }
  | { readonly type: 'stored'; readonly term: number }
  /** The store could not read or write. */
  | { readonly type: 'failed'; readonly term: number; readonly error: unknown }
  /** The time of a retry has come. */
  | { readonly type: 'again'; readonly term: number }
  | { readonly type: 'due'; readonly term: number }
  /** An operator or the program runs it now. */
  | { readonly type: 'run' }
  | { readonly type: 'deadline'; readonly run: number }
  /** The handler has returned, or thrown. */
  | { readonly type: 'ended'; readonly run: number; readonly failure: { readonly error: unknown } | undefined }
  /** @param left is called once nothing of it runs here */
  | { readonly type: 'leave'; readonly flush: boolean; left(): void }
  | { readonly type: 'given up'; readonly run: number }
  | { readonly type: 'redefine'; readonly definition: ScheduleDefinition }
  | { readonly type: 'remove' };

/** The last run of a schedule. */
export interface LastRun {
  readonly scheduledFor: string;
  /** Milliseconds since 1970, and its length. */
  readonly began: number;
  readonly tookMs: number;
  /** The incident of an error. */
  readonly incident?: string | undefined;
  /** True: an operator or the program has asked for it. */
  readonly manual?: true;
}

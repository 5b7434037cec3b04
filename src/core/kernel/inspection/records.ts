/**
 * Records of the inspection stream, one for each thing that happens to an actor. Types only. Records hold live values:
 * a listener copies what it stores.
 */
import type { AnyEventObject, AnyMachineSnapshot, AnyStateMachine } from 'xstate';
import type { HopEnd } from '../../messages/hop-records.ts';
import type { Mail } from '../../messages/mailbox.ts';
import type { ActorKind, JournalKind, RecordHeader } from './record-header.ts';

/** The commands of a viewer of the inspector. */
export type ControlAction =
  | 'send'
  | 'call'
  | 'close'
  | 'start'
  | 'again'
  | 'cancel'
  | 'answer'
  | 'complete'
  | 'watch'
  | 'unwatch'
  | 'view'
  | 'approve'
  | 'deny'
  | 'revoke'
  | 'redeliver'
  | 'emit'
  | 'run'
  | 'forget';

export type { HopEnd } from '../../messages/hop-records.ts';
export type { ActorKind, RecordHeader } from './record-header.ts';

export type InspectionRecord = RecordHeader &
  (
    | {
        readonly type: 'created';
        readonly actor: string;
        readonly kind: ActorKind;
        /** The actor that owns it, such as the request of an input request. */
        readonly parent?: string | undefined;
        /** The connection that it serves. */
        readonly connection?: string | undefined;
        /** Its display name. */
        readonly label?: string | undefined;
        /** The statechart that governs it. */
        readonly machine?: AnyStateMachine | undefined;
        /** The time of its creation: earlier than the record if it existed before the listener. */
        readonly since?: number | undefined;
      }
    | {
        readonly type: 'mail';
        readonly actor: string;
        readonly mail: Mail;
        /**
         * `queued`: it waits until its receiver has finished the current turn. `dropped`: it has no receiver any more.
         */
        readonly fate?: 'queued' | 'dropped' | undefined;
      }
    | { readonly type: 'state'; readonly actor: string; readonly state: string }
    /** A statechart received an event. */
    | {
        readonly type: 'step';
        readonly actor: string;
        readonly event: AnyEventObject;
        /** The transitions that were taken, in order, by the ids of the chart (`src/features/charts/`). */
        readonly edges: readonly string[];
        /** The snapshot after the step. It never changes: XState creates a new one for each step. */
        readonly snapshot: AnyMachineSnapshot;
        /** False: no state handled the event. */
        readonly handled: boolean;
      }
    /**
     * A timer of a statechart started; without `due`, it fired or was cancelled. In milliseconds; `due` by the server's
     * clock.
     */
    | {
        readonly type: 'timer';
        readonly actor: string;
        readonly id: string;
        readonly event: string;
        readonly delay: number;
        readonly due?: number | undefined;
      }
    /** A statechart emitted an event to its listeners. */
    | { readonly type: 'emit'; readonly actor: string; readonly event: AnyEventObject }
    | {
        readonly type: 'crashed';
        readonly actor: string;
        readonly mail: string;
        readonly error: unknown;
        readonly quarantined: boolean;
      }
    /** A handler threw an error. The cause leads to its request. */
    | {
        readonly type: 'failed';
        /** The executor that ran the handler. */
        readonly actor: string;
        /** The element, such as `tool "echo"`. */
        readonly element: string;
        readonly error: unknown;
        /** The id in the operator's log; undefined for an error that its author wrote for the client. */
        readonly incident?: string | undefined;
      }
    | { readonly type: 'gone'; readonly actor: string; readonly why: string }
    /** A message crossed the wire. Text only: the inspection never parses it. */
    | {
        readonly type: 'wire';
        readonly connection: string;
        readonly direction: 'in' | 'out';
        readonly text: string;
        /**
         * The `wire` record of the request to which this message belongs; 0 if it belongs to none or the request is
         * unknown.
         */
        readonly about?: number | undefined;
      }
    /**
     * A request crosses nodes: it was sent to the owner of its cell, or arrived from its entry. The number of the
     * exchange is the same at both nodes.
     */
    | {
        readonly type: 'hop';
        readonly way: 'to' | 'from';
        readonly node: string;
        readonly number: number;
        /** At the entry, once it has ended. */
        readonly end?: HopEnd | undefined;
      }
    | JournalRecord
    /** A viewer controlled the server. */
    | { readonly type: 'control'; readonly action: ControlAction; readonly data: object }
  );

/** The run of a script did something, in the order of its journal. */
export interface JournalRecord {
  readonly type: 'journal';
  readonly actor: string;
  /** Grows by 1: an entry may be recorded again for a viewer that came later. */
  readonly index: number;
  readonly what: JournalKind;
  /** In milliseconds since 1970. Absent: an earlier process did it, at an unknown time. */
  readonly date?: number | undefined;
  /** The number of the call. */
  readonly call?: number | undefined;
  /** The function that was called. */
  readonly name?: string | undefined;
  /** The line of the script. */
  readonly line?: number | undefined;
  /** Its arguments, its result, its question, its script. */
  readonly data?: unknown;
}

/** A record without its header. */
export type NewRecord<R = InspectionRecord> = R extends RecordHeader ? Omit<R, keyof RecordHeader> : never;

export type InspectionListener = (record: InspectionRecord) => void;

/** One thing for which an actor waits. */
export interface Waits {
  /** Such as `an answer to "Refund 20 €?"`. */
  readonly what: string;
  /** Such as `the user of claude 1.0`. */
  readonly whom?: string | undefined;
  /** In milliseconds of the server's clock. Absent: without a deadline. */
  readonly until?: number | undefined;
  /** The whole duration in milliseconds, if known. */
  readonly lasts?: number | undefined;
  /** The record that started the wait. */
  readonly because?: number | undefined;
}

/** Named facts about an actor: plain values. */
export type Facts = Readonly<Record<string, unknown>>;

/** A statechart and its current snapshot. */
export interface Charted {
  readonly machine: AnyStateMachine;
  readonly snapshot: AnyMachineSnapshot;
}

/** The observation of the inside of an actor. */
export interface Watching {
  /** Records of everything that runs inside of it, for a listener that came after they started. */
  running(): readonly NewRecord[];
  end(): void;
}

/** A live actor as the inspection sees it. Only its kind and its state are read without a viewer. */
export interface LiveRecord {
  readonly kind: ActorKind;
  readonly parent?: string | undefined;
  readonly connection?: string | undefined;
  readonly label?: string | undefined;
  state(): string;
  /** Records its state if it differs from the last recorded one. */
  reportState?(): void;
  chart?(): Charted | undefined;
  facts?(): Facts | undefined;
  waits?(): readonly Waits[] | undefined;
  /** The number of messages in its mailbox. */
  queued?(): number;
  /** Also records what happens inside of it, until the observation ends. */
  watch?(): Watching | undefined;
  /** Sends its statechart an event for an operator. Absent: it accepts no events from outside. */
  give?(event: AnyEventObject): void;
}

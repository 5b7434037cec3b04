/** What an inspection tells: one record for each thing that happens to an actor. Types only. Records hold live values: whoever keeps one copies what it needs. */
import type { AnyEventObject, AnyMachineSnapshot, AnyStateMachine } from 'xstate';
import type { Mail } from '../messages/mailbox.ts';
import type { ActorKind, RecordHeader } from './record-header.ts';

export type { ActorKind, RecordHeader } from './record-header.ts';

export type InspectionRecord = RecordHeader &
  (
    | {
        readonly type: 'created';
        readonly actor: string;
        readonly kind: ActorKind;
        /** The actor that it belongs to, such as the request of an ask. */
        readonly parent?: string | undefined;
        /** The connection that it serves. */
        readonly connection?: string | undefined;
        /** What people call it. */
        readonly label?: string | undefined;
        /** The statechart that governs it. */
        readonly machine?: AnyStateMachine | undefined;
      }
    | {
        readonly type: 'mail';
        readonly actor: string;
        readonly mail: Mail;
        /** It waits until its receiver has done what it does now; or nobody is there any more to receive it. */
        readonly fate?: 'queued' | 'dropped' | undefined;
      }
    | { readonly type: 'state'; readonly actor: string; readonly state: string }
    /** A statechart was given an event. */
    | {
        readonly type: 'step';
        readonly actor: string;
        readonly event: AnyEventObject;
        /** The transitions that were taken, in order, as its chart names them (`src/charts/`). */
        readonly edges: readonly string[];
        /** What it is after the step. Not changed later: XState makes another for each step. */
        readonly snapshot: AnyMachineSnapshot;
        /** False: no state took the event. */
        readonly handled: boolean;
      }
    /** A delay of a statechart began; without `due`, it fired or was cancelled. Milliseconds; `due` by the server's clock. */
    | {
        readonly type: 'timer';
        readonly actor: string;
        readonly id: string;
        readonly event: string;
        readonly delay: number;
        readonly due?: number | undefined;
      }
    /** A statechart emitted an event to whoever listens. */
    | { readonly type: 'emit'; readonly actor: string; readonly event: AnyEventObject }
    | {
        readonly type: 'crashed';
        readonly actor: string;
        readonly mail: string;
        readonly error: unknown;
        readonly setAside: boolean;
      }
    | { readonly type: 'gone'; readonly actor: string; readonly why: string }
    /** A message crossed the wire: text only, never parsed here. */
    | {
        readonly type: 'wire';
        readonly connection: string;
        readonly direction: 'in' | 'out';
        readonly text: string;
        /** The `wire` record that brought the request which this is about; 0 where it is about none, or that is not known. */
        readonly about?: number | undefined;
      }
    /** Somebody who looks into the server has told it to do something. */
    | { readonly type: 'control'; readonly action: 'send' | 'call' | 'close'; readonly data: object }
  );

/** A record before it has its place. */
export type Untold<R = InspectionRecord> = R extends RecordHeader ? Omit<R, keyof RecordHeader> : never;

export type InspectionListener = (record: InspectionRecord) => void;

/** What an actor waits for. */
export interface Waits {
  /** Such as `an answer to "Refund 20 €?"`. */
  readonly what: string;
  /** Such as `the user of claude 1.0`. */
  readonly whom?: string | undefined;
  /** In milliseconds of the server's clock. Absent: for as long as it takes. */
  readonly until?: number | undefined;
  /** How long it is in all, in milliseconds, where that is known. */
  readonly lasts?: number | undefined;
  /** The record that made it wait. */
  readonly because?: number | undefined;
}

/** What is worth knowing of an actor, by name: plain values. */
export type Facts = Readonly<Record<string, unknown>>;

/** A statechart, and where it is. */
export interface Charted {
  readonly machine: AnyStateMachine;
  readonly snapshot: AnyMachineSnapshot;
}

/** An actor that lives, as an inspection sees it. Everything but its kind and state is asked only while somebody looks. */
export interface LiveRecord {
  readonly kind: ActorKind;
  readonly parent?: string | undefined;
  readonly connection?: string | undefined;
  readonly label?: string | undefined;
  state(): string;
  /** Tells its state, if it is another than was told. */
  tellState?(): void;
  chart?(): Charted | undefined;
  facts?(): Facts | undefined;
  waits?(): readonly Waits[] | undefined;
  /** How much mail waits for its turn. */
  queued?(): number;
  /** Tells also what goes on inside of it, from now on until the returned function is called. */
  watch?(): (() => void) | undefined;
  /** Gives its statechart an event, for an operator. Absent: it takes none from outside. */
  give?(event: AnyEventObject): void;
}

/** What an author says of a machine whose instances live behind handles, and who calls them. Types only. */
import type { AnyMachineSnapshot, AnyStateMachine } from 'xstate';
import type { Context } from '../input/context.ts';
import type { HandleView } from '../messages/handle-messages.ts';
import type { JsonValue } from '../protocol/json.ts';

/** Who calls. */
export interface Caller {
  readonly principal: string;
  /** Of the request that calls: what the machine asks goes to its client. Undefined where nobody can be asked. */
  readonly ctx: Context | undefined;
}

/** A machine that is offered. */
export interface MachineKind {
  readonly name: string;
  readonly machine: AnyStateMachine;
  /** Which version of the machine this is; a snapshot of another is migrated, finished on its own machine, or refused. */
  readonly version: string;
  /** The types of the events that clients may send: each written out, no wildcards, none of XState's own. */
  readonly events: readonly string[];
  /** What clients are shown of an instance. */
  view?(snapshot: AnyMachineSnapshot): unknown;
  /** Makes of an instance of another version one of this. May be called again for the same instance, if the process dies meanwhile. Undefined leaves it to the machine that it began with. */
  migrate?(old: OldInstance): Migrated | undefined;
  /** Machines of earlier versions, by version: what `migrate` does not take is finished on its own. */
  readonly previous?: Readonly<Record<string, AnyStateMachine>> | undefined;
  /** Milliseconds that an instance lives, from when it was created. Default: limits.handleTtlMs. */
  readonly ttlMs?: number | undefined;
  /** Milliseconds that an instance lives without being sent an event or looked at. Default: limits.handleIdleMs. */
  readonly idleMs?: number | undefined;
}

/** An instance as another version of its machine has left it. */
export interface OldInstance {
  readonly version: string;
  /** The state, as XState has it. */
  readonly value: JsonValue;
  /** What JSON kept of the context. */
  readonly context: JsonValue;
}

/** Where the instance is to go on in this version. Its states are entered as after a restart: without entry actions; what they invoke starts. */
export interface Migrated {
  readonly value: JsonValue;
  readonly context: unknown;
}

export interface SendOptions {
  /** What makes a repetition of the same event known: it is applied once, and the repetition answered with what the first came to. */
  readonly idempotencyKey?: string | undefined;
}

export interface HandlePage {
  /** The oldest first. */
  readonly handles: readonly HandleView[];
  /** What to give as `after` for the next page; undefined on the last. */
  readonly after: string | undefined;
}

/** An instance has changed, durably. */
export interface HandleChange {
  readonly view: HandleView;
  readonly principal: string;
  /** It was created just now, changed, or is gone (expired, or forgotten after it has ended). */
  readonly type: 'created' | 'changed' | 'gone';
}

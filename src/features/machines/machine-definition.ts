/** The definition of a machine whose instances live behind handles, and the caller of an instance. Types only. */
import type { AnyMachineSnapshot, AnyStateMachine } from 'xstate';
import type { Context } from '../../core/execution/context.ts';
import type { Auth } from '../../core/messages/auth.ts';
import type { JsonValue } from '../../core/protocol/json.ts';
import type { HandleView } from './handle-messages.ts';
import type { InstanceSchedule } from './instance-slot.ts';
import type { KeyedBy } from './keys.ts';
import type { EmitRule } from './messages/emitted-events.ts';
import type { Roles } from './role-types.ts';

/** The caller of an instance. */
export interface Caller {
  readonly principal: string;
  /** The context of the calling request: its client receives the questions of the machine. Undefined if no client can be asked. */
  readonly ctx: Context | undefined;
  /** True for a person in a view of the instance. Questions then stay open for the view. */
  readonly inView?: boolean;
  /** The authenticated caller, for one without a context. */
  readonly auth?: Auth | undefined;
  /** The id of the caller's session, for one without a context. */
  readonly session?: string | undefined;
  /** True for the program itself: it needs no role, and may send every event of the chart. */
  readonly isProgram?: boolean;
  /** True for another instance, whose message it is: it may send every event of the chart, and names the key. It has a role as others have. */
  readonly isInstance?: boolean;
}

/** The caller who creates the instance of a key. */
export type KeyHolder = { readonly auth: Auth | undefined; readonly principal: string; readonly key: string };

/** The keys of a machine whose instances have one each. */
export interface KeyedKind {
  readonly kind: KeyedBy;
  /** The argument of the tools that has the key; undefined for a key that the caller itself gives. */
  readonly argument: string | undefined;
  /** The tenant of a caller, for a key of that kind. */
  tenantOf?(auth: Auth): unknown;
  /** The way in which an instance is created: by its first event, by the tool `create` alone, or by an event of a caller for whom the rule is true. */
  readonly create: 'event' | 'create' | ((holder: KeyHolder) => unknown);
  readonly roles: Roles | undefined;
  /** True for an instance that does not expire before its final state. */
  readonly keep: boolean;
}

/** A machine that the server offers. */
export interface MachineKind {
  readonly name: string;
  readonly machine: AnyStateMachine;
  /** The version of the machine. A snapshot of another version is migrated, resumed on its old machine, or rejected. */
  readonly version: string;
  /** The types of the events that clients may send, without wildcards and without XState's own events. */
  readonly events: readonly string[];
  /** Returns the data of an instance to show to clients. */
  view?(snapshot: AnyMachineSnapshot): unknown;
  /**
   * Converts an instance of another version to this one. It may be called again for the same instance if the process dies.
   * If it returns undefined, the instance finishes on its old machine.
   */
  migrate?(old: OldInstance): Migrated | undefined;
  /** Machines of earlier versions, by version, on which instances finish that are not migrated. */
  readonly previous?: Readonly<Record<string, AnyStateMachine>> | undefined;
  /** Maximum lifetime of an instance in milliseconds, from its creation. Default: limits.handleTtlMs. */
  readonly ttlMs?: number | undefined;
  /**
   * Milliseconds without use after which an instance expires that waits for no delay, invocation or answer. Default: the
   * longer one of `ttlMs`, if it is set, and `limits.handleIdleMs`.
   */
  readonly idleMs?: number | undefined;
  /** Its keys; undefined for instances with unguessable handles. */
  readonly keyed?: KeyedKind | undefined;
  /** The schedules of each instance, by their names; undefined without any. */
  readonly schedules?: ReadonlyMap<string, InstanceSchedule> | undefined;
  /** The events of topics that its instances emit. */
  readonly emits?: readonly EmitRule[] | undefined;
  /** True if views show its instances: they can answer its questions. */
  readonly hasViews?: boolean;
}

/** An instance in the form that another version of its machine stored. */
export interface OldInstance {
  readonly version: string;
  /** The state value, as XState represents it. */
  readonly value: JsonValue;
  /** The context, as JSON represents it. */
  readonly context: JsonValue;
}

/** The state from which the instance resumes in this version. Its states are entered without entry actions, and their invocations start. */
export interface Migrated {
  readonly value: JsonValue;
  readonly context: unknown;
}

export interface SendOptions {
  /** A name for the call. A repeated call with the same key is not run again; it receives the answer of the first. */
  readonly idempotencyKey?: string | undefined;
  /** `false`: an event for a key without an instance is rejected. Default: it creates the instance. */
  readonly create?: boolean | undefined;
}

export interface HandlePage {
  /** Oldest first. */
  readonly handles: readonly HandleView[];
  /** The `after` argument of the next page; undefined on the last page. */
  readonly after: string | undefined;
}

/** A durable change of an instance. */
export interface HandleChange {
  readonly machine: string;
  readonly handle: string;
  /** Its key, if it has one that is known. */
  readonly key?: string | undefined;
  readonly principal: string;
  /** Returns the view after the change. Call it in the listener only: creating it takes time, and the next change replaces it. */
  view(): HandleView;
  /** `gone`: it expired, or was deleted after its end. */
  readonly type: 'created' | 'changed' | 'gone';
}

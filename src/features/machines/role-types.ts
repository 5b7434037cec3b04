/** The roles of the callers of an instance, and the caller whose role is asked for. Types only. */
import type { AnyMachineSnapshot } from 'xstate';
import type { Auth } from '../../core/messages/auth.ts';

/** The rights of the callers of one role. */
export interface Role {
  /** The events that they may send, and `end`; `*` for all of them. */
  readonly events: '*' | readonly string[];
  /** Returns the data that they see, in place of the `view` of the machine. */
  view?(snapshot: AnyMachineSnapshot): unknown;
  /** True if they may answer the questions of the instance that the event of another caller has led to. */
  readonly answers?: boolean | undefined;
}

/** The caller whose role is asked for, and the instance as it is. */
export interface RoleQuery<Context = unknown> {
  /** Undefined for an anonymous caller. */
  readonly auth: Auth | undefined;
  readonly principal: string;
  readonly key: string;
  /** The context of the machine. */
  readonly context: Context;
}

/** The roles of a machine. */
export interface Roles {
  /** Names the role of a caller; undefined for one who may not know of the instance. */
  of(query: RoleQuery): unknown;
  readonly byName: ReadonlyMap<string, Role>;
}

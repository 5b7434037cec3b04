/** The roles of the callers of an instance: what each may send, see and answer. They are decided on the snapshot that a call meets. */
import type { AnyMachineSnapshot } from 'xstate';
import type { Auth } from '../../core/messages/auth.ts';
import { describe } from '../../core/protocol/json.ts';
import { type HandleRecord, handleAddress } from './handle-record.ts';
import type { InstanceServices } from './instance-services.ts';
import type { Caller, MachineKind } from './machine-definition.ts';
import type { Role } from './role-types.ts';

/** The role of the program, and of every caller of a machine without roles. */
export const EVERY_RIGHT: Role = { events: '*', answers: true };

/** The role of a caller who has just lost its own by its event: the answer says that it was accepted, and no more. */
export const NO_RIGHT: Role = { events: [], view: () => undefined };

type RoleHost = Pick<InstanceServices, 'incident'>;

/**
 * Returns the role of a caller; undefined for none, which the caller cannot distinguish from an instance that does not exist.
 * A function that throws or names no role gives none.
 */
export function roleOf(
  { name, keyed }: Pick<MachineKind, 'name' | 'keyed'>,
  { key, handle }: Pick<HandleRecord, 'key' | 'handle'>,
  caller: Caller,
  snapshot: AnyMachineSnapshot,
  host: RoleHost,
): Role | undefined {
  if (!keyed?.roles || caller.isProgram) return EVERY_RIGHT;
  const where = `roles of ${handleAddress({ name, handle })}`;
  const { principal } = caller;
  try {
    const named = keyed.roles.of({ auth: authIn(caller), principal, key: key ?? '', context: snapshot.context });
    if (named === undefined || named === null || named === false) return undefined;
    const role = typeof named === 'string' ? keyed.roles.byName.get(named) : undefined;
    if (!role)
      host.incident(where, new TypeError(`of: expected the name of a role or undefined, got ${describe(named)}`));
    return role;
  } catch (error) {
    host.incident(where, error);
    return undefined;
  }
}

/** The authenticated caller; undefined for an anonymous one. */
export function authIn({ auth, ctx }: Caller): Auth | undefined {
  return auth ?? ctx?.auth;
}

/** True if a role includes an event, or `end`. */
export function includes({ events }: Role, does: string): boolean {
  return events === '*' || events.includes(does);
}

/** True if callers of a role may answer questions that others have caused. */
export function mayAnswer({ events, answers = events === '*' }: Role): boolean {
  return answers;
}

/** The options of a machine whose instances have keys: `key`, `create`, `roles`, `tenant` and `keep`. */
import type { AnyStateMachine, ContextFrom, SnapshotFrom } from 'xstate';
import { describe, isObject } from '../../core/protocol/json.ts';
import * as option from '../../core/protocol/option-rows.ts';
import type { Checks } from '../../core/registry/definition-checks.ts';
import type { AuthorSchema } from '../../core/schema/schema-types.ts';
import type { KeyHolder } from './machine-definition.ts';
import type { RoleQuery } from './role-types.ts';

/** The key of the instances of a machine. */
export type MachineKey =
  /** Each user has one instance. */
  | 'principal'
  /** Each tenant has one; see the option `tenant`. */
  | 'tenant'
  /** Each session has one. */
  | 'session'
  /** The instance of the name that an argument of each tool has. */
  | {
      readonly argument: string;
      /** The schema of the argument. Default: any text of 1 to 256 bytes without control characters. */
      readonly schema?: AuthorSchema | undefined;
    };

/** The rights of the callers of one role. */
export interface RoleOptions<M extends AnyStateMachine = AnyStateMachine, Event = string> {
  /** The events that they may send, and `end`, which ends the instance; `*` for all of them. */
  readonly events: '*' | readonly (Event | 'end')[];
  /** Returns the data that they see. Default: the `view` of the machine. */
  view?(snapshot: SnapshotFrom<M>): unknown;
  /** True if they may answer questions that the event of another caller has led to. Default: true for `events: '*'`. */
  readonly answers?: boolean | undefined;
}

/** Names the role of a caller by the instance as it is; undefined for a caller who may not know that it exists. */
export type RoleFunction<M extends AnyStateMachine = AnyStateMachine> = (
  query: RoleQuery<ContextFrom<M>>,
) => string | undefined | null | false;

/** The roles of a machine by their names, and `of`, which chooses one. */
export type RolesOption<M extends AnyStateMachine = AnyStateMachine, Event = string> = {
  readonly of: RoleFunction<M>;
  readonly [role: string]: RoleOptions<M, Event> | RoleFunction<M>;
};

/** Those of a machine of any types. */
export type AnyRoles = {
  readonly of: (query: never) => unknown;
  readonly [role: string]:
    | {
        readonly events: '*' | readonly string[];
        view?(snapshot: never): unknown;
        readonly answers?: boolean | undefined;
      }
    | ((query: never) => unknown);
};

/** The way in which the instance of a key is created. */
export type CreateOption = 'event' | 'create' | ((holder: KeyHolder) => boolean);

const ARGUMENT = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/;
/** The arguments that a tool of a machine may have besides. */
const TAKEN = ['handle', 'idempotencyKey', 'event', 'data', 'type'];

const key: option.Check = (value) => {
  if (value === 'principal' || value === 'tenant' || value === 'session') return undefined;
  const { argument } = isObject(value) ? value : {};
  if (typeof argument !== 'string')
    return `expected "principal", "tenant", "session" or an object such as { argument: 'room' }, got ${describe(value)}`;
  if (ARGUMENT.test(argument) && !TAKEN.includes(argument)) return undefined;
  return `argument: expected a name of letters, digits, "_" and "-" that is none of ${TAKEN.join(', ')}, got ${describe(argument)}`;
};

const role = option.members({
  events: option.expected('"*" or a list of events', (value) => value === '*' || option.areStrings(value)),
  view: option.functional,
  answers: option.flag,
});

const roles: option.Check = (value) => {
  if (!isObject(value) || typeof value.of !== 'function')
    return `expected an object such as { of: ({ principal }) => …, member: { events: '*' } }, got ${describe(value)}`;
  const { of: _, ...byName } = value;
  if (Object.keys(byName).length === 0) return "expected a role besides of, such as member: { events: '*' }";
  for (const [name, given] of Object.entries(byName)) {
    const problem =
      isObject(given) && given.events !== undefined ? role(given) : `expected { events }, got ${describe(given)}`;
    if (problem !== undefined) return `${name}: ${problem}`;
  }
  return undefined;
};

export const KEY_MEMBERS: Checks = {
  key,
  create: option.expected(
    '"event", "create" or a function',
    (value) => value === 'event' || value === 'create' || typeof value === 'function',
  ),
  roles,
  tenant: option.functional,
  keep: option.flag,
};

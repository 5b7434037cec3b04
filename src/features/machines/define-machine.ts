/** The options of a machine whose instances live behind handles, and `defineMachine` for modules that are discovered. */

import type { AnyStateMachine, EventFrom, InputFrom, SnapshotFrom } from 'xstate';
import type { Auth } from '../../core/messages/auth.ts';
import type { AuthorizationRule } from '../../core/messages/authorization-rule.ts';
import type { Icon, ToolAnnotations } from '../../core/protocol/types.ts';
import { DEFINED, type Defined } from '../../core/registry/define.ts';
import type { AuthorSchema, Infer, MaybeInput, ObjectSchema } from '../../core/schema/schema-types.ts';
import type { Translations, ViewLabels, ViewWords } from '../apps/view-texts.ts';
import type { CallLimits } from '../guard/limits/call-limits.ts';
import type { MachineSchedule } from '../schedules/schedule-definition.ts';
import type { AnyRoles, CreateOption, MachineKey, RolesOption } from './key-options.ts';
import type { Migrated, OldInstance } from './machine-definition.ts';
import type { Added, EventSchemas, MachineInput, OneMachine } from './machine-types.ts';
import type { EmitOption } from './messages/emitted-events.ts';

declare module '../../core/server/options.ts' {
  interface ServerOptions {
    /** Machines of `defineMachine`. `typeof server` has the types of their tools. */
    readonly machines?: readonly AnyMachine[] | undefined;
  }
}

/** The view of a machine's instances. */
export interface MachineAppOptions {
  /** The tools whose results open a view. Default: both. */
  readonly on?: readonly ('create' | 'get')[] | undefined;
  readonly title?: string | undefined;
  /** Events, and members of `view`, that the view leaves out. */
  readonly hide?: readonly string[] | undefined;
  /** Events, and members of `view`, in their order; the others follow. */
  readonly order?: readonly string[] | undefined;
  /** Events that the view sends only after a second confirmation. Default: those with `destructiveHint`, and `end`. */
  readonly confirm?: readonly string[] | undefined;
  /** `picture` (default): the chart is drawn where it has room. `steps`: a list of the states. */
  readonly chart?: 'picture' | 'steps' | undefined;
  /** Names for people. */
  readonly labels?: ViewLabels | undefined;
  /** Other sentences and words of the page itself. */
  readonly words?: Partial<ViewWords> | undefined;
  /** The texts in other languages, by their tags, such as `de`: the language of the host decides. */
  readonly translations?: Translations | undefined;
}

export interface MachineOptions<
  M extends AnyStateMachine = AnyStateMachine,
  I extends MaybeInput = AuthorSchema | undefined,
  E extends EventSchemas = EventSchemas,
  V = unknown,
  Single extends boolean = boolean,
  K extends MachineKey | undefined = MachineKey | undefined,
  C extends CreateOption | undefined = CreateOption | undefined,
> {
  /** The display name. */
  readonly title?: string | undefined;
  /** Tells a model, before it creates an instance, what one represents and when to use it. */
  readonly description?: string | undefined;
  /** The scopes that each use of the machine needs: its tools, and the resources of its instances. */
  readonly scopes?: readonly string[] | undefined;
  /** More scopes, by event, or `create`, `get`, `list`, `end`. */
  readonly eventScopes?:
    | Readonly<Partial<Record<keyof E | 'create' | 'get' | 'list' | 'end', readonly string[]>>>
    | undefined;
  /** A rule for each use of the machine; `call.element.machine` names the event. */
  readonly allow?: AuthorizationRule | undefined;
  readonly icons?: readonly Icon[] | undefined;
  /**
   * The events that clients may send, by type. All other events are rejected, and so are XState's own. The schema describes
   * the other members of the event. A description in the schema is shown to the model; otherwise that of the transition is.
   */
  readonly events: E & EventsFit<M, E, K>;
  /**
   * Gives each instance a key: one for each `'principal'`, `'tenant'` or `'session'`, or for each value of an argument. The tools then
   * take no handle, and the instance of a key exists once in all nodes. Default: unguessable handles. See docs/keys.md.
   */
  readonly key?: K;
  /**
   * The instance of a key is created by its first accepted event (`'event'`, the default), by the tool `<name>_create` alone
   * (`'create'`), or by an event of a caller for whom a function returns true.
   */
  readonly create?: C;
  /** The roles of the callers of an instance. Required for a key by argument, because a name is not a permission. */
  readonly roles?: RolesOption<M, keyof E & string> | undefined;
  /**
   * Returns the tenant of a caller, for `key: 'tenant'`; undefined for a caller without one.
   *
   * @example tenant: (auth) => auth.claims.org
   */
  tenant?(auth: Auth): unknown;
  /** The instance of a key does not expire before its final state. Default false. */
  readonly keep?: boolean | undefined;
  /** The schema of the machine's input, which becomes the arguments of `<name>_create`. Default: any object. */
  readonly input?: (I & ObjectSchema<I>) | undefined;
  /** Returns the JSON data of an instance to show to clients. Default: only its state. */
  view?(snapshot: SnapshotFrom<M>): V;
  /**
   * The schemas of the data that `view` returns, and of the machine's output. Clients read them in the output schema of the tools;
   * a result that does not fit is an error of its call.
   */
  readonly schemas?:
    | { readonly view?: AuthorSchema | undefined; readonly output?: AuthorSchema | undefined }
    | undefined;
  /**
   * Shows each instance in hosts with views: its chart, its state, forms for the events that it accepts, its questions and
   * its delays. See docs/apps.md.
   */
  readonly app?: boolean | MachineAppOptions | undefined;
  /**
   * The version of the machine. Change it if the meaning of the context changes. Default: a fingerprint of the chart, which
   * changes only with its states, transitions and invocations.
   */
  readonly version?: string | undefined;
  /** Converts an instance of another version to this one. If it returns undefined, the instance finishes on its old machine. */
  migrate?(old: OldInstance): Migrated | undefined;
  /** The machines of earlier versions, by version, on which instances finish that are not migrated. */
  readonly previous?: Readonly<Record<string, AnyStateMachine>> | undefined;
  /** Maximum lifetime of an instance in milliseconds, from its creation. Default: `limits.handleTtlMs`. */
  readonly ttlMs?: number | undefined;
  /**
   * Milliseconds without use after which an instance expires that waits for no delay, invocation or answer. Default: the
   * longer one of `ttlMs`, if it is set, and `limits.handleIdleMs`.
   */
  readonly idleMs?: number | undefined;
  /**
   * The schedules of each instance, by their names: at its dates, a slot sends the instance an event. See docs/schedules.md.
   *
   * @example schedules: { nightly: { cron: '0 3 * * *', timeZone: 'Europe/Berlin', event: 'tidy' }, beat: { everyMs: 60_000, event: 'beat' } }
   */
  readonly schedules?: Readonly<Record<string, MachineSchedule<EventFrom<M>['type']>>> | undefined;
  /** Offer one tool `<name>_send` with the event as an argument, instead of one tool for each event. Default false. */
  readonly single?: Single | undefined;
  /** Additional annotations of the tools that change an instance: by event, or `create`, `send`. */
  readonly annotations?: Readonly<Partial<Record<keyof E | 'create' | 'send', ToolAnnotations>>> | undefined;
  /**
   * Offer the manual of the machine as a skill `skill://<server>/<name>/SKILL.md`, made from its chart: its states, and the
   * calls that each of them accepts. See docs/skills.md. Default false.
   */
  readonly skill?: boolean | undefined;
  /**
   * The events of `server.event` that its instances emit when they enter a state or take an event, in the commit of that turn. See
   * docs/messages.md.
   */
  readonly emits?: Readonly<Record<string, EmitOption<SnapshotFrom<M>['context']>>> | undefined;
  /** Timeout of a call in milliseconds. Default: the server's timeout. */
  readonly timeoutMs?: number | undefined;
  /**
   * Limits of the tools, for each principal: by event, or `create`, `send`, `get`, `list`, `end`. With `single`, all events
   * have those of `send`. See docs/guard.md, "Limits".
   */
  readonly limits?:
    | Readonly<Partial<Record<keyof E | 'create' | 'send' | 'get' | 'list' | 'end', CallLimits>>>
    | undefined;
}

export interface MachineDefinition<
  M extends AnyStateMachine = AnyStateMachine,
  I extends MaybeInput = AuthorSchema | undefined,
  E extends EventSchemas = EventSchemas,
  V = unknown,
  Single extends boolean = boolean,
  K extends MachineKey | undefined = MachineKey | undefined,
  C extends CreateOption | undefined = CreateOption | undefined,
> extends MachineOptions<M, I, E, V, Single, K, C> {
  /** The prefix of the names of its tools: `<name>_create`, `<name>_<event>`, `<name>_get`, `<name>_list`, `<name>_end`. */
  readonly name: string;
  readonly machine: M & TakesInput<M, MachineInput<I, K>>;
}

/** Produces a type error that names the input which the machine requires and the schema does not provide. */
export type TakesInput<M extends AnyStateMachine, Args> =
  Args extends InputFrom<M> ? unknown : { readonly 'its input, which the schema does not give': InputFrom<M> };

/** Produces a type error that names the event which the machine does not have, or the members which the schema does not provide. */
type EventsFit<M extends AnyStateMachine, E, K> = {
  readonly [T in keyof E]: string extends EventFrom<M>['type']
    ? E[T]
    : T extends EventFrom<M>['type']
      ? MembersFit<Omit<Extract<EventFrom<M>, { readonly type: T }>, Added<K>>, E[T]>
      : { readonly 'no event of the machine, which has': EventFrom<M>['type'] };
};

type MembersFit<Members, S> = (S extends AuthorSchema ? Infer<S> : object) extends Members
  ? S
  : { readonly 'its other members, which the schema does not give': Members };

/** A machine of any types, as the runtime handles it. */
export interface AnyMachine
  extends Omit<
    MachineOptions,
    'emits' | 'events' | 'view' | 'annotations' | 'eventScopes' | 'limits' | 'roles' | 'schedules'
  > {
  readonly schedules?: Readonly<Record<string, MachineSchedule>> | undefined;
  readonly name: string;
  readonly machine: AnyStateMachine;
  readonly events: EventSchemas;
  readonly emits?: Readonly<Record<string, object>> | undefined;
  view?(snapshot: never): unknown;
  readonly roles?: AnyRoles | undefined;
  readonly annotations?: Readonly<Partial<Record<string, ToolAnnotations>>> | undefined;
  readonly eventScopes?: Readonly<Partial<Record<string, readonly string[]>>> | undefined;
  readonly limits?: Readonly<Partial<Record<string, CallLimits>>> | undefined;
}

/**
 * Defines a machine for `createServer({ machines })` or `server.discover`. Equivalent to `server.machine(name, machine, options)`.
 *
 * @example export default defineMachine({ name: 'order', machine: orderMachine, events: { pay: true } });
 */
export function defineMachine<
  const N extends string,
  M extends AnyStateMachine,
  const I extends MaybeInput = undefined,
  const E extends EventSchemas = EventSchemas,
  V = unknown,
  const Single extends boolean = false,
  const K extends MachineKey | undefined = undefined,
  const C extends CreateOption | undefined = undefined,
>(
  definition: MachineDefinition<M, I, E, V, Single, K, C> & { readonly name: N },
): Defined<'machine', MachineDefinition<M, I, E>, OneMachine<N, M, I, E, V, Single, K, C>> {
  return { ...definition, [DEFINED]: 'machine' };
}

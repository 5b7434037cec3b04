/** How authors write a machine whose instances live behind handles; `defineMachine`, for modules that are discovered. */
import type { AnyStateMachine, EventFrom, InputFrom, SnapshotFrom } from 'xstate';
import type { Icon, ToolAnnotations } from '../protocol/types.ts';
import { DEFINED, type Defined } from '../registry/define.ts';
import type { AuthorSchema, Infer } from '../schema/schema-types.ts';
import type { Migrated, OldInstance } from './machine-definition.ts';

/** What clients may send: an event's type, and the schema of its other members, or `true` where it has none. */
export type EventSchemas = Readonly<Record<string, true | AuthorSchema>>;

export interface MachineOptions<
  M extends AnyStateMachine = AnyStateMachine,
  I extends AuthorSchema | undefined = AuthorSchema | undefined,
  E extends EventSchemas = EventSchemas,
> {
  /** For people; the name is for programs. */
  readonly title?: string;
  /** What an instance is, and what it is good for: a model reads it before it makes one. */
  readonly description?: string;
  readonly icons?: readonly Icon[];
  /**
   * The events that clients may send, by type; all others are refused, and so are XState's own. What a schema gives are the
   * event's other members. A description in the schema is told to the model, as that of the transition is.
   */
  readonly events: E & EventsFit<M, E>;
  /** What the machine takes as its input; the arguments of `<name>_create`. Absent: any object. */
  readonly input?: I;
  /** What clients are shown of an instance: data that JSON can say. Absent: its state alone. */
  view?(snapshot: SnapshotFrom<M>): unknown;
  /**
   * Which version of the machine this is. Give it another when what is in the context changes its meaning. Default: a
   * fingerprint of the chart, which changes with its states, transitions and invocations, and with nothing else.
   */
  readonly version?: string;
  /** Makes of an instance of another version one of this; undefined leaves it to the machine that it began with. */
  migrate?(old: OldInstance): Migrated | undefined;
  /** The machines of earlier versions, by version: what is not migrated finishes on its own. */
  readonly previous?: Readonly<Record<string, AnyStateMachine>>;
  /** Milliseconds that an instance lives, from when it was created. Default: `limits.handleTtlMs`. */
  readonly ttlMs?: number;
  /** Milliseconds that an instance lives without being sent an event or looked at. Default: `limits.handleIdleMs`. */
  readonly idleMs?: number;
  /** One tool `<name>_send` with the event as an argument, in place of one for each event. Default false. */
  readonly single?: boolean;
  /** What clients are told of the tools that change an instance, beside what is said of all of them: by event, or `create`, `send`. */
  readonly annotations?: Readonly<Partial<Record<keyof E | 'create' | 'send', ToolAnnotations>>>;
  /** Milliseconds until a call times out, where the server's default does not fit. */
  readonly timeoutMs?: number;
}

export interface MachineDefinition<
  M extends AnyStateMachine = AnyStateMachine,
  I extends AuthorSchema | undefined = AuthorSchema | undefined,
  E extends EventSchemas = EventSchemas,
> extends MachineOptions<M, I, E> {
  /** Begins the names of its tools: `<name>_create`, `<name>_<event>`, `<name>_get`, `<name>_list`, `<name>_end`. */
  readonly name: string;
  readonly machine: M & TakesInput<M, Infer<I>>;
}

/** Says in a type error what a machine takes whose input the schema does not give. */
export type TakesInput<M extends AnyStateMachine, Args> =
  Args extends InputFrom<M> ? unknown : { readonly 'its input, which the schema does not give': InputFrom<M> };

/** Says in a type error which event the machine does not have, or which members the schema does not give. */
type EventsFit<M extends AnyStateMachine, E> = {
  readonly [T in keyof E]: string extends EventFrom<M>['type']
    ? E[T]
    : T extends EventFrom<M>['type']
      ? MembersFit<Omit<Extract<EventFrom<M>, { readonly type: T }>, 'type'>, E[T]>
      : { readonly 'no event of the machine, which has': EventFrom<M>['type'] };
};

type MembersFit<Members, S> = (S extends AuthorSchema ? Infer<S> : object) extends Members
  ? S
  : { readonly 'its other members, which the schema does not give': Members };

/** A machine of whatever types: what the runtime handles. */
export interface AnyMachine extends Omit<MachineOptions, 'events' | 'view' | 'annotations'> {
  readonly name: string;
  readonly machine: AnyStateMachine;
  readonly events: EventSchemas;
  view?(snapshot: never): unknown;
  readonly annotations?: Readonly<Partial<Record<string, ToolAnnotations>>>;
}

/**
 * A machine that a module exports, to be found by `server.discover`: the same as `server.machine(name, machine, options)`.
 *
 * @example export default defineMachine({ name: 'order', machine: orderMachine, events: { pay: true } });
 */
export function defineMachine<
  M extends AnyStateMachine,
  const I extends AuthorSchema | undefined = undefined,
  const E extends EventSchemas = EventSchemas,
>(definition: MachineDefinition<M, I, E>): Defined<'machine', MachineDefinition<M, I, E>> {
  return { ...definition, [DEFINED]: 'machine' };
}

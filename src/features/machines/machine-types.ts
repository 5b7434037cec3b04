/** The types of the tools of a machine, from its definition. Types only. */
import type { AnyStateMachine, OutputFrom, StateValueFrom } from 'xstate';
import type { JsonObject } from '../../core/protocol/json.ts';
import type { Sent } from '../../core/protocol/server-types.ts';
import type { AuthorSchema, Infer, InferInput } from '../../core/schema/schema-types.ts';
import type { MachineKey } from './key-options.ts';

/** The events that clients may send: the schema of an event's other members by its type, or `true` if it has none. */
export type EventSchemas = Readonly<Record<string, true | AuthorSchema>>;

/** An instance, as the structured content of the tools of its machine has it. A type, because an interface is no JSON object. */
export type InstanceData<State, Event, View, Output> = {
  readonly happened?: string;
  readonly handle: string;
  readonly state: State;
  readonly status: 'active' | 'done' | 'failed' | 'ended';
  readonly view?: View;
  readonly accepts: readonly Event[];
  readonly asks?: readonly JsonObject[];
  readonly version: number;
  readonly output?: Output;
  readonly failure?: string;
  readonly created: string;
  readonly expires: string;
};

/** The same of an instance with a key. `absent`: there is none of this key. */
export type KeyedData<State, Event, View, Output> = Omit<
  InstanceData<State | 'absent', Event, View, Output>,
  'handle' | 'status' | 'created' | 'expires'
> & {
  readonly key: string;
  readonly status: 'absent' | InstanceData<State, Event, View, Output>['status'];
  readonly created?: string;
  readonly expires?: string;
};

/** The tools of a machine, and the resource of each instance. */
export type OneMachine<
  N extends string,
  M extends AnyStateMachine,
  I,
  E extends EventSchemas,
  V,
  Single,
  K = undefined,
  C = undefined,
> = string extends N
  ? unknown
  : K extends MachineKey
    ? KeyedMachine<N, M, I, E, V, Single, K, C>
    : {
        readonly tools: {
          readonly [K in `${N}_create`]: {
            readonly input: ([I] extends [AuthorSchema] ? InferInput<I> : JsonObject) & Repeatable;
            readonly output: Instance<M, E, V>;
          };
        } & {
          readonly [K in `${N}_${'get' | 'end'}`]: { readonly input: Handled; readonly output: Instance<M, E, V> };
        } & {
          readonly [K in `${N}_list`]: {
            readonly input: { readonly after?: string; readonly limit?: number };
            readonly output: JsonObject;
          };
        } & ([Single] extends [true]
            ? SendTool<N, Handled, E, Instance<M, E, V>>
            : EventTools<N, Handled, E, Instance<M, E, V>>);
        readonly resources: { readonly [K in `troupe://${N}/{handle}`]: object };
      };

/** The same of a machine whose instances have keys. */
type KeyedMachine<
  N extends string,
  M extends AnyStateMachine,
  I,
  E extends EventSchemas,
  V,
  Single,
  K extends MachineKey,
  C,
> = {
  readonly tools: {
    readonly [T in `${N}_${'get' | 'end'}`]: {
      readonly input: KeyArgument<K>;
      readonly output: KeyedInstance<M, E, V>;
    };
  } & (C extends 'create'
    ? {
        readonly [T in `${N}_create`]: {
          readonly input: KeyArgument<K> & ([I] extends [AuthorSchema] ? InferInput<I> : unknown);
          readonly output: KeyedInstance<M, E, V>;
        };
      }
    : unknown) &
    ([Single] extends [true]
      ? SendTool<N, KeyArgument<K>, E, KeyedInstance<M, E, V>>
      : EventTools<N, KeyArgument<K>, E, KeyedInstance<M, E, V>>);
  readonly resources: { readonly [U in `troupe://${N}/{key}`]: object };
};

/** The argument that names the instance; none if it is that of the caller. */
type KeyArgument<K> = K extends { readonly argument: infer A extends string }
  ? { readonly [Name in A]: string }
  : object;

/** The members of an event that its schema does not give: `by` is the sender. */
export type Added<K> = 'type' | (K extends MachineKey ? 'by' : never);

/** The input of a machine: that of its schema, with what Troupe adds if its instances have keys. */
export type MachineInput<I, K> = K extends MachineKey
  ? ([I] extends [undefined] ? unknown : Infer<I>) & { readonly key: string; readonly principal: string }
  : Infer<I>;

type EventTools<N extends string, A, E, Output> = {
  readonly [T in keyof E & string as `${N}_${T}`]: {
    readonly input: A & Repeatable & Members<E[T]>;
    readonly output: Output;
  };
};

type SendTool<N extends string, A, E, Output> = {
  readonly [K in `${N}_send`]: {
    readonly input: A &
      Repeatable &
      { [T in keyof E & string]: { readonly event: T; readonly data?: Members<E[T]> } }[keyof E & string];
    readonly output: Output;
  };
};

type Instance<M extends AnyStateMachine, E, V> = InstanceData<
  StateValueFrom<M>,
  keyof E & string,
  Sent<V>,
  Sent<OutputFrom<M>>
>;

type KeyedInstance<M extends AnyStateMachine, E, V> = KeyedData<
  StateValueFrom<M>,
  keyof E & string,
  Sent<V>,
  Sent<OutputFrom<M>>
>;

type Members<S> = S extends AuthorSchema ? InferInput<S> : unknown;

type Handled = { readonly handle: string };

type Repeatable = {
  /** A call with a key runs once, however often it is sent. */
  readonly idempotencyKey?: string;
};

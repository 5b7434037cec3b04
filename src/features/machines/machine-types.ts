/** The types of the tools of a machine, from its definition. Types only. */
import type { AnyStateMachine, OutputFrom, StateValueFrom } from 'xstate';
import type { JsonObject } from '../../core/protocol/json.ts';
import type { Sent } from '../../core/protocol/server-types.ts';
import type { AuthorSchema, InferInput } from '../../core/schema/schema-types.ts';

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

/** The tools of a machine, and the resource of each instance. */
export type OneMachine<
  N extends string,
  M extends AnyStateMachine,
  I,
  E extends EventSchemas,
  V,
  Single,
> = string extends N
  ? unknown
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
      } & ([Single] extends [true] ? SendTool<N, M, E, V> : EventTools<N, M, E, V>);
      readonly resources: { readonly [K in `troupe://${N}/{handle}`]: object };
    };

type EventTools<N extends string, M extends AnyStateMachine, E, V> = {
  readonly [T in keyof E & string as `${N}_${T}`]: {
    readonly input: Handled & Repeatable & Members<E[T]>;
    readonly output: Instance<M, E, V>;
  };
};

type SendTool<N extends string, M extends AnyStateMachine, E, V> = {
  readonly [K in `${N}_send`]: {
    readonly input: Handled &
      Repeatable &
      { [T in keyof E & string]: { readonly event: T; readonly data?: Members<E[T]> } }[keyof E & string];
    readonly output: Instance<M, E, V>;
  };
};

type Instance<M extends AnyStateMachine, E, V> = InstanceData<
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

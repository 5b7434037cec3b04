/** The calls on instances of keys, as the node that owns the instance serves them. Types only. */
import type { JsonObject } from '../../core/protocol/json.ts';
import type { TakenMessage } from './bounded-mailbox.ts';
import type { HandleEvent, HandleView, LiveHandle } from './handle-messages.ts';
import type { Caller } from './machine-definition.ts';

/** An operation on the instance of a key. */
export type KeyedOperation =
  | {
      readonly type: 'event';
      readonly event: HandleEvent;
      readonly message?: Omit<TakenMessage, 'writes'> | undefined;
      /** `false`: it creates no instance. */
      readonly create?: boolean | undefined;
    }
  | { readonly type: 'create'; readonly input: JsonObject }
  | { readonly type: 'get' | 'end' | 'look' }
  /** Answers open questions in a view, by their ids. */
  | { readonly type: 'answer'; readonly answers: JsonObject };

/** One call, as the node that owns the instance serves it. */
export interface KeyedCall {
  readonly machine: string;
  readonly key: string;
  readonly operation: KeyedOperation;
  readonly caller: Caller;
  readonly idempotencyKey: string | undefined;
}

/** A view; or the reason for each answer that does not fit. */
export type KeyedAnswer = HandleView | LiveHandle | readonly string[];

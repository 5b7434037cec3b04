/** The bounded mailbox of an instance: events, looks and its end, each with the promise of its answer. */

import type { Write } from '../../core/store/store.ts';
import { HandleError } from './handle-error.ts';
import type { HandleEvent, HandleView } from './handle-messages.ts';
import type { InstanceSlot } from './instance-slot.ts';
import type { Caller } from './machine-definition.ts';

/** The message of another instance, as the instance takes it. */
export interface TakenMessage {
  /** The handle of its sender and its number; undefined for a message that cannot arrive twice. */
  readonly from?: { readonly sender: string; readonly seq: number } | undefined;
  readonly hops: number;
  /** Writes that become durable with its turn. */
  readonly writes?: readonly Write[] | undefined;
}

export type QueuedKind =
  | {
      readonly type: 'event';
      readonly event: HandleEvent;
      readonly key: string | undefined;
      /** The message that it is, if another instance or a program of the server has sent it. */
      readonly message?: TakenMessage | undefined;
      /** The slot of a schedule that it is. */
      readonly slot?: InstanceSlot | undefined;
    }
  /** `earlier` is the answer of an earlier call with the same key. It is repeated, unless this call has led to a newer one. */
  | { readonly type: 'get'; readonly earlier?: HandleView | undefined }
  | { readonly type: 'end' };

export type QueuedCall = QueuedKind & {
  readonly caller: Caller;
  /** The inspection record that caused this call; 0 without inspection. */
  readonly cause: number;
  /** Number of times that this call crashed the instance. */
  attempts: number;
  /** Number of questions that the instance had asked before this call. */
  asked: number;
  /** Number of invocations that the instance had started before this call. */
  begun: number;
  resolve(view: HandleView): void;
  reject(error: unknown): void;
};

/** A call and the promise of its answer. */
export function queuedCall(
  kind: QueuedKind,
  caller: Caller,
  cause = 0,
): { readonly call: QueuedCall; readonly answer: Promise<HandleView> } {
  let resolve: QueuedCall['resolve'] = () => {};
  let reject: QueuedCall['reject'] = () => {};
  const answer = new Promise<HandleView>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { call: { ...kind, caller, cause, attempts: 0, asked: 0, begun: 0, resolve, reject }, answer };
}

/** A bounded queue of calls. */
export class BoundedMailbox {
  #calls: QueuedCall[] = [];
  readonly #most: number;

  constructor(most: number) {
    this.#most = most;
  }

  get size(): number {
    return this.#calls.length;
  }

  /** @throws {HandleError} `busy`, immediately. An accepted call is never dropped. */
  add(kind: QueuedKind, caller: Caller, cause: number): Promise<HandleView> {
    if (this.#calls.length >= this.#most)
      return Promise.reject(
        new HandleError(
          'busy',
          `${this.#most} calls are queued for this instance, which is the limit. Try again in a moment (the server's option is limits.handleMailbox)`,
        ),
      );
    const { call, answer } = queuedCall(kind, caller, cause);
    this.#calls.push(call);
    return answer;
  }

  first(): QueuedCall | undefined {
    return this.#calls[0];
  }

  take(): void {
    this.#calls.shift();
  }

  /** Returns calls to the front of the queue, in this order. */
  putBack(calls: readonly QueuedCall[]): void {
    this.#calls = [...calls, ...this.#calls];
  }

  rejectAll(error: unknown): void {
    const calls = this.#calls;
    this.#calls = [];
    for (const { reject } of calls) reject(error);
  }
}

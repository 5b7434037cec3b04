/** The options of an interactive request. Types only. */

import type { ActorSystem } from '../actor/actor.ts';
import type { ActiveRequest, HeldMemory } from '../messages/active-request.ts';
import type { HandlerRun, Question, RecordedReply } from '../messages/input-messages.ts';
import type { Outcome, Result } from '../messages/results.ts';

export interface InteractiveRequestOptions {
  readonly system: ActorSystem;
  /** Its id in sealed states, known only to this server. */
  readonly id: string;
  readonly request: ActiveRequest;
  readonly recorded: RecordedReply | undefined;
  readonly carrier: HandlerRun;
  /** Counts its open questions and the replies to them. */
  readonly memory: HeldMemory;
  /** Milliseconds that a client has to answer. */
  readonly askMs: number;
  /**
   * Suspends it until its client returns.
   *
   * @returns the request state that the client sends with its next request
   */
  park(round: number, replies: Readonly<Record<string, unknown>>, request: ActiveRequest): string;
  /** Suspends it again: the client has not received the answer and must repeat its last request. */
  parkAgain(round: number, request: ActiveRequest): void;
  /**
   * The same for the model of its client.
   *
   * @returns the result that asks the model
   */
  askModel(round: number, questions: readonly Question[], request: ActiveRequest): Result;
  /** Resumes it: its client has returned, or will not return. */
  unpark(): void;
  /**
   * Records the answer to the current request: the next questions, or the final result.
   *
   * @param round the round of the state that the request brought
   * @returns a promise that resolves when the answer may be sent; undefined if it may be sent immediately
   */
  keep(round: number, outcome: Outcome, ends: boolean): Promise<void> | undefined;
  /** It has ended and must not be continued. */
  over(): void;
  /** Its handler has ended. */
  gone(): void;
  readonly expired: () => Error;
}

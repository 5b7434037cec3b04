/** What a conversation is made with, and what it needs of those that keep it. Types only. */

import type { ActorSystem } from '../actor/actor.ts';
import type { ActiveRequest } from '../messages/active-request.ts';
import type { HandlerRun, Question, RecordedReply } from '../messages/input-messages.ts';
import type { Outcome, Result } from '../messages/results.ts';

export interface InteractiveRequestOptions extends ActorSystem {
  /** Known to nobody but this server: it names the conversation in sealed states. */
  readonly id: string;
  readonly request: ActiveRequest;
  readonly recorded: RecordedReply | undefined;
  readonly carrier: HandlerRun;
  /** Milliseconds that a client is given to answer. */
  readonly askMs: number;
  /** Takes it into the room where conversations wait for their clients. @returns the state by which the client finds it again */
  park(round: number, replies: Readonly<Record<string, unknown>>, request: ActiveRequest): string;
  /** Takes it back there: its client has not had the answer, and is to bring what it brought again. */
  parkAgain(round: number, request: ActiveRequest): void;
  /** The same, for the model of its client. @returns the result that asks it */
  askModel(round: number, questions: readonly Question[], request: ActiveRequest): Result;
  /** Its client has come back, or will not. */
  unpark(): void;
  /**
   * Its client is to be answered: with what is asked next, or for good.
   *
   * @param round of the state that it came with
   * @returns what resolves when the answer may leave; undefined where it may at once
   */
  keep(round: number, outcome: Outcome, ends: boolean): Promise<void> | undefined;
  /** It is over, and must not be gone on with. */
  over(): void;
  /** Its handler has ended. */
  gone(): void;
  expired(): Error;
  incident(where: string, error: unknown): string;
}

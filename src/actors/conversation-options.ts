/** What a conversation is made with, and what it needs of those that keep it. Types only. */
import type { Outcome, Result } from '../messages/answers.ts';
import type { Carrier, Question, Recorded } from '../messages/asking.ts';
import type { InFlight } from '../messages/in-flight.ts';
import type { ActorHost } from './actor.ts';

export interface ConversationOptions extends ActorHost {
  /** Known to nobody but this server: it names the conversation in sealed states. */
  readonly id: string;
  readonly request: InFlight;
  readonly recorded: Recorded | undefined;
  readonly carrier: Carrier;
  /** Milliseconds that a client is given to answer. */
  readonly askMs: number;
  /** Takes it into the room where conversations wait for their clients. @returns the state by which the client finds it again */
  park(round: number, replies: Readonly<Record<string, unknown>>, request: InFlight): string;
  /** Takes it back there: its client has not had the answer, and is to bring what it brought again. */
  parkAgain(round: number, request: InFlight): void;
  /** The same, for the model of its client. @returns the result that asks it */
  askModel(round: number, questions: readonly Question[], request: InFlight): Result;
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

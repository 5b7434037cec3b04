/** The behaviour of an actor: how it processes messages and crashes. Types only. */
import type { Mail, Mailbox } from '../messages/mailbox.ts';
import type { ActorKind, Charted, Facts, Waits, Watching } from './inspection/records.ts';
import type { RestartPolicy } from './restarts.ts';

/** The identity of an actor. */
export interface ActorIdentity {
  readonly kind: ActorKind;
  /** Unique within the server. */
  readonly address: string;
  /** For the inspector: the parent actor, the connection it serves, and its display name. */
  readonly parent?: string | undefined;
  readonly connection?: string | undefined;
  readonly label?: string | undefined;
}

/** The behaviour of an actor: it processes messages, and responds for a message that crashed it. */
export interface Behaviour<M extends Mail> {
  /** Processes one message. It may throw: the restart policy then decides. */
  receive(mail: M): void;
  /** For the inspector: its state as a word or path, its statechart, its data, and what it waits for. */
  state?(): string;
  chart?(): Charted;
  facts?(): Facts;
  waits?(): readonly Waits[];
  /** Also records what happens inside of it, until the observation ends. */
  watch?(): Watching;
  /** Answers for a message that crashed the actor, or that arrived while it was quarantined. Must not throw. */
  crashed(mail: M, error: unknown, quarantined: boolean): void;
  readonly policy?: RestartPolicy;
}

/**
 * Runs a function at the end of the actor's turn. Use it to pass a request on to other actors and finally to a handler:
 * the handler may send messages back (a log message, a registration) and needs every actor on its way to be free. It
 * takes the function and its argument separately, so that a request needs no closure at each step.
 */
export type AfterTurn = <T>(run: (value: T) => void, value: T) => void;

export interface Actor<M extends Mail> {
  readonly mailbox: Mailbox<M>;
  /** Stops the actor: later messages are dropped. */
  stop(why: string): void;
}

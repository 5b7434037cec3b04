/** What an actor is made of, and what it shares with the others of its server. Types only. */
import type { RestartPolicy } from '../../machines/supervisor.ts';
import type { Clock } from '../clock.ts';
import type { Inspection } from '../inspection/inspection.ts';
import type { ActorKind, Charted, Facts, Waits } from '../inspection/records.ts';
import type { Announceable, Mail } from '../messages/mailbox.ts';
import type { Passivator } from './passivation.ts';
import type { Quarantine } from './quarantine.ts';

/** Who an actor is. */
export interface ActorIdentity {
  readonly kind: ActorKind;
  /** Unique within the server. */
  readonly address: string;
  /** For the inspector: the actor that it belongs to, the connection that it serves, what people call it. */
  readonly parent?: string | undefined;
  readonly connection?: string | undefined;
  readonly label?: string | undefined;
}

/** What an actor does with mail, and with mail that crashed it. */
export interface Behaviour<M extends Mail> {
  /** Acts on one mail. It may throw: the crash is borne as the restart policy says. */
  receive(mail: M): void;
  /** For the inspector: its state in one word or path, its statechart, what it knows, what it waits for. */
  state?(): string;
  chart?(): Charted;
  facts?(): Facts;
  waits?(): readonly Waits[];
  /** Answers for mail that crashed the actor, or that reached it after it was set aside. Must not throw. */
  crashed(mail: M, error: unknown, setAside: boolean): void;
  readonly policy?: RestartPolicy;
  /** Gives back what it can make again: no mail has come for a while. */
  rest?(): void;
}

/**
 * Runs something when the actor's turn is over: what leads on to others, and at last to a handler, which may well send mail
 * back (a log, a registration) and must find every actor on its way free. It takes a function and what to call it with,
 * so that a request needs no closure at each step.
 */
export type AfterTurn = <T>(run: (value: T) => void, value: T) => void;

/** What every actor of a server shares. */
export interface ActorSystem {
  readonly clock: Clock;
  readonly inspection: Inspection;
  /** Where an actor rests that has had no mail for a while. Absent: it never does. */
  readonly resting?: Passivator | undefined;
  /** Where it is told that one was set aside. */
  readonly quarantine?: Quarantine | undefined;
}

export interface Actor<M extends Mail> {
  readonly mailbox: Announceable<M>;
  /** Stops it: later mail is dropped. */
  stop(why: string): void;
}

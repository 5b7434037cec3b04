/** The only file that creates actors: a mailbox and a loop of turns around a `receive` function, with a supervisor and inspection. */
import type { Mail, Mailbox } from '../messages/mailbox.ts';
import { messageOf } from '../protocol/json.ts';
import type { ActorSystem } from './actor-system.ts';
import type { Actor, ActorIdentity, AfterTurn, Behaviour } from './behaviour.ts';
import { currentTurn, type Turn } from './current-turn.ts';
import type { ActorKind, Charted, Facts, LiveRecord, Waits, Watching } from './inspection/records.ts';
import { type RestartPolicy, Restarts } from './restarts.ts';

export type { ActorSystem } from './actor-system.ts';
export type { Actor, ActorIdentity, AfterTurn, Behaviour } from './behaviour.ts';

/** Work for the end of a turn: the message that caused it, a function, and its argument. */
interface Due<M> {
  readonly mail: M;
  readonly run: (value: unknown) => void;
  readonly value: unknown;
}

const nothing = (): void => {};
const DEFAULT_POLICY: RestartPolicy = { restarts: 3, windowMs: 5_000 };

/**
 * Creates and starts an actor: one turn at a time, in the order in which its messages arrive.
 * @param behave receives the actor's own mailbox, for messages to itself from timers and promises, and `afterwards`,
 *   which it may call only during a turn
 * Messages that arrive during a turn wait for its end. If a message makes the behaviour throw, `crashed` answers for
 * it, the message is dropped, and the next one is processed. An actor that crashes more often than its policy allows is
 * quarantined until an operator releases it.
 */
export function spawn<M extends Mail>(
  identity: ActorIdentity,
  system: ActorSystem,
  behave: (self: Mailbox<M>, afterwards: AfterTurn) => Behaviour<M>,
): Actor<M> {
  return new Spawned(identity, system, behave);
}

class Spawned<M extends Mail> implements Actor<M>, Mailbox<M>, Turn, LiveRecord {
  readonly address: string;
  readonly #identity: ActorIdentity;
  readonly #system: ActorSystem;
  readonly #behaviour: Behaviour<M>;
  #status: 'live' | 'quarantined' | 'stopped' = 'live';
  /** Undefined until it crashes. */
  #restarts: Restarts | undefined;
  /** The message of the current turn. */
  #turn: M | undefined;
  /** Messages that arrived during a turn, the oldest first. Most actors never need it. */
  #waiting: M[] | undefined;
  /** Work for the end of the turn: nearly always one item, which needs no object; further items follow in a list. */
  #dueMail: M | undefined;
  #dueRun: Due<M>['run'] = nothing;
  #dueValue: unknown;
  #more: Due<M>[] | undefined;

  constructor(
    identity: ActorIdentity,
    system: ActorSystem,
    behave: (self: Mailbox<M>, afterwards: AfterTurn) => Behaviour<M>,
  ) {
    this.address = identity.address;
    this.#identity = identity;
    this.#system = system;
    this.#behaviour = behave(this, (run, value) => this.#afterwards(run, value));
    system.inspection.born(this.address, this);
  }

  get mailbox(): Mailbox<M> {
    return this;
  }

  /** A separate function, so that forwarders can hold it without the mailbox. */
  readonly send = (mail: M): void => {
    const { inspection } = this.#system;
    if (inspection.full) inspection.mailed(this.address, mail, this.#fate());
    if (this.#turn) {
      this.#waiting ??= [];
      this.#waiting.push(mail);
      return;
    }
    this.#take(mail);
    if (this.#dueMail) this.#finish();
  };

  stop(why: string): void {
    if (this.#status === 'stopped') return;
    this.#status = 'stopped';
    this.#system.quarantine.forget(this.address);
    this.#system.inspection.gone(this.address, why);
  }

  get acts(): M | undefined {
    return this.#turn;
  }

  state(): string {
    return this.#status === 'live' ? (this.#behaviour.state?.() ?? 'active') : this.#status;
  }

  // For the inspection.

  get kind(): ActorKind {
    return this.#identity.kind;
  }

  get parent(): string | undefined {
    return this.#identity.parent;
  }

  get connection(): string | undefined {
    return this.#identity.connection;
  }

  get label(): string | undefined {
    return this.#identity.label;
  }

  chart(): Charted | undefined {
    return this.#behaviour.chart?.();
  }

  facts(): Facts | undefined {
    return this.#behaviour.facts?.();
  }

  waits(): readonly Waits[] | undefined {
    return this.#behaviour.waits?.();
  }

  watch(): Watching | undefined {
    return this.#behaviour.watch?.();
  }

  #fate(): 'queued' | 'dropped' | undefined {
    if (this.#status === 'stopped') return 'dropped';
    return this.#turn ? 'queued' : undefined;
  }

  /** Runs the turn of a message, and then the turns of all that arrived meanwhile. */
  #take(mail: M): void {
    const before = currentTurn.turn;
    currentTurn.turn = this;
    this.#run(mail);
    for (let batch = this.#waiting; batch; batch = this.#waiting) {
      this.#waiting = undefined;
      for (const next of batch) this.#run(next);
    }
    this.#turn = undefined;
    currentTurn.turn = before;
  }

  #run(mail: M): void {
    const { inspection } = this.#system;
    this.#turn = mail;
    if (inspection.full)
      return inspection.during(mail, () => {
        this.#act(mail);
        this.reportState();
      });
    this.#act(mail);
    if (inspection.on) inspection.markStale(this);
  }

  #act(mail: M): void {
    if (this.#status === 'stopped') return;
    if (this.#status === 'quarantined')
      return this.#answer(mail, new Error(`${this.address} crashed too often and was quarantined`));
    try {
      this.#behaviour.receive(mail);
    } catch (error) {
      this.#crash(mail, error);
    }
  }

  /** Answers for a message that was not processed. */
  #answer(mail: M, error: unknown): void {
    try {
      this.#behaviour.crashed(mail, error, this.#status === 'quarantined');
    } catch (fault) {
      this.#system.incident(`${this.address}, which answered for a crash`, fault);
    }
  }

  reportState(): void {
    // The actor may have stopped itself during the turn; it then has no state to report.
    if (this.#status === 'stopped') return;
    this.#system.inspection.stated(this.address, this.state());
  }

  #crash(mail: M, error: unknown): void {
    const { clock, inspection, quarantine } = this.#system;
    this.#restarts ??= new Restarts(this.#behaviour.policy ?? DEFAULT_POLICY);
    if (!this.#restarts.crashed(clock.now()) && this.#status === 'live') {
      this.#status = 'quarantined';
      quarantine.add(this.address, this.kind, messageOf(error), () => this.#release());
    }
    const quarantined = this.#status === 'quarantined';
    if (inspection.on) inspection.record({ type: 'crashed', actor: this.address, mail: mail.type, error, quarantined });
    this.#answer(mail, error);
  }

  /** Releases the actor from quarantine: an operator has fixed the cause. */
  #release(): void {
    if (this.#status !== 'quarantined') return;
    this.#status = 'live';
    this.#restarts = undefined;
    if (this.#system.inspection.on) this.reportState();
  }

  #afterwards<T>(run: (value: T) => void, value: T): void {
    if (!this.#turn) return run(value);
    // The value goes only to the function that it was passed with.
    const bound = run as (value: unknown) => void;
    if (this.#dueMail) {
      this.#more ??= [];
      this.#more.push({ mail: this.#turn, run: bound, value });
      return;
    }
    this.#dueMail = this.#turn;
    this.#dueRun = bound;
    this.#dueValue = value;
  }

  /** Ends the turn: runs the deferred work on the caller's stack, while the actor is free for further messages. */
  #finish(): void {
    const { inspection } = this.#system;
    while (this.#dueMail) {
      const mail = this.#dueMail;
      const run = this.#dueRun;
      const value = this.#dueValue;
      const next = this.#more?.shift();
      this.#dueMail = next?.mail;
      this.#dueRun = next?.run ?? nothing;
      this.#dueValue = next?.value;
      try {
        if (inspection.full) inspection.during(mail, () => run(value));
        else run(value);
      } catch (error) {
        this.#crash(mail, error);
      }
    }
  }
}

/**
 * The only file that creates actors: a light XState actor around a `receive` function, with a mailbox, a supervisor and
 * inspection.
 */
import {
  type ActorLogic,
  createActor,
  initialTransition,
  type Snapshot,
  transition,
  type Actor as XStateActor,
} from 'xstate';
import { type RestartPolicy, supervisorMachine } from '../../machines/supervisor.ts';
import type { ActorKind, Charted, Facts, LiveRecord, Waits } from '../inspection/records.ts';
import type { Announceable, Mail } from '../messages/mailbox.ts';
import { messageOf } from '../protocol/json.ts';
import type { ActorSystem } from './actor-system.ts';
import type { Actor, ActorIdentity, AfterTurn, Behaviour } from './behaviour.ts';
import { currentTurn, type Turn } from './current-turn.ts';
import type { Passivatable } from './passivation.ts';

export type { ActorSystem } from './actor-system.ts';
export type { Actor, ActorIdentity, AfterTurn, Behaviour } from './behaviour.ts';

/** A behaviour holds its own state, so the snapshot never changes and a send allocates nothing (docs/adr/0002). */
type Still = Extract<Snapshot<undefined>, { status: 'active' }>;

const STILL: Still = { status: 'active', output: undefined, error: undefined };
/** Work for the end of a turn: the message that caused it, a function, and its argument. */
interface Due<M> {
  readonly mail: M;
  readonly run: (value: unknown) => void;
  readonly value: unknown;
}

const nothing = (): void => {};
const DEFAULT_POLICY: RestartPolicy = { restarts: 3, windowMs: 5_000 };

/**
 * Creates and starts an actor. It is a root actor: the cost of the n-th actor does not grow with n.
 * @param behave receives the actor's own mailbox, for messages to itself from timers and promises, and `afterwards`,
 *   which it may call only during a turn
 * Messages that arrive during a turn wait for its end. If a message makes the behaviour throw, `crashed` answers for
 * it, the message is dropped, and the next one is processed. An actor that crashes more often than its policy allows is
 * quarantined until an operator releases it.
 */
export function spawn<M extends Mail>(
  identity: ActorIdentity,
  system: ActorSystem,
  behave: (self: Announceable<M>, afterwards: AfterTurn) => Behaviour<M>,
): Actor<M> {
  return new Spawned(identity, system, behave);
}

class Spawned<M extends Mail>
  implements Actor<M>, Announceable<M>, ActorLogic<Still, M>, Passivatable, Turn, LiveRecord
{
  readonly address: string;
  readonly #identity: ActorIdentity;
  readonly #system: ActorSystem;
  readonly #behaviour: Behaviour<M>;
  /** The XState actor. Created when a message arrives, and released after idle time (docs/adr/0009). */
  #actor: XStateActor<ActorLogic<Still, M>> | undefined;
  /** True if a message has arrived since the last passivation check. */
  #busy = false;
  #status: 'live' | 'set aside' | 'stopped' = 'live';
  #supervisor: ReturnType<typeof initialTransition<typeof supervisorMachine>>[0] | undefined;
  #turn: M | undefined;
  /** True during the turn of an announcement, which bypasses the XState actor. */
  #announced = false;
  /** Messages that arrive during that turn. */
  #later: M[] | undefined;
  /** Work for the end of the turn: nearly always one item, which needs no object; further items follow in a list. */
  #dueMail: M | undefined;
  #dueRun: Due<M>['run'] = nothing;
  #dueValue: unknown;
  #more: Due<M>[] | undefined;

  constructor(
    identity: ActorIdentity,
    system: ActorSystem,
    behave: (self: Announceable<M>, afterwards: AfterTurn) => Behaviour<M>,
  ) {
    this.address = identity.address;
    this.#identity = identity;
    this.#system = system;
    this.#behaviour = behave(this, this.#afterwards);
    system.inspection.born(this.address, this);
  }

  get mailbox(): Announceable<M> {
    return this;
  }

  /** A separate function, so that forwarders can hold it without the mailbox. */
  readonly send = (mail: M): void => {
    const { inspection } = this.#system;
    if (this.#announced) {
      this.#later ??= [];
      this.#later.push(mail);
      return;
    }
    if (inspection.full) inspection.mailed(this.address, mail, this.#fate());
    this.#busy = true;
    (this.#actor ?? this.#wake()).send(mail);
    if (this.#dueMail && !this.#turn) this.#finish();
  };

  readonly announce = (mail: M): void => {
    if (this.#turn || this.#status === 'stopped') return this.send(mail);
    const { inspection } = this.#system;
    if (inspection.full) inspection.mailed(this.address, mail, undefined);
    this.#announced = true;
    this.#take(mail);
    this.#announced = false;
    if (this.#dueMail) this.#finish();
    if (this.#later) for (const waiting of this.#later.splice(0)) this.send(waiting);
  };

  stop(why: string): void {
    if (this.#status === 'stopped') return;
    this.#status = 'stopped';
    this.#actor?.stop();
    this.#system.resting.gone(this);
    this.#system.quarantine.forget(this.address);
    this.#system.inspection.gone(this.address, why);
  }

  rest(): boolean {
    if (this.#busy) {
      this.#busy = false;
      return false;
    }
    const actor = this.#actor;
    this.#actor = undefined;
    actor?.stop();
    this.#behaviour.rest?.();
    return true;
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

  #fate(): 'queued' | 'dropped' | undefined {
    if (this.#status === 'stopped') return 'dropped';
    return this.#turn ? 'queued' : undefined;
  }

  // The logic of the XState actor: an unchanging snapshot around a turn of the behaviour.

  transition(snapshot: Still, mail: M): Still {
    // XState stops an actor by a message of its own.
    if (this.#actor) this.#take(mail);
    return snapshot;
  }

  /** Runs one turn. */
  #take(mail: M): void {
    const { inspection } = this.#system;
    const before = currentTurn.turn;
    currentTurn.turn = this;
    this.#turn = mail;
    if (inspection.full) inspection.during(mail, () => this.#watched(mail));
    else {
      this.#act(mail);
      if (inspection.on) inspection.markStale(this);
    }
    this.#turn = undefined;
    currentTurn.turn = before;
  }

  getInitialSnapshot(): Still {
    return STILL;
  }

  getPersistedSnapshot(): Still {
    return STILL;
  }

  #wake(): XStateActor<ActorLogic<Still, M>> {
    const { inspection, resting } = this.#system;
    const actor = createActor<ActorLogic<Still, M>>(this, { id: this.address });
    this.#actor = actor;
    // `transition` above catches every error; if XState itself fails, an unobserved root actor would end the process.
    actor.subscribe({ error: (error) => inspection.gone(this.address, String(error)) });
    actor.start();
    if (this.#status === 'stopped') actor.stop();
    else resting.woke(this);
    return actor;
  }

  #act(mail: M): void {
    if (this.#status === 'stopped') return;
    if (this.#status === 'set aside')
      return this.#behaviour.crashed(mail, new Error(`${this.address} crashed too often and was quarantined`), true);
    try {
      this.#behaviour.receive(mail);
    } catch (error) {
      this.#crash(mail, error);
    }
  }

  #watched(mail: M): void {
    this.#act(mail);
    this.reportState();
  }

  reportState(): void {
    // The actor may have stopped itself during the turn; it then has no state to report.
    if (this.#status === 'stopped') return;
    this.#system.inspection.stated(this.address, this.state());
  }

  #crash(mail: M, error: unknown): void {
    const { clock, inspection, quarantine } = this.#system;
    this.#supervisor ??= initialTransition(supervisorMachine, this.#behaviour.policy ?? DEFAULT_POLICY)[0];
    [this.#supervisor] = transition(supervisorMachine, this.#supervisor, { type: 'crash', at: clock.now() });
    if (this.#supervisor.value === 'quarantined' && this.#status === 'live') {
      this.#status = 'set aside';
      quarantine.add(this.address, this.kind, messageOf(error), this.#release);
    }
    const setAside = this.#status === 'set aside';
    if (inspection.on) inspection.record({ type: 'crashed', actor: this.address, mail: mail.type, error, setAside });
    this.#behaviour.crashed(mail, error, setAside);
  }

  /** Releases the actor from quarantine: an operator has fixed the cause. */
  readonly #release = (): void => {
    if (this.#status !== 'set aside') return;
    this.#status = 'live';
    this.#supervisor = undefined;
    if (this.#system.inspection.on) this.reportState();
  };

  readonly #afterwards: AfterTurn = (run, value) => {
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
  };

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

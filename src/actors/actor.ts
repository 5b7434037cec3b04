/** The one place where actors are made: a light XState actor around a `receive` function, with a mailbox, a supervisor and inspection. */
import { type ActorLogic, createActor, initialTransition, type Snapshot, transition } from 'xstate';
import { type RestartPolicy, supervisorMachine } from '../../machines/supervisor.ts';
import type { Clock } from '../clock.ts';
import type { ActorKind, Inspection } from '../inspect.ts';
import type { Mail, Mailbox } from '../messages/mailbox.ts';

/** Who an actor is. */
export interface Identity {
  readonly kind: ActorKind;
  /** Unique within the server. */
  readonly address: string;
}

/** What an actor does with mail, and with mail that crashed it. */
export interface Behaviour<M extends Mail> {
  /** Acts on one mail. It may throw: the crash is borne as the restart policy says. */
  receive(mail: M): void;
  /** Its state in one word or path, for the inspector. */
  state?(): string;
  /** Answers for mail that crashed the actor, or that reached it after it was set aside. Must not throw. */
  crashed(mail: M, error: unknown, setAside: boolean): void;
  readonly policy?: RestartPolicy;
}

/**
 * Runs something when the actor's turn is over: what leads on to others, and at last to a handler, which may well send mail
 * back (a log, a registration) and must find every actor on its way free. It takes a function and what to call it with,
 * so that a request needs no closure at each step.
 */
export type Afterwards = <T>(run: (value: T) => void, value: T) => void;

/** What every actor of a server shares. */
export interface ActorHost {
  readonly clock: Clock;
  readonly inspection: Inspection;
}

export interface Actor<M extends Mail> {
  readonly mailbox: Mailbox<M>;
  /** Stops it: later mail is dropped. */
  stop(why: string): void;
}

/** `receive` keeps what it knows in its own closure, so the snapshot never changes and a send allocates nothing (docs/adr/0002). */
type Still = Extract<Snapshot<undefined>, { status: 'active' }>;

const STILL: Still = { status: 'active', output: undefined, error: undefined };
/** Something to be done after a turn: the mail that led to it, a function, and its value. */
interface Due<M> {
  readonly mail: M;
  readonly run: (value: unknown) => void;
  readonly value: unknown;
}

const nothing = (): void => {};
const DEFAULT_POLICY: RestartPolicy = { restarts: 3, windowMs: 5_000 };

/**
 * Makes and starts an actor. It is a root actor of its own: the cost of the n-th does not grow with n.
 *
 * @param behave is given the actor's own mailbox, for the mail that it sends itself from timers and promises; and
 *   `afterwards`, to be called in a turn only.
 *
 * Mail sent while the actor is acting waits its turn. Mail that makes it throw is dropped after `crashed` has answered
 * for it, and the next is served; crashing more often than the policy bears sets the actor aside for good.
 */
export function spawn<M extends Mail>(
  { kind, address }: Identity,
  { clock, inspection }: ActorHost,
  behave: (self: Mailbox<M>, afterwards: Afterwards) => Behaviour<M>,
): Actor<M> {
  let status: 'live' | 'set aside' | 'stopped' = 'live';
  let supervisor: ReturnType<typeof initialTransition<typeof supervisorMachine>>[0] | undefined;
  let lastState = '';
  let turn: M | undefined;
  /** What is to be done after the turn: nearly always one thing, which has its place without an object; the rest follow. */
  let dueMail: M | undefined;
  let dueRun: Due<M>['run'] = nothing;
  let dueValue: unknown;
  const more: Due<M>[] = [];

  const state = (): string => (status === 'live' ? (behaviour.state?.() ?? 'active') : status);
  const crash = (mail: M, error: unknown): void => {
    supervisor ??= initialTransition(supervisorMachine, behaviour.policy ?? DEFAULT_POLICY)[0];
    [supervisor] = transition(supervisorMachine, supervisor, { type: 'crash', at: clock.now() });
    if (supervisor.status === 'done') status = 'set aside';
    if (inspection.on)
      inspection.record({ type: 'crashed', actor: address, mail: mail.type, error, setAside: status === 'set aside' });
    behaviour.crashed(mail, error, status === 'set aside');
  };
  const act = (mail: M): void => {
    if (status === 'stopped') return;
    if (status === 'set aside')
      return behaviour.crashed(mail, new Error(`${address} crashed too often and was set aside`), true);
    try {
      behaviour.receive(mail);
    } catch (error) {
      crash(mail, error);
    }
  };
  const watched = (mail: M): void => {
    act(mail);
    const now = state();
    if (now === lastState) return;
    lastState = now;
    inspection.record({ type: 'state', actor: address, state: now });
  };

  /** The turn is over: what it left to do is done on the caller's stack, while the actor is free for more mail. */
  const finish = (): void => {
    while (dueMail) {
      const mail = dueMail;
      const run = dueRun;
      const value = dueValue;
      const next = more.shift();
      dueMail = next?.mail;
      dueRun = next?.run ?? nothing;
      dueValue = next?.value;
      try {
        if (inspection.on) inspection.during(mail, () => run(value));
        else run(value);
      } catch (error) {
        crash(mail, error);
      }
    }
  };

  const logic: ActorLogic<Still, M> = {
    transition(snapshot, mail) {
      turn = mail;
      if (inspection.on) inspection.during(mail, () => watched(mail));
      else act(mail);
      turn = undefined;
      return snapshot;
    },
    getInitialSnapshot: () => STILL,
    getPersistedSnapshot: () => STILL,
  };
  const actor = createActor(logic, { id: address });
  // `transition` above lets nothing through; if XState itself fails, an unobserved root would end the process.
  actor.subscribe({ error: (error) => inspection.gone(address, String(error)) });
  const mailbox: Mailbox<M> = {
    address,
    send(mail) {
      if (inspection.on) inspection.mailed(address, mail);
      actor.send(mail);
      if (dueMail && !turn) finish();
    },
  };
  const behaviour = behave(mailbox, (run, value) => {
    if (!turn) return run(value);
    // The value goes to the function that it came with, and nowhere else.
    const bound = run as (value: unknown) => void;
    if (dueMail) {
      more.push({ mail: turn, run: bound, value });
      return;
    }
    dueMail = turn;
    dueRun = bound;
    dueValue = value;
  });
  actor.start();
  lastState = state();
  inspection.born(address, { kind, state });

  return {
    mailbox,
    stop(why) {
      if (status === 'stopped') return;
      status = 'stopped';
      actor.stop();
      inspection.gone(address, why);
    },
  };
}

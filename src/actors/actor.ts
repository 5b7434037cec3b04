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

/** Runs something when the actor's turn is over: mail to others that may come back to it, and must find it free. */
export type Afterwards = (run: () => void) => void;

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
  const waiting: { readonly mail: M; readonly run: () => void }[] = [];

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
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      const { mail, run } = next;
      try {
        if (inspection.on) inspection.during(mail, run);
        else run();
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
      if (waiting.length > 0 && turn === undefined) finish();
    },
  };
  const behaviour = behave(mailbox, (run) => {
    if (turn) waiting.push({ mail: turn, run });
    else run();
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

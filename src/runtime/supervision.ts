/** What supervises one server: it names what blocks the loop, refuses what blocked it twice, and shows the operator what is set aside. */
import { createHash } from 'node:crypto';
import { currentTurn } from '../actor/current-turn.ts';
import { Quarantine, type Quarantined } from '../actor/quarantine.ts';
import type { Clock } from '../clock.ts';
import type { Handles } from '../handles/handles.ts';
import type { ActiveRequest } from '../messages/active-request.ts';
import type { OperatorLog } from '../operator-log.ts';
import { ErrorCode, ProtocolError } from '../protocol/errors.ts';
import { running } from '../requests/running.ts';
import { toText } from '../store/serialize.ts';
import type { DeadLetter, Store } from '../store/store.ts';
import type { WatchdogOption } from '../watchdog-option.ts';
import { type Poisoned, poison } from '../workers/poison-calls.ts';
import { installStallProbe } from '../workers/stall-probe.ts';
import { endsMark, startWatchdog, type Watchdog } from '../workers/watchdog.ts';

/** What an operator sees of a server's supervision. */
export interface Supervised {
  /** Actors that crashed too often, and serve no more. */
  readonly setAside: readonly Quarantined[];
  /** Calls that ended the process twice, and events of handles that ended it too often: they are refused. */
  readonly refused: readonly Poisoned[];
}

export interface SupervisionOptions {
  readonly clock: Clock;
  readonly store: Store;
  log: OperatorLog;
}

export class Supervision {
  readonly quarantine: Quarantine;
  readonly #options: SupervisionOptions;
  #untell: (() => void) | undefined;
  #watchdog: Watchdog | undefined;
  #handles: Handles | undefined;
  #restarting = false;

  constructor(options: SupervisionOptions) {
    this.#options = options;
    this.quarantine = new Quarantine(options.clock);
  }

  /** Before anything is served: what blocked the process before it was started again is a dead letter, once. */
  readonly restore = async (): Promise<void> => {
    const { store } = this.#options;
    if (store.notes?.path !== undefined) endsMark(store.notes.path);
    if (poison.size === 0) return;
    const known = new Set((await store.deadLetters(DEAD_LETTERS)).map(({ incident }) => incident));
    const letters = poison.all().filter(({ incident }) => !known.has(incident));
    if (letters.length === 0) return;
    await store.commit(letters.map((call) => ({ type: 'dead letter', letter: letterOf(call) })));
  };

  /** Handles set aside what ends the process, too. */
  releases(handles: Handles): void {
    this.#handles = handles;
  }

  /** A transport opens. `watchdog` is the option of that name. */
  begin(watchdog: boolean | WatchdogOption | undefined): void {
    if (this.#untell) return;
    this.#untell = installStallProbe(tell);
    if (watchdog === undefined || watchdog === false) return;
    const { log } = this.#options;
    this.#watchdog = startWatchdog({ ...(watchdog === true ? {} : watchdog), log });
  }

  /** A handler threw after it had answered: the server drains, and its process ends for whoever supervises it to start it again. */
  restart(close: (reason: string) => Promise<void>): void {
    if (this.#restarting) return;
    this.#restarting = true;
    // stdio and the command line end the process, too, once all is closed: with what is said here.
    process.exitCode = RESTART_CODE;
    void close('a handler threw after it had answered').then(() => process.exit(RESTART_CODE));
  }

  end(): void {
    this.#untell?.();
    this.#watchdog?.stop();
  }

  /** @throws {ProtocolError} for a request that has blocked the process twice */
  readonly admit = (request: ActiveRequest, label: string): void => {
    // Nothing was ever blocked, nearly everywhere: then no request pays for it.
    if (poison.size === 0 || !poison.suspects(label)) return;
    const call = poison.refused(digestOf(request, label));
    if (!call) return;
    throw new ProtocolError(
      ErrorCode.InternalError,
      `this call has blocked the server until it was restarted, ${call.attempts} times, and is not run again (incident ${call.incident}; the server's log has the details): call it with other arguments`,
    );
  };

  report(): Supervised {
    const events = this.#handles?.condemned() ?? [];
    const refused = events.map(
      ({ what, digest, deaths, at, incident }): Poisoned => ({
        element: what,
        digest,
        attempts: deaths,
        at,
        incident,
        stack: '',
      }),
    );
    return { setAside: this.quarantine.all(), refused: [...poison.all(), ...refused] };
  }

  release(name: string): boolean {
    return this.quarantine.release(name) || poison.release(name) || this.#handles?.release(name) === true;
  }
}

/** "Internal software error" of sysexits(3): whoever supervises the process starts it again. */
const RESTART_CODE = 70;

/** How many of the last dead letters are looked at for one that is to be written. */
const DEAD_LETTERS = 10_000;

function letterOf({ element, digest, stack, attempts, at, incident }: Poisoned): DeadLetter {
  return { actor: element, mail: digest, error: `it blocked the event loop\n${stack}`, attempts, at, incident };
}

/** Called by the watchdog's thread, on top of what blocks this one. */
function tell(): ReturnType<Parameters<typeof installStallProbe>[0]> {
  const run = running.getStore();
  const { turn } = currentTurn;
  if (!run && !turn) return undefined;
  const digest = run?.request && digestOf(run.request, run.label);
  return { element: run?.label, digest, actor: turn?.address, mail: turn?.acts?.type };
}

/** The same for calls of one element with equal arguments, whoever makes them. */
function digestOf({ operation }: ActiveRequest, label: string): string {
  const args = 'arguments' in operation ? operation.arguments : undefined;
  const uri = 'uri' in operation ? operation.uri : undefined;
  return createHash('sha256')
    .update(toText([label, operation.method, uri, args]))
    .digest('base64url');
}

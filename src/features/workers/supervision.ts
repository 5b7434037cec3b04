/** Supervision of one server: attributes event loop stalls, rejects poison calls, and lists quarantined actors. */
import type { RunGate, Stages } from '../../core/execution/stages.ts';
import type { ActorSystem } from '../../core/kernel/actor-system.ts';
import { foldedFrames } from '../../core/kernel/authored-stack.ts';
import { currentTurn } from '../../core/kernel/current-turn.ts';
import { sha256 } from '../../core/kernel/sha256.ts';
import type { RequestView } from '../../core/messages/request-view.ts';
import { ErrorCode, ProtocolError } from '../../core/protocol/errors.ts';
import { running } from '../../core/requests/running.ts';
import { toText } from '../../core/store/serialize.ts';
import type { DeadLetter, Store } from '../../core/store/store.ts';
import type { Bus } from '../../core/transports/bus.ts';
import { type Poisoned, poison } from './poison-calls.ts';
import { installProbes } from './stall-probe.ts';
import type { Supervised } from './supervised.ts';
import { endsMark, startWatchdog, stopLoadWatch, type Watchdog } from './watchdog.ts';
import type { WatchdogOption } from './watchdog-option.ts';

/** Another part that quarantines what ended the process, such as events of instances. */
interface Quarantines {
  quarantined(): readonly (Omit<Poisoned, 'element' | 'attempts' | 'stack'> & {
    readonly what: string;
    readonly deaths: number;
  })[];
  /** @returns false for an unknown incident */
  release(incident: string): boolean;
}

interface SupervisionOptions {
  readonly system: ActorSystem;
  readonly bus: Bus;
  readonly store: Store;
  readonly stages: Pick<Stages, 'fill'>;
}

export class Supervision {
  readonly #options: SupervisionOptions;
  #untell: (() => void) | undefined;
  #watchdog: Watchdog | undefined;
  #handles: () => Quarantines | undefined = () => undefined;

  constructor(options: SupervisionOptions) {
    this.#options = options;
  }

  /** Runs before anything is served: stores a dead letter for each call that killed the previous process, once. */
  readonly restore = async (): Promise<void> => {
    const { bus, store } = this.#options;
    const marker = store.notes?.path ?? store.notes?.shared;
    if (marker !== undefined) endsMark(marker);
    if (poison.size === 0) return;
    const known = new Set((await store.deadLetters(DEAD_LETTERS)).map(({ incident }) => incident));
    const letters = poison.all().filter(({ incident }) => !known.has(incident));
    if (letters.length === 0) return;
    await store.commit(letters.map((call) => ({ type: 'dead letter', letter: letterOf(call) })));
    for (const { element, incident } of letters) bus.emit('call.dead', { element, incident });
  };

  /** Registers the handles, whose poison events can be released, too. There are none until they are first used. */
  releases(handles: () => Quarantines | undefined): void {
    this.#handles = handles;
  }

  /** Called once, when the first transport opens. `watchdog` is the option of that name. */
  begin(watchdog: boolean | WatchdogOption | undefined): void {
    const { stages, system } = this.#options;
    const { log } = system;
    this.#untell = installProbes(tell, (element, code, frames) =>
      log(
        'error',
        `${element} ended the process with code ${code} (process.exit): throw an error instead, which only this call gets\n${foldedFrames(frames).text}`,
        { event: 'program', element },
      ),
    );
    if (watchdog === false) stopLoadWatch();
    else if (watchdog !== undefined) this.#watchdog = startWatchdog({ ...(watchdog === true ? {} : watchdog), log });
    // The watchdog, or the command, has read them.
    if (poison.size > 0) stages.fill('quarantine', this.#admit);
  }

  end(): void {
    this.#untell?.();
    this.#watchdog?.stop();
  }

  /** @throws {ProtocolError} if the request has blocked the process twice */
  readonly #admit: RunGate = (request, label) => {
    if (!poison.suspects(label)) return true;
    const call = poison.refused(digestOf(request, label));
    if (!call) return true;
    throw new ProtocolError(
      ErrorCode.InternalError,
      `this call blocked the server until it was restarted, ${call.attempts} times, and will not run again (incident ${call.incident}; the server's log has the details): use other arguments`,
    );
  };

  report(): Supervised {
    const events = this.#handles()?.quarantined() ?? [];
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
    return { quarantined: this.#options.system.quarantine.all(), refused: [...poison.all(), ...refused] };
  }

  release(name: string): boolean {
    return (
      this.#options.system.quarantine.release(name) || poison.release(name) || this.#handles()?.release(name) === true
    );
  }
}

/** Number of the latest dead letters that are compared before another one is written. */
const DEAD_LETTERS = 10_000;

function letterOf({ element, digest, stack, attempts, at, incident }: Poisoned): DeadLetter {
  return { actor: element, mail: digest, error: `it blocked the event loop\n${stack}`, attempts, at, incident };
}

/** Called by the watchdog's thread, on top of the code that blocks this thread. */
function tell(): ReturnType<Parameters<typeof installProbes>[0]> {
  const run = running.getStore();
  const { turn } = currentTurn;
  if (!run && !turn) return undefined;
  const digest = run?.request && digestOf(run.request, run.label);
  return { element: run?.label, digest, actor: turn?.address, mail: turn?.acts?.type };
}

/** Equal for calls of one element with equal arguments, independent of the caller. */
function digestOf({ operation }: RequestView, label: string): string {
  const args = 'arguments' in operation ? operation.arguments : undefined;
  const uri = 'uri' in operation ? operation.uri : undefined;
  return sha256(toText([label, operation.method, uri, args]));
}

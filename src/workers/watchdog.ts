/** Starts the watchdog of a process, the thread that sees a blocked event loop, and tells what it saw once the loop is free. */
import { url as inspectorUrl } from 'node:inspector';
import type { Worker } from 'node:worker_threads';
import { initialTransition, transition } from 'xstate';
import { supervisorMachine } from '../../machines/supervisor.ts';
import { systemClock, type Timer } from '../clock.ts';
import { processWide } from '../global-registry.ts';
import type { OperatorLog } from '../operator-log.ts';
import { messageOf } from '../protocol/json.ts';
import type { WatchdogOption } from '../watchdog-option.ts';
import type { Blocked, BlockOver, NotesOpened, WatchdogData } from './blocked.ts';
import { describeStall } from './describe-stall.ts';
import { poison } from './poison-calls.ts';
import { startThread } from './start-thread.ts';

export interface WatchdogOptions extends WatchdogOption {
  log: OperatorLog;
  /** A block is over. */
  over?(blocked: Blocked): void;
}

export interface Watchdog {
  /** Nobody watches any more. */
  stop(): void;
  /** See {@link endsMark}. Absent in an earlier copy of this package. */
  marks?(path: string): void;
}

export const SOFT_MS = 200;
/** Milliseconds after which a block is said aloud where nothing is ended for it. */
const ALOUD_MS = 2_000;
const BEAT_MS = 50;
/** Longest time for which blocks of the same element are counted instead of logged, in milliseconds. */
const QUIET_MS = 10_000;
/** RELIABILITY 3.2: permanent, within its intensity. A process without a watchdog serves as well as one with. */
const POLICY = { restarts: 5, windowMs: 60_000, backOff: { fromMs: 100, toMs: 10_000 } };

/** One for each process, whatever asks for it first, in whichever copy of this package. */
const watched = processWide<{ by: Watchdog | undefined }>('troupe.watchdog', () => ({ by: undefined }));

/** Files that the thread marks before it ends the process; of those that are gone it marks none. */
const marks = processWide('troupe.watchdog.notes', () => ({ paths: new Set<string>() }));

/** Lets a watchdog that ends this process say so where it is noted what the process is in the middle of. */
export function endsMark(path: string): void {
  if (marks.paths.has(path)) return;
  marks.paths.add(path);
  watched.by?.marks?.(path);
}

/** Watches this process. Where it is watched already, that goes on, and nothing is started. @returns undefined then */
export function startWatchdog(options: WatchdogOptions): Watchdog | undefined {
  if (watched.by) return undefined;
  const { record, log } = options;
  if (record !== undefined) for (const problem of poison.load(record)) log('warning', problem);
  const watchdog = new ProcessWatchdog(options);
  const by: Watchdog = {
    stop() {
      if (watched.by === by) watched.by = undefined;
      watchdog.stop();
    },
    marks: (path) => watchdog.marks(path),
  };
  watched.by = by;
  return by;
}

class ProcessWatchdog implements Watchdog {
  readonly #options: WatchdogOptions;
  readonly #beats = new SharedArrayBuffer(8);
  readonly #view = new Int32Array(this.#beats);
  #worker: Worker | undefined;
  #beating: Timer | undefined;
  #stopped = false;
  #supervisor = initialTransition(supervisorMachine, POLICY)[0];
  #starting: Timer | undefined;
  /** When a block was logged last, by element, and how many were not since. */
  readonly #quiet = new Map<string, { readonly since: number; untold: number }>();

  constructor(options: WatchdogOptions) {
    this.#options = options;
    this.#beat();
    this.#start();
  }

  stop(): void {
    this.#stopped = true;
    this.#beating?.cancel();
    this.#starting?.cancel();
    void this.#worker?.terminate();
  }

  marks(path: string): void {
    const opened: NotesOpened = { type: 'notes', path };
    this.#worker?.postMessage(opened);
  }

  readonly #beat = (): void => {
    Atomics.add(this.#view, 0, 1);
    // Whoever looks at a breakpoint must find the process alive.
    Atomics.store(this.#view, 1, inspectorUrl() === undefined ? 0 : 1);
    this.#beating = systemClock.after(BEAT_MS, this.#beat);
  };

  #start(): void {
    const { softMs = SOFT_MS, hardMs, record } = this.#options;
    const data: WatchdogData = {
      beats: this.#beats,
      beatMs: BEAT_MS,
      softMs,
      hardMs: hardMs ?? ALOUD_MS,
      kill: hardMs !== undefined,
      record,
      notes: [...marks.paths],
    };
    const worker = startThread('watchdog-thread', { workerData: data, name: 'troupe watchdog' });
    worker.on('message', ({ blocked }: BlockOver) => this.#over(blocked));
    worker.on('error', (error) => this.#options.log('error', `the watchdog failed: ${messageOf(error)}`));
    worker.on('exit', () => this.#again());
    // Last: to listen for messages holds the process again.
    worker.unref();
    this.#worker = worker;
  }

  #again(): void {
    if (this.#stopped) return;
    [this.#supervisor] = transition(supervisorMachine, this.#supervisor, { type: 'crash', at: systemClock.now() });
    if (this.#supervisor.value === 'setAside')
      return this.#options.log('error', 'the watchdog failed again and again: nobody watches the event loop now');
    this.#starting = systemClock.after(this.#supervisor.context.delayMs, () => {
      [this.#supervisor] = transition(supervisorMachine, this.#supervisor, { type: 'waited' });
      this.#start();
    });
  }

  #over(blocked: Blocked): void {
    this.#options.over?.(blocked);
    const element = blocked.culprit?.element ?? '';
    const now = systemClock.now();
    const quiet = this.#quiet.get(element);
    if (quiet && now - quiet.since < QUIET_MS) {
      quiet.untold += 1;
      return;
    }
    // Elements are as many as were registered; what was registered and is gone need not be remembered.
    if (this.#quiet.size > 1_000) this.#quiet.clear();
    this.#quiet.set(element, { since: now, untold: 0 });
    const untold = quiet && quiet.untold > 0 ? ` (and ${quiet.untold} times more since it was said last)` : '';
    this.#options.log('warning', `${describeStall(blocked)}${untold}`);
  }
}

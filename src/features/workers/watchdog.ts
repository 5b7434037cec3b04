/**
 * Starts the watchdog, the thread that detects a blocked event loop, and reports stalls when the loop is free again.
 */
import { url as inspectorUrl } from 'node:inspector';
import type { Worker } from 'node:worker_threads';
import { systemClock, type Timer } from '../../core/kernel/clock.ts';
import { processWide } from '../../core/kernel/global-registry.ts';
import { errorFields, type RuntimeLog } from '../../core/kernel/operator-log.ts';
import { startThread } from '../../core/kernel/package-files.ts';
import { Restarts } from '../../core/kernel/restarts.ts';
import { showTimedRuns } from '../../core/kernel/timed-run.ts';
import { messageOf } from '../../core/protocol/json.ts';
import {
  type Blocked,
  type BlockOver,
  describeStall,
  isOwnWork,
  type MarkerPlace,
  type NotesOpened,
  type PolicyChanged,
  type SaveEffect,
  type StallPolicy,
  type WatchdogData,
} from './blocked.ts';
import { poison } from './poison-calls.ts';
import { holdSignals } from './stall-probe.ts';
import type { WatchdogOption } from './watchdog-option.ts';

interface WatchdogOptions extends WatchdogOption {
  log: RuntimeLog;
  /** Milliseconds of a stall after which a signal ends the process at once, as without a listener. Default: never. */
  readonly releaseMs?: number | undefined;
  /** Milliseconds beyond `releaseMs` after which a blocked process ends if stdin has ended. Default: never. */
  readonly inputMs?: number | undefined;
  readonly onSave?: SaveEffect | undefined;
  /** Called when a stall has ended. */
  over?(blocked: Blocked): void;
}

export interface Watchdog {
  /** Called when the watchdog has stopped. */
  stop(): void;
  /** See {@link endsMark}. */
  marks(marker: MarkerPlace): void;
}

const SOFT_MS = 200;
/** Milliseconds after which a stall is reported on stderr. */
export const ALOUD_MS = 2_000;
const BEAT_MS = 50;
/** Milliseconds for which further stalls of the same element are counted instead of logged. */
const QUIET_MS = 10_000;
/** A crashed watchdog is restarted. A process can serve without a watchdog. */
const POLICY = { restarts: 5, windowMs: 60_000, backOff: { fromMs: 100, toMs: 10_000 } };

/** One watchdog for each process, whichever copy of this package starts it. */
const watched = processWide<{ by: Watchdog | undefined; loading: ProcessWatchdog | undefined }>(
  'troupe.watchdog',
  () => ({ by: undefined, loading: undefined }),
);

/** Crash markers that the thread marks before it kills the process. It ignores those that no longer exist. */
const marks = processWide('troupe.watchdog.markers', () => ({ markers: new Set<MarkerPlace>() }));

/** Registers a crash marker, so that the watchdog can record that it killed the process. */
export function endsMark(marker: MarkerPlace): void {
  if (marks.markers.has(marker)) return;
  marks.markers.add(marker);
  watched.by?.marks(marker);
}

/** Watches this process. @returns undefined if the process is already watched; that watchdog continues */
export function startWatchdog(options: WatchdogOptions): Watchdog | undefined {
  if (watched.by) return undefined;
  const { record, log } = options;
  if (record !== undefined) for (const problem of poison.load(record)) log('warning', problem, { event: 'blocked' });
  const watchdog = watched.loading ?? new ProcessWatchdog();
  watched.loading = undefined;
  watchdog.begin(options, policyOf(options));
  const by: Watchdog = {
    stop() {
      if (watched.by === by) watched.by = undefined;
      watchdog.stop();
    },
    marks: (marker) => watchdog.marks(marker),
  };
  watched.by = by;
  return by;
}

/**
 * Watches this process while it loads a program: code at the top level of a module that never ends. The watchdog of the server
 * takes over, or {@link stopLoadWatch} ends it.
 */
export function watchLoad(options: Omit<WatchdogOptions, keyof WatchdogOption | 'over'>): void {
  if (watched.by || watched.loading) return;
  watched.loading = new ProcessWatchdog();
  // Modules that take long to load are no fault: only a stall that is reported at once counts.
  const policy = { ...policyOf({ ...options, softMs: ALOUD_MS }), loading: true };
  watched.loading.begin(options, policy);
}

/** Ends the watch of {@link watchLoad}, unless a server has taken it over. */
export function stopLoadWatch(): void {
  watched.loading?.stop();
  watched.loading = undefined;
}

function policyOf({ softMs = SOFT_MS, releaseMs, hardMs, record, inputMs, onSave }: WatchdogOptions): StallPolicy {
  return { softMs, aloudMs: Math.max(softMs, ALOUD_MS), releaseMs, hardMs, record, inputMs, onSave, loading: false };
}

class ProcessWatchdog implements Watchdog {
  #options: WatchdogOptions = { log: () => {} };
  #policy: StallPolicy = policyOf(this.#options);
  readonly #beats = new SharedArrayBuffer(12);
  readonly #view = new Int32Array(this.#beats);
  #worker: Worker | undefined;
  #beating: Timer | undefined;
  #stopped = false;
  readonly #restarts = new Restarts(POLICY);
  /** Time of the last log line of each element, and the number of stalls since. */
  readonly #quiet = new Map<string, { readonly since: number; unreported: number }>();

  /** Watches from now on by these options, also instead of those before. */
  begin(options: WatchdogOptions, policy: StallPolicy): void {
    this.#options = options;
    this.#policy = policy;
    if (this.#beating) {
      // Until the loop is free once, what blocks it is the rest of the load, which the policy of the load judges. The first call may come
      // before the next beat.
      systemClock.soon(() => this.#judge());
      return;
    }
    this.#beat();
    showTimedRuns(this.#view);
    this.#start();
  }

  stop(): void {
    this.#stopped = true;
    showTimedRuns(undefined);
    this.#beating?.cancel();
    this.#restarts.stop();
    void this.#worker?.terminate();
  }

  marks(marker: MarkerPlace): void {
    const opened: NotesOpened = { type: 'notes', marker };
    this.#worker?.postMessage(opened);
  }

  readonly #beat = (): void => {
    Atomics.add(this.#view, 0, 1);
    // While a debugger is attached, the process must not be killed.
    Atomics.store(this.#view, 1, inspectorUrl() === undefined ? 0 : 1);
    holdSignals();
    this.#beating = systemClock.after(BEAT_MS, this.#beat);
  };

  /** Tells the thread the policy of the server. */
  #judge(): void {
    const changed: PolicyChanged = { type: 'policy', policy: this.#policy };
    this.#worker?.postMessage(changed);
  }

  #start(): void {
    const data: WatchdogData = {
      policy: this.#policy,
      beats: this.#beats,
      beatMs: BEAT_MS,
      notes: [...marks.markers],
    };
    const worker = startThread('features/workers/watchdog-thread', { workerData: data, name: 'troupe watchdog' });
    worker.on('message', ({ blocked, loading }: BlockOver) => this.#over(blocked, loading));
    worker.on('error', (error) =>
      this.#options.log('error', `the watchdog failed: ${messageOf(error)}`, errorFields('blocked', error)),
    );
    worker.on('exit', () => this.#ended());
    // Last, because adding a message listener refs the worker again.
    worker.unref();
    this.#worker = worker;
  }

  #ended(): void {
    if (this.#stopped || this.#restarts.restart(systemClock, () => this.#start()) !== undefined) return;
    this.#options.log('error', 'the watchdog failed too often and was stopped: the event loop is no longer watched', {
      event: 'blocked',
    });
  }

  #over(blocked: Blocked, reported: boolean): void {
    this.#options.over?.(blocked);
    if (reported) return;
    const element = blocked.culprit?.element ?? '';
    const now = systemClock.now();
    const quiet = this.#quiet.get(element);
    if (quiet && now - quiet.since < QUIET_MS) {
      quiet.unreported += 1;
      return;
    }
    // There are as many elements as were ever registered; entries of removed elements are not needed.
    if (this.#quiet.size > 1_000) this.#quiet.clear();
    this.#quiet.set(element, { since: now, unreported: 0 });
    const unreported =
      quiet && quiet.unreported > 0 ? ` (and ${quiet.unreported} more times since the last report)` : '';
    // The author can do nothing about work of our own, which is long on an overloaded machine only.
    const level = blocked.culprit && isOwnWork(blocked.culprit) ? 'info' : 'warning';
    this.#options.log(level, `${describeStall(blocked)}${unreported}`, {
      event: 'blocked',
      ...(element === '' ? {} : { element }),
    });
  }
}

/**
 * The watchdog's thread: measures how long the watched thread has not responded, asks it what is running, names that on
 * stderr, and kills the process at the hard limit.
 */
import { closeSync, constants, fsyncSync, openSync, statSync, writeSync } from 'node:fs';
import { Session } from 'node:inspector';
import { parentPort, workerData } from 'node:worker_threads';
import { systemClock } from '../../core/kernel/clock.ts';
import { TIMED_RUN } from '../../core/kernel/timed-run.ts';
import { isObject } from '../../core/protocol/json.ts';
import { markEnded } from '../../core/store/crash-marker.ts';
import { toText } from '../../core/store/serialize.ts';
import { SharedMark } from '../../core/store/shared-mark.ts';
import {
  type Blocked,
  type BlockOver,
  type Culprit,
  describeStall,
  filesOf,
  isOfAuthor,
  isOwnWork,
  type MarkerPlace,
  type NotesOpened,
  type PolicyChanged,
  type StallPolicy,
  type WatchdogData,
} from './blocked.ts';
import { ASK, INPUT_ENDED, RELEASE, RESTART } from './stall-probe.ts';

/** A link at the path of the record is not followed. Windows has no such flag. */
const { O_APPEND, O_CREAT, O_NOFOLLOW = 0, O_WRONLY } = constants;

/** Milliseconds in which another thread must store the mark of this process before it is killed. */
const PUBLISH_MS = 2_000;
/** Milliseconds of a stall between two looks at stdin and at the files of the blocking code. */
const LINGER_MS = 250;
/** Milliseconds for which the watchdog leaves a run with a time limit alone: `node:vm` ends it earlier. */
const TIMED_MS = 1_000;
/** Milliseconds in which saved code may end by itself. */
const SAVED_MS = 2_000;

/** A length of a stall at which something happens once, with the code that runs then. */
interface Threshold {
  readonly ms: number;
  reached(): void;
  /** The thread was asked what is running. */
  asked: boolean;
  done: boolean;
}

class Watch {
  readonly #data: WatchdogData;
  readonly #beats: Int32Array;
  readonly #notes: MarkerPlace[];
  #policy: StallPolicy;
  #thresholds: readonly Threshold[];
  #seen: number;
  #blockedMs = 0;
  #looked = systemClock.now();
  #idle = false;
  /** The run with a time limit at the last look, and the time for which it was seen. */
  #timed = { run: 0, ms: 0 };
  /** The running code at the soft limit; it is compared with that at the hard limit. */
  #first: Culprit | undefined;
  /** The running code by the last answer of the thread. */
  #last: Culprit | undefined;
  #said = false;
  /** The stall was reported as one of the load. */
  #saidLoading = false;
  #released = false;
  /** Length of the stall at the last look at stdin and the files, and at which stdin was found to have ended. */
  #lingeredMs = 0;
  #inputEndedMs: number | undefined;
  /** Length of the stall when the blocking code was saved. */
  #savedMs: number | undefined;
  /** The files of the blocking code, with the times of their last changes. */
  #files: ReadonlyMap<string, number> | undefined;

  constructor(data: WatchdogData) {
    this.#data = data;
    this.#notes = [...data.notes];
    this.#policy = data.policy;
    this.#thresholds = this.#thresholdsOf(data.policy);
    parentPort?.on('message', (message: NotesOpened | PolicyChanged) => {
      if (message.type === 'notes') this.#notes.push(message.marker);
      else this.#change(message.policy);
    });
    this.#beats = new Int32Array(data.beats);
    this.#seen = this.#beat();
  }

  #change(policy: StallPolicy): void {
    this.#policy = policy;
    this.#thresholds = this.#thresholdsOf(policy);
  }

  #thresholdsOf({ softMs, aloudMs, releaseMs, hardMs }: StallPolicy): readonly Threshold[] {
    const thresholds: readonly (readonly [number | undefined, () => void])[] = [
      [softMs, () => this.#remember()],
      [aloudMs, () => this.#say()],
      [releaseMs, () => this.#release()],
      [hardMs, () => this.#kill()],
    ];
    return thresholds.flatMap(([ms, reached]) =>
      ms === undefined ? [] : [{ ms, reached, asked: false, done: false }],
    );
  }

  #beat(): number {
    return Atomics.load(this.#beats, 0);
  }

  look = (): void => {
    const { beatMs } = this.#data;
    const now = systemClock.now();
    // Limited to our own intervals: time in which the machine was suspended, or did not schedule this thread either, is
    // not a stall.
    const passed = Math.min(now - this.#looked, 2 * beatMs);
    this.#blockedMs += passed;
    this.#looked = now;
    const beat = this.#beat();
    const isTimed = this.#isTimed(passed);
    if (beat !== this.#seen || Atomics.load(this.#beats, 1) !== 0) this.#stirred(beat);
    // The thread answered and nothing was running: the machine is overloaded, and no code of this process is the cause.
    else if (this.#idle) this.#forget();
    else if (!isTimed) {
      for (const threshold of this.#thresholds) this.#check(threshold);
      this.#linger();
    }
    systemClock.after(beatMs, this.look);
  };

  /** True while a run ends itself in time: a question on top of it could take its limit away. */
  #isTimed(passed: number): boolean {
    const run = Atomics.load(this.#beats, TIMED_RUN);
    this.#timed = run === this.#timed.run ? { run, ms: this.#timed.ms + passed } : { run, ms: 0 };
    return run % 2 !== 0 && this.#timed.ms < TIMED_MS;
  }

  /** Asks at the threshold, and acts with the answer. Native code does not answer and gets the same time again. */
  #check(threshold: Threshold): void {
    if (threshold.done || this.#blockedMs < threshold.ms) return;
    if (!threshold.asked) {
      threshold.asked = true;
      this.#last = undefined;
      return this.#ask();
    }
    if (!this.#last && this.#blockedMs < 2 * threshold.ms) return;
    threshold.done = true;
    threshold.reached();
  }

  #stirred(beat: number): void {
    this.#seen = beat;
    if (this.#first || this.#last || this.#said) {
      const loading = this.#saidLoading || this.#policy.loading;
      const over: BlockOver = { type: 'over', blocked: this.#blocked(), loading };
      parentPort?.postMessage(over);
    }
    this.#forget();
  }

  #forget(): void {
    this.#blockedMs = 0;
    this.#said = false;
    this.#saidLoading = false;
    this.#released = false;
    this.#lingeredMs = 0;
    this.#inputEndedMs = undefined;
    this.#savedMs = undefined;
    this.#files = undefined;
    this.#idle = false;
    this.#first = undefined;
    this.#last = undefined;
    for (const threshold of this.#thresholds) {
      threshold.asked = false;
      threshold.done = false;
    }
  }

  /** The running code counts only if it is the same at both limits: many short calls in a row are not a stall. */
  #blocked(): Blocked {
    const culprit = this.#last ?? this.#first;
    const same = this.#last === undefined || this.#first?.digest === this.#last.digest;
    return {
      at: systemClock.date(),
      blockedMs: Math.round(this.#blockedMs),
      culprit: culprit && (same ? culprit : { ...culprit, digest: undefined }),
    };
  }

  /** Interrupts the thread, even in an endless loop; it answers on top of its current code. */
  #ask(): void {
    this.#evaluate(ASK, (value) => {
      // The event loop answered, not code on top of which it was asked.
      if (isCulprit(value) && value.stack === '') this.#idle = true;
      else if (isCulprit(value)) this.#last = value;
    });
  }

  #evaluate(expression: string, then: (value: unknown) => void): void {
    const session = new Session();
    try {
      session.connectToMainThread();
      session.post('Runtime.evaluate', { expression, returnByValue: true }, (error, reply) => {
        then(error ? undefined : reply.result.value);
        session.disconnect();
      });
    } catch {
      // A Node build without the inspector: the stall is detected but cannot be attributed.
    }
  }

  #remember(): void {
    this.#first = this.#last;
  }

  #say(): void {
    const { culprit } = this.#blocked();
    // A compiler and our own code may take long on a busy machine. The author can do nothing about them.
    if (this.#policy.loading ? !isOfAuthor(culprit) : culprit && isOwnWork(culprit)) {
      this.#last = undefined;
      return this.#ask();
    }
    this.#said = true;
    this.#saidLoading = this.#policy.loading;
    const { loading, onSave } = this.#policy;
    const blocked = this.#blocked();
    aloud(describeStall(blocked, loading));
    this.#files = onSave && blocked.culprit ? changesOf(filesOf(blocked.culprit)) : undefined;
    const [file] = this.#files?.keys() ?? [];
    if (file === undefined) return;
    const effect =
      onSave === 'restart' ? 'troupe dev restarts' : 'the process ends, so that its client can start it again';
    aloud(`if you save ${file} meanwhile, ${effect}`);
  }

  /** Looks whether something happened that the blocked thread cannot see. */
  #linger(): void {
    if (this.#blockedMs - this.#lingeredMs < LINGER_MS) return;
    this.#lingeredMs = this.#blockedMs;
    const { aloudMs } = this.#policy;
    if (!this.#said && this.#blockedMs >= 2 * aloudMs) this.#say();
    this.#savedMs ??= this.#isSaved() ? this.#blockedMs : undefined;
    // The code may be about to end.
    if (this.#savedMs !== undefined && this.#blockedMs - this.#savedMs >= SAVED_MS) return this.#endSaved();
    const { inputMs } = this.#policy;
    if (!this.#released || inputMs === undefined) return;
    if (this.#inputEndedMs === undefined)
      return this.#evaluate(INPUT_ENDED, (ended) => {
        if (ended === true) this.#inputEndedMs ??= this.#blockedMs;
      });
    if (this.#blockedMs - this.#inputEndedMs >= inputMs)
      this.#end('stdin has ended, and the event loop is still blocked');
  }

  #isSaved(): boolean {
    const files = this.#files;
    if (!files) return false;
    const now = changesOf([...files.keys()]);
    return [...files].some(([file, changed]) => now.get(file) !== changed);
  }

  /** The process ends: code that is ended alone (`Runtime.terminateExecution`) leaves Node in the middle of a callback. */
  #endSaved(): void {
    const ended = 'the code that blocks the event loop was saved';
    this.#evaluate(RESTART, (restarts) => this.#end(restarts === true ? `${ended}, and troupe dev restarts` : ended));
  }

  /** Ends the process as SIGTERM does without a listener. */
  #end(why: string): void {
    this.#evaluate(RELEASE, () => {
      aloud(`${why}: the process ends`);
      process.kill(process.pid, 'SIGTERM');
    });
  }

  /** Gives the signals their usual effect: the blocked thread receives none of them. */
  #release(): void {
    this.#evaluate(RELEASE, (released) => {
      this.#released = true;
      if (released === true) aloud('Ctrl-C or SIGTERM ends the process at once while the event loop is blocked');
    });
  }

  #kill(): void {
    const blocked = this.#blocked();
    aloud(describeStall(blocked));
    this.#record(blocked);
    for (const marker of this.#notes)
      if (typeof marker === 'string') markEnded(marker);
      else new SharedMark(marker).publish(PUBLISH_MS);
    aloud('the watchdog kills the process (SIGKILL)');
    process.kill(process.pid, 'SIGKILL');
  }

  #record(blocked: Blocked): void {
    const { record } = this.#policy;
    if (record === undefined) return;
    try {
      const file = openSync(record, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0o600);
      writeSync(file, `${toText(blocked)}\n`);
      fsyncSync(file);
      closeSync(file);
    } catch (error) {
      aloud(`could not write ${record}: ${String(error)}`);
    }
  }
}

/** The files that exist, with the times of their last changes. */
function changesOf(files: readonly string[]): ReadonlyMap<string, number> {
  return new Map(
    files.flatMap((file) => {
      const changed = statSync(file, { throwIfNoEntry: false })?.mtimeMs;
      return changed === undefined ? [] : [[file, changed] as const];
    }),
  );
}

/** Writes to the file descriptor directly: other ways lead through the blocked thread. */
function aloud(said: string): void {
  try {
    writeSync(2, `troupe error: ${said}\n`);
  } catch {
    // The reader has gone.
  }
}

function isCulprit(value: unknown): value is Culprit {
  return isObject(value) && typeof value.stack === 'string';
}

// The data from `startWatchdog`.
const data: WatchdogData = workerData;
systemClock.hold();
new Watch(data).look();

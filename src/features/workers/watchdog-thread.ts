/**
 * The watchdog's thread: measures how long the watched thread has not responded, asks it what is running, names that on
 * stderr, and kills the process at the hard limit.
 */
import { closeSync, constants, fsyncSync, openSync, writeSync } from 'node:fs';
import { Session } from 'node:inspector';
import { parentPort, workerData } from 'node:worker_threads';
import { systemClock } from '../../core/kernel/clock.ts';
import { isObject } from '../../core/protocol/json.ts';
import { markEnded } from '../../core/store/crash-marker.ts';
import { toText } from '../../core/store/serialize.ts';
import { SharedMark } from '../../core/store/shared-mark.ts';
import {
  type Blocked,
  type BlockOver,
  type Culprit,
  describeStall,
  type MarkerPlace,
  type NotesOpened,
  type WatchdogData,
} from './blocked.ts';
import { ASK, RELEASE } from './stall-probe.ts';

/** A link at the path of the record is not followed. Windows has no such flag. */
const { O_APPEND, O_CREAT, O_NOFOLLOW = 0, O_WRONLY } = constants;

/** Milliseconds in which another thread must store the mark of this process before it is killed. */
const PUBLISH_MS = 2_000;

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
  readonly #thresholds: readonly Threshold[];
  #seen: number;
  #blockedMs = 0;
  #looked = systemClock.now();
  #idle = false;
  /** The running code at the soft limit; it is compared with that at the hard limit. */
  #first: Culprit | undefined;
  /** The running code by the last answer of the thread. */
  #last: Culprit | undefined;
  #said = false;

  constructor(data: WatchdogData) {
    this.#data = data;
    this.#notes = [...data.notes];
    parentPort?.on('message', ({ marker }: NotesOpened) => void this.#notes.push(marker));
    this.#beats = new Int32Array(data.beats);
    this.#seen = this.#beat();
    const { softMs, aloudMs, releaseMs, hardMs } = data;
    const thresholds: readonly (readonly [number | undefined, () => void])[] = [
      [softMs, () => this.#remember()],
      [aloudMs, () => this.#say()],
      [releaseMs, () => this.#release()],
      [hardMs, () => this.#kill()],
    ];
    this.#thresholds = thresholds.flatMap(([ms, reached]) =>
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
    this.#blockedMs += Math.min(now - this.#looked, 2 * beatMs);
    this.#looked = now;
    const beat = this.#beat();
    if (beat !== this.#seen || Atomics.load(this.#beats, 1) !== 0) this.#stirred(beat);
    // The thread answered and nothing was running: the machine is overloaded, and no code of this process is the cause.
    else if (this.#idle) this.#forget();
    else for (const threshold of this.#thresholds) this.#check(threshold);
    systemClock.after(beatMs, this.look);
  };

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
      const over: BlockOver = { type: 'over', blocked: this.#blocked() };
      parentPort?.postMessage(over);
    }
    this.#forget();
  }

  #forget(): void {
    this.#blockedMs = 0;
    this.#said = false;
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
    this.#said = true;
    aloud(describeStall(this.#blocked()));
  }

  /** Gives the signals their usual effect: the blocked thread receives none of them. */
  #release(): void {
    this.#evaluate(RELEASE, (released) => {
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
    aloud('the watchdog kills the process (SIGKILL), so that it is restarted');
    process.kill(process.pid, 'SIGKILL');
  }

  #record(blocked: Blocked): void {
    const { record } = this.#data;
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

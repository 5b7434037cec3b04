/** The watchdog's thread: it counts how long the watched one has not stirred, asks it what runs, and ends the process when that never ends. */
import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs';
import { Session } from 'node:inspector';
import { parentPort, workerData } from 'node:worker_threads';
import { systemClock } from '../clock.ts';
import { isObject } from '../protocol/json.ts';
import { markEnded } from '../store/crash-marker.ts';
import { toText } from '../store/serialize.ts';
import type { Blocked, BlockOver, Culprit, NotesOpened, WatchdogData } from './blocked.ts';
import { describeStall } from './describe-stall.ts';
import { EXPRESSION } from './stall-probe.ts';

class Watch {
  readonly #data: WatchdogData;
  readonly #beats: Int32Array;
  readonly #notes: string[];
  #seen: number;
  #blockedMs = 0;
  #looked = systemClock.now();
  #asked = false;
  #askedAgain = false;
  #idle = false;
  /** What ran at the soft limit, and what runs at the hard one. */
  #first: Culprit | undefined;
  #last: Culprit | undefined;
  #said = false;

  constructor(data: WatchdogData) {
    this.#data = data;
    this.#notes = [...data.notes];
    parentPort?.on('message', ({ path }: NotesOpened) => void this.#notes.push(path));
    this.#beats = new Int32Array(data.beats);
    this.#seen = this.#beat();
  }

  #beat(): number {
    return Atomics.load(this.#beats, 0);
  }

  look = (): void => {
    const { beatMs, softMs, hardMs } = this.#data;
    const now = systemClock.now();
    // In looks of our own: when the machine slept, or had no time for us either, nobody was blocked.
    this.#blockedMs += Math.min(now - this.#looked, 2 * beatMs);
    this.#looked = now;
    const beat = this.#beat();
    if (beat !== this.#seen || Atomics.load(this.#beats, 1) !== 0) this.#stirred(beat);
    // It answered, and nothing ran there: the machine has no time for it, which is nobody's fault in this process.
    else if (this.#idle) this.#forget();
    else if (this.#blockedMs >= hardMs) this.#tooLong();
    else if (this.#blockedMs >= softMs && !this.#asked) {
      this.#asked = true;
      this.#ask((culprit) => {
        this.#first = culprit;
      });
    }
    systemClock.after(beatMs, this.look);
  };

  /** What runs is asked once more; who is in native code does not answer, and gets as long again. */
  #tooLong(): void {
    const { hardMs, kill } = this.#data;
    if (!this.#askedAgain) {
      this.#askedAgain = true;
      this.#ask((culprit) => {
        this.#last = culprit;
      });
    } else if (!this.#said && (this.#last || this.#blockedMs >= 2 * hardMs)) {
      this.#said = true;
      this.#late(kill);
    }
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
    this.#asked = false;
    this.#askedAgain = false;
    this.#said = false;
    this.#idle = false;
    this.#first = undefined;
    this.#last = undefined;
  }

  /** What runs at the end counts only where it ran at the beginning, too: many short calls in a row are nobody's fault. */
  #blocked(): Blocked {
    const culprit = this.#last ?? this.#first;
    const same = this.#last === undefined || this.#first?.digest === this.#last.digest;
    return {
      at: systemClock.date(),
      blockedMs: Math.round(this.#blockedMs),
      culprit: culprit && (same ? culprit : { ...culprit, digest: undefined }),
    };
  }

  /** The thread is interrupted, even in a loop without an end, and answers on top of what it does. */
  #ask(answered: (culprit: Culprit) => void): void {
    const session = new Session();
    try {
      session.connectToMainThread();
      session.post('Runtime.evaluate', { expression: EXPRESSION, returnByValue: true }, (error, reply) => {
        const value: unknown = error ? undefined : reply.result.value;
        // Asked from its event loop, and not on top of anything.
        if (isCulprit(value) && value.stack === '') this.#idle = true;
        else if (isCulprit(value)) answered(value);
        session.disconnect();
      });
    } catch {
      // A Node that was built without the inspector: it is not known what runs, only that it does.
    }
  }

  #late(kill: boolean): void {
    const blocked = this.#blocked();
    aloud(describeStall(blocked));
    if (!kill) return;
    this.#record(blocked);
    for (const path of this.#notes) markEnded(path);
    aloud('the process ends itself (SIGKILL), to be started again');
    process.kill(process.pid, 'SIGKILL');
  }

  #record(blocked: Blocked): void {
    const { record } = this.#data;
    if (record === undefined) return;
    try {
      const file = openSync(record, 'a', 0o600);
      writeSync(file, `${toText(blocked)}\n`);
      fsyncSync(file);
      closeSync(file);
    } catch (error) {
      aloud(`${record} was not written: ${String(error)}`);
    }
  }
}

/** Straight to the descriptor: whatever goes by way of the blocked thread waits for it. */
function aloud(said: string): void {
  try {
    writeSync(2, `troupe error: ${said}\n`);
  } catch {
    // Nobody reads it any more.
  }
}

function isCulprit(value: unknown): value is Culprit {
  return isObject(value) && typeof value.stack === 'string';
}

// What `startWatchdog` gave.
const data: WatchdogData = workerData;
systemClock.hold();
new Watch(data).look();

/** Calls that blocked this process until it was ended: after the second time they are refused, or nothing else would ever be served. */
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { nanoid } from 'nanoid';
import { systemClock } from '../clock.ts';
import { processWide } from '../global-registry.ts';
import { isObject } from '../protocol/json.ts';
import { fromText, toText } from '../store/serialize.ts';
import type { Blocked } from './blocked.ts';

/** A call that blocked the process. */
export interface Poisoned {
  readonly element: string;
  /** See {@link Culprit}. */
  readonly digest: string;
  /** How often it did. From {@link MAX_ATTEMPTS} on it is refused. */
  readonly attempts: number;
  /** The last time, in milliseconds since 1970. */
  readonly at: number;
  /** Names it for the client and in the log. */
  readonly incident: string;
  /** Where it was. */
  readonly stack: string;
}

/** RELIABILITY 3.2, "poison rule": what ended its host twice is not tried a third time. */
export const MAX_ATTEMPTS = 2;
/** Most calls that are remembered; the oldest give way. */
const MAX_KEPT = 1_000;
/** Milliseconds for which a call is held against itself: what it met may be mended. */
const KEPT_MS = 86_400_000;

export class PoisonCalls {
  readonly #calls = new Map<string, Poisoned>();
  #file: string | undefined;

  /** How many calls are known. Read it before a digest is made. */
  get size(): number {
    return this.#calls.size;
  }

  /** Takes up what the watchdog wrote before it ended the process, and writes to that file from now on. @returns what was wrong with it */
  load(file: string): readonly string[] {
    this.#file = file;
    const problems: string[] = [];
    for (const line of linesOf(file)) {
      try {
        const blocked: unknown = fromText(line, file);
        if (isBlocked(blocked)) this.add(blocked);
        else if (isPoisoned(blocked)) this.#keep(blocked);
      } catch {
        // The last line may have been cut off with the process.
        problems.push(`${file}: a line is no JSON, and is left out: ${line.slice(0, 80)}`);
      }
    }
    this.#write();
    return problems;
  }

  /** The process was ended for this. */
  add({ at, culprit }: Blocked): void {
    if (culprit?.element === undefined || culprit.digest === undefined) return;
    const { element, digest, stack } = culprit;
    const before = this.#calls.get(digest);
    this.#keep({
      element,
      digest,
      stack,
      at,
      attempts: (before?.attempts ?? 0) + 1,
      incident: before?.incident ?? nanoid(10),
    });
  }

  #keep(call: Poisoned): void {
    if (call.at + KEPT_MS < systemClock.date()) return;
    this.#calls.delete(call.digest);
    this.#calls.set(call.digest, call);
    const [oldest] = this.#calls.keys();
    if (this.#calls.size > MAX_KEPT && oldest !== undefined) this.#calls.delete(oldest);
  }

  /** Whether a call of this element must have its digest looked at. */
  suspects(element: string): boolean {
    for (const call of this.#calls.values()) if (call.element === element) return true;
    return false;
  }

  /** The call of that digest, if it is refused. */
  refused(digest: string): Poisoned | undefined {
    const call = this.#calls.get(digest);
    if (!call || call.attempts < MAX_ATTEMPTS) return undefined;
    if (call.at + KEPT_MS >= systemClock.date()) return call;
    this.#calls.delete(digest);
    return undefined;
  }

  /** Those that are refused. */
  all(): readonly Poisoned[] {
    return [...this.#calls.values()].filter(({ attempts }) => attempts >= MAX_ATTEMPTS);
  }

  /** Lets a call be tried again. @returns false when there is none of that digest or incident */
  release(name: string): boolean {
    const found = [...this.#calls.values()].find(({ digest, incident }) => digest === name || incident === name);
    if (!found) return false;
    this.#calls.delete(found.digest);
    this.#write();
    return true;
  }

  /** One line a call: the file grows by what blocks, and shrinks with each start. */
  #write(): void {
    const file = this.#file;
    if (file === undefined) return;
    const text = [...this.#calls.values()].map((call) => `${toText(call)}\n`).join('');
    writeFileSync(`${file}.new`, text, { mode: 0o600 });
    renameSync(`${file}.new`, file);
  }
}

/** Of the whole process: what ended it may be called through any of its servers. */
export const poison: PoisonCalls = processWide('troupe.poison', () => new PoisonCalls());

function linesOf(file: string): readonly string[] {
  try {
    return readFileSync(file, 'utf8')
      .split('\n')
      .filter((line) => line !== '');
  } catch {
    // None was written yet.
    return [];
  }
}

function isBlocked(value: unknown): value is Blocked {
  return isObject(value) && typeof value.blockedMs === 'number' && isObject(value.culprit);
}

function isPoisoned(value: unknown): value is Poisoned {
  return isObject(value) && typeof value.attempts === 'number' && typeof value.digest === 'string';
}

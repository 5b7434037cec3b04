/**
 * Detects poison calls: calls that blocked this process until it was killed. After the second time they are rejected,
 * because nothing else would ever be served.
 */
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
  /** How often it did. From {@link MAX_ATTEMPTS} on it is rejected. */
  readonly attempts: number;
  /** Time of the last stall, in milliseconds since 1970. */
  readonly at: number;
  /** Its incident id for the client and the log. */
  readonly incident: string;
  /** Its stack. */
  readonly stack: string;
}

/** RELIABILITY 3.2, "poison rule": a call that ended its process twice is not tried a third time. */
export const MAX_ATTEMPTS = 2;
/** Most calls that are remembered. The oldest are forgotten. */
const MAX_KEPT = 1_000;
/** Milliseconds for which a call is remembered: its cause may be fixed later. */
const KEPT_MS = 86_400_000;

export class PoisonCalls {
  readonly #calls = new Map<string, Poisoned>();
  #file: string | undefined;

  /** The number of known calls. Check it before computing a digest. */
  get size(): number {
    return this.#calls.size;
  }

  /**
   * Loads what the watchdog wrote before it killed the process, and uses that file from now on. @returns problems with
   * the file
   */
  load(file: string): readonly string[] {
    this.#file = file;
    const problems: string[] = [];
    for (const line of linesOf(file)) {
      try {
        const blocked: unknown = fromText(line, file);
        if (isBlocked(blocked)) this.add(blocked);
        else if (isPoisoned(blocked)) this.#keep(blocked);
      } catch {
        // The last line may be incomplete, because the process was killed.
        problems.push(`${file}: ignored a line that is not JSON: ${line.slice(0, 80)}`);
      }
    }
    this.#write();
    return problems;
  }

  /** Records a call for which the process was killed. */
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

  /** Whether a call of this element needs a digest check. */
  suspects(element: string): boolean {
    for (const call of this.#calls.values()) if (call.element === element) return true;
    return false;
  }

  /** The call of this digest if it is rejected. */
  refused(digest: string): Poisoned | undefined {
    const call = this.#calls.get(digest);
    if (!call || call.attempts < MAX_ATTEMPTS) return undefined;
    if (call.at + KEPT_MS >= systemClock.date()) return call;
    this.#calls.delete(digest);
    return undefined;
  }

  /** All rejected calls. */
  all(): readonly Poisoned[] {
    return [...this.#calls.values()].filter(({ attempts }) => attempts >= MAX_ATTEMPTS);
  }

  /** Allows a call again. @returns false if no call has this digest or incident */
  release(name: string): boolean {
    const found = [...this.#calls.values()].find(({ digest, incident }) => digest === name || incident === name);
    if (!found) return false;
    this.#calls.delete(found.digest);
    this.#write();
    return true;
  }

  /** Writes one line for each call. The file grows with each stall and is compacted at each start. */
  #write(): void {
    const file = this.#file;
    if (file === undefined) return;
    const text = [...this.#calls.values()].map((call) => `${toText(call)}\n`).join('');
    writeFileSync(`${file}.new`, text, { mode: 0o600 });
    renameSync(`${file}.new`, file);
  }
}

/** Shared by the process: any of its servers may receive a poison call. */
export const poison: PoisonCalls = processWide('troupe.poison', () => new PoisonCalls());

function linesOf(file: string): readonly string[] {
  try {
    return readFileSync(file, 'utf8')
      .split('\n')
      .filter((line) => line !== '');
  } catch {
    // The file does not exist yet.
    return [];
  }
}

function isBlocked(value: unknown): value is Blocked {
  return isObject(value) && typeof value.blockedMs === 'number' && isObject(value.culprit);
}

function isPoisoned(value: unknown): value is Poisoned {
  return isObject(value) && typeof value.attempts === 'number' && typeof value.digest === 'string';
}

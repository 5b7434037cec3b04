/**
 * Detects poison calls: reads the file in which the watchdog names the call that blocked the process until it was killed
 * ({@link PoisonRegistry} decides). Such a call is rejected after the second time, because nothing else would ever be served.
 */
import { readFileSync } from 'node:fs';
import { systemClock } from '../../core/kernel/clock.ts';
import { replaceFile } from '../../core/kernel/files/replace-file.ts';
import { processWide } from '../../core/kernel/global-registry.ts';
import { deathsOf, isPoison, type PoisonRecord, PoisonRegistry } from '../../core/kernel/poison-registry.ts';
import { randomId } from '../../core/kernel/random-id.ts';
import { isObject } from '../../core/protocol/json.ts';
import { fromText, toText } from '../../core/store/serialize.ts';
import type { Blocked } from './blocked.ts';

/** A call that blocked the process. */
export interface Poisoned {
  readonly element: string;
  /** See {@link Culprit}. */
  readonly digest: string;
  /** Number of times that it did. From the second time on it is rejected. */
  readonly attempts: number;
  /** Time of the last stall, in milliseconds since 1970. */
  readonly at: number;
  /** Its incident id for the client and the log. */
  readonly incident: string;
  /** Its stack. */
  readonly stack: string;
}

/** The facts of a call beside its counts. */
type CallFacts = Pick<Poisoned, 'element' | 'incident' | 'stack'>;

class PoisonCalls {
  readonly #records = new PoisonRegistry<CallFacts>(() => systemClock.date());
  #file: string | undefined;

  /** The number of known calls. Check it before computing a digest. */
  get size(): number {
    return this.#records.size;
  }

  /**
   * Loads the calls that the watchdog wrote before it killed the process, and uses that file from now on. @returns problems
   * with the file
   */
  load(file: string): readonly string[] {
    this.#file = file;
    const problems: string[] = [];
    for (const line of linesOf(file)) {
      try {
        const blocked: unknown = fromText(line, file);
        if (isBlocked(blocked)) this.add(blocked);
        else if (isPoisoned(blocked)) this.#restore(blocked);
      } catch {
        // The last line may be incomplete, because the process was killed.
        problems.push(`${file}: ignored a line that is not JSON: ${line.slice(0, 80)}`);
      }
    }
    this.#write();
    return problems;
  }

  /** Records a call for which the watchdog killed the process: always a crash. */
  add({ at, culprit }: Blocked): void {
    if (culprit?.element === undefined || culprit.digest === undefined) return;
    const { element, digest, stack } = culprit;
    const factsOf = (before: CallFacts | undefined): CallFacts => {
      return { element, stack, incident: before?.incident ?? randomId(10) };
    };
    this.#records.died(digest, { crashed: true, at, factsOf });
  }

  #restore({ digest, attempts, at, ...facts }: Poisoned): void {
    this.#records.restore(digest, { crashes: attempts, unexplained: 0, at, facts });
  }

  /** Returns whether a call of this element needs a digest check. */
  suspects(element: string): boolean {
    for (const [, { facts }] of this.#records.records()) if (facts.element === element) return true;
    return false;
  }

  /** The call of this digest if it is rejected. */
  refused(digest: string): Poisoned | undefined {
    const record = this.#records.find(digest);
    return record && isPoison(record) ? poisoned(digest, record) : undefined;
  }

  /** All rejected calls. */
  all(): readonly Poisoned[] {
    return this.#all().filter(({ digest }) => this.refused(digest) !== undefined);
  }

  /** Allows a call again. @returns false if no call has this digest or incident */
  release(name: string): boolean {
    const found = this.#records.release((digest, { facts }) => digest === name || facts.incident === name);
    if (found) this.#write();
    return found !== undefined;
  }

  #all(): readonly Poisoned[] {
    return [...this.#records.records()].map(([digest, record]) => poisoned(digest, record));
  }

  /** Writes one line for each call. The file grows with each stall and is compacted at each start. */
  #write(): void {
    const file = this.#file;
    if (file === undefined) return;
    const text = this.#all()
      .map((call) => `${toText(call)}\n`)
      .join('');
    replaceFile(file, text, { mode: 0o600 });
  }
}

/** Shared by the process: any of its servers may receive a poison call. */
export const poison: PoisonCalls = processWide('troupe.poison', () => new PoisonCalls());

function poisoned(digest: string, record: PoisonRecord<CallFacts>): Poisoned {
  const { element, incident, stack } = record.facts;
  return { element, digest, attempts: deathsOf(record), at: record.at, incident, stack };
}

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

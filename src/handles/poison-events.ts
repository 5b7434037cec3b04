/** What the machines of handles were doing when the process died, counted over its lives: what has crashed it twice is not done a third time (RELIABILITY 3.2). */
import { createHash } from 'node:crypto';
import type { OperatorLog } from '../operator-log.ts';
import { isObject, messageOf } from '../protocol/json.ts';
import { running } from '../requests/running.ts';
import { fromText, toText } from '../store/serialize.ts';
import type { Store } from '../store/store.ts';
import type { QueuedCall } from './bounded-mailbox.ts';

/** How often something may crash the process. */
const MOST_CRASHES = 2;
/**
 * How often the process may die in the middle of something where nobody knows whether that crashed it or somebody killed it. Chance
 * does not meet the same event three times, without one time in between at which the process survives it.
 */
const MOST_DEATHS = 3;
/** What an instance does by itself: its timers, what comes of its work, what it begins. */
export const OWN_ACTIVITY = 'by itself';

const ACTOR = 'server/suspects';
/** Most that are remembered; the oldest give way. */
const MOST = 1_000;
/** Milliseconds for which a death is held against what was done: what it met may be mended. */
const KEPT_MS = 86_400_000;
/** Longest event that is noted as it is, in characters. */
const LONGEST = 2_000;

interface Deaths {
  /** How often it has crashed the process. */
  readonly times: number;
  /** How often the process died in the middle of it, and may have been killed from outside. Reset where the process survives it. */
  readonly unsure?: number | undefined;
  /** Of the last, in milliseconds since 1970. */
  readonly at: number;
  /** Once it is set aside: the incident of its dead letter, the instance, and what it was, for people. */
  readonly setAside?: SetAside | undefined;
}

interface SetAside {
  readonly incident: string;
  readonly id: string;
  readonly what: string;
  /** The instance did so by itself, and is set aside as a whole. */
  readonly own: boolean;
}

/** What is held against something that an instance is to do. */
export interface Suspicion {
  /** How often the process died in the middle of it. */
  readonly deaths: number;
  /** It is not done again. */
  readonly condemned: boolean;
  /** The incident under which it was set aside before. */
  readonly incident: string | undefined;
}

/** Something that is not done again until it is released. */
export interface Condemned extends SetAside {
  readonly digest: string;
  readonly deaths: number;
  readonly at: number;
}

export interface PoisonEventsDeps {
  readonly store: Store;
  readonly log: OperatorLog;
  /** Milliseconds since 1970, unaffected by changes of the wall clock. */
  date(): number;
  /** How the previous process ended, as reported by the supervisor that started both. */
  previous?(): { readonly pid: number; readonly crashed: boolean } | undefined;
}

export class PoisonEvents {
  readonly #deps: PoisonEventsDeps;
  readonly #known = new Map<string, Deaths>();
  #noting = false;

  constructor(deps: PoisonEventsDeps) {
    this.#deps = deps;
  }

  /** Before anything is done: counts what the process before this one was in the middle of. */
  async restore(): Promise<void> {
    const { store, date, log } = this.#deps;
    const { notes } = store;
    if (!notes) return;
    await this.#load(store);
    const { last } = notes;
    if (last === undefined) return;
    const key = keyOf(last);
    const { times = 0, unsure = 0 } = this.#known.get(key) ?? {};
    const crashed = this.#crashed();
    const deaths = { times: times + (crashed ? 1 : 0), unsure: unsure + (crashed ? 0 : 1), at: Math.round(date()) };
    this.#known.delete(key);
    this.#known.set(key, deaths);
    const [oldest] = this.#known.keys();
    if (this.#known.size > MOST && oldest !== undefined) this.#known.delete(oldest);
    log(
      'error',
      `the process before this one ended in the middle of ${inWords(last)}: ${times + unsure + 1} times so far${crashed ? '' : '; it may have been killed from outside'}`,
    );
    await this.#write();
    notes.clear();
  }

  /** Whether the process before this one crashed, as far as anybody knows: the process itself, or who has started both. */
  #crashed(): boolean {
    const { store, previous } = this.#deps;
    const by = store.notes?.by;
    if (by?.ended) return true;
    const told = previous?.();
    return told !== undefined && told.pid === by?.pid && told.crashed;
  }

  /** What is held against an instance doing this; undefined for nothing. */
  against(id: string, what: string): Suspicion | undefined {
    if (this.#known.size === 0) return undefined;
    const found = this.#known.get(keyOf(toText([id, what])));
    if (!found || found.at + KEPT_MS <= this.#deps.date()) return undefined;
    return { deaths: deathsOf(found), condemned: isCondemned(found), incident: found.setAside?.incident };
  }

  /** The same for a job that is to be served. */
  againstJob(id: string, job: QueuedCall): Suspicion | undefined {
    return this.#known.size === 0 || job.type !== 'event' ? undefined : this.against(id, whatOf(job));
  }

  /** The process has survived a job: what may have come from outside before is not held against it any more. */
  survives(id: string, job: QueuedCall): void {
    if (this.#known.size === 0 || job.type !== 'event') return;
    const key = keyOf(toText([id, whatOf(job)]));
    const found = this.#known.get(key);
    if (!found?.unsure) return;
    if (found.times > 0) this.#known.set(key, { ...found, unsure: 0 });
    else this.#known.delete(key);
    this.#writeSoon();
  }

  /** What is condemned has become a dead letter. @param job undefined for what the instance did by itself */
  setAside(id: string, job: QueuedCall | undefined, incident: string): void {
    const note = toText([id, job ? whatOf(job) : OWN_ACTIVITY]);
    const key = keyOf(note);
    const found = this.#known.get(key);
    if (!found || !isCondemned(found)) return;
    this.#known.set(key, { ...found, setAside: { incident, id, what: inWords(note), own: job === undefined } });
    this.#writeSoon();
  }

  /** What is not done again until it is released. */
  condemned(): readonly Condemned[] {
    const now = this.#deps.date();
    return [...this.#known].flatMap(([digest, deaths]) =>
      deaths.setAside && deaths.at + KEPT_MS > now
        ? [{ ...deaths.setAside, digest, deaths: deathsOf(deaths), at: deaths.at }]
        : [],
    );
  }

  /** Holds nothing against it any more. @returns what it was; undefined where nothing was set aside under that incident */
  release(incident: string): Condemned | undefined {
    const found = this.condemned().find((each) => each.incident === incident);
    if (!found) return undefined;
    this.#known.delete(found.digest);
    this.#writeSoon();
    return found;
  }

  /** An instance begins with a job; what it was noted for before is over. */
  begins(id: string, job: QueuedCall): void {
    const { notes } = this.#deps.store;
    if (!notes || job.type !== 'event') return;
    this.#noting = true;
    notes.write(toText([id, whatOf(job)]));
  }

  /** Nothing is done any more. */
  over(): void {
    if (!this.#noting) return;
    this.#noting = false;
    this.#deps.store.notes?.clear();
  }

  /** Runs what an instance does by itself; within a job, it is part of that. What blocks the loop is named by it. */
  noting<T>(id: string, run: () => T): T {
    const { notes } = this.#deps.store;
    if (!notes || this.#noting) return run();
    this.#noting = true;
    notes.write(toText([id, OWN_ACTIVITY]));
    try {
      // Until its call is answered it is that call's doing.
      return running.getStore()?.request ? run() : running.run({ label: shortly(id), request: undefined }, run);
    } finally {
      this.over();
    }
  }

  async #write(): Promise<void> {
    const now = Math.round(this.#deps.date());
    const row = { id: ACTOR, kind: 'server', name: 'suspects', principal: '', status: 'live', created: now } as const;
    await this.#deps.store.commit([
      { type: 'actor', actor: { ...row, expires: now + KEPT_MS } },
      { type: 'snapshot', actor: ACTOR, version: '1', data: toText(Object.fromEntries(this.#known)) },
    ]);
  }

  #writeSoon(): void {
    this.#write().catch((error: unknown) => this.#deps.log('warning', `${ACTOR} is not kept: ${messageOf(error)}`));
  }

  async #load(store: Store): Promise<void> {
    try {
      const stored = await store.load(ACTOR);
      const known = stored?.snapshot ? fromText(stored.snapshot.data, ACTOR) : {};
      const now = this.#deps.date();
      for (const [key, deaths] of Object.entries(isObject(known) ? known : {}))
        if (isDeaths(deaths) && deaths.at + KEPT_MS > now) this.#known.set(key, deaths);
    } catch (error) {
      // Then it is counted anew.
      this.#deps.log('warning', `${ACTOR} cannot be read: ${messageOf(error)}`);
    }
  }
}

function deathsOf({ times, unsure = 0 }: Deaths): number {
  return times + unsure;
}

function isCondemned(deaths: Deaths): boolean {
  return deaths.times >= MOST_CRASHES || deathsOf(deaths) >= MOST_DEATHS;
}

/** For the log: the id itself may be the key to the handle, and what an event brings is nobody's business. */
function inWords(note: string): string {
  try {
    const read = fromText(note, 'a note');
    const [id = '', what = '']: readonly unknown[] = Array.isArray(read) ? read : [];
    const event = what === OWN_ACTIVITY ? undefined : fromText(String(what), 'an event');
    const type = isObject(event) ? `event "${String(event.type)}" of ` : '';
    return type + shortly(String(id));
  } catch {
    return 'an event';
  }
}

/** As `addressOf` has it. */
function shortly(id: string): string {
  return id.slice(0, id.lastIndexOf('/') + 7);
}

function isDeaths(value: unknown): value is Deaths {
  return isObject(value) && typeof value.times === 'number' && typeof value.at === 'number';
}

/** Of a client's event: the same for the same data. */
function whatOf(job: QueuedCall): string {
  if (job.type !== 'event') return job.type;
  let text: string;
  try {
    text = toText(job.event);
  } catch {
    // What JSON cannot say was not sent by a client.
    text = job.event.type;
  }
  return text.length <= LONGEST ? text : keyOf(text);
}

function keyOf(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}

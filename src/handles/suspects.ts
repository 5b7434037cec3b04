/** What the machines of handles were doing when the process died, counted over its lives: what has ended it twice is not done a third time (RELIABILITY 3.2). */
import { createHash } from 'node:crypto';
import { running } from '../execution/running.ts';
import { isObject, messageOf } from '../protocol/json.ts';
import type { Store } from '../store/store.ts';
import { fromText, toText } from '../store/text.ts';
import type { InstanceHost } from './host.ts';
import type { Job } from './jobs.ts';

/** How often something may end the process. */
export const MOST_DEATHS = 2;
/** What an instance does by itself: its timers, what comes of its work, what it begins. */
export const OWN = 'by itself';

const ACTOR = 'server/suspects';
/** Most that are remembered; the oldest give way. */
const MOST = 1_000;
/** Milliseconds for which a death is held against what was done: what it met may be mended. */
const KEPT_MS = 86_400_000;
/** Longest event that is noted as it is, in characters. */
const LONGEST = 2_000;

interface Deaths {
  readonly times: number;
  /** Of the last, in milliseconds since 1970. */
  readonly at: number;
}

export class Suspects {
  readonly #host: Pick<InstanceHost, 'store' | 'date' | 'log'>;
  readonly #known = new Map<string, Deaths>();
  #noting = false;

  constructor(host: Pick<InstanceHost, 'store' | 'date' | 'log'>) {
    this.#host = host;
  }

  /** Before anything is done: counts what the process before this one was in the middle of. */
  async restore(): Promise<void> {
    const { store, date, log } = this.#host;
    const { notes } = store;
    if (!notes) return;
    await this.#load(store);
    const { last } = notes;
    if (last === undefined) return;
    const now = Math.round(date());
    const key = keyOf(last);
    const times = (this.#known.get(key)?.times ?? 0) + 1;
    this.#known.delete(key);
    this.#known.set(key, { times, at: now });
    const [oldest] = this.#known.keys();
    if (this.#known.size > MOST && oldest !== undefined) this.#known.delete(oldest);
    log('error', `the process before this one ended in the middle of ${inWords(last)}: ${times} times so far`);
    const row = { id: ACTOR, kind: 'server', name: 'suspects', principal: '', status: 'live', created: now } as const;
    await store.commit([
      { type: 'actor', actor: { ...row, expires: now + KEPT_MS } },
      { type: 'snapshot', actor: ACTOR, version: '1', data: toText(Object.fromEntries(this.#known)) },
    ]);
    notes.clear();
  }

  /** How often this instance has ended the process doing this. */
  deaths(id: string, what: string): number {
    if (this.#known.size === 0) return 0;
    const found = this.#known.get(keyOf(toText([id, what])));
    return found && found.at + KEPT_MS > this.#host.date() ? found.times : 0;
  }

  /** The same for a job that is to be served. */
  deathsOf(id: string, job: Job): number {
    return this.#known.size === 0 || job.type !== 'event' ? 0 : this.deaths(id, whatOf(job));
  }

  /** An instance begins with a job; what it was noted for before is over. */
  begins(id: string, job: Job): void {
    const { notes } = this.#host.store;
    if (!notes || job.type !== 'event') return;
    this.#noting = true;
    notes.write(toText([id, whatOf(job)]));
  }

  /** Nothing is done any more. */
  over(): void {
    if (!this.#noting) return;
    this.#noting = false;
    this.#host.store.notes?.clear();
  }

  /** Runs what an instance does by itself; within a job, it is part of that. What blocks the loop is named by it. */
  noting<T>(id: string, run: () => T): T {
    const { notes } = this.#host.store;
    if (!notes || this.#noting) return run();
    this.#noting = true;
    notes.write(toText([id, OWN]));
    try {
      // Until its call is answered it is that call's doing.
      return running.getStore()?.request ? run() : running.run({ label: shortly(id), request: undefined }, run);
    } finally {
      this.over();
    }
  }

  async #load(store: Store): Promise<void> {
    try {
      const stored = await store.load(ACTOR);
      const known = stored?.snapshot ? fromText(stored.snapshot.data, ACTOR) : {};
      const now = this.#host.date();
      for (const [key, deaths] of Object.entries(isObject(known) ? known : {}))
        if (isDeaths(deaths) && deaths.at + KEPT_MS > now) this.#known.set(key, deaths);
    } catch (error) {
      // Then it is counted anew.
      this.#host.log('warning', `${ACTOR} cannot be read: ${messageOf(error)}`);
    }
  }
}

/** For the log: the id itself may be the key to the handle, and what an event brings is nobody's business. */
function inWords(note: string): string {
  try {
    const read = fromText(note, 'a note');
    const [id = '', what = '']: readonly unknown[] = Array.isArray(read) ? read : [];
    const event = what === OWN ? undefined : fromText(String(what), 'an event');
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
function whatOf(job: Job): string {
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

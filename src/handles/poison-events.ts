/**
 * Detects poison events: remembers across restarts which event was running when the process died, and quarantines it after
 * two crashes (RELIABILITY 3.2).
 */
import { createHash } from 'node:crypto';
import type { OperatorLog } from '../operator-log.ts';
import { isObject, messageOf } from '../protocol/json.ts';
import { running } from '../requests/running.ts';
import { fromText, toText } from '../store/serialize.ts';
import type { Store } from '../store/store.ts';
import type { QueuedCall } from './bounded-mailbox.ts';

/** Number of crashes of the process after which an event is quarantined. */
const MOST_CRASHES = 2;
/**
 * Number of deaths of the process after which an event is quarantined if the cause is unknown, because the process may also
 * have been killed. Three deaths during the same event, without surviving it once in between, are not a coincidence.
 */
const MOST_DEATHS = 3;
/** The activity of an instance without a call: its timers, the results of its invocations, its start. */
export const OWN_ACTIVITY = 'by itself';

const ACTOR = 'server/suspects';
/** Maximum number of remembered events; the oldest are evicted. */
const MOST = 1_000;
/** Milliseconds until a death expires: its cause may have been fixed by then. */
const KEPT_MS = 86_400_000;
/** Length in characters up to which an event is stored literally; a longer one is stored as a digest. */
const LONGEST = 2_000;

interface Deaths {
  /** Number of times that this event crashed the process. */
  readonly times: number;
  /** Number of times that the process died during this event and may have been killed from outside. Reset once the process survives the event. */
  readonly unsure?: number | undefined;
  /** Date of the last death, in milliseconds since 1970. */
  readonly at: number;
  /** Set once the event is quarantined: the incident of its dead letter, the instance, and a description for operators. */
  readonly setAside?: SetAside | undefined;
}

interface SetAside {
  readonly incident: string;
  readonly id: string;
  readonly what: string;
  /** The instance caused it without a call, so the whole instance is quarantined. */
  readonly own: boolean;
}

/** The recorded deaths of an event that an instance is about to process. */
export interface Suspicion {
  /** Number of times that the process died during it. */
  readonly deaths: number;
  /** The event must not be processed again. */
  readonly condemned: boolean;
  /** The incident under which the event was quarantined earlier. */
  readonly incident: string | undefined;
}

/** An event or activity that is rejected until an operator releases it. */
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

  /** Counts what the previous process was doing when it died. Runs before anything else does. */
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
      `the previous process died while it processed ${inWords(last)} (${times + unsure + 1} times so far${crashed ? '' : '; it may have been killed from outside'})`,
    );
    await this.#write();
    notes.clear();
  }

  /** Returns whether the previous process is known to have crashed, by its own note or from its supervisor. */
  #crashed(): boolean {
    const { store, previous } = this.#deps;
    const by = store.notes?.by;
    if (by?.ended) return true;
    const told = previous?.();
    return told !== undefined && told.pid === by?.pid && told.crashed;
  }

  /** Returns the recorded deaths of this activity of an instance; undefined if there are none. */
  against(id: string, what: string): Suspicion | undefined {
    if (this.#known.size === 0) return undefined;
    const found = this.#known.get(keyOf(toText([id, what])));
    if (!found || found.at + KEPT_MS <= this.#deps.date()) return undefined;
    return { deaths: deathsOf(found), condemned: isCondemned(found), incident: found.setAside?.incident };
  }

  /** The same for a queued call. */
  againstJob(id: string, job: QueuedCall): Suspicion | undefined {
    return this.#known.size === 0 || job.type !== 'event' ? undefined : this.against(id, whatOf(job));
  }

  /** Clears the uncertain deaths of an event after the process has survived it. */
  survives(id: string, job: QueuedCall): void {
    if (this.#known.size === 0 || job.type !== 'event') return;
    const key = keyOf(toText([id, whatOf(job)]));
    const found = this.#known.get(key);
    if (!found?.unsure) return;
    if (found.times > 0) this.#known.set(key, { ...found, unsure: 0 });
    else this.#known.delete(key);
    this.#writeSoon();
  }

  /**
   * Records that a poison event became a dead letter.
   *
   * @param job undefined for an activity of the instance itself
   */
  setAside(id: string, job: QueuedCall | undefined, incident: string): void {
    const note = toText([id, job ? whatOf(job) : OWN_ACTIVITY]);
    const key = keyOf(note);
    const found = this.#known.get(key);
    if (!found || !isCondemned(found)) return;
    this.#known.set(key, { ...found, setAside: { incident, id, what: inWords(note), own: job === undefined } });
    this.#writeSoon();
  }

  /** Lists everything that is quarantined until an operator releases it. */
  condemned(): readonly Condemned[] {
    const now = this.#deps.date();
    return [...this.#known].flatMap(([digest, deaths]) =>
      deaths.setAside && deaths.at + KEPT_MS > now
        ? [{ ...deaths.setAside, digest, deaths: deathsOf(deaths), at: deaths.at }]
        : [],
    );
  }

  /**
   * Forgets the deaths of a quarantined event.
   *
   * @returns the event; undefined for an unknown incident
   */
  release(incident: string): Condemned | undefined {
    const found = this.condemned().find((each) => each.incident === incident);
    if (!found) return undefined;
    this.#known.delete(found.digest);
    this.#writeSoon();
    return found;
  }

  /** Marks the start of a call; the mark replaces the previous one. */
  begins(id: string, job: QueuedCall): void {
    const { notes } = this.#deps.store;
    if (!notes || job.type !== 'event') return;
    this.#noting = true;
    notes.write(toText([id, whatOf(job)]));
  }

  /** Clears the mark: nothing is running. */
  over(): void {
    if (!this.#noting) return;
    this.#noting = false;
    this.#deps.store.notes?.clear();
  }

  /** Runs an activity of the instance under a mark of its own. Within a call it belongs to that call. The watchdog uses the mark to name a stall. */
  noting<T>(id: string, run: () => T): T {
    const { notes } = this.#deps.store;
    if (!notes || this.#noting) return run();
    this.#noting = true;
    notes.write(toText([id, OWN_ACTIVITY]));
    try {
      // Until its call is answered, the activity belongs to that call.
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
    this.#write().catch((error: unknown) => this.#deps.log('warning', `cannot persist ${ACTOR}: ${messageOf(error)}`));
  }

  async #load(store: Store): Promise<void> {
    try {
      const stored = await store.load(ACTOR);
      const known = stored?.snapshot ? fromText(stored.snapshot.data, ACTOR) : {};
      const now = this.#deps.date();
      for (const [key, deaths] of Object.entries(isObject(known) ? known : {}))
        if (isDeaths(deaths) && deaths.at + KEPT_MS > now) this.#known.set(key, deaths);
    } catch (error) {
      // Counting starts again from zero.
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

/** Describes a mark for the log without the full id, which may be the only protection of the handle, and without the data of the event. */
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

/** Shortens the id as `handleAddress` does. */
function shortly(id: string): string {
  return id.slice(0, id.lastIndexOf('/') + 7);
}

function isDeaths(value: unknown): value is Deaths {
  return isObject(value) && typeof value.times === 'number' && typeof value.at === 'number';
}

/** Identifies a client's event: equal data gives equal text. */
function whatOf(job: QueuedCall): string {
  if (job.type !== 'event') return job.type;
  let text: string;
  try {
    text = toText(job.event);
  } catch {
    // A value that JSON cannot represent does not come from a client.
    text = job.event.type;
  }
  return text.length <= LONGEST ? text : keyOf(text);
}

function keyOf(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}

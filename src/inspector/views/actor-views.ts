/**
 * Sends watchers the views of the actors in their focus whenever they change, and recordings the waits of all actors.
 */
import type { Clock, Timer } from '../../core/kernel/clock.ts';
import { isObject } from '../../core/protocol/json.ts';
import type { ActorKind, ActorView } from '../frames.ts';
import { jsonTextOf } from '../inspector-json.ts';
import type { Watcher } from '../stream/watcher.ts';

/** Interval of checks on actors in focus without a record: their waits may change without one. */
const CHECK_MS = 1_000;

/** The kinds of actors with waits that records do not contain: addressees, deadlines, and requests in flight. */
export const WAITING_KINDS: ReadonlySet<ActorKind> = new Set([
  'ask',
  'request',
  'task',
  'handle',
  'requests',
  'server',
  'run',
]);
/**
 * These change with every request, so a recording has them only once per {@link CHECK_MS}: requests that take longer are
 * listed.
 */
const SLOW: ReadonlySet<ActorKind> = new Set(['requests', 'server']);
const SERVER: ReadonlySet<ActorKind> = new Set(['server']);
/** Maximum number of views for recordings in one publication. The next one continues. */
const MAX_WAITS = 50;
/** Maximum number of actors whose waits are recorded at the beginning of a recording: the newest. */
const MAX_LIVING = 1_000;
/** Maximum number of actors whose last recorded waits are stored, to omit repetitions. */
const MAX_RECORDED = 2_000;

interface ActorViewsOptions {
  readonly clock: Clock;
  watchers(): Iterable<Watcher>;
  /** The view of an actor; undefined if no live actor has that address. */
  view(actor: string): ActorView | undefined;
  /** The view without the context; undefined for an actor of another kind than {@link WAITING_KINDS}. */
  brief(actor: string): ActorView | undefined;
  /** The live actors of these kinds: at most so many, the newest last. */
  living(kinds: ReadonlySet<ActorKind>, most: number): readonly string[];
  /** Runs code that may fail through a fault of the inspector. */
  guarded(run: () => void): void;
}

export class ActorViews {
  readonly #options: ActorViewsOptions;
  /** The last view of each actor that was sent, without its time and sequence number. */
  readonly #published = new Map<string, string>();
  /** Actors with a record since the last publication. */
  readonly #touched = new Set<string>();
  /** Actors whose waits a recording may need. */
  readonly #waiting = new Set<string>();
  /** The last recorded waits of each actor. */
  readonly #recorded = new Map<string, string>();
  #check: Timer | undefined;

  constructor(options: ActorViewsOptions) {
    this.#options = options;
  }

  /** An actor has a new record. */
  touched(actor: string): void {
    this.#touched.add(actor);
  }

  /** A recording has begun: it needs the waits of the live actors. */
  recorded(): void {
    this.#recorded.clear();
    for (const actor of this.#options.living(WAITING_KINDS, MAX_LIVING)) this.#waiting.add(actor);
    this.#scheduleCheck();
  }

  /** The focus of a watcher has changed. */
  focused({ focus }: Watcher): void {
    for (const actor of focus) {
      this.#published.delete(actor);
      this.#touched.add(actor);
    }
    this.publish();
    this.#scheduleCheck();
  }

  /** @param all also checks actors without a new record */
  publish(all = false): void {
    const changed = new Map<string, string | undefined>();
    for (const watcher of this.#options.watchers()) {
      for (const actor of watcher.focus) {
        if (!all && !this.#touched.has(actor)) continue;
        if (!changed.has(actor)) changed.set(actor, this.#changed(actor));
        const text = changed.get(actor);
        if (text !== undefined) watcher.viewChanged(actor, text);
      }
    }
    if (this.#records()) {
      for (const actor of this.#touched) this.#waiting.add(actor);
      this.#publishWaits(MAX_WAITS, all);
    } else this.#waiting.clear();
    this.#touched.clear();
  }

  /** Sends recordings all waits that are outstanding. */
  publishWaits(): void {
    if (this.#records()) this.#publishWaits(Number.POSITIVE_INFINITY, true);
  }

  #records(): boolean {
    for (const { everything } of this.#options.watchers()) if (everything) return true;
    return false;
  }

  #publishWaits(most: number, slowToo: boolean): void {
    let count = 0;
    for (const actor of this.#waiting) {
      if (count >= most) return;
      const view = this.#options.brief(actor);
      if (view && SLOW.has(view.kind) && !slowToo) continue;
      this.#waiting.delete(actor);
      if (!view) {
        this.#recorded.delete(actor);
        continue;
      }
      count += 1;
      const text = this.#newWaits(view);
      if (text === undefined) continue;
      for (const watcher of this.#options.watchers()) if (watcher.everything) watcher.viewChanged(actor, text);
    }
  }

  /** The frame with the view of an actor if its waits have changed. */
  #newWaits(view: ActorView): string | undefined {
    const { actor, kind, waits, facts } = view;
    const now = jsonTextOf({ waits, ...(SLOW.has(kind) ? { facts } : {}) });
    const before = this.#recorded.get(actor);
    const waitless = waits.length === 0 && (!SLOW.has(kind) || isQuiet(facts));
    if (before === now || (before === undefined && waitless)) return undefined;
    this.#recorded.delete(actor);
    if (!waitless) this.#recorded.set(actor, now);
    if (this.#recorded.size > MAX_RECORDED)
      for (const oldest of this.#recorded.keys()) if (this.#recorded.delete(oldest)) break;
    return jsonTextOf({ type: 'look', look: view });
  }

  end(): void {
    this.#check?.cancel();
    this.#check = undefined;
    this.#published.clear();
    this.#touched.clear();
    this.#waiting.clear();
    this.#recorded.clear();
  }

  /** The frame with the view of an actor if it has changed. */
  #changed(actor: string): string | undefined {
    const view = this.#options.view(actor);
    if (!view) return undefined;
    const { at: _, seq: __, ...rest } = view;
    const without = jsonTextOf({ ...rest });
    if (this.#published.get(actor) === without) return undefined;
    this.#published.set(actor, without);
    return jsonTextOf({ type: 'look', look: view });
  }

  #scheduleCheck(): void {
    this.#check ??= this.#options.clock.after(CHECK_MS, () => {
      this.#check = undefined;
      const watchers = [...this.#options.watchers()];
      const focused = new Set(watchers.flatMap(({ focus }) => [...focus]));
      for (const actor of this.#published.keys()) if (!focused.has(actor)) this.#published.delete(actor);
      if (focused.size === 0 && !this.#records()) return;
      this.#scheduleCheck();
      // The number of hibernating actors changes without a record of the server.
      if (this.#records()) for (const actor of this.#options.living(SERVER, 1)) this.#waiting.add(actor);
      this.#options.guarded(() => {
        this.publish(true);
        for (const watcher of watchers) watcher.deliver();
      });
    });
  }
}

/**
 * True for a table without requests in flight that names no client, and for a server without hibernating handles and
 * sessions.
 */
function isQuiet(facts: ActorView['facts']): boolean {
  const held = facts['in flight'];
  const hibernating = facts.hibernating;
  const sessions = facts['hibernating sessions'];
  return (
    (!Array.isArray(held) || held.length === 0) &&
    facts.client === undefined &&
    [hibernating, sessions].every((each) => !isObject(each) || each.count === 0)
  );
}

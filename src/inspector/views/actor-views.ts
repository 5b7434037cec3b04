/** Sends watchers the views of the actors in their focus whenever they change. */
import type { Clock, Timer } from '../../clock.ts';
import type { ActorView } from '../frames.ts';
import { jsonTextOf } from '../inspector-json.ts';
import type { Watcher } from '../stream/watcher.ts';

/** Interval of checks on actors in focus without a record: their waits may change without one. */
const CHECK_MS = 1_000;

export interface ActorViewsOptions {
  readonly clock: Clock;
  watchers(): Iterable<Watcher>;
  /** The view of an actor; undefined if no live actor has that address. */
  view(actor: string): ActorView | undefined;
  /** Runs code that may fail through a fault of the inspector. */
  guarded(run: () => void): void;
}

export class ActorViews {
  readonly #options: ActorViewsOptions;
  /** The last view of each actor that was sent, without its time and sequence number. */
  readonly #published = new Map<string, string>();
  /** Actors with a record since the last publication. */
  readonly #touched = new Set<string>();
  #check: Timer | undefined;

  constructor(options: ActorViewsOptions) {
    this.#options = options;
  }

  /** An actor has a new record. */
  touched(actor: string): void {
    this.#touched.add(actor);
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
    this.#touched.clear();
  }

  end(): void {
    this.#check?.cancel();
    this.#check = undefined;
    this.#published.clear();
    this.#touched.clear();
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
      if (focused.size === 0) return;
      this.#scheduleCheck();
      this.#options.guarded(() => {
        this.publish(true);
        for (const watcher of watchers) watcher.deliver();
      });
    });
  }
}

/** Tells watchers how the actors in their focus look, whenever that has changed. */
import type { Clock, Timer } from '../../clock.ts';
import type { Look } from '../frames.ts';
import { jsonTextOf } from '../inspector-json.ts';
import type { Watcher } from '../stream/observation.ts';

/** How often actors in focus are looked at although nothing was told of them: what they wait for may be told by nobody. */
const GLANCE_MS = 1_000;

export interface ActorViewsOptions {
  readonly clock: Clock;
  watchers(): Iterable<Watcher>;
  /** Looks at an actor; undefined where none of that address lives. */
  look(actor: string): Look | undefined;
  /** Runs what may fail for a fault of ours. */
  guarded(run: () => void): void;
}

export class ActorViews {
  readonly #options: ActorViewsOptions;
  /** What was told last of each, without its time and place. */
  readonly #told = new Map<string, string>();
  /** Actors of which something was told since. */
  readonly #touched = new Set<string>();
  #glance: Timer | undefined;

  constructor(options: ActorViewsOptions) {
    this.#options = options;
  }

  /** Something was told of an actor. */
  touched(actor: string): void {
    this.#touched.add(actor);
  }

  /** A watcher looks at others now. */
  focused({ focus }: Watcher): void {
    for (const actor of focus) {
      this.#told.delete(actor);
      this.#touched.add(actor);
    }
    this.tell();
    this.#keepGlancing();
  }

  /** @param all also of actors that nothing was told of */
  tell(all = false): void {
    const told = new Map<string, string | undefined>();
    for (const watcher of this.#options.watchers()) {
      for (const actor of watcher.focus) {
        if (!all && !this.#touched.has(actor)) continue;
        if (!told.has(actor)) told.set(actor, this.#changed(actor));
        const text = told.get(actor);
        if (text !== undefined) watcher.looks(actor, text);
      }
    }
    this.#touched.clear();
  }

  end(): void {
    this.#glance?.cancel();
    this.#glance = undefined;
    this.#told.clear();
    this.#touched.clear();
  }

  /** The look frame of an actor, if it looks otherwise than it did. */
  #changed(actor: string): string | undefined {
    const look = this.#options.look(actor);
    if (!look) return undefined;
    const { at: _, seq: __, ...rest } = look;
    const without = jsonTextOf({ ...rest });
    if (this.#told.get(actor) === without) return undefined;
    this.#told.set(actor, without);
    return jsonTextOf({ type: 'look', look });
  }

  #keepGlancing(): void {
    this.#glance ??= this.#options.clock.after(GLANCE_MS, () => {
      this.#glance = undefined;
      const watchers = [...this.#options.watchers()];
      const focused = new Set(watchers.flatMap(({ focus }) => [...focus]));
      for (const actor of this.#told.keys()) if (!focused.has(actor)) this.#told.delete(actor);
      if (focused.size === 0) return;
      this.#keepGlancing();
      this.#options.guarded(() => {
        this.tell(true);
        for (const watcher of watchers) watcher.told();
      });
    });
  }
}

/** Watches directories: says, once things are quiet again, that something in them changed which matters. */
import { type FSWatcher, readdirSync, statSync, watch } from 'node:fs';
import { dirname, join } from 'node:path';
import { type Clock, systemClock, type Timer } from '../../clock.ts';
import { messageOf } from '../../protocol/json.ts';

/** Editors write a file in several steps, and formatters after them: this long, in milliseconds, nothing may have happened. */
const QUIET_MS = 50;
/** Between two looks where the system cannot tell of changes, in milliseconds. */
const LOOK_MS = 500;

export interface WatchOptions {
  /** Whether a change of this path matters. */
  matters(path: string): boolean;
  onChange(paths: ReadonlySet<string>): void;
  /** Tells people that changes are found by looking. */
  say(line: string): void;
  readonly clock?: Clock;
  /** Node's `fs.watch`, for tests. */
  readonly watch?: (directory: string, listener: (event: string, name: string | null) => void) => FSWatcher;
}

/** Watches until it is closed; it does not keep the process alive. */
export class Watch {
  readonly #options: WatchOptions;
  readonly #clock: Clock;
  readonly #watched = new Map<string, FSWatcher>();
  /** The directories that are looked at instead, and what was in them. */
  readonly #looked = new Map<string, ReadonlyMap<string, number>>();
  readonly #changed = new Set<string>();
  #quiet: Timer | undefined;
  #look: Timer | undefined;
  #closed = false;

  constructor(options: WatchOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  /** Watches the directory of a file. */
  file(path: string): void {
    this.directory(dirname(path));
  }

  /** Watches what is directly in a directory. */
  directory(path: string): void {
    if (this.#closed || this.#watched.has(path) || this.#looked.has(path)) return;
    try {
      const open = this.#options.watch ?? ((directory, listener) => watch(directory, { persistent: false }, listener));
      const watcher = open(path, (_event, name) => this.#event(name === null ? path : join(path, name)));
      this.#watched.set(path, watcher);
      watcher.on('error', () => {
        // The directory is gone. If it comes back, the directory above tells of it.
        watcher.close();
        this.#watched.delete(path);
      });
    } catch (error) {
      this.#lookAt(path, error);
    }
  }

  close(): void {
    this.#closed = true;
    for (const watcher of this.#watched.values()) watcher.close();
    this.#watched.clear();
    this.#looked.clear();
    this.#quiet?.cancel();
    this.#look?.cancel();
  }

  #event(path: string): void {
    if (this.#closed || !this.#options.matters(path)) return;
    this.#changed.add(path);
    this.#quiet?.cancel();
    this.#quiet = this.#clock.after(QUIET_MS, () => {
      const changed = new Set(this.#changed);
      this.#changed.clear();
      this.#options.onChange(changed);
    });
  }

  #lookAt(directory: string, error: unknown): void {
    if (this.#looked.size === 0)
      this.#options.say(
        `the system cannot tell of changes in ${directory} (${messageOf(error)}): they are found by looking every ${LOOK_MS} ms`,
      );
    this.#looked.set(directory, timesIn(directory));
    this.#look ??= this.#clock.after(LOOK_MS, () => this.#lookAround());
  }

  #lookAround(): void {
    for (const [directory, before] of this.#looked) {
      const now = timesIn(directory);
      this.#looked.set(directory, now);
      for (const path of new Set([...before.keys(), ...now.keys()]))
        if (before.get(path) !== now.get(path)) this.#event(path);
    }
    this.#look = this.#clock.after(LOOK_MS, () => this.#lookAround());
  }
}

/** When each entry of a directory was last changed. */
function timesIn(directory: string): ReadonlyMap<string, number> {
  const times = new Map<string, number>();
  for (const name of names(directory)) {
    const path = join(directory, name);
    const found = statSync(path, { throwIfNoEntry: false });
    if (found) times.set(path, found.mtimeMs);
  }
  return times;
}

function names(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

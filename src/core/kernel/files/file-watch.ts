/** Watches directories and reports relevant changes once per burst. For `troupe dev`, and for what a server serves from files. */

import { type FSWatcher, readdirSync, statSync, watch } from 'node:fs';
import { dirname, join } from 'node:path';
import { messageOf } from '../../protocol/json.ts';
import { type Clock, systemClock, type Timer } from '../clock.ts';
import { durationOf } from '../duration.ts';

/** The silence that ends a burst, in milliseconds: editors and formatters write a file in several steps. */
const QUIET_MS = 50;
/** The polling interval if the system cannot watch a directory, in milliseconds. */
const POLL_MS = 500;

interface WatchOptions {
  /** True if a change of this path is relevant. */
  matters(path: string): boolean;
  onChange(paths: ReadonlySet<string>): void;
  /** Reports that a directory is polled. */
  say(line: string): void;
  readonly clock?: Clock;
  /** Node's `fs.watch`, for tests. */
  readonly watch?: (directory: string, listener: (event: string, name: string | null) => void) => FSWatcher;
}

/** Watches until `close`. It does not keep the process alive. */
export class Watch {
  readonly #options: WatchOptions;
  readonly #clock: Clock;
  readonly #watched = new Map<string, { readonly watcher: FSWatcher; readonly inode: string | undefined }>();
  /** The polled directories, with the modification times of their entries. */
  readonly #polled = new Map<string, ReadonlyMap<string, number>>();
  readonly #changed = new Set<string>();
  #quiet: Timer | undefined;
  #poll: Timer | undefined;
  #closed = false;

  constructor(options: WatchOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  /** Watches the directory of a file. */
  file(path: string): void {
    this.directory(dirname(path));
  }

  /** Watches the direct entries of a directory, also if it was removed and created again since the last call. */
  directory(path: string): void {
    if (this.#closed || this.#polled.has(path)) return;
    const inode = inodeOf(path);
    const before = this.#watched.get(path);
    // The watcher of a removed directory reports nothing more, and no error on Linux.
    if (before && before.inode === inode) return;
    before?.watcher.close();
    this.#watched.delete(path);
    try {
      const open = this.#options.watch ?? ((directory, listener) => watch(directory, { persistent: false }, listener));
      const watcher = open(path, (_event, name) => this.#event(name === null ? path : join(path, name)));
      this.#watched.set(path, { watcher, inode });
      watcher.on('error', () => {
        // The directory was removed. The watcher of its parent reports if it reappears.
        watcher.close();
        if (this.#watched.get(path)?.watcher === watcher) this.#watched.delete(path);
      });
    } catch (error) {
      this.#startPolling(path, error);
    }
  }

  close(): void {
    this.#closed = true;
    for (const { watcher } of this.#watched.values()) watcher.close();
    this.#watched.clear();
    this.#polled.clear();
    this.#quiet?.cancel();
    this.#poll?.cancel();
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

  #startPolling(directory: string, error: unknown): void {
    if (this.#polled.size === 0)
      this.#options.say(
        `cannot watch ${directory} (${messageOf(error)}): polling every ${durationOf(POLL_MS)} instead`,
      );
    this.#polled.set(directory, timesIn(directory));
    this.#poll ??= this.#clock.after(POLL_MS, () => this.#pollAll());
  }

  #pollAll(): void {
    for (const [directory, before] of this.#polled) {
      const now = timesIn(directory);
      this.#polled.set(directory, now);
      for (const path of new Set([...before.keys(), ...now.keys()]))
        if (before.get(path) !== now.get(path)) this.#event(path);
    }
    this.#poll = this.#clock.after(POLL_MS, () => this.#pollAll());
  }
}

/** Identifies a directory, whatever its path; undefined if it does not exist. */
function inodeOf(path: string): string | undefined {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false });
  return found && `${found.dev} ${found.ino}`;
}

/** The modification time of each entry of a directory. */
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

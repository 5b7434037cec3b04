/** The stored catalogue of a mount, which the next start offers before its upstream answers. */
import { readFileSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Clock } from '../../core/kernel/clock.ts';
import { makeDirectory } from '../../core/kernel/files/make-directory.ts';
import { replaceFile } from '../../core/kernel/files/replace-file.ts';
import { isObject } from '../../core/protocol/json.ts';
import { fromText, toText } from '../../core/store/serialize.ts';
import type { ActorRow, Store } from '../../core/store/store.ts';
import { readCatalogue, type UpstreamCatalogue } from './upstream-catalogue.ts';

interface StoredCatalogue {
  /** The time of its listing, in milliseconds since 1970. */
  readonly at: number;
  readonly catalogue: UpstreamCatalogue;
}

interface CatalogueRecordOptions {
  readonly mount: string;
  /** Identifies the upstream: the catalogue of another one is not read. Undefined: nothing is stored. */
  readonly targetKey: string | undefined;
  readonly clock: Clock;
  /** The path of a file in place of a store that does not survive the process. */
  readonly file?: string | undefined;
}

const VERSION = '1';
/** Longest file that is read, in bytes. */
const MAX_FILE = 67_108_864;

export class CatalogueRecord {
  readonly #options: CatalogueRecordOptions;
  #store: Store | undefined;
  #file: string | undefined;
  #writing: Promise<void> = Promise.resolve();
  /** The catalogue to write next. */
  #next: StoredCatalogue | undefined;

  constructor(options: CatalogueRecordOptions) {
    this.#options = options;
  }

  get #actor(): string {
    return `server/mount/${this.#options.mount}`;
  }

  /** @throws {StoreError} if it cannot be read */
  async read(store: Store): Promise<StoredCatalogue | undefined> {
    const { targetKey } = this.#options;
    this.open(store);
    const value = this.#store ? await this.#load(this.#store) : this.#file === undefined ? undefined : read(this.#file);
    if (!isObject(value) || value.target !== targetKey || typeof value.at !== 'number') return undefined;
    const catalogue = readCatalogue(value.catalogue);
    return catalogue && { at: value.at, catalogue };
  }

  async #load(store: Store): Promise<unknown> {
    const stored = await store.load(this.#actor);
    return stored?.snapshot?.version === VERSION ? fromText(stored.snapshot.data, this.#actor) : undefined;
  }

  /** Takes the store, or the file, for what is written from now on. */
  open(store: Store): void {
    const { file, targetKey } = this.#options;
    if (targetKey === undefined) return;
    if (store.durable) this.#store = store;
    else this.#file = file;
  }

  /** Stores a catalogue. Of those that wait for the store, only the last is written. */
  write(stored: StoredCatalogue): void {
    if (!this.#store && this.#file === undefined) return;
    const waiting = this.#next !== undefined;
    this.#next = stored;
    if (!waiting) this.#writing = this.#writing.then(() => this.#write());
  }

  /** Resolves when nothing is left to write. */
  written(): Promise<void> {
    return this.#writing;
  }

  async #write(): Promise<void> {
    const { clock, targetKey } = this.#options;
    const next = this.#next;
    this.#next = undefined;
    if (!next) return;
    const data = toText({ version: VERSION, target: targetKey, ...next });
    if (!this.#store) return this.#file === undefined ? undefined : keep(this.#file, data);
    const base = { id: this.#actor, kind: 'server', name: 'mount', principal: '', status: 'live' } as const;
    const actor: ActorRow = { ...base, created: clock.date(), expires: undefined };
    try {
      await this.#store.commit([
        { type: 'actor', actor },
        { type: 'snapshot', actor: this.#actor, version: VERSION, data },
      ]);
    } catch {
      // The store reports its faults itself; the next start then lists the upstream first.
    }
  }
}

/** @throws {Error} if it cannot be read */
function read(file: string): unknown {
  const found = statSync(file, { throwIfNoEntry: false });
  if (!found?.isFile() || found.size > MAX_FILE) return undefined;
  const kept = fromText(readFileSync(file, 'utf8'), file);
  return isObject(kept) && kept.version === VERSION ? kept : undefined;
}

/** The definitions may be private to this user. */
function keep(file: string, data: string): void {
  try {
    makeDirectory(dirname(file), 0o700);
    replaceFile(file, data, { mode: 0o600 });
  } catch {
    // A directory that cannot be written to: the next start lists the upstream first.
  }
}

/**
 * The number of the last acknowledged transaction, in a small file beside the store: detects a file that has lost
 * transactions.
 */
import { closeSync, constants, existsSync, fsyncSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { crc32 } from 'node:zlib';

/** A link at the path of the mark is not followed: the file that it names would be overwritten. Windows has no such flag. */
const { O_CREAT, O_NOFOLLOW = 0, O_RDWR } = constants;

/** Bytes of one record. There are two, written in turn: if one is torn or damaged, the other remains. */
const RECORD = 40;

/** The contents of a mark. */
interface Mark {
  /** The number of the last acknowledged transaction. */
  readonly commits: number;
  /** The store that it belongs to; undefined if this part is damaged. */
  readonly store: string | undefined;
  /** True if every record is readable. */
  readonly whole: boolean;
}

export type Marked = Mark | 'absent' | 'unreadable';

/**
 * Written after each transaction and not synced. It outlives the process; after a power loss it may be behind, never
 * ahead. If the last frames of the log are damaged, or the log was removed, SQLite truncates it silently: this number
 * detects that.
 */
export class CommitMark {
  readonly path: string;
  #file: number | undefined;
  #number = 0;

  constructor(path: string) {
    this.path = path;
  }

  read(): Marked {
    if (!existsSync(this.path)) return 'absent';
    const text = readFileSync(this.path, 'latin1');
    const numbers = [0, 1].flatMap((place) => numberIn(text.slice(place * RECORD, (place + 1) * RECORD)) ?? []);
    if (numbers.length === 0) return 'unreadable';
    const store = storeIn(text.slice(2 * RECORD));
    return { commits: Math.max(...numbers), store, whole: numbers.length === 2 && store !== undefined };
  }

  /** Starts counting from this number. The previous content is on the disk when this returns. */
  begin(number: number, store: string): void {
    this.#number = number;
    this.#file = openSync(this.path, O_RDWR | O_CREAT | O_NOFOLLOW, 0o600);
    const text = recordOf(number) + recordOf(number) + storeRecord(store);
    writeSync(this.#file, text, 0, 'latin1');
    ftruncateSync(this.#file, text.length);
    fsyncSync(this.#file);
    syncFolder(dirname(this.path));
  }

  /** One more transaction is durable. */
  count(): void {
    if (this.#file === undefined) return;
    this.#number += 1;
    try {
      writeSync(this.#file, recordOf(this.#number), (this.#number % 2) * RECORD, 'latin1');
    } catch {
      // The mark is behind from now on, which is always safe.
      this.close();
    }
  }

  close(): void {
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
  }
}

function recordOf(number: number): string {
  const text = `commits ${String(number).padStart(16, '0')}`;
  return `${`${text} ${sumOf(text)}`.padEnd(RECORD - 1)}\n`;
}

function numberIn(record: string): number | undefined {
  const [, text, number, sum] = /^(commits (\d{16})) ([0-9a-f]{8})/.exec(record) ?? [];
  return text !== undefined && sumOf(text) === sum ? Number(number) : undefined;
}

/** Written once, after the records. */
function storeRecord(store: string): string {
  const text = `store ${store}`;
  return `${text} ${sumOf(text)}\n`;
}

function storeIn(record: string): string | undefined {
  const [, text, store, sum] = /^(store ([0-9a-f]{12,})) ([0-9a-f]{8})\n$/.exec(record) ?? [];
  return text !== undefined && sumOf(text) === sum ? store : undefined;
}

function sumOf(text: string): string {
  return crc32(text).toString(16).padStart(8, '0');
}

/** Windows does not support this and does not need it. */
function syncFolder(path: string): void {
  if (process.platform === 'win32') return;
  const folder = openSync(path, 'r');
  fsyncSync(folder);
  closeSync(folder);
}

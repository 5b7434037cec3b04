/** What the process is in the middle of, in a small file beside the store: written at once and never synced, so that it outlives the process, whatever ends that. */
import { closeSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import type { Notes } from './store.ts';

/** Ends what was noted; alone, it says that nothing is. */
const END = '\n';

export class FileNotes implements Notes {
  readonly #path: string;
  #file: number | undefined;
  #last: string | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  get last(): string | undefined {
    return this.#last;
  }

  /** Reads what the process before has left, once nobody else has the store open. */
  open(): void {
    if (this.#file !== undefined) return;
    try {
      this.#file = openSync(this.#path, 'a+', 0o600);
      closeSync(this.#file);
      const [last = ''] = readFileSync(this.#path, 'utf8').split(END, 1);
      this.#last = last === '' ? undefined : last;
      this.#file = openSync(this.#path, 'r+');
    } catch {
      this.#file = undefined;
    }
  }

  write(what: string): void {
    this.#put(what + END);
  }

  clear(): void {
    this.#put(END);
  }

  /** In order: the next process has nothing to read. */
  close(): void {
    if (this.#file === undefined) return;
    this.clear();
    closeSync(this.#file);
    this.#file = undefined;
    rmSync(this.#path, { force: true });
  }

  /** It lies in memory of the kernel's, which the process does not take along. What cannot be noted is not counted. */
  #put(text: string): void {
    if (this.#file === undefined) return;
    try {
      writeSync(this.#file, text, 0);
    } catch {
      closeSync(this.#file);
      this.#file = undefined;
    }
  }
}

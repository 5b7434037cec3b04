/** What the process is in the middle of, in a small file beside the store: written at once and never synced, so that it outlives the process, whatever ends that. */
import { closeSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import type { NotedProcess, Notes } from './store.ts';

/** Ends what was noted; alone, it says that nothing is. */
const END = '\n';

/** Between what was noted, the process that has noted it, and {@link ENDED}. No note has one in it: notes are JSON. */
const GAP = '\t';

/** Behind a note whose process has ended itself. */
const ENDED = 'ended';

export class CrashMarker implements Notes {
  readonly path: string;
  #file: number | undefined;
  #last: string | undefined;
  #by: NotedProcess | undefined;
  /** What is noted now; empty for nothing. */
  #line = '';

  constructor(path: string) {
    this.path = path;
  }

  get last(): string | undefined {
    return this.#last;
  }

  get by(): NotedProcess | undefined {
    return this.#by;
  }

  /** Reads what the process before has left, once nobody else has the store open. */
  open(): void {
    if (this.#file !== undefined) return;
    try {
      this.#file = openSync(this.path, 'a+', 0o600);
      closeSync(this.#file);
      const [last = '', pid, ended] = readLine(this.path).split(GAP);
      this.#last = last === '' ? undefined : last;
      this.#by = pid === undefined ? undefined : { pid: Number(pid), ended: ended === ENDED };
      this.#file = openSync(this.path, 'r+');
      opened.add(this);
      if (opened.size === 1) process.on('exit', onExit);
    } catch {
      this.#file = undefined;
    }
  }

  write(what: string): void {
    this.#line = `${what}${GAP}${process.pid}`;
    this.#put(this.#line + END);
  }

  clear(): void {
    this.#line = '';
    this.#put(END);
  }

  /** The process ends itself in the middle of what is noted: nobody from outside does. */
  ends(): void {
    if (this.#line !== '') this.#put(this.#line + GAP + ENDED + END);
  }

  /** In order: the next process has nothing to read. */
  close(): void {
    if (this.#file === undefined) return;
    opened.delete(this);
    if (opened.size === 0) process.off('exit', onExit);
    this.clear();
    closeSync(this.#file);
    this.#file = undefined;
    rmSync(this.path, { force: true });
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

/** Those of this process. */
const opened = new Set<CrashMarker>();

/** Nothing else runs in the middle of a turn: it was the turn that has called `process.exit`. */
function onExit(): void {
  for (const notes of opened) notes.ends();
}

/**
 * Says of what this process has noted in a file that the process ends itself: for a thread beside the one that notes, which is
 * blocked. Does nothing where nothing is noted.
 */
export function markEnded(path: string): void {
  try {
    const line = readLine(path);
    const [what = '', pid, ended] = line.split(GAP);
    if (what === '' || pid !== String(process.pid) || ended !== undefined) return;
    const file = openSync(path, 'r+');
    writeSync(file, line + GAP + ENDED + END, 0);
    closeSync(file);
  } catch {
    // Then the next process does not know it.
  }
}

function readLine(path: string): string {
  return readFileSync(path, 'utf8').split(END, 1)[0] ?? '';
}

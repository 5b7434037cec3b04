/**
 * The event that the process is working on, in a small file beside the store. It is written at once and never synced,
 * so it survives any end of the process.
 */
import { closeSync, constants, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import type { NotedProcess, Notes } from './store.ts';

/** A link at the path of the marker is not followed. Windows has no such flag. */
const { O_CREAT, O_NOFOLLOW = 0, O_RDWR } = constants;

/** Terminates the marker; alone, it means that there is none. */
const END = '\n';

/** Separates the marker, its process, and {@link ENDED}. Markers are JSON, so they never contain it. */
const GAP = '\t';

/** Follows a marker whose process has ended itself. */
const ENDED = 'ended';

export class CrashMarker implements Notes {
  readonly path: string;
  #file: number | undefined;
  #last: string | undefined;
  #by: NotedProcess | undefined;
  /** The current marker; empty for none. */
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

  /** Reads the marker of the previous process, once no other process has the store open. */
  open(): void {
    if (this.#file !== undefined) return;
    try {
      // A link is not followed: the file that it names would be overwritten.
      closeSync(openSync(this.path, O_RDWR | O_CREAT | O_NOFOLLOW, 0o600));
      const [last = '', pid, ended] = readLine(this.path).split(GAP);
      this.#last = last === '' ? undefined : last;
      this.#by = pid === undefined ? undefined : { pid: Number(pid), ended: ended === ENDED };
      this.#file = openSync(this.path, O_RDWR | O_NOFOLLOW);
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

  /** Records that the process ends itself during the marked event, not by an outside kill. */
  ends(): void {
    if (this.#line !== '') this.#put(this.#line + GAP + ENDED + END);
  }

  /** Orderly end: the next process finds no marker. */
  close(): void {
    if (this.#file === undefined) return;
    opened.delete(this);
    if (opened.size === 0) process.off('exit', onExit);
    this.clear();
    closeSync(this.#file);
    this.#file = undefined;
    rmSync(this.path, { force: true });
  }

  /** The kernel's page cache survives the process. If the write fails, the event is not counted. */
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

/** The markers of this process. */
const opened = new Set<CrashMarker>();

/** No other code runs during a turn, so the turn called `process.exit`. */
function onExit(): void {
  for (const notes of opened) notes.ends();
}

/**
 * Records in the marker file that the process ends itself. For a thread beside the one that writes markers, which is
 * blocked. Does nothing without a marker.
 */
export function markEnded(path: string): void {
  try {
    const line = readLine(path);
    const [what = '', pid, ended] = line.split(GAP);
    if (what === '' || pid !== String(process.pid) || ended !== undefined) return;
    const file = openSync(path, O_RDWR | O_NOFOLLOW);
    writeSync(file, line + GAP + ENDED + END, 0);
    closeSync(file);
  } catch {
    // Then the next process cannot know it.
  }
}

function readLine(path: string): string {
  return readFileSync(path, 'utf8').split(END, 1)[0] ?? '';
}

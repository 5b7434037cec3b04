/** The marks of processes that ended themselves during an event, which all processes of a store read. */
import type { Worker } from 'node:worker_threads';
import { startThread } from '../../core/kernel/package-files.ts';
import { SharedMark } from '../../core/store/shared-mark.ts';
import type { EndedMark, Notes } from '../../core/store/store.ts';
import { fromColumnText, toColumnText } from './column-text.ts';
import type { PostgresAddress } from './postgres-address.ts';
import type { AskReader } from './postgres-reads.ts';

export interface CrashNoteStart {
  /** With its password: the thread opens a connection of its own. */
  readonly url: string;
  readonly schema: string;
  readonly shared: SharedArrayBuffer;
}

/** Milliseconds by which a process may end later, so that its mark is stored. */
const EXIT_MS = 2_000;
/** Maximum number of marks that are read; the newest count. */
const MAX_MARKS = 1_000;

export class CrashNotes implements Notes {
  /** {@link ended} has the marks of all processes. */
  readonly last = undefined;
  readonly #address: PostgresAddress;
  readonly #schema: string;
  readonly #ask: AskReader;
  readonly #mark = new SharedMark();
  #thread: Worker | undefined;
  readonly #onExit = (): void => this.#mark.publish(EXIT_MS);

  constructor(address: PostgresAddress, schema: string, ask: AskReader) {
    this.#address = address;
    this.#schema = schema;
    this.#ask = ask;
  }

  get shared(): SharedArrayBuffer {
    return this.#mark.shared;
  }

  write(what: string): void {
    if (!this.#thread) this.#start();
    this.#mark.write(toColumnText(what));
  }

  clear(): void {
    this.#mark.clear();
  }

  async ended(): Promise<readonly EndedMark[]> {
    const rows = await this.#ask(
      {
        name: 'crashes',
        text: `SELECT mark, count(*)::int, max(at) FROM ${this.#schema}.crash GROUP BY mark ORDER BY max(at) DESC LIMIT ${MAX_MARKS}`,
      },
      [],
    );
    return rows.map(([mark, times, at]) => ({
      mark: fromColumnText(String(mark)),
      times: Number(times),
      at: Number(at),
    }));
  }

  async forget(mark: string): Promise<void> {
    await this.#ask({ name: 'forget crash', text: `DELETE FROM ${this.#schema}.crash WHERE mark = $1` }, [
      toColumnText(mark),
    ]);
  }

  async close(): Promise<void> {
    process.off('exit', this.#onExit);
    await this.#thread?.terminate();
  }

  /** Only a server with machines needs the thread. */
  #start(): void {
    const start: CrashNoteStart = { url: this.#address.url, schema: this.#schema, shared: this.#mark.shared };
    this.#thread = startThread('features/postgres/crash-note-thread', { name: 'troupe crash note', workerData: start });
    // Without the thread, crashes are not counted.
    this.#thread.on('error', () => process.off('exit', this.#onExit));
    this.#thread.unref();
    process.on('exit', this.#onExit);
  }
}

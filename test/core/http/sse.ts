/** Reads an event stream by the rules of the SSE standard, but hides nothing: events without data and comments are told too. */
import type { Readable } from 'node:stream';
import { listArrivals, wait } from '../../../src/testing/arrivals.ts';
import { HANG_MS } from '../../harness/wait.ts';

/** One event: only the fields that came, as they came. `data` lines are joined by line ends. */
export interface SseEvent {
  readonly id?: string;
  readonly event?: string;
  readonly data?: string;
  readonly retry?: string;
}

/**
 * The events of one response, in order. Nothing is lost between two calls of {@link next}.
 *
 * @example const { id, data } = await answer.events.next();
 */
export class EventReader {
  /** Every event so far, taken or not, since the last {@link forget}. */
  readonly seen: SseEvent[] = [];
  /** Every comment so far, without its colon and the space after it. */
  readonly comments: string[] = [];
  /** How the stream ended: `undefined` while it is open, `true` if properly, else what broke it. */
  over: true | Error | undefined;
  #taken = 0;
  /** The beginning of a line, in the pieces that came. */
  #line: string[] = [];
  #fields: Record<string, string> = {};
  readonly #waiting = new Set<() => void>();

  constructor(stream: Readable) {
    stream.setEncoding('utf8');
    stream.on('data', (text: string) => this.#read(text));
    stream.on('end', () => this.#end(true));
    stream.on('error', (error: Error) => this.#end(error));
    stream.on('close', () => this.#end(new Error('the stream was cut off')));
  }

  /** The events that nobody has taken. */
  get untaken(): readonly SseEvent[] {
    return this.seen.slice(this.#taken);
  }

  /** The next event that nobody has taken. @throws {Error} when none comes in time, or the stream ends first */
  next(ms = HANG_MS): Promise<SseEvent> {
    return this.#until('an event', ms, () => {
      const event = this.seen[this.#taken];
      if (event) this.#taken += 1;
      else if (this.over) return new Error(`the stream ended before another event; ${this.#told()}`);
      return event;
    });
  }

  /** Drops the events that were taken, where there are too many to keep. */
  forget(): void {
    this.seen.splice(0, this.#taken);
    this.#taken = 0;
  }

  /** The next event with data, its data parsed. @throws as {@link next} does */
  async message(ms = HANG_MS): Promise<Message> {
    for (;;) {
      const { data } = await this.next(ms);
      if (data) return JSON.parse(data);
    }
  }

  /** Resolves with the events that nobody has taken, once the server has ended the stream. @throws {Error} when it is cut off, or not ended in time */
  rest(ms = HANG_MS): Promise<readonly SseEvent[]> {
    return this.#until<readonly SseEvent[]>('the end of the stream', ms, () => {
      if (this.over !== true) return this.over && new Error(`${this.over.message}; ${this.#told()}`);
      const rest = this.untaken;
      this.#taken = this.seen.length;
      return rest;
    });
  }

  /** Resolves with the `n`-th comment (from 1). @throws as {@link next} does */
  comment(n = 1, ms = HANG_MS): Promise<string> {
    return this.#until(`comment ${n}`, ms, () => {
      const comment = this.comments[n - 1];
      if (comment !== undefined || !this.over) return comment;
      return new Error(`the stream ended before comment ${n}; ${this.#told()}`);
    });
  }

  /** @param look finds what is awaited, or why it never comes */
  #until<T>(what: string, ms: number, look: () => T | Error | undefined): Promise<T> {
    const found = look();
    // A wait has a timer and a stack: most of what is awaited has come already.
    if (found !== undefined && !(found instanceof Error)) return Promise.resolve(found);
    const again = (now = look()): void => {
      if (now instanceof Error) waiting.fail(now);
      else if (now !== undefined) waiting.settle(now);
    };
    const waiting = wait<T>({ what, ms, arrived: () => this.#told() }, () => this.#waiting.delete(again));
    this.#waiting.add(again);
    again(found);
    return waiting.promise;
  }

  #told(): string {
    return this.seen.length === 0
      ? 'no event had come'
      : `what had come:${listArrivals(this.seen.map((e) => JSON.stringify(e)))}`;
  }

  #read(text: string): void {
    this.#line.push(text);
    // A long line comes in hundreds of pieces: only the last can end it.
    if (!/[\r\n]/.test(text)) return;
    const lines = this.#line.join('').split(/\r\n|\n|\r/);
    this.#line = [lines.pop() ?? ''];
    for (const line of lines) this.#field(line);
    this.#look();
  }

  #field(line: string): void {
    if (line === '') {
      if (Object.keys(this.#fields).length > 0) this.seen.push(this.#fields);
      this.#fields = {};
      return;
    }
    const colon = line.indexOf(':');
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (name === '') this.comments.push(value);
    else if (name === 'data' && this.#fields.data !== undefined) this.#fields.data += `\n${value}`;
    else if (['id', 'event', 'data', 'retry'].includes(name)) this.#fields[name] = value;
    else this.#end(new Error(`a line that is no field of an event: "${line}"`));
  }

  #end(how: true | Error): void {
    // What the stream stops in the middle of is no event (SSE standard, "Interpreting an event stream").
    const line = this.#line.join('');
    this.over ??= how === true && line !== '' ? new Error(`the stream ended in "${line}"`) : how;
    this.#look();
  }

  #look(): void {
    for (const again of [...this.#waiting]) again();
  }
}

/** A JSON-RPC message as tests look at it. */
export interface Message {
  readonly jsonrpc: string;
  readonly id?: string | number | null;
  readonly method?: string;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly result?: Readonly<Record<string, unknown>>;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

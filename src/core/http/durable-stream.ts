/**
 * A stream that survives this process. Each of its actions passes the output gate first, so a response carries only
 * durable events, in the order in which they were sent (docs/adr/0014).
 */
import type { SessionStorage, StoredEvent } from '../messages/session-storage.ts';
import type { RequestId } from '../protocol/jsonrpc.ts';
import { EventStream, type Resumable } from './event-stream.ts';
import type { HttpResponse } from './http-message.ts';

/** Number of trimmed events after which the stream notifies the store, so that one write covers many events. */
const TRIM_STEP = 64;

export interface DurableStreamOptions {
  readonly resumable: Resumable;
  readonly keeper: SessionStorage;
  /** Reports that the reader or the store is slow, or that it has caught up. */
  pace(slow: boolean): void;
}

/** The request that a stream was to answer, when its process ended. */
export interface InterruptedRequest {
  readonly id: RequestId;
  /** Its text; undefined if it may not run twice. */
  readonly text: string | undefined;
  /** The messages that the stream has so far. */
  readonly sent: readonly string[];
}

/** The longest request that a stream may store, in characters. The client of a longer one gets an error. */
export const MAX_STORED_REQUEST = 16_384;

/** The base class has the durable part of the stream, and the response that reads it. */
export class DurableStream extends EventStream {
  readonly #id: string;
  readonly #options: DurableStreamOptions;
  /** Number of the last event; `opened` has 1. */
  #seq: number;
  /** Events that have not passed the gate yet, and their length. */
  #waiting = 0;
  #waitingLength = 0;
  #trimmed = 0;
  #readerSlow = false;
  #slow = false;
  /** The last event was sent, or there is none. */
  #ended = false;
  #abandoned = false;

  /**
   * A new stream if nothing of it is stored.
   *
   * @param request the request that it answers; undefined for a session's own stream
   * @param text of that request, if another process may run it again
   */
  constructor(
    options: DurableStreamOptions,
    request: RequestId | undefined,
    text: string | undefined,
    before: readonly StoredEvent[] = [],
  ) {
    const { resumable, keeper } = options;
    const seq = before.at(-1)?.seq ?? 1;
    const messages = before.filter(({ kind }) => kind !== 'opened' && kind !== 'end');
    super(resumable, options.pace, {
      seq: before.at(-1)?.kind === 'end' ? seq - 1 : seq,
      // Events sent while a reader was connected may have reached it. Skip them here; a reader that resumes by id
      // gets them anyway.
      written: messages.findLast(({ kind }) => kind !== 'waiting')?.seq ?? 1,
      texts: messages.map(({ data }) => data),
    });
    this.#options = options;
    this.#id = resumable.id;
    this.#seq = seq;
    if (before.length === 0) keeper.event(this.#id, 1, 'opened', openingOf(request, text));
  }

  /**
   * Restores a stream that an earlier process, or an earlier activation of its session, began.
   *
   * @param own whether it is the session's own stream, which continues
   * @returns `interrupted` is the request of a stream that has no end: its process ended before
   */
  static again(
    options: DurableStreamOptions,
    before: readonly StoredEvent[],
    own: boolean,
    now: number,
  ): { readonly stream: DurableStream; readonly interrupted?: InterruptedRequest | undefined } {
    const stream = new DurableStream(options, undefined, undefined, before);
    if (own) return { stream };
    const [first] = before;
    const last = before.at(-1)?.kind;
    const ended = last === 'last' || last === 'end';
    if (ended) {
      stream.#ended = true;
      stream.#end(now);
      return { stream };
    }
    const request = first?.kind === 'opened' ? requestOf(first.data) : undefined;
    if (!request) stream.finish(now);
    return { stream, interrupted: request && { ...request, sent: before.slice(1).map(({ data }) => data) } };
  }

  override get idle(): boolean {
    return this.#waiting === 0 && super.idle;
  }

  override attach(response: HttpResponse, retryMs?: number): void {
    this.#options.keeper.gate(() => {
      if (!response.gone) super.attach(response, retryMs);
    });
  }

  override resume(response: HttpResponse, seq: number): boolean {
    if (!this.canResume(seq)) return false;
    this.#options.keeper.gate(() => {
      // The events after `seq` may have been trimmed meanwhile. The client then reconnects and gets an error.
      if (!response.gone && !super.resume(response, seq)) response.end();
    });
    return true;
  }

  override send(data: string, once = false, last = false): void {
    const { keeper } = this.#options;
    if (this.#abandoned || (once && this.waits(data))) return;
    this.#seq += 1;
    if (last) this.#ended = true;
    keeper.event(this.#id, this.#seq, last ? 'last' : this.read ? 'message' : 'waiting', data);
    this.#wait(1, data.length);
    keeper.gate(() => {
      this.#wait(-1, -data.length);
      super.send(data);
      this.#trim();
    });
  }

  override finish(now: number): void {
    const { keeper } = this.#options;
    if (!this.#ended && !this.#abandoned) {
      this.#seq += 1;
      keeper.event(this.#id, this.#seq, 'end', '');
    }
    this.#ended = true;
    keeper.gate(() => this.#end(now));
  }

  #end(now: number): void {
    super.finish(now);
  }

  override release(retryMs: number, now: number): void {
    this.#options.keeper.gate(() => super.release(retryMs, now));
  }

  override abandon(): void {
    this.#abandoned = true;
    this.#options.keeper.trim(this.#id, this.#seq);
    super.abandon();
  }

  /** Trims in the store what the stream in memory has trimmed. */
  #trim(): void {
    const forgotten = this.oldest - 1;
    if (forgotten - this.#trimmed < TRIM_STEP) return;
    this.#trimmed = forgotten;
    this.#options.keeper.trim(this.#id, forgotten);
  }

  #wait(events: number, length: number): void {
    this.#waiting += events;
    this.#waitingLength += length;
    this.#notify();
  }

  protected override report(slow: boolean): void {
    this.#readerSlow = slow;
    this.#notify();
  }

  /** A slow store slows the sender down, like a slow reader. */
  #notify(): void {
    const { maxEvents, maxLength } = this.#options.resumable;
    const slow = this.#readerSlow || this.#waiting >= maxEvents || this.#waitingLength >= maxLength;
    if (slow === this.#slow) return;
    this.#slow = slow;
    this.#options.pace(slow);
  }
}

/**
 * A request in the form of the `opened` event: its id, or `r`, the length of its id, the id and the text. It is not JSON,
 * because only the codecs parse JSON.
 */
function openingOf(id: RequestId | undefined, text: string | undefined): string {
  if (id === undefined) return '';
  const name = `${typeof id === 'string' ? 's' : 'n'}${id}`;
  return text === undefined ? name : `r${name.length} ${name}${text}`;
}

function requestOf(opening: string): Pick<InterruptedRequest, 'id' | 'text'> | undefined {
  if (opening === '') return undefined;
  if (!opening.startsWith('r')) return { id: idOf(opening), text: undefined };
  const at = opening.indexOf(' ') + 1;
  const end = at + Number(opening.slice(1, at));
  return { id: idOf(opening.slice(at, end)), text: opening.slice(end) };
}

function idOf(name: string): RequestId {
  return name.startsWith('n') ? Number(name.slice(1)) : name.slice(1);
}

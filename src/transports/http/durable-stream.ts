/**
 * A stream that is kept beyond this process. Whatever it is to do passes the output gate first: what a response carries is
 * durable, in the order in which it was said (docs/adr/0014).
 */
import type { SessionStorage, StoredEvent } from '../../messages/session-storage.ts';
import type { RequestId } from '../../protocol/jsonrpc.ts';
import { type ClientStream, EventStream, type Resumable } from './event-stream.ts';
import type { HttpResponse } from './http-message.ts';

/** Events that a stream forgets before the store is told: one write for many. */
const TRIM_STEP = 64;

export interface DurableStreamOptions {
  readonly resumable: Resumable;
  readonly keeper: SessionStorage;
  /** Says that its reader, or the store, is slow, or has caught up. */
  pace(slow: boolean): void;
}

export class DurableStream implements ClientStream {
  readonly id: string;
  readonly #options: DurableStreamOptions;
  /** What is durable of it, and the response that reads it. */
  readonly #durable: EventStream;
  /** The last event's number; `opened` has 1. */
  #seq: number;
  /** What has yet to pass the gate. */
  #waiting = 0;
  #waitingLength = 0;
  #trimmed = 0;
  #readerSlow = false;
  #slow = false;
  /** It has said its last, or that there is none. */
  #ended = false;
  #abandoned = false;

  /** A new one, if nothing was kept of it. @param request what it answers; undefined for a session's own */
  constructor(options: DurableStreamOptions, request: RequestId | undefined, before: readonly StoredEvent[] = []) {
    const { resumable, keeper } = options;
    this.#options = options;
    this.id = resumable.id;
    this.#seq = before.at(-1)?.seq ?? 1;
    if (before.length === 0) keeper.event(this.id, 1, 'opened', nameOf(request));
    const messages = before.filter(({ kind }) => kind !== 'opened' && kind !== 'end');
    this.#durable = new EventStream(
      resumable,
      (slow) => {
        this.#readerSlow = slow;
        this.#tell();
      },
      {
        seq: before.at(-1)?.kind === 'end' ? this.#seq - 1 : this.#seq,
        // What was said while somebody listened may have come through. What comes for it by an id is told all the same.
        written: messages.findLast(({ kind }) => kind !== 'waiting')?.seq ?? 1,
        kept: messages.map(({ seq, data }) => ({ seq, text: data })),
      },
    );
  }

  /**
   * A stream that an earlier process, or an earlier waking of its session, has begun.
   *
   * @param own it is the session's, and goes on; what answers a request and has no end lost it with its process
   * @param lost the text of the error for a request whose process is gone
   */
  static again(
    options: DurableStreamOptions,
    before: readonly StoredEvent[],
    own: boolean,
    lost: (request: RequestId) => string,
    now: number,
  ): DurableStream {
    const stream = new DurableStream(options, undefined, before);
    if (own) return stream;
    const last = before.at(-1)?.kind;
    if (last === 'last' || last === 'end') {
      stream.#ended = true;
      stream.#durable.finish(now);
      return stream;
    }
    const [first] = before;
    const request = first?.kind === 'opened' ? requestOf(first.data) : undefined;
    if (request !== undefined) stream.send(lost(request), false, true);
    stream.finish(now);
    return stream;
  }

  get finished(): boolean {
    return this.#durable.finished;
  }

  get delivered(): boolean {
    return this.#durable.delivered;
  }

  get unreadSince(): number | undefined {
    return this.#durable.unreadSince;
  }

  get idle(): boolean {
    return this.#waiting === 0 && this.#durable.idle;
  }

  get length(): number {
    return this.#durable.length;
  }

  saidAllBy(seq: number): boolean {
    return this.#durable.saidAllBy(seq);
  }

  canResume(seq: number): boolean {
    return this.#durable.canResume(seq);
  }

  attach(response: HttpResponse, retryMs?: number): void {
    this.#options.keeper.gate(() => {
      if (!response.gone) this.#durable.attach(response, retryMs);
    });
  }

  resume(response: HttpResponse, seq: number): boolean {
    if (!this.canResume(seq)) return false;
    this.#options.keeper.gate(() => {
      // Meanwhile what came after it may have been forgotten: its client asks again, and is told so.
      if (!response.gone && !this.#durable.resume(response, seq)) response.end();
    });
    return true;
  }

  send(data: string, once = false, last = false): void {
    const { keeper } = this.#options;
    if (this.#abandoned || (once && this.#durable.waits(data))) return;
    this.#seq += 1;
    if (last) this.#ended = true;
    keeper.event(this.id, this.#seq, last ? 'last' : this.#durable.read ? 'message' : 'waiting', data);
    this.#wait(1, data.length);
    keeper.gate(() => {
      this.#wait(-1, -data.length);
      this.#durable.send(data);
      this.#trim();
    });
  }

  finish(now: number): void {
    const { keeper } = this.#options;
    if (!this.#ended && !this.#abandoned) {
      this.#seq += 1;
      keeper.event(this.id, this.#seq, 'end', '');
    }
    this.#ended = true;
    keeper.gate(() => this.#durable.finish(now));
  }

  release(retryMs: number, now: number): void {
    this.#options.keeper.gate(() => this.#durable.release(retryMs, now));
  }

  detach(response: HttpResponse, now: number): void {
    this.#durable.detach(response, now);
  }

  abandon(): void {
    this.#abandoned = true;
    this.#options.keeper.trim(this.id, this.#seq);
    this.#durable.abandon();
  }

  drained(): void {
    this.#durable.drained();
  }

  keepAlive(): void {
    this.#durable.keepAlive();
  }

  /** What is forgotten here is asked for no more. */
  #trim(): void {
    const forgotten = this.#durable.oldest - 1;
    if (forgotten - this.#trimmed < TRIM_STEP) return;
    this.#trimmed = forgotten;
    this.#options.keeper.trim(this.id, forgotten);
  }

  #wait(events: number, length: number): void {
    this.#waiting += events;
    this.#waitingLength += length;
    this.#tell();
  }

  /** A store that is slow slows its sender down as a reader does. */
  #tell(): void {
    const { maxEvents, maxLength } = this.#options.resumable;
    const slow = this.#readerSlow || this.#waiting >= maxEvents || this.#waitingLength >= maxLength;
    if (slow === this.#slow) return;
    this.#slow = slow;
    this.#options.pace(slow);
  }
}

/** The id of a request as `opened` has it: no JSON, which is read at the doors only. */
function nameOf(id: RequestId | undefined): string {
  return id === undefined ? '' : `${typeof id === 'string' ? 's' : 'n'}${id}`;
}

function requestOf(name: string): RequestId | undefined {
  if (name === '') return undefined;
  return name.startsWith('n') ? Number(name.slice(1)) : name.slice(1);
}

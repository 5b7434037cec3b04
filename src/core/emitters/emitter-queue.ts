/**
 * The output queue of one slow reader, in order: one response for each request, notifications bounded in number, all
 * bounded in bytes, and the newest of each subject in place of older ones.
 */

import type { Excess, Quota, Reservation } from '../kernel/quota.ts';
import type { ChangeNotice } from '../messages/change-notices.ts';
import type { Ask, Notification, ResultMail } from '../messages/emitter-messages.ts';
import type { RequestView } from '../messages/request-view.ts';
import { ErrorCode, wireError } from '../protocol/errors.ts';
import { retainedSize } from '../protocol/heap.ts';

/** Bytes of a queued notification or response, without its data. */
const NOTE_BYTES = 300;

export interface EmitterQueueOptions {
  /** Maximum number of queued notifications; the oldest log messages are dropped first. */
  readonly maxHeld: number;
  /** Quota in bytes; the data of queued responses, and of log and progress messages, counts. */
  readonly retained: Quota;
  /** The principal of messages that belong to no request. */
  readonly principal: string;
}

export class EmitterQueue {
  /** By key: a newer notification replaces an older one with the same key. */
  readonly #mail = new Map<string, ResultMail | Ask | Notification>();
  readonly #options: EmitterQueueOptions;
  #seq = 0;
  #notes = 0;
  #dropped = 0;
  /** The bytes of queued responses, log and progress messages, by key. */
  readonly #sizes = new Map<string, number>();
  #bytes = 0;
  #reservation: Reservation | undefined;

  constructor(options: EmitterQueueOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#mail.size;
  }

  add(mail: ResultMail | Ask | Notification): void {
    const key = coalescingKey(mail) ?? `#${this.#seq++}`;
    // A newer notification of the same subject moves to the end, so that it overtakes nothing.
    this.#remove(key);
    this.#mail.set(key, mail);
    if (!isKept(mail)) this.#notes += 1;
    this.#count(key, mail);
    // Changes must be delivered, and each subject has at most one notification. Only log and progress messages can be
    // dropped.
    for (;;) {
      const excess = this.#reservation?.resize(this.#bytes);
      if (!excess && this.#notes <= this.#options.maxHeld) return;
      const oldest = this.#oldest('log') ?? this.#oldest('progress');
      if (oldest === undefined) return excess && this.#shorten(key, mail, excess);
      this.#remove(oldest);
      this.#dropped += 1;
    }
  }

  /** Replaces a response that does not fit by an error. Its request has ended, so it must have one response. */
  #shorten(key: string, mail: ResultMail | Ask | Notification, { message }: Excess): void {
    if (mail.type !== 'answer' || !this.#sizes.has(key)) return;
    this.#remove(key);
    const why = `the request has ended, but its result is lost because this client reads too slowly: ${message}. Read responses faster, or request less at once`;
    this.#mail.set(key, { ...mail, outcome: { ok: false, error: wireError(ErrorCode.Overloaded, why) } });
  }

  /** Empties the queue in order. @returns the number of dropped notifications */
  release(pass: (mail: ResultMail | Ask | Notification) => void): number {
    const held = [...this.#mail.values()];
    const dropped = this.#dropped;
    this.#mail.clear();
    this.#sizes.clear();
    this.#reservation?.release();
    this.#reservation = undefined;
    this.#bytes = 0;
    this.#notes = 0;
    this.#dropped = 0;
    // Sent before the rest of the same request, at its log level: the client asked for both.
    const first = held.find((mail) => mail.type === 'log');
    for (const mail of held) {
      if (dropped > 0 && mail === first && mail.type === 'log') {
        const data = `${dropped} notifications were dropped because the client reads too slowly`;
        pass({ ...mail, data, logger: 'troupe' });
      }
      pass(mail);
    }
    return dropped;
  }

  /** Removes everything of a cancelled request. */
  forget(request: RequestView): void {
    for (const [key, mail] of this.#mail)
      if ('about' in mail && mail.about === request && !isKept(mail)) this.#remove(key);
    this.#reservation?.resize(this.#bytes);
  }

  #remove(key: string): void {
    const mail = this.#mail.get(key);
    if (!mail) return;
    this.#mail.delete(key);
    if (!isKept(mail)) this.#notes -= 1;
    this.#bytes -= this.#sizes.get(key) ?? 0;
    this.#sizes.delete(key);
  }

  #count(key: string, mail: ResultMail | Ask | Notification): void {
    const data = dataOf(mail);
    if (data === undefined) return;
    const { retained, principal } = this.#options;
    const client = mail.type === 'answer' ? mail.request.client : 'about' in mail ? mail.about?.client : undefined;
    this.#reservation ??= retained.take(client?.principal ?? principal, 0, client?.session?.id);
    const bytes = NOTE_BYTES + retainedSize(data).bytes;
    this.#sizes.set(key, bytes);
    this.#bytes += bytes;
  }

  #oldest(wanted: Notification['type']): string | undefined {
    for (const [key, { type }] of this.#mail) if (type === wanted) return key;
    return undefined;
  }
}

/** True if the message must reach the client, however slow it is. */
function isKept({ type }: ResultMail | Ask | Notification): boolean {
  return type === 'answer' || type === 'refusal' || type === 'ask' || type === 'withdrawn';
}

/** The data of a message that only the queue refers to. All clients share the pages of lists. */
function dataOf(mail: ResultMail | Ask | Notification): unknown {
  switch (mail.type) {
    case 'answer':
      return mail.outcome.ok && mail.outcome.result.kind === 'list' ? undefined : mail.outcome;
    case 'log':
      return mail.data ?? null;
    case 'progress':
      return mail.message ?? null;
    case 'notification':
      return mail.notice.type === 'streamed' ? mail.notice.params : undefined;
    default:
      return undefined;
  }
}

/**
 * The key of a notification that a newer one replaces: same request, list or resource. Logs and responses have no key.
 */
function coalescingKey(mail: ResultMail | Ask | Notification): string | undefined {
  switch (mail.type) {
    case 'progress':
      return `progress ${typeof mail.token} ${mail.token}`;
    case 'list changed':
      return `list ${mail.what}`;
    case 'resource updated':
      return `resource ${mail.uri}`;
    case 'task status':
      return `task ${mail.task.id}`;
    case 'notification':
      return noticeKey(mail.about, mail.notice);
    default:
      return undefined;
  }
}

function noticeKey({ key }: RequestView, notice: ChangeNotice): string | undefined {
  const of = `notice ${typeof key} ${key}`;
  switch (notice.type) {
    case 'acknowledged':
      return of;
    case 'list changed':
      return `${of} list ${notice.what}`;
    case 'resource updated':
      return `${of} resource ${notice.uri}`;
    case 'task changed':
      return `${of} task ${notice.task.id}`;
    default:
      return undefined;
  }
}

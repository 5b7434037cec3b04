/** The requests of an agent that have no response yet, for `troupe run` and `troupe attach`. */
import type { RequestId } from '../../core/protocol/jsonrpc.ts';
import type { PendingCall } from './retry-safety.ts';
import { idKey } from './shim-messages.ts';

/** The maximum number of open requests. The limit matters because a line that is invalid JSON after its id and method never gets a response with its id. */
const MAX_OPEN = 16_384;

/** The maximum number of requests in doubt. */
const MAX_DOUBTFUL = 64;

interface Open extends PendingCall {
  /** The number of its line on the connection, from 1. */
  readonly number: number;
  /** The server has reported a rejection: the next error with this id, or without an id, is for this request. */
  rejected: boolean;
  /** False for a placeholder: an error with an id that no request of the line has. The agent does not wait for it. */
  readonly owed: boolean;
  /** The next request with the same id; in the first request, `last` is the end of this list. */
  next: Open | undefined;
  last: Open | undefined;
}

/**
 * Matches responses with requests, also if an agent uses an id twice: the server rejects the second request, and the first stays
 * open. Keys are ids as JSON.
 */
export class OpenRequests {
  readonly #byKey = new Map<string, Open>();
  #count = 0;
  /** The numbers of lines that the server rejects without an id, in order. */
  #rejectedLines: number[] = [];
  /** Requests that ended with an error without an id since the server's last response with an id. */
  #doubtful: (readonly [key: string, open: Open])[] = [];

  /** Adds a request. @param number the number of its line on this connection */
  add(key: string, { method, line }: PendingCall, number: number): void {
    this.#append(key, { method, line, number, rejected: false, owed: true, next: undefined, last: undefined });
    if (this.#count <= MAX_OPEN) return;
    const [oldest] = this.#byKey;
    if (oldest) this.#remove(...oldest);
  }

  has(key: string): boolean {
    return this.#byKey.has(key);
  }

  /** True if an open or doubtful request matches: the server owes its response, or has rejected it without an id and given no response since. */
  some(wanted: (asked: PendingCall) => boolean): boolean {
    if (this.#doubtful.some(([, open]) => wanted(open))) return true;
    for (const first of this.#byKey.values())
      for (let open: Open | undefined = first; open; open = open.next) if (open.owed && wanted(open)) return true;
    return false;
  }

  /** The server reports that it rejects a line, or one request of a batch; the error follows. @param id the id of that error */
  rejected(number: number, id: RequestId | undefined): void {
    if (id === undefined) return void this.#rejectedLines.push(number);
    const key = idKey(id);
    const mine = this.#find(key, (open) => open.number === number && !open.rejected);
    if (mine) {
      mine.rejected = true;
      return;
    }
    // The server reads a different id, for example if the object has two. The error still answers this line.
    this.#removeLine(number, ({ line }) => line !== undefined);
    const open = { method: '', line: undefined, number, rejected: true, owed: false, next: undefined, last: undefined };
    this.#append(key, open);
  }

  /** An error without an id has arrived. */
  rejection(): void {
    const number = this.#rejectedLines.shift();
    if (number === undefined) return;
    for (const removed of this.#removeLine(number, () => true)) if (removed[1].owed) this.#doubtful.push(removed);
    if (this.#doubtful.length > MAX_DOUBTFUL) this.#doubtful = this.#doubtful.slice(-MAX_DOUBTFUL);
  }

  /** The server has sent a response with an id, so it works: its rejections without an id are final. */
  trust(): void {
    if (this.#doubtful.length > 0) this.#doubtful = [];
  }

  /** The server does not answer a probe, so it does not work: the requests that it rejected without an id are open again. */
  distrust(): void {
    for (const [key, { method, line, number }] of this.#doubtful.splice(0)) this.add(key, { method, line }, number);
  }

  /** Removes the request that a response answers. @param failed true if the response is an error @returns the request */
  answered(key: string, failed: boolean): PendingCall | undefined {
    const open = this.#answeredBy(key, failed);
    if (open) this.#remove(key, open);
    return open;
  }

  /** Finds the request that a response answers. @param failed true if the response is an error */
  find(key: string, failed: boolean): PendingCall | undefined {
    return this.#answeredBy(key, failed);
  }

  #answeredBy(key: string, failed: boolean): Open | undefined {
    const first = this.#byKey.get(key);
    if (!first?.next) return first;
    return this.#find(key, ({ rejected }) => rejected === failed) ?? first;
  }

  /** The agent cancels a request, so the request gets no response. */
  cancelled(key: string): void {
    // `initialize` cannot be cancelled (MCP "Cancellation").
    const open = this.#find(key, ({ rejected, method }) => !rejected && method !== 'initialize');
    if (open) this.#remove(key, open);
  }

  /** Removes and returns all open requests, after the connection has ended. */
  drain(): readonly (readonly [key: string, asked: PendingCall])[] {
    const all: [string, PendingCall][] = [];
    for (const [key, first] of this.#byKey)
      for (let open: Open | undefined = first; open; open = open.next) if (open.owed) all.push([key, open]);
    this.#byKey.clear();
    this.#count = 0;
    this.#rejectedLines = [];
    this.#doubtful = [];
    return all;
  }

  #append(key: string, added: Open): void {
    this.#count += 1;
    const first = this.#byKey.get(key);
    if (!first) return void this.#byKey.set(key, added);
    (first.last ?? first).next = added;
    first.last = added;
  }

  #find(key: string, wanted: (open: Open) => boolean): Open | undefined {
    let open = this.#byKey.get(key);
    while (open && !wanted(open)) open = open.next;
    return open;
  }

  #remove(key: string, removed: Open): void {
    this.#count -= 1;
    const first = this.#byKey.get(key);
    if (first === removed) {
      const { next } = removed;
      if (!next) return void this.#byKey.delete(key);
      next.last = next === removed.last ? undefined : removed.last;
      return void this.#byKey.set(key, next);
    }
    for (let open = first; open; open = open.next) {
      if (open.next !== removed) continue;
      open.next = removed.next;
      if (first?.last === removed) first.last = open === first ? undefined : open;
    }
  }

  /** Removes the matching requests of a line. It searches all requests, because rejections are rare. @returns the removed requests */
  #removeLine(number: number, wanted: (open: Open) => boolean): readonly (readonly [key: string, open: Open])[] {
    const removed: [string, Open][] = [];
    for (const [key, first] of this.#byKey)
      for (let open: Open | undefined = first; open; open = open.next)
        if (open.number === number && wanted(open)) removed.push([key, open]);
    for (const [key, open] of removed) this.#remove(key, open);
    return removed;
  }
}

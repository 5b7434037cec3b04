/** The requests of an agent that have no response yet: the one record of them, for `troupe run` and `troupe attach`. */
import type { RequestId } from '../../protocol/jsonrpc.ts';
import type { PendingCall } from './retry-safety.ts';
import { idKey } from './shim-messages.ts';

/** Most requests that are remembered: what is no JSON behind its id and method is never answered by id. */
const MOST = 16_384;

/** Most requests that a server is doubted for. */
const MOST_DOUBTFUL = 64;

interface Open extends PendingCall {
  /** The line of the connection that it came in, from 1. */
  readonly number: number;
  /** The server rejects it: the next error under this id, or without one, is for this request. */
  rejected: boolean;
  /** It stands for an error under an id that no request of its line has: nobody waits for it. */
  readonly owed: boolean;
  /** The next request with the same id, and of the first the last. */
  next: Open | undefined;
  last: Open | undefined;
}

/**
 * Knows which request a response is for, also where an agent uses an id twice: the server rejects the second request, and the first
 * stays open. Ids are the JSON of the agent's ids.
 */
export class OpenRequests {
  readonly #byKey = new Map<string, Open>();
  #count = 0;
  /** Lines that the server rejects without an id, in its order. */
  #rejectedLines: number[] = [];
  /** Requests that ended with an error without an id, since the server last gave a response with one. */
  #doubtful: (readonly [key: string, open: Open])[] = [];

  /** @param number of its line on this connection */
  add(key: string, { method, line }: PendingCall, number: number): void {
    this.#append(key, { method, line, number, rejected: false, owed: true, next: undefined, last: undefined });
    if (this.#count <= MOST) return;
    const [oldest] = this.#byKey;
    if (oldest) this.#remove(...oldest);
  }

  has(key: string): boolean {
    return this.#byKey.has(key);
  }

  /** Whether the server owes such a response, or has rejected such a request without an id and given no other response since. */
  some(wanted: (asked: PendingCall) => boolean): boolean {
    if (this.#doubtful.some(([, open]) => wanted(open))) return true;
    for (const first of this.#byKey.values())
      for (let open: Open | undefined = first; open; open = open.next) if (open.owed && wanted(open)) return true;
    return false;
  }

  /** The server rejects a line, or of a batch one request; the error follows. @param id of that error */
  rejected(number: number, id: RequestId | undefined): void {
    if (id === undefined) return void this.#rejectedLines.push(number);
    const key = idKey(id);
    const mine = this.#find(key, (open) => open.number === number && !open.rejected);
    if (mine) {
      mine.rejected = true;
      return;
    }
    // The server reads another id than we do, as where an object has two: the error is for this line all the same.
    this.#forgetLine(number, ({ line }) => line !== undefined);
    const open = { method: '', line: undefined, number, rejected: true, owed: false, next: undefined, last: undefined };
    this.#append(key, open);
  }

  /** An error without an id has come. */
  rejection(): void {
    const number = this.#rejectedLines.shift();
    if (number === undefined) return;
    for (const gone of this.#forgetLine(number, () => true)) if (gone[1].owed) this.#doubtful.push(gone);
    if (this.#doubtful.length > MOST_DOUBTFUL) this.#doubtful = this.#doubtful.slice(-MOST_DOUBTFUL);
  }

  /** The server has given a response with an id: it reads requests, and what it rejects without an id deserves it. */
  trust(): void {
    if (this.#doubtful.length > 0) this.#doubtful = [];
  }

  /** The server does not respond to what any server responds to: the requests that it rejected without an id are open again. */
  distrust(): void {
    for (const [key, { method, line, number }] of this.#doubtful.splice(0)) this.add(key, { method, line }, number);
  }

  /** The request that a response is for, which is no longer open. @param failed whether the response is an error */
  answered(key: string, failed: boolean): PendingCall | undefined {
    const open = this.#answeredBy(key, failed);
    if (open) this.#remove(key, open);
    return open;
  }

  /** The same, which stays open. */
  find(key: string, failed: boolean): PendingCall | undefined {
    return this.#answeredBy(key, failed);
  }

  #answeredBy(key: string, failed: boolean): Open | undefined {
    const first = this.#byKey.get(key);
    if (!first?.next) return first;
    return this.#find(key, ({ rejected }) => rejected === failed) ?? first;
  }

  /** The agent cancels a request: it gets no response. */
  cancelled(key: string): void {
    // `initialize` cannot be cancelled (MCP "Cancellation").
    const open = this.#find(key, ({ rejected, method }) => !rejected && method !== 'initialize');
    if (open) this.#remove(key, open);
  }

  /** Those that are open, which are forgotten: the connection is gone. */
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

  #remove(key: string, gone: Open): void {
    this.#count -= 1;
    const first = this.#byKey.get(key);
    if (first === gone) {
      const { next } = gone;
      if (!next) return void this.#byKey.delete(key);
      next.last = next === gone.last ? undefined : gone.last;
      return void this.#byKey.set(key, next);
    }
    for (let open = first; open; open = open.next) {
      if (open.next !== gone) continue;
      open.next = gone.next;
      if (first?.last === gone) first.last = open === first ? undefined : open;
    }
  }

  /** Looks at all of them: lines are rejected seldom. @returns those of the line */
  #forgetLine(number: number, wanted: (open: Open) => boolean): readonly (readonly [key: string, open: Open])[] {
    const gone: [string, Open][] = [];
    for (const [key, first] of this.#byKey)
      for (let open: Open | undefined = first; open; open = open.next)
        if (open.number === number && wanted(open)) gone.push([key, open]);
    for (const [key, open] of gone) this.#remove(key, open);
    return gone;
  }
}

/** The last event of each stream of the actors that this process writes, cached so that a group is checked before it is sent. */

import { ArrayParameter } from './array-parameter.ts';
import { fromColumnText } from './column-text.ts';
import type { PostgresConnection, PreparedStatement } from './postgres-connection.ts';

/** Approximate cost of a row beside its data. */
export const EVENT_ROW_BYTES = 48;
/** Maximum number of actors in the cache; all are dropped when there are more. */
const MAX_ACTORS = 20_000;

interface StreamHead {
  last: number;
  purged: number;
  /** Numbers of events and their bytes. After a trim they are estimates, never below the true ones by much. */
  events: number;
  bytes: number;
}

export interface ActorHeads {
  readonly streams: Map<string, StreamHead>;
  /** Bytes of all its events; after a trim an estimate. */
  bytes: number;
  /** The last event of its history that its snapshot covers. */
  covered: number;
}

export class StreamHeads {
  readonly #actors = new Map<string, ActorHeads>();
  readonly #statement: PreparedStatement;

  constructor(schema: string) {
    this.#statement = {
      name: 'heads',
      text: `SELECT actor, stream, max(seq)::float8, count(*)::float8, sum(octet_length(data) + ${EVENT_ROW_BYTES})::float8, 0::float8
  FROM ${schema}.event WHERE actor = ANY($1::text[]) GROUP BY actor, stream
UNION ALL SELECT actor, stream, 0, 0, 0, purged FROM ${schema}.stream WHERE actor = ANY($1::text[])
UNION ALL SELECT id, NULL, covered, 0, 0, 0 FROM ${schema}.actor WHERE id = ANY($1::text[]) AND covered > 0`,
    };
  }

  /** Undefined for an actor that is not in the cache. */
  find(actor: string): ActorHeads | undefined {
    return this.#actors.get(actor);
  }

  /** The actor has no events. */
  clear(actor: string): ActorHeads {
    const heads: ActorHeads = { streams: new Map(), bytes: 0, covered: 0 };
    this.#actors.set(actor, heads);
    return heads;
  }

  /** Drops one actor, or all. */
  reset(actor?: string): void {
    if (actor === undefined) this.#actors.clear();
    else this.#actors.delete(actor);
  }

  /** Reads actors into the cache. @throws the driver's error */
  async read(connection: PostgresConnection, actors: Iterable<string>): Promise<void> {
    const ids = new ArrayParameter('text');
    if (this.#actors.size > MAX_ACTORS) this.reset();
    for (const actor of actors) {
      this.clear(actor);
      ids.add(actor);
    }
    for (const [id, stream, last, events, bytes, purged] of await connection.query(this.#statement, [ids.toBuffer()])) {
      const actor = fromColumnText(String(id));
      const heads = this.#actors.get(actor) ?? this.clear(actor);
      if (stream === null) {
        heads.covered = Number(last);
        continue;
      }
      const head = streamHeadOf(heads, fromColumnText(String(stream)));
      head.last = Math.max(head.last, Number(last), Number(purged));
      head.purged = Math.max(head.purged, Number(purged));
      head.events += Number(events);
      head.bytes += Number(bytes);
      heads.bytes += Number(bytes);
    }
  }
}

/** The head of a stream, which is empty if the stream is new. */
export function streamHeadOf({ streams }: ActorHeads, stream: string): StreamHead {
  const found = streams.get(stream);
  if (found) return found;
  const head: StreamHead = { last: 0, purged: 0, events: 0, bytes: 0 };
  streams.set(stream, head);
  return head;
}

export function appendToHead(heads: ActorHeads, head: StreamHead, seq: number, length: number): void {
  head.last = seq;
  head.events += 1;
  head.bytes += length + EVENT_ROW_BYTES;
  heads.bytes += length + EVENT_ROW_BYTES;
}

/** Events up to this one are deleted. */
export function trimHead(heads: ActorHeads, head: StreamHead, upto: number): void {
  head.purged = upto;
  const left = Math.min(head.events, head.last - upto);
  const bytes = head.events === 0 ? 0 : (head.bytes * left) / head.events;
  heads.bytes -= head.bytes - bytes;
  head.bytes = bytes;
  head.events = left;
}

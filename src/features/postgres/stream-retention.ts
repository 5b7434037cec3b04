/** Finds the oldest events of streams and actors beyond their limits. Each cut has some slack, so that not every event needs one. */
import { OUT_STREAMS, type Write } from '../../core/store/store.ts';
import type { PostgresConnection, PreparedStatement } from './postgres-connection.ts';
import type { PostgresOptions } from './postgres-options.ts';
import { EVENT_ROW_BYTES, type StreamHeads } from './stream-heads.ts';

/** Share of a limit that is freed at once. */
const SLACK = 8;

export class StreamRetention {
  readonly #options: PostgresOptions;
  readonly #heads: StreamHeads;
  readonly #cut: PreparedStatement;
  readonly #crowded = new Set<string>();

  constructor(options: PostgresOptions, heads: StreamHeads) {
    this.#options = options;
    this.#heads = heads;
    this.#cut = {
      name: 'cut',
      text: `SELECT seq::float8 FROM (SELECT seq, row_number() OVER w AS n, sum(octet_length(data) + ${EVENT_ROW_BYTES}) OVER w AS size
  FROM ${options.schema}.event WHERE actor = $1 AND stream = $2 WINDOW w AS (ORDER BY seq)) t
WHERE n >= $3 AND size >= $4 ORDER BY seq LIMIT 1`,
    };
  }

  add(crowded: ReadonlySet<string>): void {
    for (const actor of crowded) this.#crowded.add(actor);
  }

  get isDue(): boolean {
    return this.#crowded.size > 0;
  }

  /** @throws the driver's error */
  async trims(connection: PostgresConnection): Promise<readonly Write[]> {
    const actors = [...this.#crowded];
    this.#crowded.clear();
    const trims: Write[] = [];
    // Trims leave estimates; this reads the true numbers.
    await this.#heads.read(connection, actors);
    for (const actor of actors) trims.push(...(await this.#trimsOf(connection, actor)));
    return trims;
  }

  async #trimsOf(connection: PostgresConnection, actor: string): Promise<readonly Write[]> {
    const heads = this.#heads.find(actor);
    const { maxStreamEvents, maxActorBytes } = this.#options;
    const trims: Write[] = [];
    let largest: readonly [stream: string, bytes: number] = ['', 0];
    for (const [stream, { events, bytes }] of heads?.streams ?? []) {
      if (stream.startsWith(OUT_STREAMS)) continue;
      if (bytes > largest[1]) largest = [stream, bytes];
      const surplus = events - maxStreamEvents;
      if (surplus <= 0) continue;
      trims.push(...(await this.#trim(connection, actor, stream, surplus + Math.floor(maxStreamEvents / SLACK), 0)));
    }
    const over = (heads?.bytes ?? 0) - maxActorBytes;
    if (over > 0)
      trims.push(...(await this.#trim(connection, actor, largest[0], 1, over + Math.floor(maxActorBytes / SLACK))));
    return trims;
  }

  /** The trim of this many events and bytes at least. Of a history, it leaves the events that no snapshot covers. */
  async #trim(
    connection: PostgresConnection,
    actor: string,
    stream: string,
    events: number,
    bytes: number,
  ): Promise<readonly Write[]> {
    const heads = this.#heads.find(actor);
    const head = heads?.streams.get(stream);
    if (!heads || !head) return [];
    const [row] = await connection.query(this.#cut, [
      actor,
      stream,
      Math.min(events, head.events),
      Math.min(bytes, head.bytes),
    ]);
    const found = row ? Number(row[0]) : head.last;
    const upto = stream === '' ? Math.min(found, heads.covered) : found;
    return upto > head.purged ? [{ type: 'trim', actor, stream, upto }] : [];
  }
}

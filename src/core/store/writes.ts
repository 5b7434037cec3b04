/** The actor of a write, the length of a query in the queue of a store, and the order of the events of a batch. */
import { notNewer, type StoreError, type StoreQuery, type Write, writesOf } from './store.ts';

/** The id of the actor that a write belongs to. */
export function writtenActor(write: Write): string {
  switch (write.type) {
    case 'actor':
      return write.actor.id;
    case 'timer':
      return write.timer.actor;
    case 'dead letter':
      return write.letter.actor;
    default:
      return write.actor;
  }
}

/** A constant for each row of a batch, beside its texts. */
const ROW_LENGTH = 64;

/** The length of what a query writes, in characters. */
export function lengthOf(query: StoreQuery): number {
  switch (query.type) {
    case 'commit':
      return lengthOfWrites(query.writes);
    case 'claim':
      return lengthOfWrite(query.reply);
    case 'swap':
      return lengthOfWrites(writesOf(query.swap));
    default:
      return 0;
  }
}

function lengthOfWrites(writes: readonly Write[]): number {
  return writes.reduce((length, write) => length + lengthOfWrite(write), 0);
}

function lengthOfWrite(write: Write): number {
  switch (write.type) {
    case 'snapshot':
    case 'event':
    case 'reply':
      return ROW_LENGTH + write.data.length;
    case 'timer':
      return ROW_LENGTH + write.timer.data.length;
    case 'dead letter':
      return ROW_LENGTH + write.letter.mail.length;
    default:
      return ROW_LENGTH;
  }
}

/**
 * The error for a batch with an event that does not come after the last of its stream; undefined if all do.
 *
 * @param stored the last event of a stream in the store
 */
export function disorderIn(
  writes: readonly Write[],
  stored: (actor: string, stream: string) => number | undefined,
): StoreError | undefined {
  // The last events of this batch, by actor and stream; an actor that the batch deletes begins without any.
  let seen: Map<string, Map<string, number>> | undefined;
  const deleted = new Set<string>();
  for (const write of writes) {
    if (write.type === 'forget') {
      deleted.add(write.actor);
      seen?.delete(write.actor);
    }
    if (write.type !== 'event') continue;
    const { actor, stream, seq } = write;
    const last = seen?.get(actor)?.get(stream) ?? (deleted.has(actor) ? undefined : stored(actor, stream)) ?? 0;
    if (seq <= last) return notNewer(write, last);
    seen ??= new Map();
    const streams = seen.get(actor) ?? new Map<string, number>();
    seen.set(actor, streams.set(stream, seq));
  }
  return undefined;
}

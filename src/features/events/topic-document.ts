/**
 * The stored form of a topic. Its head has the newest events and the list of its parts; each part has older events, and never
 * changes. Pure.
 */
import { isJsonObject, type JsonObject } from '../../core/protocol/json.ts';
import { fromText, toText } from '../../core/store/serialize.ts';
import { StoreError } from '../../core/store/store.ts';

/** One committed event. */
export interface TopicEvent {
  /** Its number in its topic: 1, 2, 3, … in the order of the commits. */
  readonly seq: number;
  readonly id: string;
  /** When it happened and when it was committed, in milliseconds since 1970. */
  readonly at: number;
  readonly committed: number;
  /** The W3C `traceparent` of what emitted it. */
  readonly trace: string | undefined;
  /** The only principal that may get it; undefined for all subscribers. */
  readonly owner?: string | undefined;
  /** No event, but the place of events that are missing: every reader that passes it learns of a gap. */
  readonly gap?: true | undefined;
  /** Frozen: all subscribers have the same object. */
  readonly data: JsonObject;
  /** The event as it is stored. */
  readonly line: string;
  /** The bytes of the line. */
  readonly bytes: number;
}

/** The facts of an event before its commit. */
export type NewEvent = Pick<TopicEvent, 'id' | 'at' | 'trace' | 'owner' | 'gap' | 'data'> & { readonly text: string };

/** A range of older events, which a row of its own has. */
export interface TopicPart {
  readonly first: number;
  readonly last: number;
  readonly bytes: number;
  /** When its newest event was committed. */
  readonly committed: number;
}

export interface TopicHead {
  /** Random: a topic that was deleted and begun again has another one. The empty string: it has no event yet. */
  readonly epoch: string;
  readonly last: number;
  /** The newest event that was deleted; 0 if none was. */
  readonly purged: number;
  readonly parts: readonly TopicPart[];
  /** The events after those of the parts. */
  readonly tail: readonly TopicEvent[];
}

/** The bounds of what a topic keeps. */
export interface Retention {
  readonly events: number;
  readonly ms: number;
  readonly bytes: number;
}

/** A tail with as many events or bytes becomes a part. */
const PART = { events: 64, bytes: 32_768 } as const;

export const NEW_TOPIC = (epoch: string): TopicHead => ({ epoch, last: 0, purged: 0, parts: [], tail: [] });

/** Numbers an event. @param committed milliseconds since 1970 */
export function commitEvent(event: NewEvent, seq: number, committed: number): TopicEvent {
  const { id, at, trace, owner, gap, data, text } = event;
  const more = gap ? ',null,true' : owner === undefined ? '' : `,${toText(owner)}`;
  const line = `[${toText(id)},${at},${committed},${toText(trace ?? null)},${text}${more}]`;
  return { seq, id, at, committed, trace, owner, gap, data, line, bytes: Buffer.byteLength(line) };
}

/** True if the tail has to become a part before the next event. All nodes that read the same head decide the same. */
export function isFull({ tail }: TopicHead): boolean {
  return tail.length >= PART.events || bytesOf(tail) >= PART.bytes;
}

/** The head whose tail has become a part. */
export function closePart(head: TopicHead): TopicHead {
  const [first, last] = [head.tail.at(0), head.tail.at(-1)];
  if (!first || !last) return head;
  const part = { first: first.seq, last: last.seq, bytes: bytesOf(head.tail), committed: last.committed };
  return { ...head, parts: [...head.parts, part], tail: [] };
}

/** The head with more events, and the parts that are beyond the retention. */
export function appendEvents(
  head: TopicHead,
  events: readonly TopicEvent[],
  retain: Retention,
  now: number,
): { readonly head: TopicHead; readonly dropped: readonly TopicPart[] } {
  const tail = [...head.tail, ...events];
  const last = tail.at(-1)?.seq ?? head.last;
  const parts = [...head.parts];
  const dropped: TopicPart[] = [];
  let bytes = bytesOf(tail) + parts.reduce((sum, part) => sum + part.bytes, 0);
  for (let part = parts[0]; part; part = parts[0]) {
    if (part.last > last - retain.events && part.committed > now - retain.ms && bytes <= retain.bytes) break;
    bytes -= part.bytes;
    dropped.push(part);
    parts.shift();
  }
  return { head: { ...head, last, parts, tail, purged: dropped.at(-1)?.last ?? head.purged }, dropped };
}

/** The newest event that is beyond the retention although its row may still have it. */
export function purgedOf({ last, purged, parts }: TopicHead, retain: Retention, now: number): number {
  const old = parts.findLast(({ committed }) => committed <= now - retain.ms)?.last ?? 0;
  return Math.max(purged, last - retain.events, old);
}

export function topicText({ epoch, last, purged, parts, tail }: TopicHead): string {
  const rows = parts.map(({ first, last: end, bytes, committed }) => [first, end, bytes, committed]);
  return [toText([epoch, last, purged, rows]), ...tail.map(({ line }) => line)].join('\n');
}

export function partText(events: readonly TopicEvent[]): string {
  return events.map(({ line }) => line).join('\n');
}

/** @throws {StoreError} `corrupt` */
export function readHead(text: string): TopicHead {
  const [begin = '', ...lines] = text.split('\n');
  const read = fromText(begin, 'a topic');
  const [epoch, last, purged, rows]: readonly unknown[] = Array.isArray(read) ? read : [];
  if (typeof epoch !== 'string' || !isCount(last) || !isCount(purged) || !Array.isArray(rows)) throw damaged();
  const parts = rows.map((row: unknown): TopicPart => {
    const [first, end, bytes, committed]: readonly unknown[] = Array.isArray(row) ? row : [];
    if (!isCount(first) || !isCount(end) || !isCount(bytes) || !isCount(committed)) throw damaged();
    return { first, last: end, bytes, committed };
  });
  return { epoch, last, purged, parts, tail: readEvents(lines, last - lines.length + 1) };
}

/** @throws {StoreError} `corrupt` */
export function readPart(text: string, { first, last }: TopicPart): readonly TopicEvent[] {
  const lines = text.split('\n');
  if (lines.length !== last - first + 1) throw damaged();
  return readEvents(lines, first);
}

function readEvents(lines: readonly string[], first: number): readonly TopicEvent[] {
  return lines.map((line, index): TopicEvent => {
    const read = fromText(line, 'an event of a topic');
    const [id, at, committed, trace, data, written, missing]: readonly unknown[] = Array.isArray(read) ? read : [];
    if (typeof id !== 'string' || typeof at !== 'number' || !isCount(committed) || !isJsonObject(data)) throw damaged();
    const traced = typeof trace === 'string' ? trace : undefined;
    const owner = written ?? undefined;
    if (owner !== undefined && typeof owner !== 'string') throw damaged();
    const gap = missing === true ? missing : undefined;
    const bytes = Buffer.byteLength(line);
    return { seq: first + index, id, at, committed, trace: traced, owner, gap, data: frozen(data), line, bytes };
  });
}

/** Freezes JSON as a whole. */
export function frozen<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value;
  for (const member of Object.values(value)) frozen(member);
  return Object.freeze(value);
}

function bytesOf(events: readonly TopicEvent[]): number {
  return events.reduce((sum, { bytes }) => sum + bytes, 0);
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

function damaged(): StoreError {
  return new StoreError('corrupt', 'a stored topic is damaged. Restore a backup, or delete the topic');
}

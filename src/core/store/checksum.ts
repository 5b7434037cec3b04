/** Checksums of stored data: SQLite has none and would serve a page that the disk has changed. */
import { crc32 } from 'node:zlib';
import { toText } from './serialize.ts';

/** A value that identifies a row and enters its checksum beside its data. */
export type ChecksumPart = string | number | undefined;

/** The checksum of a row: its parts, in an order that never changes, and its data. */
export function rowSum(parts: readonly ChecksumPart[], data?: Uint8Array): number {
  // As JSON, so that different lists of parts have different texts.
  const sum = crc32(toText(parts.map((part) => part ?? null)));
  return data ? on(sum, data) : sum;
}

/**
 * The checksum of an event. It includes the checksum of the previous event in its stream, so that no event can be
 * omitted, inserted or moved.
 */
export function eventSum(previous: number, stream: number, seq: number, kind: string, data: Uint8Array): number {
  return on(crc32(`${stream} ${seq} ${kind.length} ${kind}`, previous), data);
}

/** zlib restarts with an empty array that has no memory, which is how SQLite's driver represents empty bytes. */
function on(sum: number, data: Uint8Array): number {
  return data.length === 0 ? sum : crc32(data, sum);
}

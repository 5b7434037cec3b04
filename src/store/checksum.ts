/** Checksums of what is kept: SQLite has none of its own, and serves a page that its disk has changed as if nothing were. */
import { crc32 } from 'node:zlib';
import { toText } from './serialize.ts';

/** What is summed beside the data of a row: everything that makes it this row and no other. */
export type ChecksumPart = string | number | undefined;

/** Of a row: its parts, in an order that never changes, and its data. */
export function rowSum(parts: readonly ChecksumPart[], data?: Uint8Array): number {
  // As JSON, so that no two lists of parts have the same text.
  const sum = crc32(toText(parts.map((part) => part ?? null)));
  return data ? on(sum, data) : sum;
}

/** Of an event: what the one before it in its stream has is in it, so that none can be left out, put in, or put elsewhere. */
export function eventSum(previous: number, stream: number, seq: number, kind: string, data: Uint8Array): number {
  return on(crc32(`${stream} ${seq} ${kind.length} ${kind}`, previous), data);
}

/** zlib begins anew with bytes that are nowhere, which is where SQLite's driver has the empty ones. */
function on(sum: number, data: Uint8Array): number {
  return data.length === 0 ? sum : crc32(data, sum);
}

/** One pack: all replies that one transaction has written, as one row of the file. */
import { crc32 } from 'node:zlib';
import type { JsonValue } from '../../core/protocol/json.ts';
import { fromText, toText } from '../../core/store/serialize.ts';
import { bytes, bytesColumn, number, type SqlRow, sqlText } from './sqlite-database.ts';

/** A reply in a pack. */
export interface PackedReply {
  readonly actor: string;
  readonly request: string;
  /** Milliseconds since 1970. */
  readonly expires: number;
  /** The empty string if the reply was deleted; undefined if the disk has changed its data. */
  readonly data: string | undefined;
}

/** A pack as it is stored. The keys are stored twice, so that damaged replies are known by their names. */
interface PackColumns {
  readonly keys: Uint8Array;
  readonly data: Uint8Array;
}

/** A pack as it is read. */
export interface ReadPack {
  readonly n: number;
  /** The size of its columns. */
  readonly bytes: number;
  readonly replies: readonly PackedReply[];
  /** True if every column is as it was written. */
  readonly sound: boolean;
}

/** The length of a checksum in hexadecimal digits. */
const SUM = 8;
/** The length of a deleted reply. */
const DELETED = -1;

/**
 * Writes replies as the columns of a pack.
 *
 * The keys are a checksum and a JSON text: the checksum of the data, then for each run of replies of one actor a list
 * of the actor and of the request, expiry and length of each. The data are the texts of the replies, without separators.
 */
export function packColumns(replies: readonly PackedReply[]): PackColumns {
  const runs: (string | number)[][] = [];
  let run: (string | number)[] = [];
  let text = '';
  for (const { actor, request, expires, data = '' } of replies) {
    if (run[0] !== actor) {
      run = [actor];
      runs.push(run);
    }
    run.push(request, expires, data === '' ? DELETED : data.length);
    text += data;
  }
  const body = bytesColumn(text);
  return { keys: summed(toText([sumOf(body), ...runs])), data: body };
}

/** @returns undefined if neither copy of the keys is as it was written. */
export function readPack([n, keys, data, copy]: SqlRow): ReadPack | undefined {
  const what = 'a pack of replies';
  const [first, body, second] = [bytes(keys, what), bytes(data, what), bytes(copy, what)];
  const index = keysIn(first) ?? keysIn(second);
  if (!index) return undefined;
  const [sum, ...runs] = index;
  const intact = sumOf(body) === sum;
  const texts = intact ? sqlText(body) : undefined;
  const replies: PackedReply[] = [];
  let at = 0;
  for (const run of runs) {
    if (!Array.isArray(run)) return undefined;
    const [actor, ...fields] = run;
    for (let field = 0; field < fields.length; field += 3) {
      const [request, expires, length] = fields.slice(field, field + 3);
      if (
        typeof actor !== 'string' ||
        typeof request !== 'string' ||
        typeof expires !== 'number' ||
        typeof length !== 'number'
      )
        return undefined;
      const end = at + Math.max(0, length);
      replies.push({ actor, request, expires, data: length === DELETED ? '' : texts?.slice(at, end) });
      at = end;
    }
  }
  return {
    n: number(n, what),
    bytes: first.length + body.length + second.length,
    replies,
    sound: intact && Buffer.compare(first, second) === 0,
  };
}

function keysIn(column: Uint8Array): readonly JsonValue[] | undefined {
  const text = column.subarray(SUM);
  if (sqlText(column.subarray(0, SUM)) !== digits(sumOf(text))) return undefined;
  const index = fromText(sqlText(text), 'a pack of replies');
  return Array.isArray(index) ? index : undefined;
}

function summed(text: string): Uint8Array {
  return bytesColumn(digits(sumOf(bytesColumn(text))) + text);
}

function digits(sum: number): string {
  return sum.toString(16).padStart(SUM, '0');
}

/** zlib restarts with an empty array that has no memory, which is how SQLite's driver represents empty bytes. */
function sumOf(column: Uint8Array): number {
  return column.length === 0 ? 0 : crc32(column);
}

/** Writes ZIP archives of which equal files make equal bytes: names in order, one date, no extra fields (APPNOTE.TXT 6.3.10). */
import { crc32, deflateRawSync } from 'node:zlib';

export interface ZipFile {
  /** Relative, with `/`. */
  readonly path: string;
  readonly bytes: Buffer;
  /** The file may be started. */
  readonly executable: boolean;
}

/** The first date that the format can represent: 1 January 1980. */
const DATE = 0x0021;
const VERSION = 20;
/** Names are UTF-8 (section 4.4.4, bit 11). */
const UTF_8 = 0x0800;
const DEFLATED = 8;
/** The attributes are those of Unix (section 4.4.2). */
const UNIX = 3 << 8;
/** Without the fields of ZIP64. */
const MAX_FILES = 65_535;
const MAX_BYTES = 0xffff_ffff;

/**
 * Makes an archive.
 *
 * @param files at most 65,535, together below 4 GiB
 * @throws {RangeError} for more
 * @example zipArchive([{ path: 'a.txt', bytes: Buffer.from('a'), executable: false }])
 */
export function zipArchive(files: readonly ZipFile[]): Buffer {
  if (files.length > MAX_FILES)
    throw new RangeError(`expected at most ${MAX_FILES} files in an archive, got ${files.length}`);
  const sorted = [...files].sort(({ path: one }, { path: other }) => (one < other ? -1 : 1));
  const parts: Buffer[] = [];
  const directory: Buffer[] = [];
  let at = 0;
  for (const { path, bytes, executable } of sorted) {
    const name = Buffer.from(path);
    const packed = deflateRawSync(bytes, { level: 9 });
    // The fields that both headers of a file have (sections 4.3.7 and 4.3.12).
    const shared = Buffer.alloc(26);
    shared.writeUInt16LE(VERSION, 0);
    shared.writeUInt16LE(UTF_8, 2);
    shared.writeUInt16LE(DEFLATED, 4);
    shared.writeUInt16LE(DATE, 8);
    shared.writeUInt32LE(crc32(bytes), 10);
    shared.writeUInt32LE(packed.length, 14);
    shared.writeUInt32LE(bytes.length, 18);
    shared.writeUInt16LE(name.length, 22);
    parts.push(signature('PK\x03\x04'), shared, name, packed);
    const rest = Buffer.alloc(14);
    rest.writeUInt32LE(((executable ? 0o100755 : 0o100644) << 16) >>> 0, 6);
    rest.writeUInt32LE(at, 10);
    directory.push(signature('PK\x01\x02'), uint16(UNIX | VERSION), shared, rest, name);
    at += 30 + name.length + packed.length;
    if (at > MAX_BYTES) throw new RangeError('expected an archive below 4 GiB');
  }
  const length = directory.reduce((sum, { length: each }) => sum + each, 0);
  const end = Buffer.alloc(18);
  end.writeUInt16LE(sorted.length, 4);
  end.writeUInt16LE(sorted.length, 6);
  end.writeUInt32LE(length, 8);
  end.writeUInt32LE(at, 12);
  return Buffer.concat([...parts, ...directory, signature('PK\x05\x06'), end]);
}

function signature(text: string): Buffer {
  return Buffer.from(text, 'latin1');
}

function uint16(value: number): Buffer {
  const buffer = Buffer.alloc(2);
  buffer.writeUInt16LE(value);
  return buffer;
}

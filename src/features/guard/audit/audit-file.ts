/** Audit records in a file of JSON lines: appends, syncs, rotates, and reads them again. */
import { existsSync } from 'node:fs';
import { type FileHandle, open, readdir, rename } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { type Clock, isoOf } from '../../../core/kernel/clock.ts';
import { makeDirectory } from '../../../core/kernel/files/make-directory.ts';
import { fromText, toText } from '../../../core/store/serialize.ts';
import { type AuditRecord, isAuditRecord } from './audit-record.ts';

/** The destination of records. */
export interface AuditDestination {
  /**
   * Resolves when the record is stored. Records of one batch have the same promise.
   *
   * @param awaited a call waits for the record
   */
  write(record: AuditRecord, awaited: boolean): Promise<void>;
  /** Writes what waits for a batch. */
  flush?(): void;
  close(): Promise<void>;
}

interface AuditFileOptions {
  readonly clock: Clock;
  /** True: a record is stored when the disk has it. False: when the operating system has it. */
  readonly sync: boolean;
  /** Size in bytes at which a new file begins. */
  readonly maxBytes?: number;
}

const MAX_BYTES = 64 * 1024 * 1024;
/** Only its owner may read and write. */
const MODE = 0o600;
const NEW_LINE = 10;

export class AuditFile implements AuditDestination {
  readonly #path: string;
  readonly #options: AuditFileOptions;
  #file: FileHandle | undefined;
  #size = 0;
  #lines: string[] = [];
  #batch: Promise<void> | undefined;
  /** The last batch, without its error. */
  #last: Promise<void> = Promise.resolve();

  constructor(path: string, options: AuditFileOptions) {
    this.#path = resolve(path);
    this.#options = options;
  }

  /** Opens the file, and creates it with its directories. @throws {Error} if that is impossible */
  async open(): Promise<void> {
    makeDirectory(dirname(this.#path), 0o700);
    // Reading is for the last byte.
    const file = await open(this.#path, 'a+', MODE);
    try {
      const { size, mode } = await regular(file, this.#path);
      if ((mode & 0o077) !== 0) await file.chmod(MODE);
      this.#size = size;
      this.#file = file;
      // A process that was killed may have left a part of a line.
      if (size > 0 && (await lastByte(file, size)) !== NEW_LINE) await this.#append(Buffer.from('\n'));
      if (size === 0 && this.#options.sync) await syncDirectory(dirname(this.#path));
    } catch (error) {
      this.#file = undefined;
      await file.close();
      throw error;
    }
  }

  write(record: AuditRecord): Promise<void> {
    this.#lines.push(`${toText(record)}\n`);
    // Everything that arrives while a batch is written forms the next one.
    if (!this.#batch) {
      this.#batch = this.#last.then(() => this.#flush());
      this.#last = this.#batch.catch(() => {});
    }
    return this.#batch;
  }

  async close(): Promise<void> {
    await this.#last;
    const file = this.#file;
    this.#file = undefined;
    if (!file) return;
    try {
      await file.datasync();
    } finally {
      await file.close();
    }
  }

  async #flush(): Promise<void> {
    const bytes = Buffer.from(this.#lines.join(''));
    this.#lines = [];
    this.#batch = undefined;
    const { maxBytes = MAX_BYTES, sync } = this.#options;
    if (this.#size > 0 && this.#size + bytes.length > maxBytes) await this.#rotate();
    if (!this.#file) await this.open();
    await this.#append(bytes);
    if (sync) await this.#file?.datasync();
  }

  /** Appends all bytes, or none as far as the file system allows. */
  async #append(bytes: Buffer): Promise<void> {
    const file = this.#file;
    if (!file) throw new Error(`${this.#path} is not open`);
    try {
      for (let at = 0; at < bytes.length; ) at += (await file.write(bytes, at)).bytesWritten;
      this.#size += bytes.length;
    } catch (error) {
      // A part of a line would end in the middle of the next one.
      await file.truncate(this.#size).catch(() => {});
      throw error;
    }
  }

  async #rotate(): Promise<void> {
    const file = this.#file;
    this.#file = undefined;
    this.#size = 0;
    if (file) {
      try {
        await file.datasync();
      } finally {
        await file.close();
      }
    }
    // Colons are not allowed in names on some file systems.
    const name = `${this.#path}.${isoOf(this.#options.clock.date()).replaceAll(':', '-')}`;
    let free = name;
    for (let n = 1; existsSync(free); n += 1) free = `${name}-${n}`;
    await rename(this.#path, free);
  }
}

/** The records of a file and of its rotated predecessors, the oldest first. Lines that are no records are counted. */
export async function* readAuditFile(
  path: string,
  damaged: (file: string, lines: number) => void,
): AsyncGenerator<AuditRecord> {
  const whole = resolve(path);
  const [directory, name] = [dirname(whole), basename(whole)];
  const rotated = (await readdir(directory)).filter(
    (file) => ROTATED.test(file.slice(name.length)) && file.startsWith(name),
  );
  for (const file of [...rotated.sort(), name]) {
    const handle = await open(join(directory, file), 'r');
    let wrong = 0;
    try {
      for await (const line of handle.readLines({ encoding: 'utf8' })) {
        const record = line === '' ? undefined : parsed(line);
        if (record) yield record;
        else if (line !== '') wrong += 1;
      }
    } finally {
      await handle.close();
    }
    if (wrong > 0) damaged(join(directory, file), wrong);
  }
}

/** The end of a rotated file's name. */
const ROTATED = /^\.\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}Z(-\d+)?$/;

function parsed(line: string): AuditRecord | undefined {
  try {
    const value = fromText(line, 'an audit record');
    return isAuditRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** @throws {Error} for anything but a file: a device or a pipe stores nothing */
async function regular(file: FileHandle, path: string) {
  const found = await file.stat();
  if (!found.isFile()) throw new Error(`audit.to: expected the path of a file, got ${path}, which is none`);
  return found;
}

async function lastByte(file: FileHandle, size: number): Promise<number | undefined> {
  const { buffer } = await file.read(Buffer.alloc(1), 0, 1, size - 1);
  return buffer[0];
}

/** The name of a new file is durable when its directory is. Windows cannot open a directory. */
async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r').catch(() => undefined);
  await directory?.sync().catch(() => {});
  await directory?.close();
}

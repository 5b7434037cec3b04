/** What a disk may hold after the power fails: rebuilt from what the shim saw, with what was not synced lost, torn, or cut short. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';

type Operation =
  | { readonly type: 'write'; readonly file: string; readonly offset: number; readonly bytes: Buffer }
  | { readonly type: 'sync'; readonly file: string }
  | { readonly type: 'remove'; readonly file: string }
  | { readonly type: 'truncate'; readonly file: string; readonly length: number };

const HEAD = 48;
const SECTOR = 512;

/** Everything in its order. */
export function readLog(path: string): Operation[] {
  const log = readFileSync(path);
  const names = new Map<number, string>();
  const operations: Operation[] = [];
  for (let at = 0; at + HEAD <= log.length; ) {
    const [what, number, offset, length] = [0, 8, 16, 24].map((field) => Number(log.readBigInt64LE(at + field)));
    const bytes = log.subarray(at + HEAD, at + HEAD + (what === 1 || what === 2 ? (length ?? 0) : 0));
    at += HEAD + bytes.length;
    const file = names.get(number ?? -1) ?? '';
    if (what === 1) names.set(number ?? -1, basename(bytes.toString()));
    if (what === 2) operations.push({ type: 'write', file, offset: offset ?? 0, bytes });
    if (what === 3) operations.push({ type: 'sync', file });
    if (what === 5) operations.push({ type: 'remove', file });
    if (what === 4) operations.push({ type: 'truncate', file, length: offset ?? 0 });
  }
  return operations;
}

export type Loss = 'all' | 'torn' | 'in order';

/** Bytes with room to grow. */
interface Content {
  bytes: Buffer;
  length: number;
}

/** Builds the files as they may be after a power loss at that operation. @returns what had been acknowledged */
export function image(log: readonly Operation[], cut: number, loss: Loss, random: () => number, into: string): Buffer {
  mkdirSync(into, { recursive: true });
  const files = new Map<string, Content>();
  const unsynced = new Map<string, Operation[]>();
  for (const operation of log.slice(0, cut)) {
    const pending = unsynced.get(operation.file) ?? [];
    unsynced.set(operation.file, pending);
    if (operation.type === 'remove') {
      // A name that is gone stays gone: SQLite syncs the folder where that matters to it.
      files.delete(operation.file);
      pending.length = 0;
    } else if (operation.type !== 'sync') pending.push(operation);
    else for (const done of pending.splice(0)) apply(files, done);
  }
  // Acknowledgements have left the machine: they are never lost.
  for (const done of unsynced.get('acks') ?? []) apply(files, done);
  unsynced.delete('acks');
  for (const pending of unsynced.values()) {
    const until = loss === 'in order' ? Math.floor(random() * (pending.length + 1)) : pending.length;
    for (const operation of pending.slice(0, until)) {
      if (loss === 'in order') apply(files, operation);
      else if (loss === 'torn' && random() < 0.5) apply(files, torn(operation, random));
    }
  }
  for (const [name, { bytes, length }] of files)
    if (/^store\.db(-wal|-journal)?$/.test(name)) writeFileSync(join(into, name), bytes.subarray(0, length));
  const acks = files.get('acks');
  return acks ? acks.bytes.subarray(0, acks.length) : Buffer.alloc(0);
}

/** Some of its first sectors, on half of the occasions. */
function torn(operation: Operation, random: () => number): Operation {
  if (operation.type !== 'write' || random() < 0.5) return operation;
  const sectors = Math.ceil(operation.bytes.length / SECTOR);
  return { ...operation, bytes: operation.bytes.subarray(0, Math.floor(random() * sectors) * SECTOR) };
}

function apply(files: Map<string, Content>, operation: Operation): void {
  const file = files.get(operation.file) ?? { bytes: Buffer.alloc(65_536), length: 0 };
  files.set(operation.file, file);
  if (operation.type === 'truncate') {
    grow(file, operation.length);
    file.bytes.fill(0, operation.length);
    file.length = operation.length;
  }
  if (operation.type !== 'write') return;
  const end = operation.offset + operation.bytes.length;
  grow(file, end);
  operation.bytes.copy(file.bytes, operation.offset);
  file.length = Math.max(file.length, end);
}

function grow(file: Content, to: number): void {
  if (to <= file.bytes.length) return;
  const larger = Buffer.alloc(Math.max(to, 2 * file.bytes.length));
  file.bytes.copy(larger);
  file.bytes = larger;
}

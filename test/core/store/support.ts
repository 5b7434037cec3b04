/** What the store's tests share: a folder, a program that writes, a shim before its disk, and a look into a file without a thread. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { systemClock } from '../../../src/core/kernel/clock.ts';
import type { ActorRow, JournalEvent, StoreHost, Write } from '../../../src/core/store/store.ts';
import { openFile } from '../../../src/features/sqlite/database-file.ts';
import { GroupCommit } from '../../../src/features/sqlite/group-commit.ts';
import type { Db } from '../../../src/features/sqlite/sqlite-database.ts';
import { resolveSqliteOptions, type SqliteOptions } from '../../../src/features/sqlite/sqlite-options.ts';
import type { JobAnswer, ThreadQuery } from '../../../src/features/sqlite/sqlite-protocol.ts';
import { compiled } from '../../harness/compiled.ts';
import { PROOF } from '../../harness/scale.ts';

const here = dirname(fileURLToPath(import.meta.url));

/** The full numbers of the reliability tests instead of what `npm test` has time for. */
export const full = PROOF;

export function folder(): { readonly path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), 'troupe-store-'));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

/** A host that keeps what it was told. */
export function host(clock = systemClock): StoreHost & { readonly lines: string[] } {
  const lines: string[] = [];
  return { clock, lines, log: (level, message) => void lines.push(`${level}: ${message}`) };
}

/** Numbers from 0 to 1 that are the same each time. */
export function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

export function row(id: string, more: Partial<ActorRow> = {}): ActorRow {
  const row = { id, name: 'order', principal: 'ann', status: 'active', created: 1, expires: undefined };
  return { ...row, kind: 'handle', ...more };
}

export function actor(id: string, more: Partial<ActorRow> = {}): Write {
  return { type: 'actor', actor: row(id, more) };
}

export function event(actor: string, stream: string, seq: number, data = `{"n":${seq}}`): Write {
  return { type: 'event', actor, stream, seq, kind: 'said', data };
}

/** The store's file, opened by the code of its thread, in this one. */
export interface Opened {
  readonly db: Db;
  ask(question: ThreadQuery): JobAnswer;
  commit(...writes: Write[]): JobAnswer;
  events(actor: string, stream: string): readonly JournalEvent[];
  /** What is wrong with it, by SQLite's own check. */
  integrity(): string;
}

export function openHere(path: string, given: Partial<SqliteOptions> = {}, report = (_: string): void => {}): Opened {
  const options = resolveSqliteOptions(path, given);
  const opened = openFile({ path, options, readOnly: false, snapshot: false, database: undefined });
  const { db } = opened;
  for (const line of opened.damage) report(line);
  const groups = new GroupCommit(opened, path, options, report);
  const ask = (question: ThreadQuery): JobAnswer => {
    for (;;) {
      const [answer] = groups.run([{ id: 1, question, length: 1 }]);
      if (answer) return answer;
    }
  };
  return {
    db,
    ask,
    commit: (...writes) => ask({ type: 'commit', writes }),
    events(actor, stream) {
      const answer = ask({ type: 'events', actor, stream, after: 0, limit: 1_000_000 });
      if ('found' in answer && answer.found.type === 'events') return answer.found.value;
      throw new Error('message' in answer ? answer.message : 'no events');
    },
    integrity() {
      const rows = db.prepare('SELECT CAST(integrity_check AS BLOB) FROM pragma_integrity_check').all();
      return rows.map(([text]) => String(text)).join('\n');
    },
  };
}

/** The shim, built; or why it cannot be. */
export function shim(into: string): { readonly library: string } | { readonly why: string } {
  if (process.platform !== 'linux') return { why: 'the shim needs Linux' };
  const library = join(into, 'shim.so');
  const built = spawnSync('gcc', ['-O1', '-shared', '-fPIC', '-o', library, join(here, 'shim.c'), '-ldl', '-lpthread']);
  return built.status === 0 ? { library } : { why: 'the shim needs gcc' };
}

/** What the shim does to syncs and to files that grow, from now on. */
export class Disk {
  readonly path: string;

  constructor(folder: string) {
    this.path = join(folder, 'control');
    writeFileSync(this.path, Buffer.alloc(12));
  }

  set({ failing = 0, slowMs = 0, isFull = false }: { failing?: number; slowMs?: number; isFull?: boolean }): void {
    const bytes = Buffer.alloc(12);
    bytes.writeInt32LE(failing, 0);
    bytes.writeInt32LE(slowMs, 4);
    bytes.writeInt32LE(isFull ? 1 : 0, 8);
    const file = openSync(this.path, 'r+');
    writeSync(file, bytes, 0, 12, 0);
    closeSync(file);
  }
}

export interface Program {
  readonly process: ChildProcess;
  /** The next line that it says. */
  line(): Promise<string>;
  say(line: string): void;
  readonly ended: Promise<void>;
  readonly errors: () => string;
}

/** Starts `test/core/store/writer.ts`. */
export function program(args: readonly string[], env: Readonly<Record<string, string>> = {}): Program {
  const child = spawn(process.execPath, [compiled('test/core/store/writer.ts'), ...args], {
    env: { ...process.env, NODE_NO_WARNINGS: '1', ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const lines: string[] = [];
  const hearers: ((line: string) => void)[] = [];
  let rest = '';
  let errors = '';
  let isOver = false;
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    const parts = (rest + text).split('\n');
    rest = parts.pop() ?? '';
    for (const line of parts) {
      const hearer = hearers.shift();
      if (hearer) hearer(line);
      else lines.push(line);
    }
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text;
  });
  const ended = new Promise<void>((resolve) => {
    child.once('exit', () => {
      isOver = true;
      for (const hearer of hearers.splice(0)) hearer(`ended: ${errors}`);
      resolve();
    });
  });
  return {
    process: child,
    ended,
    errors: () => errors,
    say: (line) => void child.stdin.write(`${line}\n`),
    line() {
      const line = lines.shift();
      if (line !== undefined) return Promise.resolve(line);
      if (isOver) return Promise.resolve(`ended: ${errors}`);
      return new Promise((resolve) => hearers.push(resolve));
    },
  };
}

/** The numbers of the batches that were acknowledged. */
export function acknowledged(folder: string): number[] {
  const file = join(folder, 'acks');
  // The last line may be half written: then it was never there.
  return existsSync(file) ? numbersIn(readFileSync(file)) : [];
}

export function numbersIn(acks: Uint8Array): number[] {
  return Buffer.from(acks).toString().split('\n').slice(0, -1).map(Number);
}

/** Batch number `n` of the program: it is there whole, or not at all. */
export function batch(n: number, size: number): Write[] {
  const id = `a${n % 3}`;
  const data = JSON.stringify({ n, filler: 'x'.repeat(size) });
  return [
    actor(id, { status: String(n) }),
    event(id, 's', n, data),
    event(id, 't', n, data),
    { type: 'snapshot', actor: id, version: '1', data: JSON.stringify({ n }) },
    { type: 'reply', actor: id, request: String(n), data, expires: 9e12 },
  ];
}

/** What is wrong with a file of such batches, of which those were acknowledged; undefined: nothing. */
export function faultIn(path: string, acks: readonly number[]): string | undefined {
  let db: Db | undefined;
  try {
    const opened = openHere(path, { maxStreamEvents: 1_000_000, maxActorBytes: 2 ** 40, lockMs: 500 });
    const { events, integrity, ask, commit } = opened;
    db = opened.db;
    const found = integrity();
    if (found !== 'ok') return `integrity: ${found}`;
    const kept = new Set<number>();
    for (const id of ['a0', 'a1', 'a2']) {
      const [s, t] = ['s', 't'].map((stream) => events(id, stream).map(({ seq }) => seq));
      if (String(s) !== String(t)) return `${id}: half a batch: ${s?.at(-1)} and ${t?.at(-1)}`;
      for (const seq of s ?? []) kept.add(seq);
      const answer = ask({ type: 'load', actor: id });
      const last = s?.at(-1);
      if (!('found' in answer) || answer.found.type !== 'load') return `${id} cannot be loaded`;
      const snapshot = answer.found.value?.snapshot?.data;
      if (last !== undefined && snapshot !== JSON.stringify({ n: last }))
        return `${id}: event ${last}, but ${snapshot}`;
    }
    const lost = acks.filter((n) => !kept.has(n));
    if (lost.length > 0) return `lost: ${lost.slice(0, 5).join(', ')} of ${acks.length} acknowledged`;
    const more = commit(...batch(3_000_000, 10));
    return 'found' in more ? undefined : `takes no more: ${more.message}`;
  } catch (error) {
    return `cannot be read: ${String(error)}`;
  } finally {
    db?.close();
  }
}

/**
 * Audit records in the durable store: actors of about 1,000 records, which expire together. Each process that shares a store
 * writes rows of its own.
 */

import type { Clock, Timer } from '../../../core/kernel/clock.ts';
import { randomId } from '../../../core/kernel/random-id.ts';
import type { CommitRider } from '../../../core/store/commit-rider.ts';
import { fromText, toText } from '../../../core/store/serialize.ts';
import type { ActorRow, Store, Write } from '../../../core/store/store.ts';
import type { AuditDestination } from './audit-file.ts';
import { type AuditRecord, isAuditRecord } from './audit-record.ts';

const DAY_MS = 86_400_000;
/** Milliseconds for which a record is stored at least. */
const RETENTION_MS = 30 * DAY_MS;
/** Maximum number of records of one row, and the longest time from its first record to its last. */
const MAX_RECORDS = 1_000;
const MAX_AGE_MS = DAY_MS;
/** Maximum time in milliseconds for which a record waits for a commit that it can join. */
const JOIN_MS = 20;
const NO_WRITES: readonly Write[] = [];
const PREFIX = 'server/audit/';
/** Of the number of a row. */
const DIGITS = 9;
const NAME = 'audit';

/** The part of a store that contains records. */
export type StoredEvents = Pick<Store, 'list' | 'events'>;

/** The row that takes the records of now. */
interface OpenRow {
  readonly row: ActorRow;
  records: number;
  /** The number of its last event. */
  seq: number;
  /** True once a commit with the row is durable: until then, each commit contains it. */
  stored: boolean;
}

/** A promise and the functions that settle it. */
interface Deferred {
  readonly promise: Promise<void>;
  resolve(): void;
  reject(error: unknown): void;
}

export class AuditRows implements AuditDestination, CommitRider {
  readonly #store: Store;
  readonly #clock: Clock;
  /** Names this process in the ids of its rows. */
  readonly #writer = randomId();
  #open: OpenRow | undefined;
  #rows = 0;
  #texts: string[] = [];
  /** Settles with the commit of the texts. */
  #batch: Deferred | undefined;
  /** The batch and the row of the writes that were taken last. */
  #boarded: { readonly batch: Deferred; readonly open: OpenRow } | undefined;
  #timer: Timer | undefined;

  constructor(store: Store, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /**
   * Records join the next commit of the server, which is at the latest the one that gates the response of their request;
   * they cost no transaction of their own. Without one they are committed alone: at the end of this turn if a call waits
   * for one of them, otherwise after {@link JOIN_MS}.
   */
  write(record: AuditRecord, awaited: boolean): Promise<void> {
    this.#texts.push(toText(record));
    this.#batch ??= deferred();
    if (awaited) queueMicrotask(this.#flush);
    else this.#timer ??= this.#clock.after(JOIN_MS, this.#flush);
    return this.#batch.promise;
  }

  flush(): void {
    this.#flush();
  }

  async close(): Promise<void> {
    const { promise } = this.#batch ?? {};
    this.#flush();
    await promise;
  }

  board(): readonly Write[] | undefined {
    const batch = this.#batch;
    if (!batch) return undefined;
    const texts = this.#texts;
    this.#texts = [];
    this.#batch = undefined;
    this.#timer?.cancel();
    this.#timer = undefined;
    const open = this.#openRow();
    const { row } = open;
    open.records += texts.length;
    open.seq += 1;
    this.#boarded = { batch, open };
    // One event for all records: rows cost more than their text.
    const event: Write = {
      type: 'event',
      ...{ actor: row.id, stream: '', seq: open.seq, kind: 'records', data: texts.join('\n') },
    };
    return open.stored ? [event] : [{ type: 'actor', actor: row }, event];
  }

  joined(commit: Promise<unknown>): void {
    const boarded = this.#boarded;
    if (!boarded) return;
    const { batch, open } = boarded;
    commit.then(
      () => {
        open.stored = true;
        batch.resolve();
      },
      (error: unknown) => {
        // Nothing shows which of its records are stored: the next ones go to another row.
        if (this.#open === open) this.#open = undefined;
        batch.reject(error);
      },
    );
  }

  /** The commit takes the records with it as those of others do. */
  readonly #flush = (): void => {
    if (this.#batch) this.#store.commit(NO_WRITES).catch(ignored);
  };

  #openRow(): OpenRow {
    const now = this.#clock.date();
    const open = this.#open;
    if (open && open.records < MAX_RECORDS && now - open.row.created < MAX_AGE_MS) return open;
    this.#rows += 1;
    const row: ActorRow = {
      // Numbered, because rows of one millisecond are listed in the order of their ids.
      id: `${PREFIX}${String(this.#rows).padStart(DIGITS, '0')}-${this.#writer}`,
      kind: 'server',
      name: NAME,
      principal: '',
      status: 'live',
      created: now,
      expires: now + MAX_AGE_MS + RETENTION_MS,
    };
    this.#open = { row, records: 0, seq: 0, stored: false };
    return this.#open;
  }
}

function deferred(): Deferred {
  let settle: Omit<Deferred, 'promise'> = { resolve() {}, reject() {} };
  const promise = new Promise<void>((resolve, reject) => {
    settle = { resolve, reject };
  });
  return { promise, ...settle };
}

/** The batch reports the error. */
function ignored(): void {}

/**
 * Reads the latest records that are selected, the oldest first.
 *
 * @param since milliseconds since 1970: rows without later records are not read
 * @throws {StoreError}
 */
export async function readAuditRows(
  store: StoredEvents,
  since: number,
  limit: number,
  select: (record: AuditRecord) => boolean,
): Promise<readonly AuditRecord[]> {
  const rows: ActorRow[] = [];
  for (;;) {
    const page = await store.list({ kind: 'server', name: NAME, after: rows.at(-1), limit: MAX_RECORDS });
    rows.push(...page);
    if (page.length < MAX_RECORDS) break;
  }
  let found: readonly AuditRecord[] = [];
  for (const { row, until } of latestFirst(rows)) {
    const oldest = found.length < limit ? undefined : found[0];
    if (until < since || (oldest && until < Date.parse(oldest.at))) break;
    const more = (await recordsOf(store, row.id)).filter(select);
    // Records of two processes, or of two rows around a clock that was set back, are in the order of their times.
    found = [...more, ...found].sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0)).slice(-limit);
  }
  return found;
}

/**
 * The rows with the times after which they have no record, the latest first. A process fills one row after the other; those of
 * several processes overlap.
 */
function latestFirst(rows: readonly ActorRow[]): readonly { readonly row: ActorRow; readonly until: number }[] {
  const next = new Map<string, number>();
  return [...rows]
    .reverse()
    .map((row) => {
      const writer = row.id.slice(PREFIX.length + DIGITS);
      const until = next.get(writer) ?? row.created + MAX_AGE_MS;
      next.set(writer, row.created);
      return { row, until };
    })
    .sort((a, b) => b.until - a.until);
}

async function recordsOf(store: StoredEvents, actor: string): Promise<readonly AuditRecord[]> {
  const records: AuditRecord[] = [];
  for (let last = 0; ; ) {
    const events = await store.events(actor, '', last, MAX_RECORDS);
    for (const { data } of events)
      for (const line of data.split('\n')) {
        const record = fromText(line, actor);
        if (isAuditRecord(record)) records.push(record);
      }
    last = events.at(-1)?.seq ?? last;
    if (events.length < MAX_RECORDS) return records;
  }
}

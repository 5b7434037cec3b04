/** Audit records in the durable store: rows of at most 1,000 records, which expire together. */
import { nanoid } from 'nanoid';
import type { Clock } from '../clock.ts';
import { fromText, toText } from '../store/serialize.ts';
import type { ActorRow, Store, Write } from '../store/store.ts';
import type { AuditDestination } from './audit-file.ts';
import { type AuditRecord, isAuditRecord } from './audit-record.ts';

const DAY_MS = 86_400_000;
/** Milliseconds for which a record is kept at least. */
const RETENTION_MS = 30 * DAY_MS;
/** Most records of one row, and the longest time from its first record to its last. */
const MAX_RECORDS = 1_000;
const MAX_AGE_MS = DAY_MS;
const PREFIX = 'server/audit/';
const NAME = 'audit';

/** The row that takes the records of now. */
interface OpenRow {
  readonly row: ActorRow;
  records: number;
  /** True once a commit with the row is durable: until then, each commit contains it. */
  stored: boolean;
}

export class AuditRows implements AuditDestination {
  readonly #store: Store;
  readonly #clock: Clock;
  #open: OpenRow | undefined;
  #rows = 0;
  #texts: string[] = [];
  #batch: Promise<void> | undefined;

  constructor(store: Store, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /**
   * Commits the records of this turn together. The store writes all commits of a turn in one transaction, in order, so
   * that a record is durable no later than a response that is gated in the same turn, and costs no sync of its own.
   */
  write(record: AuditRecord): Promise<void> {
    this.#texts.push(toText(record));
    this.#batch ??= Promise.resolve().then(() => this.#commit());
    return this.#batch;
  }

  close(): Promise<void> {
    // Closing the store makes all committed data durable.
    return this.#batch ?? Promise.resolve();
  }

  async #commit(): Promise<void> {
    const texts = this.#texts;
    this.#texts = [];
    this.#batch = undefined;
    const open = this.#openRow();
    const { row } = open;
    const writes: Write[] = open.stored ? [] : [{ type: 'actor', actor: row }];
    for (const data of texts) {
      open.records += 1;
      writes.push({ type: 'event', actor: row.id, stream: '', seq: open.records, kind: 'record', data });
    }
    try {
      await this.#store.commit(writes);
      open.stored = true;
    } catch (error) {
      // It is unknown which of its records are stored: the next ones go to another row.
      if (this.#open === open) this.#open = undefined;
      throw error;
    }
  }

  #openRow(): OpenRow {
    const now = this.#clock.date();
    const open = this.#open;
    if (open && open.records < MAX_RECORDS && now - open.row.created < MAX_AGE_MS) return open;
    this.#rows += 1;
    const row: ActorRow = {
      // Numbered, because rows of one millisecond are listed in the order of their ids.
      id: `${PREFIX}${String(this.#rows).padStart(9, '0')}-${nanoid()}`,
      kind: 'server',
      name: NAME,
      principal: '',
      status: 'live',
      created: now,
      expires: now + MAX_AGE_MS + RETENTION_MS,
    };
    this.#open = { row, records: 0, stored: false };
    return this.#open;
  }
}

/**
 * Reads the latest records that are selected, the oldest first.
 *
 * @param since milliseconds since 1970: older rows are not read
 * @throws {StoreError}
 */
export async function readAuditRows(
  store: Store,
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
  for (const row of rows.reverse()) {
    if (row.created + MAX_AGE_MS < since || found.length >= limit) break;
    found = [...(await recordsOf(store, row.id)).filter(select), ...found];
  }
  // Records of two processes, or of two rows around a clock that was set back, are in the order of their times.
  return [...found].sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0)).slice(-limit);
}

async function recordsOf(store: Store, actor: string): Promise<readonly AuditRecord[]> {
  const records: AuditRecord[] = [];
  for (let last = 0; ; ) {
    const events = await store.events(actor, '', last, MAX_RECORDS);
    for (const { data } of events) {
      const record = fromText(data, actor);
      if (isAuditRecord(record)) records.push(record);
    }
    last = events.at(-1)?.seq ?? last;
    if (events.length < MAX_RECORDS) return records;
  }
}

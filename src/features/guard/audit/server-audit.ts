/** The audit of a server: its log, its destination, the recording of calls, and the reader of its records. */
import type { Actor, ActorSystem } from '../../../core/kernel/actor.ts';
import { isoOf, within } from '../../../core/kernel/clock.ts';
import type { Mailbox } from '../../../core/messages/mailbox.ts';
import { describe, isObject } from '../../../core/protocol/json.ts';
import { ANONYMOUS } from '../../../core/protocol/principals.ts';
import type { CommitRiders } from '../../../core/store/commit-rider.ts';
import type { StateKeys } from '../../../core/store/state-keys.ts';
import type { Store } from '../../../core/store/store.ts';
import type { Bus } from '../../../core/transports/bus.ts';
import { type AuditDestination, AuditFile, readAuditFile } from './audit-file.ts';
import { spawnAuditLog } from './audit-log.actor.ts';
import type { AuditMail, AuditStored } from './audit-messages.ts';
import type { AuditOptions } from './audit-options.ts';
import {
  AUDIT_EVENTS,
  type AuditQuery,
  type AuditRecord,
  DEFAULT_AUDIT_EVENTS,
  isAuditEvent,
  selects,
} from './audit-record.ts';
import { AuditRows, readAuditRows, type StoredEvents } from './audit-rows.ts';
import { AuditedCalls } from './audited-calls.ts';

interface AuditServices {
  readonly system: ActorSystem;
  /** Its events about sessions and rejected requests are audited. */
  readonly bus: Bus;
  readonly store: Store;
  readonly keys: StateKeys;
  /** Of the store. */
  readonly riders: CommitRiders;
}

/** Milliseconds in which the last records must be written when the server stops. */
const CLOSE_MS = 5_000;
const DEFAULT_LIMIT = 1_000;

export class Audit {
  readonly #options: AuditOptions;
  readonly #services: AuditServices;
  readonly #log: Actor<AuditMail>;
  readonly #destination: AuditDestination;
  /** Records the calls of tools. */
  readonly calls: AuditedCalls;

  /** @throws {TypeError} for the destination `'store'` without a durable store */
  constructor(options: AuditOptions, services: AuditServices) {
    const { system, bus, store, keys } = services;
    if (options.to === 'store' && !store.durable)
      throw new TypeError(
        "createServer: audit.to: 'store' needs a durable store: pass createServer({ store: sqlite(path) }), or serve with --data DIR",
      );
    this.#options = options;
    this.#services = services;
    this.#destination = destinationOf(options, services);
    const events = new Set(options.events ?? DEFAULT_AUDIT_EVENTS).add('lost');
    this.#log = spawnAuditLog({ system, events, destination: this.#destination });
    this.calls = new AuditedCalls({
      ...options,
      log: this.#log.mailbox,
      clock: system.clock,
      keys,
      events,
      required: options.required === true,
      incident: system.incident,
    });
    this.#listen(bus, this.#log.mailbox);
  }

  #listen(bus: Bus, log: Mailbox<AuditMail>): void {
    bus.on('session.opened', ({ client }) => log.send({ type: 'session opened', by: client }));
    bus.on('session.ended', ({ client, reason }) => log.send({ type: 'session ended', by: client, reason }));
    bus.on('authentication.failed', ({ remoteAddress }) =>
      log.send({ type: 'denied', by: { principal: ANONYMOUS }, rule: 'authentication', remoteAddress }),
    );
    bus.on('client.limited', ({ principal, option, remoteAddress }) =>
      log.send({ type: 'limited', by: { principal }, rule: option, remoteAddress }),
    );
    bus.on('call.dead', ({ element, incident }) => log.send({ type: 'dead letter', element, incident }));
  }

  /** Receives the events. */
  get mailbox(): Mailbox<AuditMail> {
    return this.#log.mailbox;
  }

  /** Opens the file. @throws {Error} if it cannot be opened: a server that cannot keep its audit does not start */
  async open(): Promise<void> {
    if (this.#destination instanceof AuditFile) await this.#destination.open();
  }

  /** Writes everything that is counted or waits, then closes the destination. */
  async close(reason: string): Promise<void> {
    const { clock, incident } = this.#services.system;
    this.#log.mailbox.send({ type: 'stopped', reason });
    const flushed = new Promise<void>((resolve) => {
      const stored: Mailbox<AuditStored> = { address: 'server', send: () => resolve() };
      this.#log.mailbox.send({ type: 'flush', stored });
    });
    await within(flushed, clock, CLOSE_MS, () => new Error('late')).catch(() => {});
    await this.#destination.close().catch((error: unknown) => void incident('closing the audit log', error));
  }

  /**
   * Reads the latest records that a query selects, the oldest first.
   *
   * @throws {TypeError | RangeError} for an invalid query, or if a function receives the records
   */
  read(query: AuditQuery): Promise<readonly AuditRecord[]> {
    const { to } = this.#options;
    if (typeof to === 'function')
      throw new TypeError('server.audit: the function in the option audit.to receives the records; read them there');
    this.#destination.flush?.();
    return to === 'store' ? readStoredAudit(this.#services.store, query) : readFileAudit(to, query);
  }
}

/** Reads records from a store. @throws {TypeError | RangeError | StoreError} */
export async function readStoredAudit(store: StoredEvents, query: AuditQuery): Promise<readonly AuditRecord[]> {
  const { since, limit, select } = selectionOf(query);
  return readAuditRows(store, since, limit, select);
}

/** Reads records from a file and its rotated predecessors. @param damaged receives the number of lines that are no records */
export async function readFileAudit(
  path: string,
  query: AuditQuery,
  damaged: (file: string, lines: number) => void = () => {},
): Promise<readonly AuditRecord[]> {
  const { limit, select } = selectionOf(query);
  const found: AuditRecord[] = [];
  for await (const record of readAuditFile(path, damaged)) {
    if (!select(record)) continue;
    found.push(record);
    if (found.length >= 2 * limit) found.splice(0, found.length - limit);
  }
  return found.slice(-limit);
}

const QUERY: ReadonlySet<string> = new Set<keyof AuditQuery>(['since', 'principal', 'element', 'event', 'limit']);

/** @throws {TypeError | RangeError} for an invalid query */
function selectionOf(query: AuditQuery) {
  checkQuery(query);
  const { limit = DEFAULT_LIMIT } = query;
  if (!Number.isSafeInteger(limit) || limit < 1)
    throw new RangeError(`server.audit: limit: expected a whole number of at least 1, got ${describe(limit)}`);
  const since = timeOf(query.since);
  const text = since === Number.NEGATIVE_INFINITY ? '' : isoOf(since);
  return { since, limit, select: selects(query, text) };
}

/** A misspelled member would select every record. @throws {TypeError} */
function checkQuery(query: unknown): void {
  if (!isObject(query))
    throw new TypeError(`server.audit: expected a query such as { element: 'refund' }, got ${describe(query)}`);
  for (const name of Object.keys(query))
    if (!QUERY.has(name))
      throw new TypeError(`server.audit: ${name}: no such member; there are ${[...QUERY].join(', ')}`);
  const { event } = query;
  if (event !== undefined && !isAuditEvent(event))
    throw new TypeError(`server.audit: event: expected one of ${AUDIT_EVENTS.join(', ')}, got ${describe(event)}`);
}

/** @returns milliseconds since 1970 */
function timeOf(since: AuditQuery['since']): number {
  if (since === undefined) return Number.NEGATIVE_INFINITY;
  const time = typeof since === 'string' ? Date.parse(since) : Number(since);
  // The range of dates (ECMA-262 section 21.4.1.1).
  if (Math.abs(time) <= 8.64e15) return time;
  throw new RangeError(
    `server.audit: since: expected a Date, milliseconds since 1970, or text such as "2026-11-22T10:00Z", got ${describe(since)}`,
  );
}

function destinationOf({ to, required }: AuditOptions, { system, store, riders }: AuditServices): AuditDestination {
  if (typeof to === 'function')
    return {
      // A function that throws must reject, too.
      write: async (record) => void (await to(record)),
      close: () => Promise.resolve(),
    };
  if (to === 'store') {
    const rows = new AuditRows(store, system.clock);
    riders.rider = rows;
    return rows;
  }
  return new AuditFile(to, { clock: system.clock, sync: required === true });
}

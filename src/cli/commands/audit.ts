/** `troupe audit [FILE]`: prints the records of an audit log from its file, or from the durable state of a server or cluster. */
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type Clock, isoOf } from '../../core/kernel/clock.ts';
import { messageOf } from '../../core/protocol/json.ts';
import { visibleJson, visibleLine } from '../../core/protocol/visible-text.ts';
import { type Store, StoreError } from '../../core/store/store.ts';
import {
  AUDIT_EVENTS,
  type AuditEvent,
  type AuditQuery,
  type AuditRecord,
  isAuditEvent,
} from '../../features/guard/audit/audit-record.ts';
import { readFileAudit, readStoredAudit } from '../../features/guard/audit/server-audit.ts';
import type { PostgresAddress } from '../../features/postgres/postgres-address.ts';
import type { PostgresSnapshot } from '../../features/postgres/postgres-snapshot.ts';
import { absolutePath, type CommandIo, type ExitCode } from '../command-io.ts';
import { readOptions, wholeNumber } from '../command-options.ts';
import { databaseAddress } from '../serving/served-store.ts';
import { STORE_HELP, STORE_OPTIONS, type StoreOptions } from '../serving/store-option.ts';
import { print, say, UsageError } from '../usage.ts';

const OPTIONS = {
  ...STORE_OPTIONS,
  principal: 'NAME',
  element: 'NAME',
  event: 'NAME',
  since: 'TIME',
  limit: 'N',
  json: '',
};

const HELP = `Usage: troupe audit FILE [--principal NAME] [--element NAME] [--event NAME]
                         [--since TIME] [--limit N] [--json]
       troupe audit --data DIR [the same]
       troupe audit --store URL [the same]

Prints the latest records of an audit log, the oldest first: of a file, with its
rotated predecessors, or of durable state. The servers may run: the command
writes nothing to their store, and shows what is there now.

${STORE_HELP}
  --principal NAME       only records of this principal
  --element NAME         only records of this element: refund, or "tool refund"
  --event NAME           only records of this event: call, denied, limited, …
  --since TIME           only records since a date (2026-11-22T10:00Z), or of the
                         last minutes, hours or days (30m, 12h, 7d)
  --limit N              at most N records (1000)
  --json                 print each record as one line of JSON

Exit codes: 0 records, or none that match; 1 there is no record at all; 2 wrong
arguments.
`;

const UNITS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Runs the command. @throws {UsageError} */
export async function main(args: readonly string[], io: CommandIo): Promise<ExitCode> {
  const line = readOptions('audit', args, OPTIONS);
  if (!line) return print(io, HELP);
  const { values, positionals } = line;
  const [file, ...more] = positionals;
  if (more.length > 0) throw new UsageError(`troupe audit: expected one FILE, got ${positionals.join(' ')}`);
  const query: AuditQuery = {
    principal: values.principal,
    element: values.element,
    event: eventOf(values.event),
    since: sinceOf(values.since, io.clock),
    limit: wholeNumber('audit', 'limit', values.limit, 1_000),
  };
  const json = values.json !== undefined;
  try {
    const records = await read(file, values, query, io);
    if (records.length === 0) return await nothing(file, values, io);
    return print(io, records.map((record) => (json ? visibleJson(record) : `${textOf(record)}\n`)).join(''));
  } catch (error) {
    if (error instanceof UsageError) throw error;
    // A server locks the file only while it starts.
    const hint =
      error instanceof StoreError && error.fault === 'locked'
        ? '. If that is a server that is starting, run this command again'
        : '';
    say(`troupe audit: ${visibleLine(messageOf(error))}${hint}`);
    return 1;
  }
}

/** Says why no record is printed. A log without any record is likely to be another file than the one that was meant. */
async function nothing(file: string | undefined, options: StoreOptions, io: CommandIo): Promise<ExitCode> {
  const [any] = await read(file, options, { limit: 1 }, io);
  if (any) {
    say('troupe audit: no record matches the options');
    return 0;
  }
  say(
    file === undefined
      ? "troupe audit: this store has no audit record. A server writes them with createServer({ audit: { to: 'store' } })"
      : `troupe audit: ${visibleLine(file)} has no audit record: expected a file that createServer({ audit: { to: path } }) writes`,
  );
  return 1;
}

/** @throws {UsageError | StoreError} */
async function read(
  file: string | undefined,
  options: StoreOptions,
  query: AuditQuery,
  io: CommandIo,
): Promise<readonly AuditRecord[]> {
  const { data, store } = options;
  if (file !== undefined) {
    if (data !== undefined || store !== undefined)
      throw new UsageError(`troupe audit: expected FILE, --data DIR or --store URL, got FILE and another`);
    const path = absolutePath(io, file);
    if (!existsSync(path)) throw new UsageError(`troupe audit: expected FILE, got ${visibleLine(file)}: no such file`);
    if (statSync(path).isDirectory())
      throw new UsageError(
        `troupe audit: expected FILE, got the directory ${visibleLine(file)}. For durable state, use --data`,
      );
    const damaged = (name: string, lines: number): void =>
      say(
        `troupe audit: ${visibleLine(name)}: skipped ${lines} ${lines === 1 ? 'line' : 'lines'} without an audit record`,
      );
    return readFileAudit(path, query, damaged);
  }
  const address = await databaseAddress('audit', options, io.env);
  if (!address && data === undefined)
    throw new UsageError('troupe audit: expected FILE, --data DIR or --store URL, got none');
  const snapshot = address ? await inDatabase(address) : await inDirectory(data ?? '', io);
  try {
    return await readStoredAudit(snapshot, query);
  } finally {
    await snapshot.close();
  }
}

/** @throws {UsageError | StoreError} */
async function inDirectory(directory: string, io: CommandIo): Promise<Store> {
  const path = join(absolutePath(io, directory), 'troupe.db');
  if (!existsSync(path))
    throw new UsageError(`troupe audit: --data: there is no durable state in ${visibleLine(directory)}`);
  // Loads a database.
  const { sqliteSnapshot } = await import('../../features/sqlite/sqlite.ts');
  const store = sqliteSnapshot(path);
  await store.open({
    clock: io.clock,
    log: (level, message) => level !== 'info' && say(`troupe audit: ${message}`),
  });
  return store;
}

/** @throws {StoreError} */
async function inDatabase(address: PostgresAddress): Promise<PostgresSnapshot> {
  // Loads the driver.
  const { PostgresSnapshot } = await import('../../features/postgres/postgres-snapshot.ts');
  return PostgresSnapshot.open(address);
}

/** @throws {UsageError} */
function eventOf(name: string | undefined): AuditEvent | undefined {
  if (name === undefined || isAuditEvent(name)) return name;
  throw new UsageError(`troupe audit: --event: expected one of ${AUDIT_EVENTS.join(', ')}, got ${visibleLine(name)}`);
}

/** @throws {UsageError} */
function sinceOf(text: string | undefined, clock: Clock): string | undefined {
  if (text === undefined) return undefined;
  const [, amount, unit = ''] = /^(\d{1,6})([mhd])$/.exec(text) ?? [];
  if (amount !== undefined) return isoOf(clock.date() - Number(amount) * (UNITS[unit] ?? 0));
  if (!Number.isNaN(Date.parse(text))) return text;
  throw new UsageError(
    `troupe audit: --since: expected a date, or a time such as 30m, 12h or 7d, got ${visibleLine(text)}`,
  );
}

/** One record as a line for people. Its texts may come from clients. */
function textOf({ at, event, principal = '-', element = '-', ...more }: AuditRecord): string {
  const { outcome, rule, scopesNeeded, errorType, ms, count, question, from, client, remoteAddress, incident } = more;
  const parts = [
    outcome,
    rule,
    scopesNeeded && `needs ${scopesNeeded.join(' ')}`,
    errorType,
    ms !== undefined && `${ms} ms`,
    count !== undefined && `× ${count}`,
    question && `${question} (${from})`,
    incident && `incident ${incident}`,
    client && `by ${client}`,
    remoteAddress && `from ${remoteAddress}`,
  ];
  return visibleLine([at, event, principal, element, ...parts.filter(Boolean)].join('  '));
}

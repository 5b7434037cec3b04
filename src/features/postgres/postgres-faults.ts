/** The meaning of PostgreSQL's errors for the store. No text contains a password, and none contains stored data. */
import { messageOf } from '../../core/protocol/json.ts';
import { StoreError, type StoreFault } from '../../core/store/store.ts';

/**
 * Classes and codes of SQLSTATE with a meaning of their own; every other error is `failed`. PostgreSQL has rolled the
 * transaction back when it reports one.
 */
const FAULTS: Readonly<Record<string, StoreFault>> = {
  // disk_full, configuration_limit_exceeded (such as temp_file_limit)
  '53100': 'full',
  '53400': 'full',
  // out_of_memory, too_many_connections, lock_not_available, deadlock_detected, serialization_failure
  '53200': 'busy',
  '53300': 'busy',
  '55P03': 'busy',
  '40P01': 'busy',
  '40001': 'busy',
};

/**
 * Codes after which the connection is of no use: the database stops, starts, or is a standby. Class 08 is about
 * connections.
 */
const LOST = /^(?:08...|57P0[1-5]|25006|53300)$/;
/** Codes of a wrong name, password or right: waiting does not change them. */
const REFUSED = /^(?:28...|3D000|42501|3F000)$/;

function sqlStateOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'string') return undefined;
  // Node's own codes, such as ECONNREFUSED, are no SQLSTATE.
  return /^[0-9A-Z]{5}$/.test(error.code) ? error.code : undefined;
}

/** duplicate_prepared_statement, and invalid_sql_statement_name: the statements of one connection reach several sessions. */
const POOLED: ReadonlySet<string | undefined> = new Set(['42P05', '26000']);

/** Returns whether the connection ended with this error, or must. */
export function endsConnection(error: unknown): boolean {
  const state = sqlStateOf(error);
  return state === undefined || LOST.test(state);
}

/** Returns whether a further attempt to connect can succeed. */
export function mayConnectLater(error: unknown): boolean {
  if (error instanceof StoreError) return error.fault === 'failed' || error.fault === 'busy';
  return !REFUSED.test(sqlStateOf(error) ?? '');
}

/** Returns the remedy for an error whose message names none. */
function hintFor(state: string | undefined): string {
  if (POOLED.has(state))
    return '. Behind a transaction pooler, name a direct connection, too: postgres(url, { session: directUrl })';
  // insufficient_privilege
  if (state === '42501')
    return '. A role that may not create a schema needs one that it owns: CREATE SCHEMA troupe AUTHORIZATION role';
  return '';
}

/** The store's error for one of the driver. @param what names the action, such as `db/shop: the batch was not written` */
export function postgresError(error: unknown, what: string): StoreError {
  if (error instanceof StoreError) return error;
  const state = sqlStateOf(error);
  // Only the message: the detail of an error of PostgreSQL quotes the row.
  const why = `${what}: ${messageOf(error)}${state === undefined ? '' : ` (${state})`}${hintFor(state)}`;
  return new StoreError(FAULTS[state ?? ''] ?? 'failed', why);
}

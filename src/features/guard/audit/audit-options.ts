/** The option `audit` of `createServer`, and its checks. */
import { checkOptionNames, describe, isObject, type JsonObject, type JsonValue } from '../../../core/protocol/json.ts';
import { AUDIT_EVENTS, type AuditEvent, type AuditRecord, isAuditEvent } from './audit-record.ts';

export interface AuditOptions {
  /**
   * The destination of the records. A function receives each record; a rejected promise counts as a lost record. A path
   * names a file of JSON lines, which only its owner may read; at 64 MiB it is renamed and a new one begins. `'store'`
   * writes to the server's durable store, which deletes records after 30 days; `server.audit` reads them.
   */
  readonly to: 'store' | (string & {}) | ((record: AuditRecord) => unknown);
  /** The events to record. Default: all except `read`, the calls of read-only tools. */
  readonly events?: readonly AuditEvent[] | undefined;
  /**
   * True: a call of a tool that may change something starts only after a record of its start is stored, and fails with
   * -32603 (HTTP 503) if it cannot be. Default false: a record that cannot be stored is counted and logged.
   */
  readonly required?: boolean | undefined;
  /** Adds the arguments of calls to their records, as `redact` returns them. Default: only their digest. */
  readonly include?: readonly 'arguments'[] | undefined;
  /** Returns the part of the arguments that may be recorded. With `include` it must be given. */
  readonly redact?: ((args: JsonObject, tool: string) => JsonValue) | undefined;
}

const OPTIONS: ReadonlySet<string> = new Set<keyof AuditOptions>(['to', 'events', 'required', 'include', 'redact']);

/** @throws {TypeError} if a member is unknown or invalid */
export function checkAuditOptions(options: AuditOptions | undefined): void {
  if (options === undefined) return;
  const wrong = (name: string, expected: string, got: unknown): TypeError =>
    new TypeError(`createServer: audit${name}: expected ${expected}, got ${describe(got)}`);
  if (!isObject(options)) throw wrong('', "an object such as { to: 'audit.jsonl' }", options);
  checkOptionNames('createServer: audit.', options, OPTIONS);
  const { to, events, required, include, redact } = options;
  if (typeof to !== 'function' && (typeof to !== 'string' || to === ''))
    throw wrong('.to', "a function, the path of a file, or 'store'", to);
  if (events !== undefined && !(Array.isArray(events) && events.every(isAuditEvent)))
    throw new TypeError(
      `createServer: audit.events: expected a list of ${AUDIT_EVENTS.join(', ')}, got ${Array.isArray(events) ? events.join(', ') : describe(events)}`,
    );
  if (required !== undefined && typeof required !== 'boolean') throw wrong('.required', 'true or false', required);
  if (include !== undefined && !(Array.isArray(include) && include.every((each) => each === 'arguments')))
    throw wrong('.include', "['arguments']", include);
  if (redact !== undefined && typeof redact !== 'function') throw wrong('.redact', 'a function', redact);
  if (include !== undefined && include.length > 0 && redact === undefined)
    throw new TypeError(
      'createServer: audit.redact: expected a function that returns what may be recorded of the arguments, because audit.include has them; got nothing',
    );
}

/** The option `audit` of `createServer`, and its checks. */
import { describe, isObject, type JsonObject, type JsonValue } from '../../../core/protocol/json.ts';
import * as option from '../../../core/protocol/option-rows.ts';
import { AUDIT_EVENTS, type AuditEvent, type AuditRecord, isAuditEvent } from './audit-record.ts';

declare module '../../../core/server/options.ts' {
  interface ServerOptions {
    /**
     * Records who did what: denials, calls that may change something, sessions, questions, dead letters. Default: no audit.
     * See docs/observe.md, "Audit".
     */
    readonly audit?: AuditOptions | undefined;
  }
}

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

const ROWS: option.Rows<AuditOptions> = {
  to: option.needed(
    option.expected(
      "a function, the path of a file, or 'store'",
      (value) => option.isFunction(value) || option.isFilled(value),
    ),
  ),
  events: (value) =>
    Array.isArray(value) && value.every(isAuditEvent)
      ? undefined
      : `expected a list of ${AUDIT_EVENTS.join(', ')}, got ${Array.isArray(value) ? value.join(', ') : describe(value)}`,
  required: option.flag,
  include: option.expected(
    "['arguments']",
    (value) => Array.isArray(value) && value.every((each) => each === 'arguments'),
  ),
  redact: option.functional,
};
const among = option.group("an object such as { to: 'audit.jsonl' }", ROWS, '.');

/** Finds what is wrong with the option `audit`. */
export function problemOfAudit(audit: unknown): string | undefined {
  const problem = among(audit);
  if (problem !== undefined || !isObject(audit)) return problem;
  const { include, redact } = audit;
  return Array.isArray(include) && include.length > 0 && redact === undefined
    ? '.redact: expected a function that returns what may be recorded of the arguments, because audit.include has them; got nothing'
    : undefined;
}

/** One record of the audit log, and the events that a log can have. */
import { isObject, type JsonValue } from '../../../core/protocol/json.ts';

/** All events of an audit log, and whether a log has them by default. `read` is a call of a read-only tool. */
const EVENTS = {
  denied: true,
  limited: true,
  call: true,
  read: false,
  'session opened': true,
  'session ended': true,
  asked: true,
  answered: true,
  approval: true,
  'dead letter': true,
  control: true,
  started: true,
  stopped: true,
  lost: true,
} as const;

export type AuditEvent = keyof typeof EVENTS;

/** The events of a log, in the order of the documentation. */
export const AUDIT_EVENTS = Object.keys(EVENTS).filter(isAuditEvent);
/** The events of a log without the option `events`. */
export const DEFAULT_AUDIT_EVENTS = AUDIT_EVENTS.filter((event) => EVENTS[event]);

export function isAuditEvent(name: unknown): name is AuditEvent {
  return typeof name === 'string' && Object.hasOwn(EVENTS, name);
}

/** One record. It never has a result or a token, and arguments only if `include` and `redact` put them there. */
export interface AuditRecord {
  /** ISO 8601, in UTC. */
  readonly at: string;
  /** The name of the host, which is the name of a pod. */
  readonly node: string;
  readonly event: AuditEvent;
  readonly principal?: string;
  /** The name and version with which the client introduced itself: unverified, at most 100 characters. */
  readonly client?: string;
  /** A digest of the session's id, which is a secret. */
  readonly session?: string;
  /** The element's kind and name: `tool refund`. */
  readonly element?: string;
  readonly decision?: 'allowed' | 'denied' | 'limited';
  /** The rule that denied, or the option of the limit. */
  readonly rule?: string;
  readonly scopesHad?: readonly string[];
  readonly scopesNeeded?: readonly string[];
  /** `started` for a call whose end has a record of its own; the end of a call, an answer, or a reason. */
  readonly outcome?: string;
  /** `tool_error` for a result with `isError`, otherwise the JSON-RPC code. */
  readonly errorType?: string;
  /** Milliseconds from the start of a call to its end. */
  readonly ms?: number;
  /** Keyed digest of the arguments (HMAC-SHA-256 with the server's keys): equal arguments have equal digests. */
  readonly argumentsDigest?: string;
  /** The arguments as `redact` returned them. */
  readonly arguments?: JsonValue;
  readonly traceId?: string;
  readonly incident?: string;
  readonly remoteAddress?: string;
  /** The number of equal rejections in ten seconds; absent for one. Of `lost`, the number of lost records. */
  readonly count?: number;
  /** Names a call in the records of its start and its end. */
  readonly call?: string;
  /** The method of a question, such as `elicitation/create`. */
  readonly question?: string;
  /** The id of an approval, and the digest of everything that was approved and shown. */
  readonly approval?: string;
  readonly binding?: string;
  /** The person who has decided about an approval, and the way: `client`, `api`, `page`. */
  readonly approver?: string;
  readonly via?: string;
  /** The call of a script: its run and its number, as `run/number`. */
  readonly run?: string;
  /** The source of an answer. */
  readonly from?: 'client' | 'model';
}

/** Selects records. Each member narrows the selection. */
export interface AuditQuery {
  /** The time of the earliest record: a date, milliseconds since 1970, or text that `Date` reads. */
  readonly since?: Date | number | string | undefined;
  readonly principal?: string | undefined;
  /** An element with its kind (`tool refund`) or without (`refund`). */
  readonly element?: string | undefined;
  readonly event?: AuditEvent | undefined;
  /** Maximum number of records; the latest are returned. Default 1,000. */
  readonly limit?: number | undefined;
}

/** Narrows parsed data to a record, as far as a reader depends on it. */
export function isAuditRecord(value: unknown): value is AuditRecord {
  return isObject(value) && typeof value.at === 'string' && isAuditEvent(value.event);
}

/** Returns a function that decides whether a record is selected. @param since ISO 8601; empty for all */
export function selects({ principal, element, event }: AuditQuery, since: string): (record: AuditRecord) => boolean {
  return (record) =>
    record.at >= since &&
    (principal === undefined || record.principal === principal) &&
    (event === undefined || record.event === event) &&
    (element === undefined || record.element === element || record.element?.endsWith(` ${element}`) === true);
}

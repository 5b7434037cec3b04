/** The operator log: one line for each event that the person who runs the server must know about. */
import type { RequestView } from '../messages/request-view.ts';
import { messageOf, stackOf } from '../protocol/json.ts';
import { visibleText } from '../protocol/visible-text.ts';
import { nodeName } from './node-name.ts';
import { sha256 } from './sha256.ts';

/** The severity of a message. */
export type OperatorLogLevel = 'info' | 'warning' | 'error';

/**
 * The subject of a message: `incident` (an error, with its id), `denied` (a rule rejected a request), `client` (a client
 * is slow, or a client of `troupe/client` has a problem), `handle` (what a statechart logged), `program` (a mistake of the author's code), `blocked` (the event loop),
 * `crash` (of the previous process), `audit`, `store`, `cluster` (a node and its cells), `mount` (a mounted server), `transport`, `inspector`, and `command` (what `troupe` did).
 */
export type LogEvent =
  | 'incident'
  | 'denied'
  | 'client'
  | 'handle'
  | 'program'
  | 'blocked'
  | 'crash'
  | 'audit'
  | 'store'
  | 'cluster'
  | 'mount'
  | 'transport'
  | 'inspector'
  | 'command';

/** An error in the log: never its other members, in which libraries keep headers and tokens. */
export interface LoggedError {
  readonly type: string;
  readonly message: string;
  readonly stack: string;
}

/** The machine-readable part of a message. It never has a token, an argument, a result or the id of a session. */
export interface LogFields {
  readonly event: LogEvent;
  /** The name of the host, which is the name of a pod; with the number of the node under `troupe serve --nodes`: `pod-7/2`. */
  readonly node?: string;
  /** The id of an incident, which the client may have received. */
  readonly incident?: string;
  /** The tool or prompt with its kind (`tool refund`); for other requests the method. */
  readonly element?: string;
  readonly principal?: string;
  /** A digest of the session's id, as in the audit. */
  readonly sessionHash?: string;
  /** The span of the request, with a tracing system. */
  readonly traceId?: string;
  readonly spanId?: string;
  readonly err?: LoggedError;
}

/** Receives messages for the operator: one sentence for people, and the same as fields for programs. */
export type OperatorLog = (level: OperatorLogLevel, message: string, fields?: LogFields) => void;

/** The operator log for the parts of the server, which give each message its fields. Never throws. */
export type RuntimeLog = (level: OperatorLogLevel, message: string, fields: LogFields) => void;

/**
 * Makes a log that may throw safe: its failures go to stderr, and the caller continues.
 *
 * @param event of messages that have no fields
 * @param current the request whose code is running, which adds to the fields of a message
 */
export function guardLog(log: OperatorLog, event: LogEvent, current?: () => RequestView | undefined): OperatorLog {
  const node = nodeName();
  return (level, message, fields) => {
    try {
      log(level, message, { event, ...fieldsOf(current?.()), ...fields, node });
    } catch (error) {
      stderrLog('error', `the server's own log threw (${messageOf(error)}) for: ${level}: ${message}`);
    }
  };
}

/** Writes to stderr: stdout may belong to the protocol. */
export const stderrLog: OperatorLog = (level, message) => {
  process.stderr.write(`troupe ${level}: ${printable(message)}\n`);
};

/**
 * A message as a terminal shows it. It may contain what a client or a server has sent: invisible characters are replaced, and further
 * lines are indented, so that none looks like a message of its own.
 */
export function printable(message: string): string {
  return visibleText(message, '  ');
}

/** The fields that a request adds to the messages about it. */
export function fieldsOf(request: RequestView | undefined): Omit<LogFields, 'event'> {
  if (!request) return {};
  const { operation, client, span } = request;
  const [, traceId, spanId] = TRACEPARENT.exec(span?.traceparent ?? '') ?? [];
  return {
    element: elementOf(operation),
    principal: client.principal,
    ...(client.session === undefined ? {} : { sessionHash: sha256(client.session.id) }),
    ...(traceId === undefined || spanId === undefined ? {} : { traceId, spanId }),
  };
}

const TRACEPARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}$/;

/** Longest name, in characters: a client may send any name. */
const MAX_NAME = 100;

/** A URI may contain what belongs to a user, so it is not in the log. */
function elementOf(operation: RequestView['operation']): string {
  if (operation.method === 'tools/call') return `tool ${operation.name.slice(0, MAX_NAME)}`;
  if (operation.method === 'prompts/get') return `prompt ${operation.name.slice(0, MAX_NAME)}`;
  return operation.method;
}

/** An error for the log. Never throws. @param stack replaces the error's own */
export function loggedError(error: unknown): LoggedError {
  return { type: typeOf(error), message: messageOf(error), stack: stackOf(error) };
}

/** The fields of a message about an error. */
export function errorFields(event: LogEvent, error: unknown): LogFields {
  return { event, err: loggedError(error) };
}

function typeOf(error: unknown): string {
  try {
    return error instanceof Error && typeof error.name === 'string' ? error.name : typeof error;
  } catch {
    return 'unknown';
  }
}

/** The `_meta` keys of the specification, and the reader of a modern request's self-description. */
import { ErrorCode, misfit, ProtocolError } from './errors.ts';
import { describe, isObject } from './json.ts';
import { isRequestId } from './jsonrpc.ts';
import { isLegacyRevision, isModernRevision, type ModernRevision, SUPPORTED_REVISIONS } from './revisions.ts';
import { type ClientCapabilities, type Implementation, isLogLevel, LOG_LEVELS, type LogLevel } from './types.ts';

export const META = {
  protocolVersion: 'io.modelcontextprotocol/protocolVersion',
  clientInfo: 'io.modelcontextprotocol/clientInfo',
  clientCapabilities: 'io.modelcontextprotocol/clientCapabilities',
  logLevel: 'io.modelcontextprotocol/logLevel',
  serverInfo: 'io.modelcontextprotocol/serverInfo',
  subscriptionId: 'io.modelcontextprotocol/subscriptionId',
  relatedTask: 'io.modelcontextprotocol/related-task',
  progressToken: 'progressToken',
  /** A lasting name for a call, so that the server does not run a repeat again (docs/http.md, "At most once"). */
  idempotencyKey: 'io.troupe/idempotency-key',
  /** Of the result of a call that a limit rejected: milliseconds until a retry may succeed. */
  retryAfterMs: 'io.troupe/retry-after-ms',
  /** Of the result of a call that a mounted server did not answer: the reason, and whether the call was carried out. */
  upstreamFailure: 'io.troupe/upstream-failure',
  /** Of the result of an operation of an API: the status and other facts of its response. */
  http: 'io.troupe/http',
  /** Of the result of a call that waits for its approval, or was not approved: the approval. */
  approval: 'io.troupe/approval',
  /** Of a call: its client offers the tools of this server under other names. Of a result: the places of names in its text. */
  names: 'io.troupe/names',
} as const;

type Params = Readonly<Record<string, unknown>> | undefined;

/** The description of the client in a modern request, which has no session. */
interface SelfDescription {
  readonly revision: ModernRevision;
  readonly info: Implementation | undefined;
  readonly capabilities: ClientCapabilities;
  readonly logLevel: LogLevel | undefined;
}

/** The `_meta` of a request's params, if it is an object. */
export function metaOf(params: Params): Readonly<Record<string, unknown>> | undefined {
  const meta = params?._meta;
  return isObject(meta) ? meta : undefined;
}

/**
 * True if a message belongs to the modern era: it names its revision in `_meta` (2026-07-28 versioning, "Backward
 * Compatibility").
 */
export function isModern(params: Params): boolean {
  return metaOf(params)?.[META.protocolVersion] !== undefined;
}

/**
 * Reads the self-description of a modern request.
 *
 * @throws {ProtocolError} -32022 for a revision that is not served per request; -32602 for a missing or invalid field
 * @see 2026-07-28 basic/index "Per-request protocol fields"
 */
export function readSelfDescription(params: Params): SelfDescription {
  const meta = metaOf(params) ?? {};
  const requested = meta[META.protocolVersion];
  if (typeof requested !== 'string') throw misfit(`_meta["${META.protocolVersion}"]`, 'a string', requested);
  if (!isModernRevision(requested)) {
    throw new ProtocolError(
      ErrorCode.UnsupportedProtocolVersion,
      isLegacyRevision(requested)
        ? `Revision ${requested} uses sessions. Open one with "initialize", without ${META.protocolVersion} in _meta`
        : `Unsupported protocol version "${requested.slice(0, 40)}"`,
      { supported: SUPPORTED_REVISIONS, requested },
    );
  }
  const capabilities = meta[META.clientCapabilities];
  if (!isObject(capabilities))
    throw misfit(`_meta["${META.clientCapabilities}"]`, 'an object (it may be empty)', capabilities);
  const logLevel = meta[META.logLevel] ?? undefined;
  if (logLevel !== undefined && !isLogLevel(logLevel))
    throw misfit(`_meta["${META.logLevel}"]`, `one of ${LOG_LEVELS.join(', ')}`, logLevel);
  return {
    revision: requested,
    info: readImplementation(meta[META.clientInfo] ?? undefined, `_meta["${META.clientInfo}"]`),
    capabilities,
    logLevel,
  };
}

/** Reads an `Implementation`, which may be absent. @throws {ProtocolError} -32602 if name or version is missing */
export function readImplementation(value: unknown, where: string): Implementation | undefined {
  if (value === undefined || isImplementation(value)) return value;
  const expected = 'an object with string "name" and "version"';
  throw new ProtocolError(ErrorCode.InvalidParams, `${where}: expected ${expected}, got ${describe(value)}`);
}

function isImplementation(value: unknown): value is Implementation {
  return isObject(value) && typeof value.name === 'string' && typeof value.version === 'string';
}

/**
 * The progress token of a request: a string, an integer, or `undefined`. @throws {ProtocolError} -32602 for any other
 * value
 */
export function readProgressToken(params: Params): string | number | undefined {
  const token = metaOf(params)?.[META.progressToken] ?? undefined;
  if (token === undefined || isRequestId(token)) return token;
  throw misfit(`_meta["${META.progressToken}"]`, 'a string or an integer', token);
}

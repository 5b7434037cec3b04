/** The failure of a call to an upstream: what its caller may know, and the answer that the caller gets. */
import { type CarriedOut, ClientError, ErrorResponse, type FailureReason } from '../../client/client-errors.ts';
import { ErrorCode, type ErrorCodeValue, ProtocolError } from '../../core/protocol/errors.ts';
import { isJsonObject, isObject, type JsonObject, type JsonValue } from '../../core/protocol/json.ts';
import { META } from '../../core/protocol/meta.ts';
import type { ClientCapabilities } from '../../core/protocol/types.ts';

/** Failures that may pass without a change of the configuration. */
const TEMPORARY: ReadonlySet<FailureReason> = new Set(['unreachable', 'closed', 'timed out', 'overloaded']);

const WHY: Readonly<Record<FailureReason, string>> = {
  unreachable: 'the server cannot be reached',
  refused: 'the server cannot be started, or rejects the connection',
  'not mcp': 'the server is no MCP server',
  'no common revision': 'the server speaks no revision of MCP that this gateway speaks',
  unauthorized: 'the server demands a sign-in, which is missing or has failed',
  forbidden: 'the server does not permit this call',
  closed: 'the connection to the server ended before the response',
  'timed out': 'the server did not respond in time',
  cancelled: 'the call was cancelled',
  'too long': 'a message of this call is longer than this gateway accepts (the option is maxMessageBytes)',
  malformed: 'the response of the server cannot be read',
  overloaded: 'the server has too many calls',
  'tool error': 'the tool returned an error',
  'error response': 'the server rejected the call',
  'too many rounds': 'the server asked for input too often',
};

/** Codes that describe one hop: the client would take them for an answer of this server. */
const OF_ONE_HOP: ReadonlySet<number> = new Set([
  ErrorCode.HeaderMismatch,
  ErrorCode.MissingRequiredClientCapability,
  ErrorCode.UnsupportedProtocolVersion,
  ErrorCode.UpstreamUnavailable,
]);

/** True for the demand of a capability that the client itself has not declared (2026-07-28 basic, "Error Codes"). */
function isAnswer(
  code: number,
  data: JsonValue | undefined,
  declared: ClientCapabilities | undefined,
): code is ErrorCodeValue {
  if (code !== ErrorCode.MissingRequiredClientCapability || !declared || !isJsonObject(data)) return false;
  return isJsonObject(data.requiredCapabilities) && misses(data.requiredCapabilities, declared);
}

function misses(required: JsonObject, declared: object): boolean {
  return Object.entries(required).some(([name, part]) => {
    const own: unknown = Object.hasOwn(declared, name) ? Reflect.get(declared, name) : undefined;
    return !isObject(own) || (isJsonObject(part) && misses(part, own));
  });
}

/** Codes of JSON-RPC and MCP that each revision has, and those that a server may define. */
function isCode(code: number): code is ErrorCodeValue {
  return Number.isSafeInteger(code) && code !== 0 && !OF_ONE_HOP.has(code);
}

/** A call as its failure describes it. */
interface FailedCall {
  /** The name of the mount. */
  readonly mount: string;
  readonly method: string;
  /** The tool, prompt or resource, as the client knows it. */
  readonly about: string | undefined;
  /** The capabilities that a modern client declares; undefined for others, whose revisions have no error for a missing one. */
  readonly capabilities?: ClientCapabilities | undefined;
}

/**
 * Answers a call that failed upstream.
 *
 * @param error the error of the connection; another one is thrown as it is
 * @returns the result of a tool call, for its model
 * @throws {ProtocolError} the error of the upstream; for other methods than tools/call, -31005 or -32603
 */
export function answerFailure({ mount, method, about, capabilities }: FailedCall, error: unknown): JsonObject {
  if (error instanceof ErrorResponse && (isCode(error.code) || isAnswer(error.code, error.data, capabilities)))
    throw new ProtocolError(error.code, error.text, ownData(error));
  if (!(error instanceof ClientError)) throw error;
  const { reason, retryAfterMs } = error;
  const carriedOut = error instanceof ErrorResponse && OF_ONE_HOP.has(error.code) ? 'no' : error.carriedOut;
  const call = about === undefined ? 'it' : `"${about}"`;
  // The text has no address, no command and no output of the upstream.
  const text = `${mount}: ${whyOf(error)}. ${adviceFor(error, carriedOut, call)}`;
  const data = {
    upstream: mount,
    // The same call may succeed later, and does no harm.
    ...{ reason, carriedOut, retry: carriedOut === 'no' && TEMPORARY.has(reason) },
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  };
  if (method !== 'tools/call')
    throw new ProtocolError(carriedOut === 'no' ? ErrorCode.UpstreamUnavailable : ErrorCode.InternalError, text, data);
  return {
    content: [{ type: 'text', text }],
    isError: true,
    _meta: {
      [META.upstreamFailure]: data,
      ...(retryAfterMs === undefined ? {} : { [META.retryAfterMs]: retryAfterMs }),
    },
  };
}

/** The data of an upstream's error. Of -32603, `upstream` and `carriedOut` are this server's words. */
function ownData({ code, data }: ErrorResponse): JsonValue | undefined {
  const claims = isJsonObject(data) && (data.upstream !== undefined || data.carriedOut !== undefined);
  return code === ErrorCode.InternalError && claims ? undefined : data;
}

function whyOf(error: ClientError): string {
  return error instanceof ErrorResponse ? `${WHY[error.reason]}: ${error.text}` : WHY[error.reason];
}

/** Tells a model whether the call was carried out, and what to do. */
function adviceFor({ reason, retryAfterMs }: ClientError, carriedOut: CarriedOut, call: string): string {
  switch (carriedOut) {
    case 'unknown':
      return `It is not known whether ${call} was carried out. Find that out before you call it again.`;
    case 'yes':
      return reason === 'too long'
        ? `${call} was carried out, but its result is lost. Ask for less.`
        : `${call} was carried out, but its result is lost.`;
    case 'no': {
      const nothing = `${call} was not carried out.`;
      if (retryAfterMs !== undefined) return `${nothing} Try again in ${Math.ceil(retryAfterMs / 1_000)} s.`;
      return TEMPORARY.has(reason)
        ? `${nothing} Try again later.`
        : `${nothing} The operator of this gateway must act.`;
    }
  }
}

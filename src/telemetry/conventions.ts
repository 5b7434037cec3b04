/** The names and attributes of spans and metrics in OpenTelemetry's semantic conventions for MCP. */
import { createHash } from 'node:crypto';
import type { Operation } from '../protocol/operations.ts';
import type { Labels } from './instruments.ts';
import type { Carrier, SeenRequest } from './telemetry.ts';

/** The name of a tool or prompt that does not exist. A client chooses the names that it calls. */
export const UNKNOWN = '_unknown';

const TRANSPORTS: Readonly<Record<string, string>> = { stdio: 'pipe', socket: 'unix', http: 'tcp', 'http+sse': 'tcp' };

/** The name of the span of a request. Its target is a name that exists, and never a URI. */
export function spanNameOf({ element, operation }: SeenRequest): string {
  return element === undefined || element === UNKNOWN ? operation.method : `${operation.method} ${element}`;
}

/** The attributes of the span of a request. */
export function requestAttributes(request: SeenRequest): Record<string, string> {
  const { operation, id, http } = request;
  return {
    ...meteredAttributes(request),
    ...sessionAttributes(request),
    'jsonrpc.request.id': String(id),
    ...('uri' in operation ? { 'mcp.resource.uri': operation.uri } : {}),
    ...(http?.remoteAddress === undefined ? {} : { 'client.address': http.remoteAddress }),
  };
}

/** The attributes of a request that have few values, and so are those of its duration, too. */
export function meteredAttributes(request: SeenRequest): Labels {
  const { element, operation, protocolVersion } = request;
  return {
    ...elementAttributes(operation.method, element),
    'mcp.protocol.version': protocolVersion,
    ...networkAttributes(request),
  };
}

/** @param element the tool or the prompt that the request names */
export function elementAttributes(method: Operation['method'], element: string | undefined): Labels {
  const name = { 'mcp.method.name': method };
  if (element === undefined) return name;
  if (method !== 'tools/call') return { ...name, 'gen_ai.prompt.name': element };
  return { ...name, 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': element };
}

export function networkAttributes({ transport, http }: Pick<SeenRequest, 'transport'> & Partial<SeenRequest>): Labels {
  const network = TRANSPORTS[transport];
  return {
    ...(network === undefined ? {} : { 'network.transport': network }),
    ...(network === 'tcp' ? { 'network.protocol.name': 'http' } : {}),
    ...(http?.version === undefined ? {} : { 'network.protocol.version': http.version }),
  };
}

/** The id of a session is a secret: spans have its digest. */
export function sessionAttributes({ protocolVersion, session }: Pick<Carrier, 'protocolVersion' | 'session'>): Labels {
  const version = { 'mcp.protocol.version': protocolVersion };
  return session === undefined ? version : { ...version, 'mcp.session.id': sessionDigest(session) };
}

function sessionDigest(session: string): string {
  return createHash('sha256').update(session).digest('base64url').slice(0, 22);
}

/** @param error an `error.type`: those that are numbers are codes of JSON-RPC */
export function errorAttributes(error: string | undefined): Labels {
  if (error === undefined) return {};
  return error.startsWith('-') ? { 'error.type': error, 'rpc.response.status_code': error } : { 'error.type': error };
}

/** The names and attributes of spans and metrics in OpenTelemetry's semantic conventions for MCP. */
import type { Operation } from '../../protocol/operations.ts';
import { sha256 } from '../sha256.ts';
import type { Labels } from './instruments.ts';
import type { Carrier, EndedSession, SeenRequest } from './telemetry.ts';

/** The name of a tool or prompt that does not exist. A client chooses the names that it calls. */
export const UNKNOWN = '_unknown';

const TRANSPORTS: Readonly<Record<string, string>> = { stdio: 'pipe', socket: 'unix', http: 'tcp', 'http+sse': 'tcp' };

/** The name of the span of a request. Its target is a name that exists, and never a URI. */
export function spanNameOf({ element, operation }: SeenRequest): string {
  return element === undefined || element === UNKNOWN ? operation.method : `${operation.method} ${element}`;
}

/** The attributes of the span of a request. */
export function requestAttributes(request: SeenRequest): Record<string, string | number> {
  const { operation, id, http, session } = request;
  const attributes: Record<string, string | number> = meteredAttributes(request);
  if (session !== undefined) attributes['mcp.session.id'] = sessionDigest(session);
  attributes['jsonrpc.request.id'] = String(id);
  if ('uri' in operation) attributes['mcp.resource.uri'] = operation.uri;
  if (http?.remoteAddress !== undefined) attributes['client.address'] = http.remoteAddress;
  if (http?.localAddress !== undefined) attributes['server.address'] = http.localAddress;
  if (http?.localPort !== undefined) attributes['server.port'] = http.localPort;
  return attributes;
}

/** The attributes of a request that have few values, and so are those of its duration, too. */
export function meteredAttributes(request: SeenRequest): Record<string, string> {
  const { element, operation, protocolVersion } = request;
  const attributes = elementAttributes(operation.method, element);
  attributes['mcp.protocol.version'] = protocolVersion;
  return addNetwork(attributes, request.transport, request.http?.version);
}

/** @param element the tool or the prompt that the request names */
export function elementAttributes(method: Operation['method'], element: string | undefined): Record<string, string> {
  if (element === undefined) return { 'mcp.method.name': method };
  if (method !== 'tools/call') return { 'mcp.method.name': method, 'gen_ai.prompt.name': element };
  return { 'mcp.method.name': method, 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': element };
}

/** The attributes of the duration of a session. */
export function endedAttributes({ transport, protocolVersion, error }: EndedSession): Labels {
  const attributes = { 'mcp.protocol.version': protocolVersion, ...errorAttributes(error) };
  return addNetwork(attributes, transport, undefined);
}

function addNetwork(
  attributes: Record<string, string>,
  transport: string,
  version: string | undefined,
): Record<string, string> {
  const network = TRANSPORTS[transport];
  if (network !== undefined) attributes['network.transport'] = network;
  if (network === 'tcp') attributes['network.protocol.name'] = 'http';
  if (version !== undefined) attributes['network.protocol.version'] = version;
  return attributes;
}

/** The id of a session is a secret: spans have its digest. */
export function sessionAttributes({ protocolVersion, session }: Pick<Carrier, 'protocolVersion' | 'session'>): Labels {
  const version = { 'mcp.protocol.version': protocolVersion };
  return session === undefined ? version : { ...version, 'mcp.session.id': sessionDigest(session) };
}

function sessionDigest(session: string): string {
  return sha256(session).slice(0, 22);
}

/** @param error an `error.type`: those that are numbers are codes of JSON-RPC */
export function errorAttributes(error: string | undefined): Labels {
  if (error === undefined) return {};
  return error.startsWith('-') ? { 'error.type': error, 'rpc.response.status_code': error } : { 'error.type': error };
}

/**
 * Compares the headers of a modern HTTP request with its body, so that no intermediary routes by a value that differs
 * from what is served: the revision, the method and its name, and the arguments that a tool asks clients to mirror.
 */
import type { RequestHead } from '../messages/connection-events.ts';
import { ErrorCode, ProtocolError } from '../protocol/errors.ts';
import { decodeMirrored, mirrors } from '../protocol/header-values.ts';
import { isObject } from '../protocol/json.ts';
import { METHODS } from '../protocol/methods.ts';
import type { Params } from '../protocol/operations.ts';
import { SUPPORTED_REVISIONS } from '../protocol/revisions.ts';
import type { Tool } from '../protocol/types.ts';

interface Mirrored {
  /** The header's name in lower case, and as the schema spells it. */
  readonly header: string;
  readonly shown: string;
  /** The keys on the path to the parameter. */
  readonly path: readonly string[];
}

/** By tool definition, which never changes. Most tools mirror nothing. */
const known = new WeakMap<Tool, readonly Mirrored[]>();

/**
 * @param revision the revision in the body's `_meta`
 * @throws {ProtocolError} -32020 if `MCP-Protocol-Version` is missing or differs
 * @see 2026-07-28 streamable-http "Protocol Version Header"
 */
export function checkRevisionHeader(head: RequestHead, revision: string): void {
  const header = head.header('mcp-protocol-version');
  if (header !== revision) throw mismatch('MCP-Protocol-Version', header, inBody(revision));
}

/**
 * @throws {ProtocolError} -32022 if `MCP-Protocol-Version` names an unsupported revision
 * @see 2025-11-25 basic/transports "Protocol Version Header"
 */
export function checkKnownRevision(head: RequestHead): void {
  const requested = head.header('mcp-protocol-version');
  if (requested === undefined || SUPPORTED_REVISIONS.some((revision) => revision === requested)) return;
  throw new ProtocolError(
    ErrorCode.UnsupportedProtocolVersion,
    `MCP-Protocol-Version: expected one of ${SUPPORTED_REVISIONS.join(', ')}, got ${quote(requested)}`,
    { supported: SUPPORTED_REVISIONS, requested: requested.slice(0, 100) },
  );
}

/**
 * @throws {ProtocolError} -32020 if `Mcp-Method` or `Mcp-Name` is missing, malformed, or differs from the body
 * @see 2026-07-28 streamable-http "Standard Request Headers", "Server Validation"
 */
export function checkStandardHeaders(head: RequestHead, method: string, params: Params): void {
  const header = head.header('mcp-method');
  if (header !== method) throw mismatch('Mcp-Method', header, inBody(method));
  const row = METHODS.get(method);
  if (row?.kind !== 'request' || !row.named) return;
  const named = params?.[row.named];
  // A body without the name is rejected later, with a better message.
  if (typeof named !== 'string') return;
  const name = head.header('mcp-name');
  // Two headers arrive joined by a comma, and together could equal the value in the body.
  const repeats = name?.includes(',') && head.repeats('mcp-name');
  if (name === undefined || repeats || decodeMirrored(name) !== named) throw mismatch('Mcp-Name', name, inBody(named));
}

/**
 * @throws {ProtocolError} -32020 if a header is missing, malformed, or differs from its argument
 * @see 2026-07-28 streamable-http "Server Behavior for Custom Headers"
 */
export function checkParameterHeaders(head: RequestHead, tool: Tool, args: Readonly<Record<string, unknown>>): void {
  let parameters = known.get(tool);
  if (!parameters) {
    parameters = collect(tool.inputSchema, [], []);
    known.set(tool, parameters);
  }
  for (const { header, shown, path } of parameters) {
    const value = valueAt(args, path);
    const got = head.header(header);
    // A parameter that is absent or null must have no header ("Server Behavior for Custom Headers", the table).
    if (value === undefined || value === null) {
      if (got !== undefined) throw mismatch(shown, got, `no such header, because "${path.join('.')}" has no value`);
      continue;
    }
    // Two headers arrive joined by a comma, and together could equal the argument.
    const unclear = got === undefined || (got.includes(',') && head.repeats(header));
    const decoded = unclear ? undefined : decodeMirrored(got);
    if (decoded === undefined || !mirrors(decoded, value))
      throw mismatch(shown, got, `the value of the argument "${path.join('.')}"`);
  }
}

function collect(schema: unknown, path: readonly string[], found: Mirrored[]): readonly Mirrored[] {
  if (!isObject(schema)) return found;
  const name = schema['x-mcp-header'];
  if (typeof name === 'string')
    found.push({ header: `mcp-param-${name.toLowerCase()}`, shown: `Mcp-Param-${name}`, path });
  if (isObject(schema.properties)) {
    for (const [key, property] of Object.entries(schema.properties)) collect(property, [...path, key], found);
  }
  return found;
}

function valueAt(args: unknown, path: readonly string[]): unknown {
  let value = args;
  for (const key of path) value = isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
  return value;
}

function inBody(expected: string): string {
  return `${quote(expected)}, as in the body`;
}

/** @param expected a value, or what is known of it */
function mismatch(header: string, got: string | undefined, expected: string): ProtocolError {
  const came = got === undefined ? 'the header is missing' : `got ${quote(got)}`;
  return new ProtocolError(ErrorCode.HeaderMismatch, `${header}: expected ${expected}; ${came}`);
}

function quote(text: string): string {
  return `"${text.length > 100 ? `${text.slice(0, 100)}…` : text}"`;
}

/**
 * Compares the headers of a modern HTTP request with its body, so that no intermediary routes by a value that differs
 * from what is served: the revision, the method and its name, and the arguments that a tool asks clients to mirror.
 */
import type { RequestHead } from '../messages/connection-events.ts';
import { ErrorCode, ProtocolError } from '../protocol/errors.ts';
import { isObject } from '../protocol/json.ts';
import type { Params } from '../protocol/operations.ts';
import { SUPPORTED_REVISIONS } from '../protocol/revisions.ts';
import type { Tool } from '../protocol/types.ts';

const PREFIX = '=?base64?';
const SUFFIX = '?=';

/**
 * Characters allowed in an HTTP field value: visible ASCII, space and tab (2026-07-28 streamable-http, "Value
 * Encoding").
 */
const FIELD_VALUE = /^[\t -~]*$/;
/**
 * `42` and `42.0`. Leading zeros, a plus sign, exponents and hex are not decimal integers, and parsers differ on them.
 */
const DECIMAL_INTEGER = /^-?(?:0|[1-9][0-9]*)(?:\.0+)?$/;

/** A byte order mark is part of the value; without `ignoreBOM` the decoder would drop it. */
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

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
export function checkStandardHeaders(
  head: RequestHead,
  method: string,
  named: string | undefined,
  params: Params,
): void {
  const header = head.header('mcp-method');
  if (header !== method) throw mismatch('Mcp-Method', header, inBody(method));
  const expected = named === undefined ? undefined : params?.[named];
  // A body without the name is rejected later, with a better message.
  if (typeof expected !== 'string') return;
  const name = head.header('mcp-name');
  // Two headers arrive joined by a comma, and together could equal the value in the body.
  const repeats = name?.includes(',') && head.repeats('mcp-name');
  if (name === undefined || repeats || decodeMirrored(name) !== expected)
    throw mismatch('Mcp-Name', name, inBody(expected));
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

/**
 * Decodes the value of an `Mcp-Name` or `Mcp-Param-*` header. A value wrapped in `=?base64?…?=` (exactly, in lower
 * case) is decoded; any other is returned unchanged. White space around the value is not part of it (RFC 9110 section
 * 5.5).
 *
 * @returns `undefined` for invalid characters, for Base64 that is not strict (RFC 4648: standard alphabet, padding,
 * zero pad bits), and for bytes that are not UTF-8
 * @example decodeMirrored('=?base64?SGVsbG8=?=') === 'Hello'
 * @see 2026-07-28 streamable-http "Value Encoding"
 */
export function decodeMirrored(header: string): string | undefined {
  if (!FIELD_VALUE.test(header)) return undefined;
  const value = header.trim();
  // In `=?base64?=` the two markers share a character, so the value is plain, not wrapped.
  if (!value.startsWith(PREFIX) || !value.endsWith(SUFFIX) || value.length < PREFIX.length + SUFFIX.length)
    return value;
  return decodeBase64(value.slice(PREFIX.length, -SUFFIX.length));
}

/**
 * True if a decoded header equals a value of the body. Strings must match exactly, booleans as `true` and `false` in
 * lower case, integers by number, so `42.0` equals 42. An integer beyond 2^53-1 never matches, because two texts could
 * mean it.
 *
 * @param decoded the result of `decodeMirrored`
 * @see 2026-07-28 streamable-http "Server Validation", "Schema Extension"
 */
export function mirrors(decoded: string, value: unknown): boolean {
  switch (typeof value) {
    case 'string':
      return decoded === value;
    case 'boolean':
      return decoded === String(value);
    case 'number':
      // Mirrored parameters cannot be fractions. Accept the header, so that the schema check explains the error to the
      // model.
      if (!Number.isInteger(value)) return decoded === String(value);
      return Number.isSafeInteger(value) && DECIMAL_INTEGER.test(decoded) && Number(decoded) === value;
    default:
      return false;
  }
}

function decodeBase64(text: string): string | undefined {
  try {
    const binary = atob(text);
    // `atob` accepts white space, missing padding and stray bits. Strict Base64 is the text to which its bytes encode.
    if (btoa(binary) !== text) return undefined;
    const bytes = new Uint8Array(binary.length);
    for (let at = 0; at < bytes.length; at += 1) bytes[at] = binary.charCodeAt(at);
    return utf8.decode(bytes);
  } catch {
    return undefined;
  }
}

/**
 * Compares the `Mcp-Param-*` headers of a tool call with its arguments, if the tool's schema asks clients to mirror
 * some of them.
 */
import type { Exchange } from '../messages/connection-events.ts';
import { ErrorCode, ProtocolError } from '../protocol/errors.ts';
import { decodeMirrored, mirrors } from '../protocol/header-values.ts';
import { isObject } from '../protocol/json.ts';
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
 * @throws {ProtocolError} -32020 if a header is missing, malformed, or differs from its argument
 * @see 2026-07-28 streamable-http "Server Behavior for Custom Headers"
 */
export function checkParameterHeaders(exchange: Exchange, tool: Tool, args: Readonly<Record<string, unknown>>): void {
  let parameters = known.get(tool);
  if (!parameters) {
    parameters = collect(tool.inputSchema, [], []);
    known.set(tool, parameters);
  }
  for (const { header, shown, path } of parameters) {
    const value = valueAt(args, path);
    const got = exchange.incoming.header(header);
    // A parameter that is absent or null must have no header ("Server Behavior for Custom Headers", the table).
    if (value === undefined || value === null) {
      if (got !== undefined) throw mismatch(shown, `no such header, because "${path.join('.')}" has no value`, got);
      continue;
    }
    // Two headers arrive joined by a comma, and together could equal the argument.
    const unclear = got === undefined || (got.includes(',') && exchange.incoming.repeats(header));
    const decoded = unclear ? undefined : decodeMirrored(got);
    if (decoded === undefined || !mirrors(decoded, value))
      throw mismatch(shown, `the value of the argument "${path.join('.')}"`, got);
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

function mismatch(header: string, expected: string, got: string | undefined): ProtocolError {
  const came = got === undefined ? 'the header is missing' : `got "${got.slice(0, 100)}"`;
  return new ProtocolError(ErrorCode.HeaderMismatch, `${header}: expected ${expected}; ${came}`);
}

/**
 * Arguments that a tool's schema asks clients to repeat in HTTP headers (`x-mcp-header`): the check of the definition,
 * and the headers of a call.
 */
import { describe, isObject, type JsonObject } from '../core/protocol/json.ts';

/** A parameter that becomes the header `Mcp-Param-{name}`. */
export interface MirroredParameter {
  readonly name: string;
  readonly path: readonly string[];
}

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const PRIMITIVE: ReadonlySet<unknown> = new Set(['string', 'integer', 'boolean']);

/**
 * Collects the mirrored parameters of a tool.
 *
 * @returns the reason as text if the definition is invalid: the tool must then not be offered
 * @see 2026-07-28 streamable-http "Schema Extension"
 */
export function mirroredParameters(schema: JsonObject): readonly MirroredParameter[] | string {
  const found: MirroredParameter[] = [];
  const problem = collect(schema, [], true, found);
  if (problem !== undefined) return problem;
  const names = new Set<string>();
  for (const { name } of found) {
    const lower = name.toLowerCase();
    if (names.has(lower)) return `x-mcp-header "${name}" occurs twice`;
    names.add(lower);
  }
  return found;
}

/** @param reachable false below any keyword but `properties` */
function collect(
  schema: unknown,
  path: readonly string[],
  reachable: boolean,
  found: MirroredParameter[],
): string | undefined {
  if (Array.isArray(schema)) {
    for (const each of schema) {
      const problem = collect(each, path, false, found);
      if (problem !== undefined) return problem;
    }
    return undefined;
  }
  if (!isObject(schema)) return undefined;
  if ('x-mcp-header' in schema) {
    const name = schema['x-mcp-header'];
    const where = path.length === 0 ? 'the root' : `"${path.join('../entries/client')}"`;
    if (typeof name !== 'string' || !TOKEN.test(name))
      return `x-mcp-header of ${where}: expected an HTTP field name, got ${describe(name)}`;
    if (!reachable || path.length === 0)
      return `x-mcp-header of ${where}: the parameter is not reachable by "properties" alone`;
    if (!PRIMITIVE.has(schema.type))
      return `x-mcp-header of ${where}: expected the type string, integer or boolean, got ${describe(schema.type)}`;
    found.push({ name, path });
  }
  for (const [keyword, value] of Object.entries(schema)) {
    // Values of these are data, not schemas.
    if (keyword === 'const' || keyword === 'enum' || keyword === 'default' || keyword === 'examples') continue;
    if (keyword === 'properties' && isObject(value)) {
      for (const [key, property] of Object.entries(value)) {
        const problem = collect(property, [...path, key], reachable, found);
        if (problem !== undefined) return problem;
      }
      continue;
    }
    const problem = collect(value, path, false, found);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

/** The headers of one call. A parameter without a value has no header. */
export function parameterHeaders(
  parameters: readonly MirroredParameter[],
  args: JsonObject,
): Readonly<Record<string, string>> | undefined {
  if (parameters.length === 0) return undefined;
  const headers: Record<string, string> = {};
  for (const { name, path } of parameters) {
    let value: unknown = args;
    for (const key of path) value = isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
    if (typeof value === 'string') headers[`mcp-param-${name}`] = encodeMirrored(value);
    else if (typeof value === 'boolean' || (typeof value === 'number' && Number.isSafeInteger(value)))
      headers[`mcp-param-${name}`] = String(value);
  }
  return headers;
}

const PLAIN = /^[!-~](?:[\t -~]*[!-~])?$/;

/**
 * A value as the text of a header: plain where that is safe, else wrapped Base64 (2026-07-28 streamable-http, "Value
 * Encoding").
 *
 * @example encodeMirrored(' padded ') === '=?base64?IHBhZGRlZCA=?='
 */
export function encodeMirrored(value: string): string {
  const plain = (value === '' || PLAIN.test(value)) && !(value.startsWith('=?base64?') && value.endsWith('?='));
  return plain ? value : `=?base64?${Buffer.from(value, 'utf8').toString('base64')}?=`;
}

/**
 * Arguments that a tool's schema asks clients to repeat in HTTP headers (`x-mcp-header`): the check of the definition,
 * and the headers of a call.
 */
import { describe, isObject, type JsonObject, messageOf } from '../core/protocol/json.ts';

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
  try {
    const found = [...parametersIn(schema, [], true)];
    const names = found.map(({ name }) => name.toLowerCase());
    const twice = found.find((_, at) => names.indexOf(names[at] ?? '') !== at);
    return twice ? `x-mcp-header "${twice.name}" occurs twice` : found;
  } catch (error) {
    return messageOf(error);
  }
}

/**
 * @param reachable false below any keyword but `properties`
 * @throws {TypeError} for a definition that is invalid
 */
function* parametersIn(schema: unknown, path: readonly string[], reachable: boolean): Generator<MirroredParameter> {
  if (Array.isArray(schema)) for (const each of schema) yield* parametersIn(each, path, false);
  if (!isObject(schema) || Array.isArray(schema)) return;
  if ('x-mcp-header' in schema) {
    const name = schema['x-mcp-header'];
    const where = `x-mcp-header of ${path.length === 0 ? 'the root' : `"${path.join('.')}"`}`;
    if (typeof name !== 'string' || !TOKEN.test(name))
      throw new TypeError(`${where}: expected an HTTP field name, got ${describe(name)}`);
    if (!reachable || path.length === 0)
      throw new TypeError(`${where}: the parameter is not reachable by "properties" alone`);
    if (!PRIMITIVE.has(schema.type))
      throw new TypeError(`${where}: expected the type string, integer or boolean, got ${describe(schema.type)}`);
    yield { name, path };
  }
  for (const [keyword, value] of Object.entries(schema)) {
    // Values of these are data, not schemas.
    if (keyword === 'const' || keyword === 'enum' || keyword === 'default' || keyword === 'examples') continue;
    if (keyword === 'properties' && isObject(value))
      for (const [key, property] of Object.entries(value)) yield* parametersIn(property, [...path, key], reachable);
    else yield* parametersIn(value, path, false);
  }
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

/** The rules of `x-mcp-header`: which parameters a client may be told to mirror into HTTP headers. */

import { literal, quote } from './excerpts.ts';
import { SchemaError } from './schema-error.ts';
import type { SchemaTree } from './walk.ts';

const KEYWORD = 'x-mcp-header';

/** `1*tchar` of RFC 9110 section 5.6.2. */
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

const TYPES: ReadonlySet<unknown> = new Set(['string', 'integer', 'boolean']);

/**
 * Checks every `x-mcp-header` (MCP 2026-07-28 basic/transports/streamable-http, "Custom Headers from Tool Parameters").
 * Clients drop a tool that breaks one of these rules without a word to its server: so the server refuses it first.
 *
 * @throws SchemaError if one is no header name, comes twice, stands on a parameter of another type than string, integer or
 *   boolean, or where anything but `properties` leads to it
 */
export function checkHeaders({ nodes }: SchemaTree, where: string): void {
  const seen = new Map<string, string>();
  for (const { schema, at, named } of nodes.values()) {
    if (typeof schema === 'boolean' || !Object.hasOwn(schema, KEYWORD)) continue;
    const name = schema[KEYWORD];
    if (typeof name !== 'string' || !TOKEN.test(name))
      throw new SchemaError(
        where,
        at,
        `"${KEYWORD}" is ${literal(name)}`,
        "it must be a header name of letters, digits and !#$%&'*+-.^_`|~",
      );
    if (!named || at === '#')
      throw new SchemaError(
        where,
        at,
        `"${KEYWORD}" stands where not only "properties" lead from the root`,
        'move it to a parameter, outside "items", "$defs", "anyOf" and the like',
      );
    if (!TYPES.has(schema.type))
      throw new SchemaError(
        where,
        at,
        `"${KEYWORD}" stands on a parameter of type ${literal(schema.type)}`,
        'the type must be "string", "integer" or "boolean"',
      );
    const other = seen.get(name.toLowerCase());
    if (other !== undefined)
      throw new SchemaError(
        where,
        at,
        `"${KEYWORD}" ${quote(name)} is also at ${other}`,
        'names must differ by more than case',
      );
    seen.set(name.toLowerCase(), at);
  }
}

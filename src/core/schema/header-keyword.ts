/** The rules of `x-mcp-header`: which parameters clients may be asked to mirror in HTTP headers. */

import { literal, quote } from './excerpts.ts';
import { SchemaError } from './schema-error.ts';
import type { SchemaTree } from './walk.ts';

const KEYWORD = 'x-mcp-header';

/** `1*tchar` of RFC 9110 section 5.6.2. */
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

const TYPES: ReadonlySet<unknown> = new Set(['string', 'integer', 'boolean']);

/**
 * Checks every `x-mcp-header` (MCP 2026-07-28 basic/transports/streamable-http, "Custom Headers from Tool Parameters").
 * Clients silently drop a tool that breaks one of these rules, so the server rejects it at registration.
 * @throws SchemaError if the value is not a header name, appears twice, belongs to a parameter whose type is not
 *   string, integer or boolean, or is reached by any keyword except `properties`
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
        `"${KEYWORD}" must be on a parameter to which only "properties" lead`,
        'move it to a parameter outside of "items", "$defs", "anyOf" and similar keywords',
      );
    if (!TYPES.has(schema.type))
      throw new SchemaError(
        where,
        at,
        `"${KEYWORD}" belongs to a parameter of type ${literal(schema.type)}`,
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

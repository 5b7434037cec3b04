/** The guard at registration: takes an author's JSON Schema, and lets it pass as our own checked copy or refuses it with a reason. */
import { isObject, type JsonObject } from '../protocol/json.ts';
import { literal } from './excerpts.ts';
import { checkHeaders } from './header-keyword.ts';
import { SCHEMA_DIALECTS, type SchemaDialect } from './keywords.ts';
import { linkReferences } from './refs.ts';
import { copySchema } from './schema-copy.ts';
import { SchemaError } from './schema-error.ts';
import { type SchemaTree, walkSchema } from './walk.ts';

/** A schema that may be shown to clients and compiled. */
export interface GuardedSchema {
  /** Our own deeply frozen copy. */
  readonly json: JsonObject;
  readonly dialect: SchemaDialect;
}

const COMPOSITIONS = ['$ref', 'anyOf', 'allOf', 'oneOf'];

/**
 * Checks a JSON Schema as MCP 2026-07-28 basic, "JSON Schema Usage" asks: a known dialect, valid in it, no reference out of the
 * document, bounded in depth (32), number of subschemas (5,000) and size (256 KiB).
 *
 * @param source what the author or the author's library gave
 * @param where begins every error, such as `tool "add": input`
 * @param role `input`: the root must describe an object and `x-mcp-header` is checked; `output`: any root
 * @throws SchemaError that says what is wrong, where, and how to put it right
 * @example guardSchema({ type: 'object', properties: { a: { type: 'number' } } }, 'tool "add": input', 'input').json
 */
export function guardSchema(source: unknown, where: string, role: 'input' | 'output'): GuardedSchema {
  if (!isObject(source))
    throw new SchemaError(
      where,
      '#',
      `the schema is ${literal(source)}`,
      'give a schema of zod, arktype or valibot, or a JSON Schema object',
    );
  const copy = copySchema(source, where);
  const json = role === 'input' ? describingObject(copy, where) : copy;
  const dialect = dialectOf(json, where);
  const tree = walkSchema(json, dialect, where);
  linkReferences(tree, where);
  if (role === 'input') checkHeaders(tree, where);
  return { json, dialect };
}

/** All subschemas of a schema that the guard let pass, with their references joined. */
export function schemaTree({ json, dialect }: GuardedSchema): SchemaTree {
  const tree = walkSchema(json, dialect, 'schema');
  linkReferences(tree, 'schema');
  return tree;
}

function dialectOf({ $schema }: JsonObject, where: string): SchemaDialect {
  if ($schema === undefined) return 'draft-2020-12';
  const dialect = typeof $schema === 'string' ? SCHEMA_DIALECTS.get($schema.replace(/#$/, '')) : undefined;
  if (dialect !== undefined) return dialect;
  const known = [...SCHEMA_DIALECTS.keys()].map(literal).join(' and ');
  throw new SchemaError(
    where,
    '#',
    `"$schema" is ${literal($schema)}`,
    `supported are ${known}; without "$schema" it is 2020-12`,
  );
}

/** Arguments are always an object, and `inputSchema` must say so in its root (MCP 2026-07-28 server/tools, "Tool"). */
function describingObject(json: JsonObject, where: string): JsonObject {
  if (json.type === 'object') return json;
  if (json.type === undefined && COMPOSITIONS.some((keyword) => keyword in json))
    return Object.freeze({ type: 'object', ...json });
  const missing = json.type === undefined;
  throw new SchemaError(
    where,
    '#',
    `the root ${missing ? 'has no "type"' : `has the type ${literal(json.type)}`}, but arguments are an object`,
    missing
      ? 'add "type": "object" to it'
      : 'put the value under a name: { "type": "object", "properties": { "value": … } }',
  );
}

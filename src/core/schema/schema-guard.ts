/** The guard at registration: checks an author's JSON Schema and returns our own copy, or rejects it with a reason. */
import { isObject, type JsonObject } from '../protocol/json.ts';
import { literal } from './excerpts.ts';
import { checkHeaders } from './header-keyword.ts';
import { SCHEMA_DIALECTS, type SchemaDialect } from './keywords.ts';
import { linkReferences } from './refs.ts';
import { copySchema } from './schema-copy.ts';
import { SchemaError } from './schema-error.ts';
import { type SchemaTree, walkSchema } from './walk.ts';

/** A schema that is safe to show to clients and to compile. */
export interface GuardedSchema {
  /** Our own deeply frozen copy. */
  readonly json: JsonObject;
  readonly dialect: SchemaDialect;
}

const COMPOSITIONS = ['$ref', 'anyOf', 'allOf', 'oneOf'];

/**
 * Checks a JSON Schema as MCP 2026-07-28 basic, "JSON Schema Usage", requires: a supported dialect, valid in that
 * dialect, without external references, and bounded in depth (32), number of subschemas (5,000) and size (256 KiB).
 * @param source the schema from the author or the author's library
 * @param where begins every error message, such as `tool "add": input`
 * @param role `input`: the root must describe an object and `x-mcp-header` is checked; `output`: any root
 * @throws SchemaError with the problem, its place and the fix
 * @example guardSchema({ type: 'object', properties: { a: { type: 'number' } } }, 'tool "add": input', 'input').json
 */
export function guardSchema(source: unknown, where: string, role: 'input' | 'output'): GuardedSchema {
  if (!isObject(source))
    throw new SchemaError(
      where,
      '#',
      `the schema is ${literal(source)}`,
      'pass a schema of zod, arktype or valibot, or a JSON Schema object',
    );
  const copy = copySchema(source, where);
  const json = role === 'input' ? describingObject(copy, where) : copy;
  const dialect = dialectOf(json, where);
  const tree = walkSchema(json, dialect, where);
  linkReferences(tree, where);
  if (role === 'input') checkHeaders(tree, where);
  return { json, dialect };
}

/** All subschemas of a guarded schema, with their references linked. */
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
    `supported are ${known}; the default is 2020-12`,
  );
}

/** Arguments are always an object, and the root of `inputSchema` must say so (MCP 2026-07-28 server/tools, "Tool"). */
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
      ? 'add "type": "object" to the root'
      : 'make the value a property: { "type": "object", "properties": { "value": … } }',
  );
}

/** Compiles a tool's `input` or `output` schema at registration, ready to check values. */

import { describe, isObject } from '../protocol/json.ts';
import { compileStandard } from './compile-standard.ts';
import { compilePlain } from './json-schema.ts';
import type { CompiledSchema } from './schema.ts';
import { guardSchema } from './schema-guard.ts';
import type { AuthorSchema } from './schema-types.ts';
import { isStandard } from './standard.ts';

/** Accepts any object. */
export const ANY_OBJECT: CompiledSchema = {
  json: Object.freeze({ type: 'object' }),
  check: (value) =>
    isObject(value)
      ? { ok: true, value }
      : { ok: false, problems: [{ path: '', expected: 'object', got: describe(value) }] },
};

/**
 * A tool without a schema is listed without parameters (2025-11-25 server/tools, "Tool"). A call with arguments still
 * runs, and the handler receives them: clients that read the open schema of an earlier version send some.
 */
const NO_INPUT: CompiledSchema = {
  json: Object.freeze({ type: 'object', additionalProperties: false }),
  check: ANY_OBJECT.check,
};

/**
 * Compiles a tool's `input`. The root must describe an object; a root that only composes other schemas gets `type:
 * "object"`.
 * @param schema a Standard Schema that can produce JSON Schema (zod >= 4.2, arktype, valibot through
 *   toStandardJsonSchema), or a plain JSON Schema of 2020-12 or draft-07, at most 256 KiB and 32 levels deep. Without a
 *   schema, the tool is listed without parameters and accepts any object
 * @param where begins every error message, such as `tool "add": input`
 * @throws SchemaError if the schema cannot be registered; its message names the fix
 * @example
 * const input = compileInput({ type: 'object', properties: { a: { type: 'number' } }, required: ['a'] }, 'tool "add": input');
 * await input.check({}); // { ok: false, problems: [{ path: 'a', expected: 'number', got: 'nothing' }] }
 */
export function compileInput(schema: AuthorSchema | undefined, where: string): CompiledSchema {
  return schema === undefined ? NO_INPUT : compile(schema, where, 'input');
}

/**
 * Compiles a tool's `output`. Its root may describe any value (2026-07-28); earlier revisions only have objects.
 * @param schema as for `compileInput`
 * @param where begins every error message, such as `tool "add": output`
 * @throws SchemaError if the schema cannot be registered; its message names the fix
 * @example await compileOutput({ type: 'number' }, 'tool "add": output').check(3); // { ok: true, value: 3 }
 */
export function compileOutput(schema: AuthorSchema, where: string): CompiledSchema {
  return compile(schema, where, 'output');
}

function compile(schema: AuthorSchema, where: string, role: 'input' | 'output'): CompiledSchema {
  return isStandard(schema)
    ? compileStandard(schema, where, role)
    : compilePlain(guardSchema(schema, where, role), where);
}

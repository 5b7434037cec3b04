/** Checks values by a schema of a validation library, and obtains from the library the JSON Schema for clients. */
import { describe, isObject } from '../protocol/json.ts';
import { PROBLEM_LIMIT, problemAt } from './problems.ts';
import type { Checked, CompiledSchema } from './schema.ts';
import { SchemaError } from './schema-error.ts';
import { guardSchema } from './schema-guard.ts';
import type { StandardIssue, StandardResult, StandardSchema } from './schema-types.ts';

/**
 * Returns a Standard Schema that can produce JSON Schema, or throws an error that names what its library needs for
 * that.
 */
function requireJson(
  source: { readonly '~standard': Readonly<Record<string, unknown>> },
  where: string,
): asserts source is StandardSchema {
  const { jsonSchema, vendor, validate } = source['~standard'];
  if (
    isObject(jsonSchema) &&
    typeof jsonSchema.input === 'function' &&
    typeof jsonSchema.output === 'function' &&
    typeof validate === 'function'
  )
    return;
  const fix =
    vendor === 'valibot'
      ? 'wrap it: toStandardJsonSchema(schema) of @valibot/to-json-schema'
      : vendor === 'zod'
        ? 'use zod >= 4.2 (not zod/mini, which cannot produce JSON Schema)'
        : 'use a library that follows Standard JSON Schema, such as zod >= 4.2, or write JSON Schema';
  throw new SchemaError(
    where,
    '#',
    `this schema of ${typeof vendor === 'string' ? vendor : 'a library'} cannot produce JSON Schema`,
    fix,
  );
}

/**
 * Compiles a library's schema. Its own `validate` checks values, so that its defaults, transforms and refinements
 * apply. `check` passes on errors that the author's refinements throw.
 * @param role the JSON Schema describes the value before the check (`input`) or after it (`output`)
 */
export function compileStandard(
  source: { readonly '~standard': Readonly<Record<string, unknown>> },
  where: string,
  role: 'input' | 'output',
): CompiledSchema {
  requireJson(source, where);
  const standard = source['~standard'];
  const { json } = guardSchema(convert(source, where, role), where, role);
  const settle = (result: StandardResult<unknown>, value: unknown): Checked<unknown> =>
    result.issues === undefined
      ? { ok: true, value: result.value }
      : { ok: false, problems: problemsOf(result.issues, value) };
  return {
    json,
    check(value) {
      const result = standard.validate(value);
      return result instanceof Promise ? result.then((later) => settle(later, value)) : settle(result, value);
    },
  };
}

function convert(source: StandardSchema, where: string, role: 'input' | 'output'): unknown {
  try {
    return source['~standard'].jsonSchema[role]({ target: 'draft-2020-12' });
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : describe(cause);
    throw new SchemaError(
      where,
      '#',
      `${source['~standard'].vendor} cannot convert this to JSON Schema: ${reason}`,
      role === 'input'
        ? 'use types that JSON has; for a date, accept a string in format date-time and transform it'
        : 'describe the output as JSON: no dates, and no transforms without an output type',
      cause,
    );
  }
}

function problemsOf(issues: readonly StandardIssue[], value: unknown) {
  const found = issues.slice(0, PROBLEM_LIMIT).map(({ message, path = [] }) => {
    const keys = path.map((key) => (typeof key === 'object' ? key.key : key));
    return problemAt(value, keys, message, message);
  });
  return found.length > 0 ? found : [problemAt(value, [], 'a value that its schema accepts')];
}

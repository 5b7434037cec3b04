/** Wraps a schema as one member of an object; plain JSON Schema describes the other members. */
import { isJsonObject, isObject, type JsonObject } from '../protocol/json.ts';
import type { AuthorSchema, StandardResult, StandardSchema } from './schema-types.ts';
import { isStandard } from './standard.ts';

/**
 * The schema of `{ [member]: <schema>, ...others }`, in which only `meta` of the other members is required. A library's
 * schema keeps its own rules and checks only its member.
 */
export function wrapSchema(schema: AuthorSchema, member: string, others: JsonObject): AuthorSchema {
  const around = ({ $schema, ...inner }: JsonObject): JsonObject => ({
    // The dialect belongs at the root, and the root is ours.
    ...($schema === undefined ? {} : { $schema }),
    type: 'object',
    // References inside of the schema refer to its own root; an `$id` preserves that.
    properties: { [member]: refers(inner) && inner.$id === undefined ? { $id: member, ...inner } : inner, ...others },
    required: ['meta'],
  });
  if (!isLibrary(schema)) return around(schema);
  const { vendor, validate, jsonSchema } = schema['~standard'];
  const wrapped: StandardSchema = {
    '~standard': {
      version: 1,
      vendor,
      jsonSchema: {
        input: (options) => ({ ...around(asJson(jsonSchema.input(options))) }),
        output: (options) => ({ ...around(asJson(jsonSchema.output(options))) }),
      },
      validate(value) {
        if (!isObject(value)) return { issues: [{ message: 'expected an object' }] };
        if (!Object.hasOwn(value, member)) return { value };
        const seen = validate(value[member]);
        return seen instanceof Promise
          ? seen.then((result) => inside(result, value, member))
          : inside(seen, value, member);
      },
    },
  };
  return wrapped;
}

function inside(
  result: StandardResult<unknown>,
  whole: Readonly<Record<string, unknown>>,
  member: string,
): StandardResult<unknown> {
  if (result.issues)
    return { issues: result.issues.map(({ message, path = [] }) => ({ message, path: [member, ...path] })) };
  return { value: { ...whole, [member]: result.value } };
}

function isLibrary(schema: AuthorSchema): schema is StandardSchema {
  return isStandard(schema);
}

function asJson(schema: Record<string, unknown>): JsonObject {
  return isJsonObject(schema) ? schema : {};
}

/** True if a schema has a reference anywhere. */
export function refers(schema: unknown): boolean {
  if (Array.isArray(schema)) return schema.some(refers);
  return isObject(schema) && ('$ref' in schema || Object.values(schema).some(refers));
}

/** Takes our own frozen copy of an author's schema: pure JSON, bounded in size, without cycles. */
import { describe, isObject, type JsonObject, type JsonValue } from '../protocol/json.ts';
import { SchemaError } from './schema-error.ts';

/** Largest schema, in bytes of its JSON text (an estimate that leaves escapes out). */
export const MAX_SCHEMA_BYTES = 256 * 1024;

/** Deepest nesting of plain JSON in a schema. Thirty-two levels of schemas take up to 64; `default` and `const` have the rest. */
const MAX_LEVELS = 128;

/**
 * Copies a schema, so that what was checked is what clients are shown, whatever its author does to the object later.
 *
 * @param source the author's object
 * @param where begins every error, such as `tool "add": input`
 * @throws SchemaError if it is not plain JSON, refers to itself, or is larger than 256 KiB or nested deeper than 128 levels
 */
export function copySchema(source: Readonly<Record<string, unknown>>, where: string): JsonObject {
  const open = new Set<object>();
  let bytes = 0;

  const spend = (more: number, at: string): void => {
    bytes += more;
    if (bytes > MAX_SCHEMA_BYTES)
      throw new SchemaError(
        where,
        at,
        'the schema takes more than 256 KiB as JSON',
        'shorten its enums, examples and descriptions',
      );
  };

  const copy = (value: unknown, at: string): JsonValue => {
    if (value === null || typeof value === 'boolean') {
      spend(5, at);
      return value;
    }
    if (typeof value === 'string') {
      spend(Buffer.byteLength(value) + 2, at);
      return value;
    }
    if (typeof value === 'number' && Number.isFinite(value)) {
      spend(String(value).length, at);
      return value;
    }
    if (isLibrarySchema(value))
      throw new SchemaError(
        where,
        at,
        'a schema of a library stands inside a plain object',
        "give the library's own object schema instead, such as z.object({ … })",
      );
    if (typeof value === 'object') return copyNested(value, at);
    throw new SchemaError(where, at, `${describe(value)} is no JSON value`, 'a JSON Schema holds plain JSON only');
  };

  const copyNested = (value: object, at: string): JsonValue => {
    if (open.has(value))
      throw new SchemaError(
        where,
        at,
        'the object contains itself',
        'say recursion with "$ref", such as { "$ref": "#" }',
      );
    if (open.size >= MAX_LEVELS)
      throw new SchemaError(where, at, `the schema nests JSON deeper than ${MAX_LEVELS} levels`, 'make it flatter');
    open.add(value);
    const made = Array.isArray(value) ? copyArray(value, at) : copyObject(value, at);
    open.delete(value);
    return made;
  };

  const copyArray = (items: readonly unknown[], at: string): JsonValue => {
    const made: JsonValue[] = [];
    for (const [index, item] of items.entries()) {
      spend(1, at);
      made.push(copy(item, `${at}/${index}`));
    }
    spend(2, at);
    return Object.freeze(made);
  };

  const copyObject = (value: object, at: string): JsonObject => {
    if (!isObject(value) || !isPlain(value))
      throw new SchemaError(
        where,
        at,
        'an object with a prototype of its own is no JSON value',
        'a JSON Schema holds plain JSON only (a literal key "__proto__" sets the prototype: that name is not possible)',
      );
    const made: Record<string, JsonValue> = {};
    for (const key of Object.keys(value)) {
      // A validator that generates code cannot hold a rule for this name, and every copy of the object would lose it.
      if (key === '__proto__')
        throw new SchemaError(where, at, 'the key "__proto__" cannot be checked safely', 'use another name');
      const item = value[key];
      if (item === undefined) continue;
      spend(Buffer.byteLength(key) + 4, at);
      made[key] = copy(item, `${at}/${escapePointer(key)}`);
    }
    spend(2, at);
    return Object.freeze(made);
  };

  open.add(source);
  return copyObject(source, '#');
}

/** A key as one segment of a JSON Pointer (RFC 6901 section 3). */
export function escapePointer(key: string): string {
  return key.includes('~') || key.includes('/') ? key.replaceAll('~', '~0').replaceAll('/', '~1') : key;
}

/** Made by a literal, by JSON.parse or without a prototype; in this realm or another. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || (typeof prototype === 'object' && Object.getPrototypeOf(prototype) === null);
}

/** A schema of zod, arktype or valibot; not the JSON that zod made from one, to which it hangs a hidden `~standard`. */
function isLibrarySchema(value: unknown): boolean {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null || !('~standard' in value))
    return false;
  return (
    typeof value === 'function' || !isPlain(value) || Object.prototype.propertyIsEnumerable.call(value, '~standard')
  );
}

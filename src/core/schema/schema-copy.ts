/** Makes our own frozen copy of an author's schema: pure JSON, bounded in size, without cycles. */
import { describe, isObject, type JsonObject, type JsonValue } from '../protocol/json.ts';
import { SchemaError } from './schema-error.ts';

/** Largest schema in bytes of its JSON text (an estimate that ignores escapes). */
const MAX_SCHEMA_BYTES = 256 * 1024;

/**
 * Deepest nesting of plain JSON in a schema. Thirty-two levels of subschemas use up to 64; `default` and `const` may
 * use the rest.
 */
const MAX_LEVELS = 128;

/**
 * Copies a schema, so that clients see what was checked even if its author changes the object later.
 * @param source the author's object
 * @param where begins every error message, such as `tool "add": input`
 * @throws SchemaError if it is not plain JSON, contains itself, is larger than 256 KiB or nested deeper than 128
 *   levels
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
        'a plain object contains a schema of a library',
        "pass the library's own object schema instead, such as z.object({ … })",
      );
    if (typeof value === 'object') return copyNested(value, at);
    throw new SchemaError(
      where,
      at,
      `${describe(value)} is not a JSON value`,
      'a JSON Schema contains plain JSON only',
    );
  };

  const copyNested = (value: object, at: string): JsonValue => {
    if (open.has(value))
      throw new SchemaError(
        where,
        at,
        'the object contains itself',
        'express recursion with "$ref", such as { "$ref": "#" }',
      );
    if (open.size >= MAX_LEVELS)
      throw new SchemaError(where, at, `the schema nests JSON deeper than ${MAX_LEVELS} levels`, 'flatten it');
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
        'an object with its own prototype is not a JSON value',
        'a JSON Schema contains plain JSON only (a literal key "__proto__" sets the prototype: that name is not possible)',
      );
    const made: Record<string, JsonValue> = {};
    for (const key of Object.keys(value)) {
      // A validator that generates code cannot check this name, and every copy of the object would lose it.
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

/** Escapes a key as one segment of a JSON Pointer (RFC 6901 section 3). */
export function escapePointer(key: string): string {
  return key.includes('~') || key.includes('/') ? key.replaceAll('~', '~0').replaceAll('/', '~1') : key;
}

/** True for objects from a literal, from JSON.parse or without a prototype; in this realm or another. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || (typeof prototype === 'object' && Object.getPrototypeOf(prototype) === null);
}

/**
 * True for a schema of zod, arktype or valibot; false for the JSON that zod generates from one, which has a hidden
 * `~standard`.
 */
function isLibrarySchema(value: unknown): boolean {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null || !('~standard' in value))
    return false;
  return (
    typeof value === 'function' || !isPlain(value) || Object.prototype.propertyIsEnumerable.call(value, '~standard')
  );
}

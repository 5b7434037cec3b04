/** JSON parsing for the testing kit: parsed once, narrowed by guards. */
import type { JsonObject, JsonValue } from '../core/protocol/json.ts';

/** The value of a JSON text; `undefined` for invalid JSON. */
export function readJson(text: string): JsonValue | undefined {
  try {
    const value: JsonValue = JSON.parse(text);
    return value;
  } catch {
    return undefined;
  }
}

export function isObjectInTest(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !isJsonArray(value);
}

export function isJsonArray(value: JsonValue | undefined): value is readonly JsonValue[] {
  return Array.isArray(value);
}

/** Recognizes the schemas of validation libraries. */
import { isObject } from '../protocol/json.ts';

/**
 * True for a schema of a library that follows Standard Schema, with or without JSON Schema. Arktype's schemas are
 * functions.
 */
export function isStandard(source: unknown): source is { readonly '~standard': Readonly<Record<string, unknown>> } {
  if ((typeof source !== 'object' && typeof source !== 'function') || source === null || !('~standard' in source))
    return false;
  return isObject(source['~standard']);
}

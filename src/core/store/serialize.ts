/** Serializes stored data: the only place where it is parsed or written as JSON. */

import type { JsonValue } from '../protocol/json.ts';
import { readExact, writeExact } from '../protocol/json-text.ts';
import { StoreError } from './store.ts';

/** @throws {TypeError} for values that JSON cannot represent, such as a cycle or a bigint */
export function toText(value: unknown): string {
  const text: string | undefined = writeExact(value);
  return text ?? 'null';
}

/** @param what names the data in the error. @throws {StoreError} `corrupt` for invalid JSON */
export function fromText(text: string, what: string): JsonValue {
  try {
    return readExact(text) as JsonValue;
  } catch (error) {
    throw new StoreError('corrupt', `${what}: expected the JSON that was written, got other text`, { cause: error });
  }
}

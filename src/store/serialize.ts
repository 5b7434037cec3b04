/** Turns what is kept into text and back: the only place where the store's data is parsed or written as JSON. */
import type { JsonValue } from '../protocol/json.ts';
import { StoreError } from './store.ts';

/** @throws {TypeError} for what JSON cannot say, such as a cycle or a bigint */
export function toText(value: unknown): string {
  const text: string | undefined = JSON.stringify(value);
  return text ?? 'null';
}

/** @param what names it, for the error. @throws {StoreError} `corrupt` for what is no JSON */
export function fromText(text: string, what: string): JsonValue {
  try {
    return JSON.parse(text) as JsonValue;
  } catch (error) {
    throw new StoreError('corrupt', `${what}: expected the JSON that was written, got other text`, { cause: error });
  }
}

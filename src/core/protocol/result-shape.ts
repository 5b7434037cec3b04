/** Recognizes the result of a tool call by its outer shape: its members are not checked. */
import { isObject } from './json.ts';
import type { CallToolResult } from './types.ts';

export function isToolResult(value: unknown): value is CallToolResult {
  return isObject(value) && Array.isArray(value.content);
}

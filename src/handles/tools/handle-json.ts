/** Formats a handle as the text of its resource: JSON within a JSON message, as clients expect it. */
import type { JsonObject } from '../../protocol/json.ts';

export function jsonText(data: JsonObject): string {
  return JSON.stringify(data, undefined, 2);
}

/** A handle as the text of its resource: JSON inside of a message, as what reads the resource expects it. */
import type { JsonObject } from '../../protocol/json.ts';

export function jsonText(data: JsonObject): string {
  return JSON.stringify(data, undefined, 2);
}

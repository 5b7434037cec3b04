/** Writes the questions of an upstream so that a person sees all of them, and whose they are. */
import type { JsonObject } from '../../core/protocol/json.ts';
import { isJsonObject } from '../../core/protocol/json.ts';
import { visibleDefinition, withoutInvisible } from './invisible-characters.ts';

/** Everything at which some terminal or page begins a new line. */
const LINE_END = /\r\n|[\n\v\f\r\u0085\u2028\u2029]/;

/**
 * A message, without invisible characters. Each line names the upstream, so that none looks like a line of this server.
 *
 * @example saidBy('shop', 'Which size?') // '[shop] Which size?'
 */
export function saidBy(mount: string, message: string): string {
  return message
    .split(LINE_END)
    .map((line) => `[${mount}] ${withoutInvisible(line).text}`)
    .join('\n');
}

/** A form without invisible characters in its titles and descriptions. Names and values stay: the answer consists of them. */
export function visibleForm(requestedSchema: JsonObject): JsonObject {
  const { inputSchema } = visibleDefinition({ inputSchema: requestedSchema }).definition;
  return isJsonObject(inputSchema) ? inputSchema : requestedSchema;
}

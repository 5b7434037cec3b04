/** Converts the `key=value` words of a command line by a JSON Schema. */
import { readFileSync } from 'node:fs';
import { suggestion } from '../../near-miss.ts';
import { isJsonObject, isObject, type JsonObject, type JsonValue, messageOf } from '../../protocol/json.ts';
import type { Prompt, Tool } from '../../protocol/types.ts';
import { parameterNames, promptSignatureOf, resolveReference, signatureOf, typeOf } from '../../tool-signature.ts';
import { safe } from '../top/format.ts';
import { UsageError } from '../usage.ts';

/** A word `key=value`, or `key:=JSON`. */
export interface Word {
  readonly key: string;
  readonly text: string;
  readonly json: boolean;
}

export type Converted = { readonly ok: true; readonly value: JsonValue } | { readonly ok: false };

/** References that are followed until a schema counts as recursive. */
const MAX_REFERENCES = 8;

/** @param what the words, for the message of an error. @throws {UsageError} for a word that is not `key=value` */
export function readWords(what: string, words: readonly string[]): Word[] {
  return words.map((word) => {
    const [, key, colon, text] = /^([^=]+?)(:?)=(.*)$/s.exec(word) ?? [];
    if (key === undefined || text === undefined)
      throw new UsageError(`${what}: expected key=value or key:=JSON, got ${word}`);
    return { key, text, json: colon === ':' };
  });
}

/**
 * The arguments of a call.
 *
 * @param given `--args`: JSON, or `@FILE`; the words add to it
 * @throws {UsageError} for an unknown key, a value of another type, and a missing key
 */
export function toolArguments(
  tool: Pick<Tool, 'name' | 'inputSchema'>,
  words: readonly Word[],
  given: string | undefined,
): JsonObject {
  const { name, inputSchema } = tool;
  const what = `troupe call: ${name}`;
  const base = given === undefined ? {} : readArgs(given);
  const args: Record<string, JsonObject[string]> = { ...base };
  const known = parameterNames(inputSchema);
  const open = inputSchema.additionalProperties !== undefined && inputSchema.additionalProperties !== false;
  const lists = new Map<string, JsonValue[]>();
  const seen = new Set<string>();
  for (const { key, text, json } of words) {
    const schema =
      isObject(inputSchema.properties) && Object.hasOwn(inputSchema.properties, key)
        ? inputSchema.properties[key]
        : undefined;
    if (json) {
      args[key] = readJsonWord(`${what}: ${key}`, text);
      continue;
    }
    if (schema === undefined && !open)
      throw new UsageError(
        `${what}: unknown key ${key}${suggestion(key, known)}. The tool is ${oneLine(signatureOf(tool))}`,
      );
    const element = elementOf(schema, inputSchema);
    if (element !== undefined && !text.startsWith('[')) {
      // A list: each word adds an element.
      const list = lists.get(key) ?? [];
      list.push(convertOrThrow(`${what}: ${key}`, text, element, inputSchema));
      lists.set(key, list);
      args[key] = list;
      continue;
    }
    if (seen.has(key)) throw new UsageError(`${what}: ${key}: expected one value, got several`);
    seen.add(key);
    args[key] = convertOrThrow(`${what}: ${key}`, text, schema, inputSchema);
  }
  const required: readonly unknown[] = Array.isArray(inputSchema.required) ? inputSchema.required : [];
  const missing = required.filter((key) => typeof key === 'string' && !Object.hasOwn(args, key));
  if (missing.length > 0)
    throw new UsageError(`${what}: missing ${missing.join(', ')}. The tool is ${oneLine(signatureOf(tool))}`);
  return args;
}

/** The arguments of a prompt, which are texts. @throws {UsageError} */
export function promptArguments(prompt: Prompt, words: readonly Word[]): Record<string, string> {
  const what = `troupe call: prompt ${prompt.name}`;
  const list = prompt.arguments ?? [];
  const names = list.map(({ name }) => name);
  const args: Record<string, string> = {};
  for (const { key, text } of words) {
    if (!names.includes(key))
      throw new UsageError(
        `${what}: unknown key ${key}${suggestion(key, names)}. The prompt is ${oneLine(promptSignatureOf(prompt))}`,
      );
    args[key] = text;
  }
  const missing = list.filter(({ name, required }) => required === true && !Object.hasOwn(args, name));
  if (missing.length > 0)
    throw new UsageError(
      `${what}: missing ${missing.map(({ name }) => name).join(', ')}. The prompt is ${oneLine(promptSignatureOf(prompt))}`,
    );
  return args;
}

/** A signature in the middle of a message. */
function oneLine(signature: string): string {
  return safe(signature.replaceAll(/\n\s*/g, ' '));
}

/** Converts a text to the first type of the schema that it fits. Without a type, it remains a text. */
export function convert(text: string, schema: unknown, root: unknown): Converted {
  const { types, values } = shapeOf(schema, root, 0);
  if (values.length > 0) {
    const value = values.find((each) => String(each) === text);
    if (value !== undefined) return { ok: true, value };
    if (types.size === 0) return { ok: false };
  }
  if (types.has('boolean') && (text === 'true' || text === 'false')) return { ok: true, value: text === 'true' };
  if (types.has('null') && text === 'null') return { ok: true, value: null };
  if ((types.has('number') || types.has('integer')) && /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text)) {
    const value = Number(text);
    if (types.has('number') || Number.isInteger(value)) return { ok: true, value };
  }
  if (
    (types.has('object') && text.trimStart().startsWith('{')) ||
    (types.has('array') && text.trimStart().startsWith('['))
  ) {
    try {
      const value: JsonValue = JSON.parse(text);
      return { ok: true, value };
    } catch {
      if (!types.has('string')) return { ok: false };
    }
  }
  return types.has('string') || types.size === 0 ? { ok: true, value: text } : { ok: false };
}

function convertOrThrow(what: string, text: string, schema: unknown, root: unknown): JsonValue {
  const converted = convert(text, schema, root);
  if (converted.ok) return converted.value;
  throw new UsageError(`${what}: expected ${safe(typeOf(schema, root))}, got ${text}`);
}

/** The types and the literals that a schema allows. */
function shapeOf(schema: unknown, root: unknown, depth: number): { types: Set<string>; values: JsonValue[] } {
  const types = new Set<string>();
  const values: JsonValue[] = [];
  if (!isJsonObject(schema) || depth > MAX_REFERENCES) return { types, values };
  const { $ref, type, const: constant, enum: list, anyOf, oneOf, allOf, properties } = schema;
  if (constant !== undefined) return { types, values: [constant] };
  if (Array.isArray(list)) return { types, values: list };
  for (const each of Array.isArray(type) ? type : [type]) if (typeof each === 'string') types.add(each);
  if (types.size === 0 && properties !== undefined) types.add('object');
  const inner = [
    ...(typeof $ref === 'string' ? [resolveReference($ref, root)] : []),
    ...[anyOf, oneOf, allOf].flatMap((each) => (Array.isArray(each) ? each : [])),
  ];
  for (const each of inner) {
    const shape = shapeOf(each, root, depth + 1);
    for (const name of shape.types) types.add(name);
    values.push(...shape.values);
  }
  return { types, values };
}

/** The schema of the elements, if the schema allows lists and no texts. */
function elementOf(schema: unknown, root: unknown): unknown {
  const resolved = isObject(schema) && typeof schema.$ref === 'string' ? resolveReference(schema.$ref, root) : schema;
  const { types } = shapeOf(resolved, root, 0);
  if (!types.has('array') || types.has('string') || !isObject(resolved)) return undefined;
  return isObject(resolved.items) ? resolved.items : {};
}

function readArgs(given: string): JsonObject {
  const what = 'troupe call: --args';
  let text = given;
  if (given.startsWith('@'))
    try {
      text = readFileSync(given.slice(1), 'utf8');
    } catch (error) {
      throw new UsageError(`${what}: expected @FILE that can be read, got ${given}: ${messageOf(error)}`);
    }
  const value = readJsonWord(what, text);
  if (!isJsonObject(value)) throw new UsageError(`${what}: expected a JSON object, got ${text.slice(0, 100)}`);
  return value;
}

/** @throws {UsageError} */
export function readJsonWord(what: string, text: string): JsonValue {
  try {
    const value: JsonValue = JSON.parse(text);
    return value;
  } catch {
    throw new UsageError(`${what}: expected JSON, got ${text.slice(0, 100)}`);
  }
}

/** Converts the `key=value` words of a command line by a JSON Schema. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Readable } from 'node:stream';
import { isDeepStrictEqual } from 'node:util';
import { isJsonObject, isObject, type JsonObject, type JsonValue, messageOf } from '../../core/protocol/json.ts';
import { copyNumbers, keepNumber, keepNumbers } from '../../core/protocol/json-text.ts';
import { suggestion } from '../../core/protocol/near-miss.ts';
import type { Prompt, Tool } from '../../core/protocol/types.ts';
import { visibleLine } from '../../core/protocol/visible-text.ts';
import { anyShape, type ObjectShape, resolveReference, shapesOf } from '../../core/schema/object-shapes.ts';
import { typeOf } from '../../core/schema/written-types.ts';
import { promptSignatureOf, signatureOf } from '../../gateway/tool-signature.ts';
import type { CommandIo } from '../command-io.ts';
import { UsageError } from '../usage.ts';

/** A word `key=value`, or `key:=JSON`. */
export interface Word {
  readonly key: string;
  readonly text: string;
  readonly json: boolean;
}

export type Converted = { readonly ok: true; readonly value: JsonValue } | { readonly ok: false };

const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
/** A number as JSON writes it (RFC 8259, section 6). */
const JSON_NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?(e[+-]?\d+)?$/i;

/** References and compositions that are followed until a schema counts as recursive, and schemas that are read. */
const MAX_DEPTH = 8;
const MAX_SCHEMAS = 500;
/** Bytes that are read from stdin. */
const MAX_BYTES = 2 ** 26;

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
 * @param base `--args`; the words add to it
 * @param what begins each error
 * @throws {UsageError} for an unknown key, a value of another type, and a missing key
 */
export function toolArguments(
  tool: Pick<Tool, 'name' | 'inputSchema'>,
  words: readonly Word[],
  base: JsonObject = {},
  what = `troupe call: ${tool.name}`,
  kind: 'tool' | 'event' = 'tool',
): JsonObject {
  const { inputSchema } = tool;
  const keys = byKey(words);
  const shapes = shapesOf(inputSchema);
  // The words choose the alternative: the first whose members they all fit, and that misses nothing.
  const read = shapes.map((shape) => readKeys(keys, base, shape, inputSchema));
  const fitting = read.filter(({ problem }) => problem === undefined);
  const complete = fitting.find(({ missing }) => missing.length === 0);
  if (complete) return complete.args;
  // Members of several alternatives may be given together (`anyOf`). Otherwise, the error is about all of them.
  const any = anyShape(shapes);
  const [nearest] = fitting.sort((one, other) => one.missing.length - other.missing.length);
  const { args, problem, missing } = nearest ?? readKeys(keys, base, any, inputSchema);
  if (problem !== undefined && 'unknown' in problem) {
    const { unknown } = problem;
    const [object] = unknown.split(/[.[]/);
    const hint =
      object !== undefined && object !== unknown && any.members.has(object)
        ? `. Pass an object as JSON: ${object}:='{…}'`
        : suggestion(unknown, [...any.members.keys()]);
    throw new UsageError(`${what}: unknown key ${unknown}${hint}. The ${kind} is ${oneLine(signatureOf(tool))}`);
  }
  if (problem !== undefined) throw new UsageError(`${what}: ${problem.key}: ${problem.text}`);
  if (missing.length > 0)
    throw new UsageError(`${what}: missing ${missing.join(', ')}. The ${kind} is ${oneLine(signatureOf(tool))}`);
  return args;
}

/** The words of each key, in the order of the command line. @throws {UsageError} for several values as JSON */
export function byKey(words: readonly Word[]): ReadonlyMap<string, readonly Word[]> {
  const keys = new Map<string, Word[]>();
  for (const word of words) keys.set(word.key, [...(keys.get(word.key) ?? []), word]);
  return keys;
}

interface ReadKeys {
  readonly args: JsonObject;
  readonly missing: readonly string[];
  /** The first key that the alternative does not have, or whose value it does not accept. */
  readonly problem: { readonly unknown: string } | { readonly key: string; readonly text: string } | undefined;
}

/** Converts the words by one alternative of the schema. */
function readKeys(
  keys: ReadonlyMap<string, readonly Word[]>,
  base: JsonObject,
  { members, required, others }: ObjectShape,
  root: unknown,
): ReadKeys {
  const args: Record<string, JsonObject[string]> = { ...base };
  copyNumbers(base, args);
  let problem: ReadKeys['problem'];
  for (const [key, words] of keys) {
    const schemas = members.get(key);
    const schema = schemas === undefined ? others : schemas.length === 1 ? schemas[0] : { anyOf: schemas };
    const read = readValue(words, schema, root);
    if ('value' in read) {
      args[key] = read.value;
      // An id above 2^53 reaches the server as it was typed.
      if (typeof read.value === 'number' && words[0]) keepNumber(args, key, words[0].text.trim());
    }
    if (schema === undefined && !words.every(({ json }) => json)) problem ??= { unknown: key };
    else if ('problem' in read) problem ??= { key, text: read.problem };
  }
  for (const [key, value] of Object.entries(args))
    if (!isLiteralOf(value, members.get(key) ?? [], root)) problem ??= { key, text: 'not a value of this alternative' };
  const missing = [...required].filter((key) => !Object.hasOwn(args, key));
  return { args, missing, problem };
}

/** The value of the words of one key: the JSON of one word, a converted text, or a list of several. */
export function readValue(
  words: readonly Word[],
  schema: unknown,
  root: unknown,
): { readonly value: JsonValue } | { readonly problem: string } {
  const [only, ...more] = words;
  const json = words.find((word) => word.json);
  if (json && more.length > 0) return { problem: 'expected one value of JSON, got several' };
  if (json) {
    const value = parsed(json.text);
    return value === undefined ? { problem: `expected JSON, got ${json.text.slice(0, 100)}` } : { value };
  }
  const texts = words.map(({ text }) => text);
  const converted = convertTexts(texts, schema, root);
  if (converted.ok) return converted;
  if (more.length > 0 && !shapeOf(schema, root).types.has('array'))
    return { problem: 'expected one value, got several' };
  const got = only === undefined ? 'none' : only.text === '' ? 'an empty text' : only.text;
  return { problem: `expected ${visibleLine(typeOf(schema, root))}, got ${got}` };
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
  return visibleLine(signature.replaceAll(/\n\s*/g, ' '));
}

/** Converts the texts of one key: a list has an element of each; one text of a list is a list of one. */
function convertTexts(texts: readonly string[], schema: unknown, root: unknown): Converted {
  const { types, items } = shapeOf(schema, root);
  const [only = ''] = texts;
  if (texts.length === 1) {
    const converted = convert(only, schema, root);
    if (converted.ok || !types.has('array')) return converted;
  }
  if (!types.has('array')) return { ok: false };
  const element = items.length > 1 ? { anyOf: items } : items[0];
  const list: JsonValue[] = [];
  for (const text of texts) {
    const converted = convert(text, element, root);
    if (!converted.ok) return converted;
    list.push(converted.value);
    if (typeof converted.value === 'number') keepNumber(list, String(list.length - 1), text.trim());
  }
  return { ok: true, value: list };
}

/** Converts a text to the first type of the schema that it fits. Without a type, it remains a text. */
export function convert(text: string, schema: unknown, root: unknown): Converted {
  const { types, values } = shapeOf(schema, root);
  if (values.length > 0) {
    const value = values.find((each) => (typeof each === 'object' ? JSON.stringify(each) : String(each)) === text);
    if (value !== undefined) return { ok: true, value };
    if (types.size === 0) return { ok: false };
  }
  if (types.has('boolean') && (text === 'true' || text === 'false')) return { ok: true, value: text === 'true' };
  if (types.has('null') && text === 'null') return { ok: true, value: null };
  // As a number, 007 would lose its zeros: it stays a text if the schema allows one.
  const numbers = types.has('string') ? JSON_NUMBER : NUMBER;
  if ((types.has('number') || types.has('integer')) && numbers.test(text)) {
    const value = Number(text);
    if (types.has('number') || Number.isInteger(value)) return { ok: true, value };
  }
  if (
    (types.has('object') && text.trimStart().startsWith('{')) ||
    (types.has('array') && text.trimStart().startsWith('['))
  ) {
    const value = parsed(text);
    if (value !== undefined) return { ok: true, value };
  }
  return types.has('string') || types.size === 0 ? { ok: true, value: text } : { ok: false };
}

/** The types and literals that a schema allows, and the schemas of a list's elements. */
interface ValueShape {
  readonly types: Set<string>;
  readonly values: JsonValue[];
  readonly items: unknown[];
}

function shapeOf(
  schema: unknown,
  root: unknown,
  budget = { left: MAX_SCHEMAS },
  depth = 0,
  shape: ValueShape = { types: new Set(), values: [], items: [] },
): ValueShape {
  if (!isJsonObject(schema) || depth > MAX_DEPTH || budget.left <= 0) return shape;
  budget.left -= 1;
  const { $ref, type, const: constant, enum: list, anyOf, oneOf, allOf, properties, items } = schema;
  if (constant !== undefined || Array.isArray(list)) {
    shape.values.push(
      ...(constant === undefined && Array.isArray(list) ? list : constant === undefined ? [] : [constant]),
    );
    return shape;
  }
  const own = (Array.isArray(type) ? type : [type]).filter((each) => typeof each === 'string');
  for (const each of own) shape.types.add(each);
  if (own.length === 0 && properties !== undefined) shape.types.add('object');
  if (isObject(items)) shape.items.push(items);
  const inner = [
    ...(typeof $ref === 'string' ? [resolveReference($ref, root)] : []),
    ...[anyOf, oneOf, allOf].flatMap((each) => (Array.isArray(each) ? each : [])),
  ];
  for (const each of inner) shapeOf(each, root, budget, depth + 1, shape);
  return shape;
}

/** False if a schema allows literals only, and the value is none of them: then another alternative is meant. */
function isLiteralOf(value: JsonValue | undefined, schemas: readonly unknown[], root: unknown): boolean {
  return schemas.every((schema) => {
    const { types, values } = shapeOf(schema, root);
    return types.size > 0 || values.length === 0 || values.some((each) => isDeepStrictEqual(each, value));
  });
}

/**
 * Reads `--args`.
 *
 * @param given JSON, `@FILE`, or `-` for stdin
 * @throws {UsageError}
 */
export async function readArguments(
  given: string,
  { cwd, stdin }: Pick<CommandIo, 'cwd' | 'stdin'>,
): Promise<JsonObject> {
  const what = 'troupe call: --args';
  let text = given;
  if (given === '-') text = await readAll(stdin, what);
  else if (given.startsWith('@'))
    try {
      text = readFileSync(resolve(cwd, given.slice(1)), 'utf8');
    } catch (error) {
      throw new UsageError(
        `${what}: expected @FILE that can be read, or - for stdin, got ${given}: ${messageOf(error)}`,
      );
    }
  const value = parsed(text);
  const got = text.trim() === '' ? 'nothing' : text.slice(0, 100);
  if (value === undefined) throw new UsageError(`${what}: expected JSON, @FILE, or - for stdin, got ${got}`);
  if (!isJsonObject(value)) throw new UsageError(`${what}: expected a JSON object, got ${got}`);
  return value;
}

/** @throws {UsageError} for more than a message may have */
async function readAll(stdin: Readable, what: string): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stdin) {
    const part = Buffer.from(chunk);
    bytes += part.length;
    if (bytes > MAX_BYTES) throw new UsageError(`${what}: expected at most ${MAX_BYTES} bytes on stdin, got more`);
    chunks.push(part);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function parsed(text: string): JsonValue | undefined {
  try {
    const value: JsonValue = JSON.parse(text);
    keepNumbers(text, value);
    return value;
  } catch {
    return undefined;
  }
}

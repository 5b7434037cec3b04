/**
 * Finds literal arguments that the schema of a function rejects, before a script runs: missing and unknown members, and values of another
 * type. What a schema says beyond that, and what is computed, is checked when the call is made.
 */
import { isObject, shortened } from '../../../core/protocol/json.ts';
import { writeExact } from '../../../core/protocol/json-text.ts';
import { resolveReference } from '../../../core/schema/object-shapes.ts';
import type { CallableFunctions } from './code-functions.ts';
import type { CallProblem, FoundCalls } from './script-calls.ts';
import { LiteralReader, type ScriptLiteral } from './script-literals.ts';
import { placeOfToken } from './script-tokens.ts';

/** Calls with problems that are reported. Each has the declaration of its function. */
const MOST = 3;
/** Schemas that are read for one call: a reference can lead to itself. */
const MAX_SCHEMAS = 500;
const MAX_VALUES = 8;
const MAX_TEXT = 60;

/** A reason for which a schema rejects a literal. */
interface Misfit {
  readonly at: number;
  readonly message: string;
}

/** The calls whose literal arguments cannot be valid, in the order of the script: the first problem of each. */
export function checkArguments(
  code: string,
  { tokens, closings, calls }: FoundCalls,
  functions: CallableFunctions,
): readonly CallProblem[] {
  const reader = new LiteralReader(code, tokens, closings);
  const problems: CallProblem[] = [];
  const declared = new Set<string>();
  for (const { name, at, opening } of calls) {
    if (problems.length === MOST) break;
    const target = functions.find(name);
    const given = target && reader.arguments(opening);
    if (!target || !given || given.length > 1) continue;
    const place = tokens[at]?.at ?? 0;
    const literal = given[0] ?? { type: 'object', members: new Map(), isOpen: false, at: place };
    const { inputSchema } = target.definition;
    const misfit = misfitOf(literal, inputSchema, { root: inputSchema, left: MAX_SCHEMAS }, 'arguments');
    if (!misfit) continue;
    const declaration = declared.has(name) ? undefined : functions.declared(name);
    declared.add(name);
    const message = `${name}: ${misfit.message}.${declaration === undefined ? '' : ` ${declaration}`}`;
    problems.push({ name, message, ...placeOfToken(code, misfit.at) });
  }
  return problems;
}

/** A schema, and the number of schemas that may still be read. */
interface Reading {
  readonly root: unknown;
  left: number;
}

/** The reason for which a literal is not valid for sure; undefined if it may be. @param path how messages name the value */
function misfitOf(literal: ScriptLiteral, schema: unknown, reading: Reading, path: string): Misfit | undefined {
  if (literal.type === 'unknown' || literal.type === 'absent' || !isObject(schema) || reading.left <= 0)
    return undefined;
  reading.left -= 1;
  const { $ref, allOf, anyOf, oneOf } = schema;
  if (typeof $ref === 'string') return misfitOf(literal, resolveReference($ref, reading.root), reading, path);
  const own =
    misfitOfType(literal, schema, path) ??
    misfitOfMembers(literal, schema, reading, path) ??
    misfitOfItems(literal, schema, reading, path);
  if (own) return own;
  for (const each of listIn(allOf)) {
    const found = misfitOf(literal, each, reading, path);
    if (found) return found;
  }
  for (const alternatives of [listIn(anyOf), listIn(oneOf)]) {
    const found = alternatives.map((each) => misfitOf(literal, each, reading, path));
    if (found.length === 0 || found.includes(undefined)) continue;
    // The alternative that fits best has its problem inside.
    const inner = found.find((each) => each && each.at !== literal.at);
    return inner ?? { at: literal.at, message: `"${path}" fits none of its ${found.length} types` };
  }
  return undefined;
}

type Known = Exclude<ScriptLiteral, { readonly type: 'unknown' | 'absent' }>;

function misfitOfType(
  literal: Known,
  { type, enum: values, const: only }: Readonly<Record<string, unknown>>,
  path: string,
): Misfit | undefined {
  const types = typeof type === 'string' ? [type] : listIn(type).filter((each) => typeof each === 'string');
  const { at } = literal;
  if (types.length > 0 && !types.some((each) => isOfType(literal, each)))
    return { at, message: `expected ${types.join(' or ')} for "${path}", got ${shown(literal)}` };
  const allowed = Array.isArray(values) ? values : only === undefined ? undefined : [only];
  if (!allowed || literal.type !== 'value' || allowed.includes(literal.value)) return undefined;
  const listed = allowed.slice(0, MAX_VALUES).map((each) => shortened(writeExact(each), MAX_TEXT));
  const more = allowed.length > MAX_VALUES ? ` or ${allowed.length - MAX_VALUES} more` : '';
  return { at, message: `expected ${listed.join(', ')}${more} for "${path}", got ${shown(literal)}` };
}

function isOfType(literal: Known, type: string): boolean {
  switch (literal.type) {
    case 'object':
      return type === 'object';
    case 'list':
      return type === 'array';
    case 'text':
      return type === 'string';
    case 'value': {
      const { value } = literal;
      if (value === null) return type === 'null';
      if (type === 'integer') return typeof value === 'number' && Number.isInteger(value);
      return type === typeof value;
    }
  }
}

function shown(literal: Known): string {
  if (literal.type === 'value') return shortened(writeExact(literal.value), MAX_TEXT);
  return literal.type === 'list' ? 'a list' : literal.type === 'text' ? 'a text' : 'an object';
}

function misfitOfMembers(
  literal: Known,
  schema: Readonly<Record<string, unknown>>,
  reading: Reading,
  path: string,
): Misfit | undefined {
  if (literal.type !== 'object') return undefined;
  const { required, additionalProperties, patternProperties } = schema;
  const properties = isObject(schema.properties) ? schema.properties : {};
  const inside = (name: string): string => (path === 'arguments' ? name : `${path}.${name}`);
  for (const [name, { literal: member, at }] of literal.members) {
    const known = Object.hasOwn(properties, name);
    if (!known && additionalProperties === false && patternProperties === undefined) {
      if (member.type !== 'absent') return { at, message: `"${inside(name)}" is no parameter` };
    } else if (known) {
      const found = misfitOf(member, properties[name], reading, inside(name));
      if (found) return found;
    }
  }
  if (literal.isOpen) return undefined;
  const given = (name: string): boolean => {
    const member = literal.members.get(name);
    return member !== undefined && member.literal.type !== 'absent';
  };
  const missing = listIn(required).filter((name) => typeof name === 'string' && !given(name));
  if (missing.length === 0) return undefined;
  const names = missing.slice(0, MAX_VALUES).map((name) => `"${inside(String(name))}"`);
  return { at: literal.at, message: `${names.join(', ')} ${missing.length === 1 ? 'is' : 'are'} missing` };
}

function misfitOfItems(
  literal: Known,
  { items, prefixItems }: Readonly<Record<string, unknown>>,
  reading: Reading,
  path: string,
): Misfit | undefined {
  // In older schemas `items` may be a list, one for each item.
  if (literal.type !== 'list' || prefixItems !== undefined || !isObject(items)) return undefined;
  for (const [index, item] of literal.items.entries()) {
    const found = misfitOf(item, items, reading, `${path}[${index}]`);
    if (found) return found;
  }
  return undefined;
}

function listIn(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

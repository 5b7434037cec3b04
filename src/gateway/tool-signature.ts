/** Formats tools and prompts as TypeScript signatures, from their JSON Schemas. */

import { isObject, type JsonObject } from '../core/protocol/json.ts';
import { digitsOf, writeExact } from '../core/protocol/json-text.ts';
import type { Prompt, Tool } from '../core/protocol/types.ts';

/** Schemas inside schemas that are spelled out; deeper ones are `unknown`, and a recursive one ends there. */
const MAX_DEPTH = 5;
/** The longest list of literals that is spelled out. */
const MAX_LITERALS = 12;
/** Schemas of one signature that are spelled out: through references, a server can nest them without end. */
const MAX_SCHEMAS = 500;
/** Alternatives of one object that are kept apart, and their members in all; more become one alternative. */
const MAX_ALTERNATIVES = 64;
const MAX_MEMBERS = 5_000;
/** The longest signature on one line, in characters. */
const LINE = 100;

/** One alternative of an object schema, after its references and compositions are resolved. */
export interface ObjectShape {
  /** The schemas of each member. */
  readonly members: ReadonlyMap<string, readonly unknown[]>;
  readonly required: ReadonlySet<string>;
  /** The schema of members with other names; undefined if the schema mentions none. */
  readonly others: unknown;
}

/** The schemas of a signature that may still be spelled out. */
interface Budget {
  left: number;
}

/** @example signatureOf(tool) // search(q: string, limit?: number): { hits: string[] } */
export function signatureOf({
  name,
  inputSchema,
  outputSchema,
}: Pick<Tool, 'name' | 'inputSchema' | 'outputSchema'>): string {
  const result = outputSchema === undefined ? '' : `: ${typeOf(outputSchema)}`;
  return callOf(name, parametersOf(inputSchema), result);
}

/** The parameters of a tool with their types, in the order of its schema. */
export function parametersOf(inputSchema: JsonObject): readonly string[] {
  return membersOf(inputSchema, inputSchema, 0, { left: MAX_SCHEMAS });
}

/** A JSON Schema as JSON on one line. */
export function schemaText(schema: JsonObject): string {
  return writeExact(schema);
}

/** @example promptSignatureOf(prompt) // review(code: string, style?: string) */
export function promptSignatureOf({ name, arguments: list = [] }: Pick<Prompt, 'name' | 'arguments'>): string {
  return callOf(
    name,
    list.map((argument) => `${argument.name}${argument.required === true ? '' : '?'}: string`),
    '',
  );
}

function callOf(name: string, parameters: readonly string[], result: string): string {
  const line = `${name}(${parameters.join(', ')})${result}`;
  if (line.length <= LINE || parameters.length < 2) return line;
  return `${name}(\n${parameters.map((parameter) => `  ${parameter},\n`).join('')})${result}`;
}

/** Formats a JSON Schema as a TypeScript type. @param root the schema that local `$ref`s refer to */
export function typeOf(schema: unknown, root: unknown = schema, depth = 0, budget = { left: MAX_SCHEMAS }): string {
  if (schema === true || !isObject(schema)) return schema === false ? 'never' : 'unknown';
  budget.left -= 1;
  if (depth > MAX_DEPTH || budget.left < 0) return 'unknown';
  const { $ref, const: constant, enum: values, anyOf, oneOf, allOf, type } = schema;
  if (typeof $ref === 'string') return typeOf(resolveReference($ref, root), root, depth + 1, budget);
  if (constant !== undefined) return element(schema, 'const', constant);
  if (Array.isArray(values))
    return values.length > MAX_LITERALS
      ? [
          ...values.slice(0, MAX_LITERALS).map((value, index) => element(values, String(index), value)),
          `/* ${values.length - MAX_LITERALS} more */ never`,
        ].join(' | ')
      : union(values.map((value, index) => element(values, String(index), value)));
  const alternatives = Array.isArray(anyOf) ? anyOf : Array.isArray(oneOf) ? oneOf : undefined;
  // Alternatives beside properties refine them, such as `anyOf: [{ required: ['a'] }, { required: ['b'] }]`.
  if (alternatives && !isObject(schema.properties))
    return union(alternatives.map((each) => typeOf(each, root, depth + 1, budget)));
  if (Array.isArray(allOf) && type === undefined)
    return [...new Set(allOf.map((each) => typeOf(each, root, depth + 1, budget)))].join(' & ');
  if (Array.isArray(type)) return union(type.map((each) => typeOf({ ...schema, type: each }, root, depth, budget)));
  switch (type) {
    case 'string':
    case 'number':
    case 'boolean':
    case 'null':
      return type;
    case 'integer':
      return 'number';
    case 'array': {
      const items = typeOf(schema.items, root, depth + 1, budget);
      return /[ |&]/.test(items) && !items.startsWith('{') ? `(${items})[]` : `${items}[]`;
    }
    case 'object':
      return objectOf(schema, root, depth, budget);
    default:
      return isObject(schema.properties) ? objectOf(schema, root, depth, budget) : 'unknown';
  }
}

function objectOf(schema: Readonly<Record<string, unknown>>, root: unknown, depth: number, budget: Budget): string {
  const members = membersOf(schema, root, depth, budget);
  if (members.length > 0) return `{ ${members.join('; ')} }`;
  const { additionalProperties: more } = schema;
  if (more === false) return '{}';
  return isObject(more) ? `Record<string, ${typeOf(more, root, depth + 1, budget)}>` : 'object';
}

function membersOf(schema: unknown, root: unknown, depth: number, budget: Budget): string[] {
  const { members, required } = anyShape(shapesOf(schema, root, budget));
  return [...members].map(([name, schemas]) => {
    const key = /^[A-Za-z_$][\w$]*$/.test(name) ? name : literal(name);
    const types = schemas.map((each) => typeOf(each, root, depth + 1, budget)).filter((type) => type !== 'unknown');
    return `${key}${required.has(name) ? '' : '?'}: ${union(types.length === 0 ? ['unknown'] : types)}`;
  });
}

/**
 * The alternatives of an object schema: its own members with those that `$ref`, `allOf`, `anyOf`, `oneOf`, `then`, `else`
 * and `dependentSchemas` add. A foreign schema costs a bounded time: depth, schemas and alternatives have limits.
 *
 * @returns at least one
 */
export function shapesOf(
  schema: unknown,
  root: unknown = schema,
  budget = { left: MAX_SCHEMAS },
  depth = 0,
): readonly ObjectShape[] {
  if (!isObject(schema) || depth > MAX_DEPTH || budget.left <= 0) return [NO_MEMBERS];
  budget.left -= 1;
  const inner = (each: unknown): readonly ObjectShape[] => shapesOf(each, root, budget, depth + 1);
  const { properties, required, additionalProperties: others, patternProperties, $ref } = schema;
  const own: ObjectShape = {
    members: new Map(
      Object.entries(isObject(properties) ? properties : {}).map(([name, member]) => [name, [member]] as const),
    ),
    required: new Set(listOf(required).filter((name) => typeof name === 'string')),
    others: others === false || others === undefined ? (patternProperties === undefined ? undefined : true) : others,
  };
  let shapes: readonly ObjectShape[] = [own];
  if (typeof $ref === 'string') shapes = together(shapes, inner(resolveReference($ref, root)));
  for (const each of listOf(schema.allOf)) shapes = together(shapes, inner(each));
  for (const alternatives of [listOf(schema.anyOf), listOf(schema.oneOf)])
    if (alternatives.length > 0) shapes = together(shapes, alternatives.flatMap(inner));
  const { then, else: otherwise, dependentSchemas } = schema;
  for (const each of [then, otherwise, ...Object.values(isObject(dependentSchemas) ? dependentSchemas : {})])
    if (each !== undefined) shapes = together(shapes, [{ ...anyShape(inner(each)), required: new Set() }]);
  return shapes;
}

/** Unites alternatives: the members of all of them, of which those are required that each requires. */
export function anyShape(shapes: readonly ObjectShape[]): ObjectShape {
  const [first = NO_MEMBERS, ...more] = shapes;
  if (more.length === 0) return first;
  return {
    members: united(shapes),
    required: new Set([...first.required].filter((name) => more.every(({ required }) => required.has(name)))),
    others: shapes.find(({ others }) => others !== undefined)?.others,
  };
}

const NO_MEMBERS: ObjectShape = { members: new Map(), required: new Set(), others: undefined };

/** The alternatives of an object that both schemas describe. */
function together(some: readonly ObjectShape[], more: readonly ObjectShape[]): readonly ObjectShape[] {
  const size = (shapes: readonly ObjectShape[]): number =>
    shapes.reduce((sum, { members }) => sum + members.size + 1, 0);
  const isLarge =
    some.length * more.length > MAX_ALTERNATIVES || size(some) * more.length + size(more) * some.length > MAX_MEMBERS;
  const [ones, others] = isLarge ? [[anyShape(some)], [anyShape(more)]] : [some, more];
  return ones.flatMap((one) =>
    others.map((other) => ({
      members: united([one, other]),
      required: new Set([...one.required, ...other.required]),
      others: one.others ?? other.others,
    })),
  );
}

function united(shapes: readonly ObjectShape[]): ReadonlyMap<string, readonly unknown[]> {
  const all = new Map<string, Set<unknown>>();
  for (const { members } of shapes)
    for (const [name, schemas] of members) {
      const known = all.get(name) ?? new Set();
      for (const each of schemas) known.add(each);
      all.set(name, known);
    }
  return new Map([...all].map(([name, schemas]) => [name, [...schemas]] as const));
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Resolves `#/$defs/name` and other pointers into the same schema. Other references are never fetched. */
export function resolveReference(reference: string, root: unknown): unknown {
  if (!reference.startsWith('#')) return undefined;
  let at: unknown = root;
  for (const part of reference.slice(1).split('/').slice(1)) {
    const name = part.replaceAll('~1', '/').replaceAll('~0', '~');
    at = isObject(at) && Object.hasOwn(at, name) ? at[name] : undefined;
  }
  return at;
}

function literal(value: unknown): string {
  return typeof value === 'string' ? `'${value.replaceAll("'", "\\'")}'` : writeExact(value);
}

/** The literal of a value in a schema, with the digits of a long number. */
function element(container: object, key: string, value: unknown): string {
  return (typeof value === 'number' ? digitsOf(container, key, value) : undefined) ?? literal(value);
}

function union(types: readonly string[]): string {
  return [...new Set(types)].join(' | ') || 'never';
}

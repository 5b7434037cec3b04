/** Formats tools and prompts as TypeScript signatures, from their JSON Schemas. */
import { isObject, type JsonObject } from './protocol/json.ts';
import type { Prompt, Tool } from './protocol/types.ts';

/** Schemas inside schemas that are spelled out; deeper ones are `unknown`, and a recursive one ends there. */
const MAX_DEPTH = 5;
/** The longest list of literals that is spelled out. */
const MAX_LITERALS = 12;
/** Schemas of one signature that are spelled out: through references, a server can nest them without end. */
const MAX_SCHEMAS = 500;
/** The longest signature on one line, in characters. */
const LINE = 100;

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
  return JSON.stringify(schema);
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
  if (constant !== undefined) return literal(constant);
  if (Array.isArray(values))
    return values.length > MAX_LITERALS
      ? [...values.slice(0, MAX_LITERALS).map(literal), `/* ${values.length - MAX_LITERALS} more */ never`].join(' | ')
      : union(values.map(literal));
  const alternatives = Array.isArray(anyOf) ? anyOf : Array.isArray(oneOf) ? oneOf : undefined;
  if (alternatives) return union(alternatives.map((each) => typeOf(each, root, depth + 1, budget)));
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
  const { properties, required } = isObject(schema) ? schema : {};
  const needed: readonly unknown[] = Array.isArray(required) ? required : [];
  return Object.entries(isObject(properties) ? properties : {}).map(([name, member]) => {
    const key = /^[A-Za-z_$][\w$]*$/.test(name) ? name : `'${name}'`;
    return `${key}${needed.includes(name) ? '' : '?'}: ${typeOf(member, root, depth + 1, budget)}`;
  });
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
  return typeof value === 'string' ? `'${value.replaceAll("'", "\\'")}'` : JSON.stringify(value);
}

function union(types: readonly string[]): string {
  return [...new Set(types)].join(' | ') || 'never';
}

/** The names of the parameters of a tool. */
export function parameterNames({ properties }: JsonObject): readonly string[] {
  return Object.keys(isObject(properties) ? properties : {});
}

/** Describes in plain words what a schema or a keyword expects. */
import { isObject, type JsonObject } from '../protocol/json.ts';
import type { ValidatorError } from './ajv.ts';
import { listWords, literal, quote } from './excerpts.ts';
import type { SchemaNode, SchemaTree } from './walk.ts';

/** The expectation of an error's keyword, for a sentence that begins with "expected". */
export function expectedBy(error: ValidatorError): string {
  const params: Readonly<Record<string, unknown>> = error.params;
  const limit = String(params.limit);
  const number = isObject(error.parentSchema) && error.parentSchema.type === 'integer' ? 'integer' : 'number';
  switch (error.keyword) {
    case 'type':
      return Array.isArray(params.type) ? params.type.join(' or ') : String(params.type);
    case 'enum':
      return choices(params.allowedValues);
    case 'const':
      return literal(params.allowedValue);
    case 'minimum':
    case 'maximum':
    case 'exclusiveMinimum':
    case 'exclusiveMaximum':
      return `${number} ${String(params.comparison)} ${limit}`;
    case 'multipleOf':
      return `${number} that is a multiple of ${String(params.multipleOf)}`;
    case 'minLength':
      return `string of at least ${count(limit, 'character')}`;
    case 'maxLength':
      return `string of at most ${count(limit, 'character')}`;
    case 'pattern':
      return `string that matches ${quote(String(params.pattern))}`;
    case 'format':
      return `string in format ${quote(String(params.format))}`;
    case 'minItems':
      return `array of at least ${limit}`;
    case 'maxItems':
    case 'items':
    case 'additionalItems':
    case 'unevaluatedItems':
      return `array of at most ${String(params.limit ?? params.len)}`;
    case 'uniqueItems':
      return `items that differ (${String(params.j)} and ${String(params.i)} are equal)`;
    case 'minProperties':
      return `object of at least ${count(limit, 'property', 'properties')}`;
    case 'maxProperties':
      return `object of at most ${count(limit, 'property', 'properties')}`;
    case 'false schema':
      return 'nothing';
    default:
      return `a value that fits "${error.keyword}"`;
  }
}

/** The expectation of a whole subschema in a few words; its essential part if it is long. */
export function expectedOf(node: SchemaNode | undefined, tree: SchemaTree, depth = 0): string {
  if (node === undefined || node.schema === true) return 'a value';
  if (node.schema === false) return 'nothing';
  const { schema } = node;
  if ('const' in schema) return literal(schema.const);
  if (schema.enum !== undefined) return choices(schema.enum);
  if (depth < 3) {
    if (node.target !== undefined) return expectedOf(node.target, tree, depth + 1);
    for (const keyword of ['anyOf', 'oneOf'] as const) {
      const names = branches(node, keyword, tree).map((branch) => expectedOf(branch, tree, depth + 1));
      if (names.length > 0) return listWords([...new Set(names)], ' or ');
    }
  }
  if (schema.type === 'object' || (schema.type === undefined && (schema.properties ?? schema.required) !== undefined))
    return expectedObject(schema);
  if (schema.type === undefined || schema.type === 'string') {
    if (typeof schema.format === 'string') return `string in format ${quote(schema.format)}`;
    if (typeof schema.pattern === 'string') return `string that matches ${quote(schema.pattern)}`;
  }
  if (Array.isArray(schema.type)) return schema.type.join(' or ');
  return typeof schema.type === 'string' ? schema.type : 'a value that fits its schema';
}

/** The subschemas in a keyword's list. */
export function branches(node: SchemaNode, keyword: string, tree: SchemaTree): readonly SchemaNode[] {
  const found: SchemaNode[] = [];
  for (let branch = tree.nodes.get(`${node.at}/${keyword}/0`); branch !== undefined; ) {
    found.push(branch);
    branch = tree.nodes.get(`${node.at}/${keyword}/${found.length}`);
  }
  return found;
}

/** Names fixed values first, which distinguish objects best (`object with kind "circle"`), then required properties. */
function expectedObject({ properties, required }: JsonObject): string {
  const fixed = isObject(properties)
    ? Object.entries(properties).flatMap(([name, schema]) =>
        isObject(schema) && 'const' in schema ? [`${name} ${literal(schema.const)}`] : [],
      )
    : [];
  if (fixed.length > 0) return `object with ${listWords(fixed)}`;
  if (Array.isArray(required) && required.length > 0) return `object with ${listWords(required.map(literal))}`;
  return 'object';
}

function count(limit: string, one: string, many = `${one}s`): string {
  return `${limit} ${limit === '1' ? one : many}`;
}

function choices(values: unknown): string {
  return Array.isArray(values)
    ? values.length === 1
      ? literal(values[0])
      : `one of ${listWords(values.map(literal))}`
    : 'a value';
}

/** The keywords of both dialects as a table: the shape of each keyword's value, and where subschemas nest in it. */
import { isObject } from '../protocol/json.ts';

/** The supported JSON Schema dialects (MCP 2026-07-28 basic, "Schema Dialect"). */
export type SchemaDialect = 'draft-2020-12' | 'draft-07';

/** Each dialect's `$schema`, without the empty fragment that draft-07 writes. */
export const SCHEMA_DIALECTS: ReadonlyMap<string, SchemaDialect> = new Map([
  ['https://json-schema.org/draft/2020-12/schema', 'draft-2020-12'],
  ['http://json-schema.org/draft-07/schema', 'draft-07'],
]);

interface Rule {
  /** Completes "must be …". */
  readonly says: string;
  readonly fits: (value: unknown) => boolean;
}

const TYPES: ReadonlySet<unknown> = new Set(['array', 'boolean', 'integer', 'null', 'number', 'object', 'string']);
const ANCHOR = /^[A-Za-z_][-A-Za-z0-9._]*$/;

const isNames = (value: unknown): boolean =>
  Array.isArray(value) && value.every((name) => typeof name === 'string') && new Set(value).size === value.length;
const isCount = (value: unknown): boolean => typeof value === 'number' && Number.isInteger(value) && value >= 0;
const isType = (value: unknown): boolean =>
  TYPES.has(value) ||
  (isNames(value) && Array.isArray(value) && value.length > 0 && value.every((type) => TYPES.has(type)));
const isList = (value: unknown): boolean => Array.isArray(value) && value.length > 0;

/** True if every peer can compile the pattern: JSON Schema patterns are Unicode regular expressions. */
export function isPattern(value: unknown): boolean {
  if (typeof value !== 'string') return false;
  try {
    new RegExp(value, 'u');
    return true;
  } catch {
    return false;
  }
}

const SHAPES = {
  schema: {
    says: 'a schema (an object, true or false)',
    fits: (value) => isObject(value) || typeof value === 'boolean',
  },
  schemas: { says: 'a list of at least one schema', fits: isList },
  schemasByName: { says: 'an object of schemas', fits: isObject },
  schemasByPattern: {
    says: 'an object of schemas whose keys are regular expressions for the "u" flag',
    fits: (value) => isObject(value) && Object.keys(value).every(isPattern),
  },
  schemaOrSchemas: {
    says: 'a schema or a list of at least one schema',
    fits: (value) => isObject(value) || typeof value === 'boolean' || isList(value),
  },
  schemasOrNamesByName: {
    says: 'an object whose values are schemas or lists of different property names',
    fits: (value) => isObject(value) && Object.values(value).every((each) => !Array.isArray(each) || isNames(each)),
  },
  names: { says: 'a list of different strings', fits: isNames },
  namesByName: {
    says: 'an object of lists of different property names',
    fits: (value) => isObject(value) && Object.values(value).every(isNames),
  },
  flagsByName: {
    says: 'an object of true and false',
    fits: (value) => isObject(value) && Object.values(value).every((flag) => typeof flag === 'boolean'),
  },
  text: { says: 'a string', fits: (value) => typeof value === 'string' },
  anchor: {
    says: 'a name of letters, digits, "-", "_" and "." that begins with a letter or "_"',
    fits: (value) => typeof value === 'string' && ANCHOR.test(value),
  },
  identifier: {
    says: 'a URI reference without a fragment',
    fits: (value) => typeof value === 'string' && /^[^#]*#?$/.test(value),
  },
  pattern: { says: 'a regular expression that compiles with the "u" flag', fits: isPattern },
  flag: { says: 'true or false', fits: (value) => typeof value === 'boolean' },
  number: { says: 'a number', fits: (value) => typeof value === 'number' },
  positive: { says: 'a number above 0', fits: (value) => typeof value === 'number' && value > 0 },
  count: { says: 'an integer of at least 0', fits: isCount },
  values: { says: 'a list', fits: Array.isArray },
  // Both meta-schemas accept an empty enum ("SHOULD have at least one element"), but no value could fit it.
  choices: { says: 'a list of at least one value', fits: isList },
  types: {
    says: `one of ${[...TYPES].map((type) => `"${type}"`).join(', ')}, or a list of different ones`,
    fits: isType,
  },
} as const satisfies Record<string, Rule>;

/** The name of a value's shape. */
export type Shape = keyof typeof SHAPES;

/** The rule of a shape. */
export function shapeRule(shape: Shape): Rule {
  return SHAPES[shape];
}

const BOTH = {
  $schema: 'text',
  $ref: 'text',
  $comment: 'text',
  title: 'text',
  description: 'text',
  readOnly: 'flag',
  examples: 'values',
  multipleOf: 'positive',
  maximum: 'number',
  exclusiveMaximum: 'number',
  minimum: 'number',
  exclusiveMinimum: 'number',
  maxLength: 'count',
  minLength: 'count',
  pattern: 'pattern',
  maxItems: 'count',
  minItems: 'count',
  uniqueItems: 'flag',
  contains: 'schema',
  maxProperties: 'count',
  minProperties: 'count',
  required: 'names',
  additionalProperties: 'schema',
  // draft-07 does not define $defs, but schemas that declare draft-07 use it, and their $ref points into it.
  $defs: 'schemasByName',
  definitions: 'schemasByName',
  properties: 'schemasByName',
  patternProperties: 'schemasByPattern',
  dependencies: 'schemasOrNamesByName',
  propertyNames: 'schema',
  enum: 'choices',
  type: 'types',
  format: 'text',
  contentMediaType: 'text',
  contentEncoding: 'text',
  if: 'schema',
  // biome-ignore lint/suspicious/noThenProperty: the keyword of JSON Schema; nothing awaits this table.
  then: 'schema',
  else: 'schema',
  allOf: 'schemas',
  anyOf: 'schemas',
  oneOf: 'schemas',
  not: 'schema',
} as const satisfies Record<string, Shape>;

const DRAFT_07 = {
  ...BOTH,
  $id: 'text',
  items: 'schemaOrSchemas',
  additionalItems: 'schema',
} as const satisfies Record<string, Shape>;

const DRAFT_2020_12 = {
  ...BOTH,
  $id: 'identifier',
  $anchor: 'anchor',
  $dynamicRef: 'text',
  $dynamicAnchor: 'anchor',
  $vocabulary: 'flagsByName',
  prefixItems: 'schemas',
  items: 'schema',
  dependentSchemas: 'schemasByName',
  dependentRequired: 'namesByName',
  unevaluatedItems: 'schema',
  unevaluatedProperties: 'schema',
  maxContains: 'count',
  minContains: 'count',
  deprecated: 'flag',
  writeOnly: 'flag',
  contentSchema: 'schema',
} as const satisfies Record<string, Shape>;

/**
 * The shape of each keyword's value. A keyword that is missing here is unknown to the dialect and may have any value.
 */
export const KEYWORDS: { readonly [D in SchemaDialect]: ReadonlyMap<string, Shape> } = {
  'draft-2020-12': new Map(Object.entries(DRAFT_2020_12)),
  'draft-07': new Map(Object.entries(DRAFT_07)),
};

/** Keywords whose subschemas apply to the same value as the schema that contains them. */
export const IN_PLACE: ReadonlySet<string> = new Set([
  'allOf',
  'anyOf',
  'oneOf',
  'not',
  'if',
  'then',
  'else',
  'dependentSchemas',
  'dependencies',
]);

/** Keywords whose subschemas apply only through a reference. */
export const DEFINITION_KEYWORDS: ReadonlySet<string> = new Set(['$defs', 'definitions', 'contentSchema']);

/** Reads a JSON Schema for people: follows its references, names its types, and lists its parts. */
import type { Plain } from '../../../src/inspector/frames.ts';
import { isList, isRecord, member, textOfValue } from '../../../src/inspector/model/plain-values.ts';

export type SchemaObject = { readonly [keyword: string]: Plain };

/** Longest chain of references that is followed. */
const MAX_HOPS = 16;
/** Maximum number of schemas that are searched for an anchor. */
const MAX_SEARCHED = 2_000;

/** A schema behind its references. */
export interface Followed {
  /** Undefined for a reference that leads nowhere, or out of the schema. */
  readonly schema: SchemaObject | undefined;
  /** The references on the way, such as `#/$defs/node`. */
  readonly through: readonly string[];
}

/** Follows the references of a schema within the whole schema. Never reads anything from elsewhere. */
export function follow(root: Plain, schema: Plain | undefined): Followed {
  const through: string[] = [];
  let at = schema;
  while (isRecord(at) && typeof at.$ref === 'string') {
    const { $ref, ...beside } = at;
    if (through.includes($ref) || through.length >= MAX_HOPS) return { schema: undefined, through };
    through.push($ref);
    const target = targetOf(root, $ref);
    // Keywords beside a reference apply as well (JSON Schema 2020-12, section 8.2.3.1).
    at = isRecord(target) ? { ...target, ...beside } : undefined;
  }
  if (at === true) return { schema: {}, through };
  return { schema: isRecord(at) ? at : undefined, through };
}

function targetOf(root: Plain, reference: string): Plain | undefined {
  if (reference === '#') return root;
  if (reference.startsWith('#/')) {
    let at: Plain | undefined = root;
    for (const part of reference.slice(2).split('/')) {
      const name = decoded(part).replaceAll('~1', '/').replaceAll('~0', '~');
      at = isList(at) ? at[Number(name)] : member(at, name);
    }
    return at;
  }
  return reference.startsWith('#') ? anchored(root, reference.slice(1)) : undefined;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function anchored(root: Plain, anchor: string): Plain | undefined {
  const open: Plain[] = [root];
  for (let searched = 0; open.length > 0 && searched < MAX_SEARCHED; searched += 1) {
    const next = open.shift();
    if (isRecord(next) && next.$anchor === anchor) return next;
    if (isList(next)) open.push(...next);
    else if (isRecord(next)) open.push(...Object.values(next));
  }
  return undefined;
}

/** One part of a schema: a property, the items of a list, or an alternative. */
export interface SchemaPart {
  readonly name: string;
  /** `property`: the name of a member. `role`: what the part is, such as "each item". */
  readonly kind: 'property' | 'role';
  readonly required: boolean;
  readonly schema: Plain;
}

const BRANCHES = [
  ['oneOf', 'one of'],
  ['anyOf', 'any of'],
  ['allOf', 'and'],
] as const;
const SINGLE = [
  ['not', 'not'],
  ['if', 'if'],
  ['then', 'then'],
  ['else', 'else'],
  ['contains', 'contains'],
  ['propertyNames', 'names of members'],
] as const;

/** The parts of a schema, in the order in which people read them. */
export function partsOf(root: Plain, schema: SchemaObject): readonly SchemaPart[] {
  const parts: SchemaPart[] = [];
  const add = (name: string, kind: SchemaPart['kind'], part: Plain | undefined, required = false): void => {
    if (part !== undefined) parts.push({ name, kind, required, schema: part });
  };
  const needed = new Set(isList(schema.required) ? schema.required : []);
  for (const [name, part] of Object.entries(isRecord(schema.properties) ? schema.properties : {}))
    add(name, 'property', part, needed.has(name));
  for (const [pattern, part] of Object.entries(isRecord(schema.patternProperties) ? schema.patternProperties : {}))
    add(`members like ${pattern}`, 'role', part);
  if (isRecord(schema.additionalProperties)) add('other members', 'role', schema.additionalProperties);
  for (const [index, part] of (isList(schema.prefixItems) ? schema.prefixItems : []).entries())
    add(`item ${index + 1}`, 'role', part);
  // A list of plain values is described by its type.
  const { schema: items } = follow(root, schema.items);
  if (items && (partsOf(root, withoutLists(items)).length > 0 || items.description !== undefined))
    add('each item', 'role', schema.items);
  for (const [keyword, role] of BRANCHES) {
    const branches = schema[keyword];
    if (isList(branches) && constantsOf(schema) === undefined)
      for (const [index, part] of branches.entries())
        add(branches.length > 1 ? `${role} · ${index + 1}` : role, 'role', part);
  }
  for (const [keyword, role] of SINGLE) if (isRecord(schema[keyword])) add(role, 'role', schema[keyword]);
  return parts;
}

/** A list of lists would be searched to its end, which a recursive schema does not have. */
function withoutLists({ items: _, ...rest }: SchemaObject): SchemaObject {
  return isList(rest.prefixItems) ? { ...rest, prefixItems: [] } : rest;
}

/** A value to choose, and its title. */
export interface Constant {
  readonly value: Plain;
  readonly title: string | undefined;
}

/** The values to choose from: of `enum`, of `const`, or of alternatives that are constants. */
export function constantsOf(schema: SchemaObject): readonly Constant[] | undefined {
  const { enum: values, enumNames, oneOf, anyOf } = schema;
  if (isList(values))
    return values.map((value, index) => ({
      value,
      title: isList(enumNames) ? textOfValue(enumNames[index]) : undefined,
    }));
  if ('const' in schema) return [{ value: schema.const ?? null, title: textOfValue(schema.title) }];
  const branches = isList(oneOf) ? oneOf : isList(anyOf) ? anyOf : [];
  if (branches.length === 0) return undefined;
  const constants: Constant[] = [];
  for (const branch of branches) {
    if (!isRecord(branch) || !('const' in branch)) return undefined;
    constants.push({ value: branch.const ?? null, title: textOfValue(branch.title) });
  }
  return constants;
}

/** The type, as people name it: `string`, `list of numbers`, `string or null`. */
export function typeWord(root: Plain, schema: SchemaObject, depth = 0): string {
  const { type, format } = schema;
  const names = isList(type) ? type.map(String) : typeof type === 'string' ? [type] : [];
  if (names.length === 0) {
    const values = constantsOf(schema);
    if (values) return [...new Set(values.map(({ value }) => (value === null ? 'null' : typeof value)))].join(' or ');
    if (isRecord(schema.properties)) names.push('object');
    else if (schema.items !== undefined || isList(schema.prefixItems)) names.push('array');
    else if (isList(schema.oneOf) || isList(schema.anyOf)) return 'alternatives';
    else return schema.not === undefined && schema.allOf === undefined ? 'anything' : '';
  }
  return names
    .map((name) => {
      if (name !== 'array') return typeof format === 'string' && name === 'string' ? `${name}, ${format}` : name;
      const { schema: items } = follow(root, schema.items);
      const inner = items && depth < 3 ? typeWord(root, items, depth + 1) : '';
      return inner === '' || inner === 'anything' ? 'list' : `list of ${inner}`;
    })
    .join(' or ');
}

const LIMITS = [
  ['minimum', '≥'],
  ['exclusiveMinimum', '>'],
  ['maximum', '≤'],
  ['exclusiveMaximum', '<'],
  ['multipleOf', 'multiple of'],
  ['minLength', 'length ≥'],
  ['maxLength', 'length ≤'],
  ['minItems', 'items ≥'],
  ['maxItems', 'items ≤'],
  ['minProperties', 'members ≥'],
  ['maxProperties', 'members ≤'],
  ['pattern', 'like'],
] as const;

/** The bounds of a value, as short texts. The safe integers, which zod adds to every integer, are no bound. */
export function limitsOf(schema: SchemaObject): readonly string[] {
  const found: string[] = [];
  for (const [keyword, word] of LIMITS) {
    const value = schema[keyword];
    if ((typeof value !== 'number' && typeof value !== 'string') || Math.abs(Number(value)) === Number.MAX_SAFE_INTEGER)
      continue;
    found.push(`${word} ${value}`);
  }
  const known = isRecord(schema.properties) ? schema.properties : {};
  for (const name of isList(schema.required) ? schema.required.map(String) : [])
    if (!Object.hasOwn(known, name)) found.push(`requires ${name}`);
  if (schema.uniqueItems === true) found.push('no duplicates');
  if (schema.deprecated === true) found.push('deprecated');
  if (schema.additionalProperties === false) found.push('no other members');
  return found;
}

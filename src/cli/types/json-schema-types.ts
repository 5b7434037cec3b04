/** Writes JSON Schemas as TypeScript types, for `troupe types`. What it does not follow is wider than the schema, and never narrower. */
import { isObject } from '../../core/protocol/json.ts';
import { writeExact } from '../../core/protocol/json-text.ts';
import { visibleLine } from '../../core/protocol/visible-text.ts';
import { resolveReference } from '../../gateway/tool-signature.ts';

/** Schemas inside schemas, and schemas in all of one tool, that are written; deeper and further ones are any JSON value. */
const MAX_DEPTH = 24;
const MAX_SCHEMAS = 3_000;
/** Values of an `enum` that are written; a longer one is the type of its values. */
const MAX_LITERALS = 500;
/** The longest comment, in characters. */
const MAX_COMMENT = 200;

type Schema = Readonly<Record<string, unknown>>;

/** The position of a schema in the text. */
interface Place {
  readonly indent: string;
  readonly depth: number;
  /** The references that lead here without a member between: a type must not be itself. Undefined below a member. */
  readonly bare: readonly string[] | undefined;
}

/** The types of one schema with its references, each of which becomes a named type. */
export class SchemaTypes {
  readonly #root: unknown;
  readonly #prefix: string;
  readonly #writer: 'program' | 'server';
  /** The type of any JSON value. */
  readonly #any: string;
  readonly #taken: Set<string>;
  readonly #named = new Map<string, string>();
  readonly #declarations: string[] = [];
  #left = MAX_SCHEMAS;

  /**
   * @param prefix of the names of its references, such as `SearchInput`
   * @param writer of the values: a program may write `undefined` for an absent member, and any object for any value
   * @param taken the names of the file, to which it adds its own
   */
  constructor(root: unknown, prefix: string, writer: 'program' | 'server', taken: Set<string>) {
    this.#root = root;
    this.#prefix = prefix;
    this.#writer = writer;
    this.#any = writer === 'program' ? 'unknown' : 'Json';
    this.#taken = taken;
  }

  /** The type of the whole schema. */
  type(indent: string): string {
    return this.#type(this.#root, { indent, depth: 0, bare: [] });
  }

  /** The declarations of the named types, after {@link type}. */
  get declarations(): readonly string[] {
    return this.#declarations;
  }

  #type(schema: unknown, place: Place): string {
    if (schema === false) return 'never';
    this.#left -= 1;
    if (!isObject(schema) || place.depth > MAX_DEPTH || this.#left < 0) return this.#any;
    const inner = { ...place, depth: place.depth + 1 };
    const parts: string[] = [];
    const { $ref, const: constant, enum: values, anyOf, oneOf, allOf, nullable, ...own } = schema;
    if (typeof $ref === 'string') parts.push(this.#reference($ref, inner));
    if ('const' in schema) parts.push(this.#literal(constant, place));
    else if (Array.isArray(values) && values.length <= MAX_LITERALS)
      parts.push(union(values.map((value) => this.#literal(value, place))));
    else parts.push(this.#own(Array.isArray(values) ? { type: typesOf(values) } : own, inner));
    for (const alternatives of [anyOf, oneOf])
      if (Array.isArray(alternatives)) parts.push(union(alternatives.map((each) => this.#type(each, inner))));
    if (Array.isArray(allOf)) for (const each of allOf) parts.push(this.#type(each, inner));
    const all = [...new Set(parts)].filter((part) => part !== this.#any);
    const type = all.length > 1 ? all.map(grouped).join(' & ') : (all[0] ?? this.#any);
    // OpenAPI 3.0.
    return nullable === true ? union([type, 'null']) : type;
  }

  /** A reference is a name, unless nothing is between it and the type that refers. */
  #reference($ref: string, place: Place): string {
    const found = resolveReference($ref, this.#root);
    if (found === undefined || place.bare?.includes($ref)) return this.#any;
    if (place.bare) return this.#type(found, { ...place, bare: [...place.bare, $ref] });
    const known = this.#named.get($ref);
    if (known !== undefined) return known;
    const name = freeName(`${this.#prefix}${typeName($ref.split('/').at(-1) ?? '', 'Root')}`, this.#taken);
    this.#named.set($ref, name);
    const type = this.#type(found, { indent: '', depth: place.depth, bare: [$ref] });
    this.#declarations.push(
      `${comment(isObject(found) ? found.description : undefined, '')}export type ${name} = ${type};\n`,
    );
    return name;
  }

  /** The type of the keywords of one schema, without its compositions. */
  #own(schema: Schema, place: Place): string {
    const { type } = schema;
    if (Array.isArray(type)) return union(type.map((each) => this.#own({ ...schema, type: each }, place)));
    switch (type) {
      case 'string':
      case 'number':
      case 'boolean':
      case 'null':
        return type;
      case 'integer':
        return 'number';
      case 'array':
        return this.#array(schema, place);
      case 'object':
        return this.#object(schema, place);
      default:
        if (isObject(schema.properties)) return this.#object(schema, place);
        return schema.items === undefined && schema.prefixItems === undefined ? this.#any : this.#array(schema, place);
    }
  }

  #array({ items, prefixItems, additionalItems, minItems }: Schema, { indent, depth }: Place): string {
    const inside: Place = { indent, depth, bare: undefined };
    // 2020-12 `prefixItems`, draft-07 `items` as a list.
    const first = Array.isArray(prefixItems) ? prefixItems : Array.isArray(items) ? items : undefined;
    if (!first) return `readonly ${grouped(this.#type(items, inside))}[]`;
    const least = typeof minItems === 'number' ? minItems : 0;
    const more = Array.isArray(prefixItems) ? items : additionalItems;
    const members = first.map((each, at) => `${grouped(this.#type(each, inside))}${at < least ? '' : '?'}`);
    if (more !== false) members.push(`...${grouped(this.#type(more, inside))}[]`);
    return `readonly [${members.join(', ')}]`;
  }

  #object(schema: Schema, { indent, depth }: Place): string {
    const { properties, required, additionalProperties: others, patternProperties } = schema;
    const deeper = `${indent}  `;
    const inside: Place = { indent: deeper, depth, bare: undefined };
    const names = new Set(Array.isArray(required) ? required.filter((name) => typeof name === 'string') : []);
    const known = isObject(properties) ? properties : {};
    const lines = Object.entries(known).map(([name, member]) => {
      const about = comment(isObject(member) ? member.description : undefined, deeper);
      const type = this.#type(member, inside);
      if (names.has(name)) return `${about}${deeper}readonly ${key(name)}: ${type};`;
      return `${about}${deeper}readonly ${key(name)}?: ${this.#writer === 'program' ? union([type, 'undefined']) : type};`;
    });
    for (const name of names)
      if (!Object.hasOwn(known, name)) lines.push(`${deeper}readonly ${key(name)}: ${this.#any};`);
    // Beside known members an index signature would accept each mistyped name.
    if (lines.length > 0) return `{\n${lines.join('\n')}\n${indent}}`;
    const other =
      patternProperties !== undefined ? this.#any : others === undefined ? this.#any : this.#type(others, inside);
    return `{ readonly [name: string]: ${other} }`;
  }

  #literal(value: unknown, place: Place): string {
    if (typeof value === 'number') return Number.isFinite(value) ? String(value) : 'number';
    if (Array.isArray(value)) return `readonly [${value.map((each) => this.#literal(each, place)).join(', ')}]`;
    if (!isObject(value)) return writeExact(value);
    return `{ ${Object.entries(value)
      .map(([name, each]) => `readonly ${key(name)}: ${this.#literal(each, place)}`)
      .join('; ')} }`;
  }
}

/** The types of values, as the keyword `type` names them. */
function typesOf(values: readonly unknown[]): readonly string[] {
  return [...new Set(values.map((value) => (value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value)))];
}

function union(types: readonly string[]): string {
  const all = [...new Set(types)];
  return all.find((type) => type === 'unknown' || type === 'Json') ?? (all.join(' | ') || 'never');
}

/** A type that others may stand beside: with parentheses if an operator is outside of its braces and texts. */
function grouped(type: string): string {
  const outside = type.replace(/"(?:[^"\\]|\\.)*"|\/\*.*?\*\//g, '""');
  let depth = 0;
  for (const [at, character] of [...outside].entries()) {
    if ('{[('.includes(character)) depth += 1;
    else if ('}])'.includes(character)) depth -= 1;
    else if (depth === 0 && (character === '|' || character === '&' || (at === 0 && outside.startsWith('readonly '))))
      return `(${type})`;
  }
  return type;
}

/** The name of a member. Each but an identifier is a text. */
export function key(name: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(name) ? name : writeExact(name);
}

/** A description as a comment, which no text of a server can end, or turn into a directive. */
export function comment(text: unknown, indent: string): string {
  if (typeof text !== 'string') return '';
  const [line = ''] = visibleLine(text.trim().split(/[\r\n\u2028\u2029]/)[0] ?? '').split('\n');
  const safe = line.replace(/^[@*/\s]+/, '').replaceAll('*/', '*\\/');
  if (safe === '') return '';
  return `${indent}/** ${safe.length > MAX_COMMENT ? `${safe.slice(0, MAX_COMMENT)}…` : safe} */\n`;
}

/** A name for a type, such as `GetUser` for `get-user`. @param fallback for a text without letters */
export function typeName(text: string, fallback: string): string {
  const words = text.split(/[^A-Za-z0-9]+/).filter((word) => word !== '');
  const name = words
    .map((word) => `${word.slice(0, 1).toUpperCase()}${word.slice(1)}`)
    .join('')
    .slice(0, 60);
  return /^[A-Za-z]/.test(name) ? name : `${fallback}${name}`;
}

/** The first of `Name`, `Name2`, `Name3` that is free. It is taken afterwards. */
export function freeName(name: string, taken: Set<string>): string {
  let free = name;
  for (let count = 2; taken.has(free); count += 1) free = `${name}${count}`;
  taken.add(free);
  return free;
}

/**
 * Writes JSON Schemas as TypeScript types: on one line, for people and models, or as the declarations of a file. What it does not
 * follow is wider than the schema, and never narrower.
 */
import { isObject } from '../protocol/json.ts';
import { digitsOf, writeExact } from '../protocol/json-text.ts';
import { visibleLine } from '../protocol/visible-text.ts';
import { anyShape, MAX_SHAPE_DEPTH, MAX_SHAPE_SCHEMAS, resolveReference, shapesOf } from './object-shapes.ts';

interface Limits {
  /** Schemas inside schemas, and schemas in all; deeper and further ones are any JSON value. */
  readonly depth: number;
  readonly schemas: number;
  /** Values of an `enum`. */
  readonly literals: number;
}

const LINE: Limits = { depth: MAX_SHAPE_DEPTH, schemas: MAX_SHAPE_SCHEMAS, literals: 12 };
const FILE: Limits = { depth: 24, schemas: 3_000, literals: 500 };
/** The longest comment, in characters. */
const MAX_COMMENT = 200;

type Schema = Readonly<Record<string, unknown>>;

/** The file in which types are declared. */
interface TypesFile {
  /** The beginning of the names of references, such as `SearchInput`. */
  readonly prefix: string;
  /** The writer of the values: a program may write `undefined` for an absent member, and any object for any value. */
  readonly writer: 'program' | 'server';
  /** The names of the file, to which the types add their own. */
  readonly taken: Set<string>;
}

/** The position of a schema in the text. */
interface Place {
  readonly indent: string;
  readonly depth: number;
  /** The references that lead here without a member between: a type must not be itself. Undefined below a member. */
  readonly bare: readonly string[] | undefined;
}

const TOP: Place = { indent: '', depth: 0, bare: [] };

/** Writes a schema on one line. @param root the schema that local `$ref`s refer to */
export function typeOf(schema: unknown, root: unknown = schema): string {
  return new SchemaTypes(root).type(schema);
}

/** The members of an object schema on one line each, in the order of the schema. @example memberTypes(schema) // ['q: string', 'limit?: number'] */
export function memberTypes(schema: unknown): readonly string[] {
  return new SchemaTypes(schema).members(schema);
}

/** The types of one schema: with its references written out on one line, or as named types of a file. */
export class SchemaTypes {
  readonly #root: unknown;
  readonly #file: TypesFile | undefined;
  readonly #limits: Limits;
  /** The type of any JSON value. */
  readonly #any: string;
  readonly #named = new Map<string, string>();
  readonly #declarations: string[] = [];
  readonly #budget: { left: number };

  /** @param file for declarations; undefined for one line */
  constructor(root: unknown, file?: TypesFile) {
    this.#root = root;
    this.#file = file;
    this.#limits = file ? FILE : LINE;
    this.#any = file?.writer === 'server' ? 'Json' : 'unknown';
    this.#budget = { left: this.#limits.schemas };
  }

  /** The type of a schema. @param indent of the line on which it stands */
  type(schema = this.#root, indent = ''): string {
    return this.#type(schema, { ...TOP, indent });
  }

  /** The members of an object on one line each. */
  members(schema: unknown, place = TOP): readonly string[] {
    const { members, required } = anyShape(shapesOf(schema, this.#root, this.#budget));
    const inside = { ...place, bare: undefined };
    return [...members].map(([name, schemas]) => {
      const types = schemas.map((each) => this.#type(each, inside)).filter((type) => type !== this.#any);
      return `${this.#key(name)}${required.has(name) ? '' : '?'}: ${union(types.length === 0 ? [this.#any] : types)}`;
    });
  }

  /** The declarations of the named types, after {@link type}. */
  get declarations(): readonly string[] {
    return this.#declarations;
  }

  #type(schema: unknown, place: Place): string {
    if (schema === false) return 'never';
    this.#budget.left -= 1;
    if (!isObject(schema) || place.depth > this.#limits.depth || this.#budget.left < 0) return this.#any;
    const inner = { ...place, depth: place.depth + 1 };
    const parts: string[] = [];
    const { $ref, enum: values, anyOf, oneOf, allOf, nullable, ...own } = schema;
    const alternatives = [anyOf, oneOf].filter((each) => Array.isArray(each));
    // On one line, an object has the members of its compositions.
    const isWhole = !this.#file && (isObject(own.properties) || (own.type === 'object' && alternatives.length === 0));
    if (typeof $ref === 'string' && !isWhole) parts.push(this.#reference($ref, inner));
    if ('const' in schema) parts.push(this.#literal(schema, 'const'));
    else if (Array.isArray(values)) parts.push(this.#enumeration(values, inner));
    else parts.push(this.#own(isWhole ? schema : own, inner));
    if (!isWhole) {
      for (const each of alternatives) parts.push(union(each.map((one) => this.#type(one, inner))));
      if (Array.isArray(allOf)) for (const each of allOf) parts.push(this.#type(each, inner));
    }
    let all = [...new Set(parts)].filter((part) => part !== this.#any);
    // Beside others it says nothing.
    if (all.length > 1) all = all.filter((part) => part !== 'object');
    const type = all.length > 1 ? all.map(grouped).join(' & ') : (all[0] ?? this.#any);
    // OpenAPI 3.0.
    return nullable === true ? union([type, 'null']) : type;
  }

  /** A reference of a file is a name, unless nothing is between it and the type that refers. */
  #reference($ref: string, place: Place): string {
    const found = resolveReference($ref, this.#root);
    if (found === undefined || place.bare?.includes($ref)) return this.#any;
    if (!this.#file || place.bare) return this.#type(found, { ...place, bare: place.bare && [...place.bare, $ref] });
    const known = this.#named.get($ref);
    if (known !== undefined) return known;
    const { prefix, taken } = this.#file;
    const name = freeName(`${prefix}${typeName($ref.split('/').at(-1) ?? '', 'Root')}`, taken);
    this.#named.set($ref, name);
    const type = this.#type(found, { indent: '', depth: place.depth, bare: [$ref] });
    this.#declarations.push(
      `${comment(isObject(found) ? found.description : undefined, '')}export type ${name} = ${type};\n`,
    );
    return name;
  }

  #enumeration(values: readonly unknown[], place: Place): string {
    const { literals } = this.#limits;
    if (values.length > literals && this.#file) return this.#own({ type: typesOf(values) }, place);
    const written = values.slice(0, literals).map((_, at) => this.#literal(values, String(at)));
    const more = values.length - literals;
    return more > 0 ? `${written.join(' | ')} | /* ${more} more */ never` : union(written);
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
    const readonly = this.#file ? 'readonly ' : '';
    // 2020-12 `prefixItems`, draft-07 `items` as a list.
    const first = Array.isArray(prefixItems) ? prefixItems : Array.isArray(items) ? items : undefined;
    if (!first) return `${readonly}${grouped(this.#type(items, inside))}[]`;
    const least = typeof minItems === 'number' ? minItems : 0;
    const more = Array.isArray(prefixItems) ? items : additionalItems;
    const members = first.map((each, at) => `${grouped(this.#type(each, inside))}${at < least ? '' : '?'}`);
    if (more !== false) members.push(`...${grouped(this.#type(more, inside))}[]`);
    return `${readonly}[${members.join(', ')}]`;
  }

  #object(schema: Schema, { indent, depth }: Place): string {
    const { properties, required, additionalProperties: others, patternProperties } = schema;
    const deeper = `${indent}  `;
    const inside: Place = { indent: deeper, depth, bare: undefined };
    const isOpen = patternProperties !== undefined || others === undefined;
    if (!this.#file) {
      const members = this.members(schema, inside);
      if (members.length > 0) return `{ ${members.join('; ')} }`;
      const other = isOpen ? this.#any : this.#type(others, inside);
      return other === 'never' ? '{}' : other === this.#any ? 'object' : `Record<string, ${other}>`;
    }
    const names = new Set(Array.isArray(required) ? required.filter((name) => typeof name === 'string') : []);
    const known = isObject(properties) ? properties : {};
    const { writer } = this.#file;
    const lines = Object.entries(known).map(([name, member]) => {
      const about = comment(isObject(member) ? member.description : undefined, deeper);
      const type = this.#type(member, inside);
      if (names.has(name)) return `${about}${deeper}readonly ${key(name)}: ${type};`;
      return `${about}${deeper}readonly ${key(name)}?: ${writer === 'program' ? union([type, 'undefined']) : type};`;
    });
    for (const name of names)
      if (!Object.hasOwn(known, name)) lines.push(`${deeper}readonly ${key(name)}: ${this.#any};`);
    // Beside known members an index signature would accept each mistyped name.
    if (lines.length > 0) return `{\n${lines.join('\n')}\n${indent}}`;
    return `{ readonly [name: string]: ${isOpen ? this.#any : this.#type(others, inside)} }`;
  }

  /** A value in a schema as a literal. One line has the digits of a long number. */
  #literal(container: object, at: string): string {
    const value: unknown = Reflect.get(container, at);
    if (typeof value === 'number')
      return (
        (this.#file ? undefined : digitsOf(container, at, value)) ?? (Number.isFinite(value) ? String(value) : 'number')
      );
    if (!this.#file) return typeof value === 'string' ? quoted(value) : writeExact(value);
    if (Array.isArray(value))
      return `readonly [${value.map((_, each) => this.#literal(value, String(each))).join(', ')}]`;
    if (!isObject(value)) return writeExact(value);
    const members = Object.keys(value).map((name) => `readonly ${key(name)}: ${this.#literal(value, name)}`);
    return `{ ${members.join('; ')} }`;
  }

  #key(name: string): string {
    return this.#file || IDENTIFIER.test(name) ? key(name) : quoted(name);
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
  const outside = type.replace(/"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\/\*.*?\*\//g, '""');
  let depth = 0;
  for (const [at, character] of [...outside].entries()) {
    if ('{[('.includes(character)) depth += 1;
    else if ('}])'.includes(character)) depth -= 1;
    else if (depth === 0 && (character === '|' || character === '&' || (at === 0 && outside.startsWith('readonly '))))
      return `(${type})`;
  }
  return type;
}

const IDENTIFIER = /^[A-Za-z_$][\w$]*$/;

/** The name of a member. Each but an identifier is a text. */
export function key(name: string): string {
  return IDENTIFIER.test(name) ? name : writeExact(name);
}

/** A text on one line. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "\\'")}'`;
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

/**
 * Writes JSON Schemas as TypeScript types: on one line, for people and models, as the declarations of a file, or as those of functions
 * that a model calls. What it does not follow is wider than the schema, and never narrower.
 */
import { isObject } from '../protocol/json.ts';
import { digitsOf, writeExact } from '../protocol/json-text.ts';
import { visibleJson, visibleLine } from '../protocol/visible-text.ts';
import { sentenceOf } from './first-sentence.ts';
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
const MODEL: Limits = { depth: 24, schemas: 3_000, literals: 20 };
/** The longest comment, in characters; on a member for a model; and the longest default value in one. */
const MAX_COMMENT = 200;
const MAX_MEMBER_COMMENT = 100;
const MAX_DEFAULT = 40;

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

/** The declarations of functions for a model: it reads each character, and may ask for more. */
export interface ModelTypes {
  readonly writer: 'model';
  /** Objects inside objects that are written; a deeper one is `object`. */
  readonly objects: number;
  /** Comments for members: first sentences. */
  readonly comments: boolean;
  readonly shared: SharedTypes;
}

/** The position of a schema in the text. */
interface Place {
  readonly indent: string;
  /** The objects around it. */
  readonly objects: number;
  /** The names of the members that lead to it. */
  readonly path: readonly string[];
  /** The name of the reference that leads to it, and the references around it. */
  readonly name?: string | undefined;
  readonly open: readonly string[];
  readonly depth: number;
  /** The references that lead here without a member between: a type must not be itself. Undefined below a member. */
  readonly bare: readonly string[] | undefined;
}

const TOP: Place = { indent: '', depth: 0, objects: 0, path: [], open: [], bare: [] };

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
  readonly #model: ModelTypes | undefined;
  /** The first object that was too deep. */
  #cut: readonly string[] | undefined;
  readonly #limits: Limits;
  /** The type of any JSON value. */
  readonly #any: string;
  readonly #named = new Map<string, string>();
  readonly #declarations: string[] = [];
  readonly #budget: { left: number };

  /** @param form of declarations; undefined for one line */
  constructor(root: unknown, form?: TypesFile | ModelTypes) {
    this.#root = root;
    this.#file = form?.writer === 'model' ? undefined : form;
    this.#model = form?.writer === 'model' ? form : undefined;
    this.#limits = this.#model ? MODEL : form ? FILE : LINE;
    this.#any = form?.writer === 'server' ? 'Json' : 'unknown';
    this.#budget = { left: this.#limits.schemas };
  }

  /** The type of a schema. @param indent of the line on which it stands */
  type(schema = this.#root, indent = ''): string {
    return this.#type(schema, { ...TOP, indent });
  }

  /** The members of an object on one line each. */
  members(schema: unknown, place = TOP): readonly string[] {
    const { members, required } = anyShape(shapesOf(schema, this.#root, this.#budget));
    return [...members].map(([name, schemas]) => {
      const inside = {
        ...place,
        ...{ bare: undefined, name: undefined, objects: place.objects + 1, path: [...place.path, name] },
      };
      const types = schemas.map((each) => this.#type(each, inside)).filter((type) => type !== this.#any);
      return `${this.#key(name)}${required.has(name) ? '' : '?'}: ${union(types.length === 0 ? [this.#any] : types)}`;
    });
  }

  /** The members that lead to the first object that was too deep for a model. */
  get cut(): readonly string[] | undefined {
    return this.#cut;
  }

  /** The declarations of the named types, after {@link type}. */
  get declarations(): readonly string[] {
    return this.#declarations;
  }

  /** A type that is used twice in declarations for a model has a name. */
  #type(schema: unknown, place: Place): string {
    const model = this.#model;
    if (!model || !isObject(schema) || place.objects > model.objects) return this.#written(schema, place);
    const { shared } = model;
    const bare = shared.withoutNull(schema);
    const hint = place.name ?? place.path.at(-1) ?? '';
    const name = shared.named(bare, this.#root, hint, () => this.#written(bare, { ...place, indent: '' }));
    return name === undefined ? this.#written(schema, place) : union(bare === schema ? [name] : [name, 'null']);
  }

  #written(schema: unknown, place: Place): string {
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
    if (this.#model) {
      const isOpen = place.open.includes($ref);
      if (isOpen && !this.#model.shared.isShared(found, this.#root)) return this.#any;
      const name = $ref.split('/').at(-1)?.replaceAll('~1', '/').replaceAll('~0', '~');
      return this.#type(found, { ...place, name, open: [...place.open, $ref] });
    }
    if (!this.#file || place.bare) return this.#type(found, { ...place, bare: place.bare && [...place.bare, $ref] });
    const known = this.#named.get($ref);
    if (known !== undefined) return known;
    const { prefix, taken } = this.#file;
    const name = freeName(`${prefix}${typeName($ref.split('/').at(-1) ?? '', 'Root')}`, taken);
    this.#named.set($ref, name);
    const type = this.#type(found, { ...place, indent: '', bare: [$ref] });
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
    // A model must not take the first values for all.
    if (more > 0 && this.#model) return union([...written, this.#own({ type: typesOf(values) }, place)]);
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

  #array({ items, prefixItems, additionalItems, minItems }: Schema, place: Place): string {
    const inside: Place = { ...place, bare: undefined };
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

  #object(schema: Schema, place: Place): string {
    const { properties, required, additionalProperties: others, patternProperties } = schema;
    const { indent } = place;
    const deeper = `${indent}  `;
    const inside: Place = { ...place, indent: deeper, bare: undefined };
    const isOpen = patternProperties !== undefined || others === undefined;
    if (this.#model && place.objects > this.#model.objects && isObject(properties)) {
      this.#cut ??= place.path;
      return 'object';
    }
    if (!this.#file) {
      const members = this.members(schema, inside);
      const comments = this.#model?.comments ? commentsOf(schema, this.#root) : [];
      if (comments.some((text) => text !== ''))
        return `{\n${members.map((member, at) => `${deeper}${member};${comments[at] ? ` // ${comments[at]}` : ''}\n`).join('')}${indent}}`;
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
    if (this.#model) return visibleJson(value).trimEnd();
    if (!this.#file) return typeof value === 'string' ? quoted(value) : writeExact(value);
    if (Array.isArray(value))
      return `readonly [${value.map((_, each) => this.#literal(value, String(each))).join(', ')}]`;
    if (!isObject(value)) return writeExact(value);
    const members = Object.keys(value).map((name) => `readonly ${key(name)}: ${this.#literal(value, name)}`);
    return `{ ${members.join('; ')} }`;
  }

  #key(name: string): string {
    if (this.#model && !IDENTIFIER.test(name)) return visibleJson(name).trimEnd();
    return this.#file || IDENTIFIER.test(name) ? key(name) : quoted(name);
  }
}

/** The types that several declarations for a model use, or that contain themselves. Each has a name and is written once. */
export class SharedTypes {
  #ids = new Map<string, number>();
  #roots = new Map<unknown, number>();
  #known = new WeakMap<object, number>();
  #bare = new WeakMap<object, Schema>();
  /** The references around the schema that is counted. */
  readonly #open: string[] = [];
  #uses = new Map<number, number>();
  readonly #names = new Map<number, string>();
  readonly #taken = new Set<string>();
  readonly #declarations: string[] = [];
  #left = MAX_COUNTED;

  /** Counts the types in a schema. A type that is found twice is shared. @param isNamed false: the schema itself gets no name */
  count(schema: unknown, root: unknown = schema, isNamed = true): void {
    this.#left -= 1;
    if (!isObject(schema) || this.#left < 0) return;
    const { $ref } = schema;
    if (typeof $ref === 'string') {
      const found = resolveReference($ref, root);
      if (this.#open.includes($ref)) {
        if (isObject(found) && isNameable(found)) this.#use(found, root);
      } else {
        this.#open.push($ref);
        this.count(found, root);
        this.#open.pop();
      }
    }
    if (isNamed && isNameable(schema) && this.#use(schema, root) > 1) return;
    const { properties, items, prefixItems, additionalProperties, anyOf, oneOf, allOf } = schema;
    const lists = [prefixItems, anyOf, oneOf, allOf].flatMap((list) => (Array.isArray(list) ? list : []));
    for (const each of [
      ...Object.values(isObject(properties) ? properties : {}),
      items,
      additionalProperties,
      ...lists,
    ])
      this.count(each, root);
  }

  /** The same counts without the names: for another text of the same schemas. */
  unnamed(): SharedTypes {
    const other = new SharedTypes();
    other.#ids = this.#ids;
    other.#roots = this.#roots;
    other.#known = this.#known;
    other.#bare = this.#bare;
    other.#uses = this.#uses;
    return other;
  }

  /** @returns the number of uses so far */
  #use(schema: Schema, root: unknown): number {
    const id = this.#idOf(this.withoutNull(schema), root);
    const uses = (this.#uses.get(id) ?? 0) + 1;
    this.#uses.set(id, uses);
    return uses;
  }

  /** The schema without `null`, which stands beside the name of its type. */
  withoutNull(schema: Schema): Schema {
    const { type, nullable, ...rest } = schema;
    const isNullable = nullable === true || (Array.isArray(type) && type.includes('null'));
    if (!isNullable || !isNameable(schema)) return schema;
    const known = this.#bare.get(schema);
    if (known) return known;
    const others = Array.isArray(type) ? type.filter((each) => each !== 'null') : [type];
    const bare = { ...rest, type: others.length === 1 ? others[0] : others };
    this.#bare.set(schema, bare);
    return bare;
  }

  /** True for a type that has a name. */
  isShared(schema: unknown, root: unknown): boolean {
    if (!isObject(schema) || !isNameable(schema)) return false;
    return (this.#uses.get(this.#idOf(this.withoutNull(schema), root)) ?? 0) > 1;
  }

  /**
   * The name of a shared type.
   *
   * @param hint for its name, if it has no title
   * @param write its declaration, when it is first used
   * @returns undefined for a type that is not shared
   */
  named(schema: Schema, root: unknown, hint: string, write: () => string): string | undefined {
    if (!this.isShared(schema, root)) return undefined;
    const id = this.#idOf(schema, root);
    const known = this.#names.get(id);
    if (known !== undefined) return known;
    const name = freeName(typeName(typeof schema.title === 'string' ? schema.title : hint, 'Type'), this.#taken);
    this.#names.set(id, name);
    const place = this.#declarations.push('') - 1;
    this.#declarations[place] = `type ${name} = ${write()};\n`;
    return name;
  }

  get declarations(): readonly string[] {
    return this.#declarations;
  }

  /** Equal types have one number: keywords that no type shows do not count. */
  #idOf(schema: unknown, root: unknown): number {
    if (!isObject(schema)) return this.#number(String(schema));
    const known = this.#known.get(schema);
    if (known !== undefined) return known;
    const idOf = (each: unknown): number => this.#idOf(each, root);
    const parts = Object.entries(schema).map(([keyword, value]) => {
      if (MEMBERS.has(keyword) && isObject(value))
        return `${keyword}:{${Object.entries(value).map(([name, each]) => `${writeExact(name)}:${idOf(each)}`)}}`;
      if (PARTS.has(keyword)) return `${keyword}:${Array.isArray(value) ? `[${value.map(idOf)}]` : idOf(value)}`;
      if (keyword === '$ref') return `${keyword}:${this.#rootOf(root)}${String(value)}`;
      return WRITTEN.has(keyword) ? `${keyword}:${writeExact(value)}` : '';
    });
    const id = this.#number(parts.filter(Boolean).sort().join());
    this.#known.set(schema, id);
    return id;
  }

  #number(text: string): number {
    const id = this.#ids.get(text) ?? this.#ids.size;
    this.#ids.set(text, id);
    return id;
  }

  /** References of different schemas differ. */
  #rootOf(root: unknown): string {
    const number = this.#roots.get(root) ?? this.#roots.size;
    this.#roots.set(root, number);
    return `${number}/`;
  }
}

/** Schemas of one answer that are counted. */
const MAX_COUNTED = 20_000;
/** Keywords with schemas by name, with schemas, and others that types show. */
const MEMBERS: ReadonlySet<string> = new Set(['properties', 'patternProperties']);
const PARTS: ReadonlySet<string> = new Set(
  'items prefixItems additionalItems additionalProperties anyOf oneOf allOf'.split(' '),
);
const WRITTEN: ReadonlySet<string> = new Set('type required enum const nullable minItems'.split(' '));
/** Members from which on an object is worth a name. */
const LEAST_SHARED = 3;

function isNameable({ properties }: Schema): boolean {
  return isObject(properties) && Object.keys(properties).length >= LEAST_SHARED;
}

/** The comments on the members of an object, in their order. */
function commentsOf(schema: unknown, root: unknown): readonly string[] {
  const { members } = anyShape(shapesOf(schema, root));
  return [...members.values()].map((schemas) => {
    const [first] = schemas.filter(isObject).filter(({ description }) => typeof description === 'string');
    const about = first ?? schemas.find(isObject);
    const text = sentenceOf(about?.description, MAX_MEMBER_COMMENT);
    const value = about && 'default' in about ? visibleJson(about.default).trimEnd() : '';
    const isStated = value === '' || value.length > MAX_DEFAULT || /default/i.test(text);
    return [text, ...(isStated ? [] : [`Default: ${value}.`])].filter(Boolean).join(' ');
  });
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
  const outside = type.replace(/"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\/\*.*?\*\/|\/\/[^\n]*/g, '""');
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

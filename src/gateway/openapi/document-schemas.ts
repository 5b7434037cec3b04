/** The schemas of an OpenAPI document as JSON Schema 2020-12: an exact form with `$defs` for checks, and an inlined one for lists. */
import { jsonLength } from '../../core/execution/size.ts';
import { sha256 } from '../../core/kernel/sha256.ts';
import { isJsonObject, isObject, type JsonObject, type JsonValue } from '../../core/protocol/json.ts';
import { writeJson } from '../../core/protocol/json-text.ts';
import { isPattern, KEYWORDS, type Shape, shapeRule } from '../../core/schema/keywords.ts';
import { descriptionText } from './description-text.ts';
import type { DocumentParts, DocumentPlace } from './document-parts.ts';

/** The direction of a value: to the API, or from it. */
type Role = 'input' | 'output';

/** An exact schema, and the names of the definitions that it refers to. */
interface Exact {
  readonly schema: JsonObject;
  readonly uses: ReadonlySet<string>;
}

/** Longest listed schema in characters of JSON. */
const MAX_LISTED = 60_000;
/** Depths at which a listed schema is cut, the first of them that is short enough. */
const DEPTHS = [12, 8, 6, 4, 3, 2] as const;
/** Deepest nesting of an exact schema: the guard of schemas accepts 32 levels. */
const MAX_DEPTH = 24;
/** The start of references to definitions. */
const PREFIX = '#/$defs/';
/** The names of members that all providers of models accept. */
const MEMBER = /^[A-Za-z0-9_.-]{1,64}$/;
/** Longest default, in characters. */
const MAX_DEFAULT = 60;
/** Maximum number of members with other names that a description mentions. */
const MAX_MENTIONED = 20;
/** Keywords that only OpenAPI has, or that describe the document and not the value. */
const DROPPED: ReadonlySet<string> = new Set([
  ...['example', 'examples', 'xml', 'discriminator', 'externalDocs', 'nullable', 'readOnly', 'writeOnly'],
  ...['$schema', '$id', '$anchor', '$dynamicAnchor', '$dynamicRef', '$comment', '$vocabulary', 'id'],
  ...['collectionFormat', 'allowEmptyValue', 'title'],
]);
/** Siblings of `$ref` that OpenAPI 3.0 ignores, and authors mean. */
const BESIDE_REFERENCE: ReadonlySet<string> = new Set(['$ref', 'description', 'deprecated', 'default']);
/** Keywords that change the value which a schema accepts only together with others. */
const COMPOSITIONS = ['allOf', 'anyOf', 'oneOf', '$ref'] as const;

export class DocumentSchemas {
  readonly #parts: DocumentParts;
  readonly #role: Role;
  /** The definitions by their names, each compiled once. */
  readonly #definitions = new Map<string, Exact>();
  /** The names of definitions by their places. */
  readonly #names = new Map<string, string>();

  readonly #inlining = new Inlining(this.#definitions);

  constructor(parts: DocumentParts, role: Role) {
    this.#parts = parts;
    this.#role = role;
  }

  /** Compiles a schema at a place of the document. `$ref`s lead to definitions. */
  exact(schema: JsonValue | undefined, place: DocumentPlace): JsonObject {
    return this.#convert(schema, place, new Set(), 0);
  }

  /** The exact schema with all definitions that it reaches as `$defs`. */
  withDefinitions(schema: JsonObject): JsonObject {
    const needed = new Map<string, JsonObject>();
    const waiting = [...usesOf(schema)];
    for (const name of waiting) {
      const definition = this.#definitions.get(name);
      if (!definition || needed.has(name)) continue;
      needed.set(name, definition.schema);
      waiting.push(...definition.uses);
    }
    if (needed.size === 0) return schema;
    const sorted = [...needed].sort(([one], [other]) => (one < other ? -1 : 1));
    return { ...schema, $defs: Object.fromEntries(sorted) };
  }

  /** The schema itself, or the definition that it refers to. */
  target(schema: JsonObject): JsonObject {
    const { $ref } = schema;
    return typeof $ref === 'string' ? (this.#definitions.get($ref.slice(PREFIX.length))?.schema ?? {}) : schema;
  }

  /** The schema without references: cut where it is recursive, too deep or too long. */
  listed(schema: JsonObject): JsonObject {
    for (const depth of DEPTHS) {
      const listed = this.#inlining.copy(schema, depth);
      if (listed) return listed;
    }
    return { type: 'object', description: 'The schema is too long to be listed' };
  }

  /** @param uses receives the names of the definitions that the schema refers to */
  #convert(given: JsonValue | undefined, place: DocumentPlace, uses: Set<string>, depth: number): JsonObject {
    if (given === true || !isJsonObject(given)) return given === false ? { not: {} } : {};
    if (depth > MAX_DEPTH) {
      this.#parts.warn(
        `${place.shown}: a schema nests deeper than ${MAX_DEPTH} levels. Its inner parts are not checked`,
      );
      return {};
    }
    if (typeof given.$ref === 'string') return this.#reference(given, given.$ref, place, uses, depth);
    const schema = this.#withKeywords(given, place, uses, depth);
    return nullable(given, schema);
  }

  #reference(given: JsonObject, $ref: string, place: DocumentPlace, uses: Set<string>, depth: number): JsonObject {
    const target = this.#parts.resolve($ref, place);
    const legacy = !this.#parts.isJsonSchema;
    const beside = Object.fromEntries(
      Object.entries(given).filter(([member]) => member !== '$ref' && (!legacy || BESIDE_REFERENCE.has(member))),
    );
    const rest = this.#withKeywords(beside, place, uses, depth);
    if (!target) return nullable(given, rest);
    const name = this.#definition(target.place, target.value);
    uses.add(name);
    return nullable(given, { $ref: `${PREFIX}${name}`, ...rest });
  }

  /** Compiles the schema at the target of references, once. @returns its name in `$defs` */
  #definition(place: DocumentPlace, value: JsonValue | undefined): string {
    const known = this.#names.get(place.key);
    if (known !== undefined) return known;
    const name = definitionName(place.key);
    this.#names.set(place.key, name);
    const uses = new Set<string>();
    const schema = this.#convert(value, place, uses, 1);
    // A definition that is nothing but a reference to itself accepts everything.
    this.#definitions.set(name, { schema: schema.$ref === `${PREFIX}${name}` ? {} : schema, uses });
    return name;
  }

  #withKeywords(given: JsonObject, place: DocumentPlace, uses: Set<string>, depth: number): JsonObject {
    const keywords = KEYWORDS['draft-2020-12'];
    const schema: Record<string, JsonValue> = {};
    let note = '';
    const hidden = this.#hiddenOf(given, place);
    for (const [keyword, found] of Object.entries(given)) {
      if (found === undefined || DROPPED.has(keyword) || keyword.startsWith('x-')) continue;
      // A caller must know what the API takes for an argument that is missing. It is not sent.
      if (keyword === 'default' && this.#role === 'input' && isShort(found)) schema.default = found;
      const value = translated(keyword, found, given);
      const shape = keywords.get(keyword);
      if (value === undefined || shape === undefined) continue;
      if (keyword === 'pattern' && typeof value === 'string' && !isPattern(value)) {
        this.#parts.warn(
          `${place.shown}: the pattern ${value.slice(0, 60)} is no regular expression of JavaScript. It is in the description`,
        );
        note = `Pattern: ${value.slice(0, 200)}`;
      } else if (keyword === '$defs' || keyword === 'definitions') continue;
      else if (keyword === 'required' && Array.isArray(value)) {
        const names = [...new Set(value.filter((name) => typeof name === 'string' && !hidden.has(name)))];
        if (names.length > 0) schema.required = names;
      } else if (!shapeRule(shape).fits(value)) {
        // Writers put `required: true` at members, and types that do not exist: a part without meaning accepts everything.
        if (keyword !== 'required')
          this.#parts.warn(`${place.shown}: ${keyword} is left out: it must be ${shapeRule(shape).says}`);
      } else schema[keyword] = this.#parted(keyword, shape, value, place, uses, depth, hidden);
    }
    if (typeof schema.description === 'string') schema.description = descriptionText(schema.description, 1_024);
    if (schema.description === '') delete schema.description;
    if (note !== '') schema.description = [schema.description, note].filter(Boolean).join('. ');
    // Several alternatives of real documents overlap, which `oneOf` rejects, and models know `anyOf` better.
    if (schema.oneOf !== undefined && schema.anyOf === undefined) {
      schema.anyOf = schema.oneOf;
      delete schema.oneOf;
    }
    return schema;
  }

  /** The value of a keyword with the schemas in it compiled. */
  #parted(
    keyword: string,
    shape: Shape,
    value: JsonValue,
    place: DocumentPlace,
    uses: Set<string>,
    depth: number,
    hidden: ReadonlySet<string>,
  ): JsonValue {
    const inner = (part: JsonValue | undefined): JsonObject => this.#convert(part, place, uses, depth + 1);
    switch (shape) {
      case 'schema':
        // A boolean is a schema that checks cheaply, and that hosts know in this place.
        return typeof value === 'boolean' && keyword.startsWith('additional') ? value : inner(value);
      case 'schemas':
        return Array.isArray(value) ? value.map(inner) : [];
      case 'schemasByName':
      case 'schemasByPattern': {
        if (!isJsonObject(value)) return {};
        const members = Object.entries(value).filter(
          ([name, part]) => keyword !== 'properties' || !(hidden.has(name) || this.#isHidden(part, place)),
        );
        return Object.fromEntries(members.map(([name, part]) => [name, inner(part)]));
      }
      default:
        return value;
    }
  }

  /** The names of members that only the other side writes, of a schema and of those that it consists of. */
  #hiddenOf(schema: JsonObject, place: DocumentPlace, seen: ReadonlySet<JsonValue> = new Set()): ReadonlySet<string> {
    const names = new Set<string>();
    if (seen.has(schema) || seen.size > 16) return names;
    const inside = new Set([...seen, schema]);
    if (isJsonObject(schema.properties))
      for (const [name, part] of Object.entries(schema.properties)) if (this.#isHidden(part, place)) names.add(name);
    for (const part of Array.isArray(schema.allOf) ? schema.allOf : []) {
      const found = this.#parts.followed(part, place);
      if (found && isJsonObject(found.value))
        for (const name of this.#hiddenOf(found.value, found.place, inside)) names.add(name);
    }
    return names;
  }

  #isHidden(part: JsonValue | undefined, place: DocumentPlace): boolean {
    const flag = this.#role === 'input' ? 'readOnly' : 'writeOnly';
    if (!isJsonObject(part)) return false;
    if (part[flag] === true) return true;
    const found = typeof part.$ref === 'string' ? this.#parts.followed(part, place)?.value : undefined;
    return isJsonObject(found) && found[flag] === true;
  }
}

/** Copies exact schemas with the definitions in the places of the references to them. */
class Inlining {
  readonly #definitions: ReadonlyMap<string, Exact>;
  /** The copies of definitions that are not recursive, by their names and the levels that are left. */
  readonly #copies = new Map<string, { readonly schema: JsonObject; readonly length: number }>();
  readonly #recursive = new Map<string, boolean>();
  #length = 0;

  constructor(definitions: ReadonlyMap<string, Exact>) {
    this.#definitions = definitions;
  }

  /** @returns undefined if the copy is longer than a list may have it */
  copy(schema: JsonObject, depth: number): JsonObject | undefined {
    this.#length = 0;
    const copy = this.#inline(schema, depth, []);
    return this.#tooLong ? undefined : copy;
  }

  get #tooLong(): boolean {
    return this.#length > MAX_LISTED;
  }

  /**
   * @param left levels that may follow
   * @param open the definitions around this place: another reference to one of them is recursive
   */
  #inline(schema: JsonObject, left: number, open: readonly string[]): JsonObject {
    if (this.#tooLong) return {};
    if (typeof schema.$ref === 'string') {
      const name = schema.$ref.slice(PREFIX.length);
      const target = this.#definitions.get(name)?.schema ?? {};
      const { $ref: _, ...beside } = schema;
      if (open.includes(name) || (left <= 0 && isCompound(target))) return this.#cut(target, name, beside);
      const inner = this.#definition(name, target, left, open);
      this.#count(beside);
      // Keywords that both have apply both.
      const both = Object.keys(beside).some((keyword) => keyword !== 'description' && keyword in inner);
      return both ? { allOf: [inner], ...beside } : { ...inner, ...beside };
    }
    if (left < 0 && isCompound(schema)) return this.#cut(schema, undefined, {});
    const copy: Record<string, JsonValue> = {};
    for (const [keyword, value] of Object.entries(schema)) {
      if (value === undefined) continue;
      this.#length += keyword.length + 4;
      copy[keyword] = this.#part(keyword, value, left, open);
    }
    return withMentioned(copy);
  }

  #definition(name: string, target: JsonObject, left: number, open: readonly string[]): JsonObject {
    if (this.#isRecursive(name)) return this.#inline(target, left, [...open, name]);
    const key = `${name} ${left}`;
    const known = this.#copies.get(key);
    if (known) {
      this.#length += known.length;
      return known.schema;
    }
    const before = this.#length;
    const schema = this.#inline(target, left, []);
    if (!this.#tooLong) this.#copies.set(key, { schema, length: this.#length - before });
    return schema;
  }

  /** True if a definition leads to itself, or to one that does. */
  #isRecursive(name: string): boolean {
    const known = this.#recursive.get(name);
    if (known !== undefined) return known;
    // Until it is known, so that a way back here counts.
    this.#recursive.set(name, true);
    const uses = this.#definitions.get(name)?.uses ?? [];
    const recursive = [...uses].some((each) => this.#isRecursive(each));
    this.#recursive.set(name, recursive);
    return recursive;
  }

  #part(keyword: string, value: JsonValue, left: number, open: readonly string[]): JsonValue {
    const shape = KEYWORDS['draft-2020-12'].get(keyword);
    const next = keyword === 'allOf' || keyword === 'anyOf' || keyword === 'oneOf' ? left : left - 1;
    if (shape === 'schema' && isJsonObject(value)) return this.#inline(value, next, open);
    if (shape === 'schemas' && Array.isArray(value))
      return value.map((part: JsonValue) => (isJsonObject(part) ? this.#inline(part, next, open) : part));
    if ((shape === 'schemasByName' || shape === 'schemasByPattern') && isJsonObject(value)) {
      const members: [string, JsonValue][] = [];
      for (const [name, part] of Object.entries(value)) {
        this.#length += name.length + 4;
        members.push([name, isJsonObject(part) ? this.#inline(part, next, open) : (part ?? true)]);
      }
      return Object.fromEntries(members);
    }
    this.#count(value);
    return value;
  }

  #count(value: JsonValue): void {
    this.#length += typeof value === 'string' ? value.length + 2 : jsonLength(value);
  }

  /** Makes what stands in the place of a schema that is left out. */
  #cut({ type, description }: JsonObject, name: string | undefined, beside: JsonObject): JsonObject {
    const words = [
      beside.description ?? description,
      name === undefined ? 'Not listed further' : `${name}, not listed further`,
    ];
    const cut = {
      ...(type === undefined ? {} : { type }),
      description: words.filter((each) => typeof each === 'string' && each !== '').join('. '),
    };
    this.#count(cut);
    return cut;
  }
}

/** The name of a definition, which depends on its place alone: that of a named schema of the root document, else with a hash. */
function definitionName(key: string): string {
  const [, plain] = /^#\/(?:components\/schemas|definitions)\/([A-Za-z0-9_.-]+)$/.exec(key) ?? [];
  if (plain !== undefined) return plain;
  const last =
    key
      .split('/')
      .at(-1)
      ?.replace(/[^A-Za-z0-9_.-]/g, '_')
      .slice(0, 64) || 'Schema';
  return `${last}_${sha256(key, 'hex').slice(0, 8)}`;
}

/**
 * A listed schema whose members all have names that providers accept: others are in the description. One tool with another name takes
 * the whole list of several hosts with it. The exact schema has all of them.
 */
function withMentioned(schema: Record<string, JsonValue>): JsonObject {
  const { properties } = schema;
  if (!isJsonObject(properties) || Object.keys(properties).every((name) => MEMBER.test(name))) return schema;
  const { required, additionalProperties, description, ...others } = schema;
  const odd = Object.entries(properties).filter(([name]) => !MEMBER.test(name));
  const kept = Object.entries(properties).filter(([name]) => MEMBER.test(name));
  const needed = Array.isArray(required) ? required.filter((name) => MEMBER.test(String(name))) : [];
  const mentioned = odd.slice(0, MAX_MENTIONED).map(([name, part]) => {
    const { type, description: words } = isJsonObject(part) ? part : {};
    const about = [typeof type === 'string' ? type : '', typeof words === 'string' ? words.slice(0, 200) : ''];
    const isNeeded = Array.isArray(required) && required.includes(name) ? 'required' : '';
    return `"${name}" (${[...about, isNeeded].filter((each) => each !== '').join(', ')})`;
  });
  return {
    ...others,
    properties: Object.fromEntries(kept),
    ...(needed.length > 0 && { required: needed }),
    ...(additionalProperties !== undefined && additionalProperties !== false && { additionalProperties }),
    description: [description, `More members: ${mentioned.join('; ')}`].filter((each) => each !== undefined).join('. '),
  };
}

/** True for a schema with others in it. */
function isCompound(schema: JsonObject): boolean {
  return ['properties', 'items', 'additionalProperties', '$ref', 'allOf', 'anyOf', 'oneOf'].some(
    (keyword) => isObject(schema[keyword]) || Array.isArray(schema[keyword]),
  );
}

/** The names of the definitions that a schema refers to itself. */
function usesOf(schema: JsonValue | undefined): ReadonlySet<string> {
  const uses = new Set<string>();
  const visit = (at: JsonValue | undefined): void => {
    if (Array.isArray(at)) at.forEach(visit);
    else if (isJsonObject(at))
      for (const [member, each] of Object.entries(at))
        if (member === '$ref' && typeof each === 'string') uses.add(each.slice(PREFIX.length));
        else visit(each);
  };
  visit(schema);
  return uses;
}

/** True for a value that is no object, and as short as the defaults of parameters are. */
function isShort(value: JsonValue): boolean {
  return typeof value === 'string'
    ? value.length <= MAX_DEFAULT
    : typeof value === 'number' || typeof value === 'boolean';
}

/** The value of a keyword as 2020-12 has it; undefined to leave it out. OpenAPI 3.0 follows an earlier draft. */
function translated(
  keyword: string,
  value: JsonValue,
  { minimum, maximum, exclusiveMinimum, exclusiveMaximum }: JsonObject,
): JsonValue | undefined {
  switch (keyword) {
    case 'exclusiveMinimum':
      return typeof value === 'boolean' ? (value && typeof minimum === 'number' ? minimum : undefined) : value;
    case 'exclusiveMaximum':
      return typeof value === 'boolean' ? (value && typeof maximum === 'number' ? maximum : undefined) : value;
    case 'minimum':
      return exclusiveMinimum === true ? undefined : value;
    case 'maximum':
      return exclusiveMaximum === true ? undefined : value;
    case 'type':
      return value === 'file' ? 'string' : onlyOnce(value);
    case 'enum':
      return onlyOnce(value);
    default:
      return value;
  }
}

/** Hosts reject the whole schema for a choice that is there twice. */
function onlyOnce(value: JsonValue): JsonValue {
  if (!Array.isArray(value)) return value;
  const items: readonly JsonValue[] = value;
  const unique = new Map(items.map((item) => [writeJson(item), item]));
  return unique.size === items.length ? value : [...unique.values()];
}

/** Lets a schema accept null, too, if it says `nullable` (OpenAPI 3.0). */
function nullable(given: JsonObject, schema: JsonObject): JsonObject {
  if (given.nullable !== true) return schema;
  const { type, description, ...others } = schema;
  const composed = COMPOSITIONS.some((keyword) => schema[keyword] !== undefined);
  if (composed) {
    const inner = { ...(type === undefined ? {} : { type }), ...others };
    return { anyOf: [inner, { type: 'null' }], ...(description === undefined ? {} : { description }) };
  }
  const values = schema.enum;
  return {
    ...schema,
    ...(typeof type === 'string' && type !== 'null' ? { type: [type, 'null'] } : {}),
    ...(Array.isArray(values) && !values.includes(null) ? { enum: [...values, null] } : {}),
  };
}

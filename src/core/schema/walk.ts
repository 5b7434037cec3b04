/** Walks a schema once: checks the shape of every keyword, and lists every subschema with its place and nesting. */
import { isObject, type JsonObject } from '../protocol/json.ts';
import { literal, quote } from './excerpts.ts';
import {
  DEFINITION_KEYWORDS,
  IN_PLACE,
  KEYWORDS,
  SCHEMA_DIALECTS,
  type SchemaDialect,
  type Shape,
  shapeRule,
} from './keywords.ts';
import { escapePointer } from './schema-copy.ts';
import { SchemaError } from './schema-error.ts';

/**
 * Deepest nesting of subschemas below the root, and largest number of subschemas (MCP 2026-07-28 basic,
 * "Composition-Keyword Resource Use").
 */
const MAX_DEPTH = 32;
const MAX_SUBSCHEMAS = 5_000;

/** The URI of a schema without `$id`. Nothing is ever fetched. */
const DOCUMENT = 'schema://document/';

/** One subschema and its relations to others. */
export interface SchemaNode {
  readonly schema: JsonObject | boolean;
  /** JSON Pointer from the root, such as `#/properties/a`. */
  readonly at: string;
  /** The base URI of its references. */
  readonly base: string;
  /** True if only `properties` lead to it from the root. */
  readonly named: boolean;
  /** Subschemas that apply to the same value; the targets of its references are added when they are resolved. */
  readonly inPlace: SchemaNode[];
  /** Subschemas that apply to a part of the value, such as a property or an item. */
  readonly inner: SchemaNode[];
  /** The target of its `$ref`, after resolution. */
  target?: SchemaNode;
}

/** All subschemas of a schema. */
export interface SchemaTree {
  readonly dialect: SchemaDialect;
  readonly root: SchemaNode;
  /** By JSON Pointer. */
  readonly nodes: ReadonlyMap<string, SchemaNode>;
  /** Schemas with an `$id`, and the root, by URI. */
  readonly resources: ReadonlyMap<string, SchemaNode>;
  /** Schemas with an anchor, by `uri#name`. */
  readonly anchors: ReadonlyMap<string, SchemaNode>;
}

/** Words that are not keywords of either dialect but change the behaviour of our validator. */
const TRAPS: ReadonlyMap<string, string> = new Map([
  ['$async', 'remove it'],
  ['$recursiveRef', 'write "$ref"'],
  ['$recursiveAnchor', 'remove it and use "$ref"'],
  ['id', 'write "$id"'],
  ['nullable', 'write "type": ["string", "null"], or anyOf with { "type": "null" }'],
]);

/**
 * Checks each keyword's value against the table of its dialect, which matches the meta-schema, and lists all
 * subschemas.
 * @param schema our own copy, which has no cycles
 * @throws SchemaError for the first keyword with an invalid value, and for more than 5,000 subschemas or 32 levels
 */
export function walkSchema(schema: JsonObject, dialect: SchemaDialect, where: string): SchemaTree {
  const keywords = KEYWORDS[dialect];
  const nodes = new Map<string, SchemaNode>();
  const resources = new Map<string, SchemaNode>();
  const anchors = new Map<string, SchemaNode>();

  const visit = (source: unknown, at: string, outer: string, depth: number, named: boolean): SchemaNode => {
    if (!isSchema(source)) throw wrong(at, literal(source), 'schema');
    if (depth > MAX_DEPTH)
      throw new SchemaError(
        where,
        at,
        `the schema nests deeper than ${MAX_DEPTH} levels`,
        'move inner parts to "$defs" and refer to them with "$ref"',
      );
    if (nodes.size >= MAX_SUBSCHEMAS)
      throw new SchemaError(
        where,
        at,
        `the schema has more than ${MAX_SUBSCHEMAS} subschemas`,
        'split the tool, or simplify its schema',
      );
    const node: SchemaNode = { schema: source, at, base: baseOf(source, at, outer), named, inPlace: [], inner: [] };
    nodes.set(at, node);
    if (typeof source === 'boolean') return node;
    register(node, source, outer);
    // In draft-07 a reference replaces its siblings: they do not apply, but pointers may still lead into them.
    const eclipsed = dialect === 'draft-07' && typeof source.$ref === 'string';
    for (const [keyword, value] of Object.entries(source)) {
      const shape = keywords.get(keyword);
      if (shape === undefined) trap(keyword, at);
      else if (!shapeRule(shape).fits(value)) throw wrong(at, `${quote(keyword)} is ${literal(value)}`, shape);
      else descend(node, keyword, shape, value, depth + 1, eclipsed);
    }
    return node;
  };

  const descend = (
    node: SchemaNode,
    keyword: string,
    shape: Shape,
    value: unknown,
    depth: number,
    eclipsed: boolean,
  ): void => {
    const named = node.named && keyword === 'properties' && !eclipsed;
    for (const [suffix, part] of parts(shape, value)) {
      const child = visit(part, `${node.at}/${keyword}${suffix}`, node.base, depth, named);
      if (eclipsed || DEFINITION_KEYWORDS.has(keyword)) continue;
      (IN_PLACE.has(keyword) ? node.inPlace : node.inner).push(child);
    }
  };

  const baseOf = (source: JsonObject | boolean, at: string, outer: string): string => {
    if (typeof source === 'boolean' || typeof source.$id !== 'string' || isFragment(source.$id)) return outer;
    const uri = resolveUri(source.$id, outer);
    if (uri === undefined || uri.hash.length > 1) throw wrong(at, `"$id" is ${quote(source.$id)}`, 'identifier');
    return withoutHash(uri);
  };

  const register = (node: SchemaNode, source: JsonObject, outer: string): void => {
    const { $id, $schema } = source;
    if (typeof $schema === 'string' && SCHEMA_DIALECTS.get($schema.replace(/#$/, '')) !== dialect)
      throw new SchemaError(
        where,
        node.at,
        `"$schema" is ${quote($schema)} inside a schema of ${dialect}`,
        'use one dialect throughout',
      );
    if (node.at === '#') resources.set(outer, node);
    if (typeof $id === 'string' && !isFragment($id)) claim(resources, node.base, node);
    // draft-07 has no "$anchor": an "$id" that is only a fragment names the place.
    const names =
      dialect === 'draft-07' ? [isFragment($id) ? $id.slice(1) : ''] : [source.$anchor, source.$dynamicAnchor];
    for (const name of names) if (typeof name === 'string' && name !== '') claim(anchors, `${node.base}#${name}`, node);
  };

  const claim = (names: Map<string, SchemaNode>, name: string, node: SchemaNode): void => {
    const other = names.get(name);
    if (other !== undefined && other !== node)
      throw new SchemaError(where, node.at, `${quote(name)} also names ${other.at}`, 'use each "$id" and anchor once');
    names.set(name, node);
  };

  const trap = (keyword: string, at: string): void => {
    const fix = TRAPS.get(keyword);
    if (fix !== undefined)
      throw new SchemaError(
        where,
        at,
        `${quote(keyword)} is not a keyword of ${dialect}, and validators disagree on it`,
        fix,
      );
  };

  const wrong = (at: string, problem: string, shape: Shape): SchemaError =>
    new SchemaError(where, at, problem, `it must be ${shapeRule(shape).says}`);

  const root = visit(schema, '#', DOCUMENT, 0, true);
  return { dialect, root, nodes, resources, anchors };
}

/** Resolves a URI reference; undefined if it is invalid. */
export function resolveUri(reference: string, base: string): URL | undefined {
  return URL.canParse(reference, base) ? new URL(reference, base) : undefined;
}

/** The URI without its fragment. */
export function withoutHash(uri: URL): string {
  return uri.href.slice(0, uri.href.length - uri.hash.length).replace(/#$/, '');
}

function isSchema(value: unknown): value is JsonObject | boolean {
  return isObject(value) || typeof value === 'boolean';
}

function isFragment(id: unknown): id is string {
  return typeof id === 'string' && id.startsWith('#') && id.length > 1;
}

/** The subschemas in a keyword's value, each with its suffix to the pointer. */
function parts(shape: Shape, value: unknown): readonly (readonly [string, unknown])[] {
  switch (shape) {
    case 'schema':
      return [['', value]];
    case 'schemas':
    case 'schemaOrSchemas':
      return Array.isArray(value) ? value.map((part, index) => [`/${index}`, part]) : [['', value]];
    case 'schemasByName':
    case 'schemasByPattern':
      return byName(value);
    case 'schemasOrNamesByName':
      return byName(value).filter(([, part]) => !Array.isArray(part));
    default:
      return [];
  }
}

function byName(value: unknown): readonly (readonly [string, unknown])[] {
  return isObject(value) ? Object.entries(value).map(([name, part]) => [`/${escapePointer(name)}`, part]) : [];
}

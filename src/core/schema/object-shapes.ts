/** The shapes of an object that a JSON Schema describes: its members, through references and compositions. */
import { isObject } from '../protocol/json.ts';

/** Schemas inside schemas that are followed. */
export const MAX_SHAPE_DEPTH = 5;
/** Schemas that are followed: through references, a server can nest them without end. */
export const MAX_SHAPE_SCHEMAS = 500;
/** Alternatives of one object that are kept apart, and their members in all; more become one alternative. */
const MAX_ALTERNATIVES = 64;
const MAX_MEMBERS = 5_000;

/** One alternative of an object schema, after its references and compositions are resolved. */
export interface ObjectShape {
  /** The schemas of each member. */
  readonly members: ReadonlyMap<string, readonly unknown[]>;
  readonly required: ReadonlySet<string>;
  /** The schema of members with other names; undefined if the schema mentions none. */
  readonly others: unknown;
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
  budget = { left: MAX_SHAPE_SCHEMAS },
  depth = 0,
): readonly ObjectShape[] {
  if (!isObject(schema) || depth > MAX_SHAPE_DEPTH || budget.left <= 0) return [NO_MEMBERS];
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

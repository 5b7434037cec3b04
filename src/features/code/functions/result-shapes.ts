/**
 * The shapes of results that tools without output schema have returned: names and types of members, never values. Each principal has
 * its own, because the members of some objects are data, such as the addresses of people.
 */

import { sha256 } from '../../../core/kernel/sha256.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../../core/protocol/json.ts';
import { writeExact } from '../../../core/protocol/json-text.ts';
import type { Tool } from '../../../core/protocol/types.ts';

/** Shapes that are kept. The one that was used longest ago gives way. */
const MAX_SHAPES = 1_000;
/** Values inside values, members of an object and elements of a list that are read. */
const MAX_DEPTH = 5;
const MAX_MEMBERS = 40;
const MAX_ELEMENTS = 5;
/** Values of one result that are read. */
const MAX_VALUES = 400;
/** The name of a member of an author's object. Other names are data. */
const MEMBER = /^[A-Za-z_$][A-Za-z_$-]{0,39}\d{0,2}$/;

export class ResultShapes {
  /** In the order of their use. */
  readonly #shapes = new Map<string, JsonObject>();
  readonly #pins = new WeakMap<Tool, string>();

  /** The schema of the first result that a principal has seen of a tool with this definition; undefined if it has seen none. */
  get(principal: string, tool: Tool): JsonObject | undefined {
    const key = this.#keyOf(principal, tool);
    const shape = this.#shapes.get(key);
    if (!shape) return undefined;
    this.#shapes.delete(key);
    this.#shapes.set(key, shape);
    return shape;
  }

  /** Keeps the shape of a result, unless one of this tool is kept. */
  learn(principal: string, tool: Tool, value: JsonValue): void {
    const key = this.#keyOf(principal, tool);
    if (this.#shapes.has(key)) return;
    this.#shapes.set(key, settled(shapeOf(value, 0, { left: MAX_VALUES })));
    if (this.#shapes.size <= MAX_SHAPES) return;
    for (const [oldest] of this.#shapes) {
      this.#shapes.delete(oldest);
      break;
    }
  }

  /** Another definition of the tool has other results. */
  #keyOf(principal: string, tool: Tool): string {
    const pin = this.#pins.get(tool) ?? sha256(writeExact(tool));
    this.#pins.set(tool, pin);
    return `${pin} ${principal}`;
  }
}

/** A schema that describes one value. */
function shapeOf(value: JsonValue | undefined, depth: number, budget: { left: number }): JsonObject {
  budget.left -= 1;
  if (value === undefined || depth > MAX_DEPTH || budget.left < 0) return {};
  const inner = (each: JsonValue | undefined): JsonObject => shapeOf(each, depth + 1, budget);
  if (value === null) return { type: 'null' };
  if (Array.isArray(value)) return { type: 'array', items: united(value.slice(0, MAX_ELEMENTS).map(inner)) };
  if (!isJsonObject(value)) return { type: typeof value };
  const names = Object.keys(value);
  const isRecord = names.length > MAX_MEMBERS || names.some((name) => !MEMBER.test(name));
  if (isRecord)
    return {
      type: 'object',
      additionalProperties: united(names.slice(0, MAX_ELEMENTS).map((name) => inner(value[name]))),
    };
  return {
    type: 'object',
    properties: Object.fromEntries(names.map((name) => [name, inner(value[name])])),
    required: names,
  };
}

/** A member that was null once may be anything. */
function settled(shape: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(shape).map(([keyword, value]) => {
      if (!isJsonObject(value)) return [keyword, value];
      if (keyword !== 'properties') return [keyword, value.type === 'null' ? {} : settled(value)];
      return [
        keyword,
        Object.fromEntries(
          Object.entries(value).map(([name, each]) => [
            name,
            isJsonObject(each) && each.type !== 'null' ? settled(each) : {},
          ]),
        ),
      ];
    }),
  );
}

/** One schema for values of one list: members that some objects lack are optional, and each type is named once. */
function united(shapes: readonly JsonObject[]): JsonObject {
  const objects = shapes.filter(({ properties }) => properties !== undefined);
  const others = [
    ...new Map(shapes.filter((each) => !objects.includes(each)).map((each) => [writeExact(each), each])).values(),
  ];
  const all = objects.length === 0 ? others : [unitedObjects(objects), ...others];
  const [only = {}, second] = all;
  return second === undefined ? only : { anyOf: all };
}

function unitedObjects(objects: readonly JsonObject[]): JsonObject {
  const members = new Map<string, JsonObject[]>();
  for (const { properties } of objects)
    for (const [name, shape] of Object.entries(isJsonObject(properties) ? properties : {}))
      if (isJsonObject(shape)) members.set(name, [...(members.get(name) ?? []), shape]);
  return {
    type: 'object',
    properties: Object.fromEntries([...members].map(([name, shapes]) => [name, united(shapes)])),
    required: [...members].filter(([, shapes]) => shapes.length === objects.length).map(([name]) => name),
  };
}

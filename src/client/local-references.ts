/**
 * The references of a schema that name nothing in it, or only each other: generators leave the definitions out, or nest them where the
 * reference does not look. Strict clients reject each tool of a list for one such reference.
 */

import { isObject } from '../core/protocol/json.ts';

type Members = Readonly<Record<string, unknown>>;

/** Keywords whose values are data, and may have any members. */
const DATA: ReadonlySet<string> = new Set(['default', 'const', 'enum', 'example', 'examples']);
/** Keywords whose members are names, each with a schema. */
const NAMED: ReadonlySet<string> = new Set(
  'properties patternProperties $defs definitions dependentSchemas dependencies'.split(' '),
);

/**
 * Leaves out each `$ref` to a place that the schema does not have, or that leads back to itself, so that any value fits there.
 * References to other documents stay.
 *
 * @returns the schema itself if there is none
 * @example withoutDangling({ properties: { a: { $ref: '#/$defs/A' } } }) // { properties: { a: {} } }
 */
export function withoutDangling(schema: Members): Members {
  const walk = (value: unknown, isNames: boolean): unknown => {
    if (Array.isArray(value)) {
      const list = value.map((each) => walk(each, false));
      return list.every((each, at) => each === value[at]) ? value : list;
    }
    // An identifier changes what a reference below it names.
    if (!isObject(value) || (value !== schema && typeof value.$id === 'string')) return value;
    let copy: Record<string, unknown> | undefined;
    if (!isNames && typeof value.$ref === 'string' && !names(value.$ref, schema)) {
      copy = { ...value };
      delete copy.$ref;
    }
    for (const [name, member] of Object.entries(value)) {
      if (!isNames && DATA.has(name)) continue;
      const read = walk(member, !isNames && NAMED.has(name));
      if (read === member) continue;
      copy ??= { ...value };
      copy[name] = read;
    }
    return copy ?? value;
  };
  const read = walk(schema, false);
  return isObject(read) ? read : schema;
}

/** False for a reference to no schema in this one, and for one that leads back to itself: no value decides such a schema. */
function names(reference: string, schema: Members): boolean {
  const passed = new Set<unknown>();
  for (let next = reference; isLocal(next); ) {
    const target = targetOf(next, schema);
    if (passed.has(target)) return false;
    // The next reference of a chain is left out where it stands.
    if (!isObject(target)) return passed.size > 0 || typeof target === 'boolean';
    if (typeof target.$ref !== 'string') return true;
    passed.add(target);
    next = target.$ref;
  }
  return true;
}

/** True for the root, and for a JSON Pointer (RFC 6901). */
function isLocal(reference: string): boolean {
  return reference === '#' || reference.startsWith('#/');
}

function targetOf(reference: string, schema: Members): unknown {
  let at: unknown = schema;
  for (const part of reference.split('/').slice(1)) {
    const name = unescaped(part);
    if (!(isObject(at) || Array.isArray(at)) || !Object.hasOwn(at, name)) return undefined;
    at = Reflect.get(at, name);
  }
  return at;
}

function unescaped(part: string): string {
  const plain = (text: string): string => text.replaceAll('~1', '/').replaceAll('~0', '~');
  try {
    return plain(decodeURIComponent(part));
  } catch {
    return plain(part);
  }
}

/** The members of a response that an operator picks by JSON Pointers (RFC 6901), of which `*` is each element or member. */
import { describe, isJsonObject, type JsonObject, type JsonValue } from '../../core/protocol/json.ts';
import { copyNumbers } from '../../core/protocol/json-text.ts';
import * as option from '../../core/protocol/option-rows.ts';
import { isJsonList } from './argument-text.ts';

const MAX_POINTERS = 100;

/** The picked members of a value, by their names; `whole`: all of it. */
type Picked = 'whole' | ReadonlyMap<string, Picked>;

/** Finds what is wrong with a list of pointers. @returns undefined for a valid list */
export function problemOfPointers(value: unknown): string | undefined {
  const expected = `expected a list of 1 to ${MAX_POINTERS} JSON Pointers, such as ["/items/*/id", "/next"]`;
  if (!option.areStrings(value) || value.length === 0 || value.length > MAX_POINTERS)
    return `${expected}, got ${describe(value)}`;
  const wrong = value.find((each) => !each.startsWith('/') || /~(?![01])/.test(each));
  return wrong === undefined ? undefined : `${expected}, got ${describe(wrong)}`;
}

/**
 * The picked members of a value in their places. A list keeps its order and its length, unless single elements are picked. Members
 * that the value does not have are absent.
 *
 * @param pointers without a problem
 */
export function pickedFrom(value: JsonValue, pointers: readonly string[]): JsonValue {
  const root = new Map<string, Picked>();
  for (const pointer of pointers) add(root, pointer.slice(1).split('/').map(unescaped));
  return pick(value, root) ?? (isJsonList(value) ? [] : {});
}

function add(into: Map<string, Picked>, [name = '', ...rest]: readonly string[]): void {
  const known = into.get(name);
  if (known === 'whole') return;
  if (rest.length === 0) {
    into.set(name, 'whole');
    return;
  }
  const below = new Map(known);
  into.set(name, below);
  add(below, rest);
}

function unescaped(name: string): string {
  return name.replaceAll('~1', '/').replaceAll('~0', '~');
}

/** @returns undefined if the value has none of the picked members */
function pick(value: JsonValue | undefined, picked: Picked): JsonValue | undefined {
  if (value === undefined || picked === 'whole') return value;
  if (isJsonList(value)) {
    const elements = value.map((each, index) => pickMember(each, String(index), picked));
    return copyIfSame(
      value,
      elements.filter((each) => each !== undefined),
    );
  }
  if (!isJsonObject(value)) return undefined;
  const members: JsonObject = Object.fromEntries(
    Object.entries(value).flatMap(([name, member]) => {
      const chosen = pickMember(member, name, picked);
      return chosen === undefined ? [] : [[name, chosen]];
    }),
  );
  return copyNumbers(value, members);
}

function pickMember(
  member: JsonValue | undefined,
  name: string,
  picked: ReadonlyMap<string, Picked>,
): JsonValue | undefined {
  const named = picked.get(name);
  const each = picked.get('*');
  if (named === 'whole' || each === 'whole') return member;
  if (named && each) return pick(member, new Map([...each, ...named]));
  const chosen = named ?? each;
  return chosen && pick(member, chosen);
}

/** The digits of numbers belong to places, which elements keep only in a list of the same length. */
function copyIfSame(from: readonly JsonValue[], to: readonly JsonValue[]): JsonValue {
  return from.length === to.length ? copyNumbers(from, [...to]) : [...to];
}

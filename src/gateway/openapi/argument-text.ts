/** The text of an argument in a request: percent-encoded, and laid out by the style of its parameter (OpenAPI 3.1, "Style Values"). */
import { isJsonObject, type JsonObject, type JsonValue } from '../../core/protocol/json.ts';
import { digitsOf, writeJson } from '../../core/protocol/json-text.ts';
import type { ParameterStyle } from './operation.ts';

/** The members of a parameter, or of an encoding, that decide its text. */
export interface TextLayout {
  readonly style: ParameterStyle;
  readonly explode: boolean;
  readonly allowReserved: boolean;
  /** The value is one JSON text. */
  readonly json: boolean;
}

/** A name and a value of a query or a form, both encoded. */
export type EncodedPair = readonly [name: string, value: string];

/** Left as they are by `encodeURIComponent`, and reserved (RFC 3986 section 2.2). */
const SUB_DELIMITERS = /[!'()*]/g;
/**
 * Reserved characters that stay if the parameter allows them. `#`, `&` and `+` would end the value, begin another parameter, or be
 * read as a space; brackets belong to addresses of IPv6 only.
 */
const STAY_RESERVED = /%(?:2F|3A|3F|40|24|2C|3B|3D)/g;
/** Deepest nesting of a `deepObject`, in levels. */
const MAX_DEPTH = 16;

/** The text with every character encoded that RFC 3986 does not leave unreserved. */
export function percentEncoded(text: string): string {
  return encodeURIComponent(text.toWellFormed()).replace(
    SUB_DELIMITERS,
    (found) => `%${found.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/** The text of a scalar. A number has the digits that it came with; a nested value is JSON. */
export function scalarText(container: object, key: string, value: JsonValue): string {
  return typeof value === 'string' ? value : memberJson(container, key, value);
}

/** The JSON of a member. A number has the digits that it came with. */
export function memberJson(container: object, key: string, value: JsonValue): string {
  return (typeof value === 'number' ? digitsOf(container, key, value) : undefined) ?? writeJson(value);
}

/** The elements of a list, or the members of an object, as texts. Null is left out: a request has no word for it. */
function textsOf(value: JsonValue): readonly (readonly [key: string, text: string])[] {
  if (isJsonList(value))
    return value.flatMap((item, index) =>
      item === null ? [] : [[String(index), scalarText(value, String(index), item)] as const],
    );
  if (!isJsonObject(value)) return [];
  return Object.entries(value).flatMap(([key, member]) =>
    member === undefined || member === null ? [] : [[key, scalarText(value, key, member)] as const],
  );
}

/**
 * The text of a path or header parameter.
 *
 * @param encode encodes each value and each name inside of it
 * @param args contains the value under `argument`
 */
export function inlineText(
  name: string,
  { style, explode, json }: TextLayout,
  args: JsonObject,
  argument: string,
  encode: (text: string) => string,
): string {
  const value = args[argument] ?? null;
  const isObject = isJsonObject(value);
  if (json || !(isObject || isJsonList(value))) {
    const text = encode((json ? memberJson : scalarText)(args, argument, value));
    return `${PREFIX[style] ?? ''}${style === 'matrix' ? `${encode(name)}${text === '' ? '' : `=${text}`}` : text}`;
  }
  const texts = textsOf(value).map(([key, text]) => [encode(key), encode(text)] as const);
  const flat = isObject
    ? texts.map(([key, text]) => (explode ? `${key}=${text}` : `${key},${text}`))
    : texts.map(([, text]) => text);
  switch (style) {
    case 'label':
      return `.${flat.join(explode ? '.' : ',')}`;
    case 'matrix':
      if (!explode) return `;${encode(name)}=${flat.join(',')}`;
      return flat.map((each) => (isObject ? `;${each}` : `;${encode(name)}=${each}`)).join('');
    default:
      return flat.join(',');
  }
}

const PREFIX: Readonly<Partial<Record<ParameterStyle, string>>> = { label: '.', matrix: ';' };
const SEPARATOR: Readonly<Partial<Record<ParameterStyle, string>>> = { spaceDelimited: '%20', pipeDelimited: '%7C' };

/**
 * The pairs of a query or form parameter, encoded.
 *
 * @param args contains the value under `argument`
 * @returns none for null
 */
export function queryPairs(
  name: string,
  { style, explode, allowReserved, json }: TextLayout,
  args: JsonObject,
  argument: string,
): readonly EncodedPair[] {
  const value = args[argument];
  if (value === undefined || value === null) return [];
  const encode = allowReserved
    ? (text: string) => percentEncoded(text).replace(STAY_RESERVED, decodeURIComponent)
    : percentEncoded;
  const key = percentEncoded(name);
  if (json) return [[key, encode(memberJson(args, argument, value))]];
  const isObject = isJsonObject(value);
  if (!isObject && !isJsonList(value)) return [[key, encode(scalarText(args, argument, value))]];
  if (style === 'deepObject') return deepPairs(name, value, encode, 0);
  const texts = textsOf(value);
  if (explode)
    return isObject
      ? texts.map(([member, text]) => [percentEncoded(member), encode(text)])
      : texts.map(([, text]) => [key, encode(text)]);
  if (texts.length === 0) return [];
  const flat = isObject
    ? texts.flatMap(([member, text]) => [encode(member), encode(text)])
    : texts.map(([, text]) => encode(text));
  return [[key, flat.join(SEPARATOR[style] ?? ',')]];
}

/**
 * The pairs `name[member]=value`. OpenAPI leaves lists and nested objects open. Both are written as the parsers of PHP, Node (qs) and
 * Stripe read them: `name[list][0]=value`.
 */
function deepPairs(
  name: string,
  value: readonly JsonValue[] | JsonObject,
  encode: (text: string) => string,
  depth: number,
): readonly EncodedPair[] {
  if (depth >= MAX_DEPTH) return [[percentEncoded(name), encode(writeJson(value))]];
  return Object.entries(value).flatMap(([key, member]: readonly [string, JsonValue | undefined]) => {
    if (member === undefined || member === null) return [];
    const inner = `${name}[${key}]`;
    if (typeof member === 'object') return deepPairs(inner, member, encode, depth + 1);
    return [[percentEncoded(inner), encode(scalarText(value, key, member))] as const];
  });
}

export function isJsonList(value: JsonValue): value is readonly JsonValue[] {
  return Array.isArray(value);
}

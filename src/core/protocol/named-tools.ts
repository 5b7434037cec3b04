/**
 * The places at which the text of a result names tools of its server (`_meta["io.troupe/names"]`). A gateway, which offers the tools
 * under other names, asks for them in its calls, and rewrites these places and no others: text is data.
 */
import { isJsonObject, type JsonObject, type JsonValue } from './json.ts';
import { copyNumbers } from './json-text.ts';
import { META } from './meta.ts';

/** The start and the end of a name in the text of the first block, in UTF-16 code units. */
type NamePlace = readonly [start: number, end: number];

/** The most places of one result that are rewritten. */
const MAX_PLACES = 256;

/** True if a call asks for the places. */
export function wantsNames(meta: Readonly<Record<string, unknown>>): boolean {
  return meta[META.names] === true;
}

/**
 * Finds the names that begin like those of a machine's tools.
 *
 * @param from the place at which the words of the server begin: what stands before is data
 * @param prefix the beginning of the names, such as `order_`
 * @example namePlaces('x order_pay\nCall order_get', 12, 'order_') // [[17, 26]]
 */
export function namePlaces(text: string, from: number, prefix: string): readonly NamePlace[] {
  const places: NamePlace[] = [];
  const name = /[A-Za-z0-9_.-]+/g;
  name.lastIndex = from;
  for (let found = name.exec(text); found; found = name.exec(text)) {
    // A full stop ends a sentence, not a name.
    const word = found[0].replace(/[.-]+$/, '');
    if (word.startsWith(prefix) && word !== prefix) places.push([found.index, found.index + word.length]);
  }
  return places;
}

/**
 * Rewrites the names of tools in the text of a result where its server says that they are. A place that names no tool stays as it is.
 *
 * @param offered the name under which a tool is offered; undefined for a name that is none
 * @returns the same object if there is nothing to rewrite, and the places of the new names
 * @example renameInText(result, (name) => `shop_${name}`)
 */
export function renameInText(
  result: JsonObject,
  offered: (name: string) => string | undefined,
): { readonly result: JsonObject; readonly places: readonly NamePlace[] } {
  const { _meta: meta, content } = result;
  const places = isJsonObject(meta) ? placesIn(meta[META.names]) : [];
  const [block, ...others] = Array.isArray(content) ? content : [];
  if (places.length === 0 || !isJsonObject(block) || typeof block.text !== 'string') return { result, places: [] };
  const { text } = block;
  const renamed: NamePlace[] = [];
  let written = '';
  let at = 0;
  for (const [start, end] of places) {
    if (start < at || end > text.length) break;
    const name = text.slice(start, end);
    const known = offered(name);
    written += text.slice(at, start);
    if (known !== undefined) renamed.push([written.length, written.length + known.length]);
    written += known ?? name;
    at = end;
  }
  const changed = copyNumbers(block, { ...block, text: written + text.slice(at) });
  return { result: copyNumbers(result, { ...result, content: [changed, ...others] }), places: renamed };
}

function placesIn(value: JsonValue | undefined): readonly NamePlace[] {
  if (!Array.isArray(value)) return [];
  const places: NamePlace[] = [];
  for (const place of value.slice(0, MAX_PLACES)) {
    const [start, end] = Array.isArray(place) ? place : [];
    if (!isPlace(start) || !isPlace(end) || end <= start) return [];
    places.push([start, end]);
  }
  return places;
}

function isPlace(value: JsonValue | undefined): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

/** Adds the places to a result, if it has any. */
export function withPlaces<Result extends { readonly _meta?: JsonObject }>(
  result: Result,
  places: readonly NamePlace[],
): Result {
  if (places.length === 0) return result;
  const list: JsonValue = places.map(([start, end]) => [start, end]);
  const { _meta: meta = {} } = result;
  return copyNumbers(result, { ...result, _meta: copyNumbers(meta, { ...meta, [META.names]: list }) });
}

/** Removes characters that no reader sees, but a model reads, from the titles and descriptions of definitions. */

import { isJsonObject, type JsonObject, type JsonValue } from '../../core/protocol/json.ts';
import { copyNumbers } from '../../core/protocol/json-text.ts';

/** Invisible characters at one place of a definition. */
interface InvisibleText {
  /** The members that lead to the text, such as `inputSchema/properties/path/description`. */
  readonly at: string;
  /** Each character once, such as `U+200B`. */
  readonly characters: readonly string[];
  /** False for names and values, which a call needs as they are. */
  readonly removed: boolean;
}

/**
 * Controls except tab and line ends, and what fonts ignore: characters of zero width, marks of direction (Unicode bidi), fillers,
 * variation selectors, tags (Unicode, Default_Ignorable_Code_Point); also interlinear annotations.
 */
const INVISIBLE = /(?![\t\n\r])[\p{Cc}\p{Default_Ignorable_Code_Point}\ufff9-\ufffb]/gu;

/** Scripts that write words with joiners (Unicode core specification, "Cursive Connection and Ligatures"). */
const JOINED =
  '[\\p{Script=Arabic}\\p{Script=Bengali}\\p{Script=Devanagari}\\p{Script=Gujarati}\\p{Script=Gurmukhi}\\p{Script=Kannada}\\p{Script=Malayalam}\\p{Script=Oriya}\\p{Script=Sinhala}\\p{Script=Syriac}\\p{Script=Tamil}\\p{Script=Telugu}]';

/** One visible use of an invisible character: a joiner within a word or an emoji, a selector after an emoji or an ideograph. */
const NEEDED = new RegExp(
  `(?<=${JOINED})[\\u200c\\u200d](?=${JOINED})|(?<=\\p{Extended_Pictographic}\\ufe0f?|\\p{Emoji_Modifier})\\u200d(?=\\p{Extended_Pictographic})|(?<=[\\p{Extended_Pictographic}0-9#*])\\ufe0f|(?<=\\p{Script=Han})[\\ufe00-\\ufe02\\u{e0100}-\\u{e01ef}]`,
  'gu',
);

/**
 * Removes the invisible characters of one text.
 *
 * @returns the text without them, and each of them once
 */
export function withoutInvisible(text: string): { readonly text: string; readonly characters: readonly string[] } {
  if (text.search(INVISIBLE) === -1) return { text, characters: [] };
  const needed = new Set([...text.matchAll(NEEDED)].map(({ index }) => index));
  const characters = new Set<string>();
  const visible = text.replace(INVISIBLE, (character: string, at: number) => {
    if (needed.has(at)) return character;
    characters.add(`U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`);
    return '';
  });
  return { text: visible, characters: [...characters] };
}

/** Keywords of JSON Schema and members of a prompt whose members are named by the author. */
const NAMED_BY_AUTHOR: ReadonlySet<string> = new Set([
  'properties',
  'patternProperties',
  '$defs',
  'definitions',
  'dependentSchemas',
]);
/** Keywords whose values are data. */
const DATA: ReadonlySet<string> = new Set(['const', 'default', 'enum', 'examples', 'required', 'pattern']);
/** The members that a model or a person reads, and no call needs. */
const READ: ReadonlySet<string> = new Set(['title', 'description', '$comment']);
/** The members of a definition that are read. */
const PARTS: ReadonlySet<string> = new Set([
  'inputSchema',
  'outputSchema',
  'payloadSchema',
  'arguments',
  'annotations',
]);

/**
 * Removes the invisible characters from the title and the description of a definition, of its schemas and their parts, and of
 * its arguments. In names and values, it reports them.
 *
 * @returns the same object if nothing was removed
 */
export function visibleDefinition(definition: JsonObject): {
  readonly definition: JsonObject;
  readonly found: readonly InvisibleText[];
} {
  const found: InvisibleText[] = [];
  const clean = cleanMembers(definition, [], found, (member) => PARTS.has(member));
  return { definition: clean, found };
}

/** @param enters decides which members are entered besides the texts */
function cleanMembers(
  members: JsonObject,
  at: readonly string[],
  found: InvisibleText[],
  enters: (member: string) => boolean,
): JsonObject {
  return eachMember(members, at, (member, value, place) => {
    if (READ.has(member) && typeof value === 'string') {
      const { text, characters } = withoutInvisible(value);
      if (characters.length > 0) found.push({ at: place.join('/'), characters, removed: true });
      return text;
    }
    if (member === 'name' || DATA.has(member)) report(value, place, found);
    else if (enters(member)) {
      if (!NAMED_BY_AUTHOR.has(member) || !isJsonObject(value)) return cleanPart(value, place, found);
      return eachMember(value, place, (name, part, within) => {
        report(name, within, found);
        return cleanPart(part, within, found);
      });
    }
    return value;
  });
}

/** @returns the same object if no member changes */
function eachMember(
  members: JsonObject,
  at: readonly string[],
  clean: (member: string, value: JsonValue, place: readonly string[]) => JsonValue,
): JsonObject {
  let changed: Record<string, JsonValue | undefined> | undefined;
  for (const [member, value] of Object.entries(members)) {
    if (value === undefined) continue;
    const next = clean(member, value, [...at, member]);
    if (next === value) continue;
    changed ??= copyNumbers(members, { ...members });
    changed[member] = next;
  }
  return changed ?? members;
}

function cleanPart(value: JsonValue, at: readonly string[], found: InvisibleText[]): JsonValue {
  if (isJsonObject(value)) return cleanMembers(value, at, found, () => true);
  if (!isList(value)) return value;
  const clean = value.map((item, index) => cleanPart(item, [...at, String(index)], found));
  return clean.some((item, index) => item !== value[index]) ? copyNumbers(value, clean) : value;
}

/** Reports the invisible characters of a value that stays as it is. */
function report(value: JsonValue, at: readonly string[], found: InvisibleText[]): void {
  if (typeof value === 'string') {
    const { characters } = withoutInvisible(value);
    if (characters.length > 0) found.push({ at: withoutInvisible(at.join('/')).text, characters, removed: false });
  } else if (isList(value)) for (const item of value) report(item, at, found);
  else if (isJsonObject(value))
    for (const [name, member] of Object.entries(value)) report([name, member ?? null], at, found);
}

function isList(value: JsonValue): value is readonly JsonValue[] {
  return Array.isArray(value);
}

/** Describes what was found in a definition in one line, for the operator. */
export function describeInvisible(name: string, found: readonly InvisibleText[]): string {
  const places = found.map(
    ({ at, characters, removed }) => `${removed ? 'removed' : 'left'} ${characters.join(' ')} in ${at}`,
  );
  return `"${withoutInvisible(name).text.slice(0, 128)}": invisible characters: ${places.join('; ').slice(0, 1_000)}`;
}

/** Removes the members of `_meta` by which this server speaks of itself: an upstream that writes them would speak in its name. */

import { isJsonObject, type JsonObject, type JsonValue } from '../../core/protocol/json.ts';
import { copyNumbers } from '../../core/protocol/json-text.ts';

const OWN = 'io.troupe/';
/** The members in which definitions and results have parts with a `_meta` of their own. */
const PARTS = ['content', 'contents', 'messages', 'resource', 'arguments', 'icons', 'annotations'] as const;

/** @returns the value itself if there is nothing to remove */
export function withoutOwnMeta(value: JsonObject): JsonObject {
  let copy = value;
  const { _meta: meta } = value;
  if (isJsonObject(meta) && Object.keys(meta).some((name) => name.startsWith(OWN))) {
    const { _meta: _, ...others } = value;
    const kept = Object.entries(meta).filter(([name]) => !name.startsWith(OWN));
    const clean: JsonObject = copyNumbers(meta, Object.fromEntries(kept));
    copy = copyNumbers(value, kept.length === 0 ? others : { ...others, _meta: clean });
  }
  for (const name of PARTS) {
    const part = copy[name];
    if (part === undefined) continue;
    const clean = cleanPart(part);
    if (clean !== part) copy = copyNumbers(copy, { ...copy, [name]: clean });
  }
  return copy;
}

function cleanPart(part: JsonValue): JsonValue {
  if (isJsonObject(part)) return withoutOwnMeta(part);
  if (!Array.isArray(part)) return part;
  const clean = part.map((each) => (isJsonObject(each) ? withoutOwnMeta(each) : each));
  return clean.every((each, index) => each === part[index]) ? part : copyNumbers(part, clean);
}

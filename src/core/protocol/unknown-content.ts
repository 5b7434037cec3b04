/** The text of content blocks whose type no revision has. */
import { copyNumbers, writeJson } from './json-text.ts';

/** Longest JSON of a block of an unknown type that is shown as text, in characters. */
const MAX_UNKNOWN = 65_536;

/**
 * The text of a block whose type is unknown: some servers write `{ type: 'error', text }` or `{ type: 'json', json }`.
 *
 * @returns undefined if the block is too long to be read as text
 */
export function textOfUnknown(block: object): string | undefined {
  if ('text' in block && typeof block.text === 'string') return block.text;
  const { _meta, annotations, ...shown } = { _meta: undefined, annotations: undefined, ...block };
  const json = writeJson(copyNumbers(block, shown));
  return json.length > MAX_UNKNOWN ? undefined : json;
}

/** The names of functions and of their groups: JavaScript identifiers for names of tools and mounts. */
import { sha256 } from '../../../core/kernel/sha256.ts';
import { ASKED_MEMBERS } from '../sandbox/prelude.ts';

/** The longest part of a name in front of the hash that sets it apart. */
const STEM = 55;

/** Words that no global of a script can have as its name, and names that scripts need for something else. */
export const TAKEN_GLOBALS: ReadonlySet<string> = new Set([
  ...'await break case catch class const continue debugger default delete do else enum eval export extends false finally for'.split(
    ' ',
  ),
  ...'function if implements import in instanceof interface let new null package private protected public return static'.split(
    ' ',
  ),
  ...'super switch this throw true try typeof undefined var void while with yield arguments async'.split(' '),
  ...'ask code console escape host log progress resource self sleep unescape'.split(' '),
]);

/** Names that no function can have: the language itself asks a group for them, and gets nothing. */
export const TAKEN_MEMBERS: ReadonlySet<string> = new Set(ASKED_MEMBERS);

/**
 * The identifiers for names, such as `issues_list` for `issues-list`. A name that is one stays as it is, unless it is taken; each other
 * character becomes `_`. Of several names with one identifier, each that is not the identifier itself gets 8 digits of its hash, so that
 * no order decides.
 *
 * @param taken words that no identifier may be
 * @returns by name
 */
export function identifiersFor(
  names: Iterable<string>,
  taken: ReadonlySet<string> = new Set(),
): ReadonlyMap<string, string> {
  const all = [...new Set(names)];
  const plain = new Map(all.map((name) => [name, plainIdentifier(name, taken)]));
  const count = new Map<string, number>();
  for (const identifier of plain.values()) count.set(identifier, (count.get(identifier) ?? 0) + 1);
  return new Map(
    [...plain].map(([name, identifier]) => [
      name,
      name === identifier || count.get(identifier) === 1
        ? identifier
        : `${identifier.slice(0, STEM)}_${sha256(name, 'hex').slice(0, 8)}`,
    ]),
  );
}

function plainIdentifier(name: string, taken: ReadonlySet<string>): string {
  const identifier = name.replace(/[^A-Za-z0-9_$]/gu, '_').replace(/^(?=\d|$)/, '_');
  return taken.has(identifier) ? `${identifier}_` : identifier;
}

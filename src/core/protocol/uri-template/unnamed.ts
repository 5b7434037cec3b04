/** Matches expressions that write only values: `{a}`, `{+a}`, `{#a}`, `{.a}` and `{/a}`. */
import type { Atoms, Marks } from './atoms.ts';
import { atomsText } from './atoms.ts';
import type { Expression, Variable } from './grammar.ts';

const SLASH = 0x2f;
const QUESTION = 0x3f;
const HASH = 0x23;
/** No character has this code. */
const NONE = -2;

/**
 * Finds, for every position from `from` on, where this expression ends if it starts there and ends at a position that
 * `ends` marks: the nearest such position plus one, or 0. Returns `undefined` if it can start nowhere. One pass from
 * the back. The possible ends are the positions up to a limit: the first character that no value may contain, or one
 * separator too many. The previous step provides the limit and the nearest marked position.
 */
export function sweepUnnamed(
  atoms: Atoms,
  { operator, variables }: Expression,
  ends: Marks,
  from: number,
): Marks | undefined {
  const { codes, length } = atoms;
  const alone = isAlone(variables);
  const opened = operator.first !== '';
  const opener = opened ? operator.first.charCodeAt(0) : NONE;
  const separator = alone ? NONE : operator.separator.charCodeAt(0);
  const most = variables.some(({ explode }) => explode) ? length : variables.length - 1;
  const longest = alone ? Math.min(length, variables[0]?.prefix ?? 0) : length;
  const open = operator.reserved;
  const chosen = new Uint16Array(length + 1);
  let limit = length;
  let separators = 0;
  let nearest = length + 1;
  let some = 0;
  for (let at = length; at >= from; at -= 1) {
    const code = codes[at];
    let end = code === opener && nearest <= limit && nearest <= at + 1 + longest ? nearest + 1 : 0;
    if (code === separator) {
      separators += 1;
      while (separators > most) {
        limit -= 1;
        if (codes[limit] === separator) separators -= 1;
      }
    } else if (!open && (code === SLASH || code === QUESTION || code === HASH)) {
      limit = at;
      separators = 0;
    }
    if (!opened && nearest <= limit && nearest <= at + longest) end = nearest + 1;
    if (ends[at] !== 0) {
      // The expression is empty because every variable is undefined. Only an opener would distinguish this from empty
      // values.
      if (opened && end === 0) end = at + 1;
      nearest = at;
    }
    chosen[at] = end;
    some ||= end;
  }
  return some === 0 ? undefined : chosen;
}

/**
 * Distributes the atoms from `start` up to `end` to the variables. Each gets one part, from the left; surplus parts go
 * to the first exploded variable. Returns false if a value is longer than its `:n`.
 */
export function collectUnnamed(
  atoms: Atoms,
  { operator, variables }: Expression,
  start: number,
  end: number,
  found: Record<string, string | readonly string[]>,
): boolean {
  if (start === end) return true;
  const from = start + operator.first.length;
  const parts = isAlone(variables)
    ? [atomsText(atoms, from, end)]
    : split(atoms, from, end, operator.separator.charCodeAt(0));
  let surplus = Math.max(0, parts.length - variables.length);
  let next = 0;
  for (const { name, explode, prefix } of variables) {
    const value = parts[next];
    if (value === undefined) break;
    if (explode) {
      found[name] = parts.slice(next, next + 1 + surplus);
      next += surplus;
      surplus = 0;
    } else {
      if (value.length > prefix && [...value].length > prefix) return false;
      found[name] = value;
    }
    next += 1;
  }
  return true;
}

/** A variable that stands alone in its expression and is not exploded includes separators in its value. */
function isAlone(variables: readonly Variable[]): boolean {
  return variables.length === 1 && variables[0]?.explode === false;
}

function split(atoms: Atoms, from: number, end: number, separator: number): string[] {
  const parts: string[] = [];
  let start = from;
  for (let at = from; at <= end; at += 1) {
    if (at < end && atoms.codes[at] !== separator) continue;
    parts.push(atomsText(atoms, start, at));
    start = at + 1;
  }
  return parts;
}

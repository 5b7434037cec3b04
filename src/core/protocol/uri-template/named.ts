/** Matches expressions that write `name=value`: `{;a}`, `{?a}` and `{&a}`, in any order, each optional. */
import type { Atoms, Marks } from './atoms.ts';
import { atomsText, isNameAtom } from './atoms.ts';
import type { Expression, Variable } from './grammar.ts';
import { decoded } from './grammar.ts';

const AMPERSAND = 0x26;
const EQUALS = 0x3d;
const HASH = 0x23;
const QUESTION = 0x3f;
const SEMICOLON = 0x3b;
const SLASH = 0x2f;
/** Later than any position. */
const NEVER = 0x7fffffff;

/** The variable names to search for, decoded. */
export interface Names {
  readonly ids: ReadonlyMap<string, number>;
  /** Length of the longest name, in characters. */
  readonly longest: number;
}

/** The variable that the parameter at each position names, and the end of its name. */
export interface Parameters {
  /** The variable's id plus one; 0 if no known name follows. */
  readonly ids: Int32Array;
  readonly nameEnds: Int32Array;
}

const noParameters: Parameters = { ids: new Int32Array(0), nameEnds: new Int32Array(0) };

export function namesOf(variables: readonly Variable[]): Names {
  const names = variables.map(({ name, id }) => [decoded(name) ?? name, id] as const);
  return { ids: new Map(names), longest: Math.max(0, ...names.map(([name]) => name.length)) };
}

/** Reads the name after every `?`, `&` and `;`, once for all expressions. */
export function readParameters(atoms: Atoms, names: Names): Parameters {
  if (names.ids.size === 0) return noParameters;
  const ids = new Int32Array(atoms.length + 1);
  const nameEnds = new Int32Array(atoms.length + 1);
  for (let at = 0; at < atoms.length; at += 1) {
    const code = atoms.codes[at];
    if (code !== QUESTION && code !== AMPERSAND && code !== SEMICOLON) continue;
    const furthest = at + 1 + names.longest;
    let end = at + 1;
    while (end <= furthest && isNameAtom(atoms.codes[end])) end += 1;
    if (end === at + 1 || end > furthest) continue;
    const id = names.ids.get(atomsText(atoms, at + 1, end));
    if (id === undefined) continue;
    ids[at] = id + 1;
    nameEnds[at] = end;
  }
  return { ids, nameEnds };
}

/**
 * Does the work of `sweepUnnamed` for named expressions. A chain of parameters follows each start, so the pass carries
 * the properties of the chain at the next separator: its nearest end, and the limit that a repeated name sets.
 */
export function sweepNamed(
  atoms: Atoms,
  parameters: Parameters,
  { operator, variables }: Expression,
  ends: Marks,
  from: number,
): Marks | undefined {
  const { codes, length } = atoms;
  const opener = operator.first.charCodeAt(0);
  const separator = operator.separator.charCodeAt(0);
  const query = separator === AMPERSAND;
  const base = (variables[0]?.id ?? 0) + 1;
  const repeats = new Int32Array(variables.length).fill(NEVER);
  const chosen = new Uint16Array(length + 1);
  const nearest = new Int32Array(length + 2);
  nearest[length + 1] = NEVER;
  let some = false;
  let wall = length;
  let chainAt = NEVER;
  let chainEnd = NEVER;
  let chainLimit = NEVER;
  for (let at = length; at >= from; at -= 1) {
    const marked = ends[at] !== 0;
    nearest[at] = marked ? at : (nearest[at + 1] ?? NEVER);
    const code = codes[at];
    if (code === opener || code === separator) {
      const index = (parameters.ids[at] ?? 0) - base;
      // Check the index first: reading an array at a negative index is slow enough to matter here.
      const variable = index >= 0 ? variables[index] : undefined;
      let end = NEVER;
      let limit = NEVER;
      if (variable) {
        const nameEnd = parameters.nameEnds[at] ?? 0;
        const valued = codes[nameEnd] === EQUALS;
        const valueStart = valued ? nameEnd + 1 : nameEnd;
        const valueEnd = valued ? Math.min(wall, valueStart + Math.min(variable.prefix, length)) : nameEnd;
        const own = nearest[valueStart] ?? NEVER;
        const chained = valueEnd === chainAt;
        if (own <= valueEnd) end = own;
        else if (chained) end = chainEnd;
        if (chained) limit = Math.min(chainLimit, repeats[index] ?? NEVER);
      }
      if (code === opener && end !== NEVER && end <= limit) chosen[at] = end + 1;
      if (code === separator) {
        chainAt = at;
        chainEnd = end;
        chainLimit = limit;
        if (variable?.explode === false) repeats[index] = at;
      }
    }
    if (code === separator || code === HASH || (!query && (code === SLASH || code === QUESTION))) wall = at;
    if (marked && chosen[at] === 0) chosen[at] = at + 1;
    if (chosen[at] !== 0) some = true;
  }
  return some ? chosen : undefined;
}

/** Reads the parameters from `start` up to `end`, which a sweep chose. */
export function collectNamed(
  atoms: Atoms,
  parameters: Parameters,
  { operator, variables }: Expression,
  start: number,
  end: number,
  found: Record<string, string | readonly string[]>,
): void {
  const separator = operator.separator.charCodeAt(0);
  const base = (variables[0]?.id ?? 0) + 1;
  const lists = new Map<string, string[]>();
  for (let at = start; at < end; ) {
    const variable = variables[(parameters.ids[at] ?? 0) - base];
    let valueStart = parameters.nameEnds[at] ?? end;
    if (valueStart < end && atoms.codes[valueStart] === EQUALS) valueStart += 1;
    at = valueStart;
    while (at < end && atoms.codes[at] !== separator) at += 1;
    if (!variable) continue;
    const value = atomsText(atoms, valueStart, at);
    if (!variable.explode) {
      found[variable.name] = value;
      continue;
    }
    const list = lists.get(variable.name) ?? [];
    list.push(value);
    lists.set(variable.name, list);
    found[variable.name] = list;
  }
}

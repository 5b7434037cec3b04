/** Matching of a URI against a template: the reverse of expansion, in time linear in the URI for each expression. */
import type { Atoms, Literal, Marks } from './atoms.ts';
import { leads, literalOf, MAX_URI_LENGTH, readAtoms, startsBefore } from './atoms.ts';
import type { Expression, TemplatePart } from './grammar.ts';
import type { Names, Parameters } from './named.ts';
import { collectNamed, namesOf, readParameters, sweepNamed } from './named.ts';
import { collectUnnamed, sweepUnnamed } from './unnamed.ts';

/**
 * The values of a template's variables in a URI, without a prototype. An exploded variable is a list, any other a
 * string.
 */
export type TemplateMatch = Readonly<Record<string, string | readonly string[]>>;

interface Step {
  readonly expression: Expression;
  /** The literal text after the expression; often empty. */
  readonly after: Literal;
}

/** A template, compiled for matching. */
export interface Pattern {
  readonly lead: Literal;
  /** The start of every matching URI, as far as it can be compared without decoding. */
  readonly start: string;
  readonly steps: readonly Step[];
  readonly names: Names;
}

export function compile(parts: readonly TemplatePart[]): Pattern {
  const lead = typeof parts[0] === 'string' ? parts[0] : '';
  const steps: Step[] = [];
  for (const [index, part] of parts.entries()) {
    if (typeof part === 'string') continue;
    const after = parts[index + 1];
    steps.push({ expression: part, after: literalOf(typeof after === 'string' ? after : '') });
  }
  const named = steps.flatMap(({ expression }) => (expression.operator.named ? expression.variables : []));
  return { lead: literalOf(lead), start: /^[!-$&-~]*/.exec(lead)?.[0] ?? '', steps, names: namesOf(named) };
}

/** Matches a whole URI. Never throws. */
export function matchPattern(pattern: Pattern, uri: string): TemplateMatch | undefined {
  if (uri.length > MAX_URI_LENGTH || startsOtherwise(pattern.start, uri)) return undefined;
  const atoms = readAtoms(uri);
  if (!atoms || !leads(pattern.lead, atoms)) return undefined;
  const parameters = readParameters(atoms, pattern.names);
  const choices = sweep(pattern, atoms, parameters);
  return choices && collect(pattern, atoms, parameters, choices);
}

/** Rejects most URIs that do not match, before any allocation. A percent sign may still encode the same character. */
function startsOtherwise(start: string, uri: string): boolean {
  for (let at = 0; at < start.length; at += 1) {
    if (uri[at] !== start[at]) return uri[at] !== '%';
  }
  return false;
}

/** For each step, its end for each position at which it can start; `undefined` if no path leads from start to end. */
function sweep({ lead, steps }: Pattern, atoms: Atoms, parameters: Parameters): Marks[] | undefined {
  const from = lead.length;
  const choices: Marks[] = [];
  let marked: Marks | undefined = new Uint16Array(atoms.length + 1);
  marked[atoms.length] = 1;
  for (const { expression, after } of steps.toReversed()) {
    const ends = startsBefore(after, atoms, from, marked);
    if (!ends) return undefined;
    if (expression.operator.named) marked = sweepNamed(atoms, parameters, expression, ends, from);
    else marked = sweepUnnamed(atoms, expression, ends, from);
    if (!marked) return undefined;
    choices.push(marked);
  }
  return marked[from] === 0 ? undefined : choices.reverse();
}

function collect(
  { lead, steps }: Pattern,
  atoms: Atoms,
  parameters: Parameters,
  choices: readonly Marks[],
): TemplateMatch | undefined {
  const found: Record<string, string | readonly string[]> = Object.create(null);
  let at = lead.length;
  for (const [index, { expression, after }] of steps.entries()) {
    const end = (choices[index]?.[at] ?? 0) - 1;
    if (expression.operator.named) {
      collectNamed(atoms, parameters, expression, at, end, found);
    } else if (!collectUnnamed(atoms, expression, at, end, found)) return undefined;
    at = end + after.length;
  }
  return found;
}

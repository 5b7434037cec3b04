/** Reads one property of a JSON Schema as a field that a form of MCP elicitation can have, or refuses it by name with what would fit. */
import { isObject } from '../protocol/json.ts';
import { listWords, literal, quote } from '../schema/excerpts.ts';
import { SchemaError } from '../schema/schema-error.ts';

/** One value that can be chosen. */
export interface Choice {
  readonly value: string;
  readonly title: string | undefined;
}

interface Labels {
  readonly title: string | undefined;
  readonly description: string | undefined;
}

/** What a form can ask for (MCP 2025-11-25 and 2026-07-28 client/elicitation, "Requested Schema"). */
export type Field =
  | (Labels & {
      readonly kind: 'text';
      readonly minLength: number | undefined;
      readonly maxLength: number | undefined;
      readonly format: string | undefined;
      readonly initial: string | undefined;
    })
  | (Labels & {
      readonly kind: 'number';
      readonly type: 'number' | 'integer';
      readonly minimum: number | undefined;
      readonly maximum: number | undefined;
      readonly initial: number | undefined;
    })
  | (Labels & { readonly kind: 'flag'; readonly initial: boolean | undefined })
  | (Labels & {
      readonly kind: 'one';
      readonly choices: readonly Choice[];
      /** The author wrote `enumNames`, which the specification calls legacy and still has. */
      readonly legacy: boolean;
      readonly initial: string | undefined;
    })
  | (Labels & {
      readonly kind: 'several';
      readonly choices: readonly Choice[];
      readonly minItems: number | undefined;
      readonly maxItems: number | undefined;
      readonly initial: readonly string[] | undefined;
    });

/** A schema as its members, whatever they hold. */
export type Source = Readonly<Record<string, unknown>>;

/** What a schema says once its reference is followed; `undefined` for what is no object. */
export type Follow = (schema: unknown) => Source | undefined;

const FORMATS: ReadonlySet<unknown> = new Set(['email', 'uri', 'date', 'date-time']);
const TYPES = 'string, number, integer, boolean, or a choice of strings';

/**
 * Reads a property. Keywords that a form has no place for (`pattern`, `exclusiveMinimum` of a number, other formats) are left out:
 * they only narrow, and the author's schema judges the answer anyway.
 *
 * @param at its place, for the error
 * @throws SchemaError for what no form can ask, such as an object, or a default that is no value of the field
 */
export function readField(name: string, schema: unknown, follow: Follow, at: string, where: string): Field {
  const refuse = (problem: string, fix: string): SchemaError =>
    new SchemaError(where, at, `property ${quote(name)} ${problem}`, fix);

  const source = follow(schema);
  if (source === undefined)
    throw refuse(`has the schema ${literal(schema)}`, `a form must know what it asks for: ${TYPES}`);
  const labels = { title: textOf(source.title), description: textOf(source.description) };
  const initial = <T>(what: string, fits: (value: unknown) => value is T): T | undefined => {
    const { default: value } = source;
    if (value === undefined || fits(value)) return value;
    throw refuse(`has the default ${literal(value)}`, `a form is filled with it, so it must be ${what}`);
  };
  const among = (choices: readonly Choice[]) => `one of ${listWords(choices.map(({ value }) => quote(value)))}`;

  const choices = choicesOf(source, follow);
  const type = typeOf(source, choices);
  if (choices !== undefined && type === 'string') {
    const isChoice = (value: unknown): value is string => choices.some((choice) => choice.value === value);
    const { enumNames } = source;
    const legacy = Array.isArray(enumNames);
    if (legacy && enumNames.length !== choices.length)
      throw refuse(
        `has ${choices.length} values in "enum" and ${enumNames.length} in "enumNames"`,
        'give each value its name, in the same order',
      );
    return { ...labels, kind: 'one', choices, legacy, initial: initial(among(choices), isChoice) };
  }
  switch (type) {
    case 'string': {
      const { minLength, maxLength, format } = source;
      return {
        ...labels,
        kind: 'text',
        minLength: numberOf(minLength),
        maxLength: numberOf(maxLength),
        format: FORMATS.has(format) ? textOf(format) : undefined,
        initial: initial('a string', isText),
      };
    }
    case 'number':
    case 'integer': {
      if (source.enum !== undefined || source.const !== undefined) throw refuse(...misfit(source));
      const what = type === 'integer' ? 'a whole number' : 'a number';
      const fits = (value: unknown): value is number =>
        typeof value === 'number' && (type === 'number' || Number.isInteger(value));
      return { ...labels, kind: 'number', type, ...bounds(source, type), initial: initial(what, fits) };
    }
    case 'boolean':
      return { ...labels, kind: 'flag', initial: initial('true or false', isFlag) };
    case 'array': {
      const items = follow(source.items);
      const offered = items && choicesOf(items, follow);
      if (offered === undefined || typeOf(items ?? {}, offered) !== 'string')
        throw refuse(
          'is a list of anything',
          'a form can let choose several of given strings ("items" with an "enum"); for free ones, ask for one string and split it',
        );
      const what = `a list, each of it ${among(offered)}`;
      const fits = (value: unknown): value is readonly string[] =>
        Array.isArray(value) && value.every((each) => offered.some((choice) => choice.value === each));
      return {
        ...labels,
        kind: 'several',
        choices: offered,
        minItems: numberOf(source.minItems),
        maxItems: numberOf(source.maxItems),
        initial: initial(what, fits),
      };
    }
    default:
      throw refuse(...misfit(source));
  }
}

/** The one type of a schema; that of its values where it names none, which arktype does with choices. */
function typeOf({ type, const: only }: Source, choices: readonly Choice[] | undefined): unknown {
  const named = Array.isArray(type) && type.length === 1 ? type[0] : type;
  if (named === undefined && choices !== undefined) return 'string';
  return named === undefined && typeof only === 'boolean' ? 'boolean' : named;
}

/** The strings that a schema lets choose from, in any of the ways that JSON Schema has for it; `undefined` where it does not. */
function choicesOf(source: Source, follow: Follow): readonly Choice[] | undefined {
  const { const: only, enum: values, enumNames: names, anyOf, oneOf } = source;
  if (isText(only)) return [{ value: only, title: undefined }];
  if (Array.isArray(values)) {
    if (!values.every(isText)) return undefined;
    return values.map((value, index) => ({ value, title: Array.isArray(names) ? textOf(names[index]) : undefined }));
  }
  const branches = oneOf ?? anyOf;
  if (!Array.isArray(branches)) return undefined;
  const found: Choice[] = [];
  for (const branch of branches) {
    const inner = follow(branch);
    const more = inner && choicesOf(inner, follow);
    if (more === undefined || typeOf(inner ?? {}, more) !== 'string') return undefined;
    // The title of a branch names its value where it has only one.
    const title = more.length === 1 ? textOf(inner?.title) : undefined;
    found.push(...more.map((choice) => ({ ...choice, title: choice.title ?? title })));
  }
  return found;
}

/** What is wrong with a schema of none of the types that a form has, and what to write instead. */
function misfit(source: Source): readonly [problem: string, fix: string] {
  const { type, enum: values, const: only, anyOf, oneOf, properties } = source;
  const branches = oneOf ?? anyOf;
  const types = [type, ...(Array.isArray(branches) ? branches.map((each) => isObject(each) && each.type) : [])].flat();
  if (types.includes('null') || only === null)
    return [
      'may be null, which a form cannot answer',
      'make it optional instead: leave it out of "required" (zod: .optional())',
    ];
  if (type === 'object' || properties !== undefined)
    return [
      'is an object, and a form is flat',
      'give each of its properties a name of its own, such as "address_city"',
    ];
  const isFixed = (each: unknown): boolean => isObject(each) && (each.const ?? each.enum) !== undefined;
  if (Array.isArray(values) || only !== undefined || (Array.isArray(branches) && branches.every(isFixed)))
    return [
      'has choices that are no strings',
      'write them as strings, such as "1", and turn the answer into what you need',
    ];
  if (Array.isArray(branches) || Array.isArray(type)) return ['may be of several kinds', `a field has one: ${TYPES}`];
  return ['has no type that a form has', `say one in "type": ${TYPES}`];
}

/** Where whole numbers end for JavaScript; zod says so of every integer, and no user needs to read it. */
const SAFE = Number.MAX_SAFE_INTEGER;

function bounds(source: Source, type: 'number' | 'integer') {
  let minimum = numberOf(source.minimum);
  let maximum = numberOf(source.maximum);
  if (type === 'number') return { minimum, maximum };
  // Forms know no exclusive bounds; whole numbers have a next one.
  const above = numberOf(source.exclusiveMinimum);
  const below = numberOf(source.exclusiveMaximum);
  if (above !== undefined) minimum = Math.max(minimum ?? -SAFE, Math.floor(above) + 1);
  if (below !== undefined) maximum = Math.min(maximum ?? SAFE, Math.ceil(below) - 1);
  return { minimum: minimum === -SAFE ? undefined : minimum, maximum: maximum === SAFE ? undefined : maximum };
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

function isFlag(value: unknown): value is boolean {
  return typeof value === 'boolean';
}

function textOf(value: unknown): string | undefined {
  return isText(value) ? value : undefined;
}

function numberOf(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined;
}

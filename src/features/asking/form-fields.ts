/** Reads a property of a JSON Schema as a field of an MCP elicitation form, or rejects it by name with an alternative. */
import { isObject } from '../../core/protocol/json.ts';
import { listWords, literal, quote } from '../../core/schema/excerpts.ts';
import { SchemaError } from '../../core/schema/schema-error.ts';

/** One of the values to choose from. */
export interface Choice {
  readonly value: string;
  readonly title: string | undefined;
}

interface Labels {
  readonly title: string | undefined;
  readonly description: string | undefined;
}

/** The kinds of fields in a form (MCP 2025-11-25 and 2026-07-28 client/elicitation, "Requested Schema"). */
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
      /** The author wrote `enumNames`, which the specification still supports as legacy. */
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

/** The members of a schema, of any type. */
type Source = Readonly<Record<string, unknown>>;

/** Follows the reference of a schema; returns `undefined` if the result is not an object. */
export type Follow = (schema: unknown) => Source | undefined;

const FORMATS: ReadonlySet<unknown> = new Set(['email', 'uri', 'date', 'date-time']);
const TYPES = 'string, number, integer, boolean, or a choice of strings';

/**
 * Reads a property. Keywords that no form supports (`pattern`, `exclusiveMinimum` of a number, other formats) are omitted:
 * they only narrow the values, and the author's schema checks the answer anyway.
 *
 * @param at the place of the property, for error messages
 * @throws SchemaError for a property that no form supports, such as an object, or for an invalid default
 */
export function readField(name: string, schema: unknown, follow: Follow, at: string, where: string): Field {
  const refuse = (problem: string, fix: string): SchemaError =>
    new SchemaError(where, at, `property ${quote(name)} ${problem}`, fix);

  const source = follow(schema);
  if (source === undefined) throw refuse(`has the schema ${literal(schema)}`, `a form field needs a type: ${TYPES}`);
  const labels = { title: textOf(source.title), description: textOf(source.description) };
  const initial = <T>(what: string, fits: (value: unknown) => value is T): T | undefined => {
    const { default: value } = source;
    if (value === undefined || fits(value)) return value;
    throw refuse(`has the default ${literal(value)}`, `a default must be a valid answer: ${what}`);
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
          'is a list of arbitrary values',
          'a form can offer a choice of several strings ("items" with an "enum"); for free text, ask for one string and split it',
        );
      const what = `a list, each item ${among(offered)}`;
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

/** Returns the type of a schema; the type of its values if it declares none, as arktype does for choices. */
function typeOf({ type, const: only }: Source, choices: readonly Choice[] | undefined): unknown {
  const named = Array.isArray(type) && type.length === 1 ? type[0] : type;
  if (named === undefined && choices !== undefined) return 'string';
  return named === undefined && typeof only === 'boolean' ? 'boolean' : named;
}

/** Returns the strings to choose from, in any of the notations of JSON Schema; `undefined` if the schema is not a choice. */
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
    // A branch with one value uses its title as the name of that value.
    const title = more.length === 1 ? textOf(inner?.title) : undefined;
    found.push(...more.map((choice) => ({ ...choice, title: choice.title ?? title })));
  }
  return found;
}

/** Describes why no form supports a schema, and an alternative. */
function misfit(source: Source): readonly [problem: string, fix: string] {
  const { type, enum: values, const: only, anyOf, oneOf, properties } = source;
  const branches = oneOf ?? anyOf;
  const types = [type, ...(Array.isArray(branches) ? branches.map((each) => isObject(each) && each.type) : [])].flat();
  if (types.includes('null') || only === null)
    return [
      'may be null, which no form can enter',
      'make it optional instead: leave it out of "required" (zod: .optional())',
    ];
  if (type === 'object' || properties !== undefined)
    return ['is an object, but a form is flat', 'make each of its properties a field, such as "address_city"'];
  const isFixed = (each: unknown): boolean => isObject(each) && (each.const ?? each.enum) !== undefined;
  if (Array.isArray(values) || only !== undefined || (Array.isArray(branches) && branches.every(isFixed)))
    return ['has choices that are not strings', 'use strings, such as "1", and convert the answer'];
  if (Array.isArray(branches) || Array.isArray(type)) return ['allows several types', `a field has one type: ${TYPES}`];
  return ['has no type that a form supports', `set "type" to one of: ${TYPES}`];
}

/** The safe integer range of JavaScript. zod adds it to every integer, and users need not see it. */
const SAFE = Number.MAX_SAFE_INTEGER;

function bounds(source: Source, type: 'number' | 'integer') {
  let minimum = numberOf(source.minimum);
  let maximum = numberOf(source.maximum);
  if (type === 'number') return { minimum, maximum };
  // Forms have no exclusive bounds. An integer has an adjacent inclusive bound.
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

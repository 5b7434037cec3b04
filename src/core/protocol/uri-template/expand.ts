/** Expansion of URI templates, all four levels (RFC 6570 section 3). */
import { describe, isObject } from '../json.ts';
import type { Expression, Operator, TemplatePart, Variable } from './grammar.ts';
import { TemplateError } from './template-error.ts';

/** The value of one variable. An empty list and an empty record count as undefined (RFC 6570 section 2.3). */
export type TemplateValue = string | readonly string[] | Readonly<Record<string, string>>;
export type TemplateValues = Readonly<Record<string, TemplateValue>>;

type Encode = (text: string) => string;

/**
 * Expands the parts to a URI. @throws TemplateError if a value has another type, or `:n` applies to a list or record
 */
export function expandParts(parts: readonly TemplatePart[], values: TemplateValues): string {
  return parts
    .map((part) => (typeof part === 'string' ? encodeReserved(part) : expandExpression(part, values)))
    .join('');
}

function expandExpression({ operator, variables }: Expression, values: TemplateValues): string {
  const written = variables.flatMap((variable) => expandVariable(operator, variable, values));
  return written.length === 0 ? '' : operator.first + written.join(operator.separator);
}

/** The strings that one variable adds between separators; none if it is undefined. */
function expandVariable(operator: Operator, variable: Variable, values: TemplateValues): string[] {
  const { name, explode, prefix } = variable;
  // Own properties only: `{constructor}` must not find a member of Object.prototype.
  const value: unknown = Object.hasOwn(values, name) ? values[name] : undefined;
  if (value === undefined) return [];
  const encode: Encode = (text) => encodeValue(operator, name, text);
  const named: Encode = (text) => (text === '' ? name + operator.ifEmpty : `${name}=${text}`);
  const written: Encode = operator.named ? named : (text) => text;
  if (typeof value === 'string')
    return [written(encode(prefix < value.length ? [...value].slice(0, prefix).join('') : value))];
  if (prefix !== Number.POSITIVE_INFINITY) throw unfit(name, 'a string, because ":n" takes a prefix', value);
  if (Array.isArray(value)) {
    const items = value.map((item: unknown) => encode(text(name, item)));
    if (items.length === 0) return [];
    return explode ? items.map(written) : [written(items.join(','))];
  }
  if (!isObject(value)) throw unfit(name, 'a string, a list of strings or a record of strings', value);
  const pairs = Object.entries(value).map(([key, item]) => [encode(key), encode(text(name, item))] as const);
  if (pairs.length === 0) return [];
  if (!explode) return [written(pairs.flat().join(','))];
  return pairs.map(([key, item]) => (operator.named && item === '' ? key + operator.ifEmpty : `${key}=${item}`));
}

function text(name: string, value: unknown): string {
  if (typeof value === 'string') return value;
  throw unfit(name, 'only strings in its list or record', value);
}

function unfit(name: string, expected: string, came: unknown): TemplateError {
  return new TemplateError(
    `URI template variable "${name}": expected ${expected}, got ${describe(came)}. Convert the value first`,
  );
}

function encodeValue(operator: Operator, name: string, value: string): string {
  try {
    return operator.reserved ? encodeReserved(value) : encodeUnreserved(value);
  } catch {
    throw new TemplateError(
      `URI template variable "${name}": expected well-formed Unicode, got a lone surrogate, which URIs cannot contain. Remove it`,
    );
  }
}

function encodeUnreserved(value: string): string {
  return encodeURIComponent(value).replace(/[!'()*]/g, (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`);
}

/** Leaves reserved characters and percent-escapes unchanged (RFC 6570 sections 3.1 and 3.2.3). */
function encodeReserved(value: string): string {
  return value.replace(/%(?![0-9A-Fa-f]{2})|[^A-Za-z0-9\-._~:/?#[\]@!$&'()*+,;=%]+/gu, encodeURIComponent);
}

/** URI templates (RFC 6570): expansion at all four levels, and matching in linear time. */
import type { TemplateValues } from './uri-template/expand.ts';
import { expandParts } from './uri-template/expand.ts';
import { readParts } from './uri-template/grammar.ts';
import type { TemplateMatch } from './uri-template/match-uri.ts';
import { compile, matchPattern } from './uri-template/match-uri.ts';

export type { TemplateValue, TemplateValues } from './uri-template/expand.ts';
export { TemplateError } from './uri-template/grammar.ts';
export type { TemplateMatch } from './uri-template/match-uri.ts';

/** A template that was read once and can be expanded and matched many times. */
export interface UriTemplate {
  /** The template as it was written. */
  readonly text: string;
  /** The names of its variables, in the order of the text. */
  readonly variables: readonly string[];

  /**
   * Writes a URI (RFC 6570 section 3). A variable without a value, with an empty list or an empty record is left out;
   * values for other names are ignored.
   *
   * @throws TemplateError where a value is no string, list or record of strings, holds a lone surrogate, or where `:n`
   * meets a list or a record.
   * @example parseTemplate('search{?q,page}').expand({ q: 'a b' }) // 'search?q=a%20b'
   */
  expand(values: TemplateValues): string;

  /**
   * Reads the values from a whole URI, percent-decoded; `undefined` where the URI is not of this template, holds a
   * malformed percent-escape, or is longer than 8,192 UTF-16 code units. Never throws. A variable that the URI leaves
   * out is absent from the answer; an exploded variable (`*`) is always a list. The answer has no prototype.
   *
   * A decoded value can hold anything: `{name}` on `a%2Fb` gives `a/b`, and `..%2F..` gives `../..`. Whoever makes a
   * path of it checks the path.
   *
   * Where several readings fit, each expression, from the left, takes the shortest text that lets the rest match, but
   * something rather than nothing: `{a}-{b}` on `x-y-z` gives `x` and `y-z`; `{a}{b}` on `xyz` gives `x` and `yz`.
   * One reading is not tried: where an unnamed expression deals its parts to several variables and one of them is longer
   * than its `:n`, the answer is `undefined`.
   *
   * @example parseTemplate('users/{id}{?tab}').match('users/7?tab=mail') // { id: '7', tab: 'mail' }
   */
  match(uri: string): TemplateMatch | undefined;
}

/**
 * Reads a template.
 *
 * @param text at most 2,048 UTF-16 code units and 32 expressions; each variable at most once.
 * @throws TemplateError where the text is malformed or passes a bound; it says where, what was expected and how to fix it.
 * @example parseTemplate('file:///{+path}').match('file:///a/b.txt') // { path: 'a/b.txt' }
 */
export function parseTemplate(text: string): UriTemplate {
  const parts = readParts(text);
  const pattern = compile(parts);
  return {
    text,
    variables: parts.flatMap((part) => (typeof part === 'string' ? [] : part.variables.map(({ name }) => name))),
    expand: (values) => expandParts(parts, values),
    match: (uri) => matchPattern(pattern, uri),
  };
}

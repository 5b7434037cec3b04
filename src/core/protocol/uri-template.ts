/** URI templates (RFC 6570): expansion at all four levels, and matching in linear time. */
import type { TemplateValues } from './uri-template/expand.ts';
import { expandParts } from './uri-template/expand.ts';
import { readParts } from './uri-template/grammar.ts';
import type { TemplateMatch } from './uri-template/match-uri.ts';
import { compile, matchPattern } from './uri-template/match-uri.ts';

export type { TemplateValue, TemplateValues } from './uri-template/expand.ts';
export type { TemplateMatch } from './uri-template/match-uri.ts';
export { TemplateError } from './uri-template/template-error.ts';

/** A parsed template, for any number of expansions and matches. */
export interface UriTemplate {
  /** The template's source text. */
  readonly text: string;
  /** The names of its variables, in order of appearance. */
  readonly variables: readonly string[];

  /**
   * Expands the template to a URI (RFC 6570 section 3). Omits variables without a value, with an empty list or with an
   * empty record. Ignores values for other names.
   *
   * @throws TemplateError if a value is not a string, list or record of strings, if it contains a lone surrogate, or if
   * `:n` applies to a list or a record
   * @example parseTemplate('search{?q,page}').expand({ q: 'a b' }) // 'search?q=a%20b'
   */
  expand(values: TemplateValues): string;

  /**
   * Extracts the percent-decoded values from a whole URI. Returns `undefined` if the URI does not match, contains a
   * malformed percent-escape, or is longer than 8,192 UTF-16 code units. Never throws. A variable that is missing in
   * the URI is absent from the result. An exploded variable (`*`) is always a list. The result has no prototype.
   *
   * A decoded value can contain any character: `{name}` on `a%2Fb` gives `a/b`, and `..%2F..` gives `../../..`. Code that
   * builds a path from it must check the path.
   *
   * If several readings match, each expression, from the left, takes the shortest text that lets the rest match, but
   * prefers a non-empty text: `{a}-{b}` on `x-y-z` gives `x` and `y-z`; `{a}{b}` on `xyz` gives `x` and `yz`. One
   * reading is not tried: if an unnamed expression distributes its parts to several variables and one part is longer
   * than its `:n`, the result is `undefined`.
   *
   * @example parseTemplate('users/{id}{?tab}').match('users/7?tab=mail') // { id: '7', tab: 'mail' }
   */
  match(uri: string): TemplateMatch | undefined;
}

/**
 * Parses a template.
 *
 * @param text at most 2,048 UTF-16 code units and 32 expressions; each variable at most once
 * @throws TemplateError if the text is malformed or exceeds a limit. The message names the position, the expectation
 * and a fix.
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

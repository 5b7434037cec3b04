/**
 * The body of a script as models write it: without the fence of Markdown around it, and with the result of the function that it declares
 * and calls. Lines stay where they are, so that errors name the lines of the model. The sandbox finds scripts that are one expression,
 * such as a whole function.
 */

const FENCE = /^(\s*)```[\w-]*[^\S\n]*\n([\s\S]*?)\n[^\S\n]*```\s*$/;
/** A function with a name, and its call as the last statement. */
const NAMED = /(^|\n)([^\S\n]*)(?:await\s+)?([\w$]+)\(\s*\)\s*;?\s*$/;

/** @example bodyOf('```js\nreturn 1\n```') // '\nreturn 1' */
export function bodyOf(code: string): string {
  const [, space = '', inside] = FENCE.exec(code) ?? [];
  const body = inside === undefined ? code : `${space}\n${inside}`;
  const [, start = '', indent = '', name] = NAMED.exec(body) ?? [];
  const isDeclared =
    name !== undefined &&
    new RegExp(`(^|\\n)\\s*async\\s+function\\s+${name.replaceAll('$', '\\$')}\\s*\\(\\s*\\)`).test(body);
  if (!isDeclared || /(^|\n)return\b/.test(body)) return body;
  return body.replace(NAMED, `${start}${indent}return ${name}();`);
}

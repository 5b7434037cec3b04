/**
 * The body of a script as models write it: without the fence of Markdown around it, with a call of the function that is the whole script,
 * and with the result of the one call that is. Lines stay where they are, so that errors name the lines of the model.
 */

const FENCE = /^(\s*)```[\w-]*[^\S\n]*\n([\s\S]*?)\n[^\S\n]*```\s*$/;
/** The beginning of a function without a name and without parameters, in parentheses or not. */
const ANONYMOUS = /^(\s*)(\(?)\s*async\s*(?:\(\s*\)\s*=>|function\s*\(\s*\))\s*\{/;
/** The end of one, with its call. */
const CALLED = /\}\s*\)\s*\(\s*\)\s*;?\s*$/;
const ENDED = /\}\s*(\)?)\s*;?\s*$/;
/** One call that is the whole script. */
const AWAITED = /^(\s*)(await\s+[\w$]+(?:\.[\w$]+)+\([\s\S]*\)\s*;?\s*)$/;
/** A function with a name, and its call as the last statement. */
const NAMED = /(^|\n)([^\S\n]*)(?:await\s+)?([\w$]+)\(\s*\)\s*;?\s*$/;

/** @example bodyOf('async () => { return 1 }') // 'return (async () => { return 1 })()' */
export function bodyOf(code: string): string {
  const [, space = '', inside] = FENCE.exec(code) ?? [];
  const body = inside === undefined ? code : `${space}\n${inside}`;
  const [, before = '', open] = ANONYMOUS.exec(body) ?? [];
  const text = body.slice(before.length);
  if (open === '(' && CALLED.test(text)) return isWhole(text) ? `${before}return ${text}` : body;
  const [, close] = ENDED.exec(text) ?? [];
  if (open !== undefined && close !== undefined && (open === '(') === (close === ')')) {
    const whole = text.replace(/\s*;?\s*$/, '');
    return isWhole(whole) ? `${before}return (${whole}\n)()` : body;
  }
  const [, margin = '', expression = ''] = AWAITED.exec(body) ?? [];
  if (expression !== '' && isWhole(expression)) return `${margin}return ${expression}`;
  const [, start = '', indent = '', name] = NAMED.exec(body) ?? [];
  const isDeclared =
    name !== undefined &&
    new RegExp(`(^|\\n)\\s*async\\s+function\\s+${name.replaceAll('$', '\\$')}\\s*\\(\\s*\\)`).test(body);
  if (!isDeclared || /(^|\n)return\b/.test(body)) return body;
  return body.replace(NAMED, `${start}${indent}return ${name}();`);
}

/** True if the first bracket of a text, and what is called behind it, closes at its end. In doubt false: texts may have brackets. */
function isWhole(text: string): boolean {
  let depth = 0;
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at] ?? '';
    if ('([{'.includes(character)) depth += 1;
    else if (')]}'.includes(character)) depth -= 1;
    // A statement begins behind the function.
    else if (depth === 0 && (character === ';' || character === '\n') && text.slice(at + 1).trim() !== '') return false;
    if (depth < 0) return false;
  }
  return depth === 0;
}

/**
 * Finds calls of functions that do not exist, before a script runs. It reads tokens, not syntax: where a name may mean something else,
 * or the script may handle its absence, nothing is reported.
 */
import type { CallableFunctions } from './code-functions.ts';

/** A call of a function that does not exist. */
export interface NameProblem {
  /** Such as `github.issues_lst`. */
  readonly name: string;
  /** From 1. */
  readonly line: number;
  readonly column: number;
  /** One sentence for the model, without the place. */
  readonly message: string;
}

interface Token {
  readonly kind: 'word' | 'text' | 'mark';
  readonly text: string;
  readonly at: number;
}

/** Problems that are reported. */
const MOST = 5;
/** The tools of code mode, which are no functions of scripts. */
const TOOLS: ReadonlySet<string> = new Set(['search_functions', 'describe_functions', 'run_code']);
/** Words after which a slash begins a regular expression. */
const BEFORE_EXPRESSION: ReadonlySet<string> = new Set(
  'return typeof instanceof in of new delete void throw case do else await yield'.split(' '),
);

/** The calls of functions that the caller does not have, in the order of the script; none in doubt. */
export function checkNames(code: string, functions: CallableFunctions): readonly NameProblem[] {
  const tokens = tokensOf(code);
  if (!tokens) return [];
  const groups = new Set(functions.groups);
  const calls: { readonly name: string; readonly at: number }[] = [];
  /** Groups and functions that the script uses in other ways. */
  const doubtful = new Set<string>();
  const { closings, tried } = blocksOf(tokens);
  for (const [at, token] of tokens.entries()) {
    if (token.kind !== 'word' || isMember(tokens, at)) continue;
    if (TOOLS.has(token.text)) {
      if (tokens[at + 1]?.text === '(') calls.push({ name: token.text, at });
      else doubtful.add(token.text);
    }
    if (!groups.has(token.text)) continue;
    const used = memberAt(tokens, at);
    if (used === undefined) doubtful.add(token.text);
    else if (used.isCalled && !tried.has(at) && !isCaught(tokens, closings.get(used.end) ?? tokens.length))
      calls.push({ name: `${token.text}.${used.member}`, at });
    else doubtful.add(`${token.text}.${used.member}`);
  }
  return calls
    .filter(({ name }) => !doubtful.has(name) && !doubtful.has(name.slice(0, name.indexOf('.'))))
    .filter(({ name }) => TOOLS.has(name) || !isKnown(name, functions))
    .slice(0, MOST)
    .map(({ name, at }) => {
      const before = code.slice(0, tokens[at]?.at ?? 0);
      const line = before.split('\n').length;
      const column = before.length - (before.lastIndexOf('\n') + 1) + 1;
      return { name, line, column, message: messageFor(name, functions) };
    });
}

function isKnown(name: string, functions: CallableFunctions): boolean {
  return functions.find(name) !== undefined || name.slice(name.indexOf('.') + 1) in Object.prototype;
}

function messageFor(name: string, functions: CallableFunctions): string {
  if (TOOLS.has(name)) return `${name} is a tool. Call it outside of scripts.`;
  const near = functions.near(name);
  return `${name} is no function.${near.length === 0 ? ' Find it with search_functions.' : ` Did you mean ${near.join(' or ')}?`}`;
}

/** True for the name of a member, such as `a` in `x.a`. */
function isMember(tokens: readonly Token[], at: number): boolean {
  return tokens[at - 1]?.text === '.' || tokens[at - 1]?.text === '?.';
}

/** The member of a group that the script uses, and whether it calls it; undefined if it uses the group in another way. */
function memberAt(
  tokens: readonly Token[],
  at: number,
): { readonly member: string; readonly isCalled: boolean; readonly end: number } | undefined {
  const [mark, name, close] = [tokens[at + 1], tokens[at + 2], tokens[at + 3]];
  const member = mark?.text === '.' && name?.kind === 'word' ? { name: name.text, next: at + 3 } : undefined;
  const computed =
    mark?.text === '[' && name?.kind === 'text' && close?.text === ']' ? { name: name.text, next: at + 4 } : undefined;
  const used = member ?? computed;
  if (!used) return undefined;
  const isRaw = tokens[used.next]?.text === '.' && tokens[used.next + 1]?.text === 'raw';
  const end = isRaw ? used.next + 2 : used.next;
  return { member: used.name, isCalled: tokens[end]?.text === '(', end };
}

/** True for a call whose failure the script catches: `call().catch(…)`, `call().then(…, …)`. @param end the closing parenthesis */
function isCaught(tokens: readonly Token[], end: number): boolean {
  const name = tokens[end + 2]?.text;
  return tokens[end + 1]?.text === '.' && (name === 'catch' || name === 'then');
}

/** The place of the mark that closes the one at a place, and the places within blocks of `try`. */
function blocksOf(tokens: readonly Token[]) {
  const closings = new Map<number, number>();
  const tried = new Set<number>();
  const open: { readonly at: number; readonly isTry: boolean }[] = [];
  let tries = 0;
  for (const [at, { kind, text }] of tokens.entries()) {
    if (tries > 0) tried.add(at);
    if (kind !== 'mark') continue;
    if ('([{'.includes(text)) {
      const before = tokens[at - 1];
      const isTry = text === '{' && before?.kind === 'word' && before.text === 'try';
      open.push({ at, isTry });
      if (isTry) tries += 1;
    } else if (')]}'.includes(text)) {
      const opened = open.pop();
      if (opened) closings.set(opened.at, at);
      if (opened?.isTry) tries -= 1;
    }
  }
  return { closings, tried };
}

/** The tokens of a script without comments; undefined if they cannot be distinguished for sure. */
function tokensOf(code: string): readonly Token[] | undefined {
  const tokens: Token[] = [];
  /** The braces around the place: true for that of a placeholder in a template. */
  const braces: boolean[] = [];
  let at = 0;
  /** Reads a template from behind its beginning or a placeholder. @returns false if it has no end */
  const template = (): boolean => {
    for (; at < code.length; at += 1) {
      if (code[at] === '\\') at += 1;
      else if (code[at] === '`') {
        at += 1;
        tokens.push({ kind: 'mark', text: '`', at });
        return true;
      } else if (code.startsWith('${', at)) {
        at += 2;
        braces.push(true);
        tokens.push({ kind: 'mark', text: '{', at });
        return true;
      }
    }
    return false;
  };
  while (at < code.length) {
    const from = at;
    const character = code[at] ?? '';
    const word = /[\p{ID_Start}$_\d]/uy;
    if (/\s/.test(character)) at += 1;
    else if (code.startsWith('//', at)) at = endOf(code, '\n', at);
    else if (code.startsWith('/*', at)) {
      const end = code.indexOf('*/', at + 2);
      if (end === -1) return undefined;
      at = end + 2;
    } else if (character === '"' || character === "'") {
      const [text] = /^(["'])(?:\\[\s\S]|(?!\1)[^\\\n])*\1/.exec(code.slice(at)) ?? [];
      if (text === undefined) return undefined;
      at += text.length;
      // The value of an escape is not read.
      const isPlain = !text.includes('\\');
      tokens.push(
        isPlain ? { kind: 'text', text: text.slice(1, -1), at: from } : { kind: 'mark', text: '""', at: from },
      );
    } else if (character === '`') {
      at += 1;
      if (!template()) return undefined;
    } else if (isAt(word, code, at)) {
      const [text = character] = /^[\p{ID_Continue}$\u200c\u200d]+/u.exec(code.slice(at, at + 200)) ?? [];
      at += text.length;
      tokens.push({ kind: 'word', text, at: from });
    } else if (character === '/') {
      const before = tokens.at(-1);
      const isDivision =
        before?.kind === 'text' ||
        (before?.kind === 'word' && !BEFORE_EXPRESSION.has(before.text)) ||
        before?.text === ']' ||
        before?.text === '`' ||
        before?.text === '""';
      // Behind a parenthesis or a brace it may be both.
      if (before?.text === ')' || before?.text === '}') {
        if (code.slice(at + 1, endOf(code, '\n', at)).includes('/')) return undefined;
        at += 1;
      } else if (isDivision) at += 1;
      else {
        const [text] = /^\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n])+\/[a-z]*/.exec(code.slice(at)) ?? [];
        if (text === undefined) return undefined;
        at += text.length;
        tokens.push({ kind: 'text', text: '', at: from });
        continue;
      }
      tokens.push({ kind: 'mark', text: '/', at: from });
    } else {
      const mark = code.startsWith('?.', at) ? '?.' : code.startsWith('...', at) ? '...' : character;
      at += mark.length;
      if (mark === '{') braces.push(false);
      else if (mark === '}' && braces.pop() === true) {
        tokens.push({ kind: 'mark', text: '}', at: from });
        if (!template()) return undefined;
        continue;
      }
      tokens.push({ kind: 'mark', text: mark, at: from });
    }
  }
  return braces.length > 0 ? undefined : tokens;
}

function isAt(pattern: RegExp, code: string, at: number): boolean {
  pattern.lastIndex = at;
  return pattern.test(code);
}

function endOf(code: string, text: string, from: number): number {
  const end = code.indexOf(text, from);
  return end === -1 ? code.length : end;
}

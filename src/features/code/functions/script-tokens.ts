/** The tokens of a script, which are no syntax: enough to find calls and literals without a parser. */

export interface ScriptToken {
  /** `text`: a string without escapes, or a regular expression, which is an empty one. */
  readonly kind: 'word' | 'text' | 'mark';
  /** `""` for a string with escapes, `\`` for the end of a template, `${` for the beginning of a placeholder in one. */
  readonly text: string;
  readonly at: number;
}

/** Words after which a slash begins a regular expression. */
const BEFORE_EXPRESSION: ReadonlySet<string> = new Set(
  'return typeof instanceof in of new delete void throw case do else await yield'.split(' '),
);

/** The tokens of a script without comments; undefined if they cannot be distinguished for sure. */
export function tokensOf(code: string): readonly ScriptToken[] | undefined {
  const tokens: ScriptToken[] = [];
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
        tokens.push({ kind: 'mark', text: '${', at });
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

/** The line and the column of a place, from 1. */
export function placeOfToken(code: string, at: number): { readonly line: number; readonly column: number } {
  const before = code.slice(0, at);
  return { line: before.split('\n').length, column: before.length - (before.lastIndexOf('\n') + 1) + 1 };
}

/** The place of the mark that closes the one at a place, and the places within blocks of `try`. */
export function blocksOf(tokens: readonly ScriptToken[]) {
  const closings = new Map<number, number>();
  const tried = new Set<number>();
  const open: { readonly at: number; readonly isTry: boolean }[] = [];
  let tries = 0;
  for (const [at, { kind, text }] of tokens.entries()) {
    if (tries > 0) tried.add(at);
    if (kind !== 'mark') continue;
    if ('([{'.includes(text) || text === '${') {
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

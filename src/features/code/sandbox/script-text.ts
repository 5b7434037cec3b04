/** The text of a script: how it becomes a function, and where in it an error is. */
import nodeModule from 'node:module';
import { SCRIPT_FILE } from './prelude.ts';
import type { ScriptPlace } from './script.ts';

/** On the first line of the script, so that the lines of the engine are those of the script. */
const BEFORE = '(async()=>{';
const AFTER = '\n})';

/** Longest part of a line that an error quotes. */
const QUOTED = 160;

/** The script as an expression: an async function. */
export function sourceOf(code: string): string {
  return BEFORE + code + AFTER;
}

/** The first place in the script that a stack trace of an engine names. */
export function placeIn(code: string, stack: string): ScriptPlace {
  const [, found = '', column = ''] = PLACE.exec(stack) ?? [];
  if (found === '') return {};
  const lines = code.split('\n');
  const line = Math.min(Number(found), lines.length);
  // The function ends after the last line: an error there is at the end of the script.
  if (line < Number(found)) return placeAt(code, line, Number.POSITIVE_INFINITY);
  const at = Number(column) - (line === 1 ? BEFORE.length : 0);
  // QuickJS-ng gives the first column to all of the body of an arrow function without braces.
  return at <= 1 ? placeOfLine(code, line) : placeAt(code, line, at);
}

/** The beginning of a line of the script, for an error whose column is not known. */
export function placeOfLine(code: string, line: number): ScriptPlace {
  const text = code.split('\n')[line - 1] ?? '';
  return placeAt(code, line, text.length - text.trimStart().length + 1);
}

function placeAt(code: string, line: number, wanted: number): ScriptPlace {
  const text = (code.split('\n')[line - 1] ?? '').replace(/\r$/, '');
  const column = Math.min(Math.max(1, wanted), text.length + 1);
  return { line, column, excerpt: excerptOf(text, column) };
}

const PLACE = new RegExp(`${SCRIPT_FILE.replace('.', '\\.')}:(\\d{1,6}):(\\d{1,6})`);

function excerptOf(line: string, column: number): string {
  const start = line.length <= QUOTED ? 0 : Math.max(0, Math.min(column - QUOTED / 2, line.length - QUOTED));
  // biome-ignore lint/suspicious/noControlCharactersInRegex: such characters would move the caret.
  const quoted = line.slice(start, start + QUOTED).replace(/[\0-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]/g, ' ');
  const caret = `${quoted.slice(0, column - 1 - start).replace(/[^\t]/g, ' ')}^`;
  return `${quoted}\n${caret}`;
}

/**
 * Removes types, with Node's own function.
 *
 * @param strip replaces Node's own function in tests
 * @returns an expression as {@link sourceOf} returns it; undefined if this Node cannot remove types, or the script has none
 */
export function withoutTypes(
  code: string,
  strip: unknown = Reflect.get(nodeModule, 'stripTypeScriptTypes'),
): string | undefined {
  if (typeof strip !== 'function') return undefined;
  const source = sourceOf(code);
  try {
    const stripped: unknown = strip(source);
    return typeof stripped === 'string' && stripped !== source ? stripped : undefined;
  } catch {
    // It is no TypeScript either.
    return undefined;
  }
}

const DECLARED = /^\s*(?:export\s+)?(?:declare\s+)?(?:interface|type|enum|namespace|abstract)\s+[\w$]/;
const GENERIC = /[\w$]<[\w$\s,.[\]|'"]{1,80}>\s*[(;=]/;

/** True if a syntax error is where TypeScript has a type: `a: string`, `a as B`, `interface A`, `new Map<A, B>()`. */
export function isTyped(code: string, { line, column }: ScriptPlace): boolean {
  if (line === undefined || column === undefined) return false;
  const text = code.split('\n')[line - 1] ?? '';
  const before = text.slice(Math.max(0, column - 1 - QUOTED), column - 1);
  const after = text.slice(column - 1, column - 1 + QUOTED);
  return (
    (/[\w$)\]}?]\s*$/.test(before) && /^\??\s*:\s*[\w${['"(]/.test(after)) ||
    /^(?:as|satisfies)\s+[\w${['"(]/.test(after) ||
    /\s(?:as|satisfies)\s+$/.test(before) ||
    DECLARED.test(text.slice(0, QUOTED)) ||
    GENERIC.test(before + after)
  );
}

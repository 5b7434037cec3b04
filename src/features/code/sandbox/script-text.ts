/** The text of a script: how it becomes a function, and where in it an error is. */
import nodeModule from 'node:module';
import { SCRIPT_FILE } from './prelude.ts';
import type { ScriptPlace } from './script.ts';

/** The text around a script. It begins on the first line of the script, so that the lines of the engine are those of the script. */
interface Wrapper {
  readonly before: string;
  readonly after: string;
}

const BODY: Wrapper = { before: '(async()=>{', after: '\n})' };
/** A script that is one expression: its value is the result. Models often write a whole function, which is called, or one call. */
const EXPRESSION: Wrapper = {
  before: '(async()=>{const script=await(',
  after: '\n);return typeof script==="function"?script():script})',
};

/** Longest part of a line that an error quotes. */
const QUOTED = 160;

/** A script as an expression: an async function. */
export interface ScriptSource {
  readonly source: string;
  /** Characters before the script in its first line. */
  readonly indent: number;
}

/** The ways to read a script, of which the first that compiles is the right one. */
export function sourcesOf(code: string): readonly ScriptSource[] {
  const wrapped = ({ before, after }: Wrapper, text: string) => ({
    source: before + text + after,
    indent: before.length,
  });
  return [wrapped(EXPRESSION, code.replace(/;\s*$/, '')), wrapped(BODY, code)];
}

/** The line of the first place in the script that a stack trace of an engine names. */
export function lineIn(stack: string): number | undefined {
  const line = PLACE.exec(stack)?.[1];
  return line === undefined ? undefined : Number(line);
}

/**
 * The first place in the script that a stack trace of an engine names.
 *
 * @param indent see {@link ScriptSource}
 */
export function placeIn(code: string, stack: string, indent: number): ScriptPlace {
  const [, found = '', column = ''] = PLACE.exec(stack) ?? [];
  if (found === '') return {};
  const lines = code.split('\n');
  const line = Math.min(Number(found), lines.length);
  // The function ends after the last line: an error there is at the end of the script.
  if (line < Number(found)) return placeAt(code, line, Number.POSITIVE_INFINITY);
  const at = Number(column) - (line === 1 ? indent : 0);
  // The engine knows no place: it names the beginning of the function.
  if (at < 1 && lines.length > 1) return {};
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
 * @returns undefined if this Node cannot remove types, or the script has none
 */
export function withoutTypes(
  { source, indent }: ScriptSource,
  strip: unknown = Reflect.get(nodeModule, 'stripTypeScriptTypes'),
): ScriptSource | undefined {
  if (typeof strip !== 'function') return undefined;
  try {
    const stripped: unknown = strip(source);
    return typeof stripped === 'string' && stripped !== source ? { source: stripped, indent } : undefined;
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

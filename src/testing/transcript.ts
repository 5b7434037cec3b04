/** Parses a transcript, the plain-text format of a wire test. `docs/transcripts.md` describes it. */
import type { JsonValue } from '../core/protocol/json.ts';
import { readJson } from './test-json.ts';

export type Step = { /** The line in the text, from 1. */ readonly line: number } & (
  | { readonly kind: 'send'; readonly text: string; readonly message: JsonValue }
  | { readonly kind: 'expect'; readonly message: JsonValue }
  | { readonly kind: 'raw'; readonly text: string }
  | { readonly kind: 'advance'; readonly ms: number }
  | { readonly kind: 'nothing' }
);

export interface Transcript {
  /** The reason for the transcript. */
  readonly why: string;
  readonly steps: readonly Step[];
}

const MARKS = [
  '→ {…} (the client sends)',
  '← {…} (the server must send)',
  '↯ text (the client sends these characters)',
  '⏱ milliseconds (time passes)',
  '∅ (nothing more was sent)',
  '# a remark',
].join(', ');

interface TranscriptEntry {
  readonly line: number;
  readonly mark: string;
  text: string;
}

/** @throws {SyntaxError} with the line, the expectation, and the text found */
export function parseTranscript(text: string): Transcript {
  const lines = text.split(/\r?\n/);
  const start = lines.findIndex((line) => line === '' || line.startsWith('#') || markOf(line) !== undefined);
  const why = lines
    .slice(0, start === -1 ? lines.length : start)
    .join(' ')
    .trim();
  if (!/[.:?!]$/.test(why)) throw wrong(1, 'a first sentence that explains why', why);
  const entries: TranscriptEntry[] = [];
  for (const [index, line] of lines.entries()) {
    if (index < start || line.trim() === '' || line.startsWith('#')) continue;
    const mark = markOf(line);
    const last = entries.at(-1);
    if (mark !== undefined)
      entries.push({ line: index + 1, mark, text: line.slice(line.indexOf(mark) + mark.length).trim() });
    else if (/^\s/.test(line) && last && (last.mark === '→' || last.mark === '←')) last.text += `\n${line}`;
    else
      throw wrong(
        index + 1,
        `a line that begins with one of: ${MARKS}; or an indented continuation of a message`,
        line,
      );
  }
  if (entries.length === 0) throw wrong(lines.length, `at least one of: ${MARKS}`, '');
  return { why, steps: entries.map(read) };
}

/** An editor may have added U+FE0F, which selects a coloured glyph. */
function markOf(line: string): string | undefined {
  return /^([→←↯∅]|⏱\uFE0F?)/u.exec(line)?.[1];
}

function read({ line, mark, text }: TranscriptEntry): Step {
  switch (mark) {
    case '→':
      return { line, kind: 'send', text: oneLine(text), message: json(line, text) };
    case '←':
      return { line, kind: 'expect', message: json(line, text) };
    case '↯':
      return { line, kind: 'raw', text };
    case '∅':
      if (text !== '') throw wrong(line, 'nothing after ∅', text);
      return { line, kind: 'nothing' };
    default:
      if (!/^\d+$/.test(text)) throw wrong(line, 'whole milliseconds after ⏱', text);
      return { line, kind: 'advance', ms: Number(text) };
  }
}

/** Messages contain no line ends, and a transcript has them only between tokens. */
function oneLine(text: string): string {
  return text.replaceAll(/\s*\n\s*/g, ' ');
}

function json(line: number, text: string): JsonValue {
  const message = readJson(text);
  if (message === undefined) throw wrong(line, 'a message in JSON (use ↯ to send raw characters)', text);
  return message;
}

function wrong(line: number, expected: string, got: string): SyntaxError {
  return new SyntaxError(
    `transcript line ${line}: expected ${expected}; got ${got === '' ? 'nothing' : JSON.stringify(got.slice(0, 200))}`,
  );
}

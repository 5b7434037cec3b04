/** Reads the transcript of an HTTP conversation (test/README.md, "HTTP transcripts"): requests with their headers, answers, events of streams. */
import type { JsonValue } from '../../../src/core/protocol/json.ts';
import { readJson } from '../../../src/testing/test-json.ts';

/** A header, or a field of an event. Undefined: there is none. */
export type Field = readonly [name: string, value: string | undefined];

/** What a request, an answer or an event carries: JSON, or a text as it is. */
export type Content = { readonly json: JsonValue } | { readonly text: string };

/** The name of an exchange: a request with its answer. Most transcripts have one at a time, whose name is empty. */
interface OfExchange {
  readonly exchange: string;
}

export type HttpStep = { /** The line in the text, from 1. */ readonly line: number } & (
  | (OfExchange & {
      readonly kind: 'send';
      readonly method: string;
      readonly target: string | undefined;
      readonly fields: readonly Field[];
      readonly content: Content | undefined;
    })
  | (OfExchange & {
      readonly kind: 'answer';
      readonly status: number;
      readonly fields: readonly Field[];
      readonly content: Content | undefined;
    })
  | (OfExchange & {
      readonly kind: 'event';
      readonly fields: readonly Field[];
      readonly content: Content | undefined;
    })
  | (OfExchange & { readonly kind: 'comment' | 'end' | 'cut' | 'nothing' })
  | { readonly kind: 'advance'; readonly ms: number }
);

export interface HttpTranscript {
  /** The reason for the transcript. */
  readonly why: string;
  readonly steps: readonly HttpStep[];
}

interface Entry {
  readonly line: number;
  readonly mark: string;
  readonly exchange: string;
  readonly words: readonly string[];
  readonly block: string[];
}

const HEAD = /^([→←✂⏱∅])\uFE0F?(?:\s+([\w-]+):)?\s*(.*)$/u;
const FIELD = /^([a-z][\w-]*):\s*(.*)$/i;
const ABSENT = '∅';

/** @throws {SyntaxError} with the line, the expectation, and the text found */
export function readHttpTranscript(text: string): HttpTranscript {
  const lines = text.split('\n');
  const start = lines.findIndex((line) => line === '' || line.startsWith('#') || HEAD.test(line));
  const why = lines.slice(0, start).join(' ').trim();
  if (!why.endsWith('.')) throw wrong(1, 'a first sentence that explains why', why);
  const entries: Entry[] = [];
  for (const [index, line] of lines.entries()) {
    if (index < start || line.trim() === '' || line.startsWith('#')) continue;
    const [, mark, exchange = '', rest = ''] = HEAD.exec(line) ?? [];
    const last = entries.at(-1);
    if (mark !== undefined)
      entries.push({ line: index + 1, mark, exchange, words: rest.split(/\s+/).filter(Boolean), block: [] });
    else if (/^\s/.test(line) && last) last.block.push(line.trim());
    else throw wrong(index + 1, 'a line that begins with →, ←, ✂, ⏱ or ∅, or an indented line of a block', line);
  }
  if (entries.length === 0) throw wrong(lines.length, 'at least one step', '');
  return { why, steps: entries.map(read) };
}

function read({ line, mark, exchange, words, block }: Entry): HttpStep {
  const [first = '', second] = words;
  const { fields, content } = readBlock(line, block);
  switch (mark) {
    case '→':
      if (!/^[A-Z]+$/.test(first)) throw wrong(line, 'a method after →', first);
      return { line, kind: 'send', exchange, method: first, target: second, fields, content };
    case '←':
      if (/^\d{3}$/.test(first)) return { line, kind: 'answer', exchange, status: Number(first), fields, content };
      if (first === 'event') return { line, kind: 'event', exchange, fields, content };
      if (first === 'comment' || first === 'end') return { line, kind: first, exchange };
      throw wrong(line, 'a status, "event", "comment" or "end" after ←', first);
    case '✂':
      return { line, kind: 'cut', exchange };
    case '∅':
      return { line, kind: 'nothing', exchange };
    default:
      if (!/^\d+$/.test(first)) throw wrong(line, 'whole milliseconds after ⏱', first);
      return { line, kind: 'advance', ms: Number(first) };
  }
}

/** Fields first, then JSON or lines that begin with `|`. */
function readBlock(line: number, block: readonly string[]): { fields: readonly Field[]; content: Content | undefined } {
  const at = block.findIndex((each) => !FIELD.test(each));
  const head = at === -1 ? block : block.slice(0, at);
  const rest = at === -1 ? [] : block.slice(at);
  const fields = head.map((each): Field => {
    const [, name = '', value = ''] = FIELD.exec(each) ?? [];
    return [name, value === ABSENT ? undefined : value];
  });
  if (rest.length === 0) return { fields, content: undefined };
  if (rest.every((each) => each.startsWith('|')))
    return { fields, content: { text: rest.map((each) => each.replace(/^\| ?/, '')).join('\n') } };
  const json = readJson(rest.join('\n'));
  if (json === undefined) throw wrong(line, 'JSON, or lines that begin with |, below the fields', rest.join('\n'));
  return { fields, content: { json } };
}

function wrong(line: number, expected: string, got: string): SyntaxError {
  return new SyntaxError(`transcript line ${line}: expected ${expected}; got ${JSON.stringify(got.slice(0, 200))}`);
}

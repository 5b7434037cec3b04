/** The first sentence of a description by others, for a place that has one line. */
import { visibleLine } from '../protocol/visible-text.ts';

/** Characters of a description that are read. */
const MOST_READ = 4_000;
/** An empty line, and one behind a text without a mark at its end, such as a heading. */
const BLANK = /\r?\n[^\S\n]*\n/;
const UNENDED = /([^\s.!?:;,])[^\S\n]*\r?\n[^\S\n]*\n\s*/g;
/** A link of Markdown, of which the text is read. */
const LINK = /\[([^\][]{1,200})\]\(https?:[^\s()]{1,500}\)/g;
/** Abbreviations whose point ends no sentence. */
const ABBREVIATED = /(?:\b(?:e\.g|i\.e|etc|vs|approx|no|cf|incl|max|min)|\b[A-Za-z])\.$/i;

/**
 * The first sentence on one line of visible characters.
 *
 * @param most the most characters; a longer sentence is cut
 * @returns empty for what is no text
 */
export function sentenceOf(text: unknown, most: number): string {
  const [paragraph] = typeof text === 'string' ? text.trim().split(BLANK, 1) : [];
  const line = onOneLine(paragraph, MOST_READ);
  let end = line.length;
  for (const { index } of line.matchAll(/[.!?](?= )|。/g)) {
    if (index + 1 > most) break;
    if (ABBREVIATED.test(line.slice(0, index + 1))) continue;
    end = index + 1;
    break;
  }
  return shortLine(line.slice(0, end), most);
}

/** The start of a text on one line of visible characters. */
export function onOneLine(text: unknown, most: number): string {
  if (typeof text !== 'string') return '';
  const sentences = text.trim().slice(0, MOST_READ).replace(LINK, '$1').replace(UNENDED, '$1. ');
  return shortLine(visibleLine(sentences.replace(/\s+/g, ' ').trim()), most);
}

function shortLine(line: string, most: number): string {
  return line.length <= most
    ? line
    : `${line
        .slice(0, most - 1)
        .toWellFormed()
        .trimEnd()}…`;
}

/** The door for foreign text to a terminal or a log: nothing in it moves the cursor, hides text, or reorders what a person reads. */

import { writeJson } from './json-text.ts';

/** Control characters, marks of direction and other invisible ones, line and paragraph separators, halves of pairs, private use. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Cn}\p{Zl}\p{Zp}\p{Cs}\p{Co}]/gu;

/** The text on one line, with `·` for each character that could control a terminal. */
export function visibleLine(text: string): string {
  return text.toWellFormed().replace(INVISIBLE, '·');
}

/** The same for a text of several lines: line breaks and tabs stay. @param indent begins each further line */
export function visibleText(text: string, indent = ''): string {
  return text
    .toWellFormed()
    .replace(INVISIBLE, (character) => (character === '\n' ? `\n${indent}` : character === '\t' ? character : '·'));
}

/** A value as JSON, with a line break at its end: the characters are escaped, so that a program reads the same value. */
export function visibleJson(value: unknown, indent?: number): string {
  return `${writeJson(value, indent)}\n`.replace(INVISIBLE, (character) =>
    character === '\n'
      ? character
      : Array.from({ length: character.length }, (_, at) => escaped(character.charCodeAt(at))).join(''),
  );
}

function escaped(unit: number): string {
  return `\\u${unit.toString(16).padStart(4, '0')}`;
}

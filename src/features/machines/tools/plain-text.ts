/** Formats data as plain lines of text for a model, shorter than the structured content. */
import { isObject } from '../../../core/protocol/json.ts';

const MAX_LINES = 60;
const MAX_LINE = 200;

/** Returns at most 60 lines of at most 200 characters; `…` marks omitted text. */
export function plainText(value: unknown, name = ''): readonly string[] {
  const lines = linesOf(value, name, '');
  return (lines.length > MAX_LINES ? [...lines.slice(0, MAX_LINES), '…'] : lines).map((line) =>
    line.length > MAX_LINE ? `${line.slice(0, MAX_LINE)}…` : line,
  );
}

function linesOf(value: unknown, name: string, indent: string): readonly string[] {
  const lead = name === '' ? indent : `${indent}${name}: `;
  if (Array.isArray(value)) {
    if (value.length === 0) return [`${lead}none`];
    if (value.every(isLeaf)) return [`${lead}${value.map(leaf).join(', ')}`];
    // Stop at the number of lines that a model is shown.
    const items = value.slice(0, MAX_LINES).flatMap((item) => bulleted(linesOf(item, '', `${indent}  `), indent));
    return name === '' ? items : [`${indent}${name}:`, ...items];
  }
  if (!isObject(value)) return [`${lead}${leaf(value)}`];
  const inner = name === '' ? indent : `${indent}  `;
  const members = Object.entries(value)
    .slice(0, MAX_LINES)
    .flatMap(([key, member]) => (member === undefined ? [] : linesOf(member, key, inner)));
  if (members.length === 0) return [`${lead}none`];
  return name === '' ? members : [`${indent}${name}:`, ...members];
}

function bulleted([first = '', ...rest]: readonly string[], indent: string): readonly string[] {
  return [`${indent}- ${first.trimStart()}`, ...rest];
}

function isLeaf(value: unknown): boolean {
  return typeof value !== 'object' || value === null;
}

function leaf(value: unknown): string {
  return value === null || value === undefined ? 'none' : String(value);
}

/** Formats numbers, times and names for a terminal. */

/** The width of a character in columns: most East Asian characters and emoji take two, combining marks take none. */
function widthOf(character: string): number {
  if (/\p{M}/u.test(character)) return 0;
  const code = character.codePointAt(0) ?? 0;
  const wide =
    (code >= 0x1100 && code <= 0x115f) || (code >= 0x2e80 && code <= 0xd7a3) || (code >= 0xf900 && code <= 0xfaff);
  return wide || (code >= 0xfe30 && code <= 0xfe4f) || (code >= 0xff00 && code <= 0xff60) || code >= 0x1f300 ? 2 : 1;
}

/** Truncates a text to a width, and marks the cut with `…`. */
export function clipLine(text: string, width: number): string {
  if (text.length <= width && /^[\x20-\x7e…·]*$/.test(text)) return text;
  let used = 0;
  let kept = '';
  for (const character of text) {
    const next = widthOf(character);
    if (used + next > width) return `${shortened(kept, used - width + 1)}…`;
    used += next;
    kept += character;
  }
  return kept;
}

/** Removes characters from the end until the given width is free. */
function shortened(text: string, room: number): string {
  const characters = [...text];
  for (let free = 0; free < room && characters.length > 0; ) free += widthOf(characters.pop() ?? '');
  return characters.join('');
}

/** Truncates or pads a text to exactly a width. */
export function padTo(text: string, width: number): string {
  const clipped = clipLine(text, width);
  let used = 0;
  for (const character of clipped) used += widthOf(character);
  return clipped + ' '.repeat(Math.max(0, width - used));
}

/** @example '0:41', '1:02:33', '2 d 3 h' */
export function countdown(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000));
  const [days, hours] = [Math.floor(seconds / 86_400), Math.floor(seconds / 3_600) % 24];
  if (days > 0) return `${days} d ${hours} h`;
  const [minutes, rest] = [Math.floor(seconds / 60) % 60, String(seconds % 60).padStart(2, '0')];
  return hours > 0 ? `${hours}:${String(minutes).padStart(2, '0')}:${rest}` : `${minutes}:${rest}`;
}

/** @example '0.4 ms', '12 ms', '1.2 s' */
export function lasting(ms: number): string {
  if (ms < 10) return `${ms.toFixed(1)} ms`;
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  return ms < 60_000 ? `${(ms / 1_000).toFixed(1)} s` : countdown(ms);
}

/** @example '1 session', '2 sessions' */
export function plural(count: number, noun: string): string {
  return `${count.toLocaleString('en')} ${noun}${count === 1 ? '' : 's'}`;
}

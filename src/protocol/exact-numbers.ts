/**
 * Keeps the text of numbers that a JavaScript number cannot hold, such as ids above 2^53. A program reads the nearest number, as
 * `JSON.parse` gives it. A value that is passed on unchanged is written with the digits that came (RFC 8259 section 6 leaves the
 * precision to the reader).
 */

/** For the objects and arrays that contain such numbers: their texts, by key or index. Forgotten with the object. */
const texts = new WeakMap<object, Map<string, string>>();

/** A number of fewer digits is exact: 2^53 has 16. */
const LONG = /\d{16}/;

/** A number of JSON. */
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/** A string, a number, or a mark of structure. The text is JSON already. */
const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|[{}[\],:]/gs;

/** Begins a number in the place of a string, until its quotes are removed. A value with such a text is written without digits. */
const MARK = '\uE000troupe-number:';
const MARKED = /"\uE000troupe-number:([-+.\deE]+)"/g;

/** Remembers a number that is an element of a container. Does nothing for one that is exact. */
export function keepNumber(container: object, key: string, text: string): void {
  if (!LONG.test(text) || !NUMBER.test(text) || String(Number(text)) === text) return;
  const known = texts.get(container);
  if (known) known.set(key, text);
  else texts.set(container, new Map([[key, text]]));
}

/**
 * Remembers the numbers of a value that `JSON.parse` has made of a text.
 *
 * @param text without duplicate keys
 */
export function keepNumbers(text: string, value: unknown): void {
  if (!LONG.test(text)) return;
  /** The containers around the token, with the key of the next element of each. */
  const open: { readonly at: unknown; readonly list: boolean; key: string; index: number }[] = [];
  let next: unknown = value;
  let begins = true;
  for (const [token] of text.matchAll(TOKEN)) {
    const inside = open.at(-1);
    switch (token) {
      case '{':
      case '[':
        open.push({ at: next, list: token === '[', key: '0', index: 0 });
        begins = true;
        break;
      case '}':
      case ']':
        open.pop();
        begins = false;
        break;
      case ',':
        if (inside) {
          inside.index += 1;
          inside.key = String(inside.index);
        }
        begins = true;
        break;
      case ':':
        begins = false;
        break;
      default:
        if (inside && !inside.list && begins && token.startsWith('"')) {
          inside.key = JSON.parse(token);
          begins = false;
        } else if (inside && !token.startsWith('"') && typeof inside.at === 'object' && inside.at !== null)
          keepNumber(inside.at, inside.key, token);
        continue;
    }
    const around = open.at(-1);
    next = around && typeof around.at === 'object' && around.at !== null ? Reflect.get(around.at, around.key) : value;
  }
}

/** Remembers the numbers of a container for its copy. */
export function copyNumbers(from: object, to: object): void {
  const known = texts.get(from);
  if (known) texts.set(to, new Map(known));
}

/** True if a text that `JSON.stringify` has written may contain a number whose digits were remembered. */
export function mayHaveKept(text: string): boolean {
  return LONG.test(text);
}

/** `JSON.stringify` with the digits of the numbers that were remembered and not changed since. */
export function stringifyKept(value: unknown, indent: number | undefined): string {
  let kept = false;
  let forged = false;
  const text = JSON.stringify(
    value,
    function (this: unknown, key: string, member: unknown) {
      forged ||= key.startsWith(MARK) || (typeof member === 'string' && member.startsWith(MARK));
      if (typeof member !== 'number' || typeof this !== 'object' || this === null) return member;
      const digits = texts.get(this)?.get(key);
      if (digits === undefined || Number(digits) !== member) return member;
      kept = true;
      return `${MARK}${digits}`;
    },
    indent,
  );
  if (forged) return JSON.stringify(value, undefined, indent);
  return kept ? text.replace(MARKED, '$1') : text;
}

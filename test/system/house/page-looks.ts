/** Finds assertions that look at a page once. A page draws a change in a later frame, which comes late on a busy machine. */

/** Methods of a page or an element that return what is there now. */
const LOOKS =
  /\.(innerText|innerHTML|allInnerTexts|textContent|allTextContents|getAttribute|inputValue|isVisible|isHidden|isChecked|isEnabled|isDisabled|isEditable|count|boundingBox|evaluate|evaluateAll|title|content)\(/;

const FUNCTION = /^(?:async )?(?:\w+|\([^)]*\))(?:: [^=]+)? =>/;

/** The text up to the bracket that closes what begins before `from`. */
function enclosed(code: string, from: number): string {
  let at = from;
  for (let depth = 1; depth > 0 && at < code.length; at += 1) {
    if ('([{'.includes(code.charAt(at))) depth += 1;
    if (')]}'.includes(code.charAt(at))) depth -= 1;
  }
  return code.slice(from, at - 1);
}

/**
 * Sleeps of a page, and assertions that look once: `assert.is(await element.innerText(), 'done')`, and the same in several steps. The
 * forms that wait are in `test/harness/browser.ts`.
 *
 * @param code of a test that opens pages, without comments and the contents of strings
 */
export function immediateLooks(code: string): string[] {
  const found: string[] = [];
  for (const test of code.replace(/\\./g, '').split(/^test\b/m)) {
    const seen = new Set<string>();
    const hasSeen = (text: string): boolean => [...seen].some((name) => new RegExp(`(?<![.\\w])${name}\\b`).test(text));
    for (const { 0: head, 1: names, 2: value = '', index } of test.matchAll(
      /\b(?:const|let) ([^=;]+?) = ([^;]*);|\bassert(?:\.\w+)+\(|\.waitForTimeout\(/g,
    )) {
      if (names !== undefined) {
        const isLook = /\bawait\b/.test(value) && LOOKS.test(value) && !FUNCTION.test(value);
        if (isLook || hasSeen(value)) for (const name of names.match(/\w+/g) ?? []) seen.add(name);
        continue;
      }
      const given = enclosed(test, index + head.length);
      const isOnce = /\bawait\b/.test(given) || hasSeen(given.split(',')[0] ?? '');
      if (isOnce || head === '.waitForTimeout(') found.push(`${head}${given})`.replace(/\s+/g, ' '));
    }
  }
  return found;
}

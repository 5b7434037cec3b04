/** The HTML of the pages for people: it has no script, and shows nothing unescaped that somebody else has written. */
import type { PersonPage } from './transport.ts';

const STYLE =
  ':root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;margin:4em auto;max-width:44em;padding:0 1em}' +
  'h1{font-size:1.4em}pre{white-space:pre-wrap;overflow-wrap:anywhere;border:1px solid #8888;border-radius:4px;padding:1em;font-size:14px}' +
  'input,textarea{font:inherit;padding:.4em;box-sizing:border-box}input:not([type=checkbox]),textarea{width:100%}' +
  'button{font:inherit;padding:.4em 1.2em;margin-right:.6em}li{margin:.5em 0}.note{opacity:.75}[role=alert]{color:#c22}';

const HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  connection: 'close',
  'cache-control': 'no-store',
  // With "no-referrer", a browser sends its form with the origin "null".
  'referrer-policy': 'same-origin',
  'x-content-type-options': 'nosniff',
  'content-security-policy':
    "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
};

/**
 * A page for a person.
 *
 * @param title as plain text
 * @param body HTML: what others have written went through {@link htmlText}
 */
export function plainPage(status: number, title: string, body: string): PersonPage {
  const head = `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">`;
  return {
    status,
    headers: HEADERS,
    text: `${head}<title>${htmlText(title)}</title><style>${STYLE}</style><body>${body}`,
  };
}

/** The text for a browser whose person the transport does not know. */
export const UNKNOWN_PERSON =
  'This server does not know who you are. Sign in to it in this browser, and load this page again.';

/** Plain text as HTML. */
export function htmlText(text: string): string {
  return text.replace(/[&<>"']/g, (found) => `&#${found.charCodeAt(0)};`);
}

/** Decides which addresses of another program a person may be asked to open. */

/** Without characters that hide, reorder or end a part of the address, and without backslashes, which browsers read as slashes. */
const WEB_PAGE = /^https?:\/\/[^\p{C}\p{Z}\\]+$/iu;

/**
 * True for an http or https address that a person reads as a browser does. Another scheme could start a program (MCP elicitation,
 * "Safe URL Handling"), and before an `@` stands the name of a user, not of a server: `https://bank.example@evil.example`.
 */
export function isWebPage(url: unknown): url is string {
  if (typeof url !== 'string' || !WEB_PAGE.test(url) || !URL.canParse(url)) return false;
  const { username, password } = new URL(url);
  return username === '' && password === '';
}

/** The rule of {@link isWebPage}, for errors. */
export const WEB_PAGE_RULE = 'an http or https URL without credentials, spaces, backslashes and invisible characters';

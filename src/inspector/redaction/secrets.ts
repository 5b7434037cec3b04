/** Finds secrets by their names and by their forms. */
import { Buffer } from 'node:buffer';
import { REDACTED } from '../frames.ts';

/** Parts of a name, without separators and in lower case. */
const PARTS = [
  'password',
  'passwd',
  'passphrase',
  'passcode',
  'secret',
  'apikey',
  'accesskey',
  'privatekey',
  'signingkey',
  'encryptionkey',
  'authorization',
  'cookie',
  'credential',
  'sessionid',
  'requeststate',
  'bearer',
  'jwt',
  'sessid',
  'accountkey',
  'authkey',
  'sharedkey',
  'masterkey',
  'passkey',
  'mnemonic',
  'seedphrase',
];
/** Complete names. */
const WHOLE: ReadonlySet<string> = new Set([
  ...['pwd', 'auth', 'xauth', 'otp', 'totp', 'pin', 'userpin', 'cardpin', 'cvv', 'cvv2', 'cvc', 'cvc2', 'ssn', 'creds'],
  ...['dbpass', 'userpass', 'adminpass', 'rootpass', 'pgpass', 'mysqlpass', 'redispass', 'smtppass', 'mailpass'],
  ...['xamzsignature', 'xgoogsignature'],
]);
/** Names that contain such a word but hold no secret. */
const HARMLESS: ReadonlySet<string> = new Set(['progresstoken', 'tokencount', 'tokenlimit', 'tokenusage', 'tokentype']);
/** Counts of the tokens that a model reads and writes. */
const COUNTED =
  /^(?:max|min|num|total|input|output|prompt|completion|cached?|reasoning|thinking|budget|remaining)\w*tokens?$/;

/**
 * True if a name is that of a secret, in any case and with any separators. @param more further parts, in the form of
 * `normalisedName`
 */
export function namesSecret(name: string, more: readonly string[] = []): boolean {
  const plain = normalisedName(name);
  if (WHOLE.has(plain) || plain.endsWith('pwd')) return true;
  if (PARTS.some((part) => plain.includes(part)) || more.some((part) => plain.includes(part))) return true;
  return plain.includes('token') && !HARMLESS.has(plain) && !COUNTED.test(plain);
}

/** The form of a name for comparison. */
export function normalisedName(name: string): string {
  return name.replace(/[^\p{L}\p{N}]/gu, '').toLowerCase();
}

/** A text without any of these contains no known secret. Every text is checked, and most have none. */
const SUSPICIOUS =
  /pass|pwd|secret|token|key|auth|cookie|cred|session|state|bearer|basic|jwt|eyJ|otp|pin|cv[vc]|ssn|:\/\/|s[kq]_|[prsw][kh]_|sk-|gh[opusr]_|github_|gl[a-z]{2,6}-|xox|xapp|A[KS]IA|AIza|ya29|npm_|pypi-|SG\.|hf_|gsk_|r8_|lin_|dop_|shp|whsec|tvly|pplx|hvs\.|dckr_|gocspx|atatt|pmak-|figd_|sbp_|mnemonic|phrase|signature/i;

const BEARER = /\b(Bearer[ \t]{1,8})[\w.~+/=-]{4,}/gi;
const BASIC = /\b(Basic[ \t]{1,8})([A-Za-z0-9+/_-]{4,}={0,2})/gi;
/**
 * The characters around a web token. They are matched as a whole, so that a text with many possible beginnings takes no
 * longer than another of its length.
 */
const DOTTED = /[\w.-]+/g;
/**
 * The beginning of a web token, the minimum length of its first part, and the maximum number of further parts. A first
 * part alone reveals nothing; many cursors begin like one.
 */
const WEB_TOKEN = { begins: 'eyJ', least: 11, behind: 4 };
const PRIVATE_KEY =
  /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[\s\S]*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|$)/g;
const USER_OF_URL = /\b([a-z][a-z0-9+.-]{0,20}:\/\/)[^\s/@"'<>?#]{1,512}@/gi;
/** The prefixes of keys of widely used services. */
const SERVICE_KEY =
  /(?<![A-Za-z0-9])(?:sk-[\w-]{8,}|[prs]k_(?:live|test)_\w{8,}|whsec_[\w+/=]{8,}|gh[opusr]_\w{8,}|github_pat_\w{8,}|gl[a-z]{2,6}-[\w-]{8,}|xox[a-z]-[\w-]{8,}|xapp-[\w-]{8,}|A[KS]IA[A-Z0-9]{12,}|AIza[\w-]{20,}|ya29\.[\w-]{8,}|npm_\w{16,}|pypi-[\w-]{16,}|SG\.[\w-]{8,}(?:\.[\w-]*)?|hf_\w{16,}|gsk_\w{16,}|r8_\w{16,}|lin_api_\w{8,}|dop_v1_\w{16,}|shp(?:at|ca|pa|ss)_\w{16,}|sq0[a-z]{3}-[\w-]{8,}|tvly-[\w-]{8,}|pplx-\w{16,}|hvs\.[\w-]{16,}|dckr_pat_[\w-]{8,}|GOCSPX-[\w-]{8,}|ATATT[\w-]{16,}|PMAK-[\w-]{8,}|figd_[\w-]{8,}|sbp_\w{16,})/g;
/**
 * A name followed by a value, as programs, headers, queries, nested addresses and broken JSON write it. It starts at
 * the beginning of a name, so a long name takes no more time.
 */
const NAMED =
  /(?<![\w.-])([\w.-]+)(?:\[\d{1,9}\]){0,4}(?:\\{0,8}["']|%22)?\]?[ \t\u00a0]{0,16}(?:=>|:=|={1,3}|:|%3[ad])[ \t\u00a0]{0,16}/gi;
/** Maximum length of a checked name: the end of a longer one. */
const MAX_NAME = 64;
/** Words that name a secret together with the word before: an API key, a session id. */
const SECOND = /^(?:key|id|phrase|word|code)$/i;
/** Names whose value has several words: some headers, and names in messages of people and errors. */
const WHOLE_LINE = /authorization|cookie|phrase|mnemonic/i;
const SAID = /:[ \t\u00a0]+$/;
/** A name and its value in XML, and in the arguments of a command. */
const ELEMENT = /(<([A-Za-z_][\w.:-]{0,63})(?:\s[^<>]{0,500})?>)[^<]+/g;
const ARGUMENT = /((?:^|[\s"'])--?([A-Za-z][\w-]{0,63})[ \t]{1,4})("[^"]*"?|'[^']*'?|[^\s"'-][^\s"']*)/g;

/** The options of a redactor: parts of names, patterns of values, and complete names. */
interface Secrets {
  readonly keys: readonly string[];
  readonly values: readonly RegExp[];
  readonly names: { has(name: string): boolean; readonly size: number };
}

/** The text without known secrets. Takes time in proportion to its length. */
export function hideSecrets(text: string, { keys, values, names }: Secrets): string {
  let shown = text;
  if (keys.length > 0 || names.size > 0 || SUSPICIOUS.test(text)) {
    const isSecret = (name: string): boolean => names.has(lastOf(name)) || namesSecret(name, keys);
    shown = shown
      .replace(PRIVATE_KEY, REDACTED)
      .replace(DOTTED, hideWebTokens)
      .replace(BEARER, `$1${REDACTED}`)
      .replace(BASIC, (all: string, scheme: string, given: string) =>
        isUserAndPassword(given) ? `${scheme}${REDACTED}` : all,
      )
      .replace(USER_OF_URL, `$1${REDACTED}@`)
      .replace(SERVICE_KEY, REDACTED);
    shown = hideNamed(shown, isSecret);
    const hide = (all: string, before: string, name: string): string => (isSecret(name) ? `${before}${REDACTED}` : all);
    if (shown.includes('<')) shown = shown.replace(ELEMENT, hide);
    if (shown.includes('-')) shown = shown.replace(ARGUMENT, hide);
  }
  for (const value of values) shown = shown.replace(value, REDACTED);
  return shown;
}

/** Web tokens in a run of their characters. */
function hideWebTokens(run: string): string {
  const { begins, least, behind } = WEB_TOKEN;
  if (!run.includes(begins)) return run;
  const parts = run.split('.');
  const shown: string[] = [];
  for (let index = 0; index < parts.length; index += 1) {
    const part = parts[index] ?? '';
    const at = part.indexOf(begins);
    const found = at !== -1 && part.length - at >= least && index < parts.length - 1;
    shown.push(found ? `${part.slice(0, at)}${REDACTED}` : part);
    if (found) index += behind;
  }
  return shown.join('.');
}

/** "Basic understanding" is no header. */
function isUserAndPassword(given: string): boolean {
  return Buffer.from(given, 'base64').toString('latin1').includes(':');
}

/** The last part of a path such as `customer.email`. */
function lastOf(name: string): string {
  return name.slice(name.lastIndexOf('.') + 1);
}

function hideNamed(text: string, isSecret: (name: string) => boolean): string {
  let shown = '';
  let from = 0;
  NAMED.lastIndex = 0;
  for (let match = NAMED.exec(text); match; match = NAMED.exec(text)) {
    const [all, whole = ''] = match;
    const name = whole.slice(-MAX_NAME);
    // The value may itself be a name: `error: token: …`.
    if (!isSecret(name) && !(SECOND.test(name) && isSecret(withWordBefore(text, match.index, name)))) continue;
    const begin = match.index + all.length;
    const { quote, end } = valueAt(text, begin, {
      whole: WHOLE_LINE.test(name) || SAID.test(all),
      within: text[match.index - 1],
    });
    if (end === begin) continue;
    shown += `${text.slice(from, begin)}${quote}${REDACTED}${quote}`;
    from = end;
    NAMED.lastIndex = end;
  }
  return from === 0 ? text : shown + text.slice(from);
}

function withWordBefore(text: string, at: number, name: string): string {
  const before = /([A-Za-z]{1,16})[ \t]$/.exec(text.slice(Math.max(0, at - 18), at))?.[1] ?? '';
  return namesSecret(before) ? name : before + name;
}

interface Placed {
  /** The value extends to the end of its line. */
  readonly whole: boolean;
  /** The character before the name: a quote there also ends the value. */
  readonly within: string | undefined;
}

/** The end of a line, or the closing quote before it. */
const LINE_END = /[\r\n]|\\[rn]/g;
const LINE: Readonly<Record<string, RegExp>> = { '"': /[\r\n"]|\\[rn"]/g, "'": /[\r\n']|\\[rn']/g };

/** The end of a value: its closing quote, the end of the line, or a character that cannot belong to it. */
function valueAt(
  text: string,
  begin: number,
  { whole, within }: Placed,
): { readonly quote: string; readonly end: number } {
  let at = begin;
  while (text[at] === '\\') at += 1;
  const mark = text[at];
  if (mark === '{' || mark === '[') return { quote: '', end: bracketEnd(text, at) };
  if (mark !== '"' && mark !== "'") {
    const rest = whole ? (LINE[within ?? ''] ?? LINE_END) : /[\s,;&"'<>()[\]{}]|\\[rn"']|%(?:26|2c|22)/gi;
    // The quote of an encoded address.
    rest.lastIndex = text.startsWith('%22', begin) ? begin + 3 : begin;
    const { index = text.length } = rest.exec(text) ?? {};
    return { quote: '', end: index };
  }
  const quote = text.slice(begin, at + 1);
  const closing = closeOf(text, at + 1, quote);
  return { quote, end: closing };
}

/** The position after the closing bracket, or the end of a text that was cut. */
function bracketEnd(text: string, from: number): number {
  let depth = 0;
  for (let at = from; at < text.length; at += 1) {
    const mark = text[at];
    if (mark === '{' || mark === '[') depth += 1;
    else if (mark === '}' || mark === ']') depth -= 1;
    if (depth === 0) return at + 1;
  }
  return text.length;
}

/** The position after the next quote with the same number of escapes, or the end of a text that was cut. */
function closeOf(text: string, from: number, quote: string): number {
  const mark = quote.slice(-1);
  const escapes = quote.length - 1;
  for (let at = text.indexOf(mark, from); at !== -1; at = text.indexOf(mark, at + 1)) {
    let before = 0;
    while (text[at - 1 - before] === '\\') before += 1;
    if (before <= escapes) return at + 1;
  }
  return text.length;
}

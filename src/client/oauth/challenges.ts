/** Reads `WWW-Authenticate`: the schemes of a challenge and their parameters (RFC 9110 section 11.6.1). */

interface AuthChallenge {
  /** In lower case, such as `bearer`. */
  readonly scheme: string;
  readonly params: Readonly<Record<string, string>>;
}

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+/;

/**
 * Reads all challenges of a header. Malformed parts are skipped.
 *
 * @example readChallenges('Bearer scope="a b", error="invalid_token"')[0]?.params.scope === 'a b'
 */
export function readChallenges(header: string): readonly AuthChallenge[] {
  const challenges: { scheme: string; params: Record<string, string> }[] = [];
  let rest = header.trim();
  while (rest !== '') {
    const [name = ''] = TOKEN.exec(rest) ?? [];
    if (name === '') {
      rest = rest.slice(1).trimStart();
      continue;
    }
    rest = rest.slice(name.length);
    const after = rest.trimStart();
    if (after.startsWith('=') && !after.startsWith('==')) {
      const [value, left] = readValue(after.slice(1).trimStart());
      const last = challenges.at(-1);
      if (last) last.params[name.toLowerCase()] ??= value;
      rest = left.trimStart();
      if (rest.startsWith(',')) rest = rest.slice(1).trimStart();
    } else {
      challenges.push({ scheme: name.toLowerCase(), params: {} });
      rest = after.startsWith(',') ? after.slice(1).trimStart() : after;
    }
  }
  return challenges;
}

function readValue(text: string): readonly [value: string, rest: string] {
  if (!text.startsWith('"')) {
    // Some servers use the other quotes.
    const [quoted, inside] = /^'([^']*)'(?=[\s,]|$)/.exec(text) ?? [];
    if (quoted !== undefined && inside !== undefined) return [inside, text.slice(quoted.length)];
    const [value = ''] = /^[^\s,]*/.exec(text) ?? [];
    return [value, text.slice(value.length)];
  }
  let value = '';
  for (let at = 1; at < text.length; at += 1) {
    const char = text[at];
    if (char === '"') return [value, text.slice(at + 1)];
    if (char === '\\') at += 1;
    value += text[at] ?? '';
  }
  return [value, ''];
}

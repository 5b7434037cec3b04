/** The cookies of a session over HTTP: a balancer may bind the session to a node by one. They end with the session, in memory. */

/** Maximum number of cookies, and of characters of one. */
const MAX_COOKIES = 20;
const MAX_LENGTH = 4_096;
const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const VALUE = /^[ -:<-~]*$/;

export class SessionCookies {
  readonly #cookies = new Map<string, string>();

  /**
   * Reads the headers `Set-Cookie` of a response of the server's origin. `Domain` and `Path` are ignored: the cookies go to the
   * addresses of one session only, all of this origin.
   *
   * @param now milliseconds since 1970
   */
  receive(lines: readonly string[] | undefined, { protocol }: URL, now: number): void {
    for (const line of lines ?? []) {
      const [pair = '', ...attributes] = line.split(';');
      const at = pair.indexOf('=');
      const name = pair.slice(0, Math.max(0, at)).trim();
      const value = pair.slice(at + 1).trim();
      if (line.length > MAX_LENGTH || !NAME.test(name) || !VALUE.test(value)) continue;
      if (protocol === 'http:' && attributes.some((each) => /^\s*secure\s*$/i.test(each))) continue;
      // The newest is the last one.
      this.#cookies.delete(name);
      if (!hasExpired(attributes, now)) this.#cookies.set(name, value);
      if (this.#cookies.size > MAX_COOKIES) this.#cookies.delete([...this.#cookies.keys()][0] ?? '');
    }
  }

  /** The header `Cookie`. @param configured the program's own, whose cookies have precedence */
  header(configured: string | undefined): string | undefined {
    if (this.#cookies.size === 0) return configured;
    const own = new Set(configured?.split(';').map((pair) => pair.split('=', 1)[0]?.trim()));
    const received = [...this.#cookies].filter(([name]) => !own.has(name)).map(([name, value]) => `${name}=${value}`);
    return [...(configured === undefined ? [] : [configured]), ...received].join('; ');
  }

  clear(): void {
    this.#cookies.clear();
  }
}

/** `Max-Age` has precedence (RFC 6265 section 5.3). */
function hasExpired(attributes: readonly string[], now: number): boolean {
  const attribute = (wanted: string): string | undefined =>
    attributes
      .find((each) => each.trim().toLowerCase().startsWith(`${wanted}=`))
      ?.split('=', 2)[1]
      ?.trim();
  const age = attribute('max-age');
  if (age !== undefined && /^-?\d+$/.test(age)) return Number(age) <= 0;
  return Date.parse(attribute('expires') ?? '') <= now;
}

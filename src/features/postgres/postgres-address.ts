/** The address of a PostgreSQL database. Its URL contains a password, so only the driver reads it; every text uses the label. */

/** `console.log`, `JSON.stringify` and the inspector show the label only, because the URL is private. */
export class PostgresAddress {
  readonly #url: string;
  /** Host, port if unusual, and database, such as `db.example.com/shop`. */
  readonly label: string;

  /** @param option names the option in the error. @throws {TypeError} for a text that is no URL of PostgreSQL; the error does not contain it */
  constructor(url: string, option = 'url') {
    const parsed = parse(url);
    // Neither the text nor the parser's error is part of this one: both contain the password.
    if (!parsed)
      throw new TypeError(
        `postgres: ${option}: expected the URL of a database on one host, such as postgres://user@host/database, got ${typeof url === 'string' ? 'another text' : typeof url}`,
      );
    this.#url = url;
    this.label = labelOf(parsed);
  }

  /** The URL with its password: for the driver, and for nothing that is logged. */
  get url(): string {
    return this.#url;
  }
}

function parse(url: unknown): URL | undefined {
  if (typeof url !== 'string' || !/^postgres(?:ql)?:\/\//i.test(url) || !URL.canParse(url)) return undefined;
  const parsed = new URL(url);
  const { username, hostname, pathname, search, hash } = parsed;
  // A password with a /, ? or # that is not encoded ends the host early: the user is the host then, and the label would
  // contain the password.
  const isCut = username === '' && (pathname.includes('@') || /^\?[^=]*@/.test(search) || hash.includes('@'));
  // The driver connects to one host: it would look up both names as one.
  return isCut || hostname.includes(',') ? undefined : parsed;
}

function labelOf({ hostname, port, pathname, searchParams }: URL): string {
  const host = searchParams.get('host') ?? decodeURIComponent(hostname);
  const number = searchParams.get('port') ?? port;
  return `${host}${number === '' || number === '5432' ? '' : `:${number}`}${pathname === '/' ? '' : pathname}`;
}

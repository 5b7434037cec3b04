/** The people of the example, and how they sign in: it asks for no password. Never use it for anything else. */

/** One of the people, as an endpoint and `server.approvals` know them. */
interface Person {
  readonly principal: string;
  readonly scopes: readonly string[];
}

const PEOPLE: Readonly<Record<string, readonly string[]>> = { ada: [], olga: ['ops'] };

export const NAMES: readonly string[] = Object.keys(PEOPLE);

/** The person of a name; undefined for an unknown one. */
export function personOf(name: string | undefined): Person | undefined {
  const scopes = name !== undefined && Object.hasOwn(PEOPLE, name) ? PEOPLE[name] : undefined;
  return scopes && name !== undefined ? { principal: name, scopes } : undefined;
}

/** The person of a client, whose token is a name: `Authorization: Bearer ada`. */
export function personOfClient(authorization: string | undefined): Person | undefined {
  return personOf(authorization?.replace(/^Bearer /, ''));
}

/** The person of a browser, whose cookie is a name. */
export function personOfBrowser(cookie: string | undefined): Person | undefined {
  return personOf(/(?:^|; )person=([a-z]+)/.exec(cookie ?? '')?.[1]);
}

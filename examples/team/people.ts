/** The members of the example's team, and how they sign in: it asks for no password. Never use it for anything else. */

/** A member, as an endpoint and the pages of approvals know them. */
interface Person {
  readonly principal: string;
  readonly scopes: readonly string[];
}

const PEOPLE: Readonly<Record<string, readonly string[]>> = { ada: ['team'], bob: ['team'], agent: ['agent'] };

function personOf(name: string | undefined): Person | undefined {
  const scopes = name !== undefined && Object.hasOwn(PEOPLE, name) ? PEOPLE[name] : undefined;
  return scopes && name !== undefined ? { principal: name, scopes } : undefined;
}

/** The member of a client, whose token is a name: `Authorization: Bearer ada`. */
export function personOfClient(authorization: string | undefined): Person | undefined {
  return personOf(authorization?.replace(/^Bearer /, ''));
}

/** The member of a browser, whose cookie is a name: `person=ada`. */
export function personOfBrowser(cookie: string | undefined): Person | undefined {
  return personOf(/(?:^|; )person=([a-z]+)/.exec(cookie ?? '')?.[1]);
}

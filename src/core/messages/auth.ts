/** The authenticated caller of a request, as rules and handlers see it. */

import { isObject, type JsonObject } from '../protocol/json.ts';
import { LOCAL } from '../protocol/principals.ts';

/** The authenticated caller of a request (`ctx.auth`). Frozen; never contains the token. */
export interface Auth {
  /** The name that owns what the caller creates: sessions, tasks, handles. */
  readonly principal: string;
  /** The issuer of the token, its subject, and the client that it was issued to. Undefined if the authenticator knows none. */
  readonly issuer?: string;
  readonly subject?: string;
  readonly clientId?: string;
  /**
   * The granted scopes with all that they imply, so that `scopes.includes(…)` decides. Those of the local user are `['*']`, which
   * includes every scope, unless the transport names others.
   */
  readonly scopes: readonly string[];
  /** The claims of the token. Empty if the authenticator knows none. */
  readonly claims: JsonObject;
  /** The end of the authentication, in milliseconds since 1970. Undefined: none. */
  readonly expiresAt?: number;
}

/** True if a stored value is an {@link Auth}. */
export function isAuth(value: unknown): value is Auth {
  return (
    isObject(value) && typeof value.principal === 'string' && Array.isArray(value.scopes) && isObject(value.claims)
  );
}

const NO_SCOPES: readonly string[] = Object.freeze([]);
/** The scopes of the local user: the person who runs the server could change it, too. No token can contain it for another principal. */
const EVERY = '*';
// Not enumerable: a thread receives a copy of what is, and a function has none.
const EVERY_SCOPE: readonly string[] = Object.freeze(Object.defineProperty([EVERY], 'includes', { value: () => true }));
const NO_CLAIMS: JsonObject = Object.freeze({});

/**
 * Creates what is known of a caller that a transport names without a token.
 *
 * @param scopes default: every scope for the local user, none for others
 */
export function authOf(
  principal: string,
  scopes?: readonly string[],
  more: Pick<Auth, 'claims' | 'expiresAt'> = { claims: NO_CLAIMS },
): Auth {
  return Object.freeze({ ...more, principal, scopes: grantedTo(principal, scopes) });
}

/** Restores a caller that was stored: text does not carry what the scopes of the local user include. */
export function restoredAuth(auth: Auth): Auth {
  return Object.freeze({ ...auth, scopes: grantedTo(auth.principal, auth.scopes) });
}

function grantedTo(principal: string, scopes: readonly string[] | undefined): readonly string[] {
  if (principal === LOCAL && (scopes === undefined || (scopes.length === 1 && scopes[0] === EVERY))) return EVERY_SCOPE;
  return scopes === undefined ? NO_SCOPES : Object.freeze([...scopes]);
}

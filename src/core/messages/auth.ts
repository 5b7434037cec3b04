/** The authenticated caller of a request, as rules and handlers see it. */
import { isObject, type JsonObject } from '../protocol/json.ts';

/** The authenticated caller of a request (`ctx.auth`). Frozen; never contains the token. */
export interface Auth {
  /** The name that owns what the caller creates: sessions, tasks, handles. */
  readonly principal: string;
  /** The issuer of the token, its subject, and the client that it was issued to. Undefined if the authenticator knows none. */
  readonly issuer?: string;
  readonly subject?: string;
  readonly clientId?: string;
  /** The granted scopes with all that they imply, so that a membership test decides. */
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
const NO_CLAIMS: JsonObject = Object.freeze({});

/** Creates what is known of a caller that a transport names without a token. */
export function authOf(
  principal: string,
  scopes: readonly string[] = NO_SCOPES,
  more: Pick<Auth, 'claims' | 'expiresAt'> = { claims: NO_CLAIMS },
): Auth {
  return Object.freeze({ ...more, principal, scopes: Object.freeze([...scopes]) });
}

/** Decides by its claims whether a token is an access token for this server, and for whom. */

import type { Auth } from '../../core/messages/auth.ts';
import { isJsonObject, isWellFormed, type JsonObject, type JsonValue } from '../../core/protocol/json.ts';
import type { ResolvedIssuer, ResolvedResourceServer } from './resource-server-options.ts';

/** The latest time of a token, in seconds since 1970: the year 5138. */
const LATEST_S = 100_000_000_000;

/** In place of an audience: other audiences are checked later. */
export const ANY_AUDIENCE = Symbol('any audience');

/** The result of a verification. */
export type TokenVerdict =
  | {
      readonly auth: Auth;
      /** The thumbprint of the key that the token is bound to (RFC 9449 section 6). */
      readonly boundTo: string | undefined;
      /** Milliseconds since 1970 at which the token ends, the leeway included. Undefined if it does not say. */
      readonly until: number | undefined;
    }
  /** The reason, which the client sees. */
  | { readonly rejected: string };

interface ClaimsContext {
  readonly settings: ResolvedResourceServer;
  readonly issuer: ResolvedIssuer;
  /**
   * The audience of the issuer itself, its userinfo endpoint, which each of its tokens may have in addition. With
   * {@link ANY_AUDIENCE} other audiences are not checked.
   */
  readonly alsoFor: string | typeof ANY_AUDIENCE | undefined;
  /** `jwt` needs an end, and may be an ID token. */
  readonly kind: 'jwt' | 'at+jwt' | 'introspected';
}

/**
 * Checks issuer, time, audience and purpose. Signature and algorithm are checked elsewhere.
 *
 * @see RFC 9068 section 4, RFC 8725
 */
export function judgeClaims(claims: JsonObject, context: ClaimsContext): TokenVerdict {
  const { settings, issuer, kind } = context;
  const { clock, leewayMs } = settings;
  const introspected = kind === 'introspected';
  if (claims.iss !== issuer.issuer && !(introspected && claims.iss === undefined))
    return { rejected: 'the token is of another issuer' };
  // A name with half of a surrogate pair cannot be stored, nor written into an address.
  if (!isWellFormed(claims)) return { rejected: 'the token has text that is not well-formed Unicode' };
  const { exp, nbf, iat } = claims;
  const now = clock.date();
  if (exp === undefined ? !introspected : !isTime(exp)) return { rejected: 'the token has no valid exp' };
  const until = isTime(exp) ? exp * 1_000 + leewayMs : undefined;
  if (until !== undefined && until <= now) return { rejected: 'the token has expired' };
  if (nbf !== undefined && !(isTime(nbf) && nbf * 1_000 - leewayMs <= now))
    return { rejected: 'the token is not valid yet' };
  if (iat !== undefined && !(isTime(iat) && iat * 1_000 - leewayMs <= now))
    return { rejected: 'the token was issued in the future' };
  const foreign = audienceFault(claims.aud, context);
  if (foreign !== undefined) return { rejected: foreign };
  const clientClaim = CLIENT_CLAIMS.find((name) => !isAbsent(claims[name]));
  // Read as absent, a number here would make one principal of all callers whose other claims are equal.
  for (const name of ['sub', clientClaim] as const)
    if (name !== undefined && !isAbsent(claims[name]) && textOf(claims[name]) === undefined)
      return { rejected: `the token's ${name} is no text` };
  const clientId = clientClaim === undefined ? undefined : textOf(claims[clientClaim]);
  const granted = grantedScopes(claims);
  if (isMarkedOtherwise(claims) || (kind === 'jwt' && isIdToken(claims, granted, clientId)))
    return { rejected: 'expected an access token, got an ID token or a refresh token' };
  const bound = boundTo(claims);
  // RFC 9449 section 6.2: the answer of the introspection names the key.
  if (bound === undefined && introspected && /^dpop$/i.test(String(claims.token_type)))
    return { rejected: 'the token is bound to a key (DPoP), and its issuer does not name the key (cnf)' };
  if (bound === false) return { rejected: 'the token is bound to a key in a way that this server does not support' };
  const subject = textOf(claims.sub);
  if (subject === undefined && clientId === undefined) return { rejected: 'the token names no subject and no client' };
  const scopes = withImplied(granted, settings.implies);
  return {
    auth: Object.freeze({
      // A token without a subject belongs to its client, also with perUser.
      principal: principalOf(issuer.issuer, subject, settings.perUser && subject !== undefined ? undefined : clientId),
      issuer: issuer.issuer,
      ...(subject === undefined ? {} : { subject }),
      ...(clientId === undefined ? {} : { clientId }),
      scopes,
      claims: frozen(claims),
      ...(isTime(exp) ? { expiresAt: exp * 1_000 } : {}),
    }),
    boundTo: bound,
    until,
  };
}

/**
 * Each audience must be this server, one that the options allow, or the issuer's own userinfo endpoint. A token that is
 * also for others could come from any of them (GHSA-p2fr-6hmx-4528).
 */
function audienceFault(aud: JsonValue | undefined, { settings, issuer, alsoFor }: ClaimsContext): string | undefined {
  const all = typeof aud === 'string' ? [aud] : Array.isArray(aud) ? aud : [];
  if (!all.includes(issuer.audience)) return `the token is for another audience: expected aud ${issuer.audience}`;
  if (alsoFor === ANY_AUDIENCE) return undefined;
  const fine = (each: JsonValue): boolean =>
    each === issuer.audience || each === alsoFor || (typeof each === 'string' && settings.otherAudiences.has(each));
  return all.every(fine) ? undefined : `the token is also for other audiences: expected aud ${issuer.audience} alone`;
}

/**
 * True for tokens that their issuer marks as ID or refresh tokens: Keycloak by `typ`, Cognito by `token_use`, others by `token_type`,
 * also in answers of their introspection.
 */
function isMarkedOtherwise({ typ, token_use, token_type }: JsonObject): boolean {
  const marks = [typ, token_use, token_type].flatMap((mark) => (typeof mark === 'string' ? mark.toLowerCase() : []));
  return marks.some((mark) => OTHER_TOKENS.has(mark));
}

const OTHER_TOKENS: ReadonlySet<string> = new Set(['id', 'id_token', 'refresh', 'refresh_token', 'offline', 'logout']);

/** True for what OpenID Connect calls an ID token. */
function isIdToken(claims: JsonObject, granted: readonly string[], clientId: string | undefined): boolean {
  if (claims.nonce !== undefined || claims.at_hash !== undefined || claims.c_hash !== undefined) return true;
  return granted.length === 0 && clientId === undefined;
}

/** Scopes by RFC 6749 (`scope`), and by issuers that write `scp` or an array. */
function grantedScopes({ scope, scp }: JsonObject): readonly string[] {
  return [...textsOf(scope), ...textsOf(scp)];
}

function textsOf(value: JsonValue | undefined): readonly string[] {
  if (typeof value === 'string') return value.split(' ').filter((each) => each !== '');
  return Array.isArray(value) ? value.filter((each): each is string => typeof each === 'string' && each !== '') : [];
}

function withImplied(granted: readonly string[], implies: ReadonlyMap<string, readonly string[]>): readonly string[] {
  const all = new Set(granted);
  for (const scope of granted) for (const included of implies.get(scope) ?? []) all.add(included);
  return Object.freeze([...all]);
}

/** @returns undefined for a token that any bearer may use; false for a binding that cannot be checked here */
function boundTo({ cnf }: JsonObject): string | undefined | false {
  if (cnf === undefined) return undefined;
  if (!isJsonObject(cnf)) return false;
  const { jkt } = cnf;
  return typeof jkt === 'string' && Object.keys(cnf).length === 1 ? jkt : false;
}

/** Issuer, subject and client in one text, so that no two combinations are equal. */
function principalOf(issuer: string, subject: string | undefined, client: string | undefined): string {
  const part = (text: string | undefined): string => (text === undefined ? '' : encodeURIComponent(text));
  return `${issuer} ${part(subject)}${client === undefined ? '' : ` ${part(client)}`}`;
}

/** The claims that name the client of a token, in the order in which they count. */
const CLIENT_CLAIMS = ['client_id', 'azp', 'appid'] as const;

function isAbsent(value: JsonValue | undefined): boolean {
  return value === undefined || value === null;
}

function textOf(value: JsonValue | undefined): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** True for seconds since 1970. Milliseconds, which some issuers write by mistake, would be a token without an end. */
function isTime(value: JsonValue | undefined): value is number {
  return typeof value === 'number' && value >= 0 && value <= LATEST_S;
}

function frozen<T extends JsonValue | undefined>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    for (const each of Object.values(value)) frozen(each);
    Object.freeze(value);
  }
  return value;
}

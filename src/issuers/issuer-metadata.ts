/** Discovery of an authorization server, for the client and for `troupe/oauth`. */
import type { AuthorizationServer } from 'oauth4webapi';
import { isObject } from '../protocol/json.ts';
import type { GuardedFetch } from './guarded-fetch.ts';

/**
 * Finds the metadata of an authorization server, in the order of the specification.
 *
 * @param slash whether the slash of an empty path may differ
 * @throws {Error} if there is none, or its issuer is another: text equality, without normalization (RFC 8414 section 3.3)
 * @see 2026-07-28 authorization-server-discovery "Authorization Server Metadata Discovery"
 */
export async function findIssuer(
  http: GuardedFetch,
  issuer: string,
  { signal, slash }: { readonly signal?: AbortSignal; readonly slash: 'exact' | 'optional' },
): Promise<AuthorizationServer> {
  if (!URL.canParse(issuer) || !/^https?:/i.test(issuer))
    throw new Error(
      `expected the https address of an authorization server, the resource names "${issuer.slice(0, 200)}"`,
    );
  const url = new URL(issuer);
  const path = url.pathname.replace(/\/$/, '');
  const places =
    path === ''
      ? [`${url.origin}/.well-known/oauth-authorization-server`, `${url.origin}/.well-known/openid-configuration`]
      : [
          `${url.origin}/.well-known/oauth-authorization-server${path}`,
          `${url.origin}/.well-known/openid-configuration${path}`,
          `${url.origin}${path}/.well-known/openid-configuration`,
        ];
  for (const place of places) {
    const found = await getJson(http, place, signal);
    if (found === undefined) continue;
    if (!isAuthorizationServer(found)) throw new Error(`${place}: expected metadata with an issuer, got none`);
    // The issuer is an identifier. Only the slash of an empty path may differ, because URLs of both forms are one text to most software.
    const same = path === '' && slash === 'optional' && withoutSlash(found.issuer) === withoutSlash(issuer);
    if (found.issuer !== issuer && !same)
      throw new Error(
        `${place}: expected the issuer ${issuer}, got ${found.issuer.slice(0, 200)}. No token is requested there`,
      );
    return found;
  }
  throw new Error(`${issuer}: no metadata of an authorization server (tried ${places.join(', ')})`);
}

/** @returns undefined for a response that is not 200 with a JSON object, and below 500 */
export async function getJson(
  http: GuardedFetch,
  address: string,
  signal?: AbortSignal,
): Promise<Readonly<Record<string, unknown>> | undefined> {
  const response = await http(address, { headers: { accept: 'application/json' }, signal });
  if (response.status >= 500) throw new Error(`${address}: HTTP ${response.status}`);
  if (response.status !== 200) return undefined;
  const value: unknown = await response.json().catch(() => undefined);
  return isObject(value) ? value : undefined;
}

export function isAuthorizationServer(
  value: Readonly<Record<string, unknown>>,
): value is AuthorizationServer & Readonly<Record<string, unknown>> {
  return typeof value.issuer === 'string';
}

function withoutSlash(issuer: string): string {
  return issuer.replace(/\/$/, '');
}

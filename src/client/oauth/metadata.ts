/** Discovery: the metadata of the protected resource, and of its authorization server. */
import type { AuthorizationServer } from 'oauth4webapi';
import { isObject } from '../../protocol/json.ts';
import type { GuardedFetch } from './guarded-fetch.ts';

/** The metadata of an MCP server as a protected resource (RFC 9728). */
export interface ProtectedResource {
  /** The value for `resource` in requests to the authorization server (RFC 8707). */
  readonly resource: string;
  readonly issuers: readonly string[];
  readonly scopes: readonly string[] | undefined;
  readonly dpopRequired: boolean;
}

/**
 * Finds the metadata of a resource: at the address in the challenge, else below the path, else at the root.
 *
 * @param named the address that the server has just named
 * @param remembered an address that it named before, and that may be gone
 * @returns undefined if the server has none (2025-03-26: it is its own authorization server)
 * @throws {Error} for metadata of another resource: its tokens could be used there
 * @see 2026-07-28 authorization "Protected Resource Metadata Discovery Requirements"
 */
export async function findResource(
  http: GuardedFetch,
  server: URL,
  named: string | undefined,
  signal: AbortSignal,
  remembered?: string,
): Promise<ProtectedResource | undefined> {
  const path = server.pathname === '/' ? '' : server.pathname.replace(/\/$/, '');
  const known = '/.well-known/oauth-protected-resource';
  const places =
    named === undefined
      ? [
          ...(remembered === undefined ? [] : [remembered]),
          ...(path === '' ? [] : [`${server.origin}${known}${path}`]),
          `${server.origin}${known}`,
        ]
      : [named];
  for (const place of places) {
    const found = await getJson(http, place, signal);
    if (found === undefined) continue;
    const { resource, authorization_servers: issuers, scopes_supported: scopes } = found;
    if (typeof resource !== 'string' || !covers(resource, server))
      throw new Error(
        `${place}: expected the metadata of ${server.origin}${server.pathname}, got that of ${String(resource).slice(0, 200)}`,
      );
    return {
      resource,
      issuers: strings(issuers) ?? [],
      scopes: strings(scopes),
      dpopRequired: found.dpop_bound_access_tokens_required === true,
    };
  }
  if (named !== undefined)
    throw new Error(`${named}: expected the resource's metadata, which the server named, got none`);
  return undefined;
}

/** The resource of metadata may be the server itself or a parent path at the same origin. */
function covers(resource: string, server: URL): boolean {
  if (!URL.canParse(resource)) return false;
  const { origin, pathname } = new URL(resource);
  if (origin !== server.origin) return false;
  const parent = pathname.endsWith('/') ? pathname : `${pathname}/`;
  return pathname === server.pathname || `${server.pathname}/`.startsWith(parent);
}

/**
 * Finds the metadata of an authorization server, in the order of the specification.
 *
 * @throws {Error} if there is none, or its issuer is another: text equality, without normalization (RFC 8414 section 3.3)
 * @see 2026-07-28 authorization-server-discovery "Authorization Server Metadata Discovery"
 */
export async function findIssuer(
  http: GuardedFetch,
  issuer: string,
  signal: AbortSignal,
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
    if (found.issuer !== issuer && (path !== '' || withoutSlash(found.issuer) !== withoutSlash(issuer)))
      throw new Error(
        `${place}: expected the issuer ${issuer}, got ${found.issuer.slice(0, 200)}. No token is requested there`,
      );
    return found;
  }
  throw new Error(`${issuer}: no metadata of an authorization server (tried ${places.join(', ')})`);
}

/** The authorization server of a 2025-03-26 server, which names none: its own origin, with or without metadata. */
export async function originIssuer(http: GuardedFetch, server: URL, signal: AbortSignal): Promise<AuthorizationServer> {
  const found = await getJson(http, `${server.origin}/.well-known/oauth-authorization-server`, signal);
  if (found !== undefined && isAuthorizationServer(found)) return found;
  return {
    issuer: server.origin,
    authorization_endpoint: `${server.origin}/authorize`,
    token_endpoint: `${server.origin}/token`,
    registration_endpoint: `${server.origin}/register`,
    code_challenge_methods_supported: ['S256'],
  };
}

async function getJson(
  http: GuardedFetch,
  address: string,
  signal: AbortSignal,
): Promise<Readonly<Record<string, unknown>> | undefined> {
  const response = await http(address, { headers: { accept: 'application/json' }, signal });
  if (response.status >= 500) throw new Error(`${address}: HTTP ${response.status}`);
  if (response.status !== 200) return undefined;
  const value: unknown = await response.json().catch(() => undefined);
  return isObject(value) ? value : undefined;
}

function isAuthorizationServer(
  value: Readonly<Record<string, unknown>>,
): value is AuthorizationServer & Readonly<Record<string, unknown>> {
  return typeof value.issuer === 'string';
}

function withoutSlash(issuer: string): string {
  return issuer.replace(/\/$/, '');
}

function strings(value: unknown): readonly string[] | undefined {
  return Array.isArray(value) ? value.filter((each) => typeof each === 'string') : undefined;
}

/** Discovery of a protected resource, and of the authorization server of a resource that names none. */
import type { AuthorizationServer } from 'oauth4webapi';
import type { GuardedFetch } from '../../issuers/guarded-fetch.ts';
import { getJson, isAuthorizationServer } from '../../issuers/issuer-metadata.ts';

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

function strings(value: unknown): readonly string[] | undefined {
  return Array.isArray(value) ? value.filter((each) => typeof each === 'string') : undefined;
}

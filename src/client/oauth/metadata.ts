/** Discovery of a protected resource, and of the authorization server of a resource that names none. */
import type { AuthorizationServer } from 'oauth4webapi';
import type { GuardedFetch } from '../../features/oauth/issuers/guarded-fetch.ts';
import {
  explainMisses,
  findIssuer,
  firstDocument,
  isSameIssuer,
  readAuthorizationServer,
} from '../../features/oauth/issuers/issuer-metadata.ts';

/** The metadata of an MCP server as a protected resource (RFC 9728). */
interface ProtectedResource {
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
 * @throws {Error} if the only metadata is of another resource, whose tokens could be used there, or if a place fails
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
  const places = [
    ...(named === undefined ? [] : [named]),
    ...(remembered === undefined || remembered === named ? [] : [remembered]),
    ...(path === '' ? [] : [`${server.origin}${known}${path}`]),
    `${server.origin}${known}`,
  ];
  let foreign = false;
  const { found, misses } = await firstDocument<ProtectedResource>(http, places, signal, (document) => {
    const { resource, authorization_servers: issuers, scopes_supported: scopes } = document;
    if (resource === undefined) return 'it names no resource';
    if (typeof resource !== 'string' || !covers(resource, server)) {
      foreign = true;
      return `expected the metadata of ${server.origin}${server.pathname}, got that of ${String(resource).slice(0, 200)}`;
    }
    return {
      resource,
      issuers: strings(issuers) ?? [],
      scopes: strings(scopes),
      dpopRequired: document.dpop_bound_access_tokens_required === true,
    };
  });
  if (found) return found;
  // Only a server that has no metadata is its own authorization server. One that fails now, or names another resource, is not.
  if (named !== undefined || foreign || misses.some(({ outage }) => outage))
    throw new Error(`no metadata of the resource ${server.origin}${server.pathname}. ${explainMisses(misses)}`);
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
 * The authorization server of a 2025-03-26 server, which names none: its own origin, with or without metadata. Metadata at the
 * origin that names another issuer counts as its name only: the document of that issuer decides (RFC 8414 section 3.3). Else a
 * server could present its own token endpoint as that of another issuer.
 */
export async function originIssuer(http: GuardedFetch, server: URL, signal: AbortSignal): Promise<AuthorizationServer> {
  const { origin } = server;
  const place = `${origin}/.well-known/oauth-authorization-server`;
  const { found, misses } = await firstDocument(
    http,
    [place],
    signal,
    (document) => readAuthorizationServer(document) ?? 'it has no issuer',
  );
  if (found)
    return isSameIssuer(found.issuer, origin) ? found : findIssuer(http, found.issuer, { signal, slash: 'optional' });
  if (misses.some(({ outage }) => outage)) throw new Error(explainMisses(misses));
  return {
    issuer: origin,
    authorization_endpoint: `${origin}/authorize`,
    token_endpoint: `${origin}/token`,
    registration_endpoint: `${origin}/register`,
    code_challenge_methods_supported: ['S256'],
  };
}

/** The texts of a list. Some servers write a list of one as its text, and scopes with spaces between them. */
function strings(value: unknown): readonly string[] | undefined {
  if (typeof value === 'string') return value.split(' ').filter((word) => word !== '');
  return Array.isArray(value) ? value.filter((each) => typeof each === 'string') : undefined;
}

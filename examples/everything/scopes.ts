/** Scopes for callers with one of two fixed tokens: shows how a server rejects what a token does not allow. */
import type { AuthorizationRule, HttpAuthenticator, Server } from 'troupe';

const TOKENS: Readonly<Record<string, readonly string[]>> = {
  'mcp-conformance-scope-low': ['mcp:conformance:baseline'],
  'mcp-conformance-scope-full': [
    'mcp:conformance:baseline',
    'mcp:conformance:tools:call',
    'mcp:conformance:tools:test_simple_text',
    'mcp:conformance:resources:read',
    'mcp:conformance:resources:static',
    'mcp:conformance:resources:template:123',
    'mcp:conformance:prompts:get',
    'mcp:conformance:prompts:test_simple_prompt',
  ],
};
const METADATA = '/.well-known/oauth-protected-resource';

/** A caller without a token may do everything, as without this file. */
const rule: AuthorizationRule = ({ auth, element, uri = '' }) => {
  if (!auth) return true;
  const [, id] = /^test:\/\/template\/([^/]+)\/data$/.exec(uri) ?? [];
  if (element.name === 'test_simple_text') return needs('tools:call', 'tools:test_simple_text');
  if (element.name === 'test_simple_prompt') return needs('prompts:get', 'prompts:test_simple_prompt');
  if (uri === 'test://static-text') return needs('resources:read', 'resources:static');
  return id === undefined || needs('resources:read', `resources:template:${id}`);
};

/**
 * Adds the rule to the server.
 *
 * @returns the authenticator for `http({ auth })`
 */
export function addScopes(server: Server): HttpAuthenticator {
  server.authorize(rule);
  // Clients do not follow it: nobody issues tokens for this server. With an authorization server, take `oauth()`.
  const resourceMetadata = `http://127.0.0.1${METADATA}/mcp`;
  const challenge = (parameters: string): string => `Bearer ${parameters}, resource_metadata="${resourceMetadata}"`;
  return {
    resourceMetadata,
    documents: new Map([[METADATA, { resource: 'http://127.0.0.1/mcp', bearer_methods_supported: ['header'] }]]),
    challenge: (scopes) => [challenge(`error="insufficient_scope", scope="${scopes.join(' ')}"`)],
    authenticate(request) {
      const header = request.header('authorization');
      if (header === undefined) return { auth: { principal: 'anonymous', scopes: [], claims: {} } };
      const token = header.replace(/^Bearer /i, '');
      const scopes = Object.hasOwn(TOKENS, token) ? TOKENS[token] : undefined;
      if (scopes) return { auth: { principal: 'conformance', scopes, claims: {} } };
      const headers = { 'www-authenticate': challenge('error="invalid_token"') };
      return { status: 401, headers, message: 'authentication failed: unknown token' };
    },
  };
}

function needs(...scopes: readonly string[]): { readonly scopes: readonly string[] } {
  return { scopes: scopes.map((scope) => `mcp:conformance:${scope}`) };
}

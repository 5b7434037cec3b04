/** A real authorization server, `oidc-provider`, in this process: registration, consent, PKCE, resource indicators, both kinds of tokens. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import { text } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';
import { exportJWK, generateKeyPair, type JWK } from 'jose';
import { peerFile } from '../../client/peers.ts';

export interface OidcProvider {
  readonly issuer: string;
  /** The credentials for introspection. */
  readonly introspection: { readonly clientId: string; readonly clientSecret: string };
  /** The paths of all requests so far. */
  readonly requests: readonly string[];
  /** Signs with a new key from now on, and publishes only that one. */
  rotate(): Promise<void>;
  close(): Promise<void>;
}

/** The parts of `oidc-provider` that the tests use. It brings no types. */
interface ProviderModule {
  readonly Provider: new (
    issuer: string,
    configuration: object,
  ) => {
    use(
      middleware: (
        context: { readonly path: string; readonly req: IncomingMessage },
        next: () => Promise<void>,
      ) => Promise<void>,
    ): void;
    callback(): RequestListener;
  };
}

const INTROSPECTION = { clientId: 'resource-server', clientSecret: 'a secret of the tests' } as const;

/**
 * @param format the kind of its access tokens
 * @param scopes those of each resource
 */
export async function oidcProvider(format: 'jwt' | 'opaque', scopes: readonly string[]): Promise<OidcProvider> {
  const { warn } = console;
  // This is no configuration for production, as it prints.
  console.warn = (...said: unknown[]): void => {
    if (!String(said[0]).startsWith('oidc-provider WARNING')) warn(...said);
  };
  const { Provider }: ProviderModule = await import(pathToFileURL(peerFile('oidc-provider/lib/index.js')).href);
  const requests: string[] = [];
  let listener: RequestListener | undefined;
  const http = createServer((request, response) => {
    requests.push((request.url ?? '').replace(/\?.*/, ''));
    listener?.(request, response);
  });
  await once(http.listen(0, '127.0.0.1'), 'listening');
  const address = http.address();
  const issuer = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
  // Registrations and grants are in a memory that all of its instances share, so that another instance has other keys only.
  const start = async (): Promise<void> => {
    const key = await signingKey();
    const provider = new Provider(issuer, configuration(format, scopes, key));
    // The official clients register with the scopes of their first challenge, and this provider would never grant such a
    // client any other scope.
    provider.use(async ({ path, req }, next) => {
      if (path === '/reg') Object.assign(req, { body: { ...JSON.parse(await text(req)), scope: undefined } });
      await next();
    });
    listener = provider.callback();
  };
  await start();
  return {
    issuer,
    introspection: INTROSPECTION,
    requests,
    rotate: start,
    async close() {
      console.warn = warn;
      http.closeAllConnections();
      await new Promise<void>((closed) => void http.close(() => closed()));
    },
  };
}

function configuration(format: 'jwt' | 'opaque', scopes: readonly string[], key: JWK): object {
  return {
    jwks: { keys: [key] },
    clients: [
      {
        client_id: INTROSPECTION.clientId,
        client_secret: INTROSPECTION.clientSecret,
        redirect_uris: [],
        response_types: [],
        grant_types: [],
        id_token_signed_response_alg: 'ES256',
      },
    ],
    scopes: ['openid', 'offline_access', ...scopes],
    clientDefaults: { id_token_signed_response_alg: 'ES256' },
    enabledJWA: { idTokenSigningAlgValues: ['ES256'] },
    cookies: { keys: ['a key of the tests'] },
    findAccount: (_: unknown, accountId: string) => ({ accountId, claims: () => ({ sub: accountId }) }),
    ttl: {
      AccessToken: 600,
      RefreshToken: 600,
      AuthorizationCode: 60,
      Grant: 600,
      Interaction: 600,
      Session: 600,
      IdToken: 600,
    },
    pkce: { required: () => true },
    features: {
      devInteractions: { enabled: true },
      registration: { enabled: true },
      introspection: {
        enabled: true,
        allowedPolicy: (_: unknown, client: { clientId: string }) => client.clientId === INTROSPECTION.clientId,
      },
      resourceIndicators: {
        enabled: true,
        useGrantedResource: () => true,
        getResourceServerInfo: (_: unknown, resource: string) => ({
          audience: resource,
          scope: scopes.join(' '),
          accessTokenFormat: format,
          accessTokenTTL: 600,
          jwt: { sign: { alg: 'ES256' } },
        }),
      },
    },
  };
}

async function signingKey(): Promise<JWK> {
  const { privateKey } = await generateKeyPair('ES256', { extractable: true });
  return { ...(await exportJWK(privateKey)), kid: crypto.randomUUID(), alg: 'ES256', use: 'sig' };
}

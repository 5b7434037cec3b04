/** The configured credentials of an API: by security scheme, from a function, or one header for a document that names no scheme. */
import { oauthRows } from '../../client/oauth/resource-grant.ts';
import { isObject } from '../../core/protocol/json.ts';
import * as option from '../../core/protocol/option-rows.ts';
import { DefinitionError } from '../../core/registry/definition-checks.ts';
import type { UpstreamOAuth } from '../mounts/upstream-grants.ts';

/** A key or a bearer token. */
export interface ApiToken {
  readonly token: string;
}

export interface ApiPassword {
  readonly username: string;
  readonly password: string;
}

/** OAuth 2 at the authorization server of the document. Without `grant`, each principal signs in. */
export interface ApiOAuth
  extends Pick<
    UpstreamOAuth,
    'clientId' | 'clientSecret' | 'privateKey' | 'algorithm' | 'issuer' | 'scopes' | 'grant' | 'signInMs' | 'tokens'
  > {
  readonly clientId: string;
  /** Replaces the address of the document. */
  readonly authorizationUrl?: string;
  /** Replaces the address of the document. */
  readonly tokenUrl?: string;
  /** Sends the secret in the body of token requests instead of a header. Default `client_secret_basic`. */
  readonly clientAuth?: 'client_secret_basic' | 'client_secret_post';
}

/** The credential of one security scheme. `ask`: each principal is asked for their own on a page. */
export type ApiCredential = ApiToken | ApiPassword | ApiOAuth | 'ask';

/** The scheme, and the scopes of the operation, for which a program supplies a credential. */
export interface CredentialNeed {
  readonly scheme: string;
  readonly scopes: readonly string[];
}

/**
 * The credentials of an API.
 *
 * - by the names of its security schemes;
 * - a function of the principal, called for each request: it returns a key, a token, a name with a password, or undefined;
 * - one header, for a document without security schemes;
 * - false: none, and no person is asked.
 *
 * Without it, each principal is asked for the keys and passwords that an operation needs.
 */
export type ApiAuth =
  | Readonly<Record<string, ApiCredential>>
  | ((
      principal: string,
      need: CredentialNeed,
    ) => string | ApiPassword | undefined | Promise<string | ApiPassword | undefined>)
  | { readonly header: string; readonly token: string }
  | false;

const ROWS: option.Rows<ApiOAuth> = {
  ...oauthRows([
    ...(['clientId', 'clientSecret', 'privateKey', 'algorithm', 'issuer', 'scopes', 'grant', 'signInMs'] as const),
    'tokens',
  ]),
  ...option.each(['authorizationUrl', 'tokenUrl'], option.filled),
  clientAuth: option.expected(
    '"client_secret_basic" or "client_secret_post"',
    (way) => way === 'client_secret_basic' || way === 'client_secret_post',
  ),
};

/** One header for a document without security schemes. */
export function isHeaderAuth(auth: ApiAuth | undefined): auth is { readonly header: string; readonly token: string } {
  return isObject(auth) && typeof auth.header === 'string' && typeof auth.token === 'string';
}

export function isOAuth(credential: ApiCredential | undefined): credential is ApiOAuth {
  return isObject(credential) && 'clientId' in credential;
}

export function isPassword(credential: unknown): credential is ApiPassword {
  return isObject(credential) && typeof credential.username === 'string' && typeof credential.password === 'string';
}

export function isToken(credential: unknown): credential is ApiToken {
  return isObject(credential) && typeof credential.token === 'string';
}

/**
 * Checks the credentials of a mount.
 *
 * @throws {DefinitionError} which names the option, and no secret
 */
export function checkApiAuth(mount: string, auth: unknown): asserts auth is ApiAuth | undefined {
  const where = `server.mount("${mount}"): auth`;
  if (auth === undefined || auth === false || typeof auth === 'function') return;
  if (!isObject(auth))
    throw new DefinitionError(
      `${where}: expected credentials by security scheme, a function, { header, token } or false, got ${typeof auth}`,
    );
  if (typeof auth.header === 'string') {
    if (typeof auth.token === 'string') return;
    throw new DefinitionError(`${where}: expected { header, token } with a text as token, got ${typeof auth.token}`);
  }
  for (const [scheme, credential] of Object.entries(auth)) {
    if (credential === 'ask' || isToken(credential) || isPassword(credential)) continue;
    if (!isObject(credential) || typeof credential.clientId !== 'string')
      throw new DefinitionError(
        `${where}.${scheme.slice(0, 100)}: expected { token }, { username, password }, { clientId, … } or "ask", got ${typeof credential}`,
      );
    const rows = option.group('OAuth options', ROWS, '.');
    option.check(`${where}.`, { [scheme]: credential }, { [scheme]: rows }, DefinitionError);
  }
}

/** A small authorization server for the example: it asks for no password. Never use it for anything else. */
import { createHash, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';

/** The people who can sign in, with the claims of their tokens. */
const PEOPLE: Readonly<Record<string, object>> = { ada: {}, grace: { staff: true } };
const SCOPES = ['orders:read', 'orders:refund', 'orders:refund:large'];
/** Seconds of a token, and of a code. */
const TOKEN_S = 600;
const CODE_S = 60;
const MAX_CODES = 100;
const MAX_BODY = 10_000;
/** An idle connection would keep the process from ending. */
const HEADERS = { connection: 'close', 'cache-control': 'no-store' };

/** A person's consent, until the client fetches the token for it. */
interface Consent {
  readonly person: string;
  readonly request: URLSearchParams;
  readonly until: number;
}

interface Answer {
  readonly status: number;
  readonly headers?: Record<string, string>;
  readonly body?: string;
}

/**
 * Starts the authorization server on a loopback port.
 *
 * @param resource the address of the MCP endpoint, for which it issues tokens
 * @param port 0: any free port
 * @returns its address
 */
export async function startIssuer(resource: string, port = 0): Promise<string> {
  const { privateKey, publicKey } = await generateKeyPair('ES256');
  const key = { ...(await exportJWK(publicKey)), kid: randomUUID(), alg: 'ES256', use: 'sig' };
  const consents = new Map<string, Consent>();

  const metadata = (): object => ({
    issuer,
    jwks_uri: `${issuer}/jwks`,
    registration_endpoint: `${issuer}/register`,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    scopes_supported: SCOPES,
    response_types_supported: ['code'],
    grant_types_supported: ['authorization_code', 'client_credentials'],
    code_challenge_methods_supported: ['S256'],
    token_endpoint_auth_methods_supported: ['none', 'client_secret_post'],
    authorization_response_iss_parameter_supported: true,
  });

  /** The id of a client contains its redirect addresses, so that registrations survive a restart (RFC 7591). */
  const register = (body: string): Answer => {
    const { redirect_uris: uris, ...client }: { redirect_uris?: unknown } = JSON.parse(body);
    if (!Array.isArray(uris) || uris.length === 0 || !uris.every((uri) => typeof uri === 'string' && URL.canParse(uri)))
      return json(400, { error: 'invalid_redirect_uri' });
    const id = Buffer.from(JSON.stringify(uris)).toString('base64url');
    return json(201, { ...client, client_id: id, redirect_uris: uris, token_endpoint_auth_method: 'none' });
  };

  /** The fault of a request for consent, which is shown to the person, because its redirect address cannot be trusted. */
  const faultOf = (request: URLSearchParams): string | undefined => {
    if (!redirectsOf(request.get('client_id')).includes(request.get('redirect_uri') ?? '')) return 'unknown client';
    if (request.get('response_type') !== 'code') return 'expected response_type=code';
    if (request.get('code_challenge_method') !== 'S256') return 'expected code_challenge_method=S256';
    return request.get('resource') === resource ? undefined : `expected resource=${resource}`;
  };

  const consentPage = (request: URLSearchParams): Answer => {
    const fault = faultOf(request);
    if (fault !== undefined) return { status: 400, body: fault };
    const hidden = `<input type="hidden" name="request" value="${escaped(request.toString())}">`;
    const buttons = Object.keys(PEOPLE).map(
      (name) => `<button name="person" value="${name}">Allow as ${name}</button>`,
    );
    const form = `<form method="post" action="/authorize">${hidden}${buttons.join(' ')}</form>`;
    const body = `<!doctype html><title>Sign in</title><p>A client asks for: ${escaped(grantedOf(request))}</p>${form}`;
    // No other page may show this one in a frame, and hide what the buttons do.
    const headers = { 'content-type': 'text/html', 'content-security-policy': "frame-ancestors 'none'" };
    return { status: 200, headers, body };
  };

  const consent = (form: URLSearchParams): Answer => {
    const request = new URLSearchParams(form.get('request') ?? '');
    const person = form.get('person') ?? '';
    const fault = faultOf(request) ?? (Object.hasOwn(PEOPLE, person) ? undefined : 'unknown person');
    if (fault !== undefined) return { status: 400, body: fault };
    const code = randomUUID();
    const [oldest] = consents.keys();
    if (consents.size >= MAX_CODES && oldest !== undefined) consents.delete(oldest);
    consents.set(code, { person, request, until: Date.now() + CODE_S * 1_000 });
    const back = new URL(request.get('redirect_uri') ?? '');
    for (const [name, value] of Object.entries({ code, state: request.get('state'), iss: issuer }))
      if (value !== null) back.searchParams.set(name, value);
    return { status: 303, headers: { location: back.href } };
  };

  const token = async (form: URLSearchParams): Promise<Answer> => {
    const grant = form.get('grant_type');
    if (grant === 'authorization_code') {
      const code = form.get('code') ?? '';
      const given = consents.get(code);
      consents.delete(code);
      const challenge = createHash('sha256')
        .update(form.get('code_verifier') ?? '')
        .digest('base64url');
      const equal = (name: string): boolean => given?.request.get(name) === form.get(name);
      if (!given || given.until < Date.now() || !equal('client_id') || !equal('redirect_uri') || !equal('resource'))
        return json(400, { error: 'invalid_grant' });
      if (given.request.get('code_challenge') !== challenge) return json(400, { error: 'invalid_grant' });
      return issue(given.person, form.get('client_id') ?? '', grantedOf(given.request));
    }
    // A person's name as the client, for tokens without a browser.
    const person = form.get('client_id') ?? '';
    if (grant === 'client_credentials' && Object.hasOwn(PEOPLE, person) && form.get('client_secret') === 'example')
      return issue(person, 'example', grantedOf(form));
    return json(400, { error: grant === 'client_credentials' ? 'invalid_client' : 'unsupported_grant_type' });
  };

  const issue = async (person: string, client: string, scope: string): Promise<Answer> => {
    const access = new SignJWT({ ...PEOPLE[person], client_id: client, scope, jti: randomUUID() })
      .setProtectedHeader({ alg: key.alg, kid: key.kid, typ: 'at+jwt' })
      .setIssuer(issuer)
      .setAudience(resource)
      .setSubject(person)
      .setIssuedAt()
      .setExpirationTime(`${TOKEN_S} s`);
    const access_token = await access.sign(privateKey);
    return json(200, { access_token, token_type: 'Bearer', expires_in: TOKEN_S, scope });
  };

  const answer = async (request: IncomingMessage): Promise<Answer> => {
    const { pathname, searchParams } = new URL(request.url ?? '/', issuer);
    switch (`${request.method} ${pathname}`) {
      case 'GET /.well-known/oauth-authorization-server':
        return json(200, metadata());
      case 'GET /jwks':
        return json(200, { keys: [key] });
      case 'GET /authorize':
        return consentPage(searchParams);
      case 'POST /authorize':
        return consent(new URLSearchParams(await bodyOf(request)));
      case 'POST /register':
        return register(await bodyOf(request));
      case 'POST /token':
        return token(new URLSearchParams(await bodyOf(request)));
      default:
        return { status: 404 };
    }
  };

  const listener = createServer((request, response) => {
    answer(request)
      .catch((): Answer => json(400, { error: 'invalid_request' }))
      .then(({ status, headers, body }) => response.writeHead(status, { ...HEADERS, ...headers }).end(body));
  });
  await once(listener.listen(port, '127.0.0.1'), 'listening');
  // The MCP server decides when the process ends.
  listener.unref();
  const address = listener.address();
  const issuer = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
  return issuer;
}

/** The requested scopes that exist. */
function grantedOf(request: URLSearchParams): string {
  const scopes = (request.get('scope') ?? 'orders:read').split(' ');
  return scopes.filter((scope) => SCOPES.includes(scope)).join(' ');
}

function redirectsOf(client: string | null): readonly unknown[] {
  try {
    const uris: unknown = JSON.parse(Buffer.from(client ?? '', 'base64url').toString());
    return Array.isArray(uris) ? uris : [];
  } catch {
    return [];
  }
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const part of request.setEncoding('utf8')) {
    text += part;
    if (text.length > MAX_BODY) throw new Error('the body is too long');
  }
  return text;
}

function json(status: number, body: object): Answer {
  return { status, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

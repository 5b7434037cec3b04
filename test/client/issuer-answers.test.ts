/** Authorization servers as the world has them: hostile, broken, and with answers of their own kind. */
import { generateKeyPairSync } from 'node:crypto';
import { connect, type OAuthOptions, oauth, type TokenStore } from 'troupe/client';
import * as assert from 'uvu/assert';
import { memoryTokens } from '../../src/client/oauth/token-store.ts';
import { systemClock } from '../../src/core/kernel/clock.ts';
import { guardedFetch } from '../../src/features/oauth/issuers/guarded-fetch.ts';
import { suite } from '../harness/door.ts';
import { jsonResponse, type RawRequest, type RawServer, rawServer, response, STATUSES } from '../harness/raw-server.ts';
import { SCALE } from '../harness/scale.ts';
import { clientError } from './fixture.ts';

const test = suite('answers of issuers');
const REDIRECT = 'http://127.0.0.1:7777/callback';
const METADATA = '/.well-known/oauth-authorization-server';
const OPENID = '/.well-known/openid-configuration';
const RESOURCE = '/.well-known/oauth-protected-resource';

type Route = (request: RawRequest, own: string) => Buffer | undefined;

/** Metadata of an authorization server at an address. */
const metadataOf = (own: string, more: object = {}): object => ({
  issuer: own,
  authorization_endpoint: `${own}/authorize`,
  token_endpoint: `${own}/token`,
  registration_endpoint: `${own}/register`,
  code_challenge_methods_supported: ['S256'],
  ...more,
});

/** An authorization server that works. `routes`: what it responds instead, by path. */
async function issuerServer(routes: Readonly<Record<string, Route>> = {}): Promise<RawServer> {
  const server = await rawServer((request) => {
    const [path = ''] = request.path.split('?');
    const routed = routes[path]?.(request, server.url);
    if (routed) return routed;
    switch (path) {
      case METADATA:
        return jsonResponse(metadataOf(server.url));
      case '/register':
        return jsonResponse({ client_id: 'registered', redirect_uris: [REDIRECT] }, 201);
      case '/token':
        return jsonResponse({ access_token: 'good', token_type: 'Bearer', expires_in: 3_600 });
      default:
        return response(404);
    }
  });
  return server;
}

/** An MCP server that accepts the token `good`. */
async function guarded(routes: Readonly<Record<string, Route>> = {}): Promise<RawServer> {
  const server = await rawServer((request) => {
    const [path = ''] = request.path.split('?');
    const routed = routes[path]?.(request, server.url);
    if (routed) return routed;
    if (path !== '/mcp') return response(404);
    if (request.headers.authorization !== 'Bearer good') return response(401, { 'www-authenticate': 'Bearer' });
    if (request.method !== 'POST') return response(405);
    const { id, method } = JSON.parse(request.body);
    if (id === undefined) return response(202);
    const result =
      method === 'initialize'
        ? { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'old', version: '1' } }
        : { content: [{ type: 'text', text: 'done' }] };
    return jsonResponse({ jsonrpc: '2.0', id, result });
  });
  return server;
}

/** A person who agrees at once. */
const authorize = async (url: URL): Promise<URL> => {
  const back = new URL(REDIRECT);
  back.searchParams.set('code', 'the-code');
  back.searchParams.set('state', url.searchParams.get('state') ?? '');
  return back;
};

async function callAt(
  server: RawServer,
  options: OAuthOptions = {},
  tokens: TokenStore = memoryTokens(),
): Promise<void> {
  const auth = oauth({ authorize, redirectUrl: REDIRECT, tokens, ...options });
  const client = await connect({ url: `${server.url}/mcp`, auth }, { eras: 'legacy', log: () => {} });
  try {
    assert.equal((await client.call('add')).content, [{ type: 'text', text: 'done' }]);
  } finally {
    await client.close();
  }
}

const names =
  (issuers: readonly string[]): Route =>
  (_, own) =>
    jsonResponse({ resource: `${own}/mcp`, authorization_servers: issuers });

// An issuer is what its own documents say

const KEY = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  .privateKey.export({ type: 'pkcs8', format: 'pem' })
  .toString();

const GRANTS: Readonly<Record<string, (honest: string) => OAuthOptions>> = {
  'a code and its verifier': () => ({}),
  'a client secret': (issuer) => ({ grant: 'client_credentials', clientId: 'me', clientSecret: 'secret', issuer }),
  'a client secret of the first issuer': () => ({
    grant: 'client_credentials',
    clientId: 'me',
    clientSecret: 'secret',
  }),
  'a signed assertion': (issuer) => ({ grant: 'client_credentials', clientId: 'me', privateKey: KEY, issuer }),
  'a workload token': (issuer) => ({ clientId: 'me', assertion: () => 'workload', issuer }),
};

// Quick: each grant once, and each way to claim an issuer.
for (const [grant, [what, optionsOf]] of Object.entries(GRANTS).entries())
  for (const [claimed, [how, routesOf]] of Object.entries<(honest: string) => Readonly<Record<string, Route>>>({
    'names no resource metadata': () => ({}),
    'names no authorization server': () => ({ [RESOURCE]: names([]) }),
    'names itself': () => ({
      [RESOURCE]: (_, own) => jsonResponse({ resource: `${own}/mcp`, authorization_servers: [own] }),
    }),
  }).entries())
    (grant % 3 === claimed ? test : test.full)(
      `S-78 a server that ${how}, and claims the issuer of another, gets no part of ${what}`,
      async () => {
        const honest = await issuerServer();
        const claim: Route = (_, own) =>
          jsonResponse(
            metadataOf(honest.url, { token_endpoint: `${own}/token`, registration_endpoint: `${own}/register` }),
          );
        const hostile = await guarded({ ...routesOf(honest.url), [METADATA]: claim, [OPENID]: claim });
        const tokens = memoryTokens();
        const options = optionsOf(honest.url);
        // The program has met the honest issuer before.
        const first = await guarded({ [RESOURCE]: names([honest.url]) });
        await callAt(first, options, tokens);
        await callAt(hostile, options, tokens).catch(() => {});
        assert.equal(
          hostile.requests.filter(({ path }) => path === '/token' || path === '/register').map(({ path }) => path),
          [],
        );
        const stored = await tokens.get(`client ${honest.url}`);
        if (stored !== undefined) assert.match(stored, '"registered"');
        for (const server of [honest, hostile, first]) await server.close();
      },
    );

test('S-78 the credentials of a client are not sent to another issuer than the first that it met', async () => {
  const [one, two] = [await issuerServer(), await issuerServer()];
  const tokens = memoryTokens();
  const options: OAuthOptions = { grant: 'client_credentials', clientId: 'me', clientSecret: 'secret' };
  const first = await guarded({ [RESOURCE]: names([one.url]) });
  const second = await guarded({ [RESOURCE]: names([two.url]) });
  await callAt(first, options, tokens);
  const error = await clientError(callAt(second, options, tokens));
  assert.match(error.message, `registered at ${one.url}`);
  assert.not(two.requests.some(({ path }) => path === '/token'));
  for (const server of [one, two, first, second]) await server.close();
});

// Statuses

test(`S-80 a fetch settles with each of ${STATUSES.length} statuses from 100 to 999, and with a response that never ends`, async () => {
  let status = 0;
  const server = await rawServer(() => {
    const headers = status === 101 ? { connection: 'upgrade', upgrade: 'websocket' } : { connection: 'close' };
    return response(status, headers, status === 204 || status === 304 ? '' : '{}');
  });
  const url = new URL(server.url);
  for (status of STATUSES) {
    const timeoutMs = status < 200 && status !== 101 ? 30 : 20_000;
    const http = guardedFetch({ clock: systemClock, trusted: [url], timeoutMs });
    const outcome = await http(`${server.url}/jwks`).then(
      (found) => found.status,
      (error: unknown) => {
        assert.instance(error, TypeError);
        return String(error);
      },
    );
    if (status >= 200 && status <= 599) assert.is(outcome, status);
    else assert.type(outcome, 'string');
  }
  await server.close();
  for (const bytes of ['', 'HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{']) {
    const silent = await rawServer(() => bytes);
    const http = guardedFetch({ clock: systemClock, trusted: [new URL(silent.url)], timeoutMs: 30 });
    const outcome = await http(silent.url).catch((error: Error) => error.message);
    assert.match(String(outcome), 'no complete response within 30 ms');
    await silent.close();
  }
});

for (const path of [RESOURCE, METADATA, '/register', '/token'])
  test(`S-79 the sign-in settles with any status at ${path}, and the next one succeeds`, async () => {
    for (const status of SCALE === 'quick' ? [101, 301, 500] : [101, 200, 204, 299, 301, 404, 500, 599, 600, 999]) {
      let odd = true;
      const route: Route = () =>
        odd
          ? response(status, status === 101 ? { connection: 'upgrade', upgrade: 'x' } : { connection: 'close' }, 'text')
          : undefined;
      const issuer = await issuerServer({ [path]: route });
      const server = await guarded({
        [RESOURCE]: (request, own) =>
          (path === RESOURCE ? route(request, own) : undefined) ?? names([issuer.url])(request, own),
      });
      await callAt(server).catch((error: Error) => assert.ok(error.message.length > 20));
      odd = false;
      await callAt(server);
      await server.close();
      await issuer.close();
    }
  });

// Places without a usable document

for (const [what, answer] of [
  ['a page with status 200', response(200, { 'content-type': 'text/html' }, '<h1>hello</h1>')],
  ['an error in JSON with status 200', jsonResponse({ code: 404, message: 'no such route' })],
  ['a list', jsonResponse([])],
  ['null', jsonResponse(null)],
  ['HTTP 500', response(500, {}, 'oops')],
  ['HTTP 403', response(403)],
  ['a redirect', response(302, { location: '/elsewhere' })],
  ['metadata of another issuer', jsonResponse({ issuer: 'https://other.example.com' })],
] as const)
  for (const place of ['the issuer', 'the resource'] as const)
    (place === 'the issuer' ? test : test.full)(`${what} at the first place of ${place} is skipped`, async () => {
      const good: Route = (_, own) => jsonResponse(metadataOf(own));
      const issuer = await issuerServer(place === 'the issuer' ? { [METADATA]: () => answer, [OPENID]: good } : {});
      const server = await guarded({
        [RESOURCE]: names([issuer.url]),
        ...(place === 'the resource' ? { [`${RESOURCE}/mcp`]: () => answer } : {}),
      });
      await callAt(server);
      await server.close();
      await issuer.close();
    });

const ODD_VALUES: readonly unknown[] = [null, 5, true, '', {}, [], [null, 5, {}], ['a', 5]];

test('S-79 a member of the metadata of any form ends a sign-in in words, or it succeeds', async () => {
  const members = [
    'authorization_endpoint',
    'token_endpoint',
    'registration_endpoint',
    'revocation_endpoint',
    'grant_types_supported',
    'code_challenge_methods_supported',
    'token_endpoint_auth_methods_supported',
    'scopes_supported',
    'dpop_signing_alg_values_supported',
    'authorization_response_iss_parameter_supported',
    'client_id_metadata_document_supported',
  ];
  let more: object = {};
  const issuer = await issuerServer({ [METADATA]: (_, own) => jsonResponse(metadataOf(own, more)) });
  const server = await guarded({ [RESOURCE]: names([issuer.url]) });
  for (const [at, member] of members.entries())
    for (const value of ODD_VALUES.filter((_, index) => SCALE !== 'quick' || (at + index) % 8 === 0)) {
      more = { [member]: value };
      const error = await callAt(server).then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
      if (error === undefined) continue;
      const message = String(error instanceof Error ? error.message : error);
      assert.not.match(
        message,
        /is not a function|not iterable|undefined|Cannot read|Invalid URL/,
        JSON.stringify(more),
      );
      assert.match(message, 'sign-in failed');
    }
  more = { code_challenge_methods_supported: 'plain S256', grant_types_supported: 'authorization_code refresh_token' };
  await callAt(server);
  await server.close();
  await issuer.close();
});

test('the error names what each place said', async () => {
  const issuer = await issuerServer({ [METADATA]: () => response(500), [OPENID]: () => jsonResponse(['x']) });
  const server = await guarded({ [RESOURCE]: names([issuer.url]) });
  const { message } = await clientError(callAt(server));
  assert.match(message, `${issuer.url}${METADATA}: HTTP 500`);
  assert.match(message, `${issuer.url}${OPENID}: no JSON object`);
  await server.close();
  await issuer.close();
});

// Answers of token endpoints

/** An ID token with a signature that nobody has made. */
function idToken(claims: object): string {
  return [{ alg: 'RS256' }, claims, 'x']
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.');
}

const FORM = { 'content-type': 'application/x-www-form-urlencoded' };

for (const [what, answer, expected] of [
  ['a form', response(200, FORM, 'access_token=good&token_type=bearer&scope='), undefined],
  ['no type of token', jsonResponse({ access_token: 'good' }), undefined],
  [
    'null members',
    jsonResponse({ access_token: 'good', token_type: 'Bearer', expires_in: null, refresh_token: null, scope: null }),
    undefined,
  ],
  [
    'an ID token of another issuer',
    jsonResponse({
      access_token: 'good',
      token_type: 'Bearer',
      id_token: idToken({ iss: 'https://other.example.com' }),
    }),
    undefined,
  ],
  ['an ID token that is none', jsonResponse({ access_token: 'good', token_type: 'Bearer', id_token: 'x' }), undefined],
  ['scopes as a list', jsonResponse({ access_token: 'good', token_type: 'Bearer', scope: ['a', 'b'] }), undefined],
  ['seconds as text', jsonResponse({ access_token: 'good', token_type: 'Bearer', expires_in: '3600' }), undefined],
  [
    'an error with status 200',
    jsonResponse({ error: 'unknown_application', error_description: 'removed' }),
    /unknown_application \(removed\)/,
  ],
  [
    'an error as a form with status 200',
    response(200, FORM, 'error=bad_code&error_description=too+late'),
    /bad_code \(too late\)/,
  ],
  [
    'a token with a line break',
    jsonResponse({ access_token: 'a\r\nx: y', token_type: 'Bearer' }),
    /no HTTP header can carry/,
  ],
  ['a token with an emoji', jsonResponse({ access_token: '😀', token_type: 'Bearer' }), /no HTTP header can carry/],
  ['a compressed answer that is none', response(200, { 'content-encoding': 'gzip' }, 'x'), /./],
] as const)
  test(`${expected && what.startsWith('a token') ? 'S-79 ' : ''}a token endpoint that answers with ${what} ${expected ? 'fails the sign-in in words' : 'is understood'}`, async () => {
    const issuer = await issuerServer({ '/token': () => answer });
    const server = await guarded({ [RESOURCE]: names([issuer.url]) });
    if (expected) assert.match((await clientError(callAt(server))).message, expected);
    else await callAt(server);
    await server.close();
    await issuer.close();
  });

for (const rejected of ['invalid_target', 'invalid_request'])
  test(`a refresh whose resource is rejected (${rejected}) is sent again without it, and no person signs in`, async () => {
    let expired = false;
    let signIns = 0;
    const resources: (string | null)[] = [];
    const issuer = await issuerServer({
      '/token': ({ body }) => {
        const params = new URLSearchParams(body);
        if (params.get('grant_type') === 'refresh_token') {
          resources.push(params.get('resource'));
          if (params.has('resource')) return jsonResponse({ error: rejected }, 400);
          expired = false;
        } else signIns += 1;
        return jsonResponse({ access_token: 'good', token_type: 'Bearer', refresh_token: 'again' });
      },
    });
    const server = await guarded({
      [RESOURCE]: names([issuer.url]),
      '/mcp': () => (expired ? response(401, { 'www-authenticate': 'Bearer' }) : undefined),
    });
    const tokens = memoryTokens();
    await callAt(server, {}, tokens);
    expired = true;
    await callAt(server, {}, tokens);
    assert.equal(resources, [`${server.url}/mcp`, null]);
    assert.is(signIns, 1);
    await server.close();
    await issuer.close();
  });

for (const [member, value] of [
  ['authorization_servers', 'ISSUER'],
  ['scopes_supported', 'a b'],
] as const)
  test(`${member} of a resource may be a text in place of a list`, async () => {
    const issuer = await issuerServer();
    const server = await guarded({
      [RESOURCE]: (_, own) =>
        jsonResponse({
          ...{ resource: `${own}/mcp`, authorization_servers: [issuer.url] },
          [member]: value.replace('ISSUER', issuer.url),
        }),
    });
    let asked: string | null = null;
    await callAt(server, {
      authorize(url) {
        asked = url.searchParams.get('scope');
        return authorize(url);
      },
    });
    assert.is(asked, member === 'scopes_supported' ? 'a b' : null);
    await server.close();
    await issuer.close();
  });

test('a damaged row of the store of tokens counts as missing', async () => {
  const issuer = await issuerServer();
  const server = await guarded({ [RESOURCE]: names([issuer.url]) });
  const tokens = memoryTokens();
  await tokens.replace(`${server.url}/mcp`, undefined, '{"issuer');
  await tokens.replace(`client ${issuer.url}`, undefined, 'null');
  await callAt(server, {}, tokens);
  await server.close();
  await issuer.close();
});

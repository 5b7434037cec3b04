/** Bad tokens: each gets 401 in every revision and by every method, no handler runs, and nothing of it is logged. */
import { request as httpRequest } from 'node:http';
import { exportJWK, exportSPKI, generateKeyPair, importJWK, type JWK, SignJWT } from 'jose';
import * as assert from 'uvu/assert';
import { readChallenges } from '../../../src/client/oauth/challenges.ts';
import { LEGACY_REVISIONS } from '../../../src/core/protocol/revisions.ts';
import { http } from '../../../src/index.ts';
import type { FakeIssuer } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { SCALE } from '../../harness/scale.ts';
import { CALL, type GuardedServer, guardedServer, METADATA, MODERN, RESOURCE } from './guarded-server.ts';

const test = suite('bad tokens');

/** The Authorization headers and the query of a request. */
interface Credentials {
  readonly authorization: readonly string[];
  readonly query?: string;
}

const bearer = (token: string): Credentials => ({ authorization: [`Bearer ${token}`] });
const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');

async function publicKey({ issuer }: FakeIssuer): Promise<JWK> {
  const { keys } = (await (await fetch(`${issuer}/jwks`)).json()) as { keys: JWK[] };
  const [key] = keys;
  if (!key) throw new Error('expected a key, got none');
  return key;
}

/** Each kind of bad credentials, made again for each round. All but one property are those of a good token. */
async function badTokens({ issuer, clock }: GuardedServer): Promise<Readonly<Record<string, Credentials>>> {
  const good = { audience: RESOURCE, subject: 'mallory' } as const;
  const token = async (more: Partial<Parameters<FakeIssuer['token']>[0]>): Promise<Credentials> =>
    bearer(await issuer.token({ ...good, ...more }));
  const valid = await issuer.token(good);
  const [header = '', payload = '', signature = ''] = valid.split('.');
  const known = await publicKey(issuer);
  const { kid = '' } = known;
  const own = await generateKeyPair('ES256', { extractable: true });
  const claims = { iss: issuer.issuer, aud: RESOURCE, sub: 'mallory', client_id: 'x', exp: clock.date() / 1_000 + 600 };
  const forged = (given: object, key: Parameters<SignJWT['sign']>[0]): Promise<string> =>
    new SignJWT(claims).setProtectedHeader({ alg: 'ES256', kid, typ: 'at+jwt', ...given }).sign(key);
  const pem = await exportSPKI((await importJWK(known, 'ES256')) as Parameters<typeof exportSPKI>[0]);
  const revoked = issuer.opaque(good);
  issuer.revoke(revoked);
  return {
    'another audience': await token({ audience: 'https://other.example.com/mcp' }),
    'several other audiences': await token({ claims: { aud: ['https://a.example.com', 'https://b.example.com'] } }),
    'no audience': await token({ claims: { aud: undefined } }),
    'an empty array of audiences': await token({ claims: { aud: [] } }),
    'a foreign audience in addition': await token({ claims: { aud: [RESOURCE, 'https://other.example.com/mcp'] } }),
    'an audience with a slash': await token({ audience: `${RESOURCE}/` }),
    'an audience in another case': await token({ audience: RESOURCE.toUpperCase() }),
    'the beginning of the audience': await token({ audience: 'https://mcp.example.com' }),
    'another issuer': await token({ claims: { iss: 'https://login.example.org' } }),
    'another tenant of the issuer': await token({ claims: { iss: `${issuer.issuer}/tenant2` } }),
    'an issuer with a slash': await token({ claims: { iss: `${issuer.issuer}/` } }),
    'no signature': bearer(`${encode({ alg: 'none', typ: 'at+jwt' })}.${payload}.`),
    'no signature, and the signature of another': bearer(`${encode({ alg: 'none' })}.${payload}.${signature}`),
    'a HMAC with the public key': bearer(await forged({ alg: 'HS256' }, new TextEncoder().encode(pem))),
    'an unknown key': bearer(await forged({ kid: 'nobody' }, own.privateKey)),
    'a forged signature': bearer(await forged({}, own.privateKey)),
    'a key of its own in the header': bearer(await forged({ jwk: await exportJWK(own.publicKey) }, own.privateKey)),
    'other claims below the signature': bearer(`${header}.${encode({ ...claims, sub: 'ada' })}.${signature}`),
    'an algorithm that is not accepted': bearer(`${encode({ alg: 'ES512', kid })}.${payload}.${signature}`),
    'a critical extension': await token({ header: { crit: ['x'], x: 1 } }),
    'an end in the past': await token({ expiresIn: -61 }),
    'no end': await token({ claims: { exp: undefined } }),
    'an end that is no number': await token({ claims: { exp: '9999999999' } }),
    'an end in milliseconds': await token({ claims: { exp: clock.date() + 600_000 } }),
    'an ID token with roles': await token({
      header: { typ: 'JWT' },
      claims: { client_id: undefined, scope: undefined, roles: ['admin'] },
    }),
    'a beginning in the future': await token({ claims: { nbf: clock.date() / 1_000 + 61 } }),
    'an ID token': await token({ header: { typ: 'JWT' }, claims: { nonce: 'n' } }),
    'a token without scope and client': await token({
      header: { typ: 'JWT' },
      claims: { client_id: undefined, scope: undefined },
    }),
    'a refresh token': await token({ header: { typ: 'JWT' }, claims: { typ: 'Refresh' } }),
    'another type': await token({ header: { typ: 'logout+jwt' } }),
    'a token that is bound to a key': await token({ claims: { cnf: { jkt: 'x' } } }),
    'a token that is bound to a certificate': await token({ claims: { cnf: { 'x5t#S256': 'x' } } }),
    'a token without a subject and a client': await token({ claims: { sub: undefined, client_id: undefined } }),
    'a revoked token': bearer(revoked),
    'a token that was cut': bearer(valid.slice(0, -10)),
    '9 KiB': bearer(`${valid}${'A'.repeat(9_216)}`),
    'two headers': { authorization: [`Bearer ${valid}`, `Bearer ${valid}`] },
    'a good header, and a bad one': { authorization: [`Bearer ${valid}`, 'Bearer x'] },
    'a token in the address': { authorization: [], query: `?access_token=${valid}` },
    'a token in the address and in the header': { authorization: [`Bearer ${valid}`], query: `?access_token=${valid}` },
    'another scheme': { authorization: [`Basic ${Buffer.from(`ada:${valid}`).toString('base64')}`] },
  };
}

interface Answer {
  readonly status: number;
  readonly challenge: string;
  readonly body: string;
}

/** Sends headers as they are given: two of a name as two. */
function send(
  url: string,
  { method, headers, body }: { readonly method: string; readonly headers: readonly string[]; readonly body?: object },
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const { host } = new URL(url);
    const sent = httpRequest(url, { method, headers: ['host', host, ...headers] }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part: string) => {
        text += part;
      });
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          challenge: response.headers['www-authenticate'] ?? '',
          body: text,
        }),
      );
    });
    sent.on('error', reject);
    sent.end(body && JSON.stringify(body));
  });
}

const BOTH = ['accept', 'application/json, text/event-stream', 'content-type', 'application/json'];

test('G-01 each bad token gets 401 with a challenge by every method of every revision; no handler runs, and nothing of it is logged', async () => {
  const guarded = await guardedServer(({ issuer, introspection }) => ({
    issuer: { issuer, introspection },
    scopes: ['orders:read'],
  }));
  const transport = http({ port: 0 });
  await guarded.server.listen(transport);
  const revisions: readonly (string | undefined)[] = [undefined, ...LEGACY_REVISIONS.slice(-2)];
  for (const [round, revision] of revisions.entries()) {
    const bad = await badTokens(guarded);
    const initialize = {
      ...{ jsonrpc: '2.0', id: 1, method: 'initialize' },
      params: { protocolVersion: revision, capabilities: {}, clientInfo: { name: 'a', version: '1' } },
    };
    const version = revision === undefined ? Object.entries(MODERN).flat() : ['mcp-protocol-version', revision];
    const requests = [
      { method: 'POST', headers: [...BOTH, ...version], body: revision === undefined ? CALL : initialize },
      { method: 'GET', headers: [...BOTH, ...version] },
      { method: 'DELETE', headers: [...BOTH, ...version, 'mcp-session-id', 'any'] },
      { method: 'GET', headers: ['accept', 'text/event-stream'], path: '/sse' },
    ];
    for (const [at, [what, { authorization, query = '' }]] of Object.entries(bad).entries())
      for (const [which, { path = '/mcp', ...request }] of requests.entries()) {
        // Quick: each token by another method in each revision, and each method with a fourth of the tokens.
        if (SCALE === 'quick' && which !== (at + round) % requests.length) continue;
        const headers = [...request.headers, ...authorization.flatMap((value) => ['authorization', value])];
        const answer = await send(`${new URL(path, transport.url).href}${query}`, { ...request, headers });
        const label = `${what}, ${request.method} ${path} of ${revision ?? 'the latest'}: ${answer.body}`;
        assert.is(answer.status, 401, label);
        const [challenge] = readChallenges(answer.challenge);
        assert.is(challenge?.scheme, 'bearer', label);
        assert.is(challenge?.params.resource_metadata, METADATA, label);
        assert.is(challenge?.params.scope, 'orders:read', label);
        assert.is(challenge?.params.error, what === 'another scheme' ? undefined : 'invalid_token', label);
        for (const secret of [...authorization, query].flatMap((text) => text.split(/[ =.]/)))
          if (secret.length > 20)
            assert.not.ok(`${guarded.logged}${answer.body}${answer.challenge}`.includes(secret), label);
      }
    // Later, each of them is verified again.
    await guarded.clock.advance(6_000);
  }
  assert.equal(guarded.calls, []);
  assert.equal(guarded.logged, []);
  assert.is(
    (await guarded.bearer(await guarded.issuer.token({ audience: RESOURCE, scopes: ['orders:read'] }))).status,
    200,
  );
  await guarded.close();
});

test('G-01 a malformed token gets 400, and the limits of each time are exact', async () => {
  const { issuer, clock, call, bearer: sent, close } = await guardedServer();
  for (const authorization of ['Bearer', 'Bearer ', 'Bearer a b', 'Bearer "a"', 'bearer é']) {
    const response = await call({ authorization });
    assert.is(response.status, 400, authorization);
    assert.match(response.headers.get('www-authenticate') ?? '', 'error="invalid_request"');
  }
  const at = (more: object): Promise<string> => issuer.token({ audience: RESOURCE, claims: { ...more } });
  const now = clock.date() / 1_000;
  assert.is((await sent(await at({ exp: now - 59 }))).status, 200);
  assert.is((await sent(await at({ exp: now - 60 }))).status, 401);
  assert.is((await sent(await at({ nbf: now + 60 }))).status, 200);
  assert.is((await sent(await at({ nbf: now + 61 }))).status, 401);
  assert.is((await call({ authorization: `bEARER ${await at({})}` })).status, 200);
  await close();
});

test('G-01 a remembered token ends at its end, and a rejected one is verified again after 5 s', async () => {
  const { issuer, clock, bearer: sent, close } = await guardedServer();
  const token = await issuer.token({ audience: RESOURCE, expiresIn: 30 });
  assert.is((await sent(token)).status, 200);
  await clock.advance(89_999);
  assert.is((await sent(token)).status, 200);
  await clock.advance(1);
  assert.is((await sent(token)).status, 401);
  const early = await issuer.token({ audience: RESOURCE, claims: { nbf: clock.date() / 1_000 + 63 } });
  assert.is((await sent(early)).status, 401);
  await clock.advance(4_999);
  assert.is((await sent(early)).status, 401);
  await clock.advance(1);
  assert.is((await sent(early)).status, 200);
  await close();
});

test('G-01 tokens that the options allow are accepted: other audiences, another audience, an ID of the issuer, the userinfo endpoint', async () => {
  const guarded = await guardedServer(({ issuer }) => ({
    issuer: { issuer, audience: 'api://mcp' },
    otherAudiences: ['https://graph.example.com'],
  }));
  const { issuer } = guarded;
  const status = async (...aud: readonly string[]): Promise<number> =>
    (await guarded.bearer(await issuer.token({ audience: '', claims: { aud } }))).status;
  assert.is(await status('api://mcp'), 200);
  assert.is(await status('api://mcp', 'https://graph.example.com', `${issuer.issuer}/userinfo`), 200);
  assert.is(await status('api://mcp', 'https://evil.example.com'), 401);
  assert.is(await status(RESOURCE), 401);
  assert.is(await status('https://graph.example.com'), 401);
  await guarded.close();
});

test('G-01 scopes are read from scope and scp, as text and as an array', async () => {
  const { issuer, bearer: sent, close } = await guardedServer(() => ({ scopes: ['a', 'b'] }));
  for (const claims of [
    { scope: 'a b' },
    { scope: ['a', 'b'] },
    { scp: 'a b' },
    { scp: ['b', 'a'] },
    { scope: 'a', scp: ['b'] },
  ])
    assert.is((await sent(await issuer.token({ audience: RESOURCE, claims }))).status, 200, JSON.stringify(claims));
  assert.is((await sent(await issuer.token({ audience: RESOURCE, claims: { scope: 'a,b' } }))).status, 403);
  await close();
});

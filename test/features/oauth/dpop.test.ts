/** Proofs of possession: a bound token is accepted with a proof for this request, once. */
import { createHash, randomUUID } from 'node:crypto';
import { type CryptoKey, calculateJwkThumbprint, exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose';
import * as assert from 'uvu/assert';
import { readChallenges } from '../../../src/client/oauth/challenges.ts';
import { suite } from '../../harness/door.ts';
import { type GuardedServer, guardedServer, METADATA, RESOURCE } from './guarded-server.ts';

const test = suite('proofs of possession');

interface Prover {
  readonly jwk: JWK;
  readonly privateKey: CryptoKey;
  readonly thumbprint: string;
}

async function prover(): Promise<Prover> {
  const { privateKey, publicKey } = await generateKeyPair('ES256', { extractable: true });
  const jwk = await exportJWK(publicKey);
  return { jwk, privateKey, thumbprint: await calculateJwkThumbprint(jwk) };
}

/** A valid proof of a POST, but for what `claims` and `header` replace. */
function proof(
  { clock }: GuardedServer,
  { jwk, privateKey }: Prover,
  token: string,
  claims: object = {},
  header: object = {},
): Promise<string> {
  const ath = createHash('sha256').update(token).digest('base64url');
  const iat = clock.date() / 1_000;
  return new SignJWT({ htm: 'POST', htu: RESOURCE, iat, jti: randomUUID(), ath, ...claims })
    .setProtectedHeader({ alg: 'ES256', typ: 'dpop+jwt', jwk, ...header })
    .sign(privateKey);
}

const bound = ({ issuer }: GuardedServer, { thumbprint }: Prover): Promise<string> =>
  issuer.token({ audience: RESOURCE, claims: { cnf: { jkt: thumbprint } } });

test('G-08 a bound token with a valid proof is served; a second request needs a second proof', async () => {
  const guarded = await guardedServer();
  const key = await prover();
  const token = await bound(guarded, key);
  const dpop = await proof(guarded, key, token);
  assert.is((await guarded.call({ authorization: `DPoP ${token}`, dpop })).status, 200);
  assert.is((await guarded.call({ authorization: `DPoP ${token}`, dpop })).status, 401);
  assert.is(
    (await guarded.call({ authorization: `dpop ${token}`, dpop: await proof(guarded, key, token) })).status,
    200,
  );
  await guarded.close();
});

test('G-08 each check of RFC 9449 section 4.3, broken alone, gives 401 invalid_dpop_proof', async () => {
  const guarded = await guardedServer();
  const [key, other] = [await prover(), await prover()];
  const token = await bound(guarded, key);
  const now = guarded.clock.date() / 1_000;
  const { d, ...rest } = await exportJWK(key.privateKey);
  const valid = await proof(guarded, key, token);
  const [head = '', payload = '', signature = ''] = valid.split('.');
  const hmac = await new SignJWT({})
    .setProtectedHeader({ alg: 'HS256' })
    .sign(new TextEncoder().encode('x'.repeat(32)));
  const broken: Readonly<Record<string, string | undefined>> = {
    'no proof': undefined,
    'two proofs': `${valid}, ${await proof(guarded, key, token)}`,
    'no JWT': 'proof',
    'no signature': `${Buffer.from('{"alg":"none","typ":"dpop+jwt"}').toString('base64url')}.${payload}.`,
    'a HMAC': hmac,
    'another type': await proof(guarded, key, token, {}, { typ: 'JWT' }),
    'no type': await proof(guarded, key, token, {}, { typ: undefined }),
    'no key': await proof(guarded, key, token, {}, { jwk: undefined }),
    'a private key': await proof(guarded, key, token, {}, { jwk: { ...rest, d } }),
    'a key that did not sign': `${head}.${payload}.${(await proof(guarded, other, token)).split('.')[2]}`,
    'a changed signature': `${head}.${payload}.${signature.slice(4)}AAAA`,
    'another method': await proof(guarded, key, token, { htm: 'GET' }),
    'no method': await proof(guarded, key, token, { htm: undefined }),
    'another address': await proof(guarded, key, token, { htu: 'https://mcp.example.org/mcp' }),
    'another path': await proof(guarded, key, token, { htu: `${RESOURCE}/x` }),
    'no address': await proof(guarded, key, token, { htu: undefined }),
    '6 min ago': await proof(guarded, key, token, { iat: now - 360 }),
    'in 6 min': await proof(guarded, key, token, { iat: now + 360 }),
    'no time': await proof(guarded, key, token, { iat: undefined }),
    'no id': await proof(guarded, key, token, { jti: undefined }),
    'a long id': await proof(guarded, key, token, { jti: 'x'.repeat(257) }),
    'the hash of another token': await proof(guarded, key, `${token}x`),
    'no hash': await proof(guarded, key, token, { ath: undefined }),
    'a key that the token is not bound to': await proof(guarded, other, token),
  };
  for (const [what, dpop] of Object.entries(broken)) {
    const response = await guarded.call({ authorization: `DPoP ${token}`, ...(dpop === undefined ? {} : { dpop }) });
    assert.is(response.status, 401, what);
    const [bearer, challenge] = readChallenges(response.headers.get('www-authenticate') ?? '');
    assert.is(bearer?.params.resource_metadata, METADATA, what);
    assert.is(challenge?.scheme, 'dpop', what);
    assert.is(challenge?.params.error, 'invalid_dpop_proof', what);
  }
  assert.equal(guarded.calls, []);
  assert.is((await guarded.call({ authorization: `DPoP ${token}`, dpop: valid })).status, 200);
  await guarded.close();
});

test('G-08 the address of a proof is compared without query and fragment, and its time with 5 min of tolerance', async () => {
  const guarded = await guardedServer();
  const key = await prover();
  const token = await bound(guarded, key);
  const now = guarded.clock.date() / 1_000;
  for (const claims of [
    { htu: `${RESOURCE}?a=b#c` },
    { htu: 'HTTPS://MCP.example.com:443/mcp' },
    { iat: now - 300 },
    { iat: now + 300 },
  ]) {
    const dpop = await proof(guarded, key, token, claims);
    assert.is((await guarded.call({ authorization: `DPoP ${token}`, dpop })).status, 200, JSON.stringify(claims));
    assert.is((await guarded.call({ authorization: `DPoP ${token}`, dpop })).status, 401);
  }
  // A proof from the future is still remembered when it is five minutes old.
  const dpop = await proof(guarded, key, token, { iat: now + 300 });
  assert.is((await guarded.call({ authorization: `DPoP ${token}`, dpop })).status, 200);
  await guarded.clock.advance(599_000);
  const later = await bound(guarded, key);
  const again = await guarded.call({ authorization: `DPoP ${later}`, dpop: await proof(guarded, key, later) });
  assert.is(again.status, 200);
  assert.is((await guarded.call({ authorization: `DPoP ${token}`, dpop })).status, 401);
  await guarded.close();
});

test('G-08 a bound token as Bearer, and a token that is not bound as DPoP, are rejected', async () => {
  const guarded = await guardedServer();
  const key = await prover();
  const token = await bound(guarded, key);
  const free = await guarded.issuer.token({ audience: RESOURCE });
  for (const [scheme, given] of [
    ['Bearer', token],
    ['DPoP', free],
  ] as const) {
    const dpop = await proof(guarded, key, given);
    const response = await guarded.call({ authorization: `${scheme} ${given}`, dpop });
    assert.is(response.status, 401, scheme);
    assert.is(readChallenges(response.headers.get('www-authenticate') ?? '')[0]?.params.error, 'invalid_token');
  }
  assert.is((await guarded.bearer(free)).status, 200);
  await guarded.close();
});

test('G-08 dpop: required accepts only bound tokens and publishes that; off accepts none', async () => {
  const required = await guardedServer(() => ({ dpop: 'required' }));
  const key = await prover();
  assert.is((await required.bearer(await required.issuer.token({ audience: RESOURCE }))).status, 401);
  const [challenge, second] = readChallenges((await required.call()).headers.get('www-authenticate') ?? '');
  assert.is(challenge?.scheme, 'dpop');
  assert.is(challenge?.params.resource_metadata, METADATA);
  assert.is(second, undefined);
  const token = await bound(required, key);
  const dpop = await proof(required, key, token);
  assert.is((await required.call({ authorization: `DPoP ${token}`, dpop })).status, 200);
  const metadata = await required.server.fetch(new Request('http://localhost/.well-known/oauth-protected-resource'));
  assert.match(await metadata.text(), '"dpop_bound_access_tokens_required":true');
  await required.close();
  const off = await guardedServer(() => ({ dpop: 'off' }));
  const other = await bound(off, key);
  for (const scheme of ['Bearer', 'DPoP']) {
    const response = await off.call({ authorization: `${scheme} ${other}`, dpop: await proof(off, key, other) });
    assert.is(response.status, 401);
    assert.equal(
      readChallenges(response.headers.get('www-authenticate') ?? '').map(({ scheme: name }) => name),
      ['bearer'],
    );
  }
  await off.close();
});

/** Tokens and answers of issuers that are odd: ill-formed names, marks of other tokens, times to come, statuses of no kind. */
import * as assert from 'uvu/assert';
import { suite } from '../../harness/door.ts';
import { jsonResponse, rawServer, response } from '../../harness/raw-server.ts';
import { whilePassing } from '../../harness/wait.ts';
import { guardedServer, RESOURCE } from './guarded-server.ts';

const test = suite('odd tokens');

for (const [what, claims] of [
  ['sub', { sub: 'ada \ud800' }],
  ['client_id', { client_id: '\udfff' }],
  ['azp', { azp: 'x\ud83d', client_id: undefined }],
  ['scope', { scope: 'a \ud800' }],
  ['another claim', { groups: ['\ud800'] }],
  ['the name of a claim', { '\ud800': 1 }],
] as const)
  test(`S-85 a token with half of a surrogate pair in ${what} gets 401, and counts as a failure`, async () => {
    const guarded = await guardedServer();
    const token = await guarded.issuer.token({ audience: RESOURCE, claims });
    const statuses = new Set<number>();
    for (let round = 0; round < 3; round += 1) statuses.add((await guarded.bearer(token)).status);
    assert.equal([...statuses], [401]);
    assert.equal(guarded.calls, []);
    assert.not(
      guarded.logged.some((line) => /incident|URI/.test(line)),
      guarded.logged.join('\n'),
    );
    await guarded.close();
  });

test('S-85 a forged token with an ill-formed name costs no signature, no fetch and no line of the log', async () => {
  const guarded = await guardedServer();
  const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const head = encode({ alg: 'ES256', kid: 'k', typ: 'at+jwt' });
  const claims = { iss: guarded.issuer.issuer, aud: RESOURCE, sub: '\ud800', exp: guarded.clock.date() / 1_000 + 600 };
  for (let serial = 0; serial < 20; serial += 1)
    assert.is((await guarded.bearer(`${head}.${encode({ ...claims, serial })}.c2ln`)).status, 401);
  assert.equal(guarded.logged, []);
  await guarded.close();
});

/** Two of these would otherwise be one principal: that of the client, whoever the user is. */
const NAMELESS = [
  ['sub', 5],
  ['sub', { id: 5 }],
  ['sub', ['ada']],
  ['sub', true],
  ['sub', ''],
  ['client_id', 5],
  ['client_id', {}],
  ['azp', ['a']],
] as const;

for (const [claim, value] of NAMELESS)
  test(`S-85 a token whose ${claim} is ${JSON.stringify(value)} gets 401, signed or introspected, also with perUser`, async () => {
    const claims = { ...(claim === 'azp' ? { client_id: undefined } : {}), [claim]: value };
    for (const perUser of [false, true]) {
      const guarded = await guardedServer(() => ({ perUser }));
      const signed = await guarded.bearer(await guarded.issuer.token({ audience: RESOURCE, claims }));
      assert.is(signed.status, 401);
      assert.match(String(signed.headers.get('www-authenticate')), new RegExp(`${claim} is no text`));
      assert.equal(guarded.calls, []);
      await guarded.close();
    }
    assert.is((await introspected({ client_id: 'c', ...claims })).status, 401);
  });

test('S-85 a token without a subject, also with null, belongs to its client', async () => {
  const guarded = await guardedServer();
  for (const sub of [undefined, null])
    assert.is((await guarded.bearer(await guarded.issuer.token({ audience: RESOURCE, claims: { sub } }))).status, 200);
  await guarded.close();
});

/** A server whose issuer answers introspection with these members. */
async function introspected(answer: object): Promise<{ status: number; text: string }> {
  const issuer = await rawServer(({ path }) =>
    path === '/introspect'
      ? jsonResponse({ active: true, aud: RESOURCE, sub: 'ada', ...answer })
      : jsonResponse({ issuer: issuer.url, introspection_endpoint: `${issuer.url}/introspect` }),
  );
  const guarded = await guardedServer(() => ({
    issuer: { issuer: issuer.url, introspection: { clientId: 'a', clientSecret: 'b' } },
  }));
  const answered = await guarded.bearer('opaque');
  const result = { status: answered.status, text: await answered.text() };
  await guarded.close();
  await issuer.close();
  return result;
}

for (const [mark, status] of [
  [{ token_type: 'Bearer' }, 200],
  [{ token_type: 'access_token' }, 200],
  [{ typ: 'Bearer', token_use: 'access' }, 200],
  [{ typ: 'Refresh' }, 401],
  [{ typ: 'Offline' }, 401],
  [{ typ: 'ID' }, 401],
  [{ token_use: 'id' }, 401],
  [{ token_use: 'refresh' }, 401],
  [{ token_type: 'refresh_token' }, 401],
  [{ token_type: 'id_token' }, 401],
  [{ token_type: 'DPoP' }, 401],
  [{ token_type: 'Bearer', iat: 9_999_999_999 }, 401],
] as const)
  test(`S-89 an introspected token with ${JSON.stringify(mark)} gets ${status}`, async () => {
    const { status: got, text } = await introspected(mark);
    assert.is(got, status, text);
  });

test('S-89 a signed token that is marked as a refresh token, or was issued in the future, gets 401', async () => {
  const guarded = await guardedServer();
  const now = guarded.clock.date() / 1_000;
  for (const [claims, status] of [
    [{ typ: 'Refresh' }, 401],
    [{ token_use: 'refresh' }, 401],
    [{ iat: now + 61 }, 401],
    [{ iat: now + 59 }, 200],
  ] as const)
    assert.is((await guarded.bearer(await guarded.issuer.token({ audience: RESOURCE, claims }))).status, status);
  await guarded.close();
});

test('S-85 tokens that name a key which cannot be read wait for the issuer, and cost one line of the log', async () => {
  let keys: Buffer = response(404);
  const proxy = await rawServer(() => keys);
  const guarded = await guardedServer(({ issuer }) => ({ issuer: { issuer, jwks: `${proxy.url}/jwks` } }));
  const set = (await (await fetch(`${guarded.issuer.issuer}/jwks`)).json()) as { keys: object[] };
  const broken = (key: object): object => ({ ...key, x: 'AAAA' });
  keys = jsonResponse({ keys: set.keys.map(broken) });
  // The claims are those of anyone: no signature has been checked.
  for (let serial = 0; serial < 20; serial += 1) {
    const token = await guarded.issuer.token({ audience: RESOURCE, claims: { serial } });
    assert.is((await guarded.bearer(`${token.slice(0, -4)}AAAA`)).status, 503);
  }
  assert.is(guarded.logged.filter((line) => /incident/.test(line)).length, 1, guarded.logged.join('\n'));
  assert.match(guarded.logged.join('\n'), 'a key of the issuer cannot be read');
  keys = jsonResponse(set);
  await guarded.clock.advance(600_000);
  assert.is((await guarded.bearer(await guarded.issuer.token({ audience: RESOURCE }))).status, 200);
  await guarded.close();
  await proxy.close();
});

for (const status of [101, 199, 302, 600, 999])
  test(`S-80 keys that are answered with ${status} once make tokens wait, and the next answer serves them`, async () => {
    let odd = true;
    const headers = status === 101 ? { connection: 'upgrade', upgrade: 'websocket' } : { connection: 'close' };
    let keys: Buffer = response(404);
    const proxy = await rawServer(() => (odd ? response(status, headers, '{}') : keys));
    const guarded = await guardedServer(({ issuer }) => ({ issuer: { issuer, jwks: `${proxy.url}/jwks` } }));
    keys = jsonResponse(await (await fetch(`${guarded.issuer.issuer}/jwks`)).json());
    const token = await guarded.issuer.token({ audience: RESOURCE });
    // The clock of the test ends a fetch that settles by its time only.
    const first = guarded.bearer(token);
    assert.is((await whilePassing(guarded.clock, first, 100)).status, 503);
    odd = false;
    await guarded.clock.advance(60_000);
    assert.is((await guarded.bearer(token)).status, 200);
    await guarded.close();
    await proxy.close();
  });

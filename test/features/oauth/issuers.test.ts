/** Keys of an issuer: rotation, outages, invented keys; the clients that introspect. */

import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { jwtVerify } from 'jose';
import * as assert from 'uvu/assert';
import { suite } from '../../harness/door.ts';
import { atScale } from '../../harness/scale.ts';
import { type GuardedServer, guardedServer, RESOURCE } from './guarded-server.ts';

const test = suite('issuers');
const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
const fetches = ({ issuer }: GuardedServer): number => issuer.requests.filter((path) => path === '/jwks').length;

/** A token with the right claims, a key id that somebody invented, and no signature. */
function invented({ issuer, clock }: GuardedServer, kid: string): string {
  const claims = { iss: issuer.issuer, aud: RESOURCE, sub: 'ada', client_id: 'a', exp: clock.date() / 1_000 + 600 };
  return `${encode({ alg: 'ES256', typ: 'at+jwt', kid })}.${encode(claims)}.${'A'.repeat(86)}`;
}

test.full(
  'G-02 keys rotate at 200 calls a second: each good call is served, with one fetch for each rotation',
  async () => {
    const guarded = await guardedServer();
    const { issuer, clock, bearer } = guarded;
    const rotations = atScale({ quick: 3, full: 3, proof: 100 });
    for (let rotation = 0; rotation < rotations; rotation += 1) {
      for (let call = 0; call < 200; call += 8) {
        const tokens = await Promise.all(Array.from({ length: 8 }, () => issuer.token({ audience: RESOURCE })));
        const answers = await Promise.all(tokens.map((token) => bearer(token)));
        assert.equal([...new Set(answers.map(({ status }) => status))], [200]);
        await clock.advance(40);
      }
      assert.is(fetches(guarded), rotation + 1);
      // A minute is the cooldown. Five minutes are a rotation before the keys are old.
      await clock.advance(60_000);
      await issuer.rotate({ dropOld: true });
    }
    await guarded.close();
  },
);

test('G-02 while the issuer is down, remembered tokens and known keys are served, and others get 503 with Retry-After', async () => {
  const guarded = await guardedServer(() => ({ jwksAgeMs: 60_000 }));
  const { issuer, clock, bearer, logged } = guarded;
  const token = (): Promise<string> => issuer.token({ audience: RESOURCE });
  const remembered = await token();
  assert.is((await bearer(remembered)).status, 200);
  issuer.available = false;
  assert.is((await bearer(await token())).status, 200);
  await clock.advance(60_000);
  const waiting = await token();
  for (let second = 0; second < 60; second += 1) {
    assert.is((await bearer(remembered)).status, 200);
    for (const other of [waiting, await token()]) {
      const answer = await bearer(other);
      assert.is(answer.status, 503);
      assert.ok(Number(answer.headers.get('retry-after')) >= 1);
      assert.is(answer.headers.get('www-authenticate'), null);
    }
    await clock.advance(1_000);
  }
  const during = issuer.requests.length;
  assert.ok(during <= 40, `${during} requests`);
  // The operator reads the reason every five seconds, and no client does.
  assert.is(logged.length, 12, logged.join('\n'));
  assert.match(logged[0] ?? '', 'socket hang up');
  issuer.available = true;
  await clock.advance(5_000);
  assert.is((await bearer(waiting)).status, 200);
  await guarded.close();
});

test('G-02 ten thousand invented keys cost the issuer one request a minute, and delay no good token', async () => {
  const guarded = await guardedServer();
  const { issuer, clock, bearer, logged } = guarded;
  assert.is((await bearer(await issuer.token({ audience: RESOURCE }))).status, 200);
  const amount = atScale({ quick: 200, full: 600, proof: 10_000 });
  const answers = new Map<number, number>();
  for (let at = 0; at < amount; at += 1) {
    const { status } = await bearer(invented(guarded, `invented-${at}`));
    answers.set(status, (answers.get(status) ?? 0) + 1);
    if (at % 100 === 0) assert.is((await bearer(await issuer.token({ audience: RESOURCE }))).status, 200);
  }
  // Whether the later keys exist, only another fetch can tell: these clients wait, and throw no token away.
  assert.equal(Object.fromEntries(answers), { 401: 1, 503: amount - 1 });
  assert.is(fetches(guarded), 2);
  assert.equal(logged, []);
  await issuer.rotate();
  await clock.advance(60_000);
  assert.is((await bearer(await issuer.token({ audience: RESOURCE }))).status, 200);
  assert.is(fetches(guarded), 3);
  await guarded.close();
});

test('G-02 an issuer whose metadata names another issuer is not used, and the operator reads what to write', async () => {
  const issuer = await jsonServer((path, own) =>
    path === '/.well-known/oauth-authorization-server' ? { issuer: `${own}/`, jwks_uri: `${own}/jwks` } : { keys: [] },
  );
  const guarded = await guardedServer(() => ({ issuer: issuer.url }));
  const answer = await guarded.bearer(await guarded.issuer.token({ audience: RESOURCE, claims: { iss: issuer.url } }));
  assert.is(answer.status, 503);
  assert.match(guarded.logged.join('\n'), `expected the issuer ${issuer.url}, got ${issuer.url}/`);
  assert.equal(issuer.paths, ['/.well-known/oauth-authorization-server', '/.well-known/openid-configuration']);
  issuer.close();
  await guarded.close();
});

test('G-02 an issuer with a path is found by RFC 8414 with the path inserted, then by OpenID Connect', async () => {
  const issuer = await jsonServer((path, own) =>
    path === '/tenant/.well-known/openid-configuration'
      ? { issuer: `${own}/tenant`, jwks_uri: `${own}/keys` }
      : path === '/keys'
        ? { keys: [] }
        : undefined,
  );
  const name = `${issuer.url}/tenant`;
  const guarded = await guardedServer(() => ({ issuer: name }));
  const answer = await guarded.bearer(await guarded.issuer.token({ audience: RESOURCE, claims: { iss: name } }));
  assert.is(answer.status, 401);
  assert.equal(issuer.paths.slice(0, 4), [
    '/.well-known/oauth-authorization-server/tenant',
    '/.well-known/openid-configuration/tenant',
    '/tenant/.well-known/openid-configuration',
    '/keys',
  ]);
  issuer.close();
  await guarded.close();
});

test('introspection authenticates with a signed assertion, where the server has a key and no secret', async () => {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const forms: URLSearchParams[] = [];
  const issuer = await jsonServer((path, own, body) => {
    if (path !== '/introspect') return { issuer: own, introspection_endpoint: `${own}/introspect` };
    forms.push(new URLSearchParams(body));
    return { active: true, sub: 'ada', aud: RESOURCE, client_id: 'tests' };
  });
  const guarded = await guardedServer(() => ({
    issuer: {
      issuer: issuer.url,
      introspection: { clientId: 'me', privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() },
    },
  }));
  assert.is((await guarded.bearer('opaque')).status, 200);
  const [form] = forms;
  assert.is(form?.get('token'), 'opaque');
  assert.is(form?.get('client_assertion_type'), 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer');
  const key = createPublicKey(publicKey.export({ type: 'spki', format: 'pem' }));
  const currentDate = new Date(guarded.clock.date());
  const { payload } = await jwtVerify(form?.get('client_assertion') ?? '', key, { audience: issuer.url, currentDate });
  assert.is(payload.iss, 'me');
  assert.is(payload.sub, 'me');
  assert.ok(payload.jti);
  issuer.close();
  await guarded.close();
});

test('an introspection endpoint that rejects the server, or answers nonsense, makes tokens wait', async () => {
  for (const reply of [undefined, { nothing: true }, { active: 'yes' }]) {
    const issuer = await jsonServer((path, own) =>
      path === '/introspect' ? reply : { issuer: own, introspection_endpoint: `${own}/introspect` },
    );
    const guarded = await guardedServer(() => ({
      issuer: { issuer: issuer.url, introspection: { clientId: 'a', clientSecret: 'b' } },
    }));
    const answer = await guarded.bearer('opaque');
    assert.is(answer.status, 503);
    assert.not.match(await answer.text(), issuer.url);
    assert.match(guarded.logged.join('\n'), '/introspect: expected');
    issuer.close();
    await guarded.close();
  }
});

/** Serves JSON by path: undefined is 404. */
async function jsonServer(
  serve: (path: string, own: string, body: string) => object | undefined,
): Promise<{ readonly url: string; readonly paths: string[]; close(): void }> {
  const paths: string[] = [];
  const server = createHttpServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (part: string) => {
      body += part;
    });
    request.on('end', () => {
      const path = request.url ?? '';
      paths.push(path);
      const found = serve(path, url, body);
      response.writeHead(found ? 200 : 404, { 'content-type': 'application/json' }).end(JSON.stringify(found ?? {}));
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
  return {
    url,
    paths,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

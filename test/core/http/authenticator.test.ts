/** An authenticator decides about each request on every mount, and what is known of the caller reaches its handler. */
import * as assert from 'uvu/assert';
import { authOf } from '../../../src/core/messages/auth.ts';
import { type Auth, createServer, type HttpAuthenticator, type MiddlewareContext } from '../../../src/index.ts';
import { connect, SimulatedClock, settled } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { modern } from './modern.ts';
import { type Kind, Served } from './served.ts';
import { serving } from './session.ts';
import { ask, type Headers, initialize } from './support.ts';

const test = suite('http authenticator');

const ADA: Auth = authOf('ada', ['orders:read'], { claims: { tenant: 'north' }, expiresAt: 9_000_000_000_000 });
const METADATA = '/.well-known/oauth-protected-resource/mcp';

/** Decides by the token of a request. A token that begins with `later` is decided in a later turn. */
class Doorman implements HttpAuthenticator {
  readonly documents: HttpAuthenticator['documents'] = new Map([[METADATA, { resource: 'http://localhost/mcp' }]]);
  readonly seen: (readonly string[])[] = [];

  authenticate({
    values,
    query,
  }: Parameters<HttpAuthenticator['authenticate']>[0]): ReturnType<HttpAuthenticator['authenticate']> {
    this.seen.push(values('Authorization'));
    if (query.includes('access_token')) return { status: 401, headers: {}, message: 'no token belongs in a query' };
    const [token = ''] = values('Authorization');
    switch (token) {
      case 'Bearer ada':
        return { auth: ADA };
      case 'Bearer later':
        return Promise.resolve({ auth: ADA });
      case 'Bearer late bug':
        return Promise.reject(new Error('the authenticator has a bug'));
      case 'Bearer bug':
        throw new Error('the authenticator has a bug');
      case 'Bearer local':
        return { auth: authOf('local user') };
      case 'Bearer malformed':
        return { status: 400, headers: {}, message: 'one token was expected' };
      case 'Bearer foreign':
        return { status: 403, headers: { 'www-authenticate': ['Bearer error="insufficient_scope"'] }, message: 'no' };
      case 'Bearer silent issuer':
        return { status: 503, headers: {}, message: 'the issuer does not answer' };
      case 'Bearer unknown issuer':
        return { status: 503, headers: { 'retry-after': '7' }, message: 'the issuer does not answer' };
    }
    return {
      status: 401,
      headers: { 'www-authenticate': ['Bearer scope="a b"', 'DPoP algs="ES256"'] },
      message: 'who?',
    };
  }

  challenge(scopes: readonly string[]): readonly string[] {
    return [`Bearer scope="${scopes.join(' ')}"`];
  }
}

const header = (headers: readonly (readonly [string, string])[], name: string): string | undefined =>
  headers.find(([each]) => each === name)?.[1];

const asking = (authorization: string | undefined) =>
  modern('tools/call', {
    params: { name: 'echo', arguments: { text: 'hello' } },
    headers: authorization === undefined ? {} : { authorization },
  });

for (const kind of ['http', 'fetch', 'node'] as const satisfies readonly Kind[]) {
  test(`${kind}: the authenticator admits a request, or words its rejection`, async () => {
    const auth = new Doorman();
    const served = await Served.open(kind, { auth });
    try {
      for (const good of ['Bearer ada', 'Bearer later']) assert.is((await served.ask(asking(good))).status, 200, good);
      for (const [token, status, name, value] of [
        [undefined, 401, 'www-authenticate', 'Bearer scope="a b", DPoP algs="ES256"'],
        ['Bearer malformed', 400, 'www-authenticate', undefined],
        ['Bearer foreign', 403, 'www-authenticate', 'Bearer error="insufficient_scope"'],
        ['Bearer unknown issuer', 503, 'retry-after', '7'],
        ['Bearer silent issuer', 503, 'retry-after', '1'],
        ['Bearer bug', 503, 'retry-after', '1'],
        ['Bearer late bug', 503, 'retry-after', '1'],
        ['Bearer local', 503, 'retry-after', '1'],
      ] as const) {
        const { status: got, headers, body } = await served.ask(asking(token));
        assert.is(got, status, body);
        assert.is(header(headers, name), value, token);
        assert.match(body, /^\{"jsonrpc":"2\.0","error":\{"code":-/);
      }
    } finally {
      await served.close();
    }
  });

  test(`${kind}: a document of the authenticator needs no credentials`, async () => {
    const served = await Served.open(kind, { auth: new Doorman() });
    const at = (method: string): Promise<Response> => served.fetch({ method, path: METADATA });
    try {
      const response = await at('GET');
      assert.is(response.status, 200);
      assert.is(response.headers.get('content-type'), 'application/json');
      assert.equal(await response.json(), { resource: 'http://localhost/mcp' });
      assert.is((await at('OPTIONS')).status, 204);
      const post = await at('POST');
      assert.is(post.status, 405);
      assert.is(post.headers.get('allow'), 'GET, HEAD, OPTIONS');
      const foreign = await served.fetch({ method: 'GET', path: METADATA, headers: { origin: 'http://evil.example' } });
      assert.is(foreign.status, 403);
    } finally {
      await served.close();
    }
  });
}

test('two Authorization headers are two, and the query is known', () => {
  const auth = new Doorman();
  return serving(
    async ({ url }) => {
      const plain = asking(undefined);
      const twice = { ...plain, headers: { ...plain.headers, authorization: ['Bearer ada', 'Bearer eve'] } };
      assert.is((await ask(url, twice)).status, 200);
      assert.equal(auth.seen, [['Bearer ada', 'Bearer eve']]);
      const answer = await ask(`${url}?access_token=secret`, asking('Bearer ada'));
      assert.is(answer.status, 401);
      assert.not.match(await answer.text(), /secret/);
    },
    { auth },
  );
});

test('each request of a session has the caller of its own token', () => {
  const seen: (Auth | undefined)[] = [];
  const tokens = new Map([
    ['Bearer first', { principal: 'ada', scopes: ['a'] }],
    ['Bearer second', { principal: 'ada', scopes: ['a', 'b'], claims: { tenant: 'north' }, expiresAt: 9e12 }],
  ]);
  return serving(
    async ({ url }) => {
      const post = (token: string, body: unknown, more: Headers = {}) =>
        ask(url, { body, headers: { authorization: token, ...more } });
      const opened = await post('Bearer first', initialize('2025-11-25'));
      const session = { 'mcp-session-id': opened.headers['mcp-session-id'] };
      await opened.text();
      for (const token of tokens.keys()) {
        const params = { name: 'caller', arguments: {} };
        const answer = await post(token, { jsonrpc: '2.0', id: 7, method: 'tools/call', params }, session);
        assert.is(answer.status, 200, await answer.text());
      }
      assert.equal(
        seen.map((auth) => auth && { ...auth }),
        [
          { claims: {}, principal: 'ada', scopes: ['a'] },
          { claims: { tenant: 'north' }, expiresAt: 9e12, principal: 'ada', scopes: ['a', 'b'] },
        ],
      );
      for (const auth of seen) assert.ok(Object.isFrozen(auth) && Object.isFrozen(auth?.scopes));
    },
    { authenticate: ({ header: value }) => tokens.get(value('authorization') ?? '') },
    (server) => {
      server.tool('caller', {}, (_, ctx) => {
        seen.push(ctx.auth);
        return 'seen';
      });
    },
  );
});

test('a message of HTTP+SSE has the caller of the POST that carried it', () => {
  const seen: (readonly string[] | undefined)[] = [];
  return serving(
    async ({ url }) => {
      const stream = await ask(url, { method: 'GET', headers: { authorization: 'read' } });
      const { data = '' } = await stream.events.next();
      const post = async (token: string, body: unknown) =>
        (await ask(new URL(data, url).href, { body, headers: { authorization: token } })).text();
      await post('read', initialize('2024-11-05'));
      await stream.events.next();
      for (const token of ['read', 'read write']) {
        await post(token, { jsonrpc: '2.0', id: 2, method: 'tools/call', params: { name: 'caller', arguments: {} } });
        await stream.events.next();
      }
      assert.equal(seen, [['read'], ['read', 'write']]);
    },
    { authenticate: ({ header: value }) => ({ principal: 'ada', scopes: value('authorization')?.split(' ') }) },
    (server) => {
      server.tool('caller', {}, (_, ctx) => {
        seen.push(ctx.auth?.scopes);
        return 'seen';
      });
    },
  );
});

for (const [title, result] of [
  ['scopes that contain a quotation mark', { principal: 'ada', scopes: ['a"b'] }],
  ['scopes in one text', { principal: 'ada', scopes: 'a b' }],
  ['claims that are no object', { principal: 'ada', claims: ['a'] }],
  ['an end that is no number', { principal: 'ada', expiresAt: 'tomorrow' }],
  ['no principal', { scopes: ['a'] }],
] as const) {
  test(`a result of authenticate with ${title} authenticates no request`, () =>
    serving(
      async ({ url, told }) => {
        assert.is((await ask(url, asking(undefined))).status, 401);
        assert.match(told.join('\n'), /http\.authenticate: /);
      },
      // A JavaScript caller may return anything.
      { authenticate: () => JSON.parse(JSON.stringify(result)) },
    ));
}

test('an anonymous client has no auth; middleware sees the caller that the handler sees', async () => {
  const server = createServer({ name: 'callers', version: '1.0.0' });
  const seen: MiddlewareContext['auth'][] = [];
  server.tool('caller', {}, (_, { auth }) => (auth ? `${auth.principal} ${auth.scopes}` : 'undefined'));
  server.use('tools/call', (_, ctx, next) => {
    seen.push(ctx.auth);
    return next();
  });
  const anonymous = await connect(server);
  const ada = await connect(server, { auth: { principal: 'ada', scopes: ['a'] } });
  const told = async (client: typeof ada) => (await client.call('caller')).content;
  assert.equal(await told(anonymous), [{ type: 'text', text: 'undefined' }]);
  assert.equal(await told(ada), [{ type: 'text', text: 'ada a' }]);
  assert.equal(
    seen.map((auth) => auth?.principal),
    [undefined, 'ada'],
  );
  await anonymous.close();
  await ada.close();
  await server.close();
});

test('a request whose authentication never ends gets 503 after 15 s, or when the server closes', async () => {
  const clock = new SimulatedClock();
  const logged: string[] = [];
  const never = new Promise<undefined>(() => {});
  const server = createServer({
    ...{ name: 's', version: '1', clock, log: (_level: string, message: string) => void logged.push(message) },
    http: { authenticate: () => never },
  });
  const post = () => server.fetch(new Request('http://localhost/mcp', { method: 'POST', body: '{}' }));
  const late = post();
  await settled();
  await clock.advance(15_000);
  const answer = await late;
  assert.equal([answer.status, answer.headers.get('retry-after')], [503, '1']);
  assert.match(logged.join(), 'has not decided within 15 s');
  const open = post();
  await settled();
  await server.close();
  assert.is((await open).status, 503);
  assert.is(clock.timers, 0);
});

test('the authenticator of the transport replaces what its server has', async () => {
  const auth = new Doorman();
  await serving(async ({ url }) => assert.is((await ask(url, asking('Bearer ada'))).status, 200), {
    auth,
    server: { http: { authenticate: () => undefined } },
  });
});

test('the log names the members of a wrong result of authenticate, and none of their values', async () => {
  const logged: string[] = [];
  const authenticate = (): string => JSON.parse('{ "user": "ada", "password": "s3cret" }');
  const log = (_level: string, message: string) => void logged.push(message);
  const server = createServer({ name: 's', version: '1', log, http: { authenticate } });
  const { status } = await server.fetch(new Request('http://localhost/mcp', { method: 'POST', body: '{}' }));
  assert.is(status, 401);
  assert.match(
    logged.join(),
    "expected a principal's name, { principal, scopes, claims, expiresAt } or undefined, got { user, password }",
  );
  assert.not.match(logged.join(), 's3cret');
  await server.close();
});

const CHALLENGES: Readonly<Record<string, () => unknown>> = {
  'a character that no header can have': () => ['ApiKey realm="–"'],
  'a line break': () => ['ApiKey\r\nset-cookie: a=b'],
  'a control character': () => ['ApiKey', 'Bearer \u0000'],
  'half of a pair': () => ['ApiKey \ud83d'],
  'a value that is no text': () => [7],
  'no list': () => undefined,
  'an error': () => {
    throw new Error('the authenticator has a bug');
  },
};
for (const [what, challenge] of Object.entries(CHALLENGES))
  test(`a request that lacks scopes gets its 403 without a challenge, if that contains ${what}`, async () => {
    const auth = Object.assign(new Doorman(), { challenge });
    await serving(
      async ({ url, told }) => {
        const answer = await ask(
          url,
          modern('tools/call', {
            params: { name: 'refund', arguments: {} },
            headers: { authorization: 'Bearer ada' },
          }),
        );
        assert.is(answer.status, 403);
        assert.is(answer.headers['www-authenticate'], undefined);
        assert.is(answer.headers['set-cookie'], undefined);
        assert.match(await answer.text(), 'orders:refund');
        assert.is(told.filter((line) => /incident .* in http\.auth/.test(line)).length, 1, told.join());
      },
      { auth },
      (server) => void server.tool('refund', { scopes: ['orders:refund'] }, () => 'refunded'),
    );
  });

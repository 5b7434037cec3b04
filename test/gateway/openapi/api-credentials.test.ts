/** Credentials of an API: where they go, which alternative is chosen, the page for a missing key, OAuth, and places that never show them. */

import * as assert from 'uvu/assert';
import { authOf } from '../../../src/core/messages/auth.ts';
import { isObject, type JsonObject } from '../../../src/core/protocol/json.ts';
import { INTERNALS } from '../../../src/features/server/internals.ts';
import { checkApiAuth } from '../../../src/gateway/openapi/api-auth.ts';
import type { CompiledDocument, SecurityRequirement, SecurityScheme } from '../../../src/gateway/openapi/operation.ts';
import { accept, type InputRequired } from '../../features/asking/support.ts';
import { suite } from '../../harness/door.ts';
import { jsonResponse, type RawRequest, type RawServer, rawServer, response } from '../../harness/raw-server.ts';
import { textOf } from '../../harness/results.ts';
import { type ApiStage, type ApiStageOptions, apiStage, memoryVault } from './api-stage.ts';

const test = suite('credentials of an API');
const CAN_OPEN: JsonObject = { elicitation: { url: {} } };
const KEY = 'k3y-0f-ada/+"\\=';

const SCHEMES: CompiledDocument['securitySchemes'] = {
  Header: { type: 'apiKey', in: 'header', name: 'X-Api-Key' },
  Query: { type: 'apiKey', in: 'query', name: 'api_key' },
  Cookie: { type: 'apiKey', in: 'cookie', name: 'sid' },
  Basic: { type: 'http', scheme: 'basic' },
  Bearer: { type: 'http', scheme: 'bearer' },
  Digest: { type: 'http', scheme: 'digest' },
  Token: { type: 'http', scheme: 'token' },
  Certificate: { type: 'mutualTLS' },
  Aws: { type: 'other', what: 'AWS Signature Version 4' },
  OAuth: { type: 'oauth2', flows: {} },
};

function needs(...alternatives: readonly (readonly string[])[]): readonly (readonly SecurityRequirement[])[] {
  return alternatives.map((all) => all.map((scheme) => ({ scheme, scopes: [] })));
}

async function withApi(
  options: ApiStageOptions,
  run: (desk: ApiStage, api: RawServer) => Promise<void>,
  respond: (request: RawRequest) => Buffer | undefined = () => jsonResponse({}),
): Promise<void> {
  const api = await rawServer((request) => respond(request));
  const desk = await apiStage(api.url, { schemes: SCHEMES, ...options, request: { path: '/x', ...options.request } });
  try {
    await run(desk, api);
  } finally {
    await desk.close();
    await api.close();
  }
}

/** The parts of a request in which credentials may be. */
function credentialsOf({ path, headers }: RawRequest): JsonObject {
  const { authorization, cookie, 'x-api-key': key } = headers;
  return JSON.parse(JSON.stringify({ path, authorization, cookie, key })) as JsonObject;
}

const BASIC = `Basic ${Buffer.from('ada:pass:word').toString('base64')}`;

/** The scheme, its credential, and the request. */
const PLACES: readonly (readonly [scheme: string, auth: ApiStageOptions['auth'], sent: JsonObject])[] = [
  ['Header', { Header: { token: 'secret-1' } }, { path: '/v1/x', key: 'secret-1' }],
  ['Query', { Query: { token: 'a&b=c' } }, { path: '/v1/x?api_key=a%26b%3Dc' }],
  ['Cookie', { Cookie: { token: 'a;b' } }, { path: '/v1/x', cookie: 'sid=a%3Bb' }],
  ['Basic', { Basic: { username: 'ada', password: 'pass:word' } }, { path: '/v1/x', authorization: BASIC }],
  ['Basic', () => 'ada:pass:word', { path: '/v1/x', authorization: BASIC }],
  ['Bearer', { Bearer: { token: 'abc' } }, { path: '/v1/x', authorization: 'Bearer abc' }],
  ['Bearer', { Bearer: { token: 'Bearer abc' } }, { path: '/v1/x', authorization: 'Bearer abc' }],
  ['Token', { Token: { token: 'abc' } }, { path: '/v1/x', authorization: 'Token abc' }],
  ['Token', { Token: { token: 'token abc' } }, { path: '/v1/x', authorization: 'Token abc' }],
  ['Header', (principal, { scheme }) => `${scheme} of ${principal}`, { path: '/v1/x', key: 'Header of local user' }],
  ['Header', { header: 'X-Api-Key', token: 'any' }, { path: '/v1/x', key: 'any' }],
  ['', { header: 'X-Api-Key', token: 'any' }, { path: '/v1/x', key: 'any' }],
  ['Header', false, { path: '/v1/x' }],
];

for (const [scheme, auth, sent] of PLACES)
  test(`a request has the credential ${typeof auth === 'function' ? 'of a function' : JSON.stringify(auth)} for ${scheme || 'no scheme'}`, () =>
    withApi({ auth, request: { security: scheme === '' ? [] : needs([scheme]) } }, async (desk, api) => {
      assert.is((await desk.call()).isError, undefined);
      assert.equal(api.requests.map(credentialsOf), [sent]);
    }));

const CONFIGURED = { Header: { token: 'h' }, Query: { token: 'q' }, Cookie: { token: 'c' } };

/** The alternatives, and the names of the schemes whose credentials are sent; undefined: nothing is sent. */
const CHOICES: readonly (readonly [
  why: string,
  alternatives: readonly (readonly string[])[],
  sent: string | undefined,
])[] = [
  ['the first alternative', [['Header'], ['Query']], 'h'],
  ['the first that is configured', [['Basic'], ['Query'], ['Header']], 'q'],
  [
    'all schemes of a combination',
    [
      ['Basic', 'Header'],
      ['Header', 'Cookie'],
    ],
    'h c',
  ],
  ['a configured one before none', [[], ['Header']], 'h'],
  ['none where that is permitted', [['Basic'], []], ''],
  ['none of an operation that needs none', [], ''],
  ['nothing for a scheme without a credential', [['Token']], undefined],
  ['nothing for a scheme that the document does not have', [['Nope']], undefined],
];

for (const [why, alternatives, sent] of CHOICES)
  test(`the choice is ${why}`, () =>
    withApi({ auth: CONFIGURED, request: { security: needs(...alternatives) } }, async (desk, api) => {
      const result = await desk.call();
      if (sent === undefined) {
        assert.match(
          textOf(result),
          /which are not configured\. Nothing was sent\. The operator of this gateway must set `auth`/,
        );
        assert.is(api.requests.length, 0);
        return;
      }
      const [{ path, headers } = { path: '', headers: {} as RawRequest['headers'] }] = api.requests;
      const found = [headers['x-api-key'], /api_key=(\w)/.exec(path)?.[1], headers.cookie?.slice('sid='.length)];
      assert.is(found.filter((each) => each !== undefined).join(' '), sent);
    }));

/** Schemes that need other software: none of them is sent a key, also if one is configured. */
for (const [scheme, words] of [
  ['Digest', '"Digest" (digest)'],
  ['Certificate', '"Certificate" (mutual TLS (a certificate of the client))'],
  ['Aws', '"Aws" (AWS Signature Version 4)'],
] as const)
  test(`an operation that needs ${scheme} says that a proxy must add it, and is not called`, async () => {
    const auth = { [scheme]: { token: 'key' } };
    await withApi({ auth, request: { security: needs([scheme], [scheme, 'Header']) } }, async (desk, api) => {
      assert.match(textOf(await desk.call()), words);
      assert.match(textOf(await desk.call()), 'which this gateway cannot make. Nothing was sent.');
      assert.match(textOf(await desk.call()), 'set baseUrl to its address, and auth to false');
      assert.is(api.requests.length, 0);
    });
    await withApi({ auth: CONFIGURED, request: { security: needs([scheme], ['Header']) } }, async (desk, api) => {
      assert.is((await desk.call()).isError, undefined);
      assert.is(api.requests[0]?.headers['x-api-key'], 'h');
    });
    await withApi({ auth: false, request: { security: needs([scheme]) } }, async (desk, api) => {
      assert.is((await desk.call()).isError, undefined);
      assert.is(api.requests.length, 1);
    });
  });

test('invalid credentials are errors of the definition, which name no secret', () => {
  for (const auth of [
    'hunter22',
    { Key: 'hunter22' },
    { Key: { tokn: 'hunter22' } },
    { header: 'X', token: 7 },
    { O: { clientId: 'a', clientAuth: 'x' } },
  ]) {
    let message = '';
    try {
      checkApiAuth('pets', auth);
    } catch (error) {
      message = String(error);
    }
    assert.match(message, 'server.mount("pets"): auth');
    assert.not.match(message, 'hunter22');
  }
});

test('a credential that no request can carry is refused, and not shown', () =>
  withApi({ auth: { Header: { token: 'se\ncret' } }, request: { security: needs(['Header']) } }, async (desk, api) => {
    const text = textOf(await desk.call());
    assert.match(text, 'the credential of the scheme "Header" has a character that no request can carry');
    assert.not.match(text, 'cret"');
    assert.is(api.requests.length, 0);
  }));

// The page for a missing key

/** Calls the tool, which must ask for a page. */
async function asked(
  desk: ApiStage,
): Promise<{ readonly url: string; answer(reply: JsonObject): Promise<JsonObject> }> {
  const result = await desk.send({}, CAN_OPEN);
  return questionOf(desk, result);
}

function questionOf(desk: ApiStage, result: JsonObject): Awaited<ReturnType<typeof asked>> {
  assert.is(result.resultType, 'input_required', JSON.stringify(result));
  const { inputRequests, requestState } = result as JsonObject & InputRequired;
  const [[key = '', question] = []] = Object.entries(inputRequests);
  return {
    url: String(question?.params.url),
    answer: (reply) => desk.send({ requestState, inputResponses: { [key]: reply } }, CAN_OPEN),
  };
}

/** Fills in the form of the page. */
async function enter(url: string, fields: Readonly<Record<string, string>>): Promise<Response> {
  const page = await (await fetch(url)).text();
  const [, mark = ''] = /name="mark" value="([^"]+)"/.exec(page) ?? [];
  return fetch(url, { method: 'POST', body: new URLSearchParams({ mark, ...fields }) });
}

/** An API that accepts one key. */
const ofAda = ({ headers }: RawRequest): Buffer =>
  headers['x-api-key'] === KEY ? jsonResponse({ hello: 'Ada' }) : jsonResponse({ message: 'who?' }, 401);

test('a missing key is asked for on a page, stored for the person, and never passes the client', () => {
  const vault = memoryVault();
  return withApi(
    { vault, request: { security: needs(['Header']) } },
    async (desk, api) => {
      const question = await asked(desk);
      assert.is(api.requests.length, 0);
      assert.match(question.url, /^http:\/\/127\.0\.0\.1:\d+\/oauth\/callback\?key=/);
      const page = await fetch(question.url);
      assert.match(page.headers.get('content-security-policy') ?? '', "form-action 'self'");
      assert.is(page.headers.get('cache-control'), 'no-store');
      assert.match(await page.text(), 'needs your key (Header)');
      assert.is((await enter(question.url, { secret: KEY })).status, 200);
      const result = await question.answer(accept({}));
      assert.equal(result.structuredContent, { hello: 'Ada' });
      assert.equal([...vault.entries.values()], [KEY]);
      // The next call asks no more.
      assert.equal((await desk.send({}, CAN_OPEN)).structuredContent, { hello: 'Ada' });
      assert.is(api.requests.length, 2);
    },
    ofAda,
  );
});

test('a name and a password are asked for together', () =>
  withApi({ request: { security: needs(['Basic']) } }, async (desk, api) => {
    const question = await asked(desk);
    assert.is((await enter(question.url, { name: 'a:b', secret: 'x' })).status, 400);
    assert.is((await enter(question.url, { name: 'ada', secret: 'pass:word' })).status, 200);
    await question.answer(accept({}));
    assert.equal(
      api.requests.map(({ headers }) => headers.authorization),
      [BASIC],
    );
  }));

test('a key that the API rejects is deleted and asked for again', () => {
  const vault = memoryVault();
  return withApi(
    { vault, request: { security: needs(['Header']) } },
    async (desk, api) => {
      const first = await asked(desk);
      await enter(first.url, { secret: 'wrong-key' });
      const second = questionOf(desk, await first.answer(accept({})));
      assert.equal([...vault.entries], []);
      assert.is(api.requests.length, 1);
      await enter(second.url, { secret: KEY });
      assert.equal((await second.answer(accept({}))).structuredContent, { hello: 'Ada' });
    },
    ofAda,
  );
});

test('a client that cannot show pages gets the address, and one that declines an error; nothing is sent', () =>
  withApi({ request: { security: needs(['Header']) } }, async (desk, api) => {
    const text = textOf(await desk.call());
    assert.match(
      text,
      /the API needs your key \(Header\)\. Ask the user to open this address in a browser, then repeat the call: http/,
    );
    const question = await asked(desk);
    assert.match(textOf(await question.answer({ action: 'decline' })), 'which was declined');
    assert.is(api.requests.length, 0);
  }));

test('nothing is asked for with auth: false, or where the operation may be called without credentials', async () => {
  await withApi({ auth: false, request: { security: needs(['Header']) } }, async (desk, api) => {
    await desk.send({}, CAN_OPEN);
    assert.is(api.requests.length, 1);
  });
  await withApi({ request: { security: needs(['Header'], []) } }, async (desk, api) => {
    await desk.send({}, CAN_OPEN);
    assert.is(api.requests.length, 1);
  });
});

/** Requests for the page of another person, and forms that it did not send: status, and whether a key is stored. */
test('S-113: the page stores nothing for another person, without its mark, after its time, or for a changed address', () => {
  const vault = memoryVault();
  return withApi({ vault, request: { security: needs(['Header']) } }, async (desk) => {
    const { url } = await asked(desk);
    const { search } = new URL(url);
    const receive = (query: string, person: string | undefined, form?: string) =>
      desk.signIns.page({ query, person: person === undefined ? undefined : authOf(person), form });
    const page = await receive(search.slice(1), 'local user');
    const [, mark = ''] = /name="mark" value="([^"]+)"/.exec(page.text) ?? [];
    const form = new URLSearchParams({ mark, secret: KEY }).toString();
    const changed = search.slice(1, -4);
    for (const [status, query, person, body] of [
      [403, search.slice(1), 'bob', undefined],
      [403, search.slice(1), 'bob', form],
      [401, search.slice(1), undefined, form],
      [400, changed, 'local user', undefined],
      [400, changed, 'local user', form],
      [403, search.slice(1), 'local user', `secret=${KEY}`],
      [403, search.slice(1), 'local user', new URLSearchParams({ mark: `${mark}x`, secret: KEY }).toString()],
      [400, search.slice(1), 'local user', new URLSearchParams({ mark, secret: '' }).toString()],
      [400, search.slice(1), 'local user', new URLSearchParams({ mark, secret: 'a\r\nb' }).toString()],
      [400, search.slice(1), 'local user', new URLSearchParams({ mark, secret: 'x'.repeat(8_193) }).toString()],
    ] as const) {
      const answer = await receive(query, person, body);
      assert.is(answer.status, status, String(body));
      assert.not.match(answer.text, KEY);
    }
    assert.is(vault.entries.size, 0);
  });
});

// Places

/** An API that repeats all that it received, in each part of its response. */
function echo({ path, headers, body }: RawRequest): Buffer {
  const all = JSON.stringify({ path, headers, body });
  const about = {
    link: `<https://api.example.com${path}>; rel="next"`,
    etag: `"${Buffer.from(all).toString('base64').slice(0, 40)}"`,
  };
  const location = { location: `https://evil.example${path}` };
  switch (path.split(/[/?]/)[2]) {
    case 'text':
      return response(200, { 'content-type': 'text/plain', ...about }, all);
    case 'error':
      return jsonResponse({ message: all }, 400, about);
    case 'denied':
      return jsonResponse({ message: all }, 403, about);
    case 'away':
      return response(302, location);
    case 'cut':
      return Buffer.from('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nx');
    default:
      return jsonResponse({ headers, path, next: path }, 200, about);
  }
}

const SECRETS: readonly (readonly [scheme: string, auth: ApiStageOptions['auth'], texts: readonly string[]])[] = [
  ['Header', { Header: { token: KEY } }, [KEY]],
  ['Query', { Query: { token: KEY } }, [KEY, encodeURIComponent(KEY)]],
  ['Cookie', { Cookie: { token: KEY } }, [KEY, encodeURIComponent(KEY)]],
  ['Bearer', () => KEY, [KEY]],
  ['Basic', { Basic: { username: 'ada', password: KEY } }, [KEY, Buffer.from(`ada:${KEY}`).toString('base64')]],
  ['', { header: 'X-Api-Key', token: KEY }, [KEY]],
];

for (const [scheme, auth, texts] of SECRETS)
  for (const place of ['data', 'text', 'error', 'denied', 'away', 'cut', 'nobody'])
    test(`S-112: the credential of ${scheme || 'a header'} is in no result, log, question, message or record of a call with ${place}`, async () => {
      const seen: string[] = [];
      const api = await rawServer((request, socket) => {
        if (place === 'cut') setImmediate(() => socket.destroy());
        return echo(request);
      });
      const address = place === 'nobody' ? 'http://127.0.0.1:1' : api.url;
      const desk = await apiStage(address, {
        auth,
        schemes: SCHEMES,
        headers: { 'x-api-secret': 'configured-secret' },
        request: { path: `/${place}`, security: scheme === '' ? [] : needs([scheme]) },
      });
      const stop = desk.server[INTERNALS].inspection.listen((record) => void seen.push(JSON.stringify(record)));
      const result = await desk.call();
      seen.push(JSON.stringify(result), ...desk.told);
      if (place !== 'nobody') assert.ok(JSON.stringify(api.requests).length > 2);
      for (const text of [...texts, 'configured-secret'])
        for (const shown of [text, JSON.stringify(text).slice(1, -1)])
          for (const line of seen) assert.not.ok(line.includes(shown), line);
      stop();
      await desk.close();
      await api.close();
    });

// OAuth

interface Issuer {
  readonly scheme: SecurityScheme;
  readonly tokens: URLSearchParams[];
  readonly api: RawServer;
}

/** An API with an authorization server: the token of each grant is accepted until the next one. */
async function issuer(): Promise<Issuer> {
  const tokens: URLSearchParams[] = [];
  let valid = 0;
  const api = await rawServer((request) => {
    const { path, headers, body } = request;
    if (path === '/token') {
      const params = new URLSearchParams(body);
      tokens.push(params);
      valid += 1;
      const refresh = params.get('grant_type') === 'client_credentials' ? {} : { refresh_token: `refresh-${valid}` };
      return jsonResponse({ access_token: `token-${valid}`, token_type: 'Bearer', expires_in: 3_600, ...refresh });
    }
    return headers.authorization === `Bearer token-${valid}` && valid > 0
      ? jsonResponse({ token: valid })
      : jsonResponse({ message: 'sign in' }, 401);
  });
  const [authorizationUrl, tokenUrl] = [`${api.url}/authorize`, `${api.url}/token`];
  const flow = { authorizationUrl, tokenUrl, scopes: ['read'] };
  return { api, tokens, scheme: { type: 'oauth2', flows: { authorizationCode: flow, clientCredentials: flow } } };
}

const SCOPED = [[{ scheme: 'OAuth', scopes: ['read:pets'] }]];

test('client credentials get a token of the authorization server that the document names, and another one after a 401', async () => {
  const { api, scheme, tokens } = await issuer();
  const desk = await apiStage(api.url, {
    schemes: { OAuth: scheme },
    auth: {
      OAuth: {
        clientId: 'desk',
        clientSecret: 'desk-secret',
        grant: 'client_credentials',
        clientAuth: 'client_secret_post',
      },
    },
    request: { path: '/x', security: SCOPED },
  });
  assert.equal((await desk.call()).structuredContent, { token: 1 });
  assert.equal((await desk.call()).structuredContent, { token: 1 });
  assert.is(tokens.length, 1);
  const { grant_type: grant, scope, client_secret: secret, resource } = Object.fromEntries(tokens[0] ?? []);
  assert.equal([grant, scope, secret, resource], ['client_credentials', 'read:pets', 'desk-secret', undefined]);
  // Another client of the API has used the token up.
  await fetch(`${api.url}/token`, { method: 'POST', body: 'grant_type=client_credentials' });
  assert.equal((await desk.call()).structuredContent, { token: 3 });
  await desk.close();
  await api.close();
});

test('a person signs in at the authorization server of the document, with PKCE and the scopes of the operation', async () => {
  const { api, scheme, tokens } = await issuer();
  const desk = await apiStage(api.url, {
    schemes: { OAuth: scheme },
    auth: { OAuth: { clientId: 'desk', clientSecret: 'desk-secret' } },
    request: { path: '/x', security: SCOPED },
  });
  const question = await asked(desk);
  const url = new URL(question.url);
  assert.is(`${url.origin}${url.pathname}`, `${api.url}/authorize`);
  const {
    scope,
    resource,
    code_challenge_method: method,
    redirect_uri: back = '',
    state = '',
  } = Object.fromEntries(url.searchParams);
  assert.equal([scope, resource, method], ['read:pets', undefined, 'S256']);
  assert.is((await fetch(`${back}?code=c0de&state=${encodeURIComponent(state)}`)).status, 200);
  assert.equal((await question.answer(accept({}))).structuredContent, { token: 1 });
  const { code, code_verifier: verifier = '', resource: target } = Object.fromEntries(tokens[0] ?? []);
  assert.equal([code, target], ['c0de', undefined]);
  assert.ok(verifier.length >= 43);
  // The token is refreshed without a question.
  await fetch(`${api.url}/token`, { method: 'POST', body: 'grant_type=client_credentials' });
  const again = await desk.send({}, CAN_OPEN);
  assert.equal(again.structuredContent, { token: 3 });
  assert.is(tokens.at(-1)?.get('refresh_token'), 'refresh-1');
  await desk.close();
  await api.close();
});

test('a document without the addresses of OAuth, and without others in the configuration, sends nothing', () =>
  withApi({ auth: { OAuth: { clientId: 'desk' } }, request: { security: needs(['OAuth']) } }, async (desk, api) => {
    assert.match(textOf(await desk.call()), 'the document names no tokenUrl for OAuth. Nothing was sent.');
    assert.is(api.requests.length, 0);
  }));

test('a token goes to no other origin than that of its operation', async () => {
  const { api, scheme } = await issuer();
  const other = await rawServer(() => jsonResponse({}));
  const desk = await apiStage(api.url, {
    schemes: { OAuth: scheme },
    auth: { OAuth: { clientId: 'desk', clientSecret: 'desk-secret', grant: 'client_credentials' } },
    request: { path: '/x', security: SCOPED, base: `${other.url}/v1` },
    trusted: [new URL(api.url), new URL(other.url)],
  });
  await desk.call();
  // The authorization server is at another origin, and gets the client's secret only.
  assert.ok(
    other.requests.every(({ headers }) => isObject(headers) && !String(headers.authorization).includes('desk-secret')),
  );
  await desk.close();
  await Promise.all([api.close(), other.close()]);
});

/** Sign-in of a client: discovery, registration, what it refuses, scopes, refreshes, proofs, and grants without a person. */
import { Buffer } from 'node:buffer';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { inspect } from 'node:util';
import {
  type Client,
  type ClientError,
  type ConnectOptions,
  connect,
  memoryTokens,
  type OAuthOptions,
  oauth,
} from 'troupe/client';
import { SimulatedClock } from 'troupe/testing';
import * as assert from 'uvu/assert';
import { suite } from '../harness/door.ts';
import { clientError } from './fixture.ts';
import { isSigned, SignInFixture } from './sign-in-fixture.ts';

const test = suite('sign-in of a client');
const REDIRECT = 'http://127.0.0.1:7777/callback';
const METADATA = '/.well-known/oauth-authorization-server';
const OPENID = '/.well-known/openid-configuration';
const RESOURCE = '/.well-known/oauth-protected-resource';

interface Scene {
  readonly servers: SignInFixture;
  /** Connects with these options. The client is closed at the end. */
  client(auth?: OAuthOptions, options?: ConnectOptions): Promise<Client>;
  /** The error of a connection that must fail. */
  failure(auth?: OAuthOptions): Promise<ClientError>;
}

function scene(title: string, work: (scene: Scene) => Promise<void>): void {
  test(title, async () => {
    const servers = await new SignInFixture().open();
    const clients: Client[] = [];
    const open = async (auth: OAuthOptions = {}, options: ConnectOptions = {}): Promise<Client> => {
      const signIn = oauth({ authorize: servers.authorize, redirectUrl: REDIRECT, ...auth });
      const made = await connect({ url: servers.url, auth: signIn }, { eras: 'modern', log() {}, ...options });
      clients.push(made);
      return made;
    };
    try {
      await work({ servers, client: open, failure: (auth) => clientError(open(auth)) });
    } finally {
      for (const client of clients) await client.close();
      await servers.close();
    }
  });
}

// Discovery

scene('the metadata of the resource is where the challenge says', async ({ servers, client }) => {
  await (await client()).call('whoami');
  assert.equal(servers.paths('resource'), ['/custom-metadata']);
});

scene('without an address in the challenge, the path comes before the root', async ({ servers, client }) => {
  servers.settings.namesMetadata = false;
  await client();
  assert.equal(servers.paths('resource'), [`${RESOURCE}/mcp`]);
});

scene('metadata of the resource at the root is found last', async ({ servers, client }) => {
  servers.settings.namesMetadata = false;
  servers.settings.places = [RESOURCE, METADATA];
  await client();
  assert.equal(servers.paths('resource'), [`${RESOURCE}/mcp`, RESOURCE]);
});

for (const [issuerPath, order] of [
  ['', [METADATA, OPENID]],
  ['/tenant', [`${METADATA}/tenant`, `${OPENID}/tenant`, `/tenant${OPENID}`]],
] as const)
  for (const [index, place] of order.entries())
    scene(
      `an issuer "${issuerPath}" is found at ${place}, in the order of the specification`,
      async ({ servers, client }) => {
        servers.settings.issuerPath = issuerPath;
        servers.settings.places = ['/custom-metadata', place];
        await client();
        assert.equal(servers.paths('issuer').slice(0, index + 1), order.slice(0, index + 1));
      },
    );

scene('the root of an issuer with a path is never asked', async ({ servers, failure }) => {
  servers.settings.issuerPath = '/tenant';
  servers.settings.places = ['/custom-metadata', METADATA, OPENID];
  assert.match((await failure()).message, 'no metadata of an authorization server');
  assert.not(servers.paths('issuer').includes(METADATA));
});

// Refusals

scene(
  'metadata of another resource is refused before an authorization server is asked',
  async ({ servers, failure }) => {
    for (const resource of ['https://evil.example/mcp', `${servers.url}-other`, 'nonsense', 7]) {
      servers.settings.resourceMetadata = { resource };
      const error = await failure();
      assert.is(error.reason, 'unauthorized');
      assert.match(error.message, /expected the metadata of http.*got that of/);
    }
    assert.equal(servers.paths('issuer'), []);
  },
);

scene(
  'metadata of another issuer is refused, also if only a slash of its path differs',
  async ({ servers, failure }) => {
    servers.settings.issuerPath = '/tenant';
    for (const issuer of [
      'https://evil.example',
      `${servers.issuer}/`,
      servers.issuer.replace('127.0.0.1', 'localhost'),
    ]) {
      servers.settings.issuerMetadata = { issuer };
      assert.match((await failure()).message, /expected the issuer http.*No token is requested there/);
    }
    assert.equal(servers.tokenRequests(), []);
  },
);

scene('an authorization server without S256 gets no request of a person', async ({ servers, failure }) => {
  for (const methods of [undefined, ['plain'], []]) {
    servers.settings.issuerMetadata = { code_challenge_methods_supported: methods };
    assert.match((await failure()).message, 'S256');
  }
  assert.not(servers.paths('issuer').some((path) => /authorize|register/.test(path)));
});

scene('an authorization server that is an address of a private network is refused', async ({ servers, failure }) => {
  for (const issuer of [
    'https://169.254.169.254',
    'https://[::ffff:10.0.0.1]',
    'http://192.0.2.1',
    'file:///etc/passwd',
    'x',
  ]) {
    servers.settings.resourceMetadata = { authorization_servers: [issuer] };
    const { message } = await failure();
    assert.ok(/is private|expected an https address|expected the https address of/.test(message), message);
  }
});

for (const [what, redirect, advertised] of [
  ['another iss', (back: URL) => back.searchParams.set('iss', 'https://evil.example'), false],
  ['no iss although the server promises one', () => {}, true],
  ['an iss that differs by a slash', (back: URL, issuer: string) => back.searchParams.set('iss', `${issuer}/`), true],
  ['another state', (back: URL) => back.searchParams.set('state', 'x'), false],
  ['no state', (back: URL) => back.searchParams.delete('state'), false],
] as const)
  scene(`a redirect with ${what} is refused, and its code is sent nowhere`, async ({ servers, failure }) => {
    servers.settings.redirect = (back) => redirect(back, servers.issuer);
    if (advertised) servers.settings.issuerMetadata = { authorization_response_iss_parameter_supported: true };
    assert.is((await failure()).reason, 'unauthorized');
    assert.equal(servers.tokenRequests(), []);
  });

scene('the right iss is accepted', async ({ servers, client }) => {
  servers.settings.issuerMetadata = { authorization_response_iss_parameter_supported: true };
  servers.settings.redirect = (back) => back.searchParams.set('iss', servers.issuer);
  await (await client()).call('whoami');
});

scene('an error response of the authorization server is reported in its words', async ({ servers, failure }) => {
  servers.settings.redirect = (back) => {
    back.searchParams.delete('code');
    back.searchParams.set('error', 'access_denied');
    back.searchParams.set('error_description', 'not\u001b[31m today');
  };
  const { message } = await failure();
  assert.match(message, 'access_denied (not [31m today)');
  assert.not(message.includes('\u001b'));
  // The error of another issuer is no answer at all (RFC 9207 section 2.4).
  servers.settings.redirect = (back) => {
    back.searchParams.set('error', 'access_denied');
    back.searchParams.set('iss', 'https://evil.example');
  };
  assert.not.match((await failure()).message, 'access_denied');
});

// The client's identity

scene('a client registers once for each issuer, as a native application', async ({ servers, client }) => {
  const tokens = memoryTokens();
  await client({ tokens });
  servers.revokeAccess();
  servers.revokeRefresh();
  await client({ tokens });
  const registrations = servers.requests.filter(({ path }) => path === '/register');
  assert.is(registrations.length, 1);
  const body = JSON.parse(registrations[0]?.body ?? '');
  assert.equal(body.redirect_uris, [REDIRECT]);
  assert.is(body.application_type, 'native');
  assert.equal(body.grant_types, ['authorization_code', 'refresh_token']);
  const authorizations = servers.requests.filter(({ path }) => path === '/authorize');
  assert.is(authorizations.length, 2);
  for (const { params } of authorizations) {
    assert.is(params.get('resource'), servers.url);
    assert.is(params.get('code_challenge_method'), 'S256');
  }
  for (const { params } of servers.tokenRequests()) assert.is(params.get('resource'), servers.url);
});

scene(
  'a client registers for no refresh tokens where the server lists its grants without them',
  async ({ servers, client }) => {
    servers.settings.issuerMetadata = { grant_types_supported: ['authorization_code'] };
    await client();
    const [registration] = servers.requests.filter(({ path }) => path === '/register');
    assert.equal(JSON.parse(registration?.body ?? '').grant_types, ['authorization_code']);
  },
);

scene('a registration that the server has forgotten is made again', async ({ servers, client, failure }) => {
  const tokens = memoryTokens();
  servers.settings.token = () => ({ status: 401, body: { error: 'invalid_client' } });
  assert.match((await failure({ tokens })).message, 'invalid_client');
  servers.settings.token = undefined;
  await (await client({ tokens })).call('whoami');
  assert.is(servers.requests.filter(({ path }) => path === '/register').length, 2);
});

scene(
  'a client that is unknown at its refresh is registered again before the person sees a page',
  async ({ servers, client }) => {
    const tokens = memoryTokens();
    const signedIn = await client({ tokens });
    const first = servers.tokenRequests().at(-1)?.params.get('client_id');
    servers.revokeAccess();
    servers.settings.token = (params) =>
      params.get('client_id') === first ? { status: 401, body: { error: 'invalid_client' } } : undefined;
    await signedIn.call('whoami');
    assert.is(servers.requests.filter(({ path }) => path === '/register').length, 2);
    const asked = servers.requests.filter(({ path }) => path === '/authorize');
    assert.is(asked.length, 2);
  },
);

scene(
  'a client is registered again after a sign-in from whose page nobody came back',
  async ({ servers, client, failure }) => {
    const tokens = memoryTokens();
    servers.settings.refreshTokens = false;
    await client({ tokens });
    servers.revokeAccess();
    // A page that says only to the person that it does not know the client.
    const lost = await failure({ tokens, signInMs: 50, authorize: () => new Promise<URL>(() => {}) });
    assert.match(lost.message, 'no sign-in within');
    await (await client({ tokens })).call('whoami');
    assert.is(servers.requests.filter(({ path }) => path === '/register').length, 2);
  },
);

scene(
  'a metadata document is the id where the server supports it, and else the client registers',
  async ({ servers, client }) => {
    const clientId = 'https://app.example/client.json';
    servers.settings.issuerMetadata = { client_id_metadata_document_supported: true };
    await client({ clientId });
    assert.not(servers.paths('issuer').includes('/register'));
    assert.is(servers.tokenRequests()[0]?.params.get('client_id'), clientId);
    servers.settings.issuerMetadata = {};
    servers.revokeAccess();
    await client({ clientId });
    assert.ok(servers.paths('issuer').includes('/register'));
  },
);

scene('a client without an id is refused where nobody can register', async ({ servers, failure }) => {
  servers.settings.issuerMetadata = { registration_endpoint: undefined };
  assert.match((await failure()).message, 'Register a client there, and pass its clientId');
});

scene('a secret goes only to the issuer that it belongs to', async ({ servers, failure, client }) => {
  const own = { clientId: 'me', clientSecret: 'secret-of-the-client' };
  assert.match(
    (await failure({ ...own, issuer: 'https://as.example' })).message,
    'is registered at https://as.example',
  );
  assert.equal(servers.tokenRequests(), []);
  await client({ ...own, issuer: servers.issuer });
  assert.match(servers.tokenRequests()[0]?.headers.authorization ?? '', /^Basic /);
});

// Scopes

scene(
  'a step-up asks for the union of scopes, and a second demand for the same scope ends it',
  async ({ servers, client }) => {
    servers.settings.resourceMetadata = { scopes_supported: ['read'] };
    const connected = await client();
    await connected.call('admin');
    const asked = (): string[] =>
      servers.requests.filter(({ path }) => path === '/authorize').map(({ params }) => params.get('scope') ?? '');
    assert.equal(asked(), ['read', 'read admin']);
    await connected.call('admin');
    assert.is(asked().length, 2);
    servers.settings.adminScope = 'root';
    servers.settings.token = () => ({
      status: 200,
      body: { access_token: 'access-weak', token_type: 'Bearer', scope: 'read' },
    });
    const error = await clientError(connected.call('admin'));
    assert.ok(['forbidden', 'unauthorized'].includes(error.reason));
    assert.ok(asked().length <= 5, String(asked()));
    assert.is(error.carriedOut, 'no');
  },
);

for (const header of [true, false])
  scene(
    `U-15 a server that rejects every token ${header ? 'with' : 'without'} a challenge gets a bounded number of requests`,
    async ({ servers, failure }) => {
      servers.settings.rejects = true;
      if (!header) {
        servers.settings.challenge = () => undefined;
        servers.settings.namesMetadata = false;
      }
      const { message } = await failure();
      assert.ok(/rejected 3 new tokens in a row|rejected the token with HTTP 401/.test(message), message);
      assert.ok(servers.tokenRequests().length <= 3);
    },
  );

// Refreshes

scene(
  'U-15 a token is refreshed before it expires, the refresh token is rotated, and 50 calls share one refresh',
  async ({ servers, client }) => {
    const clock = new SimulatedClock();
    servers.settings.expiresIn = 100;
    const connected = await client({ clock });
    await connected.call('whoami');
    assert.is(servers.tokenRequests().length, 1);
    await clock.advance(75_000);
    await Promise.all(Array.from({ length: 50 }, () => connected.call('whoami')));
    const refreshes = servers.tokenRequests().slice(1);
    assert.is(refreshes.length, 1);
    await clock.advance(75_000);
    await connected.call('whoami');
    const used = servers
      .tokenRequests()
      .slice(1)
      .map(({ params }) => params.get('refresh_token'));
    assert.is(new Set(used).size, 2);
    assert.is(servers.requests.filter(({ path }) => path === '/authorize').length, 1);
  },
);

scene('U-15 a rejected token is refreshed once for 50 calls, without a person', async ({ servers, client }) => {
  const connected = await client();
  servers.revokeAccess();
  const results = await Promise.all(Array.from({ length: 50 }, () => connected.call('whoami')));
  assert.is(results.length, 50);
  assert.is(servers.tokenRequests().length, 2);
  assert.is(servers.requests.filter(({ path }) => path === '/authorize').length, 1);
});

for (const outage of ['gone', 'failing', 'overloaded', 'failing at its token endpoint'] as const)
  scene(
    `U-15 while the authorization server is ${outage}, calls fail with the reason, and the grant is kept`,
    async ({ servers, client }) => {
      const connected = await client();
      servers.revokeAccess();
      if (outage === 'overloaded' || outage === 'failing at its token endpoint') {
        const status = outage === 'overloaded' ? 429 : 503;
        servers.settings.token = () => ({ status, body: { error: 'temporarily_unavailable' } });
      } else servers.settings.outage = outage;
      const error = await clientError(connected.call('whoami'));
      assert.is(error.reason, 'unauthorized');
      assert.is(error.carriedOut, 'no');
      assert.match(error.message, outage === 'gone' ? servers.issuer : /HTTP 503|temporarily_unavailable/);
      servers.settings.outage = undefined;
      servers.settings.token = undefined;
      await connected.call('whoami');
      assert.is(servers.requests.filter(({ path }) => path === '/authorize').length, 1);
    },
  );

scene(
  'U-15 a token that is still valid is used while it cannot be refreshed, and the server is not asked each time',
  async ({ servers, client }) => {
    const clock = new SimulatedClock();
    servers.settings.expiresIn = 100;
    const connected = await client({ clock });
    await clock.advance(75_000);
    servers.settings.outage = 'failing';
    const before = servers.requests.length;
    for (let at = 0; at < 5; at += 1) await connected.call('whoami');
    // Both places of its metadata, once.
    assert.is(servers.requests.slice(before).filter(({ at }) => at === 'issuer').length, 2);
    await clock.advance(30_000);
    assert.match(
      (await clientError(connected.call('whoami'))).message,
      'the token has expired, and cannot be refreshed now',
    );
    servers.settings.outage = undefined;
    await connected.call('whoami');
    assert.is(servers.requests.filter(({ path }) => path === '/authorize').length, 1);
  },
);

scene('a refresh token that is used up leads to one sign-in', async ({ servers, client }) => {
  const connected = await client();
  servers.revokeAccess();
  servers.revokeRefresh();
  await connected.call('whoami');
  assert.is(servers.requests.filter(({ path }) => path === '/authorize').length, 2);
});

scene(
  'a resource that moves to another authorization server gets nothing of the old grant',
  async ({ servers, client }) => {
    const other = await new SignInFixture('other-').open();
    const connected = await client();
    const before = servers.tokenRequests().length;
    servers.settings.resourceMetadata = { authorization_servers: [other.issuer] };
    servers.revokeAccess();
    // The tokens of the other server are not known here, so that the call fails in the end.
    await clientError(connected.call('whoami'));
    assert.is(servers.tokenRequests().length, before);
    assert.ok(other.paths('issuer').includes('/register'));
    for (const { params } of other.tokenRequests()) assert.match(params.get('refresh_token') ?? 'other-', /^other-/);
    await other.close();
  },
);

scene(
  'U-15 a refresh token is sent to no server but its issuer, also if the metadata of the resource is gone',
  async ({ servers, client }) => {
    const connected = await client();
    servers.revokeAccess();
    servers.settings.places = [METADATA];
    servers.settings.namesMetadata = false;
    await connected.call('whoami');
    assert.is(servers.requests.filter(({ path }) => path === '/authorize').length, 1);
    const atResource = servers.requests.filter(({ at, body }) => at === 'resource' && body.includes('refresh'));
    assert.equal(atResource, []);
  },
);

// Proofs

scene('DPoP: each request has a fresh, signed proof, with the nonces of both servers', async ({ servers, client }) => {
  Object.assign(servers.settings, { proofs: true, issuerNonce: 'of-the-issuer', resourceNonce: 'of-the-resource' });
  const connected = await client();
  await connected.call('whoami');
  await connected.call('whoami');
  const proofs = servers.requests.flatMap(({ headers }) => (typeof headers.dpop === 'string' ? [headers.dpop] : []));
  const ids = proofs.map((proof) => JSON.parse(String(Buffer.from(proof.split('.')[1] ?? '', 'base64url'))).jti);
  assert.is(new Set(ids).size, ids.length);
  for (const proof of proofs) assert.ok(await isSigned(proof));
  servers.settings.resourceNonce = 'the-next';
  await connected.call('whoami');
  assert.is(servers.requests.filter(({ path }) => path === '/authorize').length, 1);
});

scene('DPoP: a bearer token is refused where the program demands proofs', async ({ failure }) => {
  assert.match(
    (await failure({ dpop: true })).message,
    'expected a token that is bound to a key (DPoP), got a bearer token',
  );
});

// Without a person

for (const [what, methods, check] of [
  ['in a header', ['client_secret_basic'], /^Basic bWUlMjAxOnNlY3JldC1vZi10aGUtY2xpZW50$/],
  ['in the body', ['client_secret_post'], undefined],
] as const)
  scene(`client credentials are sent ${what}`, async ({ servers, client }) => {
    servers.settings.issuerMetadata = { token_endpoint_auth_methods_supported: methods };
    await client({
      grant: 'client_credentials',
      clientId: 'me 1',
      clientSecret: 'secret-of-the-client',
      scopes: ['nightly'],
    });
    const [request] = servers.tokenRequests();
    assert.is(request?.params.get('grant_type'), 'client_credentials');
    assert.is(request?.params.get('scope'), 'nightly');
    assert.is(request?.params.get('resource'), servers.url);
    if (check) assert.match(request?.headers.authorization ?? '', check);
    else assert.is(request?.params.get('client_secret'), 'secret-of-the-client');
    assert.is(servers.requests.filter(({ path }) => path === '/authorize').length, 0);
  });

scene('a private key signs an assertion for the issuer', async ({ servers, client }) => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' });
  await client({ grant: 'client_credentials', clientId: 'me', privateKey: String(pem) });
  const assertion = servers.tokenRequests()[0]?.params.get('client_assertion') ?? '';
  const payload = JSON.parse(String(Buffer.from(assertion.split('.')[1] ?? '', 'base64url')));
  assert.is(payload.iss, 'me');
  assert.ok([payload.aud].flat().includes(servers.issuer));
});

scene(
  'the token of a workload is exchanged, and an error ends it without another attempt',
  async ({ servers, client, failure }) => {
    let asked = 0;
    const assertion = (): string => {
      asked += 1;
      return 'of-the-platform';
    };
    await client({ clientId: 'me', assertion });
    const [request] = servers.tokenRequests();
    assert.is(request?.params.get('assertion'), 'of-the-platform');
    assert.is(request?.params.get('grant_type'), 'urn:ietf:params:oauth:grant-type:jwt-bearer');
    servers.settings.token = () => ({
      status: 400,
      body: { error: 'invalid_grant', error_description: 'wrong workload' },
    });
    const before = servers.tokenRequests().length;
    assert.match((await failure({ clientId: 'me', assertion })).message, 'invalid_grant (wrong workload)');
    assert.is(servers.tokenRequests().length, before + 1);
    assert.is(asked, 2);
  },
);

scene('the token of an identity provider becomes an ID-JAG, and that a token', async ({ servers, client, failure }) => {
  const got: URLSearchParams[] = [];
  let status = 200;
  const provider = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    got.push(new URLSearchParams(body));
    response
      .writeHead(status)
      .end(JSON.stringify(status === 200 ? { access_token: 'the-jag' } : { error: 'login_required' }));
  }).listen(0, '127.0.0.1');
  await once(provider, 'listening');
  const address = provider.address();
  const exchange = {
    tokenEndpoint: `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/token`,
    clientId: 'at-the-provider',
    idToken: () => 'the-id-token',
  };
  await client({ clientId: 'me', clientSecret: 'secret-of-the-client', exchange });
  assert.is(got[0]?.get('audience'), servers.issuer);
  assert.is(got[0]?.get('resource'), servers.url);
  assert.is(got[0]?.get('subject_token'), 'the-id-token');
  assert.is(servers.tokenRequests()[0]?.params.get('assertion'), 'the-jag');
  status = 400;
  assert.match((await failure({ clientId: 'me', exchange })).message, 'rejected the token exchange: login_required');
  provider.close();
});

// Tokens stay where they belong

scene(
  'S-51 a redirect to another origin gets neither headers nor tokens, and one within the origin gets the token',
  async ({ servers, client }) => {
    const stolen: unknown[] = [];
    const thief = createServer((request, response) => {
      stolen.push(request.headers);
      response.writeHead(401).end();
    }).listen(0, '127.0.0.1');
    await once(thief, 'listening');
    const address = thief.address();
    const connected = await client();
    servers.settings.redirectTo = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/mcp`;
    assert.match((await clientError(connected.call('whoami'))).message, 'got a redirect (HTTP 307)');
    assert.equal(stolen, []);
    servers.settings.redirectTo = '/moved/mcp';
    const before = servers.requests.length;
    await connected.call('whoami');
    const moved = servers.requests.slice(before).filter(({ path }) => path === '/moved/mcp');
    assert.match(moved[0]?.headers.authorization ?? '', /^Bearer access-/);
    assert.is(servers.requests.filter(({ path }) => path === '/authorize').length, 1);
    thief.close();
  },
);

scene('S-51 no token, code or secret is in a record, a log line or an error', async ({ servers, client }) => {
  const texts: string[] = [];
  const own = { clientId: 'me', clientSecret: 'secret-of-the-client' };
  const connected = await client(own, {
    log: (_level, message) => void texts.push(message),
    inspect: (record) => void texts.push(JSON.stringify(record)),
  });
  await connected.call('whoami');
  await connected.call('admin').catch((error: unknown) => texts.push(inspect(error, { depth: 12 })));
  // A response that the library rejects contains the tokens that were issued.
  const leak = {
    status: 200,
    body: { access_token: 'access-leak', refresh_token: 'refresh-leak', token_type: 'unheard-of' },
  };
  const secrets = [...servers.secrets, 'access-leak', 'refresh-leak'];
  servers.revokeAccess();
  for (const refreshes of [true, false]) {
    servers.settings.token = (params) =>
      refreshes || params.get('grant_type') === 'authorization_code'
        ? leak
        : { status: 400, body: { error: 'invalid_grant' } };
    await connected.call('whoami').catch((error: unknown) => texts.push(inspect(error, { depth: 12 })));
  }
  assert.ok(texts.some((text) => text.includes('whoami')));
  assert.ok(texts.some((text) => text.includes('ClientError')));
  const codes = servers.tokenRequests().flatMap(({ params }) => params.get('code') ?? []);
  for (const secret of [
    ...secrets,
    ...codes,
    ...servers.tokenRequests().flatMap(({ params }) => params.get('code_verifier') ?? []),
  ])
    assert.equal(
      texts.filter((text) => text.includes(secret)),
      [],
      secret,
    );
});

// The end

for (const seam of ['authorize', 'browser'] as const)
  test(`a sign-in with the default of the ${seam} ends when the client closes`, async () => {
    const servers = await new SignInFixture().open();
    let shown: (() => void) | undefined;
    const asked = new Promise<void>((resolve) => {
      shown = resolve;
    });
    const auth =
      seam === 'authorize'
        ? oauth({
            redirectUrl: REDIRECT,
            authorize: () => {
              shown?.();
              return new Promise(() => {});
            },
          })
        : oauth({ openBrowser: false, show: () => shown?.() });
    servers.settings.namesMetadata = false;
    const controller = new AbortController();
    const pending = auth
      .authorize({ status: 401, header: undefined, resource: new URL(servers.url) }, controller.signal)
      .then(() => 'signed in', String);
    await asked;
    controller.abort();
    assert.match(await pending, 'the sign-in was cancelled');
    await servers.close();
  });

test('an unfinished sign-in ends after signInMs', async () => {
  const servers = await new SignInFixture().open();
  const clock = new SimulatedClock();
  let shown: (() => void) | undefined;
  const asked = new Promise<void>((resolve) => {
    shown = resolve;
  });
  const auth = oauth({ clock, signInMs: 60_000, openBrowser: false, show: () => shown?.() });
  const pending = auth
    .authorize({ status: 401, header: undefined, resource: new URL(servers.url) }, new AbortController().signal)
    .then(() => 'signed in', String);
  await asked;
  await clock.advance(60_001);
  assert.match(await pending, 'no sign-in within 60 s. The option is signInMs');
  assert.is(clock.timers, 0);
  await servers.close();
});

test('the page of the sign-in ignores other paths, methods and states, and reports an error response', async () => {
  const servers = await new SignInFixture().open();
  let shown: ((address: string) => void) | undefined;
  const asked = new Promise<string>((resolve) => {
    shown = resolve;
  });
  const auth = oauth({ openBrowser: false, show: (address) => shown?.(address) });
  const pending = auth
    .authorize({ status: 401, header: undefined, resource: new URL(servers.url) }, new AbortController().signal)
    .then(() => 'signed in', String);
  const { searchParams } = new URL(await asked);
  const callback = searchParams.get('redirect_uri') ?? '';
  const state = searchParams.get('state') ?? '';
  const ask = async (address: string, method = 'GET'): Promise<string> => {
    const response = await fetch(address, { method });
    return `${response.status} ${await response.text()}`;
  };
  assert.match(await ask(new URL('/', callback).href), /^404 /);
  assert.match(await ask(`${callback}?state=${state}&code=x`, 'POST'), /^404 /);
  assert.match(await ask(`${callback}?state=wrong&code=x`), /^400 .*belongs to no sign-in/);
  assert.match(await ask(`${callback}?code=x`), /^400 /);
  const page = await ask(`${callback}?state=${state}&error=access_denied&error_description=<script>`);
  assert.match(page, /^200 .*The sign-in failed/);
  assert.not(page.includes('script>'));
  assert.match(await pending, 'access_denied');
  await servers.close();
});

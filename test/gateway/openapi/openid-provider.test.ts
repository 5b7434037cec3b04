/** A real OpenID provider: discovery, the code flow with its forms, refreshed tokens and tokens of the program. It is a process of its own. */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath, pathToFileURL } from 'node:url';
import * as assert from 'uvu/assert';
import { isObject, type JsonObject } from '../../../src/core/protocol/json.ts';
import type { SecurityScheme } from '../../../src/gateway/openapi/operation.ts';
import { havePeers, peerFile } from '../../client/peers.ts';
import { accept } from '../../features/asking/support.ts';
import { suite } from '../../harness/door.ts';
import { textOf } from '../../harness/results.ts';
import { until } from '../../harness/wait.ts';
import { type ApiStage, type ApiStageOptions, apiStage } from './api-stage.ts';

const test = suite('a real OpenID provider');
const PROGRAM = fileURLToPath(new URL('../../fixtures/openapi/oidc-server.mjs', import.meta.url));
const CAN_OPEN: JsonObject = { elicitation: { url: {} } };
const CLIENT = { clientId: 'desk', clientSecret: 'desk-secret-that-is-long-enough' } as const;

interface Provider {
  readonly issuer: string;
  close(): Promise<void>;
}

/** The providers of this file, by their paths. */
const providers = new Map<string, Promise<Provider>>();

test.after(async () => {
  for (const started of providers.values()) await (await started).close();
});

/**
 * One provider serves all tests of a path: its process takes 0.4 s of processor time to start.
 *
 * @param path below which the provider is, such as `/tenant`
 */
function provider(path: string): Promise<Provider> {
  const started = providers.get(path) ?? startProvider(path);
  providers.set(path, started);
  return started;
}

async function startProvider(path: string): Promise<Provider> {
  const library = pathToFileURL(peerFile('oidc-provider/lib/index.js')).href;
  const child: ChildProcessByStdio<Writable, Readable, null> = spawn(process.execPath, [PROGRAM, library, path], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const { value: issuer } = await lines.next();
  return {
    issuer: String(issuer),
    close: () =>
      new Promise((resolve) => {
        child.once('close', () => resolve());
        child.stdin.end();
      }),
  };
}

/** A browser with cookies: follows redirects, fills in forms, and stops before the address of the gateway. */
class Browser {
  readonly #cookies = new Map<string, string>();

  async get(
    address: string,
    form?: Readonly<Record<string, string>>,
  ): Promise<{ readonly url: URL; readonly text: string }> {
    let url = new URL(address);
    let body = form && new URLSearchParams(form);
    for (let steps = 0; steps < 20; steps += 1) {
      if (url.pathname === '/oauth/callback') return { url, text: '' };
      const response = await fetch(url, {
        method: body ? 'POST' : 'GET',
        ...(body && { body }),
        redirect: 'manual',
        headers: { cookie: [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ') },
      });
      for (const line of response.headers.getSetCookie()) {
        const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
        if (value === '') this.#cookies.delete(name);
        else this.#cookies.set(name, value);
      }
      const location = response.headers.get('location');
      if (location === null) return { url, text: await response.text() };
      url = new URL(location, url);
      body = undefined;
    }
    throw new Error(`expected an end of redirects, got ${url.href}`);
  }

  /** Signs in at the forms of the provider. @returns the address of the gateway to which it leads */
  async signIn(address: string, name: string): Promise<URL> {
    let page = await this.get(address);
    for (let steps = 0; steps < 5 && page.url.pathname !== '/oauth/callback'; steps += 1) {
      const [, action = ''] = /<form[^>]*action="([^"]+)"/.exec(page.text) ?? [];
      const [, prompt = ''] = /name="prompt" value="([^"]+)"/.exec(page.text) ?? [];
      page = await this.get(new URL(action, page.url).href, { prompt, login: name, password: 'any' });
    }
    return page.url;
  }
}

/** What the provider knows of a token. */
async function introspected(issuer: string, token: string): Promise<Readonly<Record<string, unknown>>> {
  const basic = Buffer.from(`${CLIENT.clientId}:${CLIENT.clientSecret}`).toString('base64');
  const response = await fetch(`${issuer}/token/introspection`, {
    method: 'POST',
    headers: { authorization: `Basic ${basic}` },
    body: new URLSearchParams({ token }),
  });
  const found: unknown = await response.json();
  return isObject(found) ? found : {};
}

/** An API that asks the provider whose token it has got. */
async function apiOf(issuer: string) {
  const tokens = new Set<string>();
  const server = createServer((request, response) => {
    const authorization = String(request.headers.authorization ?? '');
    void introspected(issuer, authorization.replace(/^Bearer /, '')).then((found) => {
      if (found.active === true) tokens.add(authorization);
      response.writeHead(found.active === true ? 200 : 401, { 'content-type': 'application/json' });
      const { sub, client_id: client, scope } = found;
      response.end(
        JSON.stringify(found.active === true ? { who: sub ?? client, scope } : { message: 'no valid token' }),
      );
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const api = {
    url: `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`,
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
  return { api, tokens };
}

async function staged(
  scheme: (issuer: string) => SecurityScheme,
  auth: ApiStageOptions['auth'],
  run: (desk: ApiStage, tokens: ReadonlySet<string>) => Promise<void>,
  { path = '', scopes = ['openid', 'read:pets'] }: { readonly path?: string; readonly scopes?: readonly string[] } = {},
): Promise<void> {
  const { issuer } = await provider(path);
  const { api, tokens } = await apiOf(issuer);
  const desk = await apiStage(api.url, {
    ...{ schemes: { Oidc: scheme(issuer) }, auth },
    request: { path: '/x', security: [[{ scheme: 'Oidc', scopes }]] },
  });
  try {
    await run(desk, tokens);
  } finally {
    await desk.close();
    await api.close();
  }
}

const discovered = (issuer: string): SecurityScheme => ({
  type: 'openIdConnect',
  url: `${issuer}/.well-known/openid-configuration`,
});
const named = (issuer: string): SecurityScheme => ({
  type: 'oauth2',
  flows: {
    authorizationCode: { authorizationUrl: `${issuer}/auth`, tokenUrl: `${issuer}/token`, scopes: ['read:pets'] },
    clientCredentials: { tokenUrl: `${issuer}/token`, scopes: ['read:pets'] },
  },
});

/** Calls the tool, and signs in as this person if it asks for a page. */
async function called(desk: ApiStage, person: string): Promise<JsonObject> {
  const result = await desk.send({}, CAN_OPEN);
  if (result.resultType !== 'input_required') return result;
  const { inputRequests, requestState } = result;
  const [[key = '', question] = []] = Object.entries(Object(inputRequests));
  const url = String(Object(Object(question).params).url);
  const back = await new Browser().signIn(url, person);
  assert.is((await fetch(back)).status, 200, back.href);
  return desk.send({ requestState: requestState ?? '', inputResponses: { [key]: accept({}) } }, CAN_OPEN);
}

if (!havePeers)
  test.skip('people and programs sign in at oidc-provider', 'npm ci --ignore-scripts --prefix bench/peers installs it');
else {
  for (const [title, scheme, path] of [
    ['that is discovered', discovered, ''],
    ['that is discovered below a path', discovered, '/tenant'],
    ['whose addresses the document names', named, ''],
  ] as const)
    (path === '' && scheme === discovered ? test : test.full)(
      `a person signs in at a provider ${title}, and expired tokens are refreshed without a question`,
      () =>
        staged(
          scheme,
          { Oidc: CLIENT },
          async (desk, tokens) => {
            const first = await called(desk, 'ada');
            assert.equal(first.structuredContent, { who: 'ada', scope: 'openid read:pets' }, textOf(first));
            // A token is good for a second.
            await until(async () => {
              const again = await desk.send({}, CAN_OPEN);
              assert.equal(again.structuredContent, { who: 'ada', scope: 'openid read:pets' }, JSON.stringify(again));
              return tokens.size > 1;
            });
            assert.not.match(desk.told.join('\n'), [...tokens][0]?.replace('Bearer ', '') ?? 'no token');
          },
          { path },
        ),
    );

  test('the program signs in itself, and gets another token when one has expired', () =>
    staged(
      discovered,
      { Oidc: { ...CLIENT, grant: 'client_credentials' } },
      async (desk, tokens) => {
        let result = await desk.call();
        // On a busy machine, a token may expire on its way.
        await until(async () => {
          result = await desk.call();
          return tokens.size > 1 && result.isError !== true;
        });
        assert.equal(result.structuredContent, { who: 'desk', scope: 'read:pets' }, textOf(result));
      },
      { scopes: ['read:pets'] },
    ));

  test.full('a person who aborts the sign-in gets an error of the call, and nothing is sent', () =>
    staged(discovered, { Oidc: CLIENT }, async (desk, tokens) => {
      const result = await desk.send({}, CAN_OPEN);
      const { inputRequests, requestState } = result;
      const [[key = '', question] = []] = Object.entries(Object(inputRequests));
      const browser = new Browser();
      const page = await browser.get(String(Object(Object(question).params).url));
      const [, abort = ''] = /href="([^"]+\/abort)"/.exec(page.text) ?? [];
      const back = await browser.get(new URL(abort, page.url).href);
      assert.match(back.url.search, /error=access_denied/);
      await fetch(back.url);
      const answered = await desk.send(
        { requestState: requestState ?? '', inputResponses: { [key]: accept({}) } },
        CAN_OPEN,
      );
      assert.match(textOf(answered), /the sign-in failed/);
      assert.is(tokens.size, 0);
    }),
  );

  /** Documents whose OpenID configuration cannot be used. */
  for (const [title, url, words] of [
    [
      'of another issuer',
      (issuer: string) => `${issuer}/other/.well-known/openid-configuration`,
      /metadata|issuer|HTTP/,
    ],
    ['that no server has', () => 'http://127.0.0.1:9/.well-known/openid-configuration', /metadata|reached|sign-in/],
  ] as const)
    test.full(`the OpenID configuration ${title} is an error in words, and nothing is sent`, () =>
      staged(
        (issuer) => ({ type: 'openIdConnect', url: url(issuer) }),
        { Oidc: CLIENT },
        async (desk, tokens) => {
          const result = await desk.send({}, CAN_OPEN);
          assert.is(result.isError, true, JSON.stringify(result));
          assert.match(textOf(result), words);
          assert.is(tokens.size, 0);
        },
      ),
    );
}

/** Sign-ins of callers at an upstream: whose grant a call has, the question, the browser that returns, and restarts in between. */
import { mkdtempSync, rmSync } from 'node:fs';
import { get } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { fileTokens } from '../../../src/client/oauth/file-tokens.ts';
import { oauth } from '../../../src/client/oauth/resource-grant.ts';
import { memoryTokens, type TokenStore } from '../../../src/client/oauth/token-store.ts';
import { connect as connectClient } from '../../../src/client/open-client.ts';
import type { JsonObject } from '../../../src/core/protocol/json.ts';
import { META } from '../../../src/core/protocol/meta.ts';
import type { UpstreamAuth } from '../../../src/gateway/mounts/upstream-grants.ts';
import { createServer, type HttpOptions, http, type Server, socket } from '../../../src/index.ts';
import { SignInFixture } from '../../client/sign-in-fixture.ts';
import { accept, type InputRequired, SECRET } from '../../features/asking/support.ts';
import { suite } from '../../harness/door.ts';
import { textOf } from '../../harness/results.ts';
import { times } from '../../harness/scale.ts';

const test = suite('sign-ins at an upstream');
const RETURN = 'https://desk.example.com/oauth/callback';
const CAN_OPEN: JsonObject = { elicitation: { url: {} } };
const BY_HEADER: HttpOptions = {
  authenticate: ({ header }) => header('x-user') ?? 'anonymous',
  allowedHosts: ['desk.example.com'],
  signIn: { url: RETURN, identify: ({ header }) => header('x-browser') },
};

interface GatewayOptions {
  readonly auth?: UpstreamAuth;
  readonly tokens?: TokenStore;
  readonly http?: HttpOptions;
  /** The operator has signed in with `troupe login`: the catalogue can be read. Default true. */
  readonly operator?: boolean;
}

/** A server that mounts the upstream as "gh". */
class Gateway {
  readonly told: string[] = [];
  readonly server: Server;
  readonly ready: Promise<unknown>;

  constructor(upstream: SignInFixture, options: GatewayOptions = {}) {
    const { auth, tokens = memoryTokens(), operator = auth === undefined || !('token' in Object(auth)) } = options;
    this.server = createServer({
      name: 'desk',
      version: '1.0.0',
      keys: [SECRET],
      log: (level, message) => void this.told.push(`${level}: ${message}`),
      http: options.http ?? BY_HEADER,
    });
    const login = async (): Promise<void> => {
      const authorize = { authorize: upstream.authorize, redirectUrl: 'http://127.0.0.1:7777/callback' };
      const target = { url: upstream.url, auth: oauth({ tokens, ...authorize }) };
      await (await connectClient(target, { log() {} })).close();
      upstream.requests.length = 0;
    };
    this.ready = (operator && !(auth && 'grant' in auth) ? login() : Promise.resolve()).then(() =>
      this.server.mount('gh', upstream.url, {
        auth: auth === undefined ? { tokens } : isPlain(auth) ? { tokens, ...auth } : auth,
      }),
    );
  }

  /** Calls a tool as this person. */
  async call(
    person: string,
    params: JsonObject = {},
    capabilities = CAN_OPEN,
    tool = 'gh_whoami',
  ): Promise<JsonObject> {
    return this.request(person, 'tools/call', { name: tool, arguments: {}, ...params }, capabilities);
  }

  async request(person: string, method: string, params: JsonObject, capabilities = CAN_OPEN): Promise<JsonObject> {
    await this.ready;
    const _meta = {
      [META.protocolVersion]: '2026-07-28',
      [META.clientInfo]: { name: 'test', version: '1' },
      [META.clientCapabilities]: capabilities,
    };
    const response = await this.server.fetch(
      new Request('https://desk.example.com/mcp', {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          'mcp-protocol-version': '2026-07-28',
          'mcp-method': method,
          ...(typeof params.name === 'string' ? { 'mcp-name': params.name } : {}),
          host: 'desk.example.com',
          'x-user': person,
        },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta } }),
      }),
    );
    const text = await response.text();
    const lines = text.split('\n').filter((each) => each.startsWith('data: {'));
    const { result, error } = JSON.parse((lines.at(-1) ?? `data: ${text}`).slice('data: '.length));
    if (error) throw new Error(JSON.stringify(error));
    return result;
  }

  /** Calls a tool, which must ask the person to open a page. */
  async asked(
    person: string,
    tool?: string,
  ): Promise<{ readonly url: string; readonly state: string; readonly key: string }> {
    const result = await this.call(person, {}, CAN_OPEN, tool);
    assert.is(result.resultType, 'input_required', JSON.stringify(result));
    const { inputRequests, requestState } = result as JsonObject & InputRequired;
    const [[key, question] = []] = Object.entries(inputRequests);
    assert.is(question?.params.mode, 'url');
    assert.match(String(question?.params.message), /^\[gh] Sign in at 127\.0\.0\.1:\d+, so that/);
    return { url: String(question?.params.url), state: requestState, key: key ?? '' };
  }

  answer(
    person: string,
    { state, key }: { state: string; key: string },
    reply: JsonObject,
    tool?: string,
  ): Promise<JsonObject> {
    return this.call(person, { requestState: state, inputResponses: { [key]: reply } }, CAN_OPEN, tool);
  }

  /** Opens the page of a question, signs in, and follows the redirect as the browser of `person`. */
  async browse(url: string, person: string | undefined): Promise<number> {
    return this.receive(await signedInAt(url), person);
  }

  async receive(query: string, person: string | undefined): Promise<number> {
    await this.ready;
    const headers = { host: 'desk.example.com', ...(person === undefined ? {} : { 'x-browser': person }) };
    const response = await this.server.fetch(new Request(`${RETURN}?${query}`, { headers }));
    const page = await response.text();
    for (const [, value = ''] of new URLSearchParams(query))
      assert.not(page.includes(value), 'the page shows the request');
    return response.status;
  }

  close(): Promise<void> {
    return this.server.close();
  }
}

function isPlain(auth: UpstreamAuth): auth is Exclude<UpstreamAuth, false> {
  return auth !== false && !('token' in auth) && !('headers' in auth);
}

/** Signs in, and returns the query of the redirect. */
function signedInAt(url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    get(url, { agent: false }, (response) => {
      response.resume();
      resolve(new URL(response.headers.location ?? '').search.slice(1));
    }).on('error', reject);
  });
}

function scene(
  title: string,
  work: (upstream: SignInFixture, gateway: (options?: GatewayOptions) => Gateway) => Promise<void>,
): void {
  test(title, async () => {
    const upstream = await new SignInFixture().open();
    const open: Gateway[] = [];
    try {
      await work(upstream, (options) => {
        const made = new Gateway(upstream, options);
        open.push(made);
        return made;
      });
    } finally {
      for (const each of open) await each.close();
      await upstream.close();
    }
  });
}

/** The tokens of tool calls at the upstream, in order. */
function tokensOf(upstream: SignInFixture): readonly (string | undefined)[] {
  return upstream.requests
    .filter(({ path, headers }) => path === '/mcp' && headers['mcp-method'] === 'tools/call')
    .map(({ headers }) => headers.authorization);
}

scene('a call waits for the person who makes it, and then runs with the grant of that person', async (_, gateway) => {
  const desk = gateway();
  const question = await desk.asked('ada');
  assert.is(new URL(question.url).searchParams.get('redirect_uri'), RETURN);
  const answered = desk.answer('ada', question, accept({}));
  assert.is(await desk.browse(question.url, 'ada'), 200);
  assert.is(textOf(await answered), 'ada');
  // The next call asks nothing.
  assert.is(textOf(await desk.call('ada')), 'ada');
});

scene(
  'S-71 two people have two grants on one connection, and no token of one is sent for the other',
  async (upstream, gateway) => {
    const desk = gateway();
    for (const person of ['ada', 'bob']) {
      const question = await desk.asked(person);
      await desk.browse(question.url, person);
      assert.is(textOf(await desk.answer(person, question, accept({}))), 'ada');
    }
    upstream.requests.length = 0;
    await Promise.all(['ada', 'bob', 'ada', 'bob'].map((person) => desk.call(person)));
    const [first, second, ...rest] = [...new Set(tokensOf(upstream))];
    assert.equal(rest, []);
    assert.ok(first !== undefined && second !== undefined);
    assert.is(tokensOf(upstream).filter((token) => token === first).length, 2);
    // The downstream credentials never go up.
    assert.equal(
      upstream.requests.filter(({ headers }) => 'x-user' in headers),
      [],
    );
  },
);

scene(
  'S-70 the browser of another person ends no sign-in: an address that was sent to a victim grants nothing',
  async (upstream, gateway) => {
    const desk = gateway();
    const question = await desk.asked('mallory');
    assert.is(await desk.browse(question.url, 'ada'), 403);
    assert.is(await desk.browse(question.url, undefined), 401);
    assert.equal(upstream.tokenRequests(), []);
    assert.match(desk.told.join(), 'the browser of another person returned');
  },
);

scene(
  'S-70 an address ends one sign-in once, and a state that this server has not sealed ends none',
  async (upstream, gateway) => {
    const desk = gateway();
    const question = await desk.asked('ada');
    const query = await signedInAt(question.url);
    const forged = new URLSearchParams(query);
    forged.set('state', 'ada');
    assert.is(await desk.receive(String(forged), 'ada'), 400);
    const results = await Promise.all([desk.receive(query, 'ada'), desk.receive(query, 'ada')]);
    assert.equal([...results].sort(), [200, 400]);
    assert.is(await desk.receive(query, 'ada'), 400);
    assert.is(upstream.tokenRequests().length, 1);
    const other = await desk.asked('bob');
    const mixed = new URLSearchParams(await signedInAt(other.url));
    mixed.set('state', String(new URL(question.url).searchParams.get('state')));
    assert.is(await desk.receive(String(mixed), 'ada'), 400, 'the state of another sign-in');
  },
);

scene('calls of one person at the same time share one sign-in', async (upstream, gateway) => {
  const desk = gateway();
  const questions = await Promise.all([1, 2, 3].map(() => desk.asked('ada')));
  assert.is(new Set(questions.map(({ url }) => url)).size, 1);
  const answers = questions.map((question) => desk.answer('ada', question, accept({})));
  await desk.browse(questions[0]?.url ?? '', 'ada');
  assert.equal((await Promise.all(answers)).map(textOf), ['ada', 'ada', 'ada']);
  assert.is(upstream.tokenRequests().length, 1);
});

scene('the server restarts between the question, the browser and the answer', async (upstream, gateway) => {
  const tokens = memoryTokens();
  const first = gateway({ tokens });
  const question = await first.asked('ada');
  await first.close();
  const second = gateway({ tokens, operator: false });
  assert.is(await second.browse(question.url, 'ada'), 200);
  await second.close();
  const third = gateway({ tokens, operator: false });
  assert.is(textOf(await third.answer('ada', question, accept({}))), 'ada');
  assert.is(upstream.tokenRequests().length, 1);
});

scene('a token that ends is refreshed without a question', async (upstream, gateway) => {
  const desk = gateway();
  const question = await desk.asked('ada');
  await desk.browse(question.url, 'ada');
  await desk.answer('ada', question, accept({}));
  upstream.revokeAccess();
  assert.equal((await Promise.all([1, 2, 3, 4].map(() => desk.call('ada')))).map(textOf), ['ada', 'ada', 'ada', 'ada']);
  assert.is(upstream.tokenRequests().filter(({ params }) => params.get('grant_type') === 'refresh_token').length, 1);
});

scene('a call that needs more rights asks again, with the scopes so far and the new one', async (_, gateway) => {
  const desk = gateway({ auth: { scopes: ['read'] } });
  const first = await desk.asked('ada');
  await desk.browse(first.url, 'ada');
  await desk.answer('ada', first, accept({}));
  const second = await desk.asked('ada', 'gh_admin');
  assert.is(new URL(second.url).searchParams.get('scope'), 'read admin');
  const answered = desk.answer('ada', second, accept({}), 'gh_admin');
  await desk.browse(second.url, 'ada');
  assert.is(textOf(await answered), 'done');
});

scene(
  'an upstream that rejects every token gets a bounded number of sign-ins for one call',
  async (upstream, gateway) => {
    const desk = gateway();
    await desk.request('ada', 'tools/list', {});
    upstream.settings.rejects = true;
    upstream.settings.refreshTokens = false;
    let result = await desk.call('ada');
    let asked = 0;
    while (result.resultType === 'input_required' && asked < 10) {
      asked += 1;
      const { inputRequests, requestState } = result as JsonObject & InputRequired;
      const [[key = '', question] = []] = Object.entries(inputRequests);
      await desk.browse(String(question?.params.url), 'ada');
      result = await desk.answer('ada', { state: requestState, key }, accept({}));
    }
    assert.is(asked, 3);
    assert.is(result.isError, true);
  },
);

scene('who declines, and whose client opens no pages, gets words', async (_, gateway) => {
  const desk = gateway();
  const question = await desk.asked('ada');
  const declined = await desk.answer('ada', question, { action: 'decline' });
  assert.is(declined.isError, true);
  assert.match(textOf(declined), 'declined');
  const result = await desk.call('bob', {}, {});
  assert.is(result.isError, true);
  assert.match(
    textOf(result),
    /open this address in a browser, then repeat the call: http:\/\/127\.0\.0\.1:\d+\/authorize\?/,
  );
});

scene('no caller signs in at a server that cannot tell whose browser returns', async (upstream, gateway) => {
  const { signIn: _, ...withoutPage } = BY_HEADER;
  for (const [person, options] of [
    ['anonymous', BY_HEADER],
    ['ada', withoutPage],
  ] as const) {
    const result = await gateway({ http: options }).call(person);
    assert.is(result.isError, true);
    assert.match(textOf(result), 'http.signIn');
  }
  assert.equal(upstream.tokenRequests(), []);
});

scene('on loopback without authentication, the person at this machine signs in', async (_, gateway) => {
  const desk = gateway({ http: {} });
  await desk.ready;
  const transport = http({ port: 0 });
  await desk.server.listen(transport);
  const opened: string[] = [];
  const client = await connectClient(transport.url, {
    elicitUrl: ({ url }) => {
      opened.push(url);
      void signedInAt(url).then((query) => fetch(`${new URL(transport.url).origin}/oauth/callback?${query}`));
      return 'accept';
    },
  });
  assert.is(textOf(await client.call('gh_whoami')), 'ada');
  assert.is(
    new URL(opened[0] ?? '').searchParams.get('redirect_uri'),
    `${new URL(transport.url).origin}/oauth/callback`,
  );
  await client.close();
});

scene(
  'the user of a local client returns to a loopback port, in a session and without, also as the only client',
  async (_, gateway) => {
    for (const [eras, oneClient] of [
      ['legacy', false],
      ['modern', false],
      ['legacy', true],
      ['modern', true],
    ] as const) {
      const desk = gateway({ operator: false });
      await desk.ready;
      const folder = mkdtempSync(join(tmpdir(), 'troupe-sign-in-'));
      const path = join(folder, 'desk.sock');
      await desk.server.listen(Object.assign(socket(path), { oneClient }));
      const client = await connectClient(
        { socket: path },
        {
          eras,
          elicitUrl: ({ url }) => {
            const back = String(new URL(url).searchParams.get('redirect_uri'));
            assert.match(back, /^http:\/\/127\.0\.0\.1:\d+\/oauth\/callback$/);
            void signedInAt(url).then((query) => fetch(`${back}?${query}`));
            return 'accept';
          },
        },
      );
      const listed = async (): Promise<readonly string[]> =>
        (await client.tools({ fresh: true })).map(({ name }) => name).sort();
      // Without a grant the upstream shows no catalogue.
      assert.equal(await listed(), ['gh_sign_in']);
      assert.match(textOf(await client.call('gh_sign_in')), 'Signed in to gh');
      assert.equal(await listed(), ['gh_admin', 'gh_whoami']);
      assert.is(textOf(await client.call('gh_whoami')), 'ada');
      await client.close();
      await desk.close();
      rmSync(folder, { recursive: true });
    }
  },
);

scene('the reason of a failed sign-in reaches the call, and not the page', async (upstream, gateway) => {
  const desk = gateway();
  await desk.request('ada', 'tools/list', {});
  upstream.settings.redirect = (back) => {
    back.searchParams.delete('code');
    back.searchParams.set('error', 'access_denied');
  };
  const question = await desk.asked('ada');
  assert.is(await desk.browse(question.url, 'ada'), 400);
  assert.match(textOf(await desk.answer('ada', question, accept({}))), 'gh: the sign-in failed: ');
});

scene('a program supplies a token for each principal, and no other person signs in', async (upstream, gateway) => {
  const tokens = new Map<string | undefined, string>();
  for (const principal of [undefined, 'ada', 'bob']) tokens.set(principal, await mint(upstream));
  const desk = gateway({ auth: { token: (principal) => tokens.get(principal) } });
  assert.is(textOf(await desk.call('ada')), 'ada');
  assert.is(textOf(await desk.call('bob')), 'ada');
  assert.equal(tokensOf(upstream), [`Bearer ${tokens.get('ada')}`, `Bearer ${tokens.get('bob')}`]);
  const result = await desk.call('eve');
  assert.is(result.isError, true);
  assert.match(textOf(result), 'rejected the token of this caller');
});

scene('U-14 gateways that share a grant refresh one rotating token in turn', async (upstream, gateway) => {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-sign-in-'));
  const desks = [1, 2, 3].map((nth) => gateway({ tokens: fileTokens(join(folder, 'tokens.db')), operator: nth === 1 }));
  const [first] = desks;
  const question = await first?.asked('ada');
  assert.is(await first?.browse(question?.url ?? '', 'ada'), 200);
  for (let round = 0; round < times(4, { quick: 2 }); round += 1) {
    upstream.revokeAccess();
    const results = await Promise.all([...desks, ...desks].map((desk) => desk.call('ada')));
    assert.equal([...new Set(results.map(textOf))], ['ada']);
  }
  const used = upstream
    .tokenRequests()
    .filter(({ params }) => params.get('grant_type') === 'refresh_token')
    .map(({ params }) => params.get('refresh_token'));
  assert.is(new Set(used).size, used.length, 'no refresh token is used twice');
  rmSync(folder, { recursive: true });
});

scene('U-15 an outage of the authorization server ends no grant, and gets words', async (upstream, gateway) => {
  const desk = gateway();
  const question = await desk.asked('ada');
  await desk.browse(question.url, 'ada');
  upstream.revokeAccess();
  upstream.settings.outage = 'failing';
  const failed = await desk.call('ada');
  assert.is(failed.isError, true);
  assert.match(textOf(failed), /^gh: .*HTTP 503/, textOf(failed));
  assert.not.match(textOf(failed), '127.0.0.1');
  upstream.settings.outage = undefined;
  assert.is(textOf(await desk.call('ada')), 'ada');
});

scene(
  'U-15 an authorization server that lies about its name, or moves, gets no code and no token',
  async (upstream, gateway) => {
    const desk = gateway();
    const question = await desk.asked('ada');
    upstream.settings.redirect = (back) => back.searchParams.set('iss', 'https://evil.example.com');
    assert.is(await desk.browse(question.url, 'ada'), 400);
    assert.match(textOf(await desk.answer('ada', question, accept({}))), 'gh: the sign-in failed: ');
    assert.equal(upstream.tokenRequests(), []);
    upstream.settings.redirect = () => {};
    const again = await desk.asked('ada');
    await desk.browse(again.url, 'ada');
    assert.is(textOf(await desk.call('ada')), 'ada');
    upstream.revokeAccess();
    const count = upstream.tokenRequests().length;
    upstream.settings.resourceMetadata = { authorization_servers: ['https://elsewhere.example.invalid'] };
    const moved = textOf(await desk.call('ada'));
    assert.match(moved, /^gh: the sign-in cannot begin: /);
    assert.not.match(moved, 'elsewhere.example');
    assert.is(upstream.tokenRequests().length, count, 'the refresh token stays with its issuer');
  },
);

scene(
  'U-19 metadata that leads to a private network, or to no page, becomes no question',
  async (upstream, gateway) => {
    const desk = gateway();
    await desk.request('ada', 'tools/list', {});
    const cases: readonly (readonly [Partial<SignInFixture['settings']>, RegExp])[] = [
      ...[
        'http://169.254.169.254',
        'https://169.254.169.254',
        'https://[::ffff:10.0.0.1]',
        'https://10.0.0.1/tenant',
      ].map(
        (issuer) =>
          [{ resourceMetadata: { authorization_servers: [issuer] } }, /expected an https address|is private/] as const,
      ),
      [{ issuerMetadata: { authorization_endpoint: 'javascript:alert(1)' } }, /expected an https address/],
      [{ issuerMetadata: { token_endpoint: 'http://10.0.0.1/token' } }, /expected an https address/],
      [{ challenge: () => 'Bearer resource_metadata="http://169.254.169.254/latest"' }, /expected an https address/],
    ];
    const usual = { ...upstream.settings };
    for (const [settings, expected] of cases) {
      Object.assign(upstream.settings, usual, settings);
      const result = await desk.call('ada');
      assert.is(result.isError, true, JSON.stringify(settings));
      assert.match(textOf(result), expected);
      assert.not.match(textOf(result), /169\.254|10\.0\.0\.1|::ffff/);
    }
  },
);

scene('client credentials serve every principal with one grant, without a question', async (upstream, gateway) => {
  const desk = gateway({
    auth: { grant: 'client_credentials', clientId: 'desk', clientSecret: 'secret-of-the-client' },
  });
  assert.is(textOf(await desk.call('ada')), 'ada');
  assert.is(textOf(await desk.call('bob')), 'ada');
  assert.is(upstream.tokenRequests().length, 1);
  assert.is(new Set(tokensOf(upstream)).size, 1);
});

scene(
  'S-81 the lists of a person who signs in are not shown to others, and the operator is asked for',
  async (_, gateway) => {
    const tokens = memoryTokens();
    const desk = gateway({ tokens, operator: false });
    const names = async (person: string): Promise<unknown> => {
      const { tools } = await desk.request(person, 'tools/list', {});
      return Array.isArray(tools) ? tools.map((tool) => (tool as { name: string }).name).sort() : tools;
    };
    assert.equal(await names('ada'), ['gh_sign_in']);
    const refused = await desk.call('ada', {}, CAN_OPEN, 'gh_sign_in');
    assert.is(refused.isError, true);
    assert.match(textOf(refused), /operator of this gateway must sign in.*auth\.catalogue/);
    // The grant that an earlier process has used, with other options, is used no more.
    const open = gateway({ tokens, operator: false, auth: { catalogue: 'anyone' } });
    await open.request('ada', 'tools/list', {});
    const question = await open.asked('ada', 'gh_sign_in');
    const answered = open.answer('ada', question, accept({}), 'gh_sign_in');
    await open.browse(question.url, 'ada');
    await answered;
    assert.match(JSON.stringify(await open.request('ada', 'tools/list', {})), 'gh_whoami');
    const next = gateway({ tokens, operator: false });
    const listed = await next.request('bob', 'tools/list', {});
    assert.match(JSON.stringify(listed), 'gh_sign_in');
    assert.not.match(JSON.stringify(listed), 'gh_whoami');
  },
);

scene(
  'S-81 the catalogue has credentials of its own, and a caller sees no list of another person',
  async (upstream, gateway) => {
    const token = await mint(upstream);
    const desk = gateway({ operator: false, auth: { catalogue: { token: () => token } } });
    const before = upstream.requests.length;
    const listed = JSON.stringify(await desk.request('bob', 'tools/list', {}));
    assert.match(listed, 'gh_whoami');
    const question = await desk.asked('ada');
    const answered = desk.answer('ada', question, accept({}));
    await desk.browse(question.url, 'ada');
    assert.is(textOf(await answered), 'ada');
    const lists = upstream.requests.slice(before).filter(({ body }) => body.includes('/list"'));
    assert.equal(
      [...new Set(lists.map(({ headers }) => headers.authorization))],
      [`Bearer ${token}`].slice(0, lists.length),
    );
  },
);

scene(
  'with catalogue: anyone, the catalogue is read with the grant of the person who signs in first, and the next one sees it',
  async (_, gateway) => {
    const desk = gateway({ operator: false, auth: { catalogue: 'anyone' } });
    const names = async (person: string): Promise<unknown> => {
      const { tools } = await desk.request(person, 'tools/list', {});
      return Array.isArray(tools) ? tools.map((tool) => (tool as { name: string }).name).sort() : tools;
    };
    assert.equal(await names('ada'), ['gh_sign_in']);
    const question = await desk.asked('ada', 'gh_sign_in');
    const answered = desk.answer('ada', question, accept({}), 'gh_sign_in');
    await desk.browse(question.url, 'ada');
    assert.match(textOf(await answered), 'Signed in to gh');
    assert.equal(await names('bob'), ['gh_admin', 'gh_whoami']);
    // The grant that the catalogue is read with makes no call of another person.
    await desk.asked('bob');
  },
);

scene('the tool to sign in says nothing of the address of an upstream that is down', async (upstream, gateway) => {
  const desk = gateway({ operator: false, auth: { catalogue: 'anyone' } });
  await desk.request('ada', 'tools/list', {});
  await upstream.close();
  const down = await desk.call('ada', {}, CAN_OPEN, 'gh_sign_in');
  assert.is(down.isError, true);
  assert.match(textOf(down), 'was not carried out');
  assert.not.match(textOf(down), '127.0.0.1');
});

test('a mount rejects options of sign-in that it does not know', async () => {
  const server = createServer({ name: 'desk', version: '1.0.0', log() {} });
  for (const [auth, expected] of [
    [{ clientID: 'x' }, 'clientID'],
    ['token', 'expected false, { token }'],
    [{ catalogue: 'all' }, 'auth.catalogue: expected "operator", "anyone"'],
  ] as const)
    try {
      await server.mount('gh', 'https://mcp.example.com/mcp', { auth: auth as UpstreamAuth });
      assert.unreachable();
    } catch (error) {
      assert.match(String(error), expected);
    }
  await server.close();
});

/** Obtains a token at the authorization server. */
async function mint(upstream: SignInFixture): Promise<string> {
  const body = new URLSearchParams({ grant_type: 'client_credentials', client_id: 'desk' });
  const response = await fetch(`${upstream.issuer}/token`, { method: 'POST', body });
  const { access_token: token } = (await response.json()) as { access_token: string };
  return token;
}

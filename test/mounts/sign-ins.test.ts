/** Sign-ins of callers at an upstream: whose grant a call has, the question, the browser that returns, and restarts in between. */
import { get } from 'node:http';
import * as assert from 'uvu/assert';
import type { Client } from '../../src/client/connected-client.ts';
import { signInPage } from '../../src/client/oauth/browser-sign-in.ts';
import { memoryTokens, type TokenStore } from '../../src/client/oauth/token-store.ts';
import { connect as connectClient } from '../../src/client/open-client.ts';
import { systemClock } from '../../src/clock.ts';
import { createServer, type Server } from '../../src/index.ts';
import { StateKeys } from '../../src/input/seal.ts';
import { SignIns } from '../../src/mounts/sign-ins.ts';
import { type UpstreamAuth, UpstreamGrants } from '../../src/mounts/upstream-grants.ts';
import type { JsonObject } from '../../src/protocol/json.ts';
import { META } from '../../src/protocol/meta.ts';
import type { ReturnAddress } from '../../src/transports/transport.ts';
import { SignInFixture } from '../client/sign-in-fixture.ts';
import { suite } from '../harness/door.ts';
import { accept, type InputRequired, SECRET, textOf } from '../input/support.ts';

const test = suite('sign-ins at an upstream');
const RETURN = 'https://desk.example.com/oauth/callback';
const CAN_OPEN: JsonObject = { elicitation: { url: {} } };

interface GatewayOptions {
  readonly auth?: Exclude<UpstreamAuth, false>;
  readonly tokens?: TokenStore;
  readonly addresses?: readonly ReturnAddress[];
}

/** A server with one tool, which calls the tool of the same arguments at the upstream. */
class Gateway {
  readonly told: string[] = [];
  readonly #server: Server;
  readonly #signIns: SignIns;
  #upstream: Promise<Client> | undefined;

  constructor(
    upstream: SignInFixture,
    { auth, tokens, addresses = [{ url: RETURN, identifies: true }] }: GatewayOptions = {},
  ) {
    const log = (level: string, message: string): void => void this.told.push(`${level}: ${message}`);
    const keys = new StateKeys([SECRET]);
    this.#signIns = new SignIns({ keys, clock: systemClock, log, addresses: () => addresses });
    const url = new URL(upstream.url);
    const grants = new UpstreamGrants({
      mount: 'gh',
      url,
      auth: auth ?? { ...(tokens ? { tokens } : {}) },
      clock: systemClock,
    });
    this.#signIns.add('gh', grants);
    this.#server = createServer({
      name: 'desk',
      version: '1.0.0',
      keys: [SECRET],
      log,
      http: {
        authenticate: ({ header }) => header('x-user') ?? 'anonymous',
        allowedHosts: ['desk.example.com'],
      },
    });
    this.#server.tool('use', {}, async (_, ctx) => {
      const { tool = 'whoami' } = ctx.meta;
      const params = { name: String(tool), arguments: {} };
      const result = await this.#signIns.run(ctx, 'gh', async (authorization) => {
        this.#upstream ??= connectClient({ url, auth: grants.shared }, { eras: 'modern', log() {} });
        this.#upstream.catch(() => {
          this.#upstream = undefined;
        });
        return (await this.#upstream).relay({ method: 'tools/call', params, authorization });
      });
      return textOf(result);
    });
  }

  /** Calls the tool as this person. */
  async call(person: string, params: JsonObject = {}, capabilities = CAN_OPEN, tool = 'whoami'): Promise<JsonObject> {
    const body = {
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: {
        name: 'use',
        arguments: {},
        _meta: {
          [META.protocolVersion]: '2026-07-28',
          [META.clientInfo]: { name: 'test', version: '1' },
          [META.clientCapabilities]: capabilities,
          tool,
        },
        ...params,
      },
    };
    const response = await this.#server.fetch(
      new Request('https://desk.example.com/mcp', {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          'mcp-protocol-version': '2026-07-28',
          'mcp-method': 'tools/call',
          'mcp-name': 'use',
          host: 'desk.example.com',
          'x-user': person,
        },
        body: JSON.stringify(body),
      }),
    );
    const text = await response.text();
    const line = text.split('\n').find((each) => each.startsWith('data: {')) ?? `data: ${text}`;
    const { result, error } = JSON.parse(line.slice('data: '.length));
    if (error) throw new Error(JSON.stringify(error));
    return result;
  }

  /** Calls the tool, which must ask the person to open a page. */
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
    return (await this.#signIns.receive(await signedInAt(url), person)).status;
  }

  receive(query: string, person: string): Promise<{ readonly status: number }> {
    return this.#signIns.receive(query, person);
  }

  async close(): Promise<void> {
    this.#signIns.close();
    await this.#upstream?.then((client) => client.close()).catch(() => {});
    await this.#server.close();
  }
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
  'two people have two grants on one connection, and no token of one is sent for the other',
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
  'the browser of another person ends no sign-in: an address that was sent to a victim grants nothing',
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
  'an address ends one sign-in once, and a state that this server has not sealed ends none',
  async (upstream, gateway) => {
    const desk = gateway();
    const question = await desk.asked('ada');
    const query = await signedInAt(question.url);
    const forged = new URLSearchParams(query);
    forged.set('state', 'ada');
    assert.is((await desk.receive(String(forged), 'ada')).status, 400);
    const results = await Promise.all([desk.receive(query, 'ada'), desk.receive(query, 'ada')]);
    assert.equal(results.map(({ status }) => status).sort(), [200, 400]);
    assert.is((await desk.receive(query, 'ada')).status, 400);
    assert.is(upstream.tokenRequests().length, 1);
    const other = await desk.asked('bob');
    const mixed = new URLSearchParams(await signedInAt(other.url));
    mixed.set('state', String(new URL(question.url).searchParams.get('state')));
    assert.is((await desk.receive(String(mixed), 'ada')).status, 400, 'the state of another sign-in');
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
  const second = gateway({ tokens });
  assert.is(await second.browse(question.url, 'ada'), 200);
  await second.close();
  const third = gateway({ tokens });
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
  const second = await desk.asked('ada', 'admin');
  assert.is(new URL(second.url).searchParams.get('scope'), 'read admin');
  const answered = desk.answer('ada', second, accept({}), 'admin');
  await desk.browse(second.url, 'ada');
  assert.is(textOf(await answered), 'done');
});

scene(
  'an upstream that rejects every token gets a bounded number of sign-ins for one call',
  async (upstream, gateway) => {
    const desk = gateway();
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

scene('nobody signs in at a server that cannot identify them', async (upstream, gateway) => {
  for (const [person, addresses] of [
    ['anonymous', [{ url: RETURN, identifies: true }]],
    ['ada', [{ url: 'http://127.0.0.1:3000/oauth/callback', identifies: false }]],
    ['ada', []],
  ] as const) {
    const result = await gateway({ addresses }).call(person);
    assert.is(result.isError, true);
    assert.match(textOf(result), 'http.signIn');
  }
  assert.equal(upstream.tokenRequests(), []);
});

scene('the reason of a failed sign-in reaches the call, and not the page', async (upstream, gateway) => {
  const desk = gateway();
  upstream.settings.redirect = (back) => {
    back.searchParams.delete('code');
    back.searchParams.set('error', 'access_denied');
  };
  const question = await desk.asked('ada');
  assert.is(await desk.browse(question.url, 'ada'), 400);
  assert.match(textOf(await desk.answer('ada', question, accept({}))), 'gh: the sign-in failed: ');
});

scene('a program supplies a token for each principal', async (upstream, gateway) => {
  const seen: (string | undefined)[] = [];
  const desk = gateway({
    auth: {
      token: (principal) => {
        seen.push(principal);
        return undefined;
      },
    },
  });
  const result = await desk.call('ada');
  assert.is(result.isError, true);
  assert.ok(seen.includes('ada') || seen.includes(undefined));
  assert.equal(upstream.tokenRequests(), []);
});

scene('client credentials serve every principal with one grant, without a question', async (upstream, gateway) => {
  const desk = gateway({
    auth: { grant: 'client_credentials', clientId: 'desk', clientSecret: 'secret-of-the-client' },
  });
  assert.is(textOf(await desk.call('ada')), 'ada');
  assert.is(textOf(await desk.call('bob')), 'ada');
  assert.is(upstream.tokenRequests().length, 1);
  assert.is(new Set(tokensOf(upstream)).size, 1);
});

test('a page shows nothing of the request, and allows nothing', () => {
  const { headers, text } = signInPage(400, 'No sign-in.');
  assert.match(String(headers['content-security-policy']), "default-src 'none'");
  assert.match(text, 'No sign-in.');
});

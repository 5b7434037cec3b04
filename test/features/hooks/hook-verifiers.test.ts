/** The verifiers of webhooks: the examples of the senders' own documentation, and what a stranger or a broken proxy sends. */
import * as assert from 'uvu/assert';
import type { HookProof, HookVerifier } from '../../../src/features/hooks/hook-request.ts';
import { github, hmac, slack, standardWebhooks, stripe } from '../../../src/webhooks.ts';
import { suite } from '../../harness/door.ts';
import { hmacOf, requestOf } from './support.ts';

const test = suite('verifiers of webhooks');

type Given = Readonly<Record<string, string | readonly string[]>>;
interface Example {
  readonly verify: HookVerifier;
  readonly body: string;
  readonly headers: Given;
  /** Seconds since 1970. */
  readonly at: number;
}

const SLACK_BODY =
  'token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c';
const STRIPE_SECRET = 'whsec_test_secret';
const STRIPE_BODY = '{\n  "id": "evt_test_webhook",\n  "object": "event",\n  "type": "invoice.paid"\n}';
const STRIPE_AT = 1_492_774_577;
const STANDARD_KEY = 'MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';

/** As the documentation of each sender signs it; Stripe publishes no secret of its example, so that ours signs its text. */
const EXAMPLES: Readonly<Record<'github' | 'stripe' | 'slack' | 'standard', Example>> = {
  github: {
    verify: github({ secret: "It's a Secret to Everybody" }),
    body: 'Hello, World!',
    headers: { 'x-hub-signature-256': 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17' },
    at: 0,
  },
  slack: {
    verify: slack({ secret: '8f742231b10e8888abcd99yyyzzz85a5' }),
    body: SLACK_BODY,
    headers: {
      'x-slack-request-timestamp': '1531420618',
      'x-slack-signature': 'v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503',
    },
    at: 1_531_420_618,
  },
  standard: {
    verify: standardWebhooks({ secret: `whsec_${STANDARD_KEY}` }),
    body: '{"test": 2432232314}',
    headers: {
      'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      'webhook-timestamp': '1614265330',
      'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    },
    at: 1_614_265_330,
  },
  stripe: {
    verify: stripe({ secret: STRIPE_SECRET }),
    body: STRIPE_BODY,
    headers: {
      'stripe-signature': `t=${STRIPE_AT},v1=${hmacOf(STRIPE_SECRET, `${STRIPE_AT}.${STRIPE_BODY}`)},v0=6ffbb59b2300aae63f272406069a9788598b792a944a07aba816edb039989a39`,
    },
    at: STRIPE_AT,
  },
};

const verified = async (
  { verify, body, headers, at }: Example,
  change: Partial<{ body: string; headers: Given; at: number }> = {},
): Promise<HookProof | undefined> =>
  verify(requestOf(change.body ?? body, { ...headers, ...change.headers }, (change.at ?? at) * 1_000));

for (const [name, example] of Object.entries(EXAMPLES)) {
  test(`the example in the documentation of ${name} is genuine, and one changed byte is not`, async () => {
    assert.ok(await verified(example));
    assert.is(await verified(example, { body: `${example.body} ` }), undefined);
    assert.is(await verified(example, { body: '' }), undefined);
  });

  test(`a request to ${name} without one of the headers, or with one of them twice, is rejected`, async () => {
    for (const [header, value] of Object.entries(example.headers)) {
      assert.is(await verified(example, { headers: { [header]: [] } }), undefined, header);
      assert.is(await verified(example, { headers: { [header]: [String(value), String(value)] } }), undefined, header);
    }
  });
}

for (const name of ['stripe', 'slack', 'standard'] as const)
  test(`S-141: a signature of ${name} is genuine for five minutes before and after its time`, async () => {
    const example = EXAMPLES[name];
    for (const [seconds, isGenuine] of [
      [-301, false],
      [-300, true],
      [300, true],
      [301, false],
    ] as const)
      assert.is((await verified(example, { at: example.at + seconds })) !== undefined, isGenuine, String(seconds));
  });

test('a signature in another encoding, of another length, or with other text around it is rejected and never throws', async () => {
  const { github: byGithub, standard, stripe: byStripe } = EXAMPLES;
  const right = '757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17';
  const wrong = ['', right, `sha1=${right}`, `sha256=${right}0`, `sha256=${right.slice(2)}`, `sha256= ${right}`];
  wrong.push(`sha256=${Buffer.from(right, 'hex').toString('base64')}`, `sha256=${'é'.repeat(64)}`, 'sha256=');
  wrong.push(`sha256=${right}, sha256=${right}`, `SHA256=${right}`);
  for (const value of wrong)
    assert.is(await verified(byGithub, { headers: { 'x-hub-signature-256': value } }), undefined, value);
  // Hexadecimal digits have no case.
  assert.ok(await verified(byGithub, { headers: { 'x-hub-signature-256': `sha256=${right.toUpperCase()}` } }));
  const base64 = 'g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=';
  for (const value of [
    base64,
    `v1a,${base64}`,
    `v1,${base64.replace('+', '-')}`,
    `v1,${base64.slice(0, -1)}`,
    'v1,',
    'v1',
  ])
    assert.is(await verified(standard, { headers: { 'webhook-signature': value } }), undefined, value);
  for (const time of ['', '1614265330.0', '0x6037B6F2', ' 1614265330', '1'.repeat(400), 'NaN', '-1'])
    assert.is(await verified(standard, { headers: { 'webhook-timestamp': time } }), undefined, time);
  const v1 = hmacOf(STRIPE_SECRET, `${STRIPE_AT}.${STRIPE_BODY}`);
  for (const value of [`v1=${v1}`, `t=${STRIPE_AT}`, `t=${STRIPE_AT},v0=${v1}`, `t=1,t=${STRIPE_AT},v1=${v1}`, ',,,=,'])
    assert.is(await verified(byStripe, { headers: { 'stripe-signature': value } }), undefined, value);
});

test('during a rotation a signature of either secret is genuine, also beside one of another secret', async () => {
  const old = { verify: github({ secret: ['the new secret', "It's a Secret to Everybody"] }) };
  assert.ok(await verified({ ...EXAMPLES.github, ...old }));
  const { standard, stripe: byStripe } = EXAMPLES;
  const genuine = String(standard.headers['webhook-signature']);
  const other = `v1,${hmacOf('another secret', 'x', 'base64')}`;
  assert.ok(await verified(standard, { headers: { 'webhook-signature': `${other} v2,x ${genuine}` } }));
  // A header of a stranger costs no more than eight comparisons.
  const many = `${`${other} `.repeat(8)}${genuine}`;
  assert.is(await verified(standard, { headers: { 'webhook-signature': many } }), undefined);
  const v1 = hmacOf(STRIPE_SECRET, `${STRIPE_AT}.${STRIPE_BODY}`);
  const two = `t=${STRIPE_AT},v1=${hmacOf('another', 'x')},v1=${v1}`;
  assert.ok(await verified(byStripe, { headers: { 'stripe-signature': two } }));
});

test('a delivery is named by what its sender has signed', async () => {
  const { github: byGithub, slack: bySlack, standard, stripe: byStripe } = EXAMPLES;
  const headers = { 'x-github-delivery': 'abc', 'x-github-event': 'push' };
  assert.equal(await verified(byGithub, { headers }), { id: 'abc', once: undefined, type: 'push' });
  const byId = github({ secret: "It's a Secret to Everybody", repeats: 'id' });
  assert.is((await verified({ ...byGithub, verify: byId }, { headers }))?.once, 'abc');
  assert.equal(await verified(byStripe), { once: 'evt_test_webhook', id: 'evt_test_webhook', type: 'invoice.paid' });
  assert.is((await verified(standard))?.once, 'msg_p5jXN8AQM9LWM0D4loKWxJek');
  // A command of Slack has no id; the case of its signature names no other delivery.
  const signature = String(bySlack.headers['x-slack-signature']);
  const upper = { 'x-slack-signature': signature.toUpperCase().replace('V0', 'v0') };
  assert.is((await verified(bySlack))?.once, signature);
  assert.is((await verified(bySlack, { headers: upper }))?.once, signature);
});

test('Slack gets its challenge back only if it has signed it', async () => {
  const secret = 'a signing secret';
  const signed = (body: string): Example => ({
    verify: slack({ secret }),
    ...{ body, at: 1_000 },
    headers: { 'x-slack-request-timestamp': '1000', 'x-slack-signature': `v0=${hmacOf(secret, `v0:1000:${body}`)}` },
  });
  const asked = signed('{"type":"url_verification","challenge":"3eZbrw1aB"}');
  assert.is((await verified(asked))?.reply, '3eZbrw1aB');
  assert.is(await verified(asked, { headers: { 'x-slack-signature': `v0=${'0'.repeat(64)}` } }), undefined);
  const event = await verified(signed('{"type":"event_callback","event_id":"Ev1","event":{"type":"message"}}'));
  assert.equal(event, { once: 'Ev1', id: 'Ev1', type: 'message' });
});

test('Svix names the same headers otherwise, and the two are not mixed', async () => {
  const { standard } = EXAMPLES;
  const svix = Object.fromEntries(
    Object.entries(standard.headers).map(([name, value]) => [name.replace('webhook', 'svix'), value]),
  );
  assert.ok(await verified({ ...standard, headers: svix }));
  const mixed = { ...svix, 'webhook-signature': String(standard.headers['webhook-signature']) };
  assert.is(await verified({ ...standard, headers: mixed }), undefined);
});

test('an HMAC in base64 with another name is verified by its description', async () => {
  const verify = hmac({
    secret: 'hush-hush',
    header: 'X-Shopify-Hmac-Sha256',
    encoding: 'base64',
    typeHeader: 'X-Shopify-Topic',
  });
  const headers = { 'x-shopify-hmac-sha256': hmacOf('hush-hush', '{}', 'base64'), 'x-shopify-topic': 'orders/create' };
  assert.is((await verify(requestOf('{}', headers, 0)))?.type, 'orders/create');
  assert.is(await verify(requestOf('{ }', headers, 0)), undefined);
});

test('base64 has one meaning with or without its padding, in the alphabet of MIME and of URLs', async () => {
  const verify = hmac({ secret: 'hush-hush', header: 'X-Signature', encoding: 'base64' });
  for (let n = 0; n < 50; n += 1) {
    const body = `{"n":${n}}`;
    const right = hmacOf('hush-hush', body, 'base64');
    const url = right.replaceAll('+', '-').replaceAll('/', '_');
    for (const value of [right, url, right.replace('=', ''), url.replace('=', '')])
      assert.ok(await verify(requestOf(body, { 'x-signature': value }, 0)), value);
    for (const value of [right.slice(1), `${right}A`, ` ${right}`, `${right.slice(0, 9)} ${right.slice(9)}`])
      assert.is(await verify(requestOf(body, { 'x-signature': value }, 0)), undefined, value);
  }
});

test('a secret of Standard Webhooks may have the version of its signatures in front, and no other text', async () => {
  const { standard } = EXAMPLES;
  for (const secret of [STANDARD_KEY, `whsec_${STANDARD_KEY}`, `v1,whsec_${STANDARD_KEY}`])
    assert.ok(await verified({ ...standard, verify: standardWebhooks({ secret }) }), secret);
  for (const secret of [`v1,${STANDARD_KEY}`, `v2,whsec_${STANDARD_KEY}`, `whsec_whsec_${STANDARD_KEY}`])
    assert.throws(() => standardWebhooks({ secret }), /expected base64 after "whsec_"/);
});

test('S-140: a secret that is missing, short or padded is rejected when the webhook is made, and no message contains it', () => {
  for (const [secret, expected] of [
    [undefined, /secret: expected a secret as a string, got nothing\. Set the environment variable/],
    ['', /expected at least 8 characters, got 0/],
    ['hunter2', /expected at least 8 characters, got 7/],
    ['a secret with a line break\n', /without spaces or line breaks around it/],
    [[], /expected 1 to 8 secrets, got 0/],
    [['long enough', ''], /expected at least 8 characters, got 0/],
  ] as const)
    for (const make of [github, stripe, slack, standardWebhooks])
      try {
        make({ secret });
        assert.unreachable(String(secret));
      } catch (error) {
        assert.match(String(error), expected);
        assert.not.match(String(error), /hunter2|line break\n|long enough/);
      }
  assert.throws(
    () => standardWebhooks({ secret: 'whsec_not base64' }),
    /expected base64 after "whsec_", got other text/,
  );
  assert.throws(
    () => stripe({ secret: STRIPE_SECRET, toleranceMs: 3_600_001 }),
    /toleranceMs: expected whole milliseconds/,
  );
});

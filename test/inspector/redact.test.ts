/** Plain data of anything: never throws, is bounded, runs nothing of an author's, and has no secret in it. */
import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { createMachine } from 'xstate';
import { type Plain, REDACTED } from '../../src/inspector/frames.ts';
import { BOUNDS, plainOf } from '../../src/inspector/redaction/plain-data.ts';
import { Redactor } from '../../src/inspector/redaction/redact.ts';
import { suite } from '../harness/door.ts';
import { assertFigure } from '../harness/pace.ts';

const test = suite('inspector: redaction');
const redactor = new Redactor();
const shown = (value: unknown): Plain => plainOf(value, redactor);
const textOf = (value: unknown): string => JSON.stringify(shown(value));

/** Looks like nothing: only its place says that it is a secret. */
const SECRET = 'zq7wxk3v9';
/** As people and programs spell them. */
const KEYS = [
  ...['password', 'Passwd', 'passphrase', 'user_password', 'PASSWORD_HASH', 'pwd', 'secret', 'clientSecret'],
  ...['token', 'access_token', 'refreshToken', 'ID-TOKEN', 'x.csrf.token', 'api key', 'apiKey', 'X-API-Key', 'API_KEY'],
  ...['authorization', 'Proxy-Authorization', 'cookie', 'Set-Cookie', 'credentials', 'awsCredential', 'privateKey'],
  ...[
    'private_key',
    'session id',
    'Mcp-Session-Id',
    'sessionId',
    'requestState',
    'bearer',
    'jwt',
    'otp',
    'cvv',
    'auth',
  ],
];
const HARMLESS = [
  'progressToken',
  'maxTokens',
  'inputTokens',
  'output_tokens',
  'nextCursor',
  'taskId',
  'author',
  'keys',
];

test('S-29 the values of members that are called as secrets are hidden, whatever they are', () => {
  for (const key of KEYS)
    for (const value of [SECRET, 1_234_567, [SECRET], { inner: SECRET }, { [SECRET]: 1 }]) {
      const text = textOf({ [key]: value });
      assert.not.ok(text.includes(SECRET) || text.includes('1234567'), `${key}: ${text}`);
      assert.ok(text.includes(REDACTED), `${key}: ${text}`);
    }
});

test('a value with a harmless name is shown', () => {
  for (const key of HARMLESS) assert.equal(shown({ [key]: 'seen' }), { [key]: 'seen' });
  assert.equal(shown({ maxTokens: 5, password: null, secret: '', token: true }), {
    maxTokens: 5,
    password: null,
    secret: '',
    token: true,
  });
});

test('S-29 a value that looks like a secret is hidden everywhere', () => {
  const web = `eyJhbGciOiJIUzI1NiJ9.${Buffer.from(SECRET).toString('base64url')}.${SECRET}${SECRET}`;
  const basic = Buffer.from(`me:${SECRET}`).toString('base64');
  const looks = [
    `Authorization: Bearer ${SECRET}`,
    `bearer ${SECRET}`,
    `curl -H "Authorization: Basic ${basic}" https://a.example`,
    `it said ${web}`,
    `https://me:${SECRET}@host.example/path`,
    `postgres://${SECRET}@host/db`,
    `https://host.example/?q=1&api_key=${SECRET}&x=2`,
    `-----BEGIN RSA PRIVATE KEY-----\n${SECRET}\n-----END RSA PRIVATE KEY-----`,
    `-----BEGIN PRIVATE KEY-----\n${SECRET}`,
    `sk-${SECRET}${SECRET}`,
    `ghp_${SECRET}${SECRET}`,
    `github_pat_${SECRET}${SECRET}`,
    `xoxb-${SECRET}-${SECRET}`,
    `Cookie: a=b; sid=${SECRET}`,
    `password=${SECRET}`,
    `PGPASSWORD="${SECRET}" psql`,
    `{"password":"${SECRET}","ok":1}`,
    `  [{"secret":{"deep":"${SECRET}"}}]`,
    JSON.stringify(JSON.stringify({ token: SECRET })),
    `broken {"password": "${SECRET}`,
    `he said {\\"api_key\\": \\"${SECRET}\\"} and went`,
    // What this server says of an argument that does not fit.
    `Invalid arguments:\n- password: expected integer, got string "it is ${SECRET}"`,
    `- user.tokens[0]: expected integer, got string "${SECRET}"`,
    `an API key: ${SECRET}`,
    `passphrase=correct horse ${SECRET}`,
    `Authorization: Digest username="Ada", response="${SECRET}"`,
    `password => '${SECRET}'`,
    `password := ${SECRET}`,
    `<password kind="plain">${SECRET}</password>`,
    `run --password ${SECRET} --fast`,
    `https://a.example/?next=https%3A%2F%2Fb.example%2F%3Ftoken%3D${SECRET}%26a%3D1`,
    `DefaultEndpointsProtocol=https;AccountKey=${SECRET}`,
  ];
  for (const look of looks) {
    const secrets = [SECRET, basic, Buffer.from(SECRET).toString('base64url')];
    for (const value of [look, { text: look }, [[look]], new Map([[look, look]]), new Error(look)]) {
      const text = textOf(value);
      assert.not.ok(
        secrets.some((secret) => text.includes(secret)),
        `${look}: ${text}`,
      );
    }
  }
});

test('a text that has no secret is as it was', () => {
  for (const text of ['Basic understanding of keys', '{"a": 1,\n "b": [2]}', 'token', 'eyJhIjoxfQ', 'a: b', '{"a"'])
    assert.is(shown(text), text);
});

test('S-29 a name may stand beside its value: in entries of any map or list, in arguments, in members called so', () => {
  const beside = [
    new Map<unknown, unknown>([['password', SECRET]]).set(1, 2),
    [['authorization', SECRET]],
    [{ name: 'password', value: SECRET }],
    { key: 'API_KEY', value: SECRET },
    ['run', '--password', SECRET],
    { [`${'x'.repeat(400)}_password`]: SECRET },
  ];
  for (const value of beside) {
    const text = textOf(value);
    assert.not.ok(text.includes(SECRET), text);
    assert.ok(text.includes(REDACTED), text);
  }
  const schema = { required: ['password', 'email'], list: [['a', 'b']], args: ['--fast', 'yes'] };
  assert.equal(shown(schema), schema);
});

test('S-29 no secret is shown, however deep it is in values and in JSON within texts', () => {
  const place = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      fc.constantFrom(...KEYS).map((key) => ({ [key]: SECRET })),
      fc.tuple(fc.string(), tie('value')).map(([key, value]) => ({ [`a${key}`]: value })),
      tie('value').map((value) => [1, value]),
      tie('value').map((value) => new Map([['a', value]])),
      tie('value').map((value) => new Set([value])),
      tie('value').map((value) => Object.assign(new Error('no'), { cause: value })),
      tie('value').map((value) => shownAsText(value)),
    ),
  })).value;
  fc.assert(
    fc.property(place, (value) => assert.not.ok(textOf(value).includes(SECRET))),
    { numRuns: 500 },
  );
});

/** JSON as a text, as tools answer clients that do not read structured content. What JSON cannot hold is left out by it. */
function shownAsText(value: unknown): unknown {
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : value;
}

test('anything is shown without throwing, bounded in length and depth', () => {
  fc.assert(
    fc.property(
      fc.anything({
        withBigInt: true,
        withDate: true,
        withMap: true,
        withSet: true,
        withNullPrototype: true,
        withObjectString: true,
        withTypedArray: true,
        withSparseArray: true,
        withBoxedValues: true,
        maxDepth: 6,
      }),
      (value) => {
        const text = textOf(value);
        assert.ok(text.length < 3 * BOUNDS.all, String(text.length));
      },
    ),
    { numRuns: 500 },
  );
});

test('a huge value is cut, with a remark', () => {
  const deep: unknown[] = [];
  let at = deep;
  for (let depth = 0; depth < 10_000; depth += 1) {
    const next: unknown[] = [];
    at.push(next);
    at = next;
  }
  const wide = Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`n${index}`, 'x'.repeat(5_000)]));
  const all = { deep, wide, list: Array.from({ length: 100_000 }, (_, index) => ({ index })), long: 'y'.repeat(1e7) };
  const text = textOf(all);
  assert.ok(text.length < 3 * BOUNDS.all, String(text.length));
  assert.match(textOf('y'.repeat(1e7)), /… \(10000000 characters\)/);
  assert.match(textOf(Array.from({ length: 500 }, () => 0)), /«400 more»/);
  assert.equal(
    shown(Object.fromEntries(Array.from({ length: 101 }, (_, index) => [index, 1])))?.['«more»' as never],
    1,
  );
});

test('S-29 a secret that the cut goes through is hidden', () => {
  for (let at = BOUNDS.text - 30; at < BOUNDS.text + 3; at += 1) {
    const text = textOf(`${'x'.repeat(at)} Bearer ${SECRET.repeat(20)}`);
    assert.not.ok(text.includes(SECRET.slice(0, 4)), `cut at ${at}`);
  }
  // Too long to be read as JSON.
  const long = `{"password":"${SECRET}","fill":"${'x'.repeat(100_000)}"}`;
  assert.not.ok(textOf(long).includes(SECRET));
});

test('nothing of an author runs: no getter, no proxy, no toJSON, no iterator', () => {
  let ran = 0;
  const run = (): never => {
    ran += 1;
    throw new Error('it ran');
  };
  class Nasty {
    get inherited(): never {
      return run();
    }
  }
  const value = {
    get own(): never {
      return run();
    },
    toJSON: run,
    [Symbol.toPrimitive]: run,
    nasty: new Nasty(),
    proxy: new Proxy({}, { get: run, ownKeys: run, getOwnPropertyDescriptor: run, getPrototypeOf: run, has: run }),
    map: Object.assign(new Map([['a', 1]]), { [Symbol.iterator]: run, entries: run, get: run }),
    array: Object.assign([1], { [Symbol.iterator]: run, map: run }),
    error: Object.defineProperty(new Error('no'), 'message', { get: run }),
    date: Object.assign(new Date(0), { toISOString: run, getTime: run }),
  };
  assert.equal(shown(value), {
    own: '«computed»',
    toJSON: 'ƒ run',
    nasty: '«Nasty»',
    proxy: '«proxy»',
    map: { a: 1 },
    array: [1],
    error: { name: 'Error', message: '«computed»' },
    date: '1970-01-01T00:00:00.000Z',
  });
  assert.is(ran, 0);
});

test('mailboxes, requests, functions and cycles are named', () => {
  const cycle: { self?: unknown; list: unknown[] } = { list: [] };
  cycle.self = cycle;
  cycle.list.push(cycle);
  const reply = (): void => {};
  const mailbox = { address: 'session/abc', send() {} };
  assert.equal(shown({ cycle, reply, mailbox }), {
    cycle: { list: ['«itself, further out»'], self: '«itself, further out»' },
    reply: 'ƒ reply',
    mailbox: '«session/abc»',
  });
});

test('S-30 a statechart says what it hides: in its context, and wherever else that is', () => {
  const mine = new Redactor();
  mine.learn(createMachine({ meta: { redact: ['card', 'customer.email'] } }));
  const value = { card: 4_111, customer: { email: SECRET, name: 'Ada' }, email: 'shown', order: { card: SECRET } };
  assert.equal(plainOf(value, mine), {
    card: REDACTED,
    customer: { email: REDACTED, name: 'Ada' },
    email: 'shown',
    order: { card: REDACTED },
  });
  const text = JSON.stringify({ params: { arguments: { customer: { email: SECRET } } } });
  assert.not.ok(JSON.stringify(plainOf({ text }, mine)).includes(SECRET));
  // A handle's view is also told in words.
  assert.is(plainOf(`order 1:\ncard: ${SECRET}`, mine), `order 1:\ncard: ${REDACTED}`);
  assert.equal(shown({ card: 4_111 }), { card: 4_111 });
});

test('S-30 options hide more: parts of names, and patterns', () => {
  const mine = new Redactor({ keys: ['IBAN'], values: [/\bKD-\d+\b/] });
  assert.equal(plainOf({ customer_iban: 'DE02', note: 'of KD-1234 and KD-5' }, mine), {
    customer_iban: REDACTED,
    note: `of ${REDACTED} and ${REDACTED}`,
  });
  assert.is(plainOf('customerIban=DE02 ok', mine), `customerIban=${REDACTED} ok`);
  assert.throws(() => new Redactor({ keys: [''] }), /redact\.keys: expected parts of names/);
  // @ts-expect-error: as JavaScript may call it
  assert.throws(() => new Redactor({ values: ['KD'] }), /redact\.values: expected patterns/);
});

test('hiding takes time in proportion to the text', () => {
  const hard = ['a'.repeat(60_000), 'password='.repeat(7_000), '"'.repeat(60_000), '://'.repeat(20_000)];
  hard.push('eyJ'.repeat(20_000), 'eyJ-'.repeat(15_000), 'eyJaaaaaaaa.'.repeat(5_000), '_'.repeat(60_000));
  const begin = performance.now();
  for (const text of [...hard, '-----BEGIN PRIVATE KEY'.repeat(2_500), `token:${'\\'.repeat(60_000)}"`]) shown(text);
  const took = performance.now() - begin;
  assertFigure(took, 1_500, 'hiding secrets');
});

/** The sealed `requestState`: what opens it, and that nothing else does. */
import { inspect } from 'node:util';
import * as fc from 'fast-check';
import * as assert from 'uvu/assert';
import type { JsonValue } from '../../../src/core/protocol/json.ts';
import { memoryStore } from '../../../src/core/store/memory-store.ts';
import { digest, KeyRing } from '../../../src/core/store/seal.ts';
import { StateKeys } from '../../../src/core/store/state-keys.ts';
import { character } from '../../harness/character.ts';
import { suite } from '../../harness/door.ts';
import { random } from '../../harness/scale.ts';

const test = suite('seal');

const OLD = 'the old secret, which has 40 characters.';
const NEW = 'the new secret, which has 40 characters.';
const BOUND = ['ann', 'tools/call', 'book', 'digest'];

const json = (): fc.Arbitrary<JsonValue> => fc.jsonValue() as fc.Arbitrary<JsonValue>;

test('opens what it has sealed', () => {
  const ring = new KeyRing([OLD]);
  fc.assert(
    fc.property(json(), fc.array(fc.string({ unit: character })), (payload, bound) => {
      const opened = ring.open(ring.seal(payload, bound), bound);
      // What JSON says of it: -0 is 0.
      assert.equal(opened, { ok: true, payload: JSON.parse(JSON.stringify(payload)) });
    }),
    { numRuns: random(500) },
  );
});

test('seals the same payload as another text each time', () => {
  const ring = new KeyRing([OLD]);
  const texts = new Set(Array.from({ length: 1_000 }, () => ring.seal({ a: 1 }, BOUND)));
  assert.is(texts.size, 1_000);
});

test('writes only what a URL, a header and JSON take as it is', () => {
  assert.match(new KeyRing([OLD]).seal({ text: 'ü"\\\u2028' }, BOUND), /^t1\.[\w-]+$/);
});

test('refuses a short text with any one bit changed', () => {
  const ring = new KeyRing([OLD]);
  const text = ring.seal(1, BOUND);
  const bytes = Buffer.from(text);
  for (let bit = 0; bit < bytes.length * 8; bit += 1) assert.is(ring.open(flipped(text, bit), BOUND).ok, false);
});

test('S-12: refuses a long text with any of 10,000 bits changed', () => {
  const ring = new KeyRing([OLD]);
  const text = ring.seal({ replies: { name: 'x'.repeat(2_000) } }, BOUND);
  fc.assert(
    fc.property(fc.nat(text.length * 8 - 1), (bit) => !ring.open(flipped(text, bit), BOUND).ok),
    { numRuns: random(10_000) },
  );
});

test('says why it refuses', () => {
  const ring = new KeyRing([NEW]);
  const text = ring.seal('x', BOUND);
  const blob = Buffer.from(text.slice(3), 'base64url');
  const spelt = (change: (bytes: Buffer) => void): string => {
    const bytes = Buffer.from(blob);
    change(bytes);
    return `t1.${bytes.toString('base64url')}`;
  };
  const why = (changed: string): unknown => {
    const opened = ring.open(changed, BOUND);
    return opened.ok ? 'opened' : opened.why;
  };
  assert.is(why('t1.'), 'misshapen');
  assert.is(why(text.slice(0, 20)), 'misshapen');
  assert.is(why(text.replace('t1.', 't2.')), 'misshapen');
  assert.is(why(new KeyRing([OLD]).seal('x', BOUND)), 'unknown key');
  assert.is(why(spelt((bytes) => bytes.writeUInt8(bytes.readUInt8(0) ^ 1, 0))), 'unknown key');
  // Each part behind the id of the key: nonce, body, tag.
  for (const at of [6, 18, blob.length - 1])
    assert.is(why(spelt((bytes) => bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at))), 'does not verify');
});

test('refuses a text with something behind it', () => {
  const ring = new KeyRing([OLD]);
  for (const payload of ['', 'a', 'ab', 'abc']) {
    const text = ring.seal(payload, BOUND);
    for (const more of ['-TAMPERED', 'A', 'AA', 'AAA', 'AAAA', text])
      assert.is(ring.open(text + more, BOUND).ok, false, `${payload} ${more}`);
  }
});

test('refuses every other spelling of the same bytes', () => {
  const ring = new KeyRing([OLD]);
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  let trailing = 0;
  for (const payload of ['a', 'ab', 'abc']) {
    const text = ring.seal(payload, BOUND);
    const bytes = Buffer.from(text.slice(3), 'base64url');
    for (const last of alphabet) {
      const other = text.slice(0, -1) + last;
      if (other === text || !Buffer.from(other.slice(3), 'base64url').equals(bytes)) continue;
      trailing += 1;
      assert.equal(ring.open(other, BOUND), { ok: false, why: 'misshapen' });
    }
    const others = [`${text}=`, `${text}==`, `${text}\n`, `${text} `, `t1.\u0000${text.slice(3)}`, `${text}!`];
    for (const other of others) assert.equal(ring.open(other, BOUND), { ok: false, why: 'misshapen' }, other);
    assert.is(ring.open(text, BOUND).ok, true);
  }
  assert.is(trailing, 3 + 15);
  let text = '';
  while (!/[-_]/.test(text.slice(3))) text = ring.seal('a', BOUND);
  const standard = `t1.${text.slice(3).replaceAll('-', '+').replaceAll('_', '/')}`;
  assert.equal(ring.open(standard, BOUND), { ok: false, why: 'misshapen' });
});

test('opens for what it was sealed for, and for nothing else', () => {
  const ring = new KeyRing([OLD]);
  const refuses = (sealed: readonly string[], opened: readonly string[]): void =>
    assert.equal(ring.open(ring.seal(1, sealed), opened), { ok: false, why: 'does not verify' });
  for (const [index, own] of BOUND.entries()) refuses(BOUND, BOUND.with(index, `${own} `));
  refuses(BOUND, BOUND.slice(0, -1));
  refuses(BOUND, [...BOUND, '']);
  refuses(BOUND, BOUND.toReversed());
  refuses([], ['']);
  // Strings cannot reach into each other.
  refuses(['a', 'bc'], ['ab', 'c']);
  refuses(['a', ''], ['', 'a']);
  refuses(['a\u0000\u0000\u0000\u0002b'], ['a', 'b']);
  refuses(['\ud800'], ['\ud801']);
  refuses(['\ud800'], ['\ufffd']);
});

test('opens no text whose bound strings differ from its own', () => {
  const ring = new KeyRing([OLD]);
  const bound = fc.array(fc.string({ unit: character, maxLength: 3 }), { maxLength: 3 });
  fc.assert(
    fc.property(bound, bound, (sealed, opened) => {
      const same = sealed.length === opened.length && sealed.every((each, index) => each === opened[index]);
      assert.is(ring.open(ring.seal(1, sealed), opened).ok, same);
    }),
    { numRuns: random(2_000) },
  );
});

test('opens with an old key what it was sealed with, and seals with the first', () => {
  const before = new KeyRing([OLD]).seal('x', BOUND);
  const rotated = new KeyRing([NEW, OLD]);
  assert.equal(rotated.open(before, BOUND), { ok: true, payload: 'x' });
  assert.equal(new KeyRing([NEW]).open(before, BOUND), { ok: false, why: 'unknown key' });
  const after = rotated.seal('y', BOUND);
  assert.equal(new KeyRing([NEW]).open(after, BOUND), { ok: true, payload: 'y' });
  assert.equal(new KeyRing([OLD]).open(after, BOUND), { ok: false, why: 'unknown key' });
  assert.is(new KeyRing([OLD, OLD]).open(before, BOUND).ok, true);
});

test('has a key of its own in every ring that was given none', () => {
  const ring = KeyRing.random();
  assert.is(ring.open(ring.seal(1, BOUND), BOUND).ok, true);
  assert.equal(KeyRing.random().open(ring.seal(1, BOUND), BOUND), { ok: false, why: 'unknown key' });
});

test('S-12: shows neither the payload nor what it is bound to', () => {
  const text = new KeyRing([OLD]).seal({ secret: 'xyzzy-plugh' }, ['ann@example.com']);
  const raw = Buffer.from(text.slice(3), 'base64url').toString('latin1');
  for (const hidden of ['xyzzy', 'secret', 'ann@', Buffer.from('ann@', 'utf16le').toString('latin1')])
    assert.not(raw.includes(hidden) || text.includes(hidden), hidden);
});

test('shows no key to who inspects it', () => {
  assert.not.match(inspect(new KeyRing([OLD]), { depth: 10, showHidden: true }), /secret|[0-9a-f]{8}/);
});

test('never throws, whatever text comes', () => {
  const ring = new KeyRing([OLD]);
  const id = Buffer.from(ring.seal(1, BOUND).slice(3), 'base64url').subarray(0, 6);
  const texts = fc.oneof(
    fc.string({ unit: character, maxLength: 200 }),
    fc.base64String().map((text) => `t1.${text}`),
    fc.uint8Array({ maxLength: 200 }).map((bytes) => `t1.${Buffer.from(bytes).toString('base64url')}`),
    // Right up to the key, so that decryption is reached.
    fc.uint8Array({ maxLength: 200 }).map((bytes) => `t1.${Buffer.concat([id, bytes]).toString('base64url')}`),
  );
  fc.assert(
    fc.property(texts, (text) => !ring.open(text, BOUND).ok),
    { numRuns: random(10_000) },
  );
});

test('neither writes nor reads a text of more than a mebibyte', () => {
  const ring = new KeyRing([OLD]);
  assert.throws(() => ring.seal('x'.repeat(800_000), BOUND), /at most 1048576 characters, got 1066\d{3}; store less/);
  assert.equal(ring.open(`t1.${'A'.repeat(1_048_576)}`, BOUND), { ok: false, why: 'misshapen' });
  assert.is(ring.open(ring.seal('x'.repeat(700_000), BOUND), BOUND).ok, true);
});

test('takes no ring without a key, and no secret that can be guessed', () => {
  assert.throws(() => new KeyRing([]), /at least one secret, got none/);
  assert.throws(() => new KeyRing([OLD, 'hunter2']), /expected at least 32 characters, got 7; use random ones/);
  assert.throws(
    () => new KeyRing(['hunter2']),
    (error: Error) => !error.message.includes('hunter2'),
  );
  const numbers: readonly unknown[] = [12];
  assert.throws(() => new KeyRing(numbers as readonly string[]), /expected secrets as strings, got number/);
});

test('gives one digest for members in any order, and another for any other value', () => {
  assert.is(
    digest({ a: 1, b: { c: [1, { e: 1, d: 2 }], x: 'y' } }),
    digest({ b: { x: 'y', c: [1, { d: 2, e: 1 }] }, a: 1 }),
  );
  assert.match(digest({}), /^[\w-]{43}$/);
  const different: JsonValue[] = [
    null,
    0,
    '',
    [],
    {},
    '0',
    'null',
    [null],
    [[]],
    [[], []],
    { a: null },
    { a: 1 },
    { b: 1 },
    ['a', 1],
    [1, 2],
    [2, 1],
    ['1,2'],
    { a: '1,"b":2' },
    { a: 1, b: 2 },
    { a: { b: 1 } },
    { 'a":{"b': 1 },
    '\ud800',
    '\ud801',
    '\ufffd',
  ];
  assert.is(new Set(different.map(digest)).size, different.length);
  assert.is(digest({ a: undefined }), digest({}));
  assert.is.not(digest(JSON.parse('{"__proto__":1}')), digest({}));
});

test('gives one digest for every text of the same value', () => {
  fc.assert(
    fc.property(json(), (value) => {
      assert.is(digest(JSON.parse(JSON.stringify(reordered(value)))), digest(value));
    }),
    { numRuns: random(500) },
  );
});

function flipped(text: string, bit: number): string {
  const bytes = Buffer.from(text, 'latin1');
  bytes.writeUInt8(bytes.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
  return bytes.toString('latin1');
}

/** The same value with its members the other way round. */
function reordered(value: JsonValue): JsonValue {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(reordered);
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([name, member]) => [name, reordered(member ?? null)]),
  );
}

test('processes that create the stored secret at once open the states of each other', async () => {
  const store = Object.assign(memoryStore(), { durable: true });
  const [one, other] = [new StateKeys(undefined), new StateKeys(undefined)];
  await Promise.all([one.load(store), other.load(store)]);
  assert.equal(other.ring.open(one.ring.seal({ n: 1 }, BOUND), BOUND), { ok: true, payload: { n: 1 } });
  assert.equal(one.ring.open(other.ring.seal({ n: 2 }, BOUND), BOUND), { ok: true, payload: { n: 2 } });
});

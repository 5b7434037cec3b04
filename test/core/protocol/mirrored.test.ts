/** Values mirrored into headers: each case of the specification and of the conformance suite, and any text there and back. */
import { Buffer } from 'node:buffer';
import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { decodeMirrored, mirrors } from '../../../src/core/requests/mirrored-headers.ts';
import { character } from '../../harness/character.ts';
import { suite } from '../../harness/door.ts';
import { processorMs } from '../../harness/pace.ts';
import { random } from '../../harness/scale.ts';

const decode = suite('decodeMirrored');
const same = suite('mirrors');

const wrap = (bytes: string | Uint8Array): string => `=?base64?${Buffer.from(bytes).toString('base64')}?=`;

/** What a client does (2026-07-28 streamable-http, "Value Encoding"), in its plainest words. */
function encode(value: string | number | boolean): string {
  const text = String(value);
  const plain = /^[\t -~]*$/.test(text) && !/^[ \t]|[ \t]$/.test(text);
  return plain && !(text.startsWith('=?base64?') && text.endsWith('?=')) ? text : wrap(text);
}

const TABLE: readonly (readonly [header: string, value: string | undefined])[] = [
  // The examples of "Value Encoding".
  ['us-west1', 'us-west1'],
  ['=?base64?SGVsbG8sIOS4lueVjA==?=', 'Hello, 世界'],
  ['=?base64?IHBhZGRlZCA=?=', ' padded '],
  ['=?base64?bGluZTEKbGluZTI=?=', 'line1\nline2'],
  ['=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=', '=?base64?literal?='],
  // The cases of the conformance suite, http-standard-headers.
  ['=?base64?SGVsbG8=?=', 'Hello'],
  ['=?base64?SGVsbG8?=', undefined],
  ['=?base64?SGVs!!!bG8=?=', undefined],
  ['SGVsbG8=', 'SGVsbG8='],
  ['=?base64?SGVsbG8=', '=?base64?SGVsbG8='],
  ['  test_simple_text  ', 'test_simple_text'],
  // As it is.
  ['', ''],
  ['\t a\tb c \t', 'a\tb c'],
  ['file:///projects/my app/config.json', 'file:///projects/my app/config.json'],
  ['SGVsbG8=?=', 'SGVsbG8=?='],
  ['=?BASE64?SGVsbG8=?=', '=?BASE64?SGVsbG8=?='],
  ['=?Base64?SGVsbG8=?=', '=?Base64?SGVsbG8=?='],
  ['=?utf-8?B?SGVsbG8=?=', '=?utf-8?B?SGVsbG8=?='],
  ['x=?base64?SGVsbG8=?=', 'x=?base64?SGVsbG8=?='],
  ['=?base64?SGVsbG8=?=x', '=?base64?SGVsbG8=?=x'],
  ['=?base64?=', '=?base64?='],
  // Wrapped.
  [' =?base64?SGVsbG8=?= ', 'Hello'],
  ['=?base64??=', ''],
  [wrap('\uFEFFmark'), '\uFEFFmark'],
  [wrap('\0'), '\0'],
  [wrap('SGVsbG8='), 'SGVsbG8='],
  [wrap(wrap('Hello')), wrap('Hello')],
  // Base64 that is not strict.
  ['=?base64?SGVs bG8=?=', undefined],
  ['=?base64? SGVsbG8=?=', undefined],
  ['=?base64?SGVsbG8= ?=', undefined],
  ['=?base64?SGVs\tbG8=?=', undefined],
  ['=?base64?SGVsbG9=?=', undefined],
  ['=?base64?SGVsbG8==?=', undefined],
  ['=?base64?SGVsbG8===?=', undefined],
  ['=?base64?=SGVsbG8?=', undefined],
  ['=?base64?====?=', undefined],
  ['=?base64?=?=', undefined],
  ['=?base64?S?=', undefined],
  ['=?base64?4-_-?=', undefined],
  ['=?base64?SGVsbG8=?=?=', undefined],
  // Bytes that are not UTF-8.
  [wrap(Uint8Array.of(0xff)), undefined],
  [wrap(Uint8Array.of(0xc0, 0x80)), undefined],
  [wrap(Uint8Array.of(0xed, 0xa0, 0x80)), undefined],
  [wrap(Uint8Array.of(0xe4, 0xb8)), undefined],
  // Characters that no field value has.
  ['é', undefined],
  ['\u00e4\u00b8\u0096', undefined],
  ['世界', undefined],
  ['a\0', undefined],
  ['a\nb', undefined],
  ['a\r\nb', undefined],
  ['a\n', undefined],
  ['a\u007f', undefined],
  ['\u00a0a', undefined],
  ['\uFEFFa', undefined],
  ['=?base64?SGVsbG8=?=\n', undefined],
];

decode('a header stands for what the specification says', () => {
  for (const [header, value] of TABLE) assert.is(decodeMirrored(header), value, JSON.stringify(header));
});

decode('any text that a client encodes comes back, and mirrors itself', () => {
  let wrapped = 0;
  const text = fc.oneof(
    fc.string({ unit: character, maxLength: 20 }),
    fc.string({ maxLength: 20 }),
    fc.string({ maxLength: 10 }).map((each) => `=?base64?${each}?=`),
    fc.string({ maxLength: 10 }).map((each) => ` ${each}`),
  );
  fc.assert(
    fc.property(text, (value) => {
      const header = encode(value);
      if (header !== value) wrapped += 1;
      assert.match(header, /^[\t -~]*$/);
      assert.is(decodeMirrored(header), value);
      assert.ok(mirrors(value, value));
    }),
    { numRuns: random(100_000) },
  );
  assert.ok(wrapped > random(20_000) && wrapped < random(90_000));
});

decode('any bytes come back as their text where they are UTF-8, and only then', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 8 }), (bytes) => {
      const text = Buffer.from(bytes).toString('utf8');
      const valid = Buffer.from(text).equals(bytes);
      assert.is(decodeMirrored(wrap(bytes)), valid ? text : undefined);
    }),
    { numRuns: random(20_000) },
  );
});

decode('no two wrapped headers stand for one value', () => {
  const base64 = fc.stringMatching(/^[AEQgw\-_=+/ ]{0,8}$/);
  fc.assert(
    fc.property(base64, (inner) => {
      const value = decodeMirrored(`=?base64?${inner}?=`);
      if (value !== undefined) assert.is(wrap(value), `=?base64?${inner}?=`);
    }),
    { numRuns: random(20_000) },
  );
});

const SAME: readonly (readonly [decoded: string, value: unknown, expected: boolean])[] = [
  ['us-west1', 'us-west1', true],
  ['US-WEST1', 'us-west1', false],
  ['us-west1 ', 'us-west1', false],
  ['', '', true],
  ['é', 'e\u0301', false],
  // The same text is the same string, whatever else it could be.
  ['42', '42', true],
  ['42.0', '42', false],
  ['true', 'true', true],
  ['null', 'null', true],
  ['true', true, true],
  ['false', false, true],
  ['false', true, false],
  ['TRUE', true, false],
  ['True', true, false],
  ['1', true, false],
  ['0', false, false],
  ['', false, false],
  ['42', 42, true],
  ['42.0', 42, true],
  ['42.000', 42, true],
  ['-7', -7, true],
  ['-7.0', -7, true],
  ['0', 0, true],
  ['-0', 0, true],
  ['0', -0, true],
  ['0.0', 0, true],
  ['9007199254740991', Number.MAX_SAFE_INTEGER, true],
  ['-9007199254740991', Number.MIN_SAFE_INTEGER, true],
  ['43', 42, false],
  ['-42', 42, false],
  ['42.5', 42, false],
  ['42.', 42, false],
  ['.0', 0, false],
  ['42.0000000000000000000001', 42, false],
  ['41.99999999999999999999999', 42, false],
  ['+42', 42, false],
  ['042', 42, false],
  ['00', 0, false],
  ['4.2e1', 42, false],
  ['42e0', 42, false],
  ['1e3', 1000, false],
  ['0x2a', 42, false],
  ['0b101010', 42, false],
  ['0o52', 42, false],
  ['42n', 42, false],
  ['4_2', 42, false],
  ['4,2', 42, false],
  [' 42', 42, false],
  ['42 ', 42, false],
  ['42\n', 42, false],
  ['\t42', 42, false],
  ['', 0, false],
  ['-', 0, false],
  ['--42', -42, false],
  ['٤٢', 42, false],
  // Two bodies could have been parsed into one of these.
  ['9007199254740992', 2 ** 53, false],
  ['9007199254740993', 2 ** 53, false],
  ['1e+21', 1e21, false],
  // No mirrored parameter takes a fraction: the schema says so, not the header.
  ['42.5', 42.5, true],
  ['42.50', 42.5, false],
  ['', undefined, false],
  ['undefined', undefined, false],
  ['', null, false],
  ['null', null, false],
  ['', [], false],
  ['1', [1], false],
  ['[object Object]', {}, false],
  ['1', 1n, false],
];

same('strings are compared exactly, booleans by their word, integers by their number', () => {
  for (const [decoded, value, expected] of SAME)
    assert.is(mirrors(decoded, value), expected, `${JSON.stringify(decoded)} and ${String(value)}`);
});

same('every integer in the safe range and every boolean mirrors what a client makes of it', () => {
  fc.assert(
    fc.property(fc.oneof(fc.maxSafeInteger(), fc.integer(), fc.boolean()), fc.maxSafeInteger(), (value, other) => {
      const decoded = decodeMirrored(encode(value)) ?? '';
      assert.ok(mirrors(decoded, value));
      assert.is(mirrors(decoded, other), value === other);
      if (typeof value === 'number') assert.ok(mirrors(`${value}.0`, value));
    }),
    { numRuns: random(20_000) },
  );
});

same('long headers are read in linear time', () => {
  const before = processorMs();
  for (const part of ['0', '1', '1.', '.0', '-', ' ', '=?base64?', '?=', 'QUJD']) {
    const long = part.repeat(200_000);
    for (const header of [long, `${long}x`, `=?base64?${long}?=`, `1.${long}x`]) {
      const decoded = decodeMirrored(header);
      if (decoded !== undefined) mirrors(decoded, 1);
    }
  }
  assert.ok(processorMs() - before < 2_000);
});

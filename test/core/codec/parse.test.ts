/** What the inbound door refuses of a text before it becomes mail. */
import * as fc from 'fast-check';
import * as assert from 'uvu/assert';
import { parseText } from '../../../src/core/codec/inbound/parse.ts';
import { ErrorCode } from '../../../src/core/protocol/errors.ts';
import { character } from '../../harness/character.ts';
import { suite } from '../../harness/door.ts';
import { processorMs } from '../../harness/pace.ts';
import { random, times } from '../../harness/scale.ts';

const test = suite('inbound parse');
const limits = { maxDepth: 64 };

function refusal(text: string): number | undefined {
  const parsed = parseText(text, limits);
  return parsed.ok ? undefined : parsed.error.code;
}

test('passes plain JSON through as JSON.parse reads it', () => {
  for (const text of [
    '1',
    'null',
    '"a:b{[}]\\""',
    '{}',
    '[]',
    '{"a":{"b":[1,2,{"c":"\\\\"}]}}',
    ' { "x" : "\\u0041" } ',
  ]) {
    const parsed = parseText(text, limits);
    assert.equal(parsed.ok && parsed.value, JSON.parse(text));
  }
});

test('agrees with JSON.parse on every JSON value', () => {
  fc.assert(
    fc.property(fc.json({ maxDepth: 8 }), (text) => {
      const parsed = parseText(text, limits);
      const hidesPrototype = /__proto__|constructor/.test(text);
      const halves = !text.isWellFormed() || /\\u[dD][89a-fA-F]/.test(text);
      if (!hidesPrototype && !halves) assert.equal(parsed.ok && { value: parsed.value }, { value: JSON.parse(text) });
    }),
    { numRuns: random(2_000) },
  );
});

test('refuses text that is no JSON with -32700', () => {
  for (const text of [
    '',
    '{',
    '{"a":}',
    "{'a':1}",
    '{"a":1,}',
    'undefined',
    'NaN',
    '{"a":01}',
    '\u0000',
    '{"a":"\n"}',
    '[1,2',
  ]) {
    assert.is(refusal(text), ErrorCode.ParseError, JSON.stringify(text));
  }
});

test('S-09, CVE-2026-27896: refuses the same key twice at any depth', () => {
  for (const text of [
    '{"a":1,"a":2}',
    '{"x":[{"id":1,"b":2,"id":3}]}',
    '{"a":1,"\\u0061":2}',
    '{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}',
  ]) {
    assert.is(refusal(text), ErrorCode.InvalidRequest, text);
  }
});

test('tells keys from colons inside of strings', () => {
  assert.is(refusal('{"a":"b:c","d:e":"\\":\\"","f":["g:h",":"]}'), undefined);
});

test('S-09: refuses keys that reach the prototype of every object', () => {
  for (const text of [
    '{"__proto__":{}}',
    '{"a":[{"__proto__":1}]}',
    '{"\\u005f_proto__":{}}',
    '{"constructor":{"prototype":{"x":1}}}',
  ]) {
    assert.is(refusal(text), ErrorCode.InvalidRequest, text);
  }
  assert.is(({} as { x?: unknown }).x, undefined);
});

test('lets data have members named constructor and prototype', () => {
  assert.is(refusal('{"constructor":"Ferrari","prototype":"P1"}'), undefined);
});

test('S-09: refuses half of a surrogate pair, and takes whole ones', () => {
  for (const text of ['"\\ud800"', '{"a":"\\uDC00x"}', '{"\\ud800":1}', '["\ud800"]'])
    assert.is(refusal(text), ErrorCode.InvalidRequest, JSON.stringify(text));
  assert.is(refusal('"\\ud83d\\ude00 😀"'), undefined);
});

test('S-09: refuses nesting beyond the limit without parsing it, and takes nesting up to it', () => {
  assert.is(refusal('['.repeat(64) + ']'.repeat(64)), undefined);
  assert.is(refusal('['.repeat(65) + ']'.repeat(65)), ErrorCode.InvalidRequest);
  const before = process.cpuUsage();
  assert.is(refusal('['.repeat(2_000_000)), ErrorCode.InvalidRequest);
  assert.is(refusal('{"a":'.repeat(1_000_000)), ErrorCode.InvalidRequest);
  assert.ok(process.cpuUsage(before).user < 1_000_000);
});

test('is linear in the length of the text', () => {
  const time = (text: string): number => {
    // What other processes take from this one does not count.
    const started = processorMs();
    parseText(text, limits);
    return processorMs() - started;
  };
  for (const make of [
    (n: number) => `"${'\\\\'.repeat(n)}"`,
    (n: number) => `"${'\\"'.repeat(n)}`,
    (n: number) => `[${'{"a":1},'.repeat(n)}1]`,
  ]) {
    time(make(1_000));
    assert.ok(time(make(times(400_000, { quick: 200_000 }))) < 1_500);
  }
});

test('never throws, whatever comes', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string({ unit: character }),
        fc.string({ unit: fc.constantFrom('{', '}', '[', ']', '"', ':', ',', '\\', 'a', '1') }),
      ),
      (text) => void parseText(text, limits),
    ),
    { numRuns: random(5_000) },
  );
});

test('S-46: a long message that does not fit is rejected with its id before it is parsed, by a lower bound of its memory', () => {
  const bodies: readonly unknown[] = [
    'x'.repeat(20_000),
    Array.from({ length: 10_000 }, () => ({})),
    Array.from({ length: 10_000 }, () => []),
    Array.from({ length: 10_000 }, (_, index) => index),
    Object.fromEntries(Array.from({ length: 3_000 }, (_, index) => [`key${index}`, { a: 1 }])),
  ];
  for (const params of bodies) {
    const text = JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'tools/call', params });
    const asked: number[] = [];
    const full = parseText(text, limits, (bytes) => {
      asked.push(bytes);
      return 'no room';
    });
    if (full.ok) throw new Error('expected a rejection');
    assert.is(full.error.code, ErrorCode.Overloaded);
    assert.is(full.error.message, 'no room');
    assert.equal(full.value, { jsonrpc: '2.0', id: 7, method: 'tools/call' });
    const parsed = parseText(text, limits);
    if (!parsed.ok) throw parsed.error;
    const [bytes = 0] = asked;
    assert.ok(bytes <= parsed.bytes && bytes > 0.99 * parsed.bytes, `expected about ${parsed.bytes}, got ${bytes}`);
  }
});

test('a short message is parsed without a check of the room', () => {
  const parsed = parseText('{"jsonrpc":"2.0"}', limits, () => 'no room');
  assert.ok(parsed.ok);
});

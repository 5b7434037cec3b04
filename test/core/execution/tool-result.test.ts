/** What a tool may return, and what becomes of it. */
import * as assert from 'uvu/assert';
import { audio, embedded, image, link, text } from '../../../src/core/execution/content.ts';
import { ENVELOPE_META, toolResult } from '../../../src/core/execution/envelope.ts';
import { jsonLength } from '../../../src/core/execution/size.ts';
import { type ResultPolicy, toToolResult } from '../../../src/core/execution/tools.ts';
import { suite } from '../../harness/door.ts';

const test = suite('tool result');
const policy: ResultPolicy = { durationMs: () => 12.345, maxResultLength: 100, structured: false };

test('a string is text, and data where there is an output schema', () => {
  assert.equal(toToolResult('x', policy), { content: [{ type: 'text', text: 'x' }] });
  assert.equal(toToolResult('x', { ...policy, structured: true }), { content: [], structuredContent: 'x' });
});

test('nothing is an empty result', () => {
  assert.equal(toToolResult(undefined, policy), { content: [] });
  assert.equal(toToolResult(null, policy), { content: [] });
  assert.equal(toToolResult(null, { ...policy, structured: true }), { content: [], structuredContent: null });
});

test('content blocks stay as they are, one or several', () => {
  const blocks = [
    text('a'),
    image(new Uint8Array([1, 2]), 'image/png'),
    audio('AAAA', 'audio/wav'),
    link('x://y', 'y'),
    embedded('x://z', 'z', 'text/plain'),
  ];
  assert.equal(toToolResult(blocks, policy), { content: blocks });
  assert.equal(toToolResult(blocks[0], policy), { content: [blocks[0]] });
  assert.is(blocks[1]?.type === 'image' && blocks[1].data, 'AQI=');
});

test('a value that resembles content is data', () => {
  for (const data of [
    { type: 'text' },
    [text('a'), { type: 'text' }],
    [],
    { type: 'video', data: 'x', mimeType: 'y' },
    5,
    true,
    { content: 'x' },
    { content: [text('a')], more: 1 },
  ]) {
    assert.equal(toToolResult(data, policy), { content: [], structuredContent: data });
  }
});

test('a whole result stays as it is', () => {
  const whole = { content: [text('a')], structuredContent: { a: 1 }, isError: true, _meta: { b: 2 } };
  assert.equal(toToolResult(whole, policy), whole);
  assert.equal(toToolResult({ structuredContent: { a: 1 } }, policy), { structuredContent: { a: 1 }, content: [] });
});

test('rejects a value that is nearly a whole result', () => {
  const rows: readonly (readonly [value: unknown, message: RegExp])[] = [
    [{ isError: true, message: 'down' }, /beside "isError", got "message"\. Or throw a ToolError/],
    [{ isError: true }, /expected "content" beside "isError"/],
    [{ content: [{ type: 'txt', text: 'a' }] }, /content\[0\]: expected a block.* got the type "txt" with text/],
    [{ content: [text('a'), { type: 'image' }], isError: true }, /content\[1\].* got the type "image" with nothing/],
  ];
  for (const [value, message] of rows) {
    assert.throws(() => toToolResult(value, policy), message);
    assert.equal(toToolResult(value, { ...policy, structured: true }), { content: [], structuredContent: value });
  }
});

test('a value that JSON cannot hold is rejected', () => {
  for (const wrong of [() => {}, Symbol('x'), 10n])
    assert.throws(() => toToolResult(wrong, policy), /expected the tool to return a string/);
});

test('an envelope fills in its duration and its rows', () => {
  const result = toToolResult(toolResult({ data: [{ id: 1 }], meta: { tier: 'cache' } }), policy);
  const meta = { rowCount: 1, truncated: false, durationMs: 12.35, tier: 'cache' };
  assert.equal(result, {
    content: [],
    structuredContent: { data: [{ id: 1 }], meta },
    _meta: { [ENVELOPE_META]: meta },
  });
});

test('an envelope with an error is an error', () => {
  const result = toToolResult(toolResult({ error: 'no such table' }), policy);
  assert.is(result.isError, true);
  assert.equal(result.structuredContent, {
    meta: { truncated: false, durationMs: 12.35 },
    error: { message: 'no such table' },
  });
});

test('data that is too large is cut to what fits, and says so', () => {
  const rows = Array.from({ length: 50 }, (_, id) => ({ id }));
  const cut = toToolResult(toolResult({ data: rows }), policy).structuredContent as {
    data: unknown[];
    meta: { note: string; rowCount: number; truncated: boolean };
  };
  assert.ok(cut.data.length > 0 && jsonLength(cut.data) <= 100);
  assert.is(cut.meta.rowCount, 50);
  assert.is(cut.meta.truncated, true);
  assert.match(cut.meta.note, new RegExp(`first ${cut.data.length} of 50 rows`));

  const long = toToolResult(toolResult({ data: 'x'.repeat(500) }), policy).structuredContent as {
    data: string;
    meta: { note: string };
  };
  assert.is(long.data.length, 98);
  assert.match(long.meta.note, /first 98 of 500 characters/);

  const wide = Object.fromEntries(rows.map(({ id }) => [`key${id}`, id]));
  const narrow = toToolResult(toolResult({ data: wide }), policy).structuredContent as {
    data: object;
    meta: { note: string };
  };
  assert.ok(jsonLength(narrow.data) <= 100);
  assert.match(narrow.meta.note, /of 50 members/);
});

test('jsonLength is the length of the JSON, but for escapes', () => {
  for (const value of [null, true, 1.5, 'abc', [], {}, [1, 'a', null], { a: [1, { b: 'c' }], d: false }]) {
    assert.is(jsonLength(value), JSON.stringify(value).length);
  }
  const cycle: { self?: unknown } = {};
  cycle.self = cycle;
  assert.ok(jsonLength(cycle, 1_000) > 1_000);
});

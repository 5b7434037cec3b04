/** The shapes of results: types and never values, of one principal and one definition. */
import * as assert from 'uvu/assert';
import type { JsonValue } from '../../../../src/core/protocol/json.ts';
import type { Tool } from '../../../../src/core/protocol/types.ts';
import { typeOf } from '../../../../src/core/schema/written-types.ts';
import { ResultShapes } from '../../../../src/features/code/functions/result-shapes.ts';
import { suite } from '../../../harness/door.ts';

const test = suite('shapes of results');
const TOOL: Tool = { name: 'list', inputSchema: { type: 'object' } };

const typeLearned = (value: JsonValue): string => {
  const shapes = new ResultShapes();
  shapes.learn('ada', TOOL, value);
  return typeOf(shapes.get('ada', TOOL));
};

const SHAPES: readonly (readonly [value: JsonValue, type: string])[] = [
  ['secret', 'string'],
  [7, 'number'],
  [null, 'null'],
  [[], 'unknown[]'],
  [{ id: 1, name: 'Ada', tags: ['a'] }, '{ id: number; name: string; tags: string[] }'],
  // A member that was null may be anything.
  [{ owner: null }, '{ owner: unknown }'],
  [[{ a: 1 }, { a: 'x', b: true }], '{ a: number | string; b?: boolean }[]'],
  [[1, 'x', null], '(number | string | null)[]'],
  // The names of members of a record are data.
  [{ 'ada@example.com': 1, 'bob@example.com': 2 }, 'Record<string, number>'],
  [{ '2026-01-01': { total: 1 } }, 'Record<string, { total: number }>'],
  [{ u12345: 1 }, 'Record<string, number>'],
  [{ line2: 1, $ref: 'x' }, '{ line2: number; $ref: string }'],
  [Object.fromEntries(Array.from({ length: 60 }, (_, at) => [`a${'b'.repeat(at)}`, at])), 'Record<string, number>'],
];

for (const [value, type] of SHAPES)
  test(`learns ${type} of ${JSON.stringify(value).slice(0, 60)}`, () => {
    assert.is(typeLearned(value), type);
  });

test('a shape has no value of the result', () => {
  const secrets = { password: 'hunter2', list: [{ token: 'abc123' }], count: 4_242 };
  const shapes = new ResultShapes();
  shapes.learn('ada', TOOL, secrets);
  assert.not.match(JSON.stringify(shapes.get('ada', TOOL)), /hunter2|abc123|4242/);
});

test('another principal and another definition have another shape, and the first result counts', () => {
  const shapes = new ResultShapes();
  shapes.learn('ada', TOOL, { a: 1 });
  shapes.learn('ada', TOOL, { b: 1 });
  assert.is(typeOf(shapes.get('ada', TOOL)), '{ a: number }');
  assert.is(shapes.get('bob', TOOL), undefined);
  assert.is(shapes.get('ada', { ...TOOL, description: 'Lists.' }), undefined);
  // The same definition after a restart of the upstream.
  assert.is(typeOf(shapes.get('ada', { ...TOOL })), '{ a: number }');
});

test('shapes are bounded: deep and long results, and the number of tools', () => {
  const deep = JSON.parse(`${'{"a":'.repeat(500)}1${'}'.repeat(500)}`);
  assert.ok(typeLearned(deep).length < 200);
  assert.ok(
    typeLearned(Array.from({ length: 10_000 }, (_, at) => ({ [`a${'b'.repeat(at % 30)}`]: at }))).length < 2_000,
  );
  const shapes = new ResultShapes();
  const tool = (number: number): Tool => ({ ...TOOL, name: `t${number}` });
  for (let number = 0; number < 1_001; number += 1) shapes.learn('ada', tool(number), number === 0 ? 'x' : 1);
  assert.is(shapes.get('ada', tool(0)), undefined);
  assert.equal(shapes.get('ada', tool(1_000)), { type: 'number' });
});

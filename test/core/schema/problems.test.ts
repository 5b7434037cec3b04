/** The report that a model reads: its form, its bounds, and paths. */
import * as assert from 'uvu/assert';
import { explain, problemAt } from '../../../src/core/schema/problems.ts';
import { suite } from '../../harness/door.ts';

const test = suite('problems');

test('writes one line for each problem under a heading', () => {
  const problems = [
    { path: 'a', expected: 'number', got: 'string "x"' },
    { path: 'b', expected: 'number', got: 'nothing' },
    { path: '', expected: 'object', got: 'null' },
    { path: 'c', expected: 'unused', got: 'number 1', message: 'Too small' },
  ];
  assert.is(
    explain(problems, 'arguments for tool "add"'),
    [
      'Invalid arguments for tool "add":',
      '- a: expected number, got string "x"',
      '- b: expected number, got nothing',
      '- expected object, got null',
      '- c: Too small (got number 1)',
    ].join('\n'),
  );
});

test('writes eight lines at most, then how many more there are', () => {
  const problems = (count: number) => Array.from({ length: count }, () => ({ path: 'a', expected: 'b', got: 'c' }));
  const last = (count: number) => explain(problems(count), 'x').split('\n').at(-1);
  assert.is(last(8), '- a: expected b, got c');
  assert.is(last(9), '- and 1 more');
  assert.is(last(11), '- and 3 more');
  assert.is(last(100), '- and at least 92 more');
});

test('cuts long words of a library and keeps them on one line', () => {
  const text = explain([{ path: 'a', expected: '', got: 'nothing', message: `x\u2028\n${'y'.repeat(100_000)}` }], 's');
  assert.is(text.split(/[\n\u2028]/).length, 2);
  assert.ok(text.length < 700);
});

test('writes paths as code would', () => {
  const root = { user: { tags: ['a', { 'odd key': null }], '0': { é: 1 } } };
  const path = (...keys: PropertyKey[]) => problemAt(root, keys, 'x').path;
  assert.is(path(), '');
  assert.is(path('user', 'tags', '1', 'odd key'), 'user.tags[1]["odd key"]');
  assert.is(path('user', 'tags', 1), 'user.tags[1]');
  assert.is(path('user', '0', 'é'), 'user["0"].é');
  assert.is(path('gone', 3, 'x'), 'gone[3].x');
  assert.is(path('say "hi"'), '["say \\"hi\\""]');
});

test('tells what came at a path, by own properties only', () => {
  const got = (...keys: PropertyKey[]) => problemAt({ a: [null, 'x'] }, keys, 'x').got;
  assert.is(got('a'), 'array of 2');
  assert.is(got('a', 0), 'null');
  assert.is(got('a', '1'), 'string "x"');
  assert.is(got('a', 'length'), 'nothing');
  for (const key of ['constructor', '__proto__', 'toString']) assert.is(got(key), 'nothing');
});

test('cuts a path that is thousands of keys long', () => {
  const { path, got } = problemAt({}, Array(100_000).fill('key'), 'x');
  assert.ok(path.length <= 201 && path.endsWith('…'));
  assert.is(got, 'nothing');
});

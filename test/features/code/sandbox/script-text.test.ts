/** The text of a script: the places of errors, the removal of types, and the hints. */
import * as assert from 'uvu/assert';
import { hintFor } from '../../../../src/features/code/sandbox/script-hints.ts';
import { isTyped, placeIn, sourcesOf, withoutTypes } from '../../../../src/features/code/sandbox/script-text.ts';
import { suite } from '../../../harness/door.ts';

const test = suite('the text of a script');

/** The stack of an error at a place of the text that the engine reads. */
const stack = (line: number, column: number): string =>
  `    at map (native)\n    at f (script.js:${line}:${column})\n    at g (prelude.js:9:9)`;

test('places are those of the script, and not of the function around it', () => {
  const place = (code: string, at: string) => placeIn(code, at, 11);
  assert.equal(place('a.b', stack(1, 11 + 3)), { line: 1, column: 3, excerpt: 'a.b\n  ^' });
  assert.equal(place('a\n\tb.c', stack(2, 4)), { line: 2, column: 4, excerpt: '\tb.c\n\t  ^' });
  assert.equal(place('a\r\n  b', stack(2, 1)), { line: 2, column: 3, excerpt: '  b\n  ^' });
  assert.equal(place('if (a) {', stack(2, 2)), { line: 1, column: 9, excerpt: 'if (a) {\n        ^' });
  assert.equal(place('a', stack(9_999, 7)), { line: 1, column: 2, excerpt: 'a\n ^' });
  assert.equal(place('a', 'at prelude.js:1:1'), {});
});

test('a long line is quoted around the column, without characters that move the caret', () => {
  const { excerpt = '' } = placeIn(`\n${'x'.repeat(500)}\u001b[31m!${'y'.repeat(500)}`, stack(2, 506), 11);
  const [line = '', caret = ''] = excerpt.split('\n');
  assert.is(line.length, 160);
  assert.is(line[caret.length - 1], '!');
  assert.not.ok(line.includes('\u001b'));
});

test('types of TypeScript are recognised at the place of the syntax error', () => {
  const typed: readonly (readonly [string, number])[] = [
    ['let x: number = 1', 6],
    ['const f = (a: string, b?: Foo) => a', 13],
    ['const f = (a?: string) => a', 13],
    ['const x = y as Foo', 13],
    ['const x = { a: 1 } satisfies Foo', 20],
    ['interface A { b: string }', 11],
    ['type A = { b: string }', 6],
    ['enum A { B }', 1],
    ['const m = new Map<string, number>()', 35],
    ['function f<T>(a) {}', 11],
  ];
  for (const [code, column] of typed) assert.ok(isTyped(code, { line: 1, column }), code);
  const plain: readonly (readonly [string, number])[] = [
    ['const a = ;', 11],
    ['return { a: 1', 14],
    ['if (a { }', 7],
    ['a b', 3],
  ];
  for (const [code, column] of plain) assert.not.ok(isTyped(code, { line: 1, column }), code);
});

test('types are removed if this Node can, and the lines stay', () => {
  const strip = (code: string): string => code.replace(': number', '        ');
  const [, typed] = sourcesOf('let x: number = 1;');
  const [, plain] = sourcesOf('let x = 1;');
  assert.ok(typed && plain);
  assert.equal(withoutTypes(typed, strip)?.source, typed.source.replace(': number', '        '));
  assert.is(withoutTypes(plain, strip), undefined, 'without types there is nothing to do');
  assert.is(withoutTypes(typed, null), undefined, 'this Node cannot');
  const failing = () => {
    throw new SyntaxError('no');
  };
  assert.is(withoutTypes(typed, failing), undefined);
});

test('a missing global is named with the text to write instead', () => {
  assert.is(hintFor('ReferenceError', 'setTimeout is not defined', []), ': write await sleep(ms)');
  assert.match(hintFor('ReferenceError', "'fetch' is not defined", []), /no network/);
  assert.match(hintFor('ReferenceError', 'search_functions is not defined', []), /a tool of its own/);
  assert.is(
    hintFor('ReferenceError', 'github is not defined', ['gitlab']),
    ': the globals of a script are gitlab, sleep, ask, resource, progress, console',
  );
  assert.match(
    hintFor(
      'ReferenceError',
      'a is not defined',
      Array.from({ length: 30 }, (_, at) => `g${at}`),
    ),
    / and 10 more$/,
  );
  assert.is(hintFor('TypeError', 'setTimeout is not defined', []), '');
});

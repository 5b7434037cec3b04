/** The forms in which models write a script, and the body that each becomes. */
import * as assert from 'uvu/assert';
import { bodyOf } from '../../../../src/features/code/functions/script-body.ts';
import { suite } from '../../../harness/door.ts';

const test = suite('bodies of scripts');

const REWRITTEN: readonly (readonly [code: string, body: string])[] = [
  ['```js\nreturn 1\n```', '\nreturn 1'],
  ['```\nreturn 1\n```\n', '\nreturn 1'],
  ['```javascript\nasync () => { return 1 }\n```', '\nasync () => { return 1 }'],
  ['async function main() {\n  return 5;\n}\nmain();', 'async function main() {\n  return 5;\n}\nreturn main();'],
  ['async function main() { return 5 }\n  await main()', 'async function main() { return 5 }\n  return main();'],
];

for (const [code, body] of REWRITTEN)
  test(`rewrites ${JSON.stringify(code)}`, () => {
    assert.is(bodyOf(code), body);
    // Errors name the lines of the model.
    assert.ok(body.split('\n').length <= code.split('\n').length + 1);
  });

const KEPT: readonly string[] = [
  'async () => { return 1 }',
  'await shop.list({ a: 1 })',
  'return 1',
  'const f = async () => { return 1 };\nreturn f()',
  '(async () => { a() })();\nreturn 2;',
  'async () => { return 1 }\n+ 2',
  'async () => { return "}" }',
  'async () => { return 1 }; foo({})',
  'async function main() { return 5 }\nreturn await main()',
  'async function main() { return 5 }\nif (a) {\nreturn 1\n}\nmain()',
  'async function main(a) { return 5 }\nmain()',
  'main()',
  'await shop.a(); await shop.b()',
  'await shop.a()\nawait shop.b()',
  'await shop.a() + await shop.b({',
  'return `\n```js\nreturn 1\n```\n`',
  '',
];

for (const code of KEPT)
  test(`keeps ${JSON.stringify(code)}`, () => {
    assert.is(bodyOf(code), code);
  });

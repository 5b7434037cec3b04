/** Calls of unknown functions in scripts: those that are found before the script runs, and the scripts that must pass. */
import * as assert from 'uvu/assert';
import { checkCalls } from '../../../../src/features/code/functions/check-calls.ts';
import type { CallableFunctions } from '../../../../src/features/code/functions/code-functions.ts';
import { NearNames } from '../../../../src/features/code/functions/near-names.ts';
import { suite } from '../../../harness/door.ts';
import { assertFigure, processorMs } from '../../../harness/pace.ts';

const test = suite('names in scripts');

const KNOWN = ['shop.orders_list', 'shop.refund', 'gh.issues_list', 'gh.issues_create'];
const functions: CallableFunctions = {
  groups: ['gh', 'shop'],
  find: (name) =>
    KNOWN.includes(name)
      ? { key: name, definition: { name, inputSchema: { type: 'object' } }, effects: false }
      : undefined,
  near: (name) => new NearNames(KNOWN).of(name, 3),
  declared: () => undefined,
  learn: () => {},
};

const placesOf = (code: string): readonly string[] =>
  checkCalls(code, functions).map(({ name, line, column }) => `${name} ${line}:${column}`);

const WRONG: readonly (readonly [code: string, ...places: string[]])[] = [
  ['return await shop.refnd({ order: 1 })', 'shop.refnd 1:14'],
  ['const a = 1;\n  await gh.issuesList();', 'gh.issuesList 2:9'],
  ['shop . missing ( )', 'shop.missing 1:1'],
  ['shop/* a */.missing()', 'shop.missing 1:1'],
  ['await gh["issues-list"]({})', 'gh.issues-list 1:7'],
  ['await gh.nothing.raw({})', 'gh.nothing 1:7'],
  [`return \`\${await shop.missing()} \${shop.refund({})}\``, 'shop.missing 1:17'],
  [`return \`\${\`\${shop.missing()}\`}\``, 'shop.missing 1:14'],
  ['const n = a / shop.missing() / 2', 'shop.missing 1:15'],
  ['const r = /[/"]/.test(x); shop.missing()', 'shop.missing 1:27'],
  ['const r = x => x; shop.a(); gh.b();', 'shop.a 1:19', 'gh.b 1:29'],
  ['return await Promise.all([1, 2].map((n) => shop.get_order({ n })))', 'shop.get_order 1:44'],
  ['const x = { shops: 1 }; shop.missing()', 'shop.missing 1:25'],
  ['const { data } = search_functions({ query: "a" })', 'search_functions 1:18'],
  ['try { x() } catch { shop.missing() }', 'shop.missing 1:21'],
];

for (const [code, ...places] of WRONG)
  test(`reports ${places.join(', ')} in ${JSON.stringify(code)}`, () => {
    assert.equal(placesOf(code), places);
  });

const RIGHT: readonly (readonly [why: string, code: string])[] = [
  ['a known function', 'await shop.orders_list({}); await gh.issues_create.raw({})'],
  ['a string', 'return "shop.missing()" + \'shop.missing()\''],
  ['a template', 'return `shop.missing()`'],
  ['a string with an escaped quote', 'return "\\"; shop.missing()"'],
  ['a comment', '// shop.missing()\n/* shop.missing() */ return 1'],
  ['a regular expression', 'return /shop.missing()/.test(text)'],
  ['a regular expression behind a parenthesis', 'if (a) /shop.missing()/.test(b)'],
  ['a variable of the same name', 'const shop = { missing() {} }; shop.missing()'],
  ['a parameter of the same name', 'shops.map((shop) => shop.missing())'],
  ['a variable of a loop', 'for (const shop of shops) shop.missing()'],
  ['a destructured variable', 'const { shop } = data; return shop.missing()'],
  ['a member of another object', 'data.shop.missing()'],
  ['an optional member of another object', 'data?.shop.missing()'],
  ['a function that the script adds', 'shop.missing = () => 1; shop.missing()'],
  ['a function that the script looks for', 'if (shop.missing) await shop.missing()'],
  ['a function that the script looks for by name', 'if ("missing" in shop) await shop.missing()'],
  ['an optional call', 'await shop.missing?.()'],
  ['an optional member', 'await shop?.missing()'],
  ['a call whose failure is caught', 'await shop.missing({}).catch(() => undefined)'],
  ['a call in a block of try', 'try { await shop.missing() } catch { await shop.refund({}) }'],
  ['a member of all objects', 'return shop.toString() + shop.hasOwnProperty("a")'],
  ['a computed name', 'await shop[name]({}); await shop["a" + b]()'],
  ['a value of a function', 'const list = shop.missing; return list'],
  ['a method of a class', 'class A { shop() { return 1 } }'],
  ['a group that is passed on', 'helper(shop); shop.missing()'],
  ['a string without end', 'return "shop.missing()'],
  ['a template without end', 'return `shop.missing() ${shop.missing()'],
  ['a comment without end', '/* shop.missing()'],
  ['a tool of that name that the script defines', 'const run_code = (f) => f(); run_code(() => 1)'],
];

for (const [why, code] of RIGHT)
  test(`reports nothing in ${why}`, () => {
    assert.equal(placesOf(code), []);
  });

test('suggests near names, and says of a tool that it is one', () => {
  const [{ message = '' } = {}] = checkCalls('shop.order_list()', functions);
  assert.is(message, 'shop.order_list is no function. Did you mean shop.orders_list?');
  assert.match(checkCalls('gh.zzz()', functions)[0]?.message ?? '', /Find it with search_functions/);
  assert.is(checkCalls('run_code("")', functions)[0]?.message, 'run_code is a tool. Call it outside of scripts.');
});

test('reads 64 KiB of nested calls, blocks and quotes in a bounded time', () => {
  const most = 65_536;
  for (const part of ['shop.a(', 'try{', '`${', "'a'+", 'shop.missing();', '/', '(', '"\\', 'shop', ')']) {
    const code = part.repeat(Math.ceil(most / part.length)).slice(0, most);
    const begin = processorMs();
    checkCalls(code, functions);
    assertFigure(processorMs() - begin, 500, `names in 64 KiB of ${part}`);
  }
});

/** Literal arguments in scripts: those that a schema rejects for sure are reported before the script runs, and all others pass. */
import * as assert from 'uvu/assert';
import type { JsonObject } from '../../../../src/core/protocol/json.ts';
import { checkCalls } from '../../../../src/features/code/functions/check-calls.ts';
import type { CallableFunctions } from '../../../../src/features/code/functions/code-functions.ts';
import { suite } from '../../../harness/door.ts';
import { assertFigure, processorMs } from '../../../harness/pace.ts';

const test = suite('literal arguments in scripts');

const LINE: JsonObject = {
  type: 'object',
  properties: { sku: { type: 'string' }, n: { type: 'integer' }, inner: { $ref: '#/$defs/line' } },
  required: ['sku'],
  additionalProperties: false,
};
const SCHEMAS: Readonly<Record<string, JsonObject>> = {
  'shop.list': {
    type: 'object',
    properties: {
      customer: { type: 'string' },
      status: { enum: ['open', 'closed'] },
      limit: { type: 'integer' },
      since: { anyOf: [{ type: 'string' }, { type: 'null' }] },
    },
    required: ['customer'],
    additionalProperties: false,
  },
  'shop.order': {
    type: 'object',
    properties: { lines: { type: 'array', items: { $ref: '#/$defs/line' } }, price: { type: ['number', 'null'] } },
    required: ['lines'],
    $defs: { line: LINE },
  },
  'shop.any': { type: 'object', properties: { a: {} } },
  'shop.closed': { type: 'object', properties: {}, additionalProperties: false, patternProperties: { '^x-': {} } },
  'shop.loop': { $ref: '#' },
};
const functions: CallableFunctions = {
  groups: ['shop'],
  find: (name) => {
    const inputSchema = SCHEMAS[name];
    return (
      inputSchema && {
        key: name,
        definition: { name, inputSchema: { type: 'object', ...inputSchema } },
        effects: false,
      }
    );
  },
  near: () => [],
  declared: (name) => `Parameters of ${name}.`,
  learn: () => {},
};

const found = (code: string): readonly string[] =>
  checkCalls(code, functions).map(({ line, column, message }) => `${line}:${column} ${message}`);

const WRONG: readonly (readonly [code: string, place: string, words: string])[] = [
  ['await shop.list({ customer: 7 })', '1:29', 'shop.list: expected string for "customer", got 7'],
  ['await shop.list({})', '1:17', '"customer" is missing'],
  ['await shop.list()', '1:7', '"customer" is missing'],
  ['await shop.list({ customer: undefined })', '1:17', '"customer" is missing'],
  ['await shop.list("ada")', '1:17', 'expected object for "arguments", got "ada"'],
  ['await shop.list(["ada"])', '1:17', 'expected object for "arguments", got a list'],
  ['const a = 1;\nawait shop.list({ customer: "ada", sttus: "open" })', '2:36', '"sttus" is no parameter'],
  [
    "await shop.list({ customer: 'ada', status: 'opne' })",
    '1:44',
    'expected "open", "closed" for "status", got "opne"',
  ],
  ['await shop.list({ customer: "ada", limit: 1.5 })', '1:43', 'expected integer for "limit", got 1.5'],
  ['await shop.list({ customer: "ada", limit: -"1", since: 5 })', '1:56', '"since" fits none of its 2 types'],
  ['await shop.list({ ...more, customer: true })', '1:38', 'expected string for "customer", got true'],
  [`await shop.list.raw({ customer: \`a\${1}\`, status: null })`, '1:50', 'for "status", got null'],
  ['await shop.list({ "customer": ["ada"] })', '1:31', 'expected string for "customer", got a list'],
  ['await shop.order({ lines: [{ sku: "a" }, { sk: "b" }] })', '1:44', '"lines[1].sk" is no parameter'],
  [
    'await shop.order({ lines: [{ sku: "a", inner: { sku: 1 } }] })',
    '1:54',
    'expected string for "lines[0].inner.sku"',
  ],
  ['await shop.order({ lines: [], price: "1" })', '1:38', 'expected number or null for "price", got "1"'],
  ['return shop["list"]({ customer: { name } })', '1:33', 'expected string for "customer", got an object'],
];

for (const [code, place, words] of WRONG)
  test(`reports ${place} in ${code}`, () => {
    const [problem = '', ...more] = found(code);
    assert.is(more.length, 0);
    assert.ok(problem.startsWith(`${place} shop.`) && problem.includes(words), problem);
    assert.match(problem, 'Parameters of shop.');
  });

const RIGHT: readonly (readonly [why: string, code: string])[] = [
  ['valid arguments', 'shop.list({ customer: "ada", status: "open", limit: 3, since: null })'],
  ['a variable', 'const args = {}; shop.list(args)'],
  ['a value that is computed', 'shop.list({ customer: "a" + b, limit: 1 + x, status: 1 ? "open" : "closed" })'],
  ['a call', 'shop.list({ customer: name(1), status: of[0], limit: -n })'],
  ['a spread', 'shop.list({ ...args })'],
  ['a spread of arguments', 'shop.list(...args)'],
  ['a computed name', 'shop.list({ [name]: "ada" })'],
  ['a name with escapes', 'shop.list({ "cust\\u006fmer": "ada" })'],
  ['a short form', 'shop.list({ customer, limit })'],
  ['a text with escapes', 'shop.list({ customer: "a\\n", status: "\\x6fpen" })'],
  ['a template', `shop.list({ customer: \`a\${{ b: 1 }.b}\`, status: \`open\` })`],
  ['a literal with a member', 'shop.list({ customer: ["ada"].join(), limit: [1].length, status: {a: 1}.a })'],
  ['a member that is undefined', 'shop.list({ customer: "ada", limit: undefined, other: undefined })'],
  [
    'large and small numbers',
    'shop.list({ customer: "ada", limit: 1_000 }); shop.list({ customer: "ada", limit: 0x1f })',
  ],
  ['a number in another form', 'shop.list({ customer: "ada", limit: 1e3 })'],
  ['a regular expression, which JSON writes as an object', 'shop.any({ a: /x/ })'],
  ['open objects', 'shop.order({ lines: [], other: 1 })'],
  ['names by a pattern', 'shop.closed({ "x-a": 1 })'],
  ['a schema that leads to itself', 'shop.loop({ a: 1 })'],
  ['more than one argument, which the call reports', 'shop.list({}, 1)'],
  ['a call whose failure is caught', 'try { await shop.list({}) } catch {}\nshop.list({}).catch(() => 0)'],
  ['a list with holes and spreads', 'shop.order({ lines: [...lines, { sku: 1 }] })'],
  ['a function in an argument', 'shop.any({ a: () => { return { b: 1 }; }, b(c) { return c } })'],
  ['a group that is a variable', 'const shop = x; shop.list({})'],
  ['a member of the prototype', 'shop.any({ __proto__: null, a: 1 })'],
];

for (const [why, code] of RIGHT)
  test(`reports nothing for ${why}`, () => {
    assert.equal(found(code), []);
  });

test('reports at most three calls, and each declaration once', () => {
  const problems = found('shop.list({});\n'.repeat(5));
  assert.is(problems.length, 3);
  assert.is(problems.filter((each) => each.includes('Parameters of')).length, 1);
});

test('reads the arguments of 64 KiB in a bounded time', () => {
  const item = '{ sku: "a", n: 1, inner: { sku: "b" } },';
  const code = `return shop.order({ lines: [${item.repeat(65_000 / item.length)}] })`;
  const deep = `return shop.any({ a: ${'['.repeat(30_000)}${']'.repeat(30_000)} })`;
  const begin = processorMs();
  assert.equal([found(code), found(deep)], [[], []]);
  assertFigure(processorMs() - begin, 1_000, 'two of the longest scripts');
});

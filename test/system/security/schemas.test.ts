/** S-10: schemas made to hurt. Nothing is fetched for them, and none holds the thread: not when it is registered, and not by any value. */
import { once } from 'node:events';
import { createServer as listener } from 'node:http';
import * as assert from 'uvu/assert';
import { isQuick } from '../../../src/core/schema/bounded.ts';
import { CHECK_MS } from '../../../src/core/schema/json-schema.ts';
import { having, input, refused, report } from '../../core/schema/checking.ts';
import { suite } from '../../harness/door.ts';

const test = suite('hostile schemas');

/** Processor time of this process that `run` takes, in ms: other processes may take the clock's. */
async function costs(run: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  await run();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

/** @returns the compiled schema, or nothing for one that is refused */
function registered(schema: unknown): ReturnType<typeof input> | undefined {
  try {
    return input(schema);
  } catch {
    return undefined;
  }
}

/** Longest that the registration of a schema may take, in ms. */
const REGISTER_MS = 100;

const times = (count: number, make: (index: number) => unknown): unknown[] =>
  Array.from({ length: count }, (_, index) => make(index));
const ref = (name: string | number): object => ({ $ref: `#/$defs/${name}` });

/** Each definition names the next one twice, by this keyword. */
function doubled(levels: number, keyword: string, wrap: (schema: object) => object): object {
  const defs = Object.fromEntries(
    times(levels, (level) => [
      `${level}`,
      { [keyword]: [wrap(ref(`${Number(level) + 1}`)), wrap(ref(`${Number(level) + 1}`))] },
    ]) as [string, object][],
  );
  return { type: 'object', properties: { n: ref(0) }, $defs: { ...defs, [levels]: { type: 'number' } } };
}

const within = (schema: object): object => ({ type: 'object', properties: { n: schema } });
const either = (...more: readonly string[]): object => ({ ...within(ref('e')), required: [...more] });
const union = (keyword: string, ...options: readonly object[]): object => ({
  ...within(ref('e')),
  $defs: { e: { [keyword]: options } },
});
const expression = ['and', 'or'].map((op) => ({
  type: 'object',
  properties: { op: { const: op }, n: ref('e') },
  required: ['op'],
}));

const deep = (levels: number, more: object = {}): unknown => {
  let value: unknown = 'bad';
  for (let level = 0; level < levels; level += 1) value = { ...more, n: value };
  return value;
};
const text = (a: unknown): unknown => ({ a });
const pattern = (source: string): object => having({ type: 'string', pattern: source });

const HOSTILE: readonly (readonly [what: string, schema: unknown, value: unknown])[] = [
  ['a pattern of nested repetitions', pattern('^(a+)+$'), text(`${'a'.repeat(60)}!`)],
  ['a pattern of choices that overlap', pattern('^(a|aa)+$'), text(`${'a'.repeat(90)}!`)],
  ['a pattern of many optional parts', pattern(`^${'a?'.repeat(40)}${'a'.repeat(40)}$`), text('a'.repeat(39))],
  ['a pattern with a back reference', pattern('^(a*)*\\1$'), text(`${'a'.repeat(60)}b`)],
  ['a pattern that begins anywhere, on a long text', pattern('a+$'), text(`${'a'.repeat(1_000_000)}!`)],
  ['a pattern of a fixed length that begins anywhere', pattern('[ab]{40000}c'), text('a'.repeat(1_000_000))],
  ['a pattern whose end is compared again', pattern('^[ab]*[ab]{40000}c'), text('a'.repeat(1_000_000))],
  [
    'a pattern of property names',
    { type: 'object', patternProperties: { '^(a+)+$': true } },
    { [`${'a'.repeat(60)}!`]: 1 },
  ],
  [
    'a pattern for all property names',
    { type: 'object', propertyNames: { pattern: '^(a+)+$' } },
    { [`${'a'.repeat(60)}!`]: 1 },
  ],
  ['a format that takes its square', having({ type: 'string', format: 'url' }), text(`http://${':'.repeat(400_000)}`)],
  ['400,000 items that must differ', having({ uniqueItems: true }), text(times(400_000, (i) => ({ i })))],
  [
    '400,000 items of a type that must differ',
    having({ items: { type: 'object' }, uniqueItems: true }),
    text(times(400_000, (i) => ({ i }))),
  ],
  ['a recursive union, each branch of which goes on (anyOf)', union('anyOf', either('x'), either('y')), deep(60)],
  ['a recursive union, each branch of which goes on (oneOf)', union('oneOf', either(), either('y')), deep(60)],
  ['a recursive union that says which branch is meant', union('anyOf', ...expression), deep(60, { op: 'or' })],
  ['recursion through "not"', union('allOf', either(), { not: either('x') }), deep(60)],
  ['recursion through "if"', { ...within(ref('e')), $defs: { e: { if: either(), else: either() } } }, deep(60)],
  ['references that double at each level of a value', doubled(60, 'anyOf', within), deep(60)],
  ['references that double at one place', doubled(60, 'allOf', (schema) => schema), deep(1)],
  ['a reference that comes back at once', { ...within(ref('e')), $defs: { e: { anyOf: [ref('e'), true] } } }, deep(1)],
  ['5,000 choices', having({ anyOf: times(4_990, (i) => ({ const: i })) }), text('bad')],
  [
    'an enum of 20,000, for 100,000 items',
    having({ items: { enum: times(20_000, String) } }),
    text(times(100_000, () => '19999')),
  ],
];

/** One of each kind: most take all the time that a check may take. */
const QUICK: ReadonlySet<string> = new Set([
  'a pattern of nested repetitions',
  'a pattern whose end is compared again',
  'a pattern for all property names',
  'a format that takes its square',
  '400,000 items that must differ',
  'a recursive union, each branch of which goes on (oneOf)',
  'references that double at one place',
  'a reference that comes back at once',
  'an enum of 20,000, for 100,000 items',
]);

test('S-10: there are 22 of them', () => {
  assert.is(HOSTILE.length, 22);
});

for (const [what, schema, value] of HOSTILE) {
  (QUICK.has(what) ? test : test.full)(
    `S-10: ${what}: refused or taken within 100 ms, and no value is checked for longer than the limit`,
    async () => {
      await input(having({})).check({});
      // The best of three: Node compiles our own code in the meantime, too.
      const took: number[] = [];
      let compiled: ReturnType<typeof registered>;
      const register = (): void => {
        compiled = registered(schema);
      };
      do took.push(await costs(register));
      while (took.length < 3 && Math.min(...took) > REGISTER_MS);
      assert.ok(Math.min(...took) <= REGISTER_MS, `registering took ${took} ms`);
      if (!compiled) return;
      for (const warm of [{}, { a: {}, n: {} }, []]) await compiled.check(warm);
      let lines: readonly string[] = [];
      const checking = await costs(async () => {
        lines = compiled ? await report(compiled, value) : [];
      });
      // The check and the look for details, each broken off in time; and whoever collects the garbage.
      assert.ok(checking <= 2 * CHECK_MS + 250, `checking took ${checking} ms`);
      assert.ok(lines.length <= 10);
      // It works as before.
      assert.type((await compiled.check({})).ok, 'boolean');
    },
  );
}

test('S-10: a value whose check takes too long is rejected with that reason', async () => {
  const lines = await report(input(pattern('^(a+)+$')), { a: `${'a'.repeat(60)}!` });
  assert.match(lines.join('\n'), `expected a value that can be checked within ${CHECK_MS} ms`);
  assert.equal(await input(pattern('^(a+)+$')).check({ a: 'aaa' }), { ok: true, value: { a: 'aaa' } });
});

test('S-10: patterns that read a text once are distinguished from those that may backtrack', () => {
  for (const quick of ['^a+$', '^[a-z0-9_-]{1,64}$', '^\\p{L}+$', '[0-9]', '^\\d{4}-\\d{2}-\\d{2}$', '^\\+?x$', ''])
    assert.ok(isQuick(quick), quick);
  for (const quick of ['^usr_[a-z0-9]+$', '^https://example\\.com/.*$', '\\p{L}', '^[ab]{40000}c', '^a{2}b{3}c*$'])
    assert.ok(isQuick(quick), quick);
  for (const slow of [
    '[ab]{40000}c',
    'a{9}b{9}',
    '^[ab]*[ab]{1000}c',
    `${'[ab]'.repeat(99)}c`,
    `^[ab]*${'[ab]'.repeat(99)}c`,
  ])
    assert.not.ok(isQuick(slow), slow);
  for (const slow of ['a+', '^(a+)+$', '^a*a*$', '(a|b)', '^(a)\\1$', '^a?a?a?aaa$', '^(?:a+){9}$', '.*x'])
    assert.not.ok(isQuick(slow), slow);
});

test('S-10: a schema of another server is never asked for', async () => {
  let asked = 0;
  const server = listener((_, response) => {
    asked += 1;
    response.end('{}');
  });
  server.on('connection', () => {
    asked += 1;
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const address = server.address();
  const at = `127.0.0.1:${typeof address === 'object' ? address?.port : ''}/schema.json`;
  for (const there of [`http://${at}`, `http://${at}#/a`, `//${at}`, `HTTP://${at}`, 'file:///etc/passwd']) {
    refused(having({ $ref: there }), 'nothing is fetched');
    refused({ $id: `http://${at}`, ...having({ $ref: 'other.json' }) }, 'nothing is fetched');
    refused({ $schema: there, type: 'object' }, '"$schema"');
    refused(having({ $dynamicRef: there }), '$dynamicRef');
    // What names a place without asking for it.
    const compiled = input({
      $id: `http://${at}`,
      type: 'object',
      properties: { a: { format: there, contentSchema: {} } },
    });
    assert.equal(await compiled.check({ a: there }), { ok: true, value: { a: there } });
  }
  assert.is(asked, 0);
  server.close();
});

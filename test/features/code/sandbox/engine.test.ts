/** The interface of an engine of scripts: the same tests for the engine of the package and for another one, so that it can be replaced. */
import * as assert from 'uvu/assert';
import type { Engine } from '../../../../src/features/code/sandbox/engine.ts';
import { quickJsEngine } from '../../../../src/features/code/sandbox/quickjs-engine.ts';
import { SandboxedScript } from '../../../../src/features/code/sandbox/sandboxed-script.ts';
import type { Delivery, ScriptSlice } from '../../../../src/features/code/sandbox/script.ts';
import { suite } from '../../../harness/door.ts';
import { times } from '../../../harness/scale.ts';
import { emscriptenEngine } from './emscripten-engine.ts';
import { BOUNDS, endOf, scriptOf, value } from './support.ts';

const ENGINES: Readonly<Record<string, () => Promise<Engine>>> = {
  'quickjs-wasi': quickJsEngine,
  'quickjs-emscripten': async () => emscriptenEngine,
};

for (const [name, load] of Object.entries(ENGINES)) {
  const tests = suite(`an engine of scripts: ${name}`);
  // That another engine fits is not to be seen at each change of the one in the package.
  const test = load === quickJsEngine ? tests : tests.full;
  let engine: Engine;
  tests.before(async () => {
    engine = await load();
  });

  const made = (bounds = {}) => SandboxedScript.create(engine, { ...BOUNDS, ...bounds }, () => false);
  const run = async (code: string, deliveries: readonly Delivery[] = [], bounds = {}): Promise<ScriptSlice> => {
    const script = await made(bounds);
    const slice = script.begin(scriptOf(code), deliveries);
    script.dispose();
    return slice;
  };

  test('a script returns a value, nothing, or waits for its calls', async () => {
    assert.is(
      endOf(await run('return { a: [1, "ü\\u0000\\ud83d", null] }')),
      'returned {"a":[1,"ü\\u0000\\ud83d",null]}',
    );
    assert.is(endOf(await run('const x = await null')), 'returned undefined');
    assert.is(endOf(await run('return null')), 'returned null');
    const slice = await run('return await shop.list({ a: 1 }, undefined, 3, undefined)');
    assert.is(endOf(slice), 'waits');
    assert.equal(slice.calls, [{ number: 1, name: 'shop.list', arguments: '[{"a":1},null,3]', line: 1 }]);
  });

  test('a script that is one expression returns its value, and a function is called', async () => {
    for (const code of [
      'async () => {\n  return await shop.a();\n}',
      '(async () => {\n  return await shop.a();\n})();\n',
      '(async () => {\n  return await shop.a();\n});\n',
      'async function main() { return shop.a("}") }',
      '() => shop.a()',
      '  await shop.a({\n  a: 1,\n});\n',
      'shop.a();',
      '(await shop.a(")"))',
    ])
      assert.is(endOf(await run(code, [value(1, '7')])), 'returned 7', code);
    const { end } = await run('async () => {\n  null.foo;\n}');
    assert.ok(end?.type === 'threw');
    assert.is(end.line, 2);
    assert.is(endOf(await run('')), 'returned undefined');
    assert.is(endOf(await run('// nothing')), 'returned undefined');
  });

  test('a script of several statements returns with return only', async () => {
    for (const code of [
      'function main() { return shop.a() }\nreturn await main(); // a comment',
      'async function main() { return shop.a() }\nreturn main()',
      '"use strict"; return shop.a()',
      'return shop.a() // a comment',
    ])
      assert.is(endOf(await run(code, [value(1, '7')])), 'returned 7', code);
    assert.is(endOf(await run('(async () => { shop.a() })();\nreturn 2;')), 'returned 2');
    assert.is(endOf(await run('await shop.a()\nawait shop.b()', [value(1, '1'), value(2, '2')])), 'returned undefined');
    assert.is(endOf(await run('const f = async () => { return 1 }; f()')), 'returned undefined');
    const invalid = await run('async () => { null.; }');
    assert.ok(invalid.end?.type === 'invalid');
    assert.is(invalid.end.excerpt, 'async () => { null.; }\n                   ^');
  });

  test('calls are numbered in the order of the program, and settle in the order of their deliveries', async () => {
    const code = `const order = [];
await Promise.all([shop.a().then(() => order.push('a')), shop.b.raw().then(() => order.push('b')), sleep(5).then(() => order.push('c'))]);
return order;`;
    const slice = await run(code, [value(3, ''), value(1, '1'), value(2, '{}')]);
    assert.equal(
      slice.calls.map(({ number, name: called, line }) => `${number} ${called} ${line}`),
      ['1 shop.a 2', '2 shop.b.raw 2', '3 sleep 2'],
    );
    assert.is(endOf(slice), 'returned ["c","a","b"]');
  });

  test('the clock is that of the latest delivery, the time zone is UTC, and numbers are random by the seed', async () => {
    const code = `const before = [Date.now(), new Date().toISOString(), performance.now(), new Date().getTimezoneOffset()];
await shop.a();
return [before, Date.now(), new Date().getTime(), performance.now(), performance.timeOrigin, new Date(5).getTime(), Math.random() === Math.random()];`;
    const slice = await run(code, [value(1, '1', 61_000)]);
    const end = 'returned [[1000,"1970-01-01T00:00:01.000Z",0,0],61000,61000,60000,1000,5,false]';
    assert.is(endOf(slice), end);
    const random = 'return [Math.random(), Math.random()]';
    assert.is(endOf(await run(random)), endOf(await run(random)));
    const script = await made();
    assert.is.not(endOf(script.begin(scriptOf(random, 8), [])), endOf(await run(random)));
  });

  test('a failed call throws a ToolError with its facts, which a script can catch', async () => {
    const error = {
      message: 'no such pet',
      tool: 'shop_find',
      code: 404,
      data: '{"id":[1]}',
      carriedOut: 'unknown',
      retryAfterMs: 5,
    } as const;
    const failed: Delivery = { number: 1, at: 2_000, error };
    const code = `try { await shop.find() } catch (error) {
  return [error instanceof ToolError, error instanceof Error, error.name, error.message, { ...error }];
}`;
    assert.is(
      endOf(await run(code, [failed])),
      'returned [true,true,"ToolError","no such pet",{"tool":"shop_find","code":404,"carriedOut":"unknown","retryAfterMs":5,"data":{"id":[1]}}]',
    );
    const { end } = await run('const find = async () => {\n  await shop.find();\n};\nawait find();', [failed]);
    assert.equal(end, {
      type: 'threw',
      name: 'ToolError',
      message: 'no such pet',
      line: 2,
      column: 3,
      excerpt: '  await shop.find();\n  ^',
      fault: error,
    });
  });

  test('an error names the line and the column of the script, also after a call', async () => {
    for (const [code, deliveries] of [
      ['const x = 1;\n\n  null.foo;', []],
      ['await shop.a();\n\n  null.foo;', [value(1, '1')]],
      ['const f = async () => {\nawait shop.a();\n  null.foo;\n};\nawait f();', [value(1, '1')]],
      ['const list = [1];\n\n  list.map(() => null.foo);', []],
    ] as const) {
      const { end } = await run(code, deliveries);
      assert.ok(end?.type === 'threw', code);
      assert.is(end.name, 'TypeError', code);
      assert.is(end.line, 3, code);
      assert.match(end.excerpt ?? '', /null\.foo.*\n *\^$/, code);
    }
  });

  test('a text that is no JavaScript is invalid, and nothing of it runs', async () => {
    for (const [code, line, words] of [
      ['shop.a();\nconst b = ;', 2, /unexpected token/i],
      [`shop.a();\nconst b = ${'1 + '.repeat(100)};${'/**/'.repeat(100)}`, 2, /^unexpected token/i],
      ['shop.a();\nif (true) {\n', 3, /the script ends before/],
      ['shop.a();\nimport fs from "fs";', 2, /no import and no export/],
    ] as const) {
      const { end, calls } = await run(code);
      assert.ok(end?.type === 'invalid', code);
      assert.match(end.message, words);
      assert.is(end.line, line, code);
      assert.equal(calls, []);
    }
  });

  test('the ends by time, calls, output and memory cannot be caught', async () => {
    const short = { sliceMs: times(20, { quick: 5 }) };
    const cases: [string, string, object][] = [
      ['for (;;) try { for (;;); } catch {} finally { continue }', 'processor time', short],
      ['await new Promise(async () => { for (;;); }).catch(() => {}); return 1', 'processor time', short],
      ['new Promise(async () => { for (;;); }); return 1', 'processor time', short],
      ['const f = async () => { await null; for (;;); }; for (;;) await f().catch(() => {})', 'processor time', short],
      [
        'const f = () => new Promise(async () => { for (;;); }); for (;;) await f().catch(() => {})',
        'processor time',
        short,
      ],
      ['(function f() { return Promise.resolve().then(f) })(); await shop.a()', 'processor time', short],
      ['for (;;) try { shop.a() } catch {}', 'calls', {}],
      ['try { return "x".repeat(2e6) } catch { return 1 }', 'output', {}],
      ['for (let i = 0; i < 5; i++) shop.a("x".repeat(5e5)).catch(() => {})', 'output', {}],
      ['return [..."x".repeat(5e6)].map((x) => x + x)', 'memory', { memoryBytes: 8_388_608 }],
    ];
    // Without an interrupt, quickjs-emscripten continues for seconds after its memory is full.
    if (name === 'quickjs-wasi')
      cases.push([
        'for (const a = []; ; ) try { a.push("x".repeat(1e5)) } catch {}',
        'memory',
        { memoryBytes: 8_388_608 },
      ]);
    for (const [code, why, bounds] of cases) {
      const slice = await run(code, [], bounds);
      assert.is(endOf(slice), `stopped ${why}`, code);
    }
  });

  test('a recursion that never ends is an error with its line, and can be caught', async () => {
    const { end } = await run('const f = () => f() + 1;\nf();');
    assert.ok(end?.type === 'stopped' && end.why === 'stack');
    assert.is(end.line, 1);
    assert.is(
      endOf(await run('const f = () => f() + 1;\ntry { f() } catch (e) { return "caught" }')),
      'returned "caught"',
    );
  });

  test('memory is that of this script, and a script can be disposed at any time', async () => {
    const script = await made();
    script.begin(scriptOf('const held = "x".repeat(1e6); await shop.a(); return held.length'), []);
    assert.ok(script.memoryBytes > 0);
    script.dispose();
    assert.is(script.memoryBytes, 0);
  });
}

const test = suite('the engine of the package');

test('a thread takes the code of an engine that another one has compiled', async () => {
  const { code } = await quickJsEngine();
  const engine = await quickJsEngine(code);
  assert.is(engine.code, code);
  const script = await SandboxedScript.create(engine, BOUNDS, () => false);
  assert.is(endOf(script.begin(scriptOf('return 1'), [])), 'returned 1');
  script.dispose();
});

/** Scripts that try to leave their sandbox, to exhaust it, or to deceive it, each with the end that it must have. */
import * as assert from 'uvu/assert';
import { createActorSystem } from '../../../../src/core/kernel/actor-system.ts';
import { systemClock } from '../../../../src/core/kernel/clock.ts';
import { Sandboxes } from '../../../../src/features/code/sandbox/sandboxes.ts';
import type { Delivery } from '../../../../src/features/code/sandbox/script.ts';
import { suite } from '../../../harness/door.ts';
import { atScale, SCALE } from '../../../harness/scale.ts';
import { endOf, scriptOf, value } from './support.ts';

const test = suite('hostile scripts');

const HASTY = atScale({
  quick: { sliceMs: 10, graceMs: 100 },
  full: { sliceMs: 30 },
  proof: { sliceMs: 30 },
});
/** Those with little time for a slice end loops; those with more let scripts reach another limit before. */
const boxes = new Map<'hasty' | 'patient', Sandboxes>();
const incidents: string[] = [];
test.before(() => {
  const system = createActorSystem({ clock: systemClock, log: (_, text) => void incidents.push(text) });
  boxes.set('hasty', new Sandboxes({ system, ...HASTY }));
  // A fourth of the usual memory is full in a fourth of the time.
  boxes.set('patient', new Sandboxes({ system, sliceMs: 1_000, memoryBytes: 8_388_608 }));
});
test.after(() => {
  for (const each of boxes.values()) each.end();
});

let runs = 0;
async function run(code: string, deliveries: readonly Delivery[] = [], patience: 'hasty' | 'patient' = 'patient') {
  runs += 1;
  const found = boxes.get(patience);
  if (!found) throw new Error('the sandboxes are closed');
  return found.begin(`run ${runs}`, `principal ${runs % 2}`, scriptOf(code), deliveries);
}

type Hostile = readonly [code: string, end: RegExp, deliveries?: readonly Delivery[]];

/** Scripts that compute for a tenth of a second or more: other scripts reach the same limits sooner. */
function slow(...scripts: readonly Hostile[]): readonly Hostile[] {
  return SCALE === 'quick' ? [] : scripts;
}

function table(title: string, scripts: readonly Hostile[], patience: 'hasty' | 'patient' = 'patient'): void {
  test(title, async () => {
    for (const [code, end, deliveries] of scripts) {
      const slice = await run(code, deliveries, patience);
      assert.match(endOf(slice), end, `${code}\n${JSON.stringify(slice.end)}`);
    }
    assert.equal(incidents, [], 'no thread has crashed');
  });
}

const TIME = /^stopped processor time$/;
const MEMORY = /^stopped memory$/;
const HOST = '["undefined","undefined","undefined","undefined","undefined"]';
const probe = (global: string): string =>
  `const found = ${global};\nreturn [typeof found.process, typeof found.require, typeof found.Buffer, typeof found.WebAssembly, typeof found.host];`;
const returnsHost = new RegExp(`^returned ${HOST.replace(/[[\]]/g, '\\$&')}$`);

table('S-130: constructors, evaluation and imports lead to nothing outside', [
  [probe('globalThis'), returnsHost],
  [probe('(function () { return this })()'), returnsHost],
  [probe('new Function("return this")()'), returnsHost],
  [probe('(async () => {}).constructor("return this")() && globalThis'), returnsHost],
  [probe('shop.list.constructor("return this")()'), returnsHost],
  [probe('(0, eval)("this")'), returnsHost],
  [probe('await shop.a().constructor.constructor("return globalThis")()'), returnsHost],
  [probe('console.log.constructor("return globalThis")()'), returnsHost],
  [
    probe(
      '(await (async () => { try { await shop.a() } catch (e) { return e } })()).constructor.constructor("return this")()',
    ),
    returnsHost,
    [{ number: 1, at: 5, error: { message: 'no' } }],
  ],
  ['return await import("node:fs")', /^threw ReferenceError: /],
  ['return await import("data:text/javascript,export default 1")', /^threw ReferenceError: /],
  ['return typeof arguments', /^returned /],
  ['return require("fs")', /^threw ReferenceError: require is not defined: a script has the language itself/],
  ['return process.env', /^threw ReferenceError: process is not defined/],
  [
    'return [typeof Atomics, typeof WeakRef, typeof FinalizationRegistry, typeof setTimeout, typeof fetch, typeof Worker, typeof std, typeof os, typeof bjson]',
    /^returned \["undefined"(,"undefined"){8}\]$/,
  ],
  ['return (function f() { return f.caller })()', /^(threw TypeError|returned (null|undefined))/],
  [
    'return Object.getOwnPropertyNames(globalThis).filter((name) => /host|qjs|prelude|deliver|begin|prepare/i.test(name))',
    /^returned \[\]$/,
  ],
  // vm2 177 and 515: errors and proxies that carry the host.
  [
    'Error.prepareStackTrace = (_, frames) => frames.map((frame) => frame.getThis?.()); return typeof new Error("x").stack',
    /^returned "string"$/,
  ],
  [
    'const e = new Error("x"); e.name = Symbol(); try { e.stack; String(e) } catch (inner) { return inner.constructor.constructor("return typeof process")() }\nreturn "none"',
    /^returned "(undefined|none)"$/,
  ],
  [
    'return await shop.a(new Proxy(class {}, { get: (_, key) => key === "toJSON" ? () => Function("return typeof process")() : undefined }))',
    /^threw TypeError: argument 1 of shop.a is a function/,
  ],
]);

table(
  'S-131: loops, promises and regular expressions that never end are stopped, and cannot catch it',
  [
    ['while (true) {}', TIME],
    ['for (;;) try { for (;;); } catch {} finally { continue }', TIME],
    ['(function again() { return Promise.resolve().then(again) })(); await new Promise(() => {})', TIME],
    ['const f = () => new Promise(async () => { for (;;); }); for (;;) await f().catch(() => {})', TIME],
    ['new Promise((resolve) => { for (;;); }); return 1', TIME],
    ['return /(a+)+$/.test("a".repeat(40) + "b")', TIME],
    ['return /^(?:(?:a|b)*)*$/.test("ab".repeat(1e5) + "c")', TIME],
    ['[3, 1, 2].sort(() => { for (;;); })', TIME],
    ['const a = Array.from({ length: 1e6 }, Math.random); for (;;) a.sort()', /^stopped (processor time|memory)$/],
    ['return JSON.stringify({ get a() { for (;;); } })', TIME],
    ['return { get a() { for (;;); } }', TIME],
    ['return { toJSON() { for (;;); } }', TIME],
    ['const a = { get b() { return Promise.resolve(1) } }; return a', TIME],
    ['console.log({ get a() { for (;;); } })', TIME],
    ['throw { get message() { for (;;); } }', TIME],
    ['throw Object.assign(new Error("x"), { toString() { for (;;); } })', /^threw Error: x$/],
    [
      'for await (const x of { [Symbol.asyncIterator]: () => ({ next: async () => ({ value: 1, done: false }) }) }) ;',
      TIME,
    ],
    ['Array.prototype.includes.call({ length: 2 ** 53 - 1 }, 1)', TIME],
    ['return "" + { [Symbol.toPrimitive]() { for (;;); } }', TIME],
    ['function* g() { for (;;) yield 1 } return new Set(g()).size', TIME],
    ['queueMicrotask(function again() { queueMicrotask(again) })\nawait new Promise(() => {})', TIME],
    ['class A { static { for (;;); } }', TIME],
    ['new Proxy({}, { ownKeys() { for (;;); } }); return new Proxy({}, { ownKeys() { for (;;); } })', TIME],
    ['let n = 0; const f = () => { n++; try { f() } catch { f() } }; f()', /^stopped (processor time|stack)$/],
    ['for (let i = 0; ; i++) console.log("x".repeat(1e4))', TIME],
  ],
  'hasty',
);

table(
  'S-131: operations that reach no interrupt end their thread, and the next script runs',
  [
    // quickjs-emscripten 219.
    ["return new Array(1_000_000_000) + ''", TIME],
    ...slow(['return new Array(1e8).join("a").length', TIME]),
    ['return 1', /^returned 1$/],
  ],
  'hasty',
);

table('S-131: memory is bounded, however it is taken', [
  ['const a = []; for (;;) a.push("x".repeat(1e5) + a.length)', MEMORY],
  ['const a = []; for (;;) try { a.push(new Uint8Array(5e5)) } catch {}', MEMORY],
  ...slow(
    ['let a = [1]; for (;;) a = a.concat(a)', /^stopped (memory|processor time)$/],
    ['let b = 3n; for (;;) b *= b', /^(threw RangeError: BigInt is too large|stopped)/],
    ['const m = new Map(); for (let i = 0; ; i++) m.set(i, "x".repeat(1000) + i)', /^stopped (memory|processor time)$/],
  ),
  ['return new Array(1e9).fill()', /^stopped (memory|processor time)$/],
  ['return new Array(1024 * 1024 * 60).fill(0)', /^stopped (memory|processor time)$/],
  ["return [...'.'.repeat(1e9)]", MEMORY],
  ['for (;;) new BigInt64Array(1e9).fill(1n)', /^(threw RangeError|stopped memory)/],
  ['return new ArrayBuffer(1e9)', MEMORY],
  ['return new SharedArrayBuffer(1e9)', /^(stopped memory|threw RangeError)/],
  ['return "x".repeat(2 ** 30)', /^(stopped memory|threw (RangeError|InternalError))/],
  ['let s = "a"; for (;;) s += s', /^(stopped memory|threw InternalError: string too long)/],
  ['return JSON.parse("[" + "[],".repeat(5e6) + "1]").length', /^stopped (memory|processor time)$/],
  ['return JSON.parse("[".repeat(1e6))', /^stopped stack$/],
  ['return eval("(".repeat(1e5) + ")".repeat(1e5))', /^stopped stack$/],
  ['return new RegExp("(".repeat(1e5) + ")".repeat(1e5))', /^(stopped stack|threw SyntaxError)/],
  ['const f = (n) => f(n + 1) + 1; f(0)', /^stopped stack$/],
  ['let o = {}; for (let i = 0; i < 1e6; i++) o = Object.create(o); return o.x', /^stopped (memory|processor time)$/],
  [
    'function f() {}; const a = new Array(3e5); return f.apply(null, a) ?? 1',
    /^(returned 1|stopped stack|threw (RangeError|InternalError))/,
  ],
  ['return "x".repeat(2e6)', /^stopped output$/],
  ['for (;;) shop.a()', /^stopped calls$/],
  [
    'shop.a("x".repeat(2e6)).catch((e) => mail.b(e.message)); await null; await null; await null',
    /^returned undefined$/,
  ],
]);

table('S-132: changed prototypes and globals change the view of the script only', [
  ['Promise.prototype.then = () => { throw 1 }; return await shop.a()', /^returned 5$/, [value(1, '5')]],
  [
    'Object.defineProperty(Promise.prototype, "constructor", { get() { return function () { throw 1 } } }); return (async () => 7)()',
    /^(returned|threw)/,
  ],
  [
    'Object.prototype.get = () => "taken"; Object.prototype.then = undefined; Object.prototype.set = 1; return [await shop.a(), typeof shop.b]',
    /^returned \[5,"function"\]$/,
    [value(1, '5')],
  ],
  [
    'Object.prototype.value = 1; Object.prototype.writable = true; Object.prototype.enumerable = true; try { await shop.a() } catch (e) { return [e.message, e.code] }',
    /^returned \["no",9\]$/,
    [{ number: 1, at: 5, error: { message: 'no', code: 9 } }],
  ],
  [
    'JSON.parse = () => "taken"; JSON.stringify = () => "taken"; return await shop.a({ a: 1 })',
    /^returned \{"b":2\}$/,
    [value(1, '{"b":2}')],
  ],
  [
    'Array.prototype[Symbol.iterator] = function* () { yield "taken" }; Array.prototype.push = () => 1; try { await shop.a(1, 2) } catch (e) { return e.message + e.code }',
    /^returned "no3"$/,
    [{ number: 1, at: 5, error: { message: 'no', code: 3 } }],
  ],
  [
    'for (const key of ["0", "1", "2"]) Object.defineProperty(Array.prototype, key, { set() { throw 1 }, get() { return "taken" } }); return await shop.a(1)',
    /^returned 5$/,
    [value(1, '5')],
  ],
  ['String.prototype.slice = () => "taken"; console.log("a"); return await shop.a()', /^returned 5$/, [value(1, '5')]],
  [
    'WeakMap.prototype.get = () => 1; WeakMap.prototype.set = () => { throw 1 }; await shop.a()',
    /^threw ToolError: no$/,
    [{ number: 1, at: 5, error: { message: 'no' } }],
  ],
  [
    'Reflect.apply = () => "taken"; Function.prototype.call = Function.prototype.apply = () => "taken"; return await shop.a()',
    /^returned 5$/,
    [value(1, '5')],
  ],
  [
    'globalThis.Promise = class {}; globalThis.Proxy = null; globalThis.JSON = null; return [await shop.a(), typeof shop.other]',
    /^returned \[5,"function"\]$/,
    [value(1, '5')],
  ],
  ['globalThis.ToolError = null; globalThis.shop = 1; return typeof mail.send', /^returned "function"$/],
  ['Object.setPrototypeOf(ToolError, null)', /^threw TypeError/],
  [
    'ToolError.prototype.constructor = null; Object.setPrototypeOf(ToolError.prototype, null); try { await shop.a() } catch (e) { return e.message }',
    /^returned "no"$/,
    [{ number: 1, at: 5, error: { message: 'no' } }],
  ],
  ['Math.imul = Date.now = () => 0; return [Math.random() < 1, new Date().getTime()]', /^returned \[true,1000\]$/],
  [
    'Error.stackTraceLimit = 0; Object.defineProperty(Error.prototype, "stack", { get() { for (;;); } }); await shop.a(); return 1',
    /^returned 1$/,
    [value(1, '5')],
  ],
  [
    'Object.defineProperty(Array, Symbol.species, { get() { throw 1 } }); Promise[Symbol.species] = null; return [await shop.a()]',
    /^returned \[5\]$/,
    [value(1, '5')],
  ],
  ['Error[Symbol.hasInstance] = () => { throw 1 }; return 1', /^(returned 1|threw)/],
  [
    'Map.prototype.entries = Set.prototype.values = () => { throw 1 }; return [new Map([["a", 1]]), new Set([2])]',
    /^returned \[\{"a":1\},\[2\]\]$/,
  ],
]);

table('S-132: groups, calls and deliveries cannot be forged', [
  ['shop.list = 1; delete shop.list; Object.defineProperty(shop, "list", { value: 1 })', /^threw TypeError/],
  [
    'return [Object.keys(shop), Object.getPrototypeOf(shop), typeof shop.then, typeof shop[Symbol.iterator], typeof shop.__proto__, JSON.stringify(shop)]',
    /^returned \[\[\],null,"undefined","undefined","undefined","\{\}"\]$/,
  ],
  ['return await shop', /^returned \{\}$/],
  [
    'return [shop.list === shop.list, typeof shop.list.raw, Object.isFrozen(shop.list), shop["x".repeat(1000)] === undefined]',
    /^returned \[true,"function",true,true\]$/,
  ],
  ['shop.list.raw = 1; return typeof shop.list.raw', /^returned "function"$/],
  ['new shop.list()', /^threw TypeError/],
  [
    'const a = shop.a(), b = shop.b(); return await Promise.race([a, b])',
    /^returned "b"$/,
    [value(2, '"b"'), value(1, '"a"')],
  ],
  ['return await shop.a()', /^waits$/, [value(2, '"never issued"'), value(99, '1'), value(0, '1'), value(-1, '1')]],
  [
    'return [await shop.a(), await shop.b()]',
    /^returned \[1,2\]$/,
    [value(1, '1'), value(1, '"again"'), value(2, '2')],
  ],
  ['return await shop.a()', /^returned \{"__proto__":\{"polluted":1\}\}$/, [value(1, '{"__proto__":{"polluted":1}}')]],
  [
    'await shop.a(); return [{}.polluted, Object.prototype.polluted]',
    /^returned \[null,null\]$/,
    [value(1, '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}')],
  ],
  ['return 1 }); shop.evil(); (async()=>{', /^returned undefined$/],
  ['} ); throw new Error("outside"); (async()=>{', /^threw Error: outside$/],
  ['return `', /^invalid unexpected end of string/],
]);

table('results, errors and arguments are read safely, and an error in words says what to change', [
  ['let a = []; for (let i = 0; i < 63; i++) a = [a]; return a.flat(Infinity).length', /^returned 0$/],
  [
    'let a = []; for (let i = 0; i < 64; i++) a = [a]; return a',
    /^threw RangeError: the result is nested deeper than 64 levels/,
  ],
  [
    'let a = []; for (let i = 0; i < 1000; i++) a = { a, text: "]}" }; return a',
    /^threw RangeError: the result is nested deeper/,
  ],
  [
    'let a = []; for (let i = 0; i < 64; i++) a = [a]; return await shop.a(a).catch((error) => error.message)',
    /^returned "the arguments of shop.a are nested deeper than 64 levels/,
  ],
  [
    'let a = []; for (let i = 0; i < 63; i++) a = [a]; return await shop.a(a, "[[[" + "\\\\\\"[[[".repeat(99))',
    /^returned 1$/,
    [value(1, '1')],
  ],
  [
    'return { files: [1, 2].map((i) => shop.read(i)) }',
    /^returned \{"files":\["a","b"\]\}$/,
    [value(2, '"b"'), value(1, '"a"')],
  ],
  ['return [Promise.resolve({ a: Promise.resolve(5) }), Promise.resolve()]', /^returned \[\{"a":5\},null\]$/],
  ['return { a: shop.a() }', /^threw ToolError: no$/, [{ number: 1, at: 5, error: { message: 'no' } }]],
  ['return { a: new Promise(() => {}) }', /^threw Error: the script waits for something that never comes/],
  ['return await shop.a({ b: mail.b() })', /^threw TypeError: a promise has no JSON: await it/, [value(1, '1')]],
  ['Promise.prototype.toJSON = () => "mine"; return [Promise.resolve(1)]', /^returned \["mine"\]$/],
  ['const a = {}; a.a = a; return a', /^threw TypeError: the result cannot be written as JSON: it contains itself/],
  ['return 1n', /^threw TypeError: the result cannot be written as JSON: it has a BigInt. Write Number/],
  ['return () => 1', /^threw TypeError: the result cannot be written as JSON: it is a function/],
  ['return Symbol("a")', /^threw TypeError: the result cannot be written as JSON: it is a symbol/],
  [
    'return { get a() { throw new Error("mine") } }',
    /^threw TypeError: the result cannot be written as JSON: mine. Return plain data$/,
  ],
  ['return { get a() { throw null } }', /^threw TypeError: the result cannot be written as JSON: it threw an error/],
  [
    'return new Proxy({}, { ownKeys() { throw { get message() { throw 1 } } } })',
    /^threw TypeError: the result cannot be written/,
  ],
  ['return new Proxy({ a: 1 }, {})', /^returned \{"a":1\}$/],
  ['return { then(resolve) { resolve(5) } }', /^returned 5$/],
  ['return { then() {} }', /^threw Error: the script waits for something that never comes/],
  ['await new Promise(() => {})', /^threw Error: the script waits for something that never comes/],
  [
    'await shop.a(); await { then() {} }',
    /^threw Error: the script waits for something that never comes/,
    [value(1, '1')],
  ],
  ['throw null', /^threw Error: the script threw null$/],
  [
    'throw { toString() { throw 1 }, get message() { throw 2 } }',
    /^threw Error: the script threw \[a value that cannot be read\]$/,
  ],
  ['throw Object.create(null)', /^threw Error: the script threw \{\}$/],
  ['throw new Proxy({}, { get() { throw 1 }, getPrototypeOf() { throw 2 } })', /^threw Error: the script threw/],
  [
    'const e = new Error("x"); Object.defineProperty(e, "stack", { get() { throw 1 } }); Object.defineProperty(e, "name", { value: {} }); throw e',
    /^threw Error: x$/,
  ],
  ['const e = new Error("m".repeat(1e6)); throw e', /^threw Error: m{4000}$/],
  ['throw new AggregateError([new Error("inner")], "outer")', /^threw AggregateError: outer$/],
  ['return await shop.a(() => 1)', /^threw TypeError: argument 1 of shop.a is a function: pass plain data/],
  ['const a = []; a.push(a); return await shop.a(a)', /^threw TypeError: circular reference/],
  ['return await shop.a(1n)', /^threw TypeError: .*BigInt/],
  [
    'return await shop.a({ get x() { throw 1 } })',
    /^threw TypeError: the arguments of shop.a cannot be written as JSON/,
  ],
]);

test('a promise in the log is named', async () => {
  const { logs } = await run('console.log(Promise.resolve(1), { a: Promise.resolve(1) })');
  assert.equal(logs, ['[promise] [a promise has no JSON: await it, or a list of them with await Promise.all(list)]']);
});

test('a forged position names no line outside of the script', async () => {
  const slice = await run(
    'const e = new Error("x"); Object.defineProperty(e, "stack", { value: "at f (script.js:999999:999999)" }); throw e',
  );
  assert.ok(slice.end?.type === 'threw');
  assert.ok((slice.end.line ?? 1) <= 1);
});

test('errors that nothing awaits are in the log, and those that something handles later are not', async () => {
  const lost = await run('const main = async () => {\n  null.foo;\n};\nmain();');
  assert.is(endOf(lost), 'returned undefined');
  assert.equal(lost.logs, ["an error that nothing awaits: TypeError: cannot read property 'foo' of null (line 2)"]);
  const handled = await run(
    'const p = (async () => { throw new Error("x") })(); await null; await p.catch(() => {}); return 1',
  );
  assert.equal(handled.logs, []);
  const hostile = await run(
    'Promise.reject({ get message() { for (;;); }, toJSON() { throw 1 } }); Promise.reject(null); return 1',
  );
  assert.equal(hostile.logs, [
    'an error that nothing awaits: [a value that cannot be read]',
    'an error that nothing awaits: null',
  ]);
});

test('the log of a script is bounded, and has its beginning and its end', async () => {
  const { logs, end } = await run(
    'for (let i = 0; i < 2000; i++) console.log("line", i); console.log("x".repeat(1e5)); console.error("last")',
  );
  assert.is(end?.type, 'returned');
  assert.is(logs[0], 'line 0');
  assert.is(logs.at(-1), 'last');
  assert.ok(logs.some((line) => /lines are left out/.test(line)));
  assert.ok(logs.join('').length < 10_000);
});

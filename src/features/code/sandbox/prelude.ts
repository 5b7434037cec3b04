/**
 * The JavaScript that runs in a sandbox before the script, as text. It takes its own references to what it uses, so that a script that
 * changes `Promise` or `JSON` changes its own view only.
 */

/** The name of the script in stack traces, and that of the prelude. */
export const SCRIPT_FILE = 'script.js';
export const PRELUDE_FILE = 'prelude.js';

/** The kinds of messages from the prelude to its host. */
const MESSAGES = ['call', 'log', 'rejected', 'handled', 'returned', 'unwritable', 'threw'] as const;
export type GuestMessage = (typeof MESSAGES)[number];

export function isGuestMessage(kind: string | undefined): kind is GuestMessage {
  return MESSAGES.some((each) => each === kind);
}

/** Longest JSON of the arguments of one call, in characters. */
export const MAX_ARGUMENTS_LENGTH = 1_048_576;
/** Deepest nesting of arrays and objects in arguments and in the result: those who read them do so by recursion. */
export const MAX_DEPTH = 64;
/** Longest text of one line of the log, and of a message of an error, in characters. */
export const MAX_LINE_LENGTH = 4_000;
/** Names by which the language itself reads a value: a group has none of them. */
export const ASKED_MEMBERS = 'then toJSON toString valueOf constructor prototype __proto__ hasOwnProperty'.split(' ');

/**
 * An expression whose value is a function. The engine calls it with the function `host(kind, ...texts)`, which returns the number of a
 * call, or -1 if its arguments are nested too deeply, and receives an object with four functions:
 * `prepare(groups, seed, startedAt)` defines the globals, and fixes what would differ between two runs;
 * `begin(main)` starts the script; `deliver(number, ok, json, data)` settles one call; `reject(id, reason)` reports a rejected promise
 * that nothing handles.
 *
 * Only texts and numbers cross. Descriptors and tables have no prototype, because a script may define `Object.prototype.get`.
 */
export const PRELUDE = `(function (host) {
'use strict';
const { apply, defineProperty, getOwnPropertyDescriptor } = Reflect;
const { create, freeze, fromEntries } = Object;
const { parse, stringify } = JSON;
const { imul } = Math;
const now = Date.now;
const [NativePromise, NativeProxy, NativeError, NativeTypeError, NativeRangeError, NativeWeakMap, text] =
  [Promise, Proxy, Error, TypeError, RangeError, WeakMap, String];
const { slice } = String.prototype;
const { get: weakGet, set: weakSet, has: weakHas } = WeakMap.prototype;
const mapEntries = Map.prototype.entries, setValues = Set.prototype.values;
const nextOfMap = new Map().entries().next, nextOfSet = new Set().values().next;
const stackGetter = getOwnPropertyDescriptor(Error.prototype, 'stack')?.get;
const world = globalThis;

const define = (object, name, value, fixed) =>
  defineProperty(object, name, { __proto__: null, value, writable: !fixed, configurable: !fixed, enumerable: false });
const table = (names) => { const found = create(null); for (let i = 0; i < names.length; i++) found[names[i]] = true; return found; };
const cut = (value) => apply(slice, value, [0, ${MAX_LINE_LENGTH}]);
const rejected = (error) => new NativePromise((_, reject) => reject(error));

// A script that replaces how stacks are written would hide its lines.
for (const name of ['prepareStackTrace', 'stackTraceLimit'])
  if (name in Error) define(Error, name, undefined, true);
for (const name of ['WeakRef', 'FinalizationRegistry']) delete world[name];

const stackOf = (error) => {
  try {
    const found = stackGetter ? apply(stackGetter, error, []) : getOwnPropertyDescriptor(error, 'stack')?.value;
    return typeof found === 'string' ? cut(found) : '';
  } catch { return ''; }
};
const textOf = (object, name, otherwise) => {
  try { const value = object[name]; return typeof value === 'string' ? cut(value) : otherwise; } catch { return otherwise; }
};
const typeOf = (value) => value === null ? 'null' : typeof value;
/** Any value as a text for people. Never throws, unless the time is over. */
const shown = (value) => {
  if (typeof value === 'string') return value;
  if (typeof value === 'function') return '[function]';
  try {
    if (value instanceof NativePromise) return '[promise]';
    if (value instanceof NativeError) return textOf(value, 'name', 'Error') + ': ' + textOf(value, 'message', '');
    const json = typeof value === 'object' && value !== null ? stringify(value) : text(value);
    return typeof json === 'string' ? json : '[' + typeOf(value) + ']';
  } catch (error) { return '[' + textOf(error, 'message', 'a value that cannot be read') + ']'; }
};

// JSON has no maps, no sets and no BigInt: the first two are written as what they hold.
define(Map.prototype, 'toJSON', function () {
  const entries = [], from = apply(mapEntries, this, []);
  for (let i = 0, next; !(next = apply(nextOfMap, from, [])).done; i++) define2(entries, i, next.value);
  return fromEntries(entries);
});
define(Set.prototype, 'toJSON', function () {
  const values = [], from = apply(setValues, this, []);
  for (let i = 0, next; !(next = apply(nextOfSet, from, [])).done; i++) define2(values, i, next.value);
  return values;
});
function define2(list, at, value) {
  defineProperty(list, at, { __proto__: null, value, writable: true, configurable: true, enumerable: true });
}

// A promise would be written as an empty object, and its value be lost. Those in a result are awaited: models forget Promise.all.
const settled = new NativeWeakMap();
let unsettled, unsettledCount = 0;
define(Promise.prototype, 'toJSON', function () {
  if (unsettled === undefined)
    throw new NativeTypeError('a promise has no JSON: await it, or a list of them with await Promise.all(list)');
  if (apply(weakHas, settled, [this])) return apply(weakGet, settled, [this]);
  unsettled[unsettledCount++] = this;
  return null;
});

class ToolError extends Error { constructor(message) { super(message); } }
const facts = ['tool', 'code', 'carriedOut', 'retryAfterMs'];
define(ToolError.prototype, 'name', 'ToolError', true);
freeze(ToolError);
const faults = new NativeWeakMap();
const pending = create(null);

const call = (name, given) => {
  let json = '[', length = given.length;
  try {
    while (length > 0 && given[length - 1] === undefined) length--;
    for (let i = 0; i < length; i++) {
      const value = given[i];
      if (typeof value === 'function' || typeof value === 'symbol')
        throw new NativeTypeError('argument ' + (i + 1) + ' of ' + name + ' is a ' + typeof value + ': pass plain data');
      json += (i ? ',' : '') + (stringify(value) ?? 'null');
    }
  } catch (error) {
    return rejected(error instanceof NativeTypeError && textOf(error, 'message', '') !== ''
      ? error : new NativeTypeError('the arguments of ' + name + ' cannot be written as JSON: pass plain data'));
  }
  json += ']';
  if (json.length > ${MAX_ARGUMENTS_LENGTH})
    return rejected(new NativeRangeError('the arguments of ' + name + ' are ' + json.length +
      ' characters of JSON; at most ${MAX_ARGUMENTS_LENGTH} are allowed: pass less'));
  const number = host('call', name, json, stackOf(new NativeError()));
  if (number < 0)
    return rejected(new NativeRangeError('the arguments of ' + name + ' are nested deeper than ${MAX_DEPTH} levels: pass a flatter value'));
  return new NativePromise((resolve, reject) => { pending[number] = { __proto__: null, resolve, reject }; });
};
const callable = (name) => {
  const made = (...given) => call(name, given);
  define(made, 'raw', freeze((...given) => call(name + '.raw', given)), true);
  return freeze(made);
};

const asked = table(${JSON.stringify(ASKED_MEMBERS)});
const group = (name) => {
  const made = create(null);
  const get = (_, key) =>
    typeof key !== 'string' || asked[key] || key.length > 200 ? undefined : (made[key] ??= callable(name + '.' + key));
  return new NativeProxy(freeze(create(null)), freeze({ __proto__: null, get }));
};

const log = (...values) => {
  let line = '';
  for (let i = 0; i < values.length && line.length < ${MAX_LINE_LENGTH}; i++) line += (i ? ' ' : '') + shown(values[i]);
  host('log', cut(line));
};

const prepare = (groups, seed, startedAt) => {
  let state = seed | 0;
  define(Math, 'random', () => {
    state = (state + 0x6D2B79F5) | 0;
    let mixed = imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  });
  define(world, 'performance', freeze({ __proto__: null, now: () => now() - startedAt, timeOrigin: startedAt }));
  define(world, 'console', freeze({ __proto__: null, log, info: log, warn: log, error: log, debug: log }));
  define(world, 'ToolError', ToolError);
  for (const name of ['sleep', 'ask', 'resource', 'progress']) define(world, name, freeze((...given) => call(name, given)));
  const names = parse(groups);
  for (let i = 0; i < names.length; i++) define(world, names[i], group(names[i]));
};

const finish = async (value) => {
  let json;
  for (;;) {
    const found = unsettled = create(null);
    unsettledCount = 0;
    try {
      if (typeof value === 'function' || typeof value === 'symbol') throw new NativeTypeError('it is a ' + typeof value);
      json = stringify(value);
    } catch (error) {
      return host('unwritable', textOf(error, 'message', 'it threw an error when it was read'));
    } finally { unsettled = undefined; }
    const count = unsettledCount;
    if (count === 0) break;
    try {
      for (let i = 0; i < count; i++) apply(weakSet, settled, [found[i], await found[i]]);
    } catch (error) { return fail(error); }
  }
  host('returned', json === undefined ? '' : json, value === undefined ? 'undefined' : typeof value);
};
const fail = (error) => {
  const isObject = typeof error === 'object' && error !== null;
  const number = isObject ? apply(weakGet, faults, [error]) : undefined;
  if (!isObject || textOf(error, 'message', undefined) === undefined)
    return host('threw', 'Error', 'the script threw ' + cut(shown(error)), '', '');
  host('threw', textOf(error, 'name', 'Error'), textOf(error, 'message', ''), stackOf(error), number === undefined ? '' : '' + number);
};
const begin = async (main) => {
  let value;
  try { value = await main(); } catch (error) { return fail(error); }
  finish(value);
};

const deliver = (number, ok, json, data) => {
  const waiter = pending[number];
  if (waiter === undefined) return;
  delete pending[number];
  if (ok) return waiter.resolve(json === '' ? undefined : parse(json));
  const fault = parse(json), error = new ToolError(fault.message);
  const put = (name, value) => defineProperty(error, name, { __proto__: null, value, writable: true, configurable: true, enumerable: true });
  for (let i = 0; i < facts.length; i++) if (fault[facts[i]] !== undefined) put(facts[i], fault[facts[i]]);
  if (data !== '') put('data', parse(data));
  apply(weakSet, faults, [error, number]);
  waiter.reject(error);
};

const reject = (id, reason) => { host('rejected', '' + id, cut(shown(reason)), stackOf(reason)); };

return { __proto__: null, prepare, begin, deliver, reject };
})`;

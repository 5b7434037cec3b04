/** Rows of options: each rejection names the option, what was expected and what came. */
import * as assert from 'uvu/assert';
import * as option from '../../../src/core/protocol/option-rows.ts';
import { suite } from '../../harness/door.ts';

const test = suite('rows of options');

const ROWS = {
  to: option.needed(option.filled),
  port: option.portNumber,
  mode: option.oneOf('auto', 'json', 'sse'),
  waitMs: option.countOf('waitMs'),
  tls: option.group('{ key }', { key: option.needed(option.anyText), depth: option.count }, '.'),
  rate: option.group('{ burst }', { burst: option.count }),
};

for (const [given, kind, message] of [
  [7, TypeError, 'x: expected options, got number 7'],
  [{}, TypeError, 'x: to: expected a string that is not empty, got nothing'],
  [{ to: 'a', prt: 1 }, TypeError, 'x: prt: no such option; there are to, port, mode, waitMs, tls, rate'],
  [{ to: 'a', constructor: 1 }, TypeError, 'x: constructor: no such option; there are to, port'],
  [{ to: 'a', port: 70_000 }, RangeError, 'x: port: expected a whole number from 0 to 65535, got number 70000'],
  [{ to: 'a', port: '80' }, TypeError, 'x: port: expected a whole number from 0 to 65535, got string "80"'],
  [{ to: 'a', mode: ['auto'] }, TypeError, 'x: mode: expected "auto", "json" or "sse", got array of 1'],
  [{ to: 'a', waitMs: 2 ** 31 }, RangeError, 'x: waitMs: expected whole milliseconds from 1 to 2147483647, got number'],
  [{ to: 'a', tls: {} }, TypeError, 'x: tls.key: expected a string, got nothing'],
  [{ to: 'a', tls: null }, TypeError, 'x: tls: expected { key }, got null'],
  [
    { to: 'a', rate: { burst: 0.5 } },
    TypeError,
    'x: rate: burst: expected a whole number of at least 1, got number 0.5',
  ],
] as const)
  test(`rejects ${JSON.stringify(given)}`, () => {
    try {
      option.check('x: ', given, ROWS);
    } catch (error) {
      assert.instance(error, kind);
      return assert.match(String(error), message);
    }
    assert.unreachable();
  });

test('accepts what fits, and takes an option that is undefined for one that is not given', () => {
  const given = { to: 'a', port: 0, mode: 'sse', waitMs: undefined, tls: { key: 'k' } };
  option.check('x: ', given, ROWS);
  assert.equal(option.withoutUndefined(given), { to: 'a', port: 0, mode: 'sse', tls: { key: 'k' } });
});

test('throws the class of error of its caller', () => {
  class Wrong extends Error {}
  assert.throws(
    () => option.check('x: ', {}, ROWS, Wrong),
    (error: unknown) => error instanceof Wrong,
  );
});

test('has a row for each number and each flag with a default', () => {
  const rows = option.ofDefaults({ maxItems: 5, waitMs: 10, strict: false, name: 'x' });
  option.check('', { maxItems: 1, waitMs: 1, strict: true, name: 7 }, rows);
  for (const wrong of [{ maxItems: 0 }, { waitMs: 2 ** 31 }, { strict: 1 }, { other: 1 }])
    assert.throws(() => option.check('', wrong, rows), new RegExp(`^${Object.keys(wrong)[0]}: (expected|no such)`));
});

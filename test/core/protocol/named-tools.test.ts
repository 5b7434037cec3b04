/** The places of names in the text of a result: found, rewritten, and nothing else. */
import * as assert from 'uvu/assert';
import type { JsonObject } from '../../../src/core/protocol/json.ts';
import { namePlaces, renameInText, withPlaces } from '../../../src/core/protocol/named-tools.ts';
import { suite } from '../../harness/door.ts';

const test = suite('names in the text of a result');

const offered = (name: string): string | undefined => (name.startsWith('order_') ? `shop_${name}` : undefined);

function resultOf(text: string, names: unknown): JsonObject {
  return { content: [{ type: 'text', text }], _meta: { 'io.troupe/names': names } } as JsonObject;
}

test('names are found behind the data only, as whole words', () => {
  const text = 'note: order_pay\n- order_pay (n: number)\nCall order_get. my_order_pay order_ order';
  const places = namePlaces(text, 15, 'order_');
  assert.equal(
    places.map(([start, end]) => text.slice(start, end)),
    ['order_pay', 'order_get'],
  );
  assert.ok(places.every(([start]) => start > 15));
});

test('each place is rewritten, the rest of the text stays, and the new places are those of the new names', () => {
  const text = 'note: order_pay\n- order_pay (n)\nCall order_get.';
  const given = withPlaces<JsonObject>(
    {
      content: [
        { type: 'text', text },
        { type: 'text', text },
      ],
    },
    namePlaces(text, 15, 'order_'),
  );
  const { result, places } = renameInText(given, offered);
  const [first, second] = Object(result).content;
  assert.is(first.text, 'note: order_pay\n- shop_order_pay (n)\nCall shop_order_get.');
  assert.is(second.text, text);
  assert.equal(
    places.map(([start, end]) => first.text.slice(start, end)),
    ['shop_order_pay', 'shop_order_get'],
  );
});

for (const [what, names] of [
  ['none', undefined],
  ['no list', 'order_pay'],
  ['places that are no numbers', [['0', '9']]],
  ['a place that ends before it begins', [[9, 0]]],
  ['a negative place', [[-1, 9]]],
  ['a place behind the text', [[0, 99]]],
  ['a word that is no tool', [[10, 14]]],
] as const)
  test(`a text stays with ${what}`, () => {
    const text = 'order_pay call';
    const { result } = renameInText(resultOf(text, names), offered);
    assert.equal(Object(result).content, [{ type: 'text', text }]);
  });

test('places that overlap are rewritten once, and at most 256', () => {
  const { result } = renameInText(
    resultOf('order_pay', [
      [0, 9],
      [0, 9],
      [6, 9],
    ]),
    offered,
  );
  assert.equal(Object(result).content, [{ type: 'text', text: 'shop_order_pay' }]);
  const many = 'order_a '.repeat(300);
  const places = Array.from({ length: 300 }, (_, at) => [at * 8, at * 8 + 7]);
  const text = String(Object(renameInText(resultOf(many, places), offered).result).content[0].text);
  assert.is(text.split('shop_').length - 1, 256);
});

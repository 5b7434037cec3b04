/** Arguments in queries and forms: styles, reserved characters, JSON, exact numbers. */
import * as assert from 'uvu/assert';
import type { JsonObject, JsonValue } from '../../../src/core/protocol/json.ts';
import { readExact } from '../../../src/core/protocol/json-text.ts';
import { queryPairs, type TextLayout } from '../../../src/gateway/openapi/argument-text.ts';
import { suite } from '../../harness/door.ts';
import { times } from '../../harness/scale.ts';
import { oddText } from './api-stage.ts';

const test = suite('arguments in queries');

function queryOf(value: JsonValue, layout: Partial<TextLayout> = {}, name = 'color'): string {
  const { style = 'form', explode = style === 'form' || style === 'deepObject' } = layout;
  const whole = { style, explode, allowReserved: false, json: false, ...layout };
  return queryPairs(name, whole, { [name]: value }, name)
    .map(([key, text]) => `${key}=${text}`)
    .join('&');
}

const LIST = ['blue', 'black', 'brown'];
const OBJECT = { R: 100, G: 200, B: 150 };

/** The value, its layout, and the query (OpenAPI 3.1, "Style Examples"). */
const QUERIES: readonly (readonly [value: JsonValue, layout: Partial<TextLayout>, query: string])[] = [
  ['blue', {}, 'color=blue'],
  ['', {}, 'color='],
  [0, {}, 'color=0'],
  [false, {}, 'color=false'],
  [null, {}, ''],
  [LIST, {}, 'color=blue&color=black&color=brown'],
  [LIST, { explode: false }, 'color=blue,black,brown'],
  [OBJECT, {}, 'R=100&G=200&B=150'],
  [OBJECT, { explode: false }, 'color=R,100,G,200,B,150'],
  [[], {}, ''],
  [[], { explode: false }, ''],
  [{}, { style: 'deepObject' }, ''],
  [LIST, { style: 'spaceDelimited' }, 'color=blue%20black%20brown'],
  [LIST, { style: 'pipeDelimited' }, 'color=blue%7Cblack%7Cbrown'],
  [LIST, { style: 'pipeDelimited', explode: true }, 'color=blue&color=black&color=brown'],
  [OBJECT, { style: 'spaceDelimited' }, 'color=R%20100%20G%20200%20B%20150'],
  [OBJECT, { style: 'deepObject' }, 'color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150'],
  [
    { a: { b: 1 }, c: ['x', 'y'] },
    { style: 'deepObject' },
    'color%5Ba%5D%5Bb%5D=1&color%5Bc%5D%5B0%5D=x&color%5Bc%5D%5B1%5D=y',
  ],
  [['a', { b: 'c' }], { style: 'deepObject' }, 'color%5B0%5D=a&color%5B1%5D%5Bb%5D=c'],
  [['a,b', 'c'], { explode: false }, 'color=a%2Cb,c'],
  [['a', null, 'b'], {}, 'color=a&color=b'],
  [{ a: { b: 1 } }, {}, 'a=%7B%22b%22%3A1%7D'],
  [{ a: 1 }, { json: true }, 'color=%7B%22a%22%3A1%7D'],
  ['x', { json: true }, 'color=%22x%22'],
  ['a/b?c=d&e#f+g h', {}, 'color=a%2Fb%3Fc%3Dd%26e%23f%2Bg%20h'],
  ['a/b?c=d&e#f+g h%[]', { allowReserved: true }, 'color=a/b?c=d%26e%23f%2Bg%20h%25%5B%5D'],
];

for (const [value, layout, query] of QUERIES)
  test(`${JSON.stringify(value)} with ${JSON.stringify(layout)} is ${query === '' ? 'left out' : query}`, () =>
    assert.is(queryOf(value, layout), query));

test('numbers beyond 2^53 keep their digits at each place', () => {
  const args = readExact('{"id":9007199254740993,"ids":[9007199254740993],"o":{"id":9007199254740993}}') as JsonObject;
  const layout = { style: 'form', explode: true, allowReserved: false, json: false } as const;
  for (const name of Object.keys(args))
    for (const style of ['form', 'deepObject', 'pipeDelimited'] as const)
      for (const json of [false, true])
        assert.match(JSON.stringify(queryPairs(name, { ...layout, style, json }, args, name)), '9007199254740993');
});

test('S-114: a reserved character that stays never ends the value, or begins another parameter', () => {
  for (let time = 0; time < times(5_000, { quick: 300 }); time += 1) {
    const value = oddText();
    const query = queryOf(value, { allowReserved: true });
    const url = new URL(`https://api.example.com/x?${query}`);
    assert.equal([...url.searchParams], [['color', value]]);
    assert.is(url.hash, '');
  }
});

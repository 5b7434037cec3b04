/** Addresses of requests: path safety, and the styles of parameters in the path. */
import * as assert from 'uvu/assert';
import type { JsonObject, JsonValue } from '../../../src/core/protocol/json.ts';
import { requestAddress } from '../../../src/gateway/openapi/request-address.ts';
import { suite } from '../../harness/door.ts';
import { times } from '../../harness/scale.ts';
import { BASE, oddText, parameterOf, requestOf } from './api-stage.ts';

const test = suite('addresses of requests');

function addressOf(path: string, args: JsonObject, base = BASE): string {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => parameterOf(name, 'path'));
  return requestAddress('pets', requestOf({ path, base, parameters: names }), args).href;
}

/** Path, value of `id`, and the address; undefined: nothing is sent. */
const PATHS: readonly (readonly [why: string, value: JsonValue, sent: string | undefined])[] = [
  ['a word', 'dog', '/pets/dog'],
  ['a number', 7, '/pets/7'],
  ['a boolean', true, '/pets/true'],
  ['a slash', 'a/b', '/pets/a%2Fb'],
  ['a question mark', 'a?admin=1', '/pets/a%3Fadmin%3D1'],
  ['a hash', 'a#b', '/pets/a%23b'],
  ['a backslash', 'a\\b', '/pets/a%5Cb'],
  ['a percent sign', '100%', '/pets/100%25'],
  ['an escape', 'a%2Fb', '/pets/a%252Fb'],
  ['a semicolon', 'a;b=c', '/pets/a%3Bb%3Dc'],
  ['an address', 'https://evil.example', '/pets/https%3A%2F%2Fevil.example'],
  ['an at sign', '@evil.example', '/pets/%40evil.example'],
  ['umlauts and emoji', 'Möwe 😀', '/pets/M%C3%B6we%20%F0%9F%98%80'],
  ['half of a pair', 'a\ud83d', '/pets/a%EF%BF%BD'],
  ['three dots', '...', '/pets/...'],
  ['dots in a word', 'a..b', '/pets/a..b'],
  ['a file name', '.env', '/pets/.env'],
  ['a list', ['a', 'b/c'], '/pets/a,b%2Fc'],
  ['a dot', '.', undefined],
  ['two dots', '..', undefined],
  ['dots before a slash', '../admin', undefined],
  ['dots after a slash', 'a/..', undefined],
  ['dots between backslashes', 'a\\..\\b', undefined],
  ['encoded dots', '%2e%2E', undefined],
  ['dots that are encoded twice', '%252e%252e', undefined],
  ['dots that are encoded three times', '%25252e%25252e/x', undefined],
  ['dots and an encoded slash', '..%2fadmin', undefined],
  ['dots with the parameter of a segment', '..;x=y/admin', undefined],
  ['a text that is encoded more often than is looked at', `%${'25'.repeat(9)}2e`, undefined],
  ['a line break', 'a\r\nHost: evil', undefined],
  ['an encoded line break', 'a%0d%0ab', undefined],
  ['a NUL', 'a\0b', undefined],
  ['a delete character', 'a\x7f', undefined],
  ['an empty text', '', undefined],
  ['null', null, undefined],
  ['an empty list', [], undefined],
  ['a list with an empty text', ['a', ''], undefined],
  ['a list with dots', ['a', '..'], undefined],
  ['an object with dots as a name', { '..': 'a' }, undefined],
];

for (const [why, value, sent] of PATHS)
  test(`S-110, CVE-2026-32871: a path value that is ${why} ${sent === undefined ? 'is refused' : 'is one segment of the path'}`, () => {
    if (sent === undefined)
      assert.throws(() => addressOf('/pets/{id}', { id: value }), /^pets: .* Nothing was sent\. Pass/);
    else assert.is(addressOf('/pets/{id}', { id: value }), `${BASE}${sent}`);
  });

test('a missing path value is refused', () => {
  assert.throws(
    () => addressOf('/pets/{id}', {}),
    /the argument "id" cannot be a part of the path: expected a value, got nothing/,
  );
});

test('two values in one segment do not make dots, and a template does not leave the base', () => {
  assert.throws(() => addressOf('/x/{a}{b}/y', { a: '.', b: '.' }));
  assert.throws(() => addressOf('/x/{a}.', { a: '.x'.slice(0, 1) }));
  assert.throws(() => addressOf('/../admin', {}), /not below the address of the API/);
  assert.throws(() => addressOf('/%2e%2e/admin', {}), /not below the address of the API/);
  assert.throws(() => addressOf('/a\\..\\b', {}), /not below the address of the API/);
  assert.throws(() => addressOf('/a#b', {}), /not below the address of the API/);
});

test('base and path have exactly one slash between them', () => {
  assert.is(addressOf('/pets', {}), `${BASE}/pets`);
  assert.is(addressOf('pets', {}), `${BASE}/pets`);
  assert.is(addressOf('/pets', {}, 'https://api.example.com'), 'https://api.example.com/pets');
  assert.is(
    addressOf('//evil.example/pets', {}, 'https://api.example.com'),
    'https://api.example.com//evil.example/pets',
  );
});

test('a template with a query keeps it before the query of the arguments', () => {
  const request = requestOf({ path: '/search?kind=pet', parameters: [parameterOf('q', 'query')] });
  assert.is(requestAddress('pets', request, { q: 'a&b' }).href, `${BASE}/search?kind=pet&q=a%26b`);
});

test('an address has at most 16,384 characters', () => {
  const request = requestOf({ path: '/x', parameters: [parameterOf('q', 'query')] });
  const room = 16_384 - `${BASE}/x?q=`.length;
  assert.is(requestAddress('pets', request, { q: 'a'.repeat(room) }).href.length, 16_384);
  assert.throws(
    () => requestAddress('pets', request, { q: 'a'.repeat(room + 1) }),
    /at most 16384 characters, got 16385/,
  );
});

/** Style, explode, value, and the path that RFC 6570 and OpenAPI 3.1 ("Style Examples") name. */
const STYLES: readonly (readonly [
  style: 'simple' | 'label' | 'matrix',
  explode: boolean,
  value: JsonValue,
  path: string,
])[] = [
  ['simple', false, 'blue', 'blue'],
  ['simple', false, ['blue', 'black', 'brown'], 'blue,black,brown'],
  ['simple', false, { R: 100, G: 200, B: 150 }, 'R,100,G,200,B,150'],
  ['simple', true, { R: 100, G: 200, B: 150 }, 'R=100,G=200,B=150'],
  ['label', false, 'blue', '.blue'],
  ['label', false, ['blue', 'black', 'brown'], '.blue,black,brown'],
  ['label', true, ['blue', 'black', 'brown'], '.blue.black.brown'],
  ['label', false, { R: 100, G: 200, B: 150 }, '.R,100,G,200,B,150'],
  ['label', true, { R: 100, G: 200, B: 150 }, '.R=100.G=200.B=150'],
  ['matrix', false, 'blue', ';color=blue'],
  ['matrix', false, ['blue', 'black', 'brown'], ';color=blue,black,brown'],
  ['matrix', true, ['blue', 'black', 'brown'], ';color=blue;color=black;color=brown'],
  ['matrix', false, { R: 100, G: 200, B: 150 }, ';color=R,100,G,200,B,150'],
  ['matrix', true, { R: 100, G: 200, B: 150 }, ';R=100;G=200;B=150'],
];

for (const [style, explode, value, path] of STYLES)
  test(`the style ${style}${explode ? ' with explode' : ''} writes ${JSON.stringify(value)} as ${path}`, () => {
    const parameters = [parameterOf('color', 'path', { style, explode })];
    const { href } = requestAddress('pets', requestOf({ path: '/a/{color}', parameters }), { color: value });
    assert.is(href, `${BASE}/a/${path}`);
  });

test('any text is read back as it was given, or refused: path, query, and names of members', () => {
  for (let time = 0; time < times(5_000, { quick: 300 }); time += 1) {
    const [id, name, value] = [oddText(), oddText(), oddText()];
    const parameters = [
      parameterOf('id', 'path'),
      parameterOf('q', 'query'),
      parameterOf('deep', 'query', { style: 'deepObject', explode: true }),
    ];
    let url: URL;
    try {
      url = requestAddress('pets', requestOf({ path: '/pets/{id}/end', parameters }), {
        id,
        q: value,
        deep: { [name]: value },
      });
    } catch (error) {
      assert.match(String(error), 'cannot be a part of the path');
      continue;
    }
    const segments = url.pathname.split('/');
    assert.equal([segments.length, decodeURIComponent(segments[3] ?? '')], [5, id]);
    assert.is(url.searchParams.get('q'), value);
    assert.is(url.searchParams.get(`deep[${name}]`), value);
    assert.is([...url.searchParams].length, 2);
  }
});

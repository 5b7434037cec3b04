/** Bodies of requests: JSON, forms, parts with files, text and bytes, as a server reads them. */
import * as assert from 'uvu/assert';
import type { JsonObject, JsonValue } from '../../../src/core/protocol/json.ts';
import { readExact } from '../../../src/core/protocol/json-text.ts';
import type { OperationBody } from '../../../src/gateway/openapi/operation.ts';
import { requestBody } from '../../../src/gateway/openapi/request-body.ts';
import { suite } from '../../harness/door.ts';
import { times } from '../../harness/scale.ts';
import { oddText } from './api-stage.ts';

const test = suite('bodies of requests');
const FILE = { data: Buffer.from('\0\x01 bytes \r\n--').toString('base64') };

function bodyOf(kind: OperationBody['kind'], more: Partial<OperationBody> = {}): OperationBody {
  const types = {
    json: 'application/json',
    form: 'application/x-www-form-urlencoded',
    multipart: 'multipart/form-data',
  };
  const type = { ...types, text: 'text/plain', binary: 'application/octet-stream' }[kind];
  return { required: true, type, kind, encoding: {}, files: [], ...more };
}

async function sent(body: OperationBody, value: JsonValue): Promise<Response> {
  const made = requestBody('pets', body, { body: value });
  return new Response(new Uint8Array(made?.bytes ?? []), { headers: { 'content-type': made?.type ?? '' } });
}

test('without the argument there is no body, and null is one', async () => {
  assert.is(requestBody('pets', bodyOf('json'), {}), undefined);
  assert.is(requestBody('pets', undefined, { body: 1 }), undefined);
  assert.is(await (await sent(bodyOf('json'), null)).text(), 'null');
});

test('JSON is sent as it came, with the digits of its numbers and the type of the document', async () => {
  const args = readExact('{"body":{"id":9007199254740993,"x":[1e400]}}') as JsonObject;
  const type = 'application/merge-patch+json';
  const made = requestBody('pets', bodyOf('json', { type }), args);
  assert.equal([made?.type, String(made?.bytes)], [type, '{"id":9007199254740993,"x":[1e400]}']);
  const number = readExact('{"body":9007199254740993}') as JsonObject;
  assert.is(String(requestBody('pets', bodyOf('json'), number)?.bytes), '9007199254740993');
});

const FORMS: readonly (readonly [why: string, encoding: OperationBody['encoding'], value: JsonObject, form: string])[] =
  [
    ['scalars', {}, { a: 'x y', b: 1, c: true, d: null }, 'a=x%20y&b=1&c=true'],
    ['a list', {}, { a: ['x', 'y'] }, 'a=x&a=y'],
    ['an object', {}, { a: { b: 1 } }, 'a=%7B%22b%22%3A1%7D'],
    ['an object with a style', { a: { style: 'deepObject', explode: true } }, { a: { b: 1 } }, 'a%5Bb%5D=1'],
    ['a list with deepObject', { a: { style: 'deepObject' } }, { a: ['x'] }, 'a%5B0%5D=x'],
    ['a list without explode', { a: { style: 'form', explode: false } }, { a: ['x', 'y'] }, 'a=x,y'],
    ['JSON', { a: { contentType: 'application/json' } }, { a: 'x' }, 'a=%22x%22'],
    ['delimiters', {}, { 'a&b': 'c=d&e' }, 'a%26b=c%3Dd%26e'],
  ];

for (const [why, encoding, value, form] of FORMS)
  test(`a form with ${why} is ${form}`, async () =>
    assert.is(await (await sent(bodyOf('form', { encoding }), value)).text(), form));

test('any text in a form or in parts is read back as it was given', async () => {
  for (let time = 0; time < times(2_000, { quick: 100 }); time += 1) {
    const name = oddText().replace(/[\r\n"%]/g, '') || 'a';
    const [one, other] = [oddText(), oddText()];
    for (const kind of ['form', 'multipart'] as const) {
      const read = await (await sent(bodyOf(kind), { [name]: [one, other], fixed: one })).formData();
      assert.equal(
        [...read].map(([key, text]) => [key, text]),
        [
          [name, one],
          [name, other],
          ['fixed', one],
        ],
      );
    }
  }
});

test('parts have files with type and name, JSON of objects, and one part for each element of a list', async () => {
  const body = bodyOf('multipart', {
    files: ['photo', 'more'],
    encoding: { meta: { contentType: 'application/json' } },
  });
  const text = Buffer.from('note').toString('base64');
  const read = await (
    await sent(body, {
      photo: { ...FILE, type: 'image/png', name: 'a "b".png' },
      more: [FILE, { data: text, type: 'text/plain', name: 'note.txt' }],
      meta: { id: 1 },
      tag: ['x', 'y'],
    })
  ).formData();
  const shown = await Promise.all(
    [...read].map(async ([name, part]) =>
      part instanceof File
        ? [name, part.name, part.type, Buffer.from(await part.arrayBuffer()).toString('base64')]
        : [name, part],
    ),
  );
  assert.equal(
    shown.filter(([name]) => name !== 'meta'),
    [
      ['photo', 'a "b".png', 'image/png', FILE.data],
      ['more', 'more', 'application/octet-stream', FILE.data],
      ['more', 'note.txt', 'text/plain', text],
      ['tag', 'x'],
      ['tag', 'y'],
    ],
  );
  assert.match(
    String(requestBody('pets', body, { body: { meta: { id: 1 } } })?.bytes),
    'name="meta"\r\nContent-Type: application/json\r\n\r\n{"id":1}\r\n',
  );
});

/** Names and types that try to begin another header or another part. */
const INJECTIONS: readonly (readonly [why: string, value: JsonObject])[] = [
  ['the name of a part', { 'a"\r\nX-Evil: 1\r\n\r\nb': 'x' }],
  ['the name of a file', { photo: { ...FILE, name: 'a"\r\nX-Evil: 1' } }],
  ['the type of a file', { photo: { ...FILE, type: 'image/png\r\nX-Evil: 1' } }],
];

for (const [why, value] of INJECTIONS)
  test(`S-114: ${why} cannot begin another header`, async () => {
    const made = requestBody('pets', bodyOf('multipart', { files: ['photo'] }), { body: value });
    assert.not.match(String(made?.bytes), /\nX-Evil/);
  });

test('a body of bytes is a file, and takes its type where the document has a range', async () => {
  const exact = await sent(bodyOf('binary'), { ...FILE, type: 'image/png' });
  assert.equal(
    [exact.headers.get('content-type'), Buffer.from(await exact.arrayBuffer()).toString('base64')],
    ['application/octet-stream', FILE.data],
  );
  const range = await sent(bodyOf('binary', { type: 'image/*' }), { ...FILE, type: 'image/png' });
  assert.is(range.headers.get('content-type'), 'image/png');
  const wrong = await sent(bodyOf('binary', { type: '*/*' }), { ...FILE, type: 'image/png\r\nX-Evil: 1' });
  assert.is(wrong.headers.get('content-type'), 'application/octet-stream');
});

const REFUSED: readonly (readonly [why: string, value: JsonValue, words: RegExp])[] = [
  [
    'a path',
    '/etc/passwd',
    /expected a file as \{ data: base64, type\?, name\? \} or \{ uri \}, got string "\/etc\/passwd"\. Nothing was sent/,
  ],
  ['text that is no base64', { data: 'not base64!' }, /expected a file/],
  ['a file of more than 8 MiB', { data: 'A'.repeat(11_184_816) }, /expected at most 8388608 bytes, got 8388612/],
];

for (const [why, value, words] of REFUSED)
  test(`${why} in the place of a file is refused`, async () => {
    assert.throws(() => requestBody('pets', bodyOf('binary'), { body: value }), words);
  });

test('parts that are longer than 8 MiB together are refused, and a form of a list', async () => {
  const half = { data: 'A'.repeat(6_000_000) };
  const body = bodyOf('multipart', { files: ['a'] });
  assert.throws(() => requestBody('pets', body, { body: { a: [half, half] } }), /"body": expected at most/);
  assert.throws(() => requestBody('pets', bodyOf('form'), { body: ['a'] }), /expected an object, got array of 1/);
});

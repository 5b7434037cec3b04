/** Responses of an API as results: data, text, media, errors, sizes, and the facts of HTTP. */
import * as assert from 'uvu/assert';
import { isObject, type JsonObject } from '../../../src/core/protocol/json.ts';
import { META } from '../../../src/core/protocol/meta.ts';
import { suite } from '../../harness/door.ts';
import { type RawServer, rawServer, response } from '../../harness/raw-server.ts';
import { textOf } from '../../harness/results.ts';
import { type ApiStageOptions, apiStage, parameterOf } from './api-stage.ts';

const test = suite('responses of an API');

type Answer = readonly [status: number, headers?: Readonly<Record<string, string>>, body?: string | Buffer];

/** The result of a call whose API answers so. */
async function resultOf(
  answer: Answer,
  options: ApiStageOptions = {},
): Promise<JsonObject & { readonly text: string }> {
  const [status, headers = {}, body = ''] = answer;
  const api: RawServer = await rawServer(() => response(status, headers, body));
  const desk = await apiStage(api.url, { request: { path: '/x' }, ...options });
  const result: unknown = await desk.call();
  await desk.close();
  await api.close();
  if (!isObject(result)) throw new Error('expected a result');
  return { ...(result as JsonObject), text: textOf(result) };
}

const JSON_TYPE = { 'content-type': 'application/json; charset=utf-8' };
const HTML = { 'content-type': 'text/html' };
const PAGE =
  '<!doctype html><html><head><title>Bad\n &amp; worse</title></head><body><script>alert(1)</script>secret</body>';

/** The response, the structured content, and the text. */
const DATA: readonly (readonly [why: string, answer: Answer, structured: unknown, text: string])[] = [
  ['an object', [200, JSON_TYPE, '{"a": 1}'], { a: 1 }, '{"a":1}'],
  ['a list', [200, JSON_TYPE, '[1,2]'], { result: [1, 2] }, '[1,2]'],
  ['a text in JSON', [200, JSON_TYPE, '"x"'], { result: 'x' }, '"x"'],
  ['null', [200, JSON_TYPE, 'null'], { result: null }, 'null'],
  ['a problem type with 200', [200, { 'content-type': 'application/hal+json' }, '{"a":1}'], { a: 1 }, '{"a":1}'],
  ['JSON without a type', [200, {}, ' {"a":1}'], { a: 1 }, '{"a":1}'],
  ['JSON as text', [200, { 'content-type': 'text/plain' }, '{"a":1}'], { a: 1 }, '{"a":1}'],
  ['JSON as bytes', [200, { 'content-type': 'application/octet-stream' }, '[]'], { result: [] }, '[]'],
  ['no JSON', [200, JSON_TYPE, 'oops'], undefined, 'oops'],
  ['JSON that ends early', [200, JSON_TYPE, '{"a":'], undefined, '{"a":'],
  ['long numbers', [200, JSON_TYPE, '{"id":9007199254740993}'], { id: 9007199254740992 }, '{"id":9007199254740993}'],
  [
    'JSON that is nested too deeply',
    [200, JSON_TYPE, `${'['.repeat(200)}${']'.repeat(200)}`],
    undefined,
    `${'['.repeat(200)}${']'.repeat(200)}`,
  ],
  ['no content', [204], undefined, '204 No Content'],
  ['an empty 200', [200, JSON_TYPE], undefined, '200 OK'],
  ['an empty 201', [201], undefined, '201 Created'],
  ['text', [200, { 'content-type': 'text/csv' }, 'a,b'], undefined, 'a,b'],
  ['XML', [200, { 'content-type': 'application/xml' }, '<a/>'], undefined, '<a/>'],
  ['a page', [200, HTML, '<p>x'], undefined, '<p>x'],
  [
    'Latin-1',
    [200, { 'content-type': 'text/plain; charset=iso-8859-1' }, Buffer.from('Möwe', 'latin1')],
    undefined,
    'Möwe',
  ],
  ['an unknown charset', [200, { 'content-type': 'text/plain; charset=nope' }, 'x'], undefined, 'x'],
  ['an unknown type that is text', [200, { 'content-type': 'x/y' }, 'x'], undefined, 'x'],
];

for (const [why, answer, structured, text] of DATA)
  test(`${why} is passed on`, async () => {
    const result = await resultOf(answer);
    assert.is(result.isError, undefined, result.text);
    assert.equal(result.structuredContent, structured);
    assert.is(result.text, text);
  });

test('bytes that are no text are shown as such, and said to be', async () => {
  const body = Buffer.concat([Buffer.from('{"name":"M'), Buffer.from([0xf6]), Buffer.from('we"}')]);
  const result = await resultOf([200, JSON_TYPE, body]);
  assert.equal(result.structuredContent, { name: 'M\ufffdwe' });
  assert.match(result.text, 'The response has bytes that are no text in its charset. Each is shown as U+FFFD.');
});

test('images and sounds are content up to 1 MiB, and other bytes are named', async () => {
  const [image] = (await resultOf([200, { 'content-type': 'image/png' }, Buffer.from([1, 2])]))
    .content as readonly JsonObject[];
  assert.equal(image, { type: 'image', mimeType: 'image/png', data: 'AQI=' });
  const [sound] = (await resultOf([200, { 'content-type': 'audio/wav' }, Buffer.from([1, 2])]))
    .content as readonly JsonObject[];
  assert.is(sound?.type, 'audio');
  const long = await resultOf([200, { 'content-type': 'image/png' }, Buffer.alloc(1_048_577)]);
  assert.equal(
    [long.isError, long.text],
    [true, '200 OK. The response is image/png, 1048577 bytes: longer than 1048576 bytes. It is not passed on.'],
  );
  const bytes = await resultOf([200, { 'content-type': 'application/zip' }, Buffer.from([0, 255])], {
    request: { path: '/x', method: 'POST' },
  });
  assert.equal(
    [bytes.isError, bytes.text],
    [
      true,
      '200 OK. "use" was carried out. The response is application/zip, 2 bytes: no text, image or sound. It is not passed on.',
    ],
  );
  const svg = await resultOf([200, { 'content-type': 'image/svg+xml' }, '<svg/>']);
  assert.is(svg.text, '<svg/>');
});

/** The response of an error, and the text for the model. */
const ERRORS: readonly (readonly [why: string, answer: Answer, text: string])[] = [
  [
    'RFC 9457',
    [
      404,
      { 'content-type': 'application/problem+json' },
      '{"type":"x","title":"No pet","detail":"Pet 7 is gone","status":404}',
    ],
    '404 Not Found: No pet: Pet 7 is gone',
  ],
  ['a message', [400, JSON_TYPE, '{"message":"bad id"}'], '400 Bad Request: bad id'],
  [
    'the error of GitHub',
    [422, JSON_TYPE, '{"message":"Validation Failed","errors":[{"field":"title","code":"missing"}]}'],
    '422 Unprocessable Entity: Validation Failed\n{"errors":[{"field":"title","code":"missing"}]}',
  ],
  [
    'the error of Stripe',
    [402, JSON_TYPE, '{"error":{"type":"card_error","message":"Declined"}}'],
    '402 Payment Required: Declined',
  ],
  [
    'the error of OAuth',
    [400, JSON_TYPE, '{"error":"invalid_grant","error_description":"Expired"}'],
    '400 Bad Request: Expired: invalid_grant',
  ],
  [
    'the details of FastAPI',
    [422, JSON_TYPE, '{"detail":[{"loc":["body","id"],"msg":"missing"}]}'],
    '422 Unprocessable Entity: {"detail":[{"loc":["body","id"],"msg":"missing"}]}',
  ],
  ['a text', [500, { 'content-type': 'text/plain' }, 'boom'], '500 Internal Server Error: boom'],
  ['a page', [503, HTML, PAGE], '503 Service Unavailable: Bad & worse'],
  ['a page without a title', [500, HTML, '<html>stack'], '500 Internal Server Error.'],
  ['nothing', [404], '404 Not Found.'],
  ['an unknown status', [599, {}, 'x'], '599: x'],
  ['a list', [400, JSON_TYPE, '["a"]'], '400 Bad Request: ["a"]'],
  ['a broken JSON', [400, JSON_TYPE, '{'], '400 Bad Request: {'],
  [
    'bytes',
    [400, { 'content-type': 'application/zip' }, Buffer.from([0, 1])],
    '400 Bad Request: application/zip, 2 bytes',
  ],
];

for (const [why, answer, text] of ERRORS)
  test(`an error with ${why} is a result that a model can read`, async () => {
    const result = await resultOf(answer, { request: { path: '/x', method: 'POST' } });
    assert.equal([result.isError, result.text], [true, text]);
  });

test('an error has at most 2,000 characters', async () => {
  const { text } = await resultOf([400, {}, 'x'.repeat(5_000)]);
  assert.is(text, `400 Bad Request: ${'x'.repeat(2_000)}…`);
});

test('a 401 and a 403 name the schemes of the operation', async () => {
  const schemes = {
    Key: { type: 'apiKey', in: 'header', name: 'X-Key' },
    Basic: { type: 'http', scheme: 'basic' },
  } as const;
  const request = { path: '/x', security: [[{ scheme: 'Key', scopes: [] }], [{ scheme: 'Basic', scopes: [] }]] };
  for (const status of [401, 403]) {
    const { text } = await resultOf([status], { request, schemes, auth: { Key: { token: 'abcdefgh' } } });
    assert.match(text, `${status} `);
    assert.match(text, 'needs the credentials of "Key" (header X-Key), or "Basic" (basic)');
  }
});

test('long data keeps its shape and says how much there was', async () => {
  const rows = Array.from({ length: 500 }, (_, id) => ({ id, name: 'x'.repeat(100) }));
  for (const body of [rows, { items: rows, total: 500 }]) {
    const result = await resultOf([200, JSON_TYPE, JSON.stringify(body)], { maxResultLength: 5_000 });
    const [data, note] = result.content as readonly { readonly text: string }[];
    assert.ok((data?.text.length ?? 0) <= 5_000);
    assert.equal(JSON.parse(data?.text ?? ''), result.structuredContent);
    assert.match(note?.text ?? '', /the first \d+ of 500 rows: at most 5000 characters are sent \(maxResultLength\)/);
  }
  const text = await resultOf([200, { 'content-type': 'text/plain' }, 'x'.repeat(6_000)], { maxResultLength: 5_000 });
  assert.match(text.text, /x…\nThis is the first 5000 of 6000 characters/);
});

test('a response that is longer than the limit is not read to its end', async () => {
  const big = await resultOf([200, JSON_TYPE, `"${'x'.repeat(2_000)}"`], { maxResponseBytes: 1_000 });
  assert.equal(
    [big.isError, big.text],
    [
      true,
      'pets: the response is longer than 1000 bytes (the option is maxResponseBytes). Ask for less, or for a page of it.',
    ],
  );
  const post = await resultOf([200, JSON_TYPE, `"${'x'.repeat(2_000)}"`], {
    maxResponseBytes: 1_000,
    request: { path: '/x', method: 'POST' },
  });
  assert.match(post.text, '"use" was carried out, but its result is lost.');
});

/** Headers or data, and the facts in `_meta`. */
const FACTS: readonly (readonly [why: string, answer: Answer, facts: JsonObject])[] = [
  ['the status', [200, JSON_TYPE, '{}'], { status: 200 }],
  ['an entity tag', [200, { etag: '"v1"' }, '{}'], { status: 200, etag: '"v1"' }],
  [
    'a link',
    [
      200,
      { link: '<https://api.example.com/x?page=2>; rel="next", <https://api.example.com/x?page=9>; rel="last"' },
      '[]',
    ],
    {
      status: 200,
      link: '<https://api.example.com/x?page=2>; rel="next", <https://api.example.com/x?page=9>; rel="last"',
      next: 'https://api.example.com/x?page=2',
    },
  ],
  [
    'a link that is not the next',
    [200, { link: '<https://api.example.com/x?page=2>; rel="prev"' }, '[]'],
    { status: 200, link: '<https://api.example.com/x?page=2>; rel="prev"' },
  ],
  ['a cursor', [200, JSON_TYPE, '{"next_cursor":"abc"}'], { status: 200, next: 'abc' }],
  ['a cursor in a member', [200, JSON_TYPE, '{"meta":{"nextPageToken":"t"}}'], { status: 200, next: 't' }],
  ['the link of HAL', [200, JSON_TYPE, '{"_links":{"next":{"href":"/x?page=2"}}}'], { status: 200, next: '/x?page=2' }],
  ['an empty cursor', [200, JSON_TYPE, '{"next_cursor":""}'], { status: 200 }],
  ['a location', [201, { location: '/v1/x/7' }], { status: 201, location: '/v1/x/7' }],
];

for (const [why, answer, facts] of FACTS)
  test(`the facts of HTTP have ${why}`, async () => {
    const { _meta: meta } = await resultOf(answer);
    assert.equal(isObject(meta) ? meta[META.http] : undefined, facts);
  });

/** Redirects, and the words about them. */
const REDIRECTS: readonly (readonly [method: string, status: number, location: string, words: RegExp])[] = [
  [
    'GET',
    302,
    'https://evil.example/x',
    /^302 Found to https:\/\/evil\.example\/x\. A redirect to another origin is not followed\.$/,
  ],
  ['POST', 307, '/v1/y', /A redirect of POST is not followed\. It is not known whether "use" was carried out/],
  ['DELETE', 303, '/v1/y', /A redirect of DELETE is not followed/],
  ['GET', 302, '/v1/x', /Too many redirects/],
];

for (const [method, status, location, words] of REDIRECTS)
  test(`a redirect with ${status} of ${method} to ${location} is an error`, async () => {
    const result = await resultOf([status, { location }], { request: { path: '/x', method } });
    assert.is(result.isError, true);
    assert.match(result.text, words);
  });

test('S-114: a header argument reaches the API, and one that belongs to the connection or to credentials does not', async () => {
  const api = await rawServer(() => response(200, JSON_TYPE, '{}'));
  const names = ['X-Trace', 'Host', 'Cookie', 'Authorization', 'Content-Length', 'Transfer-Encoding', 'Connection'];
  const desk = await apiStage(api.url, {
    request: { path: '/x', parameters: names.map((name) => parameterOf(name, 'header')) },
    headers: { 'X-Api-Version': '3' },
  });
  await desk.call(Object.fromEntries(names.map((name) => [name, 'evil'])));
  const headers = api.requests[0]?.headers ?? {};
  assert.equal(
    [headers['x-trace'], headers['x-api-version'], headers.cookie, headers.authorization],
    ['evil', '3', undefined, undefined],
  );
  assert.match(headers.host ?? '', '127.0.0.1');
  for (const value of ['a\r\nX-Evil: 1', 'a\nb', 'a\0b', '日本'])
    assert.match(
      textOf(await desk.call({ 'X-Trace': value })),
      /the argument "X-Trace": expected text without line breaks/,
    );
  assert.is(api.requests.length, 1);
  await desk.close();
  await api.close();
});

/** The data of images, sounds and blobs: base64 on the wire, whatever spelling of it an author gives. */
import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { resourceContents, sentBlock, sentContents } from '../../../src/core/execution/content.ts';
import { isObject, type JsonObject } from '../../../src/core/protocol/json.ts';
import { audio, createServer, image } from '../../../src/index.ts';
import { suite } from '../../harness/door.ts';
import { inSession } from '../../harness/memory.ts';
import { assertFigure } from '../../harness/pace.ts';

const test = suite('content');

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** Each spelling of bytes that an author may give, and the type that it names. */
const SPELLINGS: Readonly<Record<string, (bytes: Buffer) => readonly [data: string, type?: string]>> = {
  base64: (bytes) => [bytes.toString('base64')],
  'base64 without padding': (bytes) => [bytes.toString('base64').replace(/=+$/, '')],
  'base64 for URLs': (bytes) => [bytes.toString('base64url')],
  'base64 in lines': (bytes) => [bytes.toString('base64').replace(/.{1,7}/g, '$&\r\n')],
  'a data URI': (bytes) => [`data:image/webp;base64,${bytes.toString('base64')}`, 'image/webp'],
  'a data URI with parameters': (bytes) => [
    `DATA:image/svg+xml;charset=utf-8;Base64,${bytes.toString('base64url')}`,
    'image/svg+xml;charset=utf-8',
  ],
  'a data URI without a type': (bytes) => [`data:;base64,${encodeURIComponent(bytes.toString('base64'))}`],
  'a data URI that is not base64': (bytes) => [
    `data:image/x,${bytes.toString('latin1').replace(/[^!-~]|%/g, (letter) => `%${letter.charCodeAt(0).toString(16).padStart(2, '0')}`)}`,
    'image/x',
  ],
};
for (const [how, spell] of Object.entries(SPELLINGS))
  test(`data that is given as ${how} is sent as base64, and never loses a byte`, () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 100 }), (array) => {
        const bytes = Buffer.from(array);
        const [data, type = 'image/png'] = spell(bytes);
        for (const sent of [
          image(data, 'image/png'),
          audio(data, 'image/png'),
          sentBlock({ type: 'image', data, mimeType: 'image/png' } as const),
        ]) {
          assert.match(sent.data, BASE64);
          assert.equal(Buffer.from(sent.data, 'base64'), bytes);
          assert.is(sent.mimeType, type);
        }
        const contents = sentContents({ uri: 'x://y', mimeType: 'image/png', blob: data });
        assert.equal('blob' in contents && Buffer.from(contents.blob, 'base64'), bytes);
        assert.is(contents.mimeType, type);
      }),
    );
  });

const WRONG: Readonly<Record<string, string>> = {
  'https://example.com/a.png': 'Read it and pass its bytes',
  'file:///tmp/a.png': 'Read it and pass its bytes',
  './chart.png': 'Pass the bytes',
  'A chart.': 'Pass the bytes',
  'no base64': 'Pass the bytes',
  '<svg xmlns="http://www.w3.org/2000/svg"/>': 'Pass the bytes',
  'data:image/png;base64,a.b': 'Pass the bytes',
  'AAAA=AAA': 'Pass the bytes',
  AAAAA: 'Pass the bytes',
  [`${'\u001b'}[2J${'x'.repeat(1_000)}`]: 'Pass the bytes',
};

test('data that is not base64 throws with what to do, from the helpers and from literals', () => {
  for (const [data, advice] of Object.entries(WRONG))
    for (const [what, make] of [
      ['image', () => image(data, 'image/png')],
      ['audio', () => audio(data, 'audio/wav')],
      ['image', () => sentBlock({ type: 'image', data, mimeType: 'image/png' })],
      ['blob', () => sentContents({ uri: 'x://y', blob: data })],
      ['blob', () => sentBlock({ type: 'resource', resource: { uri: 'x://y', blob: data } })],
    ] as const)
      assert.throws(make, (error: unknown) => {
        assert.instance(error, TypeError);
        const { message } = error as TypeError;
        assert.ok(message.startsWith(`${what}: expected bytes, base64 or a data: URI, got `), message);
        assert.match(message, advice);
        assert.ok(message.length < 300 && !message.includes('\u001b'), message);
        return true;
      });
});

test('every place that sends contents of an author checks them', async () => {
  const server = createServer({ name: 'pictures', version: '1.0.0', log: () => {} });
  const wrong = { type: 'image', data: 'https://example.com/a.png', mimeType: 'image/png' } as const;
  const right = { type: 'image', data: 'data:image/gif;base64,R0lG', mimeType: 'image/png' } as const;
  const places = {
    block: (each: object) => each,
    blocks: (each: object) => [each],
    whole: (each: object) => ({ content: [each] }),
  };
  for (const [name, place] of Object.entries(places)) {
    server.tool(name, {}, () => place(right));
    server.tool(`${name}-wrong`, {}, () => place(wrong));
  }
  server.tool('blob', {}, () => ({ type: 'resource', resource: { uri: 'x://y', blob: right.data } }) as const);
  server.prompt('block', {}, () => right);
  server.prompt('messages', {}, () => [{ role: 'user', content: right }]);
  server.prompt('whole', {}, () => ({ messages: [{ role: 'assistant', content: right }] }));
  server.prompt('wrong', {}, () => wrong);
  server.resource('x://item', {}, ({ uri }) => ({ uri, blob: right.data }));
  server.resource('x://items', {}, ({ uri }) => [{ uri, blob: right.data }]);
  server.resource('x://whole', {}, ({ uri }) => ({ contents: [{ uri, blob: right.data }] }));
  server.resource('x://wrong', {}, ({ uri }) => ({ uri, blob: wrong.data }));
  server.tool('made', {}, () => 'text');
  server.use(async (call, _ctx, next) =>
    call.method === 'tools/call' && call.params.name === 'made' ? { content: [right] } : next(),
  );
  const client = await inSession(server, '2025-11-25');
  const sent = async (method: string, params: JsonObject): Promise<void> => {
    const text = JSON.stringify(await client.send(method, params));
    assert.match(text, 'R0lG', JSON.stringify(params));
    assert.match(text, 'image/gif', JSON.stringify(params));
    assert.not.match(text, 'data:');
  };
  for (const name of [...Object.keys(places), 'blob', 'made']) await sent('tools/call', { name });
  for (const name of ['block', 'messages', 'whole']) await sent('prompts/get', { name });
  for (const uri of ['x://item', 'x://items', 'x://whole']) await sent('resources/read', { uri });
  for (const name of Object.keys(places)) {
    const result = await client.send('tools/call', { name: `${name}-wrong` });
    assert.ok(isObject(result) && result.isError === true, name);
    assert.match(JSON.stringify(result), 'image: expected bytes, base64 or a data: URI, got an address');
  }
  for (const [method, params] of [
    ['prompts/get', { name: 'wrong' }],
    ['resources/read', { uri: 'x://wrong' }],
  ] as const)
    assert.instance(await client.send(method, params).catch((error: unknown) => error), Error);
  await server.close();
});

test('a block without data, and the text of a resource, stay as they are', () => {
  for (const block of [
    { type: 'text', text: 'data:image/png;base64,AAAA' },
    { type: 'resource_link', uri: 'data:text/plain,a', name: 'a' },
    { type: 'resource', resource: { uri: 'x://y', text: 'https://example.com' } },
    { type: 'image', data: 'AAAA', mimeType: 'image/png' },
  ])
    assert.is(sentBlock(block), block);
  const text = resourceContents('x://y', 'plain');
  assert.is(sentContents(text), text);
});

test('the check of 20 MB takes less time than their encoding', () => {
  const data = Buffer.alloc(15_000_000, 1).toString('base64');
  const started = performance.now();
  assert.is(image(data, 'image/png').data, data);
  assertFigure(performance.now() - started, 1_000, 'the check of 20 MB');
});

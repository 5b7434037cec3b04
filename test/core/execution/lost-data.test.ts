/** Data of a result that JSON would lose is named with its path, and with what to send instead. */
import { runInNewContext } from 'node:vm';
import * as assert from 'uvu/assert';
import { lostData } from '../../../src/core/execution/lost-data.ts';
import { createServer, toolResult } from '../../../src/index.ts';
import { connect } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';

const test = suite('lost data');

class Point {
  readonly x = 1;
  move(): void {}
}

class Hidden {
  readonly #secret = 1;
  get secret(): number {
    return this.#secret;
  }
}

test('each kind of loss is named with its path and a correction', () => {
  const cycle: Record<string, unknown> = { name: 'a' };
  cycle.self = { cycle };
  for (const [value, expected] of [
    [{ items: [0, 1, { when: new Map() }] }, 'r.items[2].when: a Map would be sent as {}. Use Object.fromEntries(map)'],
    [{ a: new Set([1]) }, 'r.a: a Set would be sent as {}. Use [...set]'],
    [{ a: new WeakMap() }, 'r.a: a WeakMap would be sent as {}. Use an object of its data'],
    [{ a: Promise.resolve(1) }, 'r.a: a Promise, which would be sent as {}. Await it first'],
    [[new TypeError('x')], 'r[0]: a TypeError would be sent as {}. Throw it, or use its message'],
    [Object.assign(new Error('x'), { code: 1 }), 'r: an Error would be sent as {}. Throw it, or use its message'],
    [{ a: /x/ }, 'r.a: a RegExp would be sent as {}. Use its source'],
    [{ a: new Hidden() }, 'r.a: a Hidden would be sent as {}. Use an object of its data'],
    [
      { a: Buffer.from('x') },
      "r.a: a Buffer has no useful JSON form. Use image(bytes, mimeType), audio(bytes, mimeType) or embedded(uri, bytes), or text such as Buffer.from(bytes).toString('base64')",
    ],
    [
      new Uint8Array([1]),
      "r: an Uint8Array has no useful JSON form. Use image(bytes, mimeType), audio(bytes, mimeType) or embedded(uri, bytes), or text such as Buffer.from(bytes).toString('base64')",
    ],
    [{ a: new Float64Array([1]) }, 'r.a: a Float64Array would be sent as an object. Use [...array]'],
    [{ a: 1n }, 'r.a: a BigInt has no JSON form. Use String(value), or Number(value) if it is small'],
    [{ a: () => 1 }, 'r.a: a function has no JSON form. Leave it out, or use its result'],
    [{ a: Symbol('x') }, 'r.a: a symbol has no JSON form. Use its description'],
    [cycle, 'r.self.cycle: a cycle has no JSON form. Use ids in place of references'],
  ] as const)
    assert.is(lostData(value, 'r'), expected);
});

test('all that JSON keeps passes: fields of instances, toJSON, missing values, and the same object twice', () => {
  const shared = { a: 1 };
  let deep: unknown = 'end';
  for (let depth = 0; depth < 500; depth += 1) deep = [deep];
  const elsewhere: unknown = runInNewContext('({ a: [{}] })');
  for (const value of [
    null,
    { a: undefined, b: null, c: Number.NaN, d: '', e: true },
    new Date(0),
    { at: new Date(0), url: new URL('https://example.com') },
    new Point(),
    [new Point(), shared, shared, { shared }],
    Object.create(null),
    { a: {}, b: [] },
    new String('x'),
    deep,
    elsewhere,
    new Array(2),
  ])
    assert.is(lostData(value, 'r'), undefined);
});

test('a tool whose result JSON would lose fails with the place, for the model and in the log', async () => {
  const log: string[] = [];
  const server = createServer({ name: 'x', version: '1.0.0', log: (_level, message) => void log.push(message) });
  const when = (): object => ({ items: [{ when: new Map() }] });
  server.tool('data', {}, when);
  server.tool('whole', {}, () => ({ content: [], structuredContent: { a: 1 }, _meta: { a: 1n } }) as never);
  server.tool('envelope', {}, () => toolResult({ data: [new Set()] }));
  server.tool('declared', { output: { type: 'object' } }, async () => when());
  server.tool('bytes', {}, () => Buffer.from('abc') as never);
  server.tool('fine', {}, () => ({ at: new Date(0) }));
  const client = await connect(server);
  for (const [name, message] of [
    ['data', 'tool "data": result.structuredContent.items[0].when: a Map would be sent as {}'],
    ['whole', 'tool "whole": result._meta.a: a BigInt has no JSON form'],
    ['envelope', 'tool "envelope": result.structuredContent.data[0]: a Set would be sent as {}'],
    ['bytes', 'tool "bytes": result.structuredContent: a Buffer has no useful JSON form'],
    ['declared', 'tool "declared": result.structuredContent.items[0].when: a Map would be sent as {}'],
  ] as const) {
    const { isError, content } = await client.call(name, {});
    assert.is(isError, true);
    assert.ok(content[0]?.type === 'text' && content[0].text.startsWith(message));
    assert.ok(log.some((line) => line.includes(message)));
  }
  assert.equal((await client.call('fine', {})).structuredContent, { at: '1970-01-01T00:00:00.000Z' });
  await server.close();
});

/** What a message is, read from its text without parsing it: the same in any pieces, and what JSON.parse says where that can. */
import * as fc from 'fast-check';
import * as assert from 'uvu/assert';
import { MessageEnvelope } from '../../../src/core/protocol/message-envelope.ts';
import { character } from '../../harness/character.ts';
import { suite } from '../../harness/door.ts';
import { processorMs } from '../../harness/pace.ts';
import { random, times } from '../../harness/scale.ts';

const test = suite('envelope');

function read(...pieces: readonly string[]): unknown {
  const envelope = new MessageEnvelope();
  for (const piece of pieces) envelope.push(piece);
  const text = envelope.text();
  return text === undefined ? undefined : JSON.parse(text);
}

test('reads id and method wherever they stand, and nothing of what lies between them', () => {
  const inner = '{"id":7,"method":"x","a":[{"id":8},"}","\\"",{"method":"y"}]}';
  for (const text of [
    `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${inner}}`,
    `{"params":${inner},"method":"tools/call","jsonrpc":"2.0","id":1}`,
    ` \t{ "method" : "tools/call" , "params" : ${inner} , "id" : 1 , "jsonrpc":"2.0" } \r`,
    `\uFEFF{"a":true,"params":${inner},"b":-1.5e3,"id":1,"jsonrpc":"2.0","c":"id\\\\","method":"tools/call"}`,
  ]) {
    const { id, method, ...rest } = read(text) as Record<string, unknown>;
    assert.equal([id, method], [1, 'tools/call'], text);
    assert.ok(!('params' in rest || 'result' in rest));
  }
});

test('tells answers and notifications from requests', () => {
  assert.equal(read('{"jsonrpc":"2.0","id":"a","result":{"id":3,"method":"x"}}'), {
    jsonrpc: '2.0',
    id: 'a',
    result: null,
  });
  assert.equal(read('{"jsonrpc":"2.0","error":{"code":1},"id":4}'), { jsonrpc: '2.0', id: 4, error: null });
  assert.equal(read('{"jsonrpc":"2.0","method":"n","params":[[]]}'), { jsonrpc: '2.0', method: 'n' });
});

test('an id that is none is there, and cannot be read', () => {
  for (const id of ['null', '{}', '[1]', '01', 'true', '"\u0001"', '"\\x"', '"\uFFFD"', `"${'x'.repeat(2_000)}"`, '1x'])
    assert.is((read(`{"id":${id},"method":"m","x":1}`) as Record<string, unknown>).id, null, id);
  assert.is((read(`{"id":"${'x'.repeat(1_000)}","method":"m"}`) as { id: string }).id.length, 1_000);
  assert.is((read('{"id":"\\u00e9\\"","method":"m"}') as { id: string }).id, 'é"');
});

test('of two members with one name the last counts, as for JSON.parse', () => {
  assert.equal(read('{"id":1,"method":"a","params":{"a":1},"id":2,"method":"b"}'), { id: 2, method: 'b' });
});

test('a text that breaks off or is broken is a request if id and method came before', () => {
  const request = { jsonrpc: '2.0', id: 1, method: 'm' };
  for (const rest of [',"params":{"a":', ',"params":{"a":NaN}}', ',"params":{]}', ' ,', '}x', ',"params":{}}{}', ''])
    assert.equal(read(`{"jsonrpc":"2.0","id":1,"method":"m"${rest}`), request, rest);
  for (const text of [
    '',
    'tea, please',
    '7',
    '{"jsonrpc":"2.0","id":1,"method":',
    '{"jsonrpc":"2.0","id":1,"method":"m',
    '{"jsonrpc":"2.0","id":1,"result":{}',
    '{"jsonrpc":"2.0","method":"m","params":{',
    '{x"id":1,"method":"m"}',
    "{'id':1,'method':'m'}",
    '{"id" 1,"method":"m"}',
    '{"a":1,"a":{"id":1,"method":"m"',
  ])
    assert.is(read(text), undefined, text);
});

test('reads each message of a batch, and at most a thousand', () => {
  const text =
    '[{"id":1,"method":"a","params":[{}]},{"method":"b"},7,{"id":2,"result":{}},{"id":3,"method":"c","params":{"x';
  assert.equal(read(text), [{ id: 1, method: 'a' }, { method: 'b' }, { id: 2, result: null }, { id: 3, method: 'c' }]);
  assert.is(read('[]'), undefined);
  const many = read(`[${'{"id":1,"method":"a"},'.repeat(5_000)}1]`);
  assert.ok(Array.isArray(many) && many.length === 1_000);
});

const token = fc.oneof(fc.integer(), fc.string({ maxLength: 20 }), fc.string({ unit: character, maxLength: 5 }));
const message = fc.record(
  {
    id: token,
    method: fc.string({ maxLength: 20 }),
    params: fc.jsonValue({ maxDepth: 4 }),
    result: fc.jsonValue({ maxDepth: 2 }),
    other: fc.jsonValue(),
  },
  { requiredKeys: ['id'] },
);

test('agrees with JSON.parse on every message, in any order of its members and in any pieces', () => {
  fc.assert(
    fc.property(
      message.filter((each) => !/[\uFFFD]/.test(JSON.stringify(each)) && JSON.stringify(each).isWellFormed()),
      fc.nat(),
      fc.array(fc.nat(), { maxLength: 6 }),
      fc.constantFrom(undefined, 1),
      (given, turn, cuts, indent) => {
        const members = Object.entries(given);
        const at = turn % (members.length || 1);
        const text = JSON.stringify(Object.fromEntries([...members.slice(at), ...members.slice(0, at)]), null, indent);
        const ends = [...cuts.map((cut) => cut % (text.length + 1)), text.length].sort((a, b) => a - b);
        const seen = read(...ends.map((end, index) => text.slice(ends[index - 1] ?? 0, end))) as Record<
          string,
          unknown
        >;
        const { id, method } = JSON.parse(text);
        assert.equal([seen.id, seen.method], [id, method]);
      },
    ),
    { numRuns: random(5_000) },
  );
});

const LENGTH = times(50_000, { quick: 20_000 });

test('is linear in the length of the text', () => {
  const before = processorMs();
  for (const part of ['[', '{"a":', '"\\\\"', '\\', '"', ' ', '1', '{"id":1},'])
    for (const start of ['', '{"x":', '[', '{"x":"', '{"id":']) {
      const envelope = new MessageEnvelope();
      for (let piece = 0; piece < 10; piece += 1) envelope.push((piece === 0 ? start : '') + part.repeat(LENGTH));
      envelope.text();
    }
  assert.ok(processorMs() - before < 5_000);
});

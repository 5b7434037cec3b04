/** The scanner finds what a parser finds, in any order of the members and with any blanks. */
import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { scanMessages } from '../../src/cli/shim/scan.ts';
import { character } from '../harness/character.ts';
import { suite } from '../harness/door.ts';
import { atScale } from '../harness/scale.ts';

const test = suite('scan');
const RUNS = atScale({ quick: 150, full: 500, proof: 500 });

/** What is seen of a line, without the parts that are parsed on demand. */
const seen = (line: string) => scanMessages(line).map(({ key, method, answer }) => ({ key, method, answer }));

function expected(line: string) {
  const { id, method, result, error } = JSON.parse(line);
  return [
    {
      key: id === undefined ? undefined : JSON.stringify(id),
      method: typeof method === 'string' ? method : undefined,
      answer: method === undefined && (result !== undefined || error !== undefined),
    },
  ];
}

const id = fc.oneof(fc.integer(), fc.string({ unit: character }), fc.constant(null), fc.double());
const value = fc.jsonValue({ maxDepth: 3 });
const padding = fc.constantFrom('', ' ', '\t', '  ');
const message = fc.oneof(
  fc.record(
    { jsonrpc: fc.constant('2.0'), id, method: fc.string(), params: value },
    { requiredKeys: ['id', 'method'] },
  ),
  fc.record({ jsonrpc: fc.constant('2.0'), method: fc.string(), params: value }, { requiredKeys: ['method'] }),
  fc.record({ jsonrpc: fc.constant('2.0'), id, result: value }, { requiredKeys: ['id', 'result'] }),
  fc.record({ jsonrpc: fc.constant('2.0'), id, error: value }, { requiredKeys: ['id', 'error'] }),
  fc.dictionary(fc.string({ unit: character }), value),
);

/** The same members in another order, with blanks between them. */
const lines = fc.tuple(message, fc.nat(), padding).map(([object, turn, blank]) => {
  const members = Object.entries(object).filter(([, member]) => member !== undefined);
  const turned = members.map((_, index) => members[(index + turn) % members.length] ?? ['', null]);
  const text = turned.map(([name, member]) => `${JSON.stringify(name)}${blank}:${blank}${JSON.stringify(member)}`);
  return `${blank}{${blank}${text.join(`${blank},${blank}`)}${blank}}${blank}`;
});

test('finds the id, the method and the kind of a message as a parser does', () => {
  fc.assert(
    fc.property(lines, (line) => {
      assert.equal(seen(line), expected(line), line);
    }),
    { numRuns: RUNS },
  );
});

test('member names inside nested values are ignored', () => {
  assert.equal(seen('{"params":{"id":7,"method":"no","result":1},"jsonrpc":"2.0","method":"ping","id":1}'), [
    { key: '1', method: 'ping', answer: false },
  ]);
  assert.equal(seen('{"jsonrpc":"2.0","result":{"text":"\\"},{\\"id\\":9"},"id":"a"}'), [
    { key: '"a"', method: undefined, answer: true },
  ]);
  assert.equal(seen('{"\\u0069d":3,"jsonrpc":"2.0","method":"p\\u0069ng"}'), [
    { key: '3', method: 'ping', answer: false },
  ]);
});

test('each message of a batch is found, and none in text that is not JSON', () => {
  assert.equal(seen('[{"id":1,"method":"ping"},{"id":2,"result":{}},5]'), [
    { key: '1', method: 'ping', answer: false },
    { key: '2', method: undefined, answer: true },
  ]);
  for (const line of ['', 'nonsense', '{"id":1', '{"id"}', '{id:1}', '"x"', '{"a":"'])
    assert.equal(seen(line), [], line);
});

test('the scan of a response stops at its id', () => {
  const [answer] = scanMessages(`{"jsonrpc":"2.0","id":4,"result":${'['.repeat(1_000_000)}`);
  assert.is(answer?.key, '4');
  assert.equal(answer?.result, {});
});

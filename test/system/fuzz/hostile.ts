/** What the fuzzer sends: valid messages, the same with a few things wrong, and what no client would ever send. */
import * as fc from 'fast-check';
import { isObject, type JsonValue } from '../../../src/core/protocol/json.ts';
import { character } from '../../harness/character.ts';
import { MESSAGES } from './messages.ts';
import { MAX_BATCH, MAX_BYTES, MAX_DEPTH } from './target.ts';

/** JSON that need not be JSON: a text, a list, or members whose keys may be there twice. */
type Node = string | readonly Node[] | { readonly members: readonly Entry[] };
type Entry = readonly [key: string, node: Node];

function read(value: JsonValue | undefined): Node {
  if (Array.isArray(value)) return value.map(read);
  if (!isObject(value)) return JSON.stringify(value ?? null);
  return { members: Object.entries(value).map(([key, member]) => [JSON.stringify(key), read(member as JsonValue)]) };
}

function print(node: Node): string {
  if (typeof node === 'string') return node;
  if ('members' in node) return `{${node.members.map(([key, member]) => `${key}:${print(member)}`).join(',')}}`;
  return `[${node.map(print).join(',')}]`;
}

/** Changes what is found `at` places from the start, in the order of writing. Past the end, nothing. */
function change(root: Node, at: number, how: (entry: Entry) => readonly Entry[]): Node {
  let place = -1;
  const walk = (entry: Entry): readonly Entry[] => {
    place += 1;
    if (place === at) return how(entry);
    const [key, node] = entry;
    if (typeof node === 'string') return [entry];
    if ('members' in node) return [[key, { members: node.members.flatMap(walk) }]];
    return [[key, node.flatMap((item) => walk(['', item]).map(([, changed]) => changed))]];
  };
  return walk(['', root])[0]?.[1] ?? 'null';
}

const OPERATIONS: Readonly<Record<string, (entry: Entry, key: string, value: string) => readonly Entry[]>> = {
  drop: () => [],
  double: (entry) => [entry, entry],
  twin: (entry, _, value) => [entry, [entry[0], value]],
  rename: ([, node], key) => [[key, node]],
  retype: ([key], _, value) => [[key, value]],
  wrap: ([key, node]) => [[key, [node]]],
  join: (entry, key, value) => [entry, [key, value]],
  bury: ([key, node]) => [[key, '['.repeat(MAX_DEPTH) + print(node) + ']'.repeat(MAX_DEPTH)]],
};

const KEYS = [
  '"__proto__"',
  '"\\u005f_proto__"',
  '"constructor"',
  '"prototype"',
  '"Method"',
  '"METHOD"',
  '"\\u006dethod"',
  '"ｍethod"',
  '"method\\u0000"',
  '"method "',
  '"ID"',
  '"Id"',
  '"JSONRPC"',
  '"jsonRpc"',
  '"Params"',
  '"_meta"',
  '"_Meta"',
  '"result"',
  '"error"',
  '"toString"',
  '"hasOwnProperty"',
  '"then"',
  '"toJSON"',
  '"length"',
  '"0"',
  '""',
  '"\\ud800"',
  '"io.modelcontextprotocol/protocolVersion"',
];

/** Ids that honest clients use, over and over, so that they meet each other. */
const IDS = ['1', '2', '3', '"1"', '"a"', '0', '-7', '9007199254740991', '"💡"', '1e2'];

const VALUES = [
  ...IDS,
  '-0',
  '1e400',
  '-1e400',
  '1e-400',
  '1.5',
  '9007199254740993',
  '123456789012345678901234567890',
  'null',
  'true',
  'false',
  '""',
  '[]',
  '{}',
  '[[]]',
  '[null]',
  '{"__proto__":{"polluted":true}}',
  '{"constructor":{"prototype":{"polluted":true}}}',
  '{"toString":1,"valueOf":null,"then":{}}',
  '"\\ud800"',
  '"\\udc00\\ud800"',
  '"\\ud83d\\ude00"',
  '"\ud800"',
  '"\\u0000\\u0007\\u001b[31m"',
  '"\\u202e\\u2066reversed"',
  '"İıſK"',
  '"../../etc/passwd"',
  '"file:///etc/passwd"',
  '"{{7*7}}%s%n"',
  '"1.0"',
  '"2.0"',
  '"2025-03-26"',
  '"2026-07-28"',
  '"3000-01-01"',
  '"initialize"',
  '"tools/call"',
  '"notifications/cancelled"',
  '"__proto__"',
  '"constructor"',
  '"hasOwnProperty"',
  '01',
  '+1',
  'NaN',
  'Infinity',
  'undefined',
  "'single'",
  '"unclosed',
  '/* comment */ 1',
];

const key = fc.constantFrom(...KEYS);
const id = fc.constantFrom(...IDS);

const deep = fc
  .tuple(fc.integer({ min: 1, max: 4 * MAX_DEPTH }), fc.boolean())
  .map(([depth, list]) =>
    list ? '['.repeat(depth) + ']'.repeat(depth) : `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`,
  );

const long = fc
  .tuple(fc.constantFrom('x', 'é', '\\u0000', '💡', '\\"'), fc.constantFrom(300, MAX_BYTES / 4, MAX_BYTES))
  .map(([unit, length]) => `"${unit.repeat(Math.ceil(length / unit.length))}"`);

const value = fc.oneof(
  { weight: 12, arbitrary: fc.constantFrom(...VALUES) },
  { weight: 4, arbitrary: fc.json({ maxDepth: 3 }) },
  { weight: 2, arbitrary: deep },
  { weight: 1, arbitrary: long },
  { weight: 2, arbitrary: fc.string({ unit: character, maxLength: 20 }).map((text) => JSON.stringify(text)) },
);

/** A valid message with an id that others may have too. */
const valid: fc.Arbitrary<Node> = fc.tuple(fc.constantFrom(...MESSAGES), id).map(([{ message }, some]) => {
  const node = read(message);
  if (typeof node === 'string' || !('members' in node)) return node;
  const identified = node.members.map(([name, member]): Entry => {
    if (name === '"id"') return [name, some];
    const cancel = name === '"params"' && message.method === 'notifications/cancelled';
    return cancel ? [name, change(member, 1, ([requestId]) => [[requestId, some]])] : [name, member];
  });
  return { members: identified };
});

const cancel = id.map((some) => `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":${some}}}`);

const wrong: fc.Arbitrary<Node> = fc
  .tuple(
    valid,
    fc.array(fc.record({ operation: fc.constantFrom(...Object.values(OPERATIONS)), at: fc.nat(16), key, value }), {
      minLength: 1,
      maxLength: 3,
    }),
  )
  .map(([message, edits]) =>
    edits.reduce(
      (node, edit) => change(node, edit.at, (entry) => edit.operation(entry, edit.key, edit.value)),
      message,
    ),
  );

const message = fc.oneof(
  { weight: 2, arbitrary: valid },
  { weight: 5, arbitrary: wrong },
  { weight: 1, arbitrary: cancel },
);

const batch = fc
  .tuple(
    fc.array(fc.oneof({ weight: 4, arbitrary: message }, { weight: 1, arbitrary: value }), {
      maxLength: MAX_BATCH + 2,
    }),
  )
  .map(([items]): Node => items);

/** A text in which characters were lost, came twice, or were never meant to be. */
const torn = fc
  .tuple(
    fc.oneof(message, batch).map(print),
    fc.array(
      fc.record({
        at: fc.nat(300),
        cut: fc.integer({ min: 0, max: 3 }),
        put: fc.string({ unit: character, maxLength: 2 }),
      }),
      { minLength: 1, maxLength: 3 },
    ),
  )
  .map(([text, cuts]) => cuts.reduce((left, { at, cut, put }) => left.slice(0, at) + put + left.slice(at + cut), text));

const dressed = fc
  .tuple(
    message.map(print),
    fc.constantFrom('\ufeff', ' ', '\n\t', '\u00a0', '\0', ','),
    fc.constantFrom('', ' \r\n', '\0', ',', '{}', '\u2028'),
  )
  .map(([text, before, after]) => before + text + after);

const noise = fc.oneof(
  fc.string({ unit: character, maxLength: 200 }),
  fc.string({ unit: fc.constantFrom('{', '}', '[', ']', '"', ':', ',', '\\', '1', 'e', '-', 'null'), maxLength: 60 }),
  fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes).toString('latin1')),
  fc.json(),
);

/** One input, and whether the server gets to finish what it does before the next. */
export interface Input {
  readonly text: string;
  readonly pause: boolean;
}

export const input: fc.Arbitrary<Input> = fc.record({
  text: fc.oneof(
    { weight: 4, arbitrary: valid.map(print) },
    { weight: 12, arbitrary: wrong.map(print) },
    { weight: 2, arbitrary: cancel },
    { weight: 4, arbitrary: batch.map(print) },
    { weight: 3, arbitrary: torn },
    { weight: 2, arbitrary: dressed },
    { weight: 3, arbitrary: noise },
  ),
  pause: fc.boolean(),
});

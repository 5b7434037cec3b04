/** The transcript: how its text is read, how messages are compared, and what its player says when a server does not keep to it. */
import { readFileSync } from 'node:fs';
import * as assert from 'uvu/assert';
import { createServer, type Server } from '../../src/index.ts';
import { difference, fillIn } from '../../src/testing/match-json.ts';
import {
  type PlayOptions,
  parseTranscript,
  playTranscript,
  SimulatedClock,
  type Wire,
} from '../../src/testing/testing.ts';
import { suite } from '../harness/door.ts';

const reading = suite('reading transcripts');

reading('takes the why, the remarks, and each kind of step with its line', () => {
  const { why, steps } = parseTranscript(
    [
      'Because it',
      'matters.',
      '# remark',
      '',
      '→ {"a":',
      '    1}',
      '',
      '← [',
      '  2]',
      '↯ {"half',
      '⏱\uFE0F 50',
      '∅',
      '',
    ].join('\n'),
  );
  assert.is(why, 'Because it matters.');
  assert.equal(steps, [
    { line: 5, kind: 'send', text: '{"a": 1}', message: { a: 1 } },
    { line: 8, kind: 'expect', message: [2] },
    { line: 10, kind: 'raw', text: '{"half' },
    { line: 11, kind: 'advance', ms: 50 },
    { line: 12, kind: 'nothing' },
  ]);
});

for (const [what, text, told] of [
  ['no why', '→ {}', /^transcript line 1: expected a first sentence that explains why; got nothing$/],
  ['a why that is no sentence', 'ping\n\n→ {}', /^transcript line 1: .* got "ping"$/],
  ['no steps', 'Why.\n# only remarks\n', /^transcript line 3: expected at least one of: → .*∅/],
  [
    'a line of no kind',
    'Why.\n\n→ {}\nthen {}',
    /^transcript line 4: expected a line that begins with one of: → .* got "then \{\}"$/,
  ],
  ['an indented line after a raw one', 'Why.\n\n↯ {\n  }', /^transcript line 4: /],
  [
    'a message that is no JSON',
    'Why.\n\n→ {"a"',
    /^transcript line 3: expected a message in JSON \(use ↯ to send raw characters\)/,
  ],
  ['time that is no number', 'Why.\n\n⏱ soon', /^transcript line 3: expected whole milliseconds after ⏱; got "soon"$/],
  ['more than silence', 'Why.\n\n∅ {}', /^transcript line 3: expected nothing after ∅; got "\{\}"$/],
] as const) {
  reading(`${what} is refused, with its line and what belongs there`, () => {
    assert.throws(
      () => parseTranscript(text),
      (error: Error) => error instanceof SyntaxError && told.test(error.message),
    );
  });
}

const comparing = suite('comparing messages');

comparing('equal JSON does not differ, whatever the order of members', () => {
  assert.is(
    difference({ a: [1, null, 'x'], b: { c: true } }, { b: { c: true }, a: [1, null, 'x'] }, new Map()),
    undefined,
  );
});

for (const [expected, got, told] of [
  [{ a: 1 }, { a: 2 }, 'a: expected 1, got 2'],
  [{ a: 1 }, { a: '1' }, 'a: expected 1, got "1"'],
  [{ a: { b: [1, 2] } }, { a: { b: [1, 3] } }, 'a.b[1]: expected 2, got 3'],
  [{ a: [1] }, { a: [1, 2] }, 'a: expected 1 items, got [1,2] (2 items)'],
  [{ a: 1 }, {}, 'a: expected 1, got nothing'],
  [{ a: null }, {}, 'a: expected null, got nothing'],
  [{}, { 'io.x/y': 1 }, '["io.x/y"]: expected nothing, got 1'],
  [{ a: '…' }, {}, 'a: expected some value, got nothing'],
  [{ a: {} }, { a: [] }, 'a: expected {}, got []'],
  [[], {}, 'expected [], got {}'],
  [{}, { toString: 1 }, 'toString: expected nothing, got 1'],
] as const) {
  comparing(`${JSON.stringify(expected)} is not ${JSON.stringify(got)}`, () => {
    assert.is(difference(expected, got, new Map()), told);
  });
}

comparing('wildcards stand for any value, and for more members', () => {
  const values = new Map();
  assert.is(difference({ a: '…', '…': '…' }, { a: { b: 1 }, c: 2 }, values), undefined);
  assert.is(difference(['…', 1], [null, 1], values), undefined);
  assert.is(values.size, 0);
});

comparing('a wildcard with a name is remembered, and fits that value only', () => {
  const values = new Map();
  assert.is(difference({ a: '…x', b: '…x' }, { a: [1], b: [1] }, values), undefined);
  assert.is(difference('…x', [2], values), '[0]: expected 1, got 2');
  assert.equal(fillIn({ c: '…x', d: ['…x'] }, values), { c: [1], d: [[1]] });
  assert.throws(() => fillIn('…y', values), '"…y" has no value yet. Names with a value: x');
  assert.throws(() => fillIn('…', values), /cannot be sent/);
  // What a value says is no wildcard.
  assert.is(difference('…z', '…', new Map([['z', 'other']])), 'expected "other", got "…"');
});

const playing = suite('playing transcripts');

function served(clock = new SimulatedClock()): Server {
  const server = createServer({ name: 's', version: '1', clock, log: () => {} });
  server.tool('sleep', {}, () => new Promise((resolve) => void clock.after(1_000, () => resolve('slept'))));
  return server;
}

async function failure(text: string, target: Server | (() => Wire), options: PlayOptions = {}): Promise<string> {
  try {
    await playTranscript(text, target, { deadlineMs: 50, ...options });
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  throw new Error('expected a failure');
}

const OPEN = `Why.

→ {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"…revision","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
← {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"…revision","…":"…"}}
`;
const values = { revision: '2025-06-18' };

playing('a server that keeps to it passes, time included', async () => {
  const clock = new SimulatedClock();
  const server = served(clock);
  const seen: string[] = [];
  await playTranscript(
    `${OPEN}→ {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"sleep"}}\n⏱ 999\n∅\n⏱ 1\n← {"jsonrpc":"2.0","id":2,"result":"…"}\n`,
    server,
    { clock, values, onMessage: ({ direction }) => void seen.push(direction) },
  );
  assert.equal(seen, ['in', 'out', 'in', 'out']);
  await server.close();
});

playing('sends what is written as it is written', async () => {
  const sent: string[] = [];
  const wire: Wire = {
    send: (text) => void sent.push(text),
    onText: () => {},
    close: () => {},
    closed: Promise.resolve(''),
  };
  await playTranscript('Why.\n\n→ { "b":1,\n   "a":"\\u00e9", "a":2 }\n↯   {"x"  :\n→ {"v":"…v"}', () => wire, {
    values: { v: 7 },
  });
  assert.equal(sent, ['{ "b":1, "a":"\\u00e9", "a":2 }', '{"x"  :', '{"v":7}']);
});

playing('an unexpected message is reported with its line, the difference, and both messages', async () => {
  const told = await failure(
    `${OPEN}→ {"jsonrpc":"2.0","id":2,"method":"ping"}\n← {"jsonrpc":"2.0","id":2,"result":{"pong":1}}`,
    served(),
    { values },
  );
  assert.is(
    told,
    'transcript line 6: result.pong: expected 1, got nothing\n  expected ← {"jsonrpc":"2.0","id":2,"result":{"pong":1}}\n  got      ← {"jsonrpc":"2.0","id":2,"result":{}}',
  );
});

playing('a message that does not come is reported with its line', async () => {
  const told = await failure('Why.\n\n← {"jsonrpc":"2.0","id":1,"result":{}}', served());
  assert.is(told, 'transcript line 3: waited 50 ms for ← {"jsonrpc":"2.0","id":1,"result":{}}; received nothing');
});

playing('a message too many is reported, at ∅ and at the end', async () => {
  const ping = 'Why.\n\n→ {"jsonrpc":"2.0","id":1,"method":"ping"}\n';
  const pong = '\n  ← {"jsonrpc":"2.0","id":1,"result":{}}';
  assert.is(await failure(`${ping}∅`, served()), `transcript line 4: ∅: expected nothing more, got${pong}`);
  assert.is(await failure(ping, served()), `transcript line 3: the end: expected nothing more, got${pong}`);
});

playing('time without a clock, and a value that nothing sets, are reported', async () => {
  assert.match(await failure('Why.\n\n⏱ 5', served()), /^transcript line 3: ⏱ needs the clock of the server/);
  assert.match(await failure('Why.\n\n→ {"a":"…b"}', served()), /^transcript line 3: "…b" has no value yet/);
});

playing('an error of onMessage fails the play', async () => {
  const told = await failure(
    'Why.\n\n→ {"jsonrpc":"2.0","id":1,"method":"ping"}\n← {"jsonrpc":"2.0","id":1,"result":{}}',
    served(),
    {
      onMessage({ direction }) {
        if (direction === 'out') throw new Error('not that');
      },
    },
  );
  assert.is(told, 'transcript line 4: not that');
});

playing('the transcript in docs/transcripts.md plays', async () => {
  const page = readFileSync(new URL('../../docs/transcripts.md', import.meta.url), 'utf8');
  const [, text = ''] = /```text\n([\s\S]*?)```/.exec(page) ?? [];
  const clock = new SimulatedClock();
  const server = createServer({ name: 'kitchen', version: '1.0.0', clock });
  server.tool('boil', {}, (_, ctx) => {
    ctx.progress(1, 2, 'filled');
    return new Promise((resolve) => void clock.after(30_000, () => resolve('It boils.')));
  });
  await playTranscript(text, server, { clock });
  await server.close();
});

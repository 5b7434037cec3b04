/** Text with half of a surrogate pair: no message contains one, whatever an author cut, and a client reads those of other servers. */
import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { connect as connectClient } from '../../../src/client/client.ts';
import { isObject, isWellFormed, type JsonObject } from '../../../src/core/protocol/json.ts';
import { withoutHalves, writeJson } from '../../../src/core/protocol/json-text.ts';
import { SUPPORTED_REVISIONS } from '../../../src/core/protocol/revisions.ts';
import { createServer, jsonLog, ProtocolError, type Server } from '../../../src/index.ts';
import { connect } from '../../../src/testing/testing.ts';
import { text as messageText, PlayedServer } from '../../client/played-server.ts';
import { ALL, Modern } from '../../features/asking/support.ts';
import { character } from '../../harness/character.ts';
import { suite } from '../../harness/door.ts';
import { random } from '../../harness/scale.ts';

const test = suite('well-formed text');

/** Half of a pair as an escape, where no backslash before it is escaped. */
const HALF = /(?<!\\)(?:\\\\)*\\u(?:d[89ab]..(?!\\ud[c-f])|(?<!\\ud[89ab]..\\u)d[c-f])/i;
const CUT = 'snippet \u{1F6E0}'.slice(0, 9);
const WHOLE = 'snippet \uFFFD';

/** Texts of pairs, halves, backslashes and what looks like an escape. */
const pieces = fc
  .array(fc.constantFrom('a', '\\', '"', '\ud83d', '\udee0', '\u{1F6E0}', '\\ud83d', 'ud83d', '\n', '\u2028', 'é'), {
    maxLength: 8,
  })
  .map((parts) => parts.join(''));

test('JSON of any value has no half of a pair, and the value has U+FFFD there and is the same elsewhere', () => {
  const value = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 3 },
      pieces,
      fc.string({ unit: character }),
      fc.integer(),
      fc.constant(null),
      fc.array(tie('value'), { maxLength: 3 }),
      pieces.chain((key) => tie('value').map((member) => ({ [`${key}!`]: member }))),
    ),
  })).value;
  fc.assert(
    fc.property(value, (given) => {
      const text = writeJson(given);
      assert.not.match(text, HALF);
      assert.ok(text.isWellFormed());
      assert.equal(JSON.parse(text), replaced(given));
      if (isWellFormed(given)) assert.is(text, JSON.stringify(given));
      // What another program has written: the same text with its halves.
      assert.equal(JSON.parse(withoutHalves(JSON.stringify(given))), replaced(given));
      assert.is(withoutHalves(text), text);
    }),
    { numRuns: random(2_000) },
  );
});

test('a text in upper-case escapes is repaired in the same way, and whole pairs stay', () => {
  for (const [json, value] of [
    ['"\\uD83D"', '\uFFFD'],
    ['"\\uD83D\\uDEE0"', '\u{1F6E0}'],
    ['"\\ud83d\\uD83D\\uDEE0"', '\uFFFD\u{1F6E0}'],
    ['"\\uDEE0\\uD83D"', '\uFFFD\uFFFD'],
    ['"\\\\uD83D"', '\\uD83D'],
    ['"\\\\\\uD83D"', '\\\uFFFD'],
    ['"\ud83d"', '\uFFFD'],
  ] as const)
    assert.is(JSON.parse(withoutHalves(json)), value, json);
});

function replaced(value: unknown): unknown {
  if (typeof value === 'string') return value.toWellFormed();
  if (Array.isArray(value)) return value.map(replaced);
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key.toWellFormed(), replaced(member)]));
}

/** A server that sends a cut text in each place where an author's text goes. */
function cutting(): Server {
  const server = createServer({ name: 'cut', version: '1.0.0', title: CUT, instructions: CUT, log: () => {} });
  const output = { type: 'object' } as const;
  server.tool('text', { description: CUT, title: CUT }, () => CUT);
  server.tool('data', { output }, () => ({ line: CUT, [CUT]: [CUT] }));
  server.tool('whole', {}, () => ({ content: [{ type: 'text', text: CUT }], _meta: { [CUT]: CUT } }));
  server.tool('throws', {}, () => {
    throw new Error(CUT);
  });
  server.tool('error', {}, () => {
    throw new ProtocolError(-32602, CUT, { [CUT]: CUT });
  });
  server.tool('tells', {}, (_, ctx) => {
    ctx.progress(1, 2, CUT);
    ctx.log.warning({ [CUT]: CUT });
    server.resourceUpdated('x://cut');
    return CUT;
  });
  server.tool('asks', {}, async (_, ctx) => {
    const schema = { type: 'object', properties: { a: { type: 'string', title: CUT } } } as const;
    await ctx.elicit({ message: CUT, schema });
    return CUT;
  });
  server.resource('x://cut', { description: CUT }, ({ uri }) => ({ contents: [{ uri, text: CUT }] }));
  server.prompt('cut', { description: CUT }, () => CUT);
  return server;
}

const REQUESTS: readonly (readonly [method: string, params: JsonObject])[] = [
  ...['text', 'data', 'whole', 'throws', 'error', 'tells'].map(
    (name) => ['tools/call', { name, _meta: { progressToken: 7 } }] as const,
  ),
  ...['tools/list', 'resources/list', 'prompts/list'].map((method) => [method, {}] as const),
  ['resources/read', { uri: 'x://cut' }],
  ['prompts/get', { name: 'cut' }],
];

for (const revision of SUPPORTED_REVISIONS)
  test(`nothing that a server sends to a client of ${revision} has half of a pair`, async () => {
    const server = cutting();
    let replacements = 0;
    const client = await connect(server, {
      onMessage({ direction, text }) {
        if (direction !== 'out') return;
        assert.not.match(text, /\\+ud83d/i);
        assert.ok(text.isWellFormed() && isWellFormed(JSON.parse(text)));
        if (text.includes(WHOLE)) replacements += 1;
      },
    });
    if (revision === '2026-07-28') {
      const modern = new Modern(client);
      await client.modern('server/discover', {});
      for (const [method, params] of REQUESTS) await modern.send(params, method).catch(() => {});
      await modern.ask('asks');
    } else {
      await client.initialize(revision, ALL);
      await client.send('logging/setLevel', { level: 'debug' });
      await client.send('resources/subscribe', { uri: 'x://cut' });
      for (const [method, params] of REQUESTS) await client.send(method, params).catch(() => {});
      if (revision >= '2025-06-18') {
        const call = client.send('tools/call', { name: 'asks' });
        const question = await client.next((each) => isObject(each) && each.method === 'elicitation/create');
        client.raw(JSON.stringify({ jsonrpc: '2.0', id: Object(question).id, result: { action: 'cancel' } }));
        await call;
      }
    }
    assert.ok(replacements >= 12, `${replacements} messages with U+FFFD`);
    await server.close();
  });

test('a client sends no half of a pair, and its server gets U+FFFD', async () => {
  const server = createServer({ name: 'echo', version: '1.0.0', log: () => {} });
  const got: unknown[] = [];
  server.tool('take', { input: { type: 'object' } }, (args) => {
    got.push(args);
    return 'taken';
  });
  const client = await connectClient(server);
  await client.call('take', { [CUT]: CUT });
  assert.equal(got, [{ [WHOLE]: WHOLE }]);
  await client.close();
  await server.close();
});

test('a client reads the text of a server that has half of a pair, and the log says so once', async () => {
  const server = new PlayedServer();
  server.script = ({ id }) => [messageText({ id, result: { content: [{ type: 'text', text: CUT }] } })];
  const log: string[] = [];
  const client = await server.connect(undefined, { log: (level, message) => void log.push(`${level}: ${message}`) });
  for (let call = 0; call < 3; call += 1)
    assert.equal((await client.call('any', {})).content, [{ type: 'text', text: WHOLE }]);
  const told = log.filter((line) => line.includes('U+FFFD'));
  assert.is(told.length, 1, log.join('\n'));
  assert.match(told[0] ?? '', /^warning: .* sent text with half of a surrogate pair/);
  await client.close();
});

test('a line of the JSON log has no half of a pair', () => {
  let line = '';
  jsonLog((written) => {
    line = written;
  })('warning', CUT);
  assert.is(JSON.parse(line).msg, WHOLE);
});

/** S-11: what a handler is given is what the client sent, judged as its schema says: nothing is converted, added, or shared. */
import * as fc from 'fast-check';
import * as assert from 'uvu/assert';
import { answered, call } from '../../core/http/modern.ts';
import { ask, type Stage, serveHttp } from '../../core/http/support.ts';
import { character, grapheme } from '../../harness/character.ts';
import { suite } from '../../harness/door.ts';
import { random } from '../../harness/scale.ts';

const test = suite('arguments');

let stage: Stage;
const given: unknown[] = [];
const closed = {
  type: 'object',
  properties: { n: { type: 'number' }, flag: { type: 'boolean' }, text: { type: 'string' }, none: { type: 'null' } },
  additionalProperties: false,
};
test.before(async () => {
  stage = await serveHttp({}, (server) => {
    server.tool('any', {}, (args) => {
      given.push(args);
      return 'ran';
    });
    server.tool('closed', { input: closed }, (args) => {
      given.push(args);
      return 'ran';
    });
    server.tool('spoils', {}, (args) => {
      for (const key of Object.keys(args)) Reflect.deleteProperty(args, key);
      return Object.assign(args, { spoilt: true });
    });
  });
});
test.after(() => stage.close());

/** Calls a tool. @returns what its handler was given; nothing where it was not called */
async function gets(tool: string, args: object): Promise<readonly unknown[]> {
  given.length = 0;
  const result = await answered(await call(stage.url, tool, args));
  assert.is(result.isError === true, given.length === 0, JSON.stringify(result));
  return [...given];
}

test('S-11: a handler is given exactly the value that was sent', () =>
  fc.assert(
    fc.asyncProperty(
      fc.dictionary(
        fc.string({ unit: grapheme }).filter((key) => key !== '__proto__' && key !== 'constructor'),
        fc.jsonValue({ maxDepth: 4, stringUnit: character }),
      ),
      async (args) => {
        const text = JSON.stringify(args);
        fc.pre(!/"__proto__"|"constructor"/.test(text));
        const [got] = await gets('any', JSON.parse(text));
        assert.is(JSON.stringify(got), text);
      },
    ),
    { numRuns: random(300) },
  ));

test('S-11: nothing is converted to fit: only a value of the type passes', async () => {
  const values: Readonly<Record<string, readonly unknown[]>> = {
    n: ['1', '', true, false, null, [1], {}],
    flag: ['true', 'false', 0, 1, '', null, []],
    text: [1, true, null, ['a'], {}],
    none: ['', 0, false, 'null', [], {}],
  };
  for (const [key, wrong] of Object.entries(values))
    for (const value of wrong)
      assert.equal(await gets('closed', { [key]: value }), [], `${key}: ${JSON.stringify(value)}`);
  const right = { n: 1, flag: false, text: '', none: null };
  assert.equal(await gets('closed', right), [right]);
});

test('S-11: a member that the schema does not allow is refused, whatever it is called', async () => {
  for (const key of ['other', 'N', 'toString', 'hasOwnProperty', 'valueOf', 'constructor', 'n ', '\u006e\u0000'])
    assert.equal(await gets('closed', { [key]: 1 }), [], key);
});

test('S-11: no argument reaches the prototype of anything', async () => {
  for (const args of [
    '{"__proto__":{"polluted":1}}',
    '{"a":{"__proto__":{"polluted":1}}}',
    '{"\\u005f_proto__":{"polluted":1}}',
    '{"constructor":{"prototype":{"polluted":1}}}',
    '[{"__proto__":{"polluted":1}}]',
  ]) {
    given.length = 0;
    const { headers } = {
      headers: { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'any' },
    };
    const meta =
      '{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}';
    const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"any","arguments":${args},"_meta":${meta}}}`;
    assert.is((await ask(stage.url, { headers, body })).status, 400, args);
    assert.equal(given, []);
  }
  assert.is(Reflect.get({}, 'polluted'), undefined);
});

test('S-11: a handler that changes its arguments affects no other', async () => {
  const args = { a: { b: [1] } };
  await answered(await call(stage.url, 'spoils', args));
  assert.equal(await gets('any', args), [args]);
});

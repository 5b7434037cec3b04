/** The example directory of tools, one module for each form, discovered and served as a process. */
import * as assert from 'uvu/assert';
import { fullOnly, suite } from '../../harness/door.ts';
import { failure, type OfficialClient } from '../clients/official.ts';
import { connectV1 } from '../clients/v1.ts';

fullOnly('starts a process; the quick tests of the forms of tools are those of test/features/discovery');

const test = suite('examples/tools');

let client: OfficialClient;
test.before(async () => {
  client = await connectV1('test/fixtures/examples/discovered.ts', '2025-11-25');
});
test.after(() => client.close());

test('finds a tool of each form, in the order of their paths', async () => {
  const tools = await client.listTools();
  assert.equal(
    tools.map(({ name, description }) => [name, description]),
    [
      ['add', 'Adds two numbers'],
      ['roll_dice', 'Rolls dice'],
      ['shout', 'Says it in capitals'],
    ],
  );
});

test('calls what defineTool made', async () => {
  assert.equal((await client.callTool('add', { a: 2, b: 40 })).structuredContent, { sum: 42 });
});

test('calls a class, which checks what its schema cannot say', async () => {
  const { structuredContent } = await client.callTool('roll_dice', { sides: 6, count: 10 });
  const { rolled } = Object(structuredContent);
  assert.is(rolled.length, 10);
  assert.ok(rolled.every((eyes: number) => eyes >= 1 && eyes <= 6));
  for (const [args, why] of [
    [{ sides: 'six' }, 'sides: expected integer'],
    [{ sides: 1_000, count: 100 }, 'sides * count is at most 10000'],
  ] as const) {
    const refused = await client.callTool('roll_dice', args);
    assert.is(refused.isError, true);
    assert.match(JSON.stringify(refused.content), why);
  }
});

test('calls a function with a schema', async () => {
  const said = await client.callTool('shout', { text: 'hello', marks: 3 });
  assert.equal(said.content, [{ type: 'text', text: 'HELLO!!!' }]);
  assert.is((await client.callTool('shout', {})).isError, true);
  assert.is((await failure(client.callTool('whisper', {}))).code, -32602);
  assert.equal(client.wire.faults, []);
});

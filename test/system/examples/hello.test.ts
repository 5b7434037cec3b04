/** The server that the README shows first, run as a process of its own, by both official clients. */
import * as assert from 'uvu/assert';
import { suite } from '../../harness/door.ts';
import { connectV1 } from '../clients/v1.ts';
import { connectV2 } from '../clients/v2.ts';

const test = suite('examples/hello');
const HELLO = 'examples/hello/server.ts';

for (const [who, connect] of [
  ['a legacy client', () => connectV1(HELLO, '2025-11-25')],
  ['a modern client', () => connectV2(HELLO, { pin: '2026-07-28' })],
] as const)
  (who === 'a modern client' ? test : test.full)(`greets ${who}`, async () => {
    const client = await connect();
    const [tool] = await client.listTools();
    assert.is(tool?.name, 'greet');
    const greeted = await client.callTool('greet', { name: 'Ada' });
    assert.equal(greeted.content, [{ type: 'text', text: 'Hello, Ada!' }]);
    const refused = await client.callTool('greet', { name: 7 });
    assert.is(refused.isError, true);
    assert.match(JSON.stringify(refused.content), /name: .*expected string.*got number 7/);
    await client.close();
    assert.is(await client.wire.exit(), 0);
    assert.equal(client.wire.faults, []);
  });

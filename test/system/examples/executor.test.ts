/** The example of executors of one's own, run as a process. */
import * as assert from 'uvu/assert';
import { fullOnly, suite } from '../../harness/door.ts';
import type { OfficialClient } from '../clients/official.ts';
import { connectV1 } from '../clients/v1.ts';

fullOnly('starts a process; its subject is tested in memory, in test/core/execution');

const test = suite('examples/executor');

let client: OfficialClient;
test.before(async () => {
  client = await connectV1('examples/executor/server.ts', '2025-11-25');
});
test.after(() => client.close());

test('remembers the answer of a tool that promises to change nothing', async () => {
  const first = await client.callTool('square', { n: 7 });
  assert.equal(first.structuredContent, { square: 49, computed: 1 });
  assert.type(Object(first._meta)['example.org/ms'], 'number');
  const second = await client.callTool('square', { n: 7 });
  assert.equal(second.structuredContent, { square: 49, computed: 1 });
  assert.is(Object(second._meta)['example.org/remembered'], true);
  const other = await client.callTool('square', { n: 8 });
  assert.equal(other.structuredContent, { square: 64, computed: 2 });
});

test('runs every call of another tool', async () => {
  const first = Object((await client.callTool('count')).structuredContent).computed;
  const second = Object((await client.callTool('count')).structuredContent).computed;
  assert.is(second, first + 1);
});

test('sees arguments that do not fit, and remembers no failure', async () => {
  for (let call = 0; call < 2; call += 1) {
    const refused = await client.callTool('square', { n: 'seven' });
    assert.is(refused.isError, true);
    assert.is(Object(refused._meta)['example.org/remembered'], undefined);
  }
});

test('times every call on stderr', async () => {
  await client.wire.until(() => /^square for local user: [\d.]+ ms$/m.test(client.wire.printed));
  assert.equal(client.wire.faults, []);
});

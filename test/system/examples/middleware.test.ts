/** The example of middleware, run as a process. */
import * as assert from 'uvu/assert';
import { fullOnly, suite } from '../../harness/door.ts';
import type { OfficialClient } from '../clients/official.ts';
import { connectV1 } from '../clients/v1.ts';

fullOnly('starts a process; its subject is tested in memory, in test/features/middleware');

const test = suite('examples/middleware');

let client: OfficialClient;
test.before(async () => {
  client = await connectV1('examples/middleware/server.ts', '2025-11-25');
});
test.after(() => client.close());

test('logs and times each request, and rejects a call for the model', async () => {
  assert.match(JSON.stringify(await client.callTool('balance')), '100 coins');
  const refused = await client.callTool('withdraw', { coins: 51 });
  assert.is(refused.isError, true);
  assert.match(JSON.stringify(refused.content), 'Ask your user for a smaller amount');
  assert.match(JSON.stringify(await client.callTool('balance')), '100 coins');
  const lines = [
    /^initialize for .+: ok, [\d.]+ ms$/m,
    /^tools\/call balance for .+: ok, [\d.]+ ms$/m,
    /^tools\/call withdraw for .+: failed, [\d.]+ ms$/m,
  ];
  await client.wire.until(() => lines.every((line) => line.test(client.wire.printed)));
  assert.equal(client.wire.faults, []);
});

/** The example of a feature, run as a process. */
import * as assert from 'uvu/assert';
import { fullOnly, suite } from '../../harness/door.ts';
import { connectV1 } from '../clients/v1.ts';

fullOnly('starts a process; its subject is tested in memory, in test/core/server/features.test.ts');

const test = suite('examples/feature');

test('a feature of the program rejects the calls beyond its budget, and reports what is left when the server stops', async () => {
  const client = await connectV1('examples/feature/server.ts', '2025-11-25');
  for (let call = 0; call < 2; call += 1) assert.match(JSON.stringify(await client.callTool('spend')), 'spent');
  const rejected = await client.callTool('spend').catch((error: unknown) => error);
  assert.match(String(rejected), 'the budget of 2 calls is used up');
  assert.match(JSON.stringify(await client.callTool('look')), 'nothing is spent');
  assert.equal(client.introduction.capabilities.extensions, { 'com.example/budget': {} });
  await client.close();
  await client.wire.until(() => /0 of 2 calls are left/.test(client.wire.printed));
  assert.equal(client.wire.faults, []);
});

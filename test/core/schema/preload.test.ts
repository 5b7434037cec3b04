/** ajv loads while the server is idle, and only for a server with a plain JSON Schema that the quick check does not know. */
import * as assert from 'uvu/assert';
import { z } from 'zod';
import { validatorMaker } from '../../../src/core/schema/ajv.ts';
import { preloadAjv } from '../../../src/core/schema/ajv-preload.ts';
import { createServer } from '../../../src/index.ts';
import { connect } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';

const test = suite('loading ajv');

const isLoaded = (): boolean => validatorMaker() !== undefined;

/** Lets what has begun go on. A file that is being read takes several turns. */
async function turns(enough: () => boolean, most = Number.POSITIVE_INFINITY): Promise<void> {
  for (let turn = 0; turn < most && !enough(); turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

test('an idle server loads it if a tool has a schema that needs it: simple schemas and those of libraries do not', async () => {
  const server = createServer({ name: 'x', version: '1.0.0' });
  server.tool('library', { input: z.object({ a: z.number() }) }, ({ a }) => a);
  server.tool('simple', { input: { type: 'object', properties: { a: { type: 'number' } } } }, ({ a }) => a);
  preloadAjv();
  await turns(isLoaded, 1_000);
  assert.is(isLoaded(), false);
  const client = await connect(server);
  assert.is((await client.call('simple', { a: 3 })).structuredContent, 3);
  assert.is(isLoaded(), false);
  server.tool('plain', { input: { type: 'object', properties: { a: { multipleOf: 1 } } } }, ({ a }) => a);
  await client.modern('tools/list');
  assert.is(isLoaded(), false);
  // Bounded by the time limit of the test.
  await turns(isLoaded);
  assert.is((await client.call('plain', { a: 3 })).structuredContent, 3);
  await server.close();
});

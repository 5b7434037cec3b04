/** ajv loads while the server is idle, and only for a server that has a plain JSON Schema. */
import * as assert from 'uvu/assert';
import { z } from 'zod';
import { createServer } from '../../src/index.ts';
import { validatorMaker } from '../../src/schema/ajv.ts';
import { connect, SimulatedClock } from '../../src/testing.ts';
import { suite } from '../harness/door.ts';

const test = suite('loading ajv');

/** Lets what has begun go on. A file that is being read takes several turns. */
async function turns(enough: () => boolean, most: number): Promise<void> {
  for (let turn = 0; turn < most && !enough(); turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

test('it loads in idle time if a tool has a plain JSON Schema, and not before', async () => {
  const clock = new SimulatedClock();
  const loaded = (): boolean => validatorMaker() !== undefined;
  const library = createServer({ name: 'library', version: '1.0.0', clock });
  library.tool('add', { input: z.object({ a: z.number() }) }, ({ a }) => a);
  await connect(library);
  await clock.advance(60_000);
  await turns(loaded, 1_000);
  assert.is(loaded(), false);
  await library.close();
  const plain = createServer({ name: 'plain', version: '1.0.0', clock });
  plain.tool('add', { input: { type: 'object', properties: { a: { type: 'number' } } } }, ({ a }) => a);
  const client = await connect(plain);
  await client.modern('tools/list');
  await turns(loaded, 1_000);
  assert.is(loaded(), false);
  await clock.advance(500);
  // Bounded by the time limit of the test.
  await turns(loaded, Number.POSITIVE_INFINITY);
  assert.is((await client.callTool('add', { a: 3 })).structuredContent, 3);
  await plain.close();
});

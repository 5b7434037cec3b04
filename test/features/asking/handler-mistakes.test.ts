/** Mistakes of a handler that the operator's log names, and habits of a handler that are none. */
import * as assert from 'uvu/assert';
import { createServer } from '../../../src/index.ts';
import { connect } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';

const test = suite('mistakes of a handler');
const QUESTION = { message: 'Delete it?', schema: { type: 'object', properties: {} } } as const;

for (const revision of ['2025-06-18', 'modern'])
  test(`a question that a handler does not await is logged with the tool's name: ${revision}`, async () => {
    const log: string[] = [];
    const server = createServer({ name: 'x', version: '1.0.0', log: (_level, message) => void log.push(message) });
    server.tool('delete', {}, async (_, ctx) => {
      void ctx.elicit(QUESTION);
      return 'deleted';
    });
    server.tool('sure', {}, async (_, ctx) => (await ctx.elicit(QUESTION)).status);
    const client = await connect(server, { elicit: () => ({ action: 'accept', content: {} }) });
    if (revision !== 'modern') await client.initialize(revision);
    assert.equal((await client.call('delete', {})).content, [{ type: 'text', text: 'deleted' }]);
    assert.equal(log, [
      'tools/call delete: the handler returned before its question (elicitation/create) was answered. Await ctx.elicit, ctx.sample, ctx.roots and ctx.ask',
    ]);
    assert.equal((await client.call('sure', {})).content, [{ type: 'text', text: 'accepted' }]);
    assert.is(log.length, 1);
    await server.close();
  });

test('a handler adds any number of listeners to its signal without a warning', async () => {
  const warnings: string[] = [];
  const warned = (warning: Error): void => void warnings.push(warning.name);
  process.on('warning', warned);
  const server = createServer({ name: 'x', version: '1.0.0' });
  server.tool('listen', {}, (_, { signal }) => {
    for (let listener = 0; listener < 20; listener += 1) signal.addEventListener('abort', () => {});
  });
  const client = await connect(server);
  await client.call('listen', {});
  await server.close();
  // Node emits a warning in the next tick.
  await new Promise((resolve) => process.nextTick(resolve));
  process.off('warning', warned);
  assert.equal(warnings, []);
});

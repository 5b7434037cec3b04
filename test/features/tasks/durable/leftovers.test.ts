/** What a task tells the session that it was created in, and what waiting for a client costs a server. */
import * as assert from 'uvu/assert';
import { isObject } from '../../../../src/core/protocol/json.ts';
import { settled } from '../../../../src/testing/testing.ts';
import { suite } from '../../../harness/door.ts';
import { errorResponse } from '../../../harness/results.ts';
import { accept } from '../../asking/support.ts';
import { gate, idOf, NAME } from '../support.ts';
import { call, Disk, start } from './support.ts';

const test = suite('waiting');

test('the session that created a task is notified of each change of its status (2025-11-25)', async () => {
  const one = await start(new Disk(), (server) => {
    server.tool('ask', { task: 'required' }, async (_, ctx) => (await ctx.elicit(NAME)).status);
  });
  const client = await one.legacy('ana');
  const other = await one.legacy('ana');
  const taskId = idOf(await client.send('tools/call', { name: 'ask', task: {} }));
  await one.clock.advance(100);
  await client.send('tasks/cancel', { taskId });
  await one.clock.advance(100);
  const statuses = client.rest().map((note) => isObject(note) && isObject(note.params) && note.params.status);
  assert.equal(statuses, ['input_required', 'cancelled']);
  assert.equal(other.rest(), []);
  await one.server.close();
});

test('a handler that runs on although its question gave way takes one of maxRunning', async () => {
  const go = gate();
  const one = await start(
    new Disk(),
    (server) => {
      server.tool('stubborn', {}, async (_, ctx) => {
        await ctx.elicit(NAME).catch(() => go.opened);
        return 'ended';
      });
      server.tool('other', {}, () => 'ran');
    },
    { maxRunning: 1, maxParked: 1 },
  );
  const client = one.modern();
  await call(client, 'stubborn');
  await call(client, 'other');
  // The first gives way, and does not heed its signal.
  await call(client, 'stubborn');
  await settled();
  assert.match((await errorResponse(call(client, 'other'))).message, '1 handlers of this connection still run');
  go.open();
  await settled();
  await call(client, 'other');
  await one.server.close();
});

test('the operator is notified of a request state that cannot survive a restart', async () => {
  const one = await start(
    new Disk(),
    (server) => {
      server.tool('heavy', {}, async (_, ctx) => {
        await ctx.step('load', () => 'x'.repeat(1_000));
        return (await ctx.elicit(NAME)).status;
      });
    },
    { maxStateLength: 500 },
  );
  await call(one.modern(), 'heavy');
  assert.match(
    one.told.join('\n'),
    /warning: the requestState of tools\/call heavy cannot survive .* limits\.maxStateLength is 500/,
  );
  await one.server.close();
});

test('ctx.elapsedMs leaves out what the client took to answer', async () => {
  let elapsed = 0;
  const one = await start(new Disk(), (server) => {
    server.tool('ask', {}, async (_, ctx) => {
      await ctx.elicit(NAME);
      elapsed = ctx.elapsedMs;
      return 'asked';
    });
  });
  const asked = await call(one.modern(), 'ask');
  await one.clock.advance(30_000);
  const requestState = String(asked.requestState);
  await call(one.modern(), 'ask', { requestState, inputResponses: { elicit: accept({ name: 'Ana' }) } });
  assert.is(elapsed, 0);
  await one.server.close();
});

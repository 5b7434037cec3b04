/** What the inspector is told of a task: which tool it is a call of, and what it waits for, until when. */
import * as assert from 'uvu/assert';
import { INTERNALS } from '../../../src/features/server/internals.ts';
import { suite } from '../../harness/door.ts';
import { gate, NAME, stage } from './support.ts';

const test = suite('tasks: what is notified of them');

test('a task has the name of its tool, and its question shows the addressee and the deadline', async () => {
  const { server, clock, modern } = await stage({ taskTtlMs: 60_000 });
  const { opened, open } = gate();
  server.tool('sign_up', { task: 'required' }, async (_, ctx) => {
    await opened;
    return (await ctx.elicit(NAME)).status;
  });
  const labels: unknown[] = [];
  server.inspect((record) => {
    if (record.type === 'created' && record.kind === 'task') labels.push(record.label);
  });
  await clock.advance(1_000);
  const id = await modern('ada').start('sign_up');
  const until = clock.now() + 60_000;
  const task = server[INTERNALS].inspection.live(`task/${id.slice(0, 10)}`);
  assert.equal(labels, ['sign_up']);
  assert.equal(task?.waits?.(), []);
  open();
  await clock.advance(5_000);
  assert.equal(task?.waits?.(), [{ what: 'Who?', whom: 'the next client that reads the task', until, lasts: 60_000 }]);
  await server.close();
});

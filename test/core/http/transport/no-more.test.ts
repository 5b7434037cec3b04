/** A client that comes back for a stream which has said everything: it is told not to come again. */
import * as assert from 'uvu/assert';
import { suite } from '../../../harness/door.ts';
import { serving } from '../session.ts';
import { openSession } from '../support.ts';

const test = suite('streams that have no more to say');

for (const revision of ['2025-03-26', '2025-11-25'])
  test(`204 answers a ${revision} client that comes back for a call which it cancelled, or has the answer of`, () =>
    serving(async ({ url, held }) => {
      const session = await openSession(url, revision);
      const answering = session.call('a', 'held', { key: 'a' }, { progressToken: 1 });
      (await held('a')).ctx.progress(1);
      const { events } = await answering;
      const { id } = await events.next();
      await (await session.post(cancelled('a'))).text();
      await events.rest();
      const last = events.seen.at(-1)?.id ?? id;
      // The official clients go on asking after an answer without events: for the session's own stream, or for ever.
      for (let time = 0; time < 2; time += 1) {
        const again = await session.get({ 'last-event-id': last });
        assert.is(again.status, 204);
        assert.is(again.headers['content-type'], undefined);
        await again.text();
      }
      const answered = await session.call('b', 'count', { to: 1 }, { progressToken: 2 });
      await answered.events.rest();
      const again = await session.get({ 'last-event-id': answered.events.seen.at(-1)?.id });
      assert.is(again.status, 204);
      await again.text();
    }));

function cancelled(requestId: string): object {
  return { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId } };
}

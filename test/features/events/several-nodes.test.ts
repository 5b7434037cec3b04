/** Events of several nodes that share a database: one order, no loss, and news that reach streams at each node. */
import { setImmediate as turn } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { createServer, memory, postgres, type Server } from '../../../src/index.ts';
import { connect } from '../../../src/testing/testing.ts';
import { conclusive } from '../../harness/door.ts';
import { nodesSuite } from '../../harness/postgres.ts';
import { atScale } from '../../harness/scale.ts';
import { until } from '../../harness/wait.ts';
import { poll, streamed } from './support.ts';

const { nodes, servers, database } = nodesSuite('events of several nodes');
const EACH = atScale({ quick: 20, full: 300, proof: 1_000 });

async function start(url: string) {
  const server: Server = createServer({
    ...{ name: 'noting', version: '1.0.0', store: postgres(url), log: () => {} },
    cluster: { listen: '127.0.0.1:0', secret: 'a secret that all nodes of this test share' },
  });
  const note = server.event('note', {
    description: 'd',
    payload: { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] },
  });
  servers.push(server);
  await server.listen(memory().transport);
  return { server, note };
}

nodes(
  'R-91: events that nodes emit at once have one order, each node reads all of them, and streams of each node get them',
  async () => {
    const url = await database();
    const [one, two] = [await start(url), await start(url)];
    const [here, there] = [await connect(one.server), await connect(two.server)];
    const { cursor } = await poll(here, 'note');
    void there.modern('events/stream', { name: 'note', cursor }).catch(() => {});
    await until(() => streamed(there).length > 0);
    const emits = ({ note }: typeof one, name: string) =>
      Promise.all(
        Array.from({ length: EACH }, async (_, n) => {
          for (let turns = n % 7; turns > 0; turns--) await turn();
          return note.emit({ n }, { id: `${name}${n}` });
        }),
      );
    const emitted = (await Promise.all([emits(one, 'a'), emits(two, 'b')])).flat();
    const ordered = emitted.toSorted((x, y) => x.seq - y.seq).map(({ id }) => id);
    conclusive(() => assert.is(new Set(emitted.map(({ seq }) => seq)).size, 2 * EACH));
    await until(
      () => streamed(there).length === 2 * EACH + 1,
      () => `${streamed(there).length} of ${2 * EACH} events`,
    );
    for (const client of [here, there]) {
      const read: string[] = [];
      let place = cursor;
      for (let more = true; more; ) {
        const page = await poll(client, 'note', { cursor: place });
        read.push(...page.ids);
        ({ cursor: place, hasMore: more } = page);
      }
      conclusive(() => assert.equal(read, ordered));
    }
    assert.equal(
      streamed(there).slice(1),
      ordered.map((id) => `event ${id}`),
    );
    // An id that the other node has stored is known here.
    assert.is((await one.note.emit({ n: 1 }, { id: 'b0' })).seq, emitted.find(({ id }) => id === 'b0')?.seq);
  },
);

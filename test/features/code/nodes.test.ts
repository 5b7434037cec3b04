/** Runs of scripts at several nodes: one continues a run, and its effects happen once. */
import * as assert from 'uvu/assert';
import { memoryStore } from '../../../src/core/store/memory-store.ts';
import { createServer, http, postgres, type Server } from '../../../src/index.ts';
import { connect, SimulatedClock, type TestClient } from '../../../src/testing/testing.ts';
import { shopOf } from '../../fixtures/code/shop.ts';
import { suite } from '../../harness/door.ts';
import { nodesSuite } from '../../harness/postgres.ts';
import { textOf } from '../../harness/results.ts';
import { TestStore } from '../../harness/test-store.ts';
import { HANG_MS, until } from '../../harness/wait.ts';
import { pass, pausedIn, resultIn, runModern, workshop } from './support.ts';

const test = suite('runs at two processes');

test('two processes that continue one run at the same time carry each effect out once', async () => {
  const inner = memoryStore();
  const clock = new SimulatedClock();
  const [one, two] = [0, 1].map(() => workshop({ store: new TestStore(inner) }, undefined, clock));
  if (!one || !two) throw new Error('expected two servers');
  const first = await connect(one.server, { auth: { principal: 'ada' }, deadlineMs: HANG_MS });
  const running = runModern(first, {
    code: 'await sleep(30000); const done = []; for (const n of [1, 2, 3]) done.push(await t.write({ n })); return done;',
  });
  await pass(clock, 0);
  await pass(clock, 20_000);
  const run = pausedIn(await running);
  const second = await connect(two.server, { auth: { principal: 'ada' }, deadlineMs: HANG_MS });
  const [a, b] = [runModern(first, { resume: run }), runModern(second, { resume: run })];
  await pass(clock, 10_000);
  await pass(clock, 20_000);
  const texts = (await Promise.all([a, b])).map(textOf);
  assert.equal([...one.written, ...two.written].sort(), [1, 2, 3]);
  // The other one says that it cannot continue, and what it knows.
  assert.is(
    texts.filter((text) => text.startsWith('{"result":["wrote 1","wrote 2","wrote 3"]')).length,
    1,
    texts.join('\n'),
  );
});

const { nodes, servers, database } = nodesSuite('runs of several nodes');

interface Node {
  readonly server: Server;
  readonly ran: string[];
  readonly client: TestClient;
}

async function node(url: string): Promise<Node> {
  const server = createServer({
    ...{ name: 'gateway', version: '1.0.0', store: postgres(url), log: () => {} },
    ...{ code: { effects: 'allow', waitMs: 200 }, limits: { graceMs: 100 } },
    cluster: { listen: '127.0.0.1:0', secret: 'a secret that all nodes of this test share' },
  });
  const ran: string[] = [];
  shopOf(server, (what) => ran.push(what));
  servers.push(server);
  await server.listen(http({ port: 0 }));
  return { server, ran, client: await connect(server, { auth: { principal: 'ada' }, deadlineMs: HANG_MS }) };
}

/** A run whose node has left while its script slept. On a busy machine the node needs longer for that. */
async function leftWhileItSleeps(sleepMs = 3_000): Promise<{ one: Node; two: Node; run: string }> {
  const url = await database();
  const [one, two] = [await node(url), await node(url)];
  const code = `await shop.write({ n: 1 }); await sleep(${sleepMs}); return shop.write({ n: 2 });`;
  const run = pausedIn(await runModern(one.client, { code }));
  await until(() => one.ran.length > 0);
  await one.server.close();
  if (one.ran.length > 1) return leftWhileItSleeps(2 * sleepMs);
  await until(() => two.ran.length === 1);
  return { one, two, run };
}

// The quick test of it is the one above, over one store.
nodes.full(
  'a run that sleeps when its node leaves continues at another node, whose client gets the result',
  async () => {
    const { one, two, run } = await leftWhileItSleeps();
    let result = await runModern(two.client, { resume: run });
    await until(async () => {
      if (!textOf(result).startsWith('paused')) return true;
      result = await runModern(two.client, { resume: run });
      return false;
    });
    assert.is(resultIn(result), 'wrote 2');
    assert.equal([one.ran, two.ran], [['1'], ['2']]);
  },
);

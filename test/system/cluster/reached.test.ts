/** Three nodes over a PostgreSQL that the world reaches, killed one after the other: what they have acknowledged happens, once in the state. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { receiver } from '../../features/events/delivery/support.ts';
import { fullOnly, timeLimit } from '../../harness/door.ts';
import { postgresSuite } from '../../harness/postgres.ts';
import { atScale } from '../../harness/scale.ts';
import { Random } from '../simulation/random.ts';
import { reach } from './reached.ts';
import { ClusterStage } from './stage.ts';

fullOnly('kills nodes; the quick test of it is test/features/postgres/reached.test.ts');

const KILLS = atScale({ quick: 2, full: 10, proof: 100 });
timeLimit(180_000 + KILLS * 30_000);

const test = postgresSuite('reached over kills of nodes');
const folder = mkdtempSync(join(tmpdir(), 'troupe-reached-'));
test.after(() => rmSync(folder, { recursive: true, force: true }));

test(`R-66, R-81, R-84, R-91: deliveries, slots and events that nodes have acknowledged outlive ${KILLS} kills of a node`, async () => {
  const hook = await receiver();
  const ledger = join(folder, 'ledger');
  const stage = await ClusterStage.open({
    program: 'test/fixtures/cluster/reached.ts',
    env: { LEDGER: ledger, RECEIVER: hook.origin },
  });
  const random = new Random(Date.now());
  const deaths: { readonly pid: number; readonly at: number }[] = [];
  const kill = async (): Promise<void> => {
    const node = stage.nodes[random.below(stage.nodes.length)];
    if (!node) return;
    deaths.push({ pid: node.pid, at: Date.now() });
    await node.kill();
    await node.start();
  };
  try {
    const secret = 'the secret that all nodes of the stage share';
    const figures = await reach({ url: stage.url, secret, ledger, hook, kills: KILLS, kill });
    const slots = readFileSync(ledger, 'utf8')
      .trim()
      .split('\n')
      .map((line) => z.object({ of: z.string(), at: z.number(), pid: z.number() }).parse(JSON.parse(line)))
      .filter(({ of }) => of === 'slot');
    // From the death of the node that ran the schedule to the next run elsewhere.
    const takeovers = deaths.flatMap(({ pid, at }) => {
      const isRunner = slots.findLast((slot) => slot.at <= at)?.pid === pid;
      const next = slots.find((slot) => slot.at > at && slot.pid !== pid);
      return isRunner && next ? [next.at - at] : [];
    });
    process.stdout.write(
      `PostgreSQL, ${figures}; the schedule of a killed node ran elsewhere after ${takeovers.join(', ')} ms\n`,
    );
  } finally {
    await stage.close();
    await hook.close();
  }
});

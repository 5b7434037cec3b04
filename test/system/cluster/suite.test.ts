/** The official conformance suite through a balancer over three nodes. */
import * as assert from 'uvu/assert';
import type { Revision } from '../../../src/core/protocol/revisions.ts';
import { timeLimit } from '../../harness/door.ts';
import { newerNode, noNewerNode } from '../../harness/newer-node.ts';
import { postgresSuite } from '../../harness/postgres.ts';
import { atScale, SCALE } from '../../harness/scale.ts';
import { elapse } from '../../harness/wait.ts';
import { type Check, type Findings, runSuite, scenariosOf } from '../conformance/official-suite.ts';
import type { BalancedRequest } from './balancer.ts';
import { ClusterStage } from './stage.ts';

timeLimit(atScale({ quick: 240_000, full: 240_000, proof: 3_600_000 }));
const test = postgresSuite('official conformance suite over nodes');
const PROGRAM = 'test/fixtures/cluster/everything.ts';
const REVISIONS = ['2025-11-25', '2026-07-28'] as const;
/** The suite checks nothing in it yet: see test/system/conformance/suite.test.ts. */
const UNWRITTEN = 'tasks-status-notifications';

const skipped = noNewerNode ?? (SCALE === 'quick' ? 'npm run test:full runs it' : undefined);
/** The scenarios of a revision that did not pass, with the reasons. */
function failedIn(findings: Findings, revision: Revision): ReadonlyMap<string, readonly string[]> {
  const failed = new Map<string, readonly string[]>();
  const { required, reported } = scenariosOf(revision, 'server');
  for (const scenario of [...required, ...reported]) {
    if (scenario === UNWRITTEN) continue;
    const reasons = reasonsIn(findings.get(scenario) ?? []);
    if (reasons.length > 0) failed.set(scenario, reasons);
  }
  return failed;
}

function reasonsIn(checks: readonly Check[]): readonly string[] {
  if (checks.length === 0) return ['it threw'];
  const failed = checks.filter(({ status }) => status === 'FAILURE' || status === 'SKIPPED');
  return failed.map(({ id, errorMessage }) => `${id} ${errorMessage ?? ''}`);
}

/** Kills one node after the other, at most one each second. @returns a function that ends it, with the number of kills */
function killing({ nodes }: ClusterStage): () => Promise<number> {
  let on = true;
  let kills = 0;
  const loop = async (): Promise<void> => {
    while (on) {
      const node = nodes[kills % nodes.length];
      const second = elapse(1_000, 'at most one kill each second');
      await node?.kill();
      kills += 1;
      await node?.start();
      await second;
    }
  };
  const ended = loop();
  return async () => {
    on = false;
    await ended;
    return kills;
  };
}

/** The largest share of the scenarios of a run that may fail. */
const FAILING = 0.1;
/** Runs of the suite at each revision while nodes are killed. */
const ROUNDS = atScale({ quick: 1, full: 1, proof: 10 });

/** True if the client of a request waits for more than changes: it reads a response, or the rest of one. */
function awaitsResponse({ incoming, body }: BalancedRequest): boolean {
  if (incoming.method === 'GET') return incoming.headers['last-event-id'] !== undefined;
  return !body.includes('"subscriptions/listen"');
}

if (skipped !== undefined) test.skip('all that it requires of servers', skipped);
else {
  test('each scenario passes, whichever node serves a request', async () => {
    const [node, stage] = await Promise.all([newerNode(), ClusterStage.open({ program: PROGRAM })]);
    for (const revision of REVISIONS) {
      const findings = await runSuite(node, stage.url, revision);
      assert.equal([...failedIn(findings, revision)], [], revision);
    }
    await stage.close();
  });

  // The balancer sends a request again if its node is killed before it responds, which is rejected where the first run has
  // used up what it needs (an answered `requestState`). The official client resumes a stream that broke, and a call that may
  // run twice runs again; the scenario `server-sse-polling` reads its stream itself, and fails with it.
  test('while a node is killed every second, a scenario fails only with a call that was cut or sent again, and passes without kills', async () => {
    const [node, stage] = await Promise.all([newerNode(), ClusterStage.open({ program: PROGRAM, resends: true })]);
    const { balancer } = stage;
    for (const revision of Array.from({ length: ROUNDS }, () => REVISIONS).flat()) {
      balancer.broken.length = 0;
      balancer.resent = 0;
      const end = killing(stage);
      const findings = await runSuite(node, stage.url, revision);
      const kills = await end();
      const failed = failedIn(findings, revision);
      const broken = balancer.broken.filter(awaitsResponse);
      const hit = broken.length + balancer.resent;
      const counts = `${failed.size} of ${findings.size} scenarios failed, ${broken.length} streams of calls broke, ${balancer.resent} requests were sent again`;
      const reasons = JSON.stringify([...failed]);
      console.log(`${revision}: ${kills} kills: ${counts}${failed.size > 0 ? `: ${reasons}` : ''}`);
      assert.ok(kills > 0);
      assert.ok(failed.size <= hit, `${counts}: ${reasons}`);
      assert.ok(failed.size <= FAILING * findings.size, `${counts}: ${reasons}`);
      await stage.settled();
      for (const scenario of failed.keys()) {
        const again = await runSuite(node, stage.url, revision, scenario);
        assert.equal(reasonsIn(again.get(scenario) ?? []), [], scenario);
      }
    }
    await stage.close();
  });
}

/** The official conformance suite through a balancer over three nodes. */
import { setTimeout as pause } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import type { Revision } from '../../src/protocol/revisions.ts';
import { type Check, type Findings, runSuite, scenariosOf } from '../conformance/official-suite.ts';
import { timeLimit } from '../harness/door.ts';
import { newerNode, noNewerNode } from '../harness/newer-node.ts';
import { postgresSuite } from '../harness/postgres.ts';
import { SCALE } from '../harness/scale.ts';
import { ClusterStage } from './stage.ts';

timeLimit(240_000);
const test = postgresSuite('official conformance suite over nodes');
const PROGRAM = 'test/fixtures/cluster/everything.ts';
const REVISIONS = ['2025-11-25', '2026-07-28'] as const;
/** The suite checks nothing in it yet: see test/conformance/suite.test.ts. */
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
      const second = pause(1_000);
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

/** The largest share of scenarios that may fail because a node is killed within one of their requests. */
const FAILING = 0.25;

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

  // The suite repeats no request. The balancer answers 502 for a request whose node is killed, and a task whose node is
  // killed fails: a second run could have a second effect.
  test('while a node is killed every second, few scenarios fail, and each passes without kills', async () => {
    const [node, stage] = await Promise.all([newerNode(), ClusterStage.open({ program: PROGRAM })]);
    for (const revision of REVISIONS) {
      const end = killing(stage);
      const findings = await runSuite(node, stage.url, revision);
      const kills = await end();
      const failed = failedIn(findings, revision);
      console.log(`${revision}: ${kills} kills, ${failed.size} of ${findings.size} scenarios failed`);
      assert.ok(kills > 0);
      assert.ok(failed.size <= FAILING * findings.size, JSON.stringify([...failed]));
      await stage.settled();
      for (const scenario of failed.keys()) {
        const again = await runSuite(node, stage.url, revision, scenario);
        assert.equal(reasonsIn(again.get(scenario) ?? []), [], scenario);
      }
    }
    await stage.close();
  });
}

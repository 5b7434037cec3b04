/** The official conformance suite through a balancer over three nodes. */
import * as assert from 'uvu/assert';
import { type Check, runSuite, scenariosOf } from '../conformance/official-suite.ts';
import { timeLimit } from '../harness/door.ts';
import { newerNode, noNewerNode } from '../harness/newer-node.ts';
import { postgresSuite } from '../harness/postgres.ts';
import { SCALE } from '../harness/scale.ts';
import { ClusterStage } from './stage.ts';

timeLimit(240_000);
const test = postgresSuite('official conformance suite over nodes');
const REVISIONS = ['2025-11-25', '2026-07-28'] as const;
/** The suite checks nothing in it yet: see test/conformance/suite.test.ts. */
const UNWRITTEN = 'tasks-status-notifications';

const skipped = noNewerNode ?? (SCALE === 'quick' ? 'npm run test:full runs it' : undefined);
if (skipped !== undefined) test.skip('all that it requires of servers', skipped);
else
  test('each scenario passes, whichever node serves a request', async () => {
    const [node, stage] = await Promise.all([
      newerNode(),
      ClusterStage.open({ program: 'test/fixtures/cluster/everything.ts' }),
    ]);
    const wrong: string[] = [];
    for (const revision of REVISIONS) {
      const findings = await runSuite(node, stage.url, revision);
      const { required, reported } = scenariosOf(revision, 'server');
      for (const scenario of [...required, ...reported]) {
        if (scenario === UNWRITTEN) continue;
        const checks = findings.get(scenario) ?? [];
        const failed = checks.filter(({ status }) => status === 'FAILURE' || status === 'SKIPPED');
        if (checks.length === 0) wrong.push(`${revision} ${scenario}: it threw`);
        wrong.push(...failed.map((check: Check) => `${revision} ${scenario}: ${check.id} ${check.errorMessage ?? ''}`));
      }
    }
    await stage.close();
    assert.equal(wrong, []);
  });

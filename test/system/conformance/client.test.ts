/** The official conformance suite against the client: all that it requires, reports, and knows besides passes. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import * as assert from 'uvu/assert';
import type { Revision } from '../../../src/core/protocol/revisions.ts';
import { reachable } from '../../client/fixture.ts';
import { suite, timeLimit } from '../../harness/door.ts';
import { newerNode, noNewerNode } from '../../harness/newer-node.ts';
import { SCALE } from '../../harness/scale.ts';
import { type Check, type ClientFindings, runClientSuite, scenariosOf } from './official-suite.ts';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../../..', import.meta.url));
const COMMAND = 'node dist/test/conformance-client.mjs';

/** The revisions, and the numbers of scenarios that the suite requires and reports for each. */
const COUNTS = {
  '2025-11-25': { required: 18, reported: 7 },
  '2026-07-28': { required: 32, reported: 7 },
} as const satisfies Readonly<Partial<Record<Revision, { readonly required: number; readonly reported: number }>>>;
const REVISIONS = ['2025-11-25', '2026-07-28'] as const;

/** Scenarios in no set of requirements: the authorization of 2025-03-26, and skills (SEP-2640). */
const SINGLE = [
  'auth/2025-03-26-oauth-metadata-backcompat',
  'auth/2025-03-26-oauth-endpoint-fallback',
  'sep-2640-client-no-prefetch',
  'sep-2640-client-verify-digest',
  'sep-2640-client-verify-size',
  'sep-2640-client-verify-frontmatter',
];

/** Checks that the suite skips, each with the reason. A check that is skipped for another reason fails. */
const SKIPPED: readonly { readonly scenario: string; readonly id: string; readonly says: RegExp }[] = [
  {
    // A modern client sends neither `initialize` nor `notifications/initialized`, so that they have no headers to check.
    scenario: 'http-standard-headers',
    id: 'sep-2243-client-includes-standard-headers',
    says: /did not send a (initialize|notifications\/initialized) request/,
  },
];

/** Scenarios in which the client must refuse, so that it ends with an error. In all others it ends without one. */
const REFUSED: readonly string[] = [
  'auth/scope-retry-limit',
  'auth/resource-mismatch',
  'auth/iss-supported-missing',
  'auth/iss-wrong-issuer',
  'auth/iss-unexpected',
  'auth/iss-normalized',
  'auth/metadata-issuer-mismatch',
];

/** Checks that record what happened and judge nothing. Any other INFO would be a scenario that left something out. */
const RECORDS = [
  'incoming-request',
  'outgoing-response',
  'outgoing-sse-event',
  'outgoing-stream-close',
  'incoming-auth-request',
  'outgoing-auth-response',
  'scope-retry-auth-attempt',
  'server-info',
];

/**
 * Signs that the machine was too slow for that many clients at once: the suite's servers close connections that are idle
 * for 5 s, and requests have deadlines. Such a scenario runs again alone, and only that run is judged. So does one that fails:
 * the suite measures delays.
 */
const LATE = /ECONNRESET|socket hang up|timed out|no response within/;

timeLimit(600_000);
const test = suite('official conformance suite, client side');

test('`npm run --silent conformance:client -- URL` connects, lists, and calls a tool', async () => {
  const texts: string[] = [];
  const fixture = await reachable((server) =>
    server.inspect((record) => {
      if (record.type === 'wire') texts.push(record.text);
    }),
  );
  await run('npm', ['run', '--silent', 'conformance:client', '--', fixture.url], {
    cwd: root,
    shell: process.platform === 'win32',
  });
  assert.ok(
    texts.some((text) => text.includes('"tools/call"')),
    'no tool was called',
  );
  await fixture.close();
});

const skipped = noNewerNode ?? (SCALE === 'quick' ? 'npm run test:full runs it' : undefined);
if (skipped !== undefined) test.skip('all that it requires of clients', skipped);
else {
  const found = new Map<string, ClientFindings>();

  test.before(async () => {
    const node = await newerNode();
    // One after the other: each starts up to 39 clients at once.
    for (const revision of REVISIONS) {
      const { scenarios, timedOut } = await runClientSuite(node, COMMAND, { requirements: revision });
      const judged = new Map(scenarios);
      for (const [scenario, { checks, stderr }] of scenarios) {
        if (!LATE.test(stderr) && checks.every((check) => isFine(scenario, check))) continue;
        const alone = await runClientSuite(node, COMMAND, { scenario, revision });
        for (const [name, finding] of alone.scenarios) judged.set(name, finding);
      }
      found.set(revision, { scenarios: judged, timedOut });
    }
    for (const scenario of SINGLE) found.set(scenario, await runClientSuite(node, COMMAND, { scenario }));
  });

  for (const revision of REVISIONS) {
    const { required, reported } = scenariosOf(revision, 'client');

    test(`${revision}: the suite requires ${COUNTS[revision].required} scenarios and reports ${COUNTS[revision].reported}, and all ran`, () => {
      assert.is(required.length, COUNTS[revision].required);
      assert.is(reported.length, COUNTS[revision].reported);
      assert.equal([...(found.get(revision)?.scenarios.keys() ?? [])].sort(), [...required, ...reported].sort());
    });

    test(`${revision}: no client was stopped by its time limit`, () => {
      assert.is(found.get(revision)?.timedOut, 0);
    });

    for (const scenario of [...required, ...reported]) passes(revision, scenario);
  }

  for (const scenario of SINGLE) {
    test(`${scenario}: it alone ran, and its client ended by itself`, () => {
      assert.equal([...(found.get(scenario)?.scenarios.keys() ?? [])], [scenario]);
      assert.is(found.get(scenario)?.timedOut, 0);
    });
    passes(scenario, scenario);
  }

  function passes(set: string, scenario: string): void {
    test(`${set}${set === scenario ? '' : `: ${scenario}`} passes`, () => {
      const { checks = [], stderr = '' } = found.get(set)?.scenarios.get(scenario) ?? {};
      const wrong = checks.filter((check) => !isFine(scenario, check));
      assert.is(wrong.map(report).join('\n\n'), '');
      assert.ok(
        checks.some(({ status }) => status === 'SUCCESS'),
        'the scenario threw, or checked nothing',
      );
      assert.is(/^\s+throw |^Node\.js v|^\w*Error\b/m.test(stderr), REFUSED.includes(scenario), stderr);
    });
  }
}

function isFine(scenario: string, { id, status, errorMessage = '' }: Check): boolean {
  if (status === 'SKIPPED')
    return SKIPPED.some((each) => each.scenario === scenario && each.id === id && each.says.test(errorMessage));
  return status === 'SUCCESS' || (status === 'INFO' && RECORDS.includes(id));
}

function report({ id, status, name, description, errorMessage = '', details }: Check): string {
  return `${status} ${id} (${name}): ${description}\n  ${errorMessage}\n  ${JSON.stringify(details)?.slice(0, 2_000)}`;
}

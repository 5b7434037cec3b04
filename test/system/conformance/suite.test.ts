/** The official conformance suite against the everything server over HTTP: all passes, except what the table names. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import * as assert from 'uvu/assert';
import type { Revision } from '../../../src/core/protocol/revisions.ts';
import { suite } from '../../harness/door.ts';
import { newerNode, noNewerNode } from '../../harness/newer-node.ts';
import { SCALE } from '../../harness/scale.ts';
import { server } from '../clients/wire.ts';
import { type Check, type Findings, runSuite, scenariosOf } from './official-suite.ts';

const REVISIONS = ['2025-11-25', '2026-07-28'] as const satisfies readonly Revision[];

/** The suite skips it and says why: it would have to listen, and does not yet. `test/features/tasks/listening.test.ts` does. */
const UNWRITTEN = 'the suite, which checks nothing in it yet';

/**
 * What does not pass yet, and the part of Troupe that it waits for: a scenario, or `scenario:check` where the rest of the
 * scenario passes. Each must fail (or be skipped) as long as it is here; what passes leaves the table.
 */
const NOT_YET: Readonly<Record<(typeof REVISIONS)[number], Readonly<Record<string, string>>>> = {
  '2025-11-25': {},
  '2026-07-28': {
    'tasks-status-notifications': UNWRITTEN,
  },
};

/** Checks that tell something and judge nothing. Any other INFO says that a scenario left something out. */
const TELLING = [
  'outgoing-request',
  'incoming-response',
  'incoming-sse-event',
  'stream-closed',
  // Its three lists come as three JSON bodies, so there is no stream to look at: the scenario says that this is fine.
  'server-sse-streams-functional',
];

/**
 * The scenarios of skills (SEP-2640), which stand in no set of requirements, with the number of their checks. Against a server
 * without skills they pass, too, because all of their checks are skipped: so each success counts, by its id.
 */
const SKILLS = {
  'sep-2640-skills-directory': 6,
  'sep-2640-skills-enumeration': 31,
  'sep-2640-skills-manifest': 5,
} as const;
/** Only 2026-07-28 has caching hints. */
const CACHING = ['sep-2640-skills-list-cache-attributes', 'sep-2640-skills-get-cache-attributes'];

const test = suite('official conformance suite');

const skipped = noNewerNode ?? (SCALE === 'quick' ? 'npm run test:full runs it' : undefined);
if (skipped !== undefined) test.skip('all that it requires of servers', skipped);
else {
  let child: ChildProcess | undefined;
  const found = new Map<string, Findings>();
  const ofSkills = new Map<string, Findings>();

  test.before(async () => {
    const { command, args, cwd, env } = server('examples/everything/http.ts');
    child = spawn(command, [...args, '--port', '0'], {
      cwd,
      env: { ...process.env, ...env },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const [url, node] = await Promise.all([urlOf(child), newerNode()]);
    // Both at once: one endpoint serves both eras side by side.
    await Promise.all(
      REVISIONS.map(async (revision) => {
        found.set(revision, await runSuite(node, url, revision));
        for (const scenario of Object.keys(SKILLS))
          ofSkills.set(`${revision} ${scenario}`, await runSuite(node, url, revision, scenario));
      }),
    );
  });

  for (const revision of REVISIONS) {
    const notYet = NOT_YET[revision];
    const { required, reported } = scenariosOf(revision, 'server');
    const scenarios = [...required, ...reported];
    const checksOf = (scenario: string): readonly Check[] => found.get(revision)?.get(scenario) ?? [];

    for (const scenario of scenarios) {
      const reason = notYet[scenario];
      if (reason === undefined)
        test(`${revision}: ${scenario} passes`, () => {
          const wrong = checksOf(scenario).filter(
            (check) => !passes(check) && notYet[`${scenario}:${check.id}`] === undefined,
          );
          assert.is(wrong.map(told).join('\n\n'), '');
          assert.ok(
            checksOf(scenario).some(({ status }) => status === 'SUCCESS'),
            'the scenario threw, or checked nothing',
          );
        });
      else
        test(`${revision}: ${scenario} waits for ${reason}`, () => {
          const checks = checksOf(scenario);
          assert.ok(checks.length > 0, 'the scenario threw');
          assert.not(checks.every(passes), 'it passes: take it out of the table');
        });
    }

    for (const [scenario, count] of Object.entries(SKILLS))
      test(`${revision}: each of the ${count} checks of ${scenario} succeeds`, () => {
        const checks = ofSkills.get(`${revision} ${scenario}`)?.get(scenario) ?? [];
        const skips = revision === '2025-11-25' ? CACHING : [];
        const wrong = checks.filter(
          ({ id, status }) => id.startsWith('sep-2640-') && !skips.includes(id) && status !== 'SUCCESS',
        );
        assert.is(wrong.map(told).join('\n\n'), '');
        const succeeded = new Set(checks.flatMap(({ id, status }) => (status === 'SUCCESS' ? [id] : [])));
        const ids = [...succeeded].filter((id) => id.startsWith('sep-2640-'));
        assert.is(ids.length, scenario === 'sep-2640-skills-enumeration' ? count - skips.length : count);
      });

    test(`${revision}: what the suite ran is what is judged here`, () => {
      assert.equal([...(found.get(revision)?.keys() ?? [])].sort(), [...scenarios].sort());
    });

    test(`${revision}: the table names no scenario or check that passes or is not there`, () => {
      const stale = Object.keys(notYet).filter((entry) => {
        const [scenario = '', id] = entry.split(':');
        if (id === undefined) return !scenarios.includes(scenario);
        return checksOf(scenario).every((check) => check.id !== id || passes(check));
      });
      assert.equal(stale, []);
    });
  }

  test('the server has outlived it all, and ends when it is asked to', async () => {
    assert.is(child?.exitCode, null);
    child?.kill('SIGTERM');
    const [code] = child ? await once(child, 'exit') : [];
    // Windows has no signals: there it is ended, not asked.
    assert.is(code, process.platform === 'win32' ? null : 0);
  });

  test.after(() => {
    child?.kill('SIGKILL');
  });
}

function passes({ id, status }: Check): boolean {
  return status === 'SUCCESS' || (status === 'INFO' && TELLING.includes(id));
}

/** A check as someone who mends the server wants to read it. */
function told({ id, status, name, description, errorMessage = '', details }: Check): string {
  return `${status} ${id} (${name}): ${description}\n  ${errorMessage}\n  ${JSON.stringify(details)?.slice(0, 2_000)}`;
}

/** The URL that a server says on stderr, which is read on to its end: nobody must wait for us to read. */
function urlOf(served: ChildProcess): Promise<string> {
  let said = '';
  return new Promise((resolve, reject) => {
    served.stderr?.setEncoding('utf8').on('data', (text: string) => {
      said += text;
      const url = /http:\S+/.exec(said)?.[0];
      if (url !== undefined) resolve(url);
    });
    served.on('exit', (code) => reject(new Error(`the server ended with code ${code}:\n${said}`)));
  });
}

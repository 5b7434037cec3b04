/**
 * The official conformance suite against the everything server behind `troupe gateway`: it finds what it finds without a gateway,
 * whether the server is reached by stdio or HTTP, and speaks a legacy or a modern revision to the gateway.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import type { Revision } from '../../../src/core/protocol/revisions.ts';
import { suite } from '../../harness/door.ts';
import { newerNode, noNewerNode } from '../../harness/newer-node.ts';
import { ofToday, SCALE } from '../../harness/scale.ts';
import { command, server } from '../clients/wire.ts';
import { type Check, type Findings, runSuite } from './official-suite.ts';

const REVISIONS = ['2025-11-25', '2026-07-28'] as const satisfies readonly Revision[];
const WAYS = ['stdio', 'http'].flatMap((transport) => ['modern', 'legacy'].map((era) => ({ transport, era }) as const));

const NO_STREAM =
  'the tool ends the stream of its own response, which only the client of its server sees: the gateway answers without a stream';
const NO_KEY =
  'a question of a legacy server has no key; the suite expects the one that this server gives it in the modern era';

/** The scenarios whose findings differ, by the era of the upstream. */
const DIFFERENT: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'modern 2025-11-25': { 'server-sse-polling': NO_STREAM },
  'legacy 2025-11-25': { 'server-sse-polling': NO_STREAM },
  'modern 2026-07-28': {},
  'legacy 2026-07-28': {
    'input-required-result-basic-elicitation': NO_KEY,
    'input-required-result-ignore-extra-params': NO_KEY,
  },
};

/**
 * Checks of the first 600 ms of a call, and of its first second, after which it becomes a task. A gateway starts a process for each
 * client of a legacy server on stdio, which can take longer. The lists are those of another process than that of the call, so that
 * a call which changes the lists of its own process changes none of them.
 */
const OF_OTHER_PROCESSES = [
  'sep-2575-http-server-no-independent-requests-on-stream',
  'sep-2663-mrtr-synchronous-before-task-creation',
  'sep-2575-server-sends-tools-list-changed-on-subscription',
  'sep-2575-server-sends-prompts-list-changed-on-subscription',
];
/** The scenarios of skills, which are in no set of requirements. */
const SKILLS = ['sep-2640-skills-directory', 'sep-2640-skills-enumeration', 'sep-2640-skills-manifest'];
/** Checks that only record an exchange. */
const RECORDS = ['outgoing-request', 'incoming-response', 'incoming-sse-event', 'stream-closed'];
/** A scenario that differs runs again by itself: some of them wait for a second or less. */
const ATTEMPTS = 3;

const test = suite('official conformance suite through a gateway');

const skipped = noNewerNode ?? (SCALE === 'quick' ? 'npm run test:full runs it' : undefined);
if (skipped !== undefined) test.skip('the server side in four ways', skipped);
else {
  const children: ChildProcess[] = [];
  const directory = mkdtempSync(join(tmpdir(), 'gateway-suite-'));
  const direct = new Map<string, Findings>();
  let url = '';

  /** Starts a program that reports its address on stderr. */
  const start = async (
    { command: program, args, cwd, env }: ReturnType<typeof server>,
    ...more: readonly string[]
  ): Promise<string> => {
    const child = spawn(program, [...args, ...more], {
      cwd,
      env: { ...process.env, ...env },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    children.push(child);
    let text = '';
    for await (const chunk of child.stderr) {
      text += chunk;
      const [, found] = / at (http:\/\/\S+\/mcp)/.exec(text) ?? [];
      if (found === undefined) continue;
      // The pipe must not fill.
      child.stderr.resume();
      return found;
    }
    throw new Error(`it ended before it listened:\n${text}`);
  };

  test.before(async () => {
    url = await start(server('examples/everything/http.ts'), '--port', '0');
    const node = await newerNode();
    await Promise.all(
      REVISIONS.map(async (revision) => void direct.set(revision, await withSkills(node, url, revision))),
    );
    // Against a server without skills, all of their checks are skipped.
    for (const findings of direct.values())
      for (const scenario of SKILLS)
        assert.ok(findings.get(scenario)?.some(({ id, status }) => id.startsWith('sep-2640-') && status === 'SUCCESS'));
  });

  for (const { transport, era } of ofToday(WAYS, 2))
    test(`finds the same behind a gateway whose ${era} upstream is reached by ${transport}`, async () => {
      const stdio = server('examples/everything/stdio.ts');
      const target =
        transport === 'http' ? { url } : { command: stdio.command, args: stdio.args, cwd: stdio.cwd, env: stdio.env };
      const file = join(directory, `${transport}-${era}.json`);
      const options = { prefix: false, pins: 'off', eras: era };
      writeFileSync(file, JSON.stringify({ mcpServers: { everything: { ...target, troupe: options } } }));
      const gateway = await start(command(), 'gateway', file, '--http', '0');
      const node = await newerNode();
      const found = await Promise.all(REVISIONS.map((revision) => withSkills(node, gateway, revision)));
      const ignored = transport === 'stdio' && era === 'legacy' ? [...RECORDS, ...OF_OTHER_PROCESSES] : RECORDS;
      const wrong: string[] = [];
      for (const [at, revision] of REVISIONS.entries()) {
        const expected = direct.get(revision) ?? new Map();
        const different = DIFFERENT[`${era} ${revision}`] ?? {};
        assert.equal([...(found[at]?.keys() ?? [])].sort(), [...expected.keys()].sort());
        for (const [scenario, checks] of expected) {
          let now = found[at]?.get(scenario) ?? [];
          const isExpected = (): boolean =>
            (String(outcomes(now, ignored)) === String(outcomes(checks, ignored))) ===
            (different[scenario] === undefined);
          for (let attempt = 1; attempt < ATTEMPTS && !isExpected(); attempt += 1)
            now = (await runSuite(node, gateway, revision, scenario)).get(scenario) ?? [];
          if (!isExpected())
            wrong.push(`${revision} ${scenario}: ${differenceOf(checks, now, ignored) || 'it is the same now'}`);
        }
      }
      assert.is(wrong.join('\n\n'), '');
      const child = children.pop();
      child?.kill('SIGTERM');
      const [code] = child ? await once(child, 'exit') : [];
      assert.is(code, process.platform === 'win32' ? null : 0);
    });

  test.after(() => {
    for (const child of children) child.kill('SIGKILL');
    rmSync(directory, { recursive: true, force: true });
  });
}

/** The findings of the suite, and those of its scenarios of skills. */
async function withSkills(node: string, url: string, revision: Revision): Promise<Findings> {
  const all = new Map(await runSuite(node, url, revision));
  for (const scenario of SKILLS)
    for (const [name, checks] of await runSuite(node, url, revision, scenario)) all.set(name, checks);
  return all;
}

/** Each check with its status. */
function outcomes(checks: readonly Check[], ignored: readonly string[]): readonly string[] {
  return [
    ...new Set(checks.filter(({ id }) => !ignored.includes(id)).map(({ id, status }) => `${id} ${status}`)),
  ].sort();
}

/** The checks that differ, as someone who mends the gateway wants to read them. */
function differenceOf(before: readonly Check[], now: readonly Check[], ignored: readonly string[]): string {
  const expected = outcomes(before, ignored);
  return now
    .filter(({ id, status }) => !ignored.includes(id) && !expected.includes(`${id} ${status}`))
    .map(({ id, status, description, errorMessage = '' }) => `${status} ${id}: ${description}\n  ${errorMessage}`)
    .join('\n');
}

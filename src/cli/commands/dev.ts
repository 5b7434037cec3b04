/** `troupe dev FILE|DIR`: serves a program on stdio and reloads it when one of its modules changes. */

import { constants } from 'node:os';
import { openInBrowser } from '../../client/browser.ts';
import type { Server } from '../../features/server/server.ts';
import { relieveStalls } from '../../features/workers/stall-probe.ts';
import type { CommandIo, ExitCode } from '../command-io.ts';
import { LOG_HELP, LOG_OPTION } from '../command-log.ts';
import { chooseLog, readOptions } from '../command-options.ts';
import { DevKeys, inForeground, KEYS_HELP, type RawInput, rawInput } from '../reload/dev-keys.ts';
import { type RestartedProcess, restartedProcess, runWithRestarts } from '../reload/dev-restarts.ts';
import { Reloader } from '../reload/reloader.ts';
import { CALLER_HELP, CALLER_OPTIONS, readCaller } from '../serving/caller-option.ts';
import { ENDPOINTS, Endpoints } from '../serving/endpoints.ts';
import { ENV_HELP, ENV_OPTION, readEnvBeside } from '../serving/env-file.ts';
import { INSPECTING, readInspecting } from '../serving/inspecting-options.ts';
import { type Endings, watchLoading, watchLoop } from '../serving/loop-watch.ts';
import { chosenStore } from '../serving/served-store.ts';
import { STORE_HELP, STORE_OPTIONS } from '../serving/store-option.ts';
import { passArguments, readTarget } from '../serving/target.ts';
import { noBrowser, print, say, TARGETS } from '../usage.ts';

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

On a terminal, o opens the page, r restarts (with the current options of the
program and the current .env), q ends, and h lists the keys. A line that begins
with { is a message to the server.

${TARGETS}
`;

/** Runs the command. @throws {UsageError} */
export async function main(args: readonly string[], io: CommandIo): Promise<ExitCode> {
  const terminal = keyTerminal(io);
  const parent = restartedProcess(quit);
  if (terminal && !parent) return runWithRestarts(terminal);
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
  // No other client waits for answers.
  const endings: Endings = { alone: true, input: endpoints.none && !terminal, onSave: parent ? 'restart' : 'end' };
  let page: URL | undefined;
  const keys = terminal && parent && readKeys(terminal, parent, () => page, io);
  const watch = async (server: Server): Promise<void> => {
    watchLoop(server, endings);
    if (coverage !== undefined) await reportCoverage(server);
    if (!inspecting.inspect && inspecting.record === undefined) return;
    const { inspect } = await import('../serving/inspecting.ts');
    const connect = () => endpoints.connectHelp(server);
    await inspect(server, {
      ...{ ...inspecting, open: inspecting.open && parent?.address.restarted !== true },
      ...{ command: 'dev', target: target.path, connect },
      ...(parent && { address: Promise.resolve(parent.address), onPort: parent.onPort }),
      onPage: (url) => {
        page = url;
      },
    });
  };
  // Keys are no messages of a client.
  const local = keys ? { ...caller, input: keys.lines, exit: true, signals: true } : caller;
  watchLoading(endings);
  await new Reloader(target, endpoints, watch, { store, local }, io).load();
  if (keys) say(`troupe dev: ${KEYS_HELP}`);
  return undefined;
}

/** The terminal whose keys are read: not in the background, and not beside a debugger, whose port a second process could not open. */
function keyTerminal({ stdin, stderr }: CommandIo): RawInput | undefined {
  const terminal = rawInput(stdin);
  const isDebugged = process.execArgv.some((option) => option.startsWith('--inspect'));
  return terminal && stderr.isTTY === true && !isDebugged && inForeground() ? terminal : undefined;
}

/** Ends as Ctrl-C does. */
function quit(): void {
  if (!process.emit('SIGINT', 'SIGINT')) process.exit(128 + constants.signals.SIGINT);
}

/** Reads keys until the process ends. */
function readKeys(
  terminal: RawInput,
  parent: RestartedProcess,
  page: () => URL | undefined,
  { stderr }: CommandIo,
): DevKeys {
  const keys = new DevKeys(terminal, {
    open() {
      const url = page();
      if (!url) return say('troupe dev: there is no page (--no-inspect)');
      say(`troupe dev: inspector at ${url}`);
      openInBrowser(url, () => say(noBrowser('dev')));
    },
    restart() {
      say('troupe dev: restarting');
      parent.askRestart();
      quit();
    },
    quit,
    suspend() {
      if (process.platform === 'win32') return;
      keys.end();
      // The whole group, as the terminal would do it.
      process.kill(0, 'SIGTSTP');
    },
    write: (text) => void stderr.write(text),
  });
  process.on('exit', () => keys.end());
  relieveStalls({
    // Only then, Ctrl-C is a signal.
    release: () => keys.end(),
    hold: () => keys.resume(),
    restart: () => parent.askRestart(),
  });
  if (process.platform !== 'win32') process.on('SIGCONT', () => inForeground() && keys.resume());
  return keys;
}

/** Counts visited states and transitions from now on. Prints the counts on stderr on exit and on SIGUSR2. */
async function reportCoverage(server: Server): Promise<void> {
  const { watchCoverage } = await import('../../inspector/stream/coverage-counter.ts');
  const coverage = watchCoverage(server);
  const report = (): void => say(`troupe dev: coverage\n${coverage}`);
  process.on('exit', report);
  if (process.platform !== 'win32') process.on('SIGUSR2', report);
}

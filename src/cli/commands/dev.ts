/** `troupe dev FILE|DIR`: serves a program as `troupe run` does, and loads it again when one of its modules changes. */

import type { Server } from '../../server.ts';
import { reserveStdout } from '../../transports/stdout-guard.ts';
import { readOptions } from '../command-options.ts';
import { Reloader } from '../reload/reloader.ts';
import { dataDirectory } from '../serving/data-directory.ts';
import { INSPECTING, readInspecting } from '../serving/inspecting-options.ts';
import { readTarget } from '../serving/target.ts';
import { TARGETS } from '../usage.ts';

const OPTIONS = { data: 'DIR', coverage: '', ...INSPECTING, 'no-inspect': '', open: '' };

const HELP = `Usage: troupe dev FILE|DIR [--data DIR] [--open] [--coverage] [-- ARGS]

Serves as troupe run does, and loads everything again when a module changes. Connected clients stay connected, and are
told which lists changed. A load that fails says why on stderr; until it is mended the version before is served.
The options of createServer({ … }) are those of the first load.
The inspector is open, at an address that is said on stderr: a page on this machine that shows what happens.

  --data DIR         keep what must survive this process in DIR
  --open             open the inspector in the browser
  --no-inspect       do without it
  --inspect-control  let it also send events, call tools, and close sessions
  --record FILE      write what happens down in FILE, which the inspector's page opens
  --coverage         say which states and transitions of each machine were visited: at the end, and at SIGUSR2

${TARGETS}
`;

/** Runs the command. @throws {UsageError} */
export async function main(args: readonly string[]): Promise<void> {
  const line = readOptions('dev', args, OPTIONS);
  const target = line && readTarget('dev', [...line.positionals, '--', ...line.rest]);
  if (!target) return void process.stdout.write(HELP);
  const { data, coverage } = line.values;
  const inspecting = readInspecting('dev', line, true);
  reserveStdout();
  const report = coverage === undefined ? undefined : (await import('../reload/coverage-report.ts')).reportCoverage;
  const watch = async (server: Server): Promise<void> => {
    report?.('dev', server);
    if (!inspecting.inspect && inspecting.record === undefined) return;
    const { inspect } = await import('../serving/inspecting.ts');
    await inspect(server, { ...inspecting, command: 'dev', target: target.path });
  };
  await new Reloader(target, await dataDirectory('dev', data), watch).load();
}

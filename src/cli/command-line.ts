/** The `troupe` command as a function of its arguments and its io: dispatches to one file per subcommand. */

import { packageVersion } from '../core/kernel/package-files.ts';
import { suggestion } from '../core/protocol/near-miss.ts';
import type { CommandIo, ExitCode } from './command-io.ts';
import { main as run } from './commands/run.ts';
import { print, runCommand, USAGE, UsageError } from './usage.ts';

type Main = (args: readonly string[], io: CommandIo) => Promise<ExitCode>;

const commands: Readonly<Record<string, () => Promise<{ readonly main: Main }>>> = {
  // Loaded eagerly: `run` starts its worker before anything else.
  run: async () => ({ main: run }),
  dev: () => import('./commands/dev.ts'),
  serve: () => import('./commands/serve.ts'),
  attach: () => import('./commands/attach.ts'),
  gateway: () => import('./commands/gateway.ts'),
  build: () => import('./commands/build.ts'),
  pack: () => import('./commands/pack.ts'),
  graph: () => import('./commands/graph.ts'),
  top: () => import('./commands/top.ts'),
  call: () => import('./commands/call.ts'),
  listen: () => import('./commands/listen.ts'),
  check: () => import('./commands/check.ts'),
  types: () => import('./commands/types.ts'),
  inspect: () => import('./commands/inspect.ts'),
  open: () => import('./commands/open.ts'),
  approvals: () => import('./commands/approvals.ts'),
  audit: () => import('./commands/audit.ts'),
  login: () => import('./commands/login.ts'),
  logout: () => import('./commands/logout.ts'),
  init: () => import('./commands/init.ts'),
  install: () => import('./commands/install.ts'),
  uninstall: () => import('./commands/uninstall.ts'),
};

/**
 * Runs a command line, and prints on stderr why it fails.
 *
 * @param args the words after `troupe`
 */
export function troupe(args: readonly string[], io: CommandIo): Promise<ExitCode> {
  const [first = ''] = args;
  return runCommand(io, Object.hasOwn(commands, first) ? `troupe ${first}` : 'troupe', () => dispatch(args, io));
}

/** @throws {UsageError} */
async function dispatch([first, ...rest]: readonly string[], io: CommandIo): Promise<ExitCode> {
  if (first === '--help' || first === '-h') return print(io, `${USAGE}\n`);
  if (first === '--version' || first === '-v') return print(io, `${packageVersion()}\n`);
  // A person who types the name alone looks for its commands.
  if (first === undefined) io.stderr.write(`${USAGE}\n\n`);
  const command = first !== undefined && Object.hasOwn(commands, first) ? commands[first] : undefined;
  if (!command)
    throw new UsageError(
      `troupe: expected a command (${Object.keys(commands).join(', ')}), got ${first ?? 'none'}${suggestion(first ?? '', Object.keys(commands))}`,
    );
  const { main } = await command();
  return main(rest, io);
}

#!/usr/bin/env node
/** The `troupe` command: dispatches to one file per subcommand. */
import { suggestion } from '../near-miss.ts';
import { packageVersion } from '../package-files.ts';
import { main as run } from './commands/run.ts';
import { enableCompileCache } from './compile-cache.ts';
import { runCommand, USAGE, UsageError } from './usage.ts';

const commands: Readonly<Record<string, () => Promise<{ main(args: readonly string[]): Promise<void> }>>> = {
  // Loaded eagerly: `run` starts its worker before anything else.
  run: async () => ({ main: run }),
  dev: () => import('./commands/dev.ts'),
  serve: () => import('./commands/serve.ts'),
  attach: () => import('./commands/attach.ts'),
  gateway: () => import('./commands/gateway.ts'),
  build: () => import('./commands/build.ts'),
  graph: () => import('./commands/graph.ts'),
  top: () => import('./commands/top.ts'),
  call: () => import('./commands/call.ts'),
  inspect: () => import('./commands/inspect.ts'),
  open: () => import('./commands/open.ts'),
  audit: () => import('./commands/audit.ts'),
  login: () => import('./commands/login.ts'),
  logout: () => import('./commands/logout.ts'),
  init: () => import('./commands/init.ts'),
  install: () => import('./commands/install.ts'),
  uninstall: () => import('./commands/uninstall.ts'),
};

enableCompileCache();
void runCommand(() => main(process.argv.slice(2)));

async function main([first, ...rest]: readonly string[]): Promise<void> {
  if (first === '--help' || first === '-h') return void process.stdout.write(`${USAGE}\n`);
  if (first === '--version' || first === '-v') return void process.stdout.write(`${packageVersion()}\n`);
  const command = first !== undefined && Object.hasOwn(commands, first) ? commands[first] : undefined;
  if (!command)
    throw new UsageError(
      `troupe: expected a command (${Object.keys(commands).join(', ')}), got ${first ?? 'none'}${suggestion(first ?? '', Object.keys(commands))}`,
    );
  const { main } = await command();
  return main(rest);
}

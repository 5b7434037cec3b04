#!/usr/bin/env node
/** The `troupe` command: it hands its arguments to one file per command. */
import { createRequire } from 'node:module';
import { ownFile } from '../package-files.ts';
import { main as run } from './commands/run.ts';
import { keepCompiled } from './compile-cache.ts';
import { USAGE, UsageError, understood } from './usage.ts';

const commands: Readonly<Record<string, () => Promise<{ main(args: readonly string[]): Promise<void> }>>> = {
  // At once: its worker is to be started first of all.
  run: async () => ({ main: run }),
  dev: () => import('./commands/dev.ts'),
  serve: () => import('./commands/serve.ts'),
  attach: () => import('./commands/attach.ts'),
  graph: () => import('./commands/graph.ts'),
  top: () => import('./commands/top.ts'),
};

keepCompiled();
void understood(() => main(process.argv.slice(2)));

async function main([first, ...rest]: readonly string[]): Promise<void> {
  if (first === '--help' || first === '-h') return void process.stdout.write(`${USAGE}\n`);
  if (first === '--version' || first === '-v') return void process.stdout.write(`${version()}\n`);
  const command = first !== undefined && Object.hasOwn(commands, first) ? commands[first] : undefined;
  if (!command)
    throw new UsageError(`troupe: expected a command (${Object.keys(commands).join(', ')}), got ${first ?? 'nothing'}`);
  const { main } = await command();
  return main(rest);
}

function version(): string {
  // As our own files find it: where the command lies is no place of the package's (bundle.ts).
  const { version }: { version: string } = createRequire(ownFile('package-files'))('troupe/package.json');
  return version;
}

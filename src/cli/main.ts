#!/usr/bin/env node
/** The `troupe` command: it hands its arguments to one file per command. */
import module, { createRequire } from 'node:module';
import { say, USAGE, UsageError } from './usage.ts';

const commands: Readonly<Record<string, () => Promise<{ main(args: readonly string[]): Promise<void> }>>> = {
  run: () => import('./run.ts'),
  dev: () => import('./dev.ts'),
  serve: () => import('./serve.ts'),
  attach: () => import('./attach.ts'),
  graph: () => import('./graph.ts'),
  top: () => import('./top.ts'),
};

// What is loaded from here on is compiled once, and not at each start, where Node can keep it (22.8 and later).
if ('enableCompileCache' in module && typeof module.enableCompileCache === 'function') module.enableCompileCache();

/** Exit codes: 0 for what went well, 1 for a program that failed, 2 for arguments that were not understood. */
try {
  await main(process.argv.slice(2));
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  say(`${error.message}\nSee troupe --help.`);
  process.exitCode = 2;
}

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
  const { version }: { version: string } = createRequire(import.meta.url)('troupe/package.json');
  return version;
}

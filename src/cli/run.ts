/** `troupe run FILE|DIR`: serves a program, or modules that need none, over stdio. */
import { stdio } from '../transports/stdio.ts';
import { reserveStdout } from '../transports/stdout-guard.ts';
import { serveTarget } from './serving.ts';
import { readTarget } from './target.ts';
import { TARGETS } from './usage.ts';

const HELP = `Usage: troupe run FILE|DIR [-- ARGS]\n\n${TARGETS}\n`;

/** Runs the command. @throws {UsageError} */
export async function main(args: readonly string[]): Promise<void> {
  const target = readTarget('run', args);
  if (!target) return void process.stdout.write(HELP);
  // From here on stdout is the protocol, also for what the program says while it loads.
  reserveStdout();
  await serveTarget(target, {
    command: 'run',
    listen: (server) => server.listen(stdio()),
    takesOver: false,
  });
}

/** What the command line understands, and how it says that it did not. */

import { startupError } from './startup-error.ts';

/** The command line was not understood: exit code 2. The message says what was expected and what came. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** Runs a command. Exit codes: 0 for what went well, 1 for a program that failed, 2 for arguments that were not understood. */
export async function understood(command: () => Promise<void>): Promise<void> {
  try {
    await command();
  } catch (error) {
    const code = sayWhy('troupe', error);
    process.exitCode = code;
    // What the command has begun must not keep the process.
    if (code === 1) process.stderr.write('', () => process.exit(code));
  }
}

/** Says on stderr why a command ends. @returns its exit code */
export function sayWhy(what: string, error: unknown, path?: string): number {
  // By its name: the file that runs the commands has a class of its own (bundle.ts).
  if (error instanceof Error && error.name === 'UsageError') {
    say(`${error.message}\nSee troupe --help.`);
    return 2;
  }
  say(`${what}: ${startupError(error, path)}`);
  return 1;
}

export const USAGE = `Usage: troupe <command>

  troupe run FILE|DIR [-- ARGS]   serve what FILE, or the modules below DIR, offer; start it again when it crashes
  troupe dev FILE|DIR [-- ARGS]   the same, and load it again when it changes
  troupe serve FILE|DIR [--http PORT] [--socket PATH] [-- ARGS]
                                  the same as run, for many clients at once
  troupe attach PATH              connect a client on stdio to such a socket
  troupe attach --spawn FILE|DIR [PATH] [-- ARGS]
                                  the same, and start the server when there is none
  troupe top [URL|PID]            show in the terminal what happens in a server that is inspected
  troupe graph FILE|DIR [MACHINE] print a statechart as a picture, as Mermaid, or as a table

run, dev and serve take --data DIR: what must survive the process is kept there. They take --inspect: a page that shows
what happens in the server, which dev has in any case; and --record FILE, which writes it down.

  --help, -h       this text, or that of a command
  --version, -v    the version of troupe

run and dev serve one client over stdin and stdout. Whatever is said to people is said on stderr.`;

/** What FILE and DIR may be, for the help of both commands. */
export const TARGETS = `FILE is a .ts, .mts, .js or .mjs module. It may
  - call server.listen(…) itself,
  - export a server: export default createServer({…}), which is then served on stdio,
  - export tools, resources and prompts: defineTool(…) and its siblings, a tool class, a function with a schema.
DIR is a directory: its server.* or index.* if that exports a server, or else all modules below it.
ARGS are what FILE finds in process.argv.slice(2).`;

/** Says it on stderr: stdout may belong to the protocol. */
export function say(line: string): void {
  process.stderr.write(`${line}\n`);
}

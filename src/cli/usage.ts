/** The texts of `troupe --help`, usage errors, and the exit codes of every command. */
import { nodeName } from '../core/kernel/node-name.ts';
import { visibleText } from '../core/protocol/visible-text.ts';
import type { CommandIo, ExitCode } from './command-io.ts';
import { commandLog, logTo, standardError } from './command-log.ts';
import { startupError } from './startup-error.ts';

/** The arguments are wrong: exit code 2. The message states what was expected and what came. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** Names the command in the usage errors of a function. @throws {UsageError} */
export function inCommand<T>(command: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof UsageError) throw new UsageError(`troupe ${command}: ${error.message}`);
    throw error;
  }
}

/** Runs a command, and prints on stderr why it fails. @param name such as `troupe call`. @returns its exit code */
export async function runCommand(
  { stderr }: Pick<CommandIo, 'stderr'>,
  name: string,
  command: () => Promise<ExitCode>,
): Promise<ExitCode> {
  logTo(stderr);
  try {
    return await command();
  } catch (error) {
    return reportFailure(name, error);
  }
}

/** Prints a text on stdout. @returns the exit code of a command that has done its work */
export function print({ stdout }: Pick<CommandIo, 'stdout'>, text: string): number {
  stdout.write(text);
  return 0;
}

/** Prints on stderr why a command fails. @returns its exit code */
export function reportFailure(what: string, error: unknown, path?: string): number {
  // Compares the name, not the class: the bundled entry file contains its own copy of UsageError (bundle.ts).
  if (error instanceof Error && error.name === 'UsageError') {
    const [, command = ''] = /^troupe( [a-z]+): /.exec(error.message) ?? [];
    say(`${error.message} (see troupe${command} --help)`, 'error');
    return 2;
  }
  say(`${what}: ${startupError(error, path)}`, 'error');
  return 1;
}

export const USAGE = `Usage: troupe <command>

  troupe init [DIR] [--container]
      create a small project: a server, its test, package.json
  troupe run [FILE|DIR] [-- ARGS]
      serve FILE, or all modules in DIR, on stdio; restart after a crash
  troupe dev [FILE|DIR] [--http PORT] [--socket PATH] [-- ARGS]
      the same, and reload when a module changes
  troupe serve [FILE|DIR] [--http PORT] [--socket PATH] [-- ARGS]
      serve many clients from one process, over HTTP or a socket
  troupe attach PATH
      connect stdio to a server on a socket
  troupe attach --spawn FILE|DIR [PATH] [-- ARGS]
      the same, and start the server if it is not running
  troupe gateway CONFIG [--http PORT] [--socket PATH]
      offer the MCP servers of a configuration as one server
  troupe install [FILE|DIR] [--client NAME] [--print]
      add the server to the configuration of MCP clients; uninstall removes it
  troupe build FILE|DIR
      bundle the views of the server, each into one HTML file
  troupe pack FILE|DIR
      make one archive of the server, which desktop hosts install (.mcpb)
  troupe top [URL|PID]
      show the activity of an inspected server in the terminal
  troupe graph FILE|DIR [MACHINE]
      print a statechart as an SVG picture, as Mermaid or as a table
  troupe call TARGET [TOOL [KEY=VALUE…]]
      list what any MCP server offers, or call one of its tools
  troupe listen TARGET [EVENT [KEY=VALUE…]]
      print the events of any MCP server as they happen
  troupe types TARGET [--out FILE] [--check]
      write the types of what any MCP server offers, for a typed client
  troupe check TARGET [--for openai|claude|registry] [--json]
      report what the directories of MCP servers would reject
  troupe inspect TARGET [--json]
      open the inspector on a connection to any MCP server, or print all that
      the server offers as JSON
  troupe open RECORDING
      show a recording (of --record) in the inspector, without a server
  troupe approvals [approve ID|deny ID|revoke ID]
      list the calls that wait for people, and decide about them
  troupe audit FILE
      print the records of an audit log: who called what, and what was denied
  troupe login URL
      sign in to a server, and store the grant for troupe call
  troupe logout URL
      remove the grant, and revoke it

Options of run, dev and serve:

  --data DIR       directory for durable state
  --store URL      PostgreSQL database for durable state
  --inspect        open the inspector, a local web page; dev opens it by default
  --record FILE    record the activity of the server in FILE
  --log json       write the log on stderr as JSON, an object on each line

  --help, -h       show this text, or the help of a command
  --version, -v    show the version of troupe

run and dev serve one client on stdin and stdout. All other output goes to
stderr.`;

/** Explains FILE, DIR and ARGS in the help of the commands that serve. */
export const TARGETS = `FILE is a .ts, .mts, .js, .mjs or .cjs module. It can
  - call server.listen(…) itself,
  - export a server, which is then served on stdio:
    export default createServer({…}),
  - export tools, resources and prompts: defineTool(…) and its siblings, a tool
    class, or a function with a schema.
Without FILE, it is server.ts, server.mts, server.js or server.mjs of this
directory, one of these in src, or "main" of package.json.
DIR is a directory. If its server.* or index.* exports a server, that server is
served; otherwise all modules in DIR are served together.
ARGS are passed to FILE as process.argv.slice(2).`;

/** Prints a line on stderr, in the format of `--log`: stdout may carry the protocol. */
export function say(line: string, level: 'info' | 'error' = 'info'): void {
  const log = commandLog();
  if (log) log(level, line, { event: 'command', node: nodeName() });
  // A line may contain names and texts of a server.
  else standardError().write(`${visibleText(line)}\n`);
}

/** The message for `--open` if no browser starts. */
export function noBrowser(command: string): string {
  return `troupe ${command}: --open: cannot start a browser: open the URL yourself`;
}

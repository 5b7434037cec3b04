/** `troupe login URL`: signs in to a server, and stores the grant for later commands. */
import { nameOfAddress, readCallTarget } from '../call/call-target.ts';
import { Interrupt, withClient } from '../call/command-client.ts';
import { tokenFile } from '../call/state-directory.ts';
import type { CommandIo, ExitCode } from '../command-io.ts';
import { readOptions } from '../command-options.ts';
import { print, UsageError } from '../usage.ts';

const OPTIONS = { data: 'DIR', 'no-open': '' };

const HELP = `Usage: troupe login URL [--data DIR] [--no-open]

Signs in to an MCP server, and stores the grant: troupe call and troupe inspect
use and refresh it. The page to sign in is shown, and opened in the browser.

  --data DIR             directory of the stored tokens; default: troupe in
                         $XDG_STATE_HOME, or ~/.local/state/troupe
  --no-open              show the page, but open no browser

Exit codes: 0 signed in; 2 wrong arguments; 3 no connection; 4 not signed in.
`;

/** Runs the command. @throws {UsageError} */
export async function main(args: readonly string[], io: CommandIo): Promise<ExitCode> {
  const line = readOptions('login', args, OPTIONS);
  if (!line) return print(io, HELP);
  const { values, positionals, rest } = line;
  const target = readCallTarget('login', positionals, rest, [], io);
  if (target.url === undefined || target.words.length > 0)
    throw new UsageError(`troupe login: expected one URL, got ${[...positionals, ...rest].join(' ')}`);
  const { url } = target;
  const interrupt = new Interrupt('login', io);
  const { fileTokens } = await import('../../client/oauth/file-tokens.ts');
  return withClient(
    {
      io,
      command: 'login',
      target,
      data: values.data,
      open: values['no-open'] === undefined,
      interactive: true,
      connect: {},
    },
    interrupt,
    async () => {
      // The server demands a token at the start, or it has accepted a stored one, or it demands none.
      const stored = await fileTokens(tokenFile(values.data, io)).get(nameOfAddress(url));
      return print(
        io,
        stored === undefined
          ? `${target.name} can be used without signing in. If one of its tools demands it, troupe call signs in.\n`
          : `Signed in to ${target.name}. The grant is in ${tokenFile(values.data, io)}.\n`,
      );
    },
  );
}

/** `troupe inspect TARGET`: prints everything that a server offers as one JSON document. */
import { readCallTarget } from '../call/call-target.ts';
import { exit, hasTerminal, Interrupt, tolerateClosedStdout, withClient } from '../call/command-client.ts';
import { listServer } from '../call/server-listing.ts';
import { readOptions } from '../command-options.ts';
import { UsageError } from '../usage.ts';

const OPTIONS = { json: '', header: "'NAME: VALUE'…", data: 'DIR', 'no-open': '' };

const HELP = `Usage: troupe inspect TARGET --json
       troupe inspect --json -- COMMAND [ARGS…]

Prints everything that an MCP server offers as one JSON document: server,
capabilities, tools, resources, templates and prompts.

TARGET is a URL, FILE, DIR or SOCKET (see troupe call --help).

  --header 'NAME: VALUE' send an HTTP header; may be repeated
  --data DIR             directory of the stored tokens
  --no-open              open no browser

Exit codes: as of troupe call.
`;

/** Runs the command. @throws {UsageError} */
export async function main(args: readonly string[]): Promise<void> {
  const line = readOptions('inspect', args, OPTIONS);
  if (!line) return void process.stdout.write(HELP);
  const { values, lists, positionals, rest } = line;
  const target = readCallTarget('inspect', positionals, rest, lists.header ?? []);
  if (target.words.length > 0)
    throw new UsageError(`troupe inspect: expected one TARGET, got ${positionals.join(' ')}`);
  if (values.json === undefined) throw new UsageError('troupe inspect: expected --json');
  tolerateClosedStdout();
  const code = await withClient(
    {
      command: 'inspect',
      target,
      data: values.data,
      open: values['no-open'] === undefined,
      interactive: hasTerminal(),
      connect: {},
    },
    new Interrupt('inspect'),
    async (client) => {
      process.stdout.write(`${JSON.stringify(await listServer(client), undefined, 2)}\n`);
      return 0;
    },
  );
  exit(code);
}

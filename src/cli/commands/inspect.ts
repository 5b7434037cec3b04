/** `troupe inspect TARGET`: shows the connection to a server in the inspector, or prints everything that it offers as JSON. */

import { openInBrowser } from '../../client/browser.ts';
import type { Client } from '../../client/connected-client.ts';
import { messageOf } from '../../core/protocol/json.ts';
import { visibleJson, visibleLine } from '../../core/protocol/visible-text.ts';
import { openInspectorOn } from '../../inspector/open-inspector.ts';
import { readCallTarget } from '../call/call-target.ts';
import { hasTerminal, Interrupt, tolerateClosedStdout, withClient } from '../call/command-client.ts';
import { listServer } from '../call/server-listing.ts';
import type { CommandIo, ExitCode } from '../command-io.ts';
import { readOptions } from '../command-options.ts';
import { noBrowser, print, say, UsageError } from '../usage.ts';

const OPTIONS = { json: '', header: "'NAME: VALUE'…", data: 'DIR', 'no-open': '' };

const HELP = `Usage: troupe inspect TARGET [--json]
       troupe inspect [--json] -- COMMAND [ARGS…]

Connects to an MCP server and opens the inspector, a local web page, on the
connection: its statechart, and each message on the wire. Lists what the server
offers when the page opens, and again whenever you press Enter. Ctrl-C ends it.

With --json, prints everything that the server offers as one JSON document:
server, capabilities, tools, resources, templates and prompts.

TARGET is a URL, FILE, DIR or SOCKET (see troupe call --help). To see the actors
of your own program, use troupe dev FILE instead.

  --json                 print one JSON document, and open nothing
  --header 'NAME: VALUE' send an HTTP header; may be repeated
  --data DIR             directory of the stored tokens
  --no-open              open no browser

Exit codes: as of troupe call.
`;

/** Milliseconds between two looks for the first viewer. */
const LOOK_MS = 100;

/** Runs the command. @throws {UsageError} */
export async function main(args: readonly string[], io: CommandIo): Promise<ExitCode> {
  const line = readOptions('inspect', args, OPTIONS);
  if (!line) return print(io, HELP);
  const { values, lists, positionals, rest } = line;
  const target = readCallTarget('inspect', positionals, rest, lists.header ?? [], io);
  if (target.words.length > 0)
    throw new UsageError(`troupe inspect: expected one TARGET, got ${positionals.join(' ')}`);
  tolerateClosedStdout(io);
  const interrupt = new Interrupt('inspect', io, 'closing');
  return withClient(
    {
      io,
      command: 'inspect',
      target,
      data: values.data,
      open: values['no-open'] === undefined,
      interactive: hasTerminal(io),
      connect: {},
    },
    interrupt,
    async (client) => {
      if (values.json === undefined) return show(client, interrupt, io, values['no-open'] === undefined);
      return print(io, visibleJson(await listServer(client), 2));
    },
  );
}

/** Shows the connection until it is interrupted. @returns the exit code */
async function show(client: Client, interrupt: Interrupt, { clock, stdin }: CommandIo, open: boolean): Promise<number> {
  const { name, version, title } = client.server;
  const { inspection } = client.inside;
  // A chart is that of an actor; a client registers none besides.
  const inspector = await openInspectorOn({
    ...client.inside,
    machines: () => [],
    info: { name, version, ...(title === undefined ? {} : { title }) },
  });
  say(`troupe inspect: inspector at ${inspector.url}`);
  if (open) openInBrowser(new URL(inspector.url), () => say(noBrowser('inspect')));
  const list = (): void => {
    listServer(client, { fresh: true }).catch((error: unknown) =>
      say(`troupe inspect: ${visibleLine(messageOf(error))}`),
    );
  };
  const whenViewed = (): void => {
    // Without a viewer nothing is recorded.
    if (inspection.full) list();
    else clock.after(LOOK_MS, whenViewed);
  };
  whenViewed();
  if (stdin.isTTY === true) stdin.on('data', list);
  const hold = clock.hold();
  interrupt.cancellable = true;
  await new Promise<void>((resolve) => interrupt.signal.addEventListener('abort', () => resolve(), { once: true }));
  hold.cancel();
  await inspector.close();
  return 0;
}

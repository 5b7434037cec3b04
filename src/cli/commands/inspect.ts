/** `troupe inspect TARGET`: shows the connection to a server in the inspector, or prints everything that it offers as JSON. */

import { openInBrowser } from '../../client/browser.ts';
import type { ConnectedClient } from '../../client/connected-client.ts';
import type { Changes } from '../../client/server-changes.ts';
import { VIEWS_EXTENSION } from '../../core/protocol/extensions.ts';
import { isJsonObject, type JsonValue, messageOf } from '../../core/protocol/json.ts';
import { PAGE_TYPE } from '../../core/protocol/views.ts';
import { visibleJson, visibleLine } from '../../core/protocol/visible-text.ts';
import { ViewerQuestions } from '../../inspector/calls/viewer-questions.ts';
import { ClientListing } from '../../inspector/catalogue/client-listing.ts';
import { openInspectorOn } from '../../inspector/open-inspector.ts';
import { readCallTarget } from '../call/call-target.ts';
import { hasTerminal, Interrupt, tolerateClosedStdout, withClient } from '../call/command-client.ts';
import { listServer } from '../call/server-listing.ts';
import type { CommandIo, ExitCode } from '../command-io.ts';
import { readOptions } from '../command-options.ts';
import { noBrowser, print, say, UsageError } from '../usage.ts';

const OPTIONS = { json: '', header: "'NAME: VALUE'…", data: 'DIR', openapi: '', 'base-url': 'URL', 'no-open': '' };

const HELP = `Usage: troupe inspect TARGET [--json]
       troupe inspect [--json] -- COMMAND [ARGS…]

Connects to an MCP server and opens the inspector, a local web page, on it: its
tools, resources and prompts with forms to call them, the questions of the
server, the connection's statechart, and each message on the wire. Lists what
the server offers when the page opens, when the server says that it changed, and
whenever you press Enter. Ctrl-C ends it.

With --json, prints everything that the server offers as one JSON document:
server, capabilities, tools, resources, templates and prompts.

TARGET is a URL, FILE, DIR, SOCKET or DOCUMENT (see troupe call --help). To see the actors
of your own program, use troupe dev FILE instead.

  --json                 print one JSON document, and open nothing
  --header 'NAME: VALUE' send an HTTP header; may be repeated
  --data DIR             FILE or DIR: directory for its durable state; URL:
                         directory of the stored tokens
  --openapi              TARGET is an OpenAPI document, whatever its name is
  --base-url URL         DOCUMENT: the address of the API, in place of its servers
  --no-open              open no browser

Exit codes: as of troupe call.
`;

/** Milliseconds that the page waits for the first lists of the server. */
const LIST_MS = 2_000;
/** Milliseconds between two looks for the first viewer. */
const LOOK_MS = 100;

/** Runs the command. @throws {UsageError} */
export async function main(args: readonly string[], io: CommandIo): Promise<ExitCode> {
  const line = readOptions('inspect', args, OPTIONS);
  if (!line) return print(io, HELP);
  const { values, lists, positionals, rest } = line;
  const target = readCallTarget('inspect', positionals, rest, lists.header ?? [], io, {
    ...{ data: values.data, openapi: values.openapi, baseUrl: values['base-url'] },
  });
  if (target.words.length > 0)
    throw new UsageError(`troupe inspect: expected one TARGET, got ${positionals.join(' ')}`);
  tolerateClosedStdout(io);
  const interrupt = new Interrupt('inspect', io, 'closing');
  const questions = new ViewerQuestions(io.clock);
  const json = values.json !== undefined;
  const open = values['no-open'] === undefined;
  return withClient(
    {
      io,
      command: 'inspect',
      target,
      data: values.data,
      open,
      interactive: hasTerminal(io),
      // Without a page, no person can answer what the server asks.
      connect: json ? {} : { ...questions.answerers(), extensions: { [VIEWS_EXTENSION]: { mimeTypes: [PAGE_TYPE] } } },
    },
    interrupt,
    async (client) => {
      if (!json) return show(client, questions, interrupt, { ...io, open });
      return print(io, visibleJson(await listServer(client), 2));
    },
  );
}

/** Shows the connection and its server until it is interrupted. @returns the exit code */
async function show(
  client: ConnectedClient,
  questions: ViewerQuestions,
  interrupt: Interrupt,
  { clock, stdin, open }: Pick<CommandIo, 'clock' | 'stdin'> & { readonly open: boolean },
): Promise<number> {
  const { inspection } = client.inside;
  const listing = new ClientListing(client);
  const list = (): Promise<void> =>
    listing.refresh().catch((error: unknown) => say(`troupe inspect: ${visibleLine(messageOf(error))}`));
  // The page opens with the lists, unless the server is slow.
  await Promise.race([list(), new Promise<void>((resolve) => void clock.after(LIST_MS, resolve))]);
  const inspector = await openInspectorOn({ client, questions, listing });
  say(`troupe inspect: inspector at ${inspector.url}`);
  if (open) openInBrowser(new URL(inspector.url), () => say(noBrowser('inspect')));
  const whenViewed = (): void => {
    // Without a viewer nothing is recorded.
    if (inspection.full) void list();
    else clock.after(LOOK_MS, whenViewed);
  };
  whenViewed();
  const changes = watched(client);
  if (changes) void follow(changes, list);
  if (stdin.isTTY === true) stdin.on('data', () => void list());
  const hold = clock.hold();
  interrupt.cancellable = true;
  await new Promise<void>((resolve) => interrupt.signal.addEventListener('abort', () => resolve(), { once: true }));
  hold.cancel();
  changes?.end();
  await inspector.close();
  return 0;
}

/** @returns undefined for a server that announces no changes: it is listed when Enter is pressed */
function watched(client: ConnectedClient): Changes | undefined {
  const { tools, resources, prompts } = client.server.capabilities;
  const announces = (capability: JsonValue | undefined): boolean =>
    isJsonObject(capability) && capability.listChanged === true;
  const filter = { tools: announces(tools), resourceList: announces(resources), prompts: announces(prompts) };
  return Object.values(filter).includes(true) ? client.changes(filter) : undefined;
}

/** Lists again after each change of a list. */
async function follow(changes: Changes, list: () => Promise<void>): Promise<void> {
  try {
    for await (const _ of changes) await list();
  } catch (error) {
    say(`troupe inspect: cannot watch the lists: ${visibleLine(messageOf(error))}`);
  }
}

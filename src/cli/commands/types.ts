/** `troupe types TARGET`: writes the types of the tools, prompts and resources of a server, for a typed client. */
import { readFileSync } from 'node:fs';
import { replaceFile } from '../../core/kernel/files/replace-file.ts';
import { readCallTarget } from '../call/call-target.ts';
import { hasTerminal, Interrupt, tolerateClosedStdout, withClient } from '../call/command-client.ts';
import { listServer } from '../call/server-listing.ts';
import { absolutePath, type CommandIo, type ExitCode } from '../command-io.ts';
import { readOptions } from '../command-options.ts';
import { serverTypesText, WRITTEN } from '../types/server-types-file.ts';
import { print, say, UsageError } from '../usage.ts';

const OPTIONS = {
  out: 'FILE',
  check: '',
  name: 'NAME',
  header: "'NAME: VALUE'…",
  data: 'DIR',
  openapi: '',
  'base-url': 'URL',
  'no-open': '',
};

const HELP = `Usage: troupe types TARGET [--out FILE] [--check] [--name NAME]
       troupe types [--out FILE] [--check] [--name NAME] -- COMMAND [ARGS…]

Connects to an MCP server and writes an interface with the types of its tools,
prompts and resources, from their JSON Schemas. A client has them with
connect<import('./shop.types.ts').Shop>('https://shop.example.com/mcp').

TARGET is a URL, FILE, DIR, SOCKET or DOCUMENT (see troupe call --help). For the servers
of a configuration, write -- troupe gateway CONFIG.

  --out FILE             write FILE, such as shop.types.ts; default: stdout
  --check                write nothing; end with code 1 if FILE is stale
  --name NAME            the name of the interface; default: that of the server
  --header 'NAME: VALUE' send an HTTP header; may be repeated
  --data DIR             FILE or DIR: directory for its durable state; URL:
                         directory of the stored tokens
  --openapi              TARGET is an OpenAPI document, whatever its name is
  --base-url URL         DOCUMENT: the address of the API, in place of its servers
  --no-open              show the page to sign in, but open no browser

Exit codes: 0 written, or FILE is up to date; 1 FILE is stale; otherwise as of
troupe call.
`;

/** Runs the command. @throws {UsageError} */
export async function main(args: readonly string[], io: CommandIo): Promise<ExitCode> {
  const line = readOptions('types', args, OPTIONS);
  if (!line) return print(io, HELP);
  const { values, lists, positionals, rest } = line;
  const { out, name } = values;
  const check = values.check !== undefined;
  if (check && out === undefined) throw new UsageError('troupe types: --check needs --out FILE');
  if (name !== undefined && !/^[A-Za-z_$][\w$]*$/.test(name))
    throw new UsageError(`troupe types: --name: expected an identifier such as Shop, got ${name}`);
  const target = readCallTarget('types', positionals, rest, lists.header ?? [], io, {
    ...{ data: values.data, openapi: values.openapi, baseUrl: values['base-url'] },
  });
  if (target.words.length > 0) throw new UsageError(`troupe types: expected one TARGET, got ${positionals.join(' ')}`);
  const file = out === undefined ? undefined : absolutePath(io, out);
  const before = file === undefined ? undefined : readIfThere(file);
  if (before !== undefined && !before.startsWith(WRITTEN))
    throw new UsageError(
      `troupe types: --out: ${out} was not written by troupe types. Remove it, or name another file`,
    );
  tolerateClosedStdout(io);
  const interrupt = new Interrupt('types', io);
  const open = values['no-open'] === undefined;
  return withClient(
    { io, command: 'types', target, data: values.data, open, interactive: hasTerminal(io), connect: {} },
    interrupt,
    async (client) => {
      const text = serverTypesText(await listServer(client), name);
      if (file === undefined) return print(io, text);
      if (before === text) return 0;
      if (check) {
        say(
          `troupe types: ${out} ${before === undefined ? 'does not exist' : 'is stale'}. Run the command without --check`,
          'error',
        );
        return 1;
      }
      replaceFile(file, text, { link: 'follow' });
      return 0;
    },
  );
}

/** @throws the error of a file that exists and cannot be read */
function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}

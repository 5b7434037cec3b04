/** `troupe check [TARGET]`: reports what the directories of MCP servers would reject. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isJsonObject, type JsonObject } from '../../core/protocol/json.ts';
import { writeExact } from '../../core/protocol/json-text.ts';
import { visibleLine } from '../../core/protocol/visible-text.ts';
import { nearest } from '../../features/discovery/node-loader.ts';
import { readCallTarget } from '../call/call-target.ts';
import { hasTerminal, Interrupt, tolerateClosedStdout, withClient } from '../call/command-client.ts';
import { listServer } from '../call/server-listing.ts';
import { onlineFacts } from '../check/online-facts.ts';
import { DIRECTORIES, type Directory, type StoreFinding, storeFindings } from '../check/store-checks.ts';
import { absolutePath, type CommandIo, type ExitCode } from '../command-io.ts';
import { readOptions } from '../command-options.ts';
import { plural } from '../top/format.ts';
import { print, UsageError } from '../usage.ts';

const OPTIONS = { for: 'DIRECTORY…', json: '', online: '', header: "'NAME: VALUE'…", data: 'DIR', 'no-open': '' };

const HELP = `Usage: troupe check TARGET [--for openai|claude|registry]… [--online] [--json]
       troupe check [--for DIRECTORY]… [--online] [--json] -- COMMAND [ARGS…]

Starts or connects to an MCP server, lists what it offers, and reports what the
directories of MCP servers reject: annotations, titles, names, the policies of views,
the capabilities of events, and for FILE or DIR the members of package.json and the
README. Nothing is called.

TARGET is a URL, FILE, DIR or SOCKET (see troupe call --help).

  --for DIRECTORY        openai, claude or registry; may be repeated; default: all
  --online               also ask npm for the version of package.json, and the domain
                         of URL for the challenge of OpenAI
  --json                 print one JSON document
  --header 'NAME: VALUE' send an HTTP header; may be repeated
  --data DIR             FILE or DIR: directory for its durable state; URL:
                         directory of the stored tokens
  --no-open              show the page to sign in, but open no browser

Exit codes: 0 nothing to mend; 1 something that a directory rejects; otherwise as
of troupe call. The rules of the directories change, and their reviewers decide.
`;

/** Runs the command. @throws {UsageError} */
export async function main(args: readonly string[], io: CommandIo): Promise<ExitCode> {
  const line = readOptions('check', args, OPTIONS);
  if (!line) return print(io, HELP);
  const { values, lists, positionals, rest } = line;
  const chosen = (lists.for ?? []).map(directoryOf);
  const target = readCallTarget('check', positionals, rest, lists.header ?? [], io, { data: values.data });
  if (target.words.length > 0) throw new UsageError(`troupe check: expected one TARGET, got ${positionals.join(' ')}`);
  const [first] = positionals;
  const path = first === undefined || target.url ? undefined : absolutePath(io, first);
  tolerateClosedStdout(io);
  const interrupt = new Interrupt('check', io);
  const open = values['no-open'] === undefined;
  return withClient(
    { io, command: 'check', target, data: values.data, open, interactive: hasTerminal(io), connect: {} },
    interrupt,
    async (client) => {
      const manifest = path === undefined ? undefined : nearest('package.json', path);
      const project = manifest === undefined ? undefined : readProject(manifest);
      const readme = manifest === undefined ? undefined : readmeBeside(manifest);
      const { url } = target;
      const online =
        values.online === undefined ? undefined : await onlineFacts(project, url, io.env.npm_config_registry);
      const findings = storeFindings({ listing: await listServer(client), project, readme, url, online }, chosen);
      const errors = findings.filter(({ level }) => level === 'error').length;
      print(io, values.json === undefined ? textOf(findings) : `${writeExact({ errors, findings })}\n`);
      return errors === 0 ? 0 : 1;
    },
  );
}

/** @throws {UsageError} */
function directoryOf(name: string): Directory {
  const found = DIRECTORIES.find((each) => each === name);
  if (found) return found;
  throw new UsageError(`troupe check: --for: expected ${DIRECTORIES.join(', ')}, got ${name}`);
}

/** @throws {UsageError} */
function readProject(file: string): JsonObject | undefined {
  try {
    const read: unknown = JSON.parse(readFileSync(file, 'utf8'));
    return isJsonObject(read) ? read : undefined;
  } catch {
    throw new UsageError(`troupe check: ${file}: expected JSON`);
  }
}

function readmeBeside(manifest: string): string | undefined {
  const file = join(dirname(manifest), 'README.md');
  return existsSync(file) ? readFileSync(file, 'utf8') : undefined;
}

/** One line for each finding. A name may come from a stranger. */
function textOf(findings: readonly StoreFinding[]): string {
  const lines = findings.map(
    ({ level, directory, subject, message }) =>
      `${level}${directory === 'all' ? '' : ` (${directory})`}: ${visibleLine(subject)}: ${visibleLine(message)}`,
  );
  const errors = findings.filter(({ level }) => level === 'error').length;
  return `${[...lines, errors === 0 ? 'nothing that a directory rejects' : `${plural(errors, 'thing')} to mend`].join('\n')}\n`;
}

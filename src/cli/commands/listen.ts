/** `troupe listen TARGET EVENT [KEY=VALUE…]`: prints the events of a server, a line for each, and keeps its place in a file. */
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { ServerEvent } from '../../client/server-events.ts';
import { replaceFile } from '../../core/kernel/files/replace-file.ts';
import { messageOf } from '../../core/protocol/json.ts';
import { suggestion } from '../../core/protocol/near-miss.ts';
import { visibleJson, visibleLine } from '../../core/protocol/visible-text.ts';
import { readWords, toolArguments } from '../call/call-arguments.ts';
import { readCallTarget } from '../call/call-target.ts';
import { EXIT, hasTerminal, Interrupt, tolerateClosedStdout, withClient } from '../call/command-client.ts';
import { absolutePath, type CommandIo, type ExitCode } from '../command-io.ts';
import { readOptions } from '../command-options.ts';
import { print, say, UsageError } from '../usage.ts';

const OPTIONS = {
  json: '',
  since: 'FILE',
  exec: 'COMMAND',
  via: 'stream|poll',
  header: "'NAME: VALUE'…",
  data: 'DIR',
  'no-open': '',
};

const HELP = `Usage: troupe listen TARGET EVENT [KEY=VALUE…]
       troupe listen EVENT [KEY=VALUE…] -- COMMAND [ARGS…]
       troupe listen TARGET

Prints the events of an MCP server as they happen, until Ctrl-C (experimental).
Without EVENT, lists the event types that the server offers.

TARGET is a URL, FILE, DIR or SOCKET (see troupe call --help).
KEY=VALUE is an argument of the subscription, converted by its schema; KEY:=JSON
passes JSON as it is.

  --since FILE           keep the place in FILE: the next run prints what has
                         happened meanwhile
  --json                 print each event as a JSON object on one line
  --exec COMMAND         run COMMAND in a shell for each event, with the event as
                         JSON on its stdin, one at a time. When it fails, the
                         command ends with code 1, and the event comes again
  --via stream|poll      how to receive; default: a stream, or polls where the
                         server has none
  --header 'NAME: VALUE' send an HTTP header; may be repeated
  --data DIR             FILE or DIR: directory for its durable state; URL:
                         directory of the stored tokens
  --no-open              show the page to sign in, but open no browser

An event may come twice, with the same id: after a crash of this command, or of
the server. A line "gap" means that events in front of it may be missing.

Exit codes: 0 the server has ended; 1 COMMAND has failed, or the server reports
an error; otherwise as of troupe call.
`;

/** Runs the command. @throws {UsageError} */
export async function main(args: readonly string[], io: CommandIo): Promise<ExitCode> {
  const line = readOptions('listen', args, OPTIONS);
  if (!line) return print(io, HELP);
  const { values, lists, positionals, rest } = line;
  const { via, exec } = values;
  if (via !== undefined && via !== 'stream' && via !== 'poll')
    throw new UsageError(`troupe listen: --via: expected stream or poll, got ${via}`);
  const target = readCallTarget('listen', positionals, rest, lists.header ?? [], io, { data: values.data });
  const [name, ...words] = target.words;
  if (name === undefined && (values.since !== undefined || exec !== undefined))
    throw new UsageError('troupe listen: --since and --exec need EVENT');
  const file = values.since === undefined ? undefined : absolutePath(io, values.since);
  const since = file === undefined ? undefined : readCursor(file);
  const given = readWords(`troupe listen: ${name}`, words);
  const json = values.json !== undefined;
  tolerateClosedStdout(io);
  const interrupt = new Interrupt('listen', io, 'ending');
  const open = values['no-open'] === undefined;
  return withClient(
    { io, command: 'listen', target, data: values.data, open, interactive: hasTerminal(io), connect: {} },
    interrupt,
    async (client) => {
      const types = await client.eventTypes();
      if (name === undefined)
        return print(
          io,
          json
            ? visibleJson(types, 2)
            : types.map((type) => `${visibleLine(type.name)}  ${visibleLine(type.description)}\n`).join(''),
        );
      const type = types.find((each) => each.name === name);
      if (!type) {
        const names = types.map((each) => visibleLine(each.name));
        const known = names.length === 0 ? '. The server has no events' : `. It has ${names.join(', ')}`;
        throw new UsageError(`troupe listen: unknown event ${name}${suggestion(name, names) || known}`);
      }
      const events = client.events(name, toolArguments(type, given, {}, `troupe listen: ${name}`, 'event'), {
        ...{ since, via: via ?? 'auto' },
      });
      interrupt.cancellable = true;
      interrupt.signal.addEventListener('abort', () => void events.return(), { once: true });
      try {
        for await (const event of events) {
          if (event.gap) say('gap: events in front of this point may be missing');
          else {
            io.stdout.write(json ? visibleJson({ ...event }) : lineOf(event));
            if (exec !== undefined) await run(exec, event, io);
          }
          if (file !== undefined && event.cursor !== undefined) replaceFile(file, `${event.cursor}\n`, { mode: 0o600 });
        }
      } catch (error) {
        say(`troupe listen: ${visibleLine(messageOf(error))}`, 'error');
        return EXIT.failed;
      }
      return interrupt.signal.aborted ? EXIT.interrupted : 0;
    },
  );
}

function lineOf({ timestamp, name, id, data }: ServerEvent): string {
  return `${visibleLine(timestamp)} ${visibleLine(name)} ${visibleLine(id)} ${visibleJson(data)}`;
}

/** @returns undefined if the file does not exist. @throws {UsageError} */
function readCursor(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8').trim() || undefined;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw new UsageError(`troupe listen: --since: ${messageOf(error)}`);
  }
}

/** Runs a command for an event. @throws {Error} if it fails */
function run(command: string, event: ServerEvent, { env, cwd, stdout, stderr }: CommandIo): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, { shell: true, cwd, env, stdio: ['pipe', 'pipe', 'pipe'] });
    child.stdout.on('data', (text: Buffer) => stdout.write(text));
    child.stderr.on('data', (text: Buffer) => stderr.write(text));
    child.on('error', reject);
    child.on('close', (code, signal) => {
      if (code === 0) resolve();
      else reject(new Error(`--exec failed with ${signal ?? `code ${code}`} for the event ${event.id}`));
    });
    // It need not read its input.
    child.stdin.on('error', () => {});
    child.stdin.end(`${JSON.stringify(event)}\n`);
  });
}

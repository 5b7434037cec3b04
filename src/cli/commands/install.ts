/** `troupe install FILE` and `troupe uninstall FILE`: adds a server to the configuration of MCP clients, and removes it. */
import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline/promises';
import { ClientError } from '../../client/client-errors.ts';
import { connect } from '../../client/open-client.ts';
import { messageOf } from '../../core/protocol/json.ts';
import { suggestion } from '../../core/protocol/near-miss.ts';
import { visibleLine, visibleText } from '../../core/protocol/visible-text.ts';
import { absolutePath, type CommandIo, type ExitCode } from '../command-io.ts';
import { type CommandLine, readOptions } from '../command-options.ts';
import { isVariable, variablesOf } from '../serving/env-file.ts';
import { readTarget } from '../serving/target.ts';
import {
  applyChange,
  CLIENTS,
  type ConfiguredClient,
  entryName,
  entryText,
  MCP_SERVERS,
  prepareChange,
  type ServerEntry,
} from '../setup/client-config.ts';
import { entryFor } from '../setup/connect-lines.ts';
import { plainName } from '../setup/plain-name.ts';
import { print, say, UsageError } from '../usage.ts';

const OPTIONS = { client: 'NAME', name: 'NAME', print: '', yes: '' };
const INSTALL_OPTIONS = { ...OPTIONS, env: 'KEY=VALUE…', 'env-file': 'FILE', dev: '' };

/** Milliseconds in which the server must start to say its name. */
const START_MS = 10_000;

type Command = 'install' | 'uninstall';

const help = (
  command: Command,
): string => `Usage: troupe ${command} [FILE|DIR] [--client NAME] [--name NAME] [--print] [--yes] [-- ARGS]

${command === 'install' ? 'Adds the server to the configuration of MCP clients.' : 'Removes the server from the configuration of MCP clients.'}
Asks before it changes a file, and keeps the file as it was beside it.

  --client NAME    ${CLIENTS.map(({ id }) => id)
    .join(', ')
    .replace(/(.{40,56},) /g, '$1\n                   ')};
                   default: every client whose file exists
  --name NAME      name of the entry; default: the name of the server, which is
                   started once to learn it
${command === 'install' ? INSTALL_HELP : ''}  --print          print the entry, change nothing
  --yes            do not ask

ARGS are passed to FILE as process.argv.slice(2).
`;

const INSTALL_HELP = `  --env KEY=VALUE  a variable that the client sets for the server; may be repeated
  --env-file FILE  the variables of a file with lines such as KEY=VALUE. A file
                   .env beside FILE needs no option: the server reads it itself
  --dev            run the server with troupe dev: it reloads on save, and has
                   the inspector
`;

/** Runs `troupe install`. @throws {UsageError} */
export function main(args: readonly string[], io: CommandIo): Promise<ExitCode> {
  return change('install', args, io);
}

/** Runs either command. @throws {UsageError} for wrong arguments; an Error for a file that cannot be read */
export async function change(command: Command, args: readonly string[], io: CommandIo): Promise<ExitCode> {
  const line = readOptions(command, args, command === 'install' ? INSTALL_OPTIONS : OPTIONS);
  const target = line && readTarget(command, [...line.positionals, '--', ...line.rest], io);
  if (!line || !target) return print(io, help(command));
  const { client, print: printed, yes, dev } = line.values;
  const chosen = clientsOf(command, client, io);
  const env = variablesFor(line, io);
  const entry = entryFor(target.path, line.rest, dev === undefined ? 'run' : 'dev', env);
  const name = line.values.name ?? (await serverName(command, target.path, line.rest, env)) ?? entryName(target.path);
  // The name is shown when a person is asked, and by each client. A package of another author may supply it.
  if (name.trim() === '' || visibleLine(name) !== name)
    throw new UsageError(
      `troupe ${command}: --name: expected a name without invisible characters, got ${JSON.stringify(visibleLine(name))}`,
    );
  if (printed !== undefined) return printEntries(chosen, name, entry, io);
  let changes = 0;
  let failures = 0;
  for (const each of chosen) {
    try {
      const prepared = await prepareChange(each, name, command === 'install' ? entry : undefined, io);
      if (!prepared) continue;
      changes += 1;
      const verb = command === 'uninstall' ? 'Remove' : prepared.replaces ? 'Replace' : 'Add';
      const question = `${verb} "${name}" ${command === 'uninstall' ? 'from' : 'in'} ${prepared.file} (${each.title})?`;
      if (yes === undefined && !(await agrees(command, question, io))) {
        print(io, 'Nothing was changed.\n');
        continue;
      }
      const backup = applyChange(prepared);
      const done = command === 'uninstall' ? 'removed' : prepared.replaces ? 'replaced' : 'added';
      const kept = backup === undefined ? '' : ` The file as it was: ${backup}`;
      const next = command === 'install' ? each.next : `Restart ${each.title.replace(/,.*/, '')}`;
      print(io, `${prepared.file}: ${done} "${name}".${kept}\n${next}.\n`);
      if (each.shared && Object.keys(env).length > 0)
        print(io, `${prepared.file} has the values of ${Object.keys(env).join(', ')} now: do not commit secrets.\n`);
    } catch (error) {
      if (error instanceof UsageError) throw error;
      // The file of one client must not keep the others from the server.
      failures += 1;
      say(`troupe ${command}: ${messageOf(error)}`, 'error');
    }
  }
  if (failures > 0) return 1;
  if (changes > 0) return 0;
  if (command === 'uninstall') return print(io, `No client has an entry "${name}".\n`);
  print(io, `No configuration of a known client was found. Choose one with --client, or add the entry by hand:\n\n`);
  return printEntries(chosen, name, entry, io);
}

function clientsOf(command: string, wanted: string | undefined, io: CommandIo): readonly ConfiguredClient[] {
  if (wanted === undefined) return CLIENTS.filter((each) => existsSync(each.file(io) ?? ''));
  const ids = CLIENTS.map(({ id }) => id);
  const found = CLIENTS.filter(({ id }) => id === wanted);
  if (found.length === 0)
    throw new UsageError(
      `troupe ${command}: --client: expected ${ids.join(', ')}, got ${wanted}${suggestion(wanted, ids)}`,
    );
  return found;
}

/** Prints each form of the entry once. */
function printEntries(clients: readonly ConfiguredClient[], name: string, entry: ServerEntry, io: CommandIo): number {
  const forms = clients.length === 0 ? [MCP_SERVERS] : clients.map(({ form }) => form);
  const texts = new Set(forms.map((form) => `${entryText({ form }, name, entry)}\n`));
  return print(io, [...texts].join(''));
}

/** The variables of `--env-file` and `--env`, which wins. @throws {UsageError} */
function variablesFor({ values, lists }: CommandLine, io: CommandIo): Readonly<Record<string, string>> {
  const { 'env-file': file } = values;
  const { variables = {}, wrong = [] } =
    file === undefined ? {} : variablesOf('troupe install: --env-file', absolutePath(io, file));
  if (wrong.length > 0)
    say(
      `troupe install: --env-file: left out ${wrong.map((name) => JSON.stringify(visibleLine(name))).join(', ')}: no variables`,
    );
  const env: Record<string, string> = { ...variables };
  for (const given of lists.env ?? []) {
    const at = given.indexOf('=');
    const name = given.slice(0, Math.max(at, 0));
    if (!isVariable(name))
      throw new UsageError(
        // The text may be a secret.
        `troupe install: --env: expected KEY=VALUE, such as API_KEY=abc, got ${at < 0 ? 'no =' : `the KEY ${JSON.stringify(visibleLine(name))}`}`,
      );
    env[name] = given.slice(at + 1);
  }
  return env;
}

/** Starts the server as a client does, and asks for its name. @returns undefined, with a line on stderr, if it does not start */
async function serverName(
  command: Command,
  program: string,
  rest: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<string | undefined> {
  const { args } = entryFor(program, rest);
  // One process suffices: it serves one request.
  const alone = args.toSpliced(args.indexOf(program) + 1, 0, '--no-supervisor');
  try {
    const client = await connect(
      { command: process.execPath, args: [...process.execArgv, ...alone], env, name: program },
      { name: 'troupe', title: `troupe ${command}`, connectMs: START_MS, probeMs: START_MS, eras: 'modern' },
    );
    const name = plainName(client.server.name.replace(/^@[^/]*\//, ''));
    await client.close();
    // Such a name comes from the file: that of its folder says more.
    return ['server', 'index'].includes(name) ? undefined : name;
  } catch (error) {
    if (!(error instanceof ClientError)) throw error;
    if (command === 'install')
      say(
        `troupe install: the server does not start yet, so its name is unknown (--name NAME): ${visibleText(error.message)}`,
      );
    return undefined;
  }
}

/** @throws {UsageError} if no person can be asked */
async function agrees(command: string, question: string, { stdin, stdout }: CommandIo): Promise<boolean> {
  if (!stdin.isTTY)
    throw new UsageError(`troupe ${command}: stdin is no terminal, so no person can be asked: pass --yes, or --print`);
  const terminal = createInterface({ input: stdin, output: stdout });
  try {
    const answer = await terminal.question(`${question} [y/N] `);
    return /^y(es)?$/i.test(answer.trim());
  } finally {
    terminal.close();
  }
}

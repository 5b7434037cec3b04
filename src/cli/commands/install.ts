/** `troupe install FILE` and `troupe uninstall FILE`: adds a server to the configuration of MCP clients, and removes it. */
import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline/promises';
import { suggestion } from '../../core/protocol/near-miss.ts';
import { visibleLine } from '../../core/protocol/visible-text.ts';
import type { CommandIo, ExitCode } from '../command-io.ts';
import { readOptions } from '../command-options.ts';
import { readTarget } from '../serving/target.ts';
import {
  applyChange,
  CLIENTS,
  type ConfiguredClient,
  entryName,
  entryText,
  prepareChange,
  type ServerEntry,
} from '../setup/client-config.ts';
import { entryFor } from '../setup/connect-lines.ts';
import { print, UsageError } from '../usage.ts';

const OPTIONS = { client: 'NAME', name: 'NAME', print: '', yes: '' };

const help = (
  command: string,
  what: string,
): string => `Usage: troupe ${command} FILE|DIR [--client NAME] [--name NAME] [--print] [--yes] [-- ARGS]

${what}
Asks before it changes a file, and keeps the file as it was beside it.

  --client NAME    ${CLIENTS.map(({ id }) => id).join(', ')};
                   default: every client whose file exists
  --name NAME      name of the entry; default: the name of the package
  --print          print the entry, change nothing
  --yes            do not ask

ARGS are passed to FILE as process.argv.slice(2).
`;

/** Runs `troupe install`. @throws {UsageError} */
export function main(args: readonly string[], io: CommandIo): Promise<ExitCode> {
  return change('install', args, io);
}

/** Runs either command. @throws {UsageError} for wrong arguments; an Error for a file that cannot be read */
export async function change(
  command: 'install' | 'uninstall',
  args: readonly string[],
  io: CommandIo,
): Promise<ExitCode> {
  const line = readOptions(command, args, OPTIONS);
  const target = line && readTarget(command, [...line.positionals, '--', ...line.rest], io);
  if (!line || !target)
    return print(
      io,
      help(
        command,
        command === 'install'
          ? 'Adds the server to the configuration of MCP clients.'
          : 'Removes the server from the configuration of MCP clients.',
      ),
    );
  const { client, name = entryName(target.path), print: printed, yes } = line.values;
  // The name is shown when a person is asked, and by each client. A package of another author may supply it.
  if (name.trim() === '' || visibleLine(name) !== name)
    throw new UsageError(
      `troupe ${command}: --name: expected a name without invisible characters, got ${JSON.stringify(visibleLine(name))}`,
    );
  const entry = entryFor(target.path, line.rest);
  const chosen = clientsOf(command, client, io);
  if (printed !== undefined) return printEntries(chosen, name, entry, io);
  let changes = 0;
  for (const each of chosen) {
    const prepared = prepareChange(each, name, command === 'install' ? entry : undefined, io);
    if (!prepared) continue;
    changes += 1;
    const verb = command === 'uninstall' ? 'Remove' : prepared.before ? 'Replace' : 'Add';
    const question = `${verb} "${name}" ${command === 'uninstall' ? 'from' : 'in'} ${prepared.file} (${each.title})?`;
    if (yes === undefined && !(await agrees(command, question, io))) {
      print(io, 'Nothing was changed.\n');
      continue;
    }
    const backup = applyChange(prepared);
    print(
      io,
      `${prepared.file}: ${command === 'uninstall' ? 'removed' : prepared.before ? 'replaced' : 'added'} "${name}".${backup === undefined ? '' : ` The file as it was: ${backup}`}\n${command === 'install' ? each.next : `Restart ${each.title.replace(/,.*/, '')}`}.\n`,
    );
  }
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

function printEntries(clients: readonly ConfiguredClient[], name: string, entry: ServerEntry, io: CommandIo): number {
  const members = new Set(clients.map(({ member }) => member));
  if (members.size === 0) members.add('mcpServers');
  return print(io, [...members].map((member) => `${entryText({ member }, name, entry)}\n`).join(''));
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

/** The command of an entry for MCP clients: for the terminal of `troupe run`, and for the page of the inspector. */
import { realpathSync } from 'node:fs';
import { commandFile } from '../../core/kernel/package-files.ts';
import type { ConnectHelp } from '../../inspector/frames.ts';
import { processIo } from '../command-io.ts';
import { CLIENTS, entryName, entryText, MCP_SERVERS, type ServerEntry } from './client-config.ts';
import { nodeCommand } from './node-command.ts';

/** The entry that runs a program with this copy of Troupe. @param command of Troupe @param env variables that the client sets */
export function entryFor(
  program: string,
  rest: readonly string[] = [],
  command: 'run' | 'dev' = 'run',
  env: Readonly<Record<string, string>> = {},
): ServerEntry {
  const main = realpathSync(commandFile());
  const args = [main, command, program, ...(rest.length > 0 ? ['--', ...rest] : [])];
  return { command: nodeCommand(), args, ...(Object.keys(env).length > 0 && { env }) };
}

/** Tells a person who started a stdio server in a terminal how a client is connected. */
export function connectLines(program: string, rest: readonly string[]): string {
  const name = entryName(program);
  const entry = entryText({ form: MCP_SERVERS }, name, entryFor(program, rest));
  return `troupe run: serving MCP on stdin and stdout, for one client. Give a client this entry:

${entry}

\`npx troupe install ${program}\` writes it. To try the server, use \`npx troupe dev\`. Ctrl-C ends.
`;
}

/** Instructions for connecting each known client to a stdio server, for the page of the inspector. */
export function connectHelp(program: string, rest: readonly string[]): ConnectHelp {
  const entry = entryFor(program, rest);
  const name = entryName(program);
  const place = processIo();
  return {
    note: `The client starts the server itself, in another process. \`npx troupe install ${program}\` writes the entry. To inspect that process, replace "run" by "dev" in the entry.`,
    ways: CLIENTS.flatMap((client) => {
      const file = client.file(place);
      const { title, next } = client;
      return file === undefined ? [] : [{ client: title, text: entryText(client, name, entry), file, next }];
    }),
  };
}

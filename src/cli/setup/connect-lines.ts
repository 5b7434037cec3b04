/** The command of an entry for MCP clients, and the lines that `troupe run` prints in a terminal. */
import { realpathSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { ownFile } from '../../package-files.ts';
import { entryName, entryText, type ServerEntry } from './client-config.ts';

/** The entry that runs a program with this copy of Troupe. */
export function entryFor(program: string, rest: readonly string[] = []): ServerEntry {
  const main = realpathSync(fileURLToPath(ownFile('cli/main')));
  return { command: 'node', args: [main, 'run', program, ...(rest.length > 0 ? ['--', ...rest] : [])] };
}

/** Tells a person who started a stdio server in a terminal how a client is connected. */
export function connectLines(program: string, rest: readonly string[]): string {
  const name = entryName(program);
  const entry = entryText({ member: 'mcpServers' }, name, entryFor(program, rest));
  return `troupe run: serving MCP on stdin and stdout, for one client. Give a client this entry:

${entry}

\`troupe install ${program}\` writes it. To try the server, use \`troupe dev\`. Ctrl-C ends.
`;
}

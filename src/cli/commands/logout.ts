/** `troupe logout URL`: removes the stored grant of a server, and revokes it. */
import { fileTokens } from '../../client/oauth/file-tokens.ts';
import { signOut } from '../../client/oauth/resource-grant.ts';
import { visibleLine } from '../../core/protocol/visible-text.ts';
import { nameOfAddress } from '../call/call-target.ts';
import { tokenFile } from '../call/state-directory.ts';
import type { CommandIo, ExitCode } from '../command-io.ts';
import { readOptions } from '../command-options.ts';
import { print, say, UsageError } from '../usage.ts';

const HELP = `Usage: troupe logout URL [--data DIR]

Removes the stored grant of a server, and revokes it where its authorization
server can.

  --data DIR             directory of the stored tokens
`;

/** Runs the command. @throws {UsageError} */
export async function main(args: readonly string[], io: CommandIo): Promise<ExitCode> {
  const line = readOptions('logout', args, { data: 'DIR' });
  if (!line) return print(io, HELP);
  const { values, positionals } = line;
  const [url, ...more] = positionals;
  if (url === undefined || more.length > 0 || !/^https?:\/\//i.test(url) || !URL.canParse(url))
    throw new UsageError(`troupe logout: expected one URL, got ${positionals.join(' ') || 'none'}`);
  const { signedIn, revoked } = await signOut(url, { tokens: fileTokens(tokenFile(values.data, io)) });
  const name = nameOfAddress(new URL(url));
  if (!signedIn) return print(io, `Not signed in to ${name}.\n`);
  print(io, `Signed out of ${name}.\n`);
  if (revoked === true) return 0;
  const why = revoked === false ? 'its authorization server offers no revocation' : visibleLine(revoked);
  say(`troupe logout: the grant is removed here and not revoked there: ${why}. It ends by itself when it expires`);
  return 0;
}

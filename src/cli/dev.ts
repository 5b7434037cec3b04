/** `troupe dev FILE|DIR`: serves a program as `troupe run` does, and loads it again when one of its modules changes. */

import { reserveStdout } from '../transports/stdout-guard.ts';
import { dataOf } from './data.ts';
import { Development } from './development.ts';
import { readOptions } from './options.ts';
import { readTarget } from './target.ts';
import { TARGETS } from './usage.ts';

const HELP = `Usage: troupe dev FILE|DIR [--data DIR] [-- ARGS]

Serves as troupe run does, and loads everything again when a module changes. Connected clients stay connected, and are
told which lists changed. A load that fails says why on stderr; until it is mended the version before is served.
The name, version, instructions and limits of a server are those of the first load.

  --data DIR   keep what must survive this process in DIR

${TARGETS}
`;

/** Runs the command. @throws {UsageError} */
export async function main(args: readonly string[]): Promise<void> {
  const line = readOptions('dev', args, { data: 'DIR' });
  const target = line && readTarget('dev', [...line.positionals, '--', ...line.rest]);
  if (!target) return void process.stdout.write(HELP);
  reserveStdout();
  await new Development(target, await dataOf('dev', line.values.data)).load();
}

/** The options `--inspect` and `--record` of the commands that serve: read here, without what they need. */
import { resolve } from 'node:path';
import type { CommandLine } from '../command-options.ts';
import { UsageError } from '../usage.ts';

/** The options of all commands that serve. */
export const INSPECTING = { inspect: '', 'inspect-control': '', record: 'FILE' };

/** What they are, for the help of those. */
export const INSPECTING_HELP = `  --inspect          open the inspector: a page on this machine that shows what happens in the server, at an address that is
                     said on stderr; --inspect-control lets it also send events, call tools, and close sessions
  --record FILE      write what happens down in FILE, which the inspector's page opens`;

/** What is asked for. */
export interface Inspecting {
  readonly inspect: boolean;
  readonly control: boolean;
  readonly open: boolean;
  readonly record?: string | undefined;
}

/** @param always whether it is open unless `--no-inspect` says otherwise @throws {UsageError} */
export function readInspecting(command: string, { values }: CommandLine, always = false): Inspecting {
  const { inspect, 'no-inspect': not, 'inspect-control': control, open, record } = values;
  const wanted = not === undefined && (always || inspect !== undefined || control !== undefined || open !== undefined);
  if (not !== undefined && (inspect ?? control ?? open) !== undefined)
    throw new UsageError(`troupe ${command}: expected --no-inspect, or the options of the inspector, got both`);
  return {
    inspect: wanted,
    control: control !== undefined,
    open: open !== undefined,
    record: record === undefined ? undefined : resolve(record),
  };
}

/** Parses `--inspect` and `--record`. It does not load the inspector. */
import { resolve } from 'node:path';
import type { CommandLine } from '../command-options.ts';
import { UsageError } from '../usage.ts';

/** The inspection options of run, dev and serve. */
export const INSPECTING = { inspect: '', 'inspect-control': '', record: 'FILE' };

/** Their part of the help of run and serve. */
export const INSPECTING_HELP = `  --inspect              open the inspector, a local web page that shows the
                         activity of the server; its URL is printed on stderr
  --inspect-control      the same, and let the page send events, call tools and
                         close sessions
  --record FILE          record the activity in FILE, for the inspector's page`;

/** The parsed options. */
export interface Inspecting {
  readonly inspect: boolean;
  readonly control: boolean;
  readonly open: boolean;
  readonly record?: string | undefined;
}

/**
 * @param always a command for developers: opens the inspector unless `--no-inspect` is given, with control unless
 *   `--no-inspect-control` is given (ADR 67)
 * @throws {UsageError}
 */
export function readInspecting(command: string, { values }: CommandLine, always = false): Inspecting {
  const { inspect, 'no-inspect': not, 'inspect-control': control, 'no-inspect-control': look, open, record } = values;
  const wanted = not === undefined && (always || inspect !== undefined || control !== undefined || open !== undefined);
  if (not !== undefined && (inspect ?? control ?? open) !== undefined)
    throw new UsageError(
      `troupe ${command}: expected --no-inspect or an option of the inspector (--inspect, --inspect-control, --open), got both`,
    );
  if (look !== undefined && control !== undefined)
    throw new UsageError(`troupe ${command}: expected --inspect-control or --no-inspect-control, got both`);
  return {
    inspect: wanted,
    control: control !== undefined || (always && look === undefined),
    open: open !== undefined,
    record: record === undefined ? undefined : resolve(record),
  };
}

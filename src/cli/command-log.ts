/** `--log FORMAT`: the format of the lines on stderr, those of the command and those of servers without a log of their own. */
import { processWide } from '../global-registry.ts';
import { jsonLog } from '../json-log.ts';
import type { OperatorLog } from '../operator-log.ts';

/** The option of run, dev and serve. */
export const LOG_OPTION = { log: 'FORMAT' } as const;

/** Its part of the help of these commands. */
export const LOG_HELP = `  --log FORMAT           format of the log on stderr: text (default), or json, one
                         object on each line, as pino writes it`;

/** The log of the command; undefined for lines of text. The command's modules are in several bundles, which share it. */
const current = processWide('troupe.command.log', (): { log?: OperatorLog } => ({}));

export function commandLog(): OperatorLog | undefined {
  return current.log;
}

/** Writes lines of JSON from now on. */
export function logAsJson(): void {
  current.log = jsonLog();
}

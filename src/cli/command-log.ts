/** `--log FORMAT`: the format of the lines on stderr, those of the command and those of servers without a log of their own. */
import type { Writable } from 'node:stream';
import { processWide } from '../core/kernel/global-registry.ts';
import type { OperatorLog } from '../core/kernel/operator-log.ts';
import { jsonLog } from '../core/server/json-log.ts';

/** The option of run, dev and serve. */
export const LOG_OPTION = { log: 'FORMAT' } as const;

/** Its part of the help of these commands. */
export const LOG_HELP = `  --log FORMAT           format of the log on stderr: text (default), or json, one
                         object on each line, as pino writes it`;

interface CommandLog {
  /** Undefined for lines of text. */
  log?: OperatorLog | undefined;
  /** The stderr of the command; undefined for that of the process. */
  stderr?: Writable;
}

/** The log of the command that runs. The command's modules are in several bundles, which share it. */
const current = processWide('troupe.command.log', (): CommandLog => ({}));

/** The log of `--log json`; undefined for lines of text. */
export function commandLog(): OperatorLog | undefined {
  return current.log;
}

export function standardError(): Writable {
  return current.stderr ?? process.stderr;
}

/** Writes lines of text on the stderr of a command from now on. */
export function logTo(stderr: Writable): void {
  current.stderr = stderr;
  current.log = undefined;
}

/** Writes lines of JSON from now on. */
export function logAsJson(): void {
  current.log = jsonLog((line) => void standardError().write(line));
}

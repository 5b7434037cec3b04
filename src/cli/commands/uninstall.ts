/** `troupe uninstall FILE`: removes a server from the configuration of MCP clients. */
import type { CommandIo, ExitCode } from '../command-io.ts';
import { change } from './install.ts';

/** Runs the command. @throws {UsageError} */
export function main(args: readonly string[], io: CommandIo): Promise<ExitCode> {
  return change('uninstall', args, io);
}

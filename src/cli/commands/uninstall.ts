/** `troupe uninstall FILE`: removes a server from the configuration of MCP clients. */
import { change } from './install.ts';

/** Runs the command. @throws {UsageError} */
export function main(args: readonly string[]): Promise<void> {
  return change('uninstall', args);
}

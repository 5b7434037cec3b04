/** The transports of a program that `troupe run` or `troupe dev` serves on stdio. */
import { type StdioOptions, stdio } from '../../core/transports/stdio.ts';
import type { Transport } from '../../core/transports/transport.ts';

/**
 * The transports on which a program is served: its own, or stdio.
 *
 * @param local the options of stdio, such as its caller, in the place of those of the program
 */
export function servedOn(own: readonly Transport[], local: StdioOptions | undefined): readonly Transport[] {
  if (own.length === 0) return [stdio(local)];
  return local ? own.map((transport) => (transport.name === 'stdio' ? stdio(local) : transport)) : own;
}

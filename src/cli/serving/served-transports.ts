/** The transports of a program that `troupe run` or `troupe dev` serves on stdio. */
import { stdio } from '../../core/transports/stdio.ts';
import type { Transport } from '../../core/transports/transport.ts';
import type { LocalCaller } from './caller-option.ts';

/**
 * The transports on which a program is served: its own, or stdio.
 *
 * @param caller takes the place of the one that the program's stdio transport names
 */
export function servedOn(own: readonly Transport[], caller: LocalCaller | undefined): readonly Transport[] {
  if (own.length === 0) return [stdio(caller)];
  return caller ? own.map((transport) => (transport.name === 'stdio' ? stdio(caller) : transport)) : own;
}

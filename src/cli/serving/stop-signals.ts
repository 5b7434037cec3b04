/** Drains a server at a stop signal, in a process without a stdio transport: that transport would hear the signal itself. */

import type { StopSignal } from '../../core/transports/signals.ts';
import type { Server } from '../../features/server/server.ts';
import { type CommandIo, stopped } from '../command-io.ts';

/** Milliseconds that the author's own code may take to finish after its server is closed. */
const LINGER_MS = 250;

/** Drains the server at the first signal, and ends the process. @param hear is called before the server closes */
export function drainOnSignal(
  io: CommandIo,
  server: Pick<Server, 'close'>,
  hear: (signal: StopSignal) => void = () => {},
): void {
  void stopped(io).then((signal) => {
    hear(signal);
    endDrained(io, server, signal);
  });
}

/** Closes the server, which answers what is in flight, and ends the process with code 0. */
export function endDrained({ clock, exit }: CommandIo, server: Pick<Server, 'close'>, reason: string): void {
  // A timer or a socket that a tool left behind must not keep the process.
  void server.close(reason).then(() => clock.after(LINGER_MS, () => exit()));
}

/** A server with schedules whose time passes when the test says so, and its next process on the same store. */
import type { Store } from '../../../src/core/store/store.ts';
import { memory, type Server, type ServerOptions } from '../../../src/index.ts';
import { SimulatedClock } from '../../../src/testing/testing.ts';
import { timedServer } from '../../harness/memory.ts';

export interface Serving {
  readonly server: Server;
  readonly clock: SimulatedClock;
  readonly logged: readonly string[];
}

/** A server that listens. @param program registers its schedules */
export async function serving(
  program: (server: Server) => void,
  {
    store,
    clock = new SimulatedClock(),
    ...options
  }: Partial<ServerOptions> & { store?: Store; clock?: SimulatedClock },
): Promise<Serving> {
  const timed = timedServer({ ...options, ...(store && { store }) }, clock);
  program(timed.server);
  await timed.server.listen(memory().transport);
  await clock.advance(0);
  return timed;
}

/** The clock of a process that starts later: the simulated date begins at 2026-01-01T00:00:00Z. */
export function later({ clock }: Pick<Serving, 'clock'>, ms: number): SimulatedClock {
  return new SimulatedClock(clock.now() + ms);
}

/** The door for those who look into a server, and may act on it: the inspector. No part of what authors use. */
import type { Clock } from '../clock.ts';
import type { Inspection } from '../inspection/inspection.ts';
import type { OperatorLog } from '../operator-log.ts';
import type { Transport } from '../transports/transport.ts';

/** By which a server of any copy of this package gives it. */
export const INTERNALS = Symbol.for('troupe.inside');

export interface Internals {
  readonly inspection: Inspection;
  readonly clock: Clock;
  readonly log: OperatorLog;
  /** The statecharts that are offered now. */
  machines(): readonly object[];
  /** Opens a transport, also where what loaded the program serves on its behalf. @throws what its `open` throws */
  open(transport: Transport): Promise<void>;
}

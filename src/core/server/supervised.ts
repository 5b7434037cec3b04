/** The supervision state of a server, as its operator sees it. Types only, as in `handles/registered-machines.ts`. */

import type { Poisoned } from '../../features/workers/poison-calls.ts';
import type { Quarantined } from '../kernel/quarantine.ts';

/** The supervision state of a server, for its operator. */
export interface Supervised {
  /** Quarantined actors: they crashed too often and reject every message. */
  readonly quarantined: readonly Quarantined[];
  /** Rejected calls and events: they ended the process twice. */
  readonly refused: readonly Poisoned[];
}

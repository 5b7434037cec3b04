/** The supervision state of a server, as its operator sees it. Types only, as in `handles/registered-machines.ts`. */

import type { Quarantined } from '../../core/kernel/quarantine.ts';
import type { Poisoned } from './poison-calls.ts';

/** The supervision state of a server, for its operator. */
export interface Supervised {
  /** Quarantined actors: they crashed too often and reject every message. */
  readonly quarantined: readonly Quarantined[];
  /** Rejected calls and events: they ended the process twice. */
  readonly refused: readonly Poisoned[];
}

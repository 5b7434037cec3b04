/** The capabilities of the server, as other parts read them. Types only. */
import type { ServerCapabilities } from '../protocol/types.ts';
import type { ServerDescription } from './results.ts';

export interface Capabilities {
  /** Describes the server to a client that connects. */
  describe(): ServerDescription;
  offers(capability: keyof ServerCapabilities): boolean;
}

/** The capabilities of the server, as other parts read them. Types only. */
import type { ServerCapabilities } from '../protocol/types.ts';
import type { ServerDescription } from './results.ts';

export interface Capabilities {
  /** Describes the server to a client that connects. */
  describe(): ServerDescription;
  /** The capabilities that the server offers now. A request reads them, so that they are put together when one is added. */
  readonly offered: ServerCapabilities;
  /** True if something that the server offers uses this extension (SEP-2133). */
  uses(extension: string): boolean;
}

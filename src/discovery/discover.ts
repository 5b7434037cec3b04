/** stub */

import type { OperatorLog } from '../options.ts';
import type { Server } from '../server.ts';
export interface DiscoverOptions {
  readonly from?: string;
}
export interface Discovered {
  readonly loaded: readonly string[];
  readonly failed: readonly { readonly path: string; readonly reason: string }[];
}
export async function discover(
  _server: Server,
  _paths: readonly string[],
  _log: OperatorLog,
  _options?: DiscoverOptions,
): Promise<Discovered> {
  return { loaded: [], failed: [] };
}

/** The clients of a server: whether one is connected. */
import type { Model } from './model.ts';
import { LIVE } from './ordered-log.ts';
import { sizeOf } from './unseen.ts';

/**
 * True if a client has a session, or a live connection has carried a request. A stdio connection exists before its
 * client.
 */
export function hasClient(model: Model): boolean {
  const open = new Set<string>();
  for (const line of model.actors.values()) {
    if (!line.aliveAt(LIVE)) continue;
    if (line.kind === 'session' || (line.kind === 'requests' && sizeOf(line, LIVE) > 0)) return true;
    if (line.connection !== undefined) open.add(line.connection);
  }
  const { all } = model.exchanges;
  return all.slice(0, all.length).some(({ direction, connection }) => direction === 'in' && open.has(connection));
}

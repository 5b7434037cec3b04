/** The clients of a server: whether one is connected, and which connection has none yet. */
import type { ActorLine } from './actor-line.ts';
import type { Model } from './model.ts';
import { LIVE } from './ordered-log.ts';
import { sizeOf } from './unseen.ts';

/**
 * True if a client has a session, or a live connection has carried a request. A connection of stdio, and the one that clients
 * without a session share over HTTP, exist before their first client.
 */
export function hasClient(model: Model): boolean {
  for (const line of model.actors.values()) {
    if (!line.aliveAt(LIVE)) continue;
    if (line.kind === 'session' || (line.connection !== undefined && hasCarried(model, line))) return true;
  }
  return false;
}

/** The table of requests of a connection that has no client yet. */
export function isUnused(model: Model, line: ActorLine): boolean {
  const { kind, connection, address } = line;
  return (
    kind === 'requests' && connection !== undefined && model.doorOf(connection) === address && !hasCarried(model, line)
  );
}

/** True if a request has come on the connection of an actor. */
function hasCarried({ exchanges }: Model, line: ActorLine): boolean {
  const { kind, connection } = line;
  // Also of requests before the observation: the table knows the client of its last one.
  if (kind === 'requests' && (sizeOf(line, LIVE) > 0 || line.view(LIVE)?.facts.client !== undefined)) return true;
  if (connection !== undefined && exchanges.clientsOn(connection).size > 0) return true;
  const { all } = exchanges;
  return all.slice(0, all.length).some((exchange) => exchange.direction === 'in' && exchange.connection === connection);
}

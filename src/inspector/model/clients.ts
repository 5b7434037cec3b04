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
  return [...model.actors.values()].some(
    (line) => line.aliveAt(LIVE) && (line.kind === 'session' || hasCarried(model, line)),
  );
}

/** True for the table of requests of a connection that has no client yet. */
export function isUnused(model: Model, line: ActorLine): boolean {
  return line.kind === 'requests' && !hasCarried(model, line);
}

/** True if a request has come on the connection of an actor. */
function hasCarried({ exchanges: { all } }: Model, line: ActorLine): boolean {
  return (
    // Also of requests before the observation: the table knows the client of its last one.
    (line.kind === 'requests' && (sizeOf(line, LIVE) > 0 || line.view(LIVE)?.facts.client !== undefined)) ||
    all.until(LIVE).some((each) => each.direction === 'in' && each.connection === line.connection)
  );
}

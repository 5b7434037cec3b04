/** The open sessions of a server by connection, counted against the quotas of their principals. */

import type { Quotas } from '../kernel/server-quotas.ts';
import type { Metrics } from '../kernel/telemetry/metrics.ts';
import type { ConnectionId } from '../messages/connection-events.ts';
import { ErrorCode, ProtocolError } from '../protocol/errors.ts';
import { heapBytes } from '../protocol/heap.ts';
import type { Initialize } from '../protocol/operations.ts';

/** Memory of an idle session in bytes, without what its client declared; `npm run bench` measures it. */
const SESSION_BYTES = 6_000;

interface Counted {
  readonly principal: string;
  /** The size of what the client declared, plus the fixed cost of a session. */
  readonly bytes: number;
}

export class OpenSessions {
  readonly #quotas: Pick<Quotas, 'sessions' | 'retained'>;
  readonly #metrics: Metrics;
  readonly #sessions = new Map<ConnectionId, Counted>();

  constructor(quotas: Pick<Quotas, 'sessions' | 'retained'>, metrics: Metrics) {
    this.#quotas = quotas;
    this.#metrics = metrics;
  }

  /** @throws {ProtocolError} if the principal, or the server, has too many sessions */
  check(principal: string, opening: Initialize): void {
    const { sessions, retained } = this.#quotas;
    const excess = sessions.excess(principal) ?? retained.excess(principal, bytesOf(opening));
    if (!excess) return;
    this.#metrics.refused(excess.option);
    throw new ProtocolError(
      ErrorCode.Overloaded,
      `cannot open a session: ${excess.message}: end one (DELETE over HTTP), or retry later`,
    );
  }

  /** Counts the session of a connection. */
  add(connection: ConnectionId, principal: string, opening: Initialize): void {
    const bytes = bytesOf(opening);
    this.#sessions.set(connection, { principal, bytes });
    this.#quotas.sessions.add(principal);
    this.#quotas.retained.add(principal, bytes);
  }

  /** The session of a connection has ended. */
  remove(connection: ConnectionId): void {
    const counted = this.#sessions.get(connection);
    if (!counted) return;
    this.#sessions.delete(connection);
    this.#quotas.sessions.remove(counted.principal);
    this.#quotas.retained.remove(counted.principal, counted.bytes);
  }
}

function bytesOf({ clientInfo, capabilities }: Initialize): number {
  return SESSION_BYTES + heapBytes(clientInfo) + heapBytes(capabilities);
}

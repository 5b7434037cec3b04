/**
 * The table of all connections and sessions of a server: opens and closes them as the bus reports, and counts sessions
 * against their limits.
 */
import { nanoid } from 'nanoid';
import type { ListKind } from '../messages/change-notices.ts';
import type { ConnectionId } from '../messages/connection-events.ts';
import type { DormantSessions } from '../messages/dormant-sessions.ts';
import type { SessionState } from '../messages/session-messages.ts';
import type { Dialect } from '../protocol/dialects/index.ts';
import { ErrorCode, ProtocolError } from '../protocol/errors.ts';
import { heapBytes } from '../protocol/heap.ts';
import type { Initialize } from '../protocol/operations.ts';
import { ANONYMOUS, type Excess } from '../quota.ts';
import type { Bus } from '../transports/bus.ts';
import {
  type Connection,
  type ConnectionHost,
  newSessionId,
  openConnection,
  type SessionPersistence,
} from './connection.ts';
import type { OpenSession } from './session.ts';
import type { SessionRepository } from './session-repository.ts';

export interface ConnectionTableOptions
  extends Omit<ConnectionHost, 'adopt' | 'sessionOpens' | 'sessionOpened' | 'sessionClosed'> {
  readonly bus: Bus;
  /** The durable HTTP sessions; undefined if none are durable. */
  readonly kept: SessionRepository | undefined;
  readonly connections: OpenConnections;
  /** The ids of sessions that outlive their connections, because the supervisor of this process says so. */
  readonly lasting: Set<string>;
}

/** The initial state of a session. */
const NEW: SessionState = { initialized: false, logLevel: 'info', watches: [] };
const LISTS: readonly ListKind[] = ['tools', 'resources', 'prompts'];

interface Entry extends OpenSession {
  readonly principal: string;
  /** The size of what the client declared, plus the fixed cost of a session. */
  readonly bytes: number;
}

/** Memory of an idle session in bytes, without what its client declared; `npm run bench` measures it. */
const SESSION_BYTES = 6_000;

/** The open connections of a server. */
export class OpenConnections {
  readonly #connections = new Map<ConnectionId, Connection>();
  #draining = false;

  get ids(): readonly ConnectionId[] {
    return [...this.#connections.keys()];
  }

  get(id: ConnectionId): Connection | undefined {
    return this.#connections.get(id);
  }

  add(id: ConnectionId, connection: Connection): void {
    this.#connections.set(id, connection);
  }

  delete(id: ConnectionId): void {
    this.#connections.delete(id);
  }

  /** True if the server accepts no new requests. */
  get draining(): boolean {
    return this.#draining;
  }

  /** From now on, a connection that opens accepts no requests. The connections that are open continue until `drain`. */
  close(): void {
    this.#draining = true;
  }

  /** Asks every connection to accept no new requests. */
  drain(): void {
    for (const connection of this.#connections.values()) connection.drain();
  }

  /** Ends the requests in flight with a response, and sends nothing afterwards. */
  giveUp(reason: string): void {
    for (const connection of this.#connections.values()) connection.giveUp(reason);
  }
}

export interface ConnectionTable extends DormantSessions {
  /** Closes all connections without sending anything. */
  closeAll(reason: string): void;
}

export function openConnectionTable(options: ConnectionTableOptions): ConnectionTable {
  const { bus, quotas, kept, connections } = options;
  const sessions = new Map<ConnectionId, Entry>();

  const host: ConnectionHost = {
    ...options,
    adopt(shared, exchange, opening, dialect) {
      const { principal } = exchange;
      const id = nanoid(8);
      const connection = openConnection(id, { principal, shared: false, session: true }, host);
      try {
        const { id: session, ...opened } = connection.openSession(
          opening,
          dialect,
          kept && keep(kept, opening, dialect),
        );
        connections.add(id, connection);
        const keeper = kept?.open(session, principal, { opening, dialect }, NEW);
        bus.emit('connection.session', { connection: shared, exchange, opened: id, session, dialect, keeper });
        if (connections.draining) connection.drain();
        return opened;
      } catch (error) {
        connection.close('its session could not be opened');
        throw error;
      }
    },
    sessionOpens(principal, opening) {
      const excess = quotas.sessions.excess(principal) ?? quotas.retained.excess(principal, bytesOf(opening));
      if (excess) throw tooMany(excess);
    },
    sessionOpened(connection, session, opening) {
      const { principal } = session.client;
      const bytes = bytesOf(opening);
      sessions.set(connection, { ...session, principal, bytes });
      quotas.sessions.add(principal);
      quotas.retained.add(principal, bytes);
    },
    sessionClosed(connection) {
      const entry = sessions.get(connection);
      if (!entry) return;
      sessions.delete(connection);
      quotas.sessions.remove(entry.principal);
      quotas.retained.remove(entry.principal, entry.bytes);
    },
  };

  // Events from transports.
  bus.on('connection.opened', ({ connection: id, principal = ANONYMOUS, shared = false, session }) => {
    if (session !== undefined) options.lasting.add(session);
    const connection = openConnection(id, { principal, shared, sessionId: session }, host);
    connections.add(id, connection);
    if (connections.draining) connection.drain();
  });
  bus.on('connection.text', ({ connection, text, exchange }) =>
    connections.get(connection)?.inbound.text(text, exchange),
  );
  bus.on('connection.unreadable', ({ connection, reason, bytes, head }) =>
    connections.get(connection)?.inbound.unreadable(reason, bytes, head),
  );
  bus.on('connection.left', ({ connection, exchange }) => connections.get(connection)?.left(exchange));
  bus.on('connection.slow', ({ connection, reader = 'connection' }) => connections.get(connection)?.slow(reader));
  bus.on('connection.drained', ({ connection, reader = 'connection' }) => connections.get(connection)?.drained(reader));
  bus.on('connection.ended', ({ connection }) => connections.get(connection)?.ended());
  bus.on('connection.closed', ({ connection, reason, hibernates }) => {
    connections.get(connection)?.close(reason, hibernates);
    connections.delete(connection);
    // Nothing of it is in flight any more.
    options.server.send({ type: 'connection idle', connection });
  });

  return {
    async wake(id, principal) {
      const found = await kept?.find(id, principal);
      if (!found || found === 'damaged') return found;
      const { dialect, opening, state, survived, kept: keeper, opened, unread } = found;
      return {
        dialect,
        keeper,
        unread,
        connect() {
          const name = nanoid(8);
          const connection = openConnection(name, { principal, shared: false, session: true }, host);
          const changed = (now: SessionState): void => keeper.changed({ dialect, opening }, now);
          const { client } = connection.openSession(opening, dialect, { id, was: state, changed });
          opened();
          connections.add(name, connection);
          if (connections.draining) connection.drain();
          // A new version of the server may offer different elements: ask the client to list again.
          const session = client.session?.mailbox;
          if (survived && session)
            for (const what of LISTS)
              if (options.offers(what))
                options.subscriptions.send({
                  type: 'session changed',
                  session,
                  change: { type: 'list changed', what },
                });
          return name;
        },
      };
    },
    closeAll(reason) {
      for (const id of connections.ids) {
        connections.get(id)?.close(reason);
        connections.delete(id);
      }
    },
  };
}

/** Makes a new session durable: its later states are stored. */
function keep(kept: SessionRepository, opening: Initialize, dialect: Dialect): SessionPersistence {
  const id = newSessionId();
  return { id, changed: (state) => kept.awake(id)?.changed({ opening, dialect }, state) };
}

function bytesOf({ clientInfo, capabilities }: Initialize): number {
  return SESSION_BYTES + heapBytes(clientInfo) + heapBytes(capabilities);
}

function tooMany({ message }: Excess): ProtocolError {
  return new ProtocolError(
    ErrorCode.Overloaded,
    `cannot open a session: ${message}: end one (DELETE over HTTP), or retry later`,
  );
}

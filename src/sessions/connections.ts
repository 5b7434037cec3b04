/** Every connection and every session of a server: opens and closes them as the bus says, and counts sessions against their caps. */
import { nanoid } from 'nanoid';
import type { ConnectionId } from '../messages/connection-events.ts';
import type { ListKind, SessionState } from '../messages/session-messages.ts';
import type { DormantSessions } from '../messages/session-storage.ts';
import type { Dialect } from '../protocol/dialects/index.ts';
import { ErrorCode, ProtocolError } from '../protocol/errors.ts';
import { heapBytes } from '../protocol/heap.ts';
import type { Initialize } from '../protocol/operations.ts';
import { ANONYMOUS, type Excess } from '../quota.ts';
import type { Bus } from '../transports/bus.ts';
import { type Connection, type ConnectionHost, type Keep, newSessionId, openConnection } from './connection.ts';
import type { OpenSession } from './session.ts';
import type { SessionRepository } from './session-repository.ts';

export interface ConnectionTableOptions
  extends Omit<ConnectionHost, 'adopt' | 'sessionOpens' | 'sessionOpened' | 'sessionClosed'> {
  readonly bus: Bus;
  /** Where the sessions of HTTP are kept; undefined where none are. */
  readonly kept: SessionRepository | undefined;
  /** Whether the server takes no new requests: a connection that opens now is told at once. */
  closing(): boolean;
  /** Nothing more can come of this connection. */
  gone(connection: ConnectionId): void;
}

/** What a session is that opens. */
const NEW: SessionState = { initialized: false, logLevel: 'info', watches: [] };
const LISTS: readonly ListKind[] = ['tools', 'resources', 'prompts'];

interface Entry extends OpenSession {
  readonly principal: string;
  /** What its client has said of itself, and what every session takes. */
  readonly bytes: number;
}

/** Bytes that a session takes that is idle, beside what its client has said of itself; `npm run bench` measures it. */
const SESSION_BYTES = 6_000;

export interface ConnectionTable extends DormantSessions {
  readonly connections: ReadonlyMap<ConnectionId, Connection>;
  /** Whether a session of this id outlives its connection, because whoever supervises this process says so. */
  lasts(session: string): boolean;
  /** Closes what is left, saying nothing more to anybody. */
  closeAll(reason: string): void;
}

export function openConnectionTable(options: ConnectionTableOptions): ConnectionTable {
  const { bus, quotas, kept } = options;
  const connections = new Map<ConnectionId, Connection>();
  const sessions = new Map<ConnectionId, Entry>();
  const lasting = new Set<string>();

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
        connections.set(id, connection);
        const keeper = kept?.open(session, principal, { opening, dialect }, NEW);
        bus.emit('connection.session', { connection: shared, exchange, opened: id, session, dialect, keeper });
        if (options.closing()) connection.drain();
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

  // What transports report.
  bus.on('connection.opened', ({ connection: id, principal = ANONYMOUS, shared = false, session }) => {
    if (session !== undefined) lasting.add(session);
    const connection = openConnection(id, { principal, shared, sessionId: session }, host);
    connections.set(id, connection);
    if (options.closing()) connection.drain();
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
  bus.on('connection.closed', ({ connection, reason }) => {
    connections.get(connection)?.close(reason);
    connections.delete(connection);
    options.gone(connection);
  });

  return {
    connections,
    lasts: (session) => lasting.has(session),
    async wake(id, principal) {
      const found = await kept?.find(id, principal);
      if (!found || found === 'damaged') return found;
      const { dialect, opening, state, survived, kept: keeper } = found;
      return {
        dialect,
        keeper,
        connect() {
          const name = nanoid(8);
          const connection = openConnection(name, { principal, shared: false, session: true }, host);
          const changed = (now: SessionState): void => keeper.changed({ dialect, opening }, now);
          const { client } = connection.openSession(opening, dialect, { id, was: state, changed });
          connections.set(name, connection);
          if (options.closing()) connection.drain();
          // Another version of this server may offer something else: that it does is worth a look at its lists.
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
      for (const [id, connection] of connections) {
        connection.close(reason);
        connections.delete(id);
      }
    },
  };
}

/** What a session that opens is told, so that what it becomes is kept. */
function keep(kept: SessionRepository, opening: Initialize, dialect: Dialect): Keep {
  const id = newSessionId();
  return { id, changed: (state) => kept.awake(id)?.changed({ opening, dialect }, state) };
}

function bytesOf({ clientInfo, capabilities }: Initialize): number {
  return SESSION_BYTES + heapBytes(clientInfo) + heapBytes(capabilities);
}

function tooMany({ message }: Excess): ProtocolError {
  return new ProtocolError(
    ErrorCode.Overloaded,
    `no session opens: ${message}: end one (DELETE over HTTP), or try again later`,
  );
}

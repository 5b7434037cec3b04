/** Every connection and every session of a server: opens and closes them as the bus says, and counts sessions against their caps. */
import { nanoid } from 'nanoid';
import type { OpenSession } from '../actors/session.ts';
import type { Bus } from '../bus.ts';
import type { ConnectionId } from '../messages/connection.ts';
import type { Mailbox } from '../messages/mailbox.ts';
import type { SessionMail } from '../messages/session.ts';
import type { Limits } from '../options.ts';
import { ErrorCode, ProtocolError } from '../protocol/errors.ts';
import { type Connection, type ConnectionHost, openConnection } from './connection.ts';

/** Who a client is that nobody asked: a cap for each principal would be one for all of them together. */
export const ANONYMOUS = 'anonymous';

export interface DirectoryOptions
  extends Omit<ConnectionHost, 'adopt' | 'sessionOpens' | 'sessionOpened' | 'sessionClosed'> {
  readonly bus: Bus;
  readonly limits: Limits;
  /** Whether the server takes no new requests: a connection that opens now is told at once. */
  closing(): boolean;
  /** Nothing more can come of this connection. */
  gone(connection: ConnectionId): void;
}

interface Entry extends OpenSession {
  readonly principal: string;
}

export interface Directory {
  readonly connections: ReadonlyMap<ConnectionId, Connection>;
  /** The mailboxes of all sessions. */
  sessions(): Iterable<Mailbox<SessionMail>>;
  /** Closes what is left, saying nothing more to anybody. */
  closeAll(reason: string): void;
}

export function openDirectory(options: DirectoryOptions): Directory {
  const { bus, limits } = options;
  const connections = new Map<ConnectionId, Connection>();
  const sessions = new Map<ConnectionId, Entry>();
  const ofPrincipal = new Map<string, number>();

  const host: ConnectionHost = {
    ...options,
    adopt(shared, exchange, opening, dialect) {
      const { principal } = exchange;
      const id = nanoid(8);
      const connection = openConnection(id, { principal, shared: false, session: true }, host);
      try {
        const { id: session, ...opened } = connection.openSession(opening, dialect);
        connections.set(id, connection);
        bus.emit('connection.session', { connection: shared, exchange, opened: id, session, dialect });
        if (options.closing()) connection.drain();
        return opened;
      } catch (error) {
        connection.close('its session could not be opened');
        throw error;
      }
    },
    sessionOpens(principal) {
      if (sessions.size >= limits.maxSessions)
        throw tooMany(`${sessions.size} sessions are open, which is the limit of this server`, 'maxSessions');
      const own = ofPrincipal.get(principal) ?? 0;
      if (principal !== ANONYMOUS && own >= limits.maxSessionsPerPrincipal)
        throw tooMany(`this principal has ${own} sessions open, which is its limit`, 'maxSessionsPerPrincipal');
    },
    sessionOpened(connection, session) {
      const { principal } = session.client;
      sessions.set(connection, { ...session, principal });
      ofPrincipal.set(principal, (ofPrincipal.get(principal) ?? 0) + 1);
    },
    sessionClosed(connection) {
      const entry = sessions.get(connection);
      if (!entry) return;
      sessions.delete(connection);
      const left = (ofPrincipal.get(entry.principal) ?? 0) - 1;
      if (left > 0) ofPrincipal.set(entry.principal, left);
      else ofPrincipal.delete(entry.principal);
    },
  };

  // What transports report.
  bus.on('connection.opened', ({ connection: id, principal = ANONYMOUS, shared = false }) => {
    const connection = openConnection(id, { principal, shared }, host);
    connections.set(id, connection);
    if (options.closing()) connection.drain();
  });
  bus.on('connection.text', ({ connection, text, exchange }) =>
    connections.get(connection)?.inbound.text(text, exchange),
  );
  bus.on('connection.unreadable', ({ connection, reason, bytes }) =>
    connections.get(connection)?.inbound.unreadable(reason, bytes),
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
    *sessions() {
      for (const { actor } of sessions.values()) yield actor.mailbox;
    },
    closeAll(reason) {
      for (const [id, connection] of connections) {
        connection.close(reason);
        connections.delete(id);
      }
    },
  };
}

function tooMany(what: string, limit: string): ProtocolError {
  return new ProtocolError(
    ErrorCode.Overloaded,
    `${what}: end one (DELETE over HTTP), or try again later (the server's option is limits.${limit})`,
  );
}

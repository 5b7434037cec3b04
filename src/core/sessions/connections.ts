/**
 * The table of all connections and sessions of a server: opens and closes them as the bus reports, and counts sessions
 * against their limits.
 */

import type { OpenedSession, SessionOpener } from '../codec/inbound/inbound.ts';
import { type Clock, eachInSlices, inSlices } from '../kernel/clock.ts';
import { randomId } from '../kernel/random-id.ts';
import type { Quotas } from '../kernel/server-quotas.ts';
import { authOf } from '../messages/auth.ts';
import type { ListKind } from '../messages/change-notices.ts';
import type { ConnectionId, Exchange } from '../messages/connection-events.ts';
import type { DormantSessions } from '../messages/dormant-sessions.ts';
import type { SessionState } from '../messages/session-messages.ts';
import { isOfCells } from '../protocol/cell.ts';
import type { Dialect } from '../protocol/dialects/index.ts';
import type { Initialize } from '../protocol/operations.ts';
import { ANONYMOUS } from '../protocol/principals.ts';
import { Connection, type ConnectionServices, type SessionPersistence } from './connection.ts';
import { OpenSessions } from './open-sessions.ts';
import type { SessionRepository } from './session-repository.ts';

export interface ConnectionTableOptions extends Omit<ConnectionServices, 'sessions'> {
  readonly quotas: Pick<Quotas, 'sessions' | 'retained'>;
  /** The durable HTTP sessions; undefined if none are durable. */
  readonly kept: SessionRepository | undefined;
  readonly connections: OpenConnections;
  /** The ids of sessions that outlive their connections, because the supervisor of this process says so. */
  readonly lasting: Set<string>;
}

/** The initial state of a session. */
const NEW: SessionState = { initialized: false, logLevel: 'info', watches: [] };
/** The transport of the sessions that leave memory. */
const HIBERNATING = 'http';
const LISTS: readonly ListKind[] = ['tools', 'resources', 'prompts'];

/** The open connections of a server. */
export class OpenConnections {
  readonly #clock: Clock;
  readonly #connections = new Map<ConnectionId, Connection>();
  #draining = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

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

  /** Asks every connection to accept no new requests, in slices. */
  drain(): void {
    inSlices(this.#clock, this.#connections.values(), (connection) => connection.drain(), nothing);
  }

  /** The same for the connections whose sessions are in these cells. */
  giveUpCells(cells: ReadonlySet<number>, reason: string): Promise<void> {
    const leaving = [...this.#connections.values()].filter(({ movableSession: id }) => id && isOfCells(cells, id));
    return eachInSlices(this.#clock, leaving, (connection) => connection.giveUp(reason));
  }

  /** The connections of the sessions of a principal that outlive their connections. */
  sessionsOf(principal: string): readonly ConnectionId[] {
    return [...this.#connections].flatMap(([id, { client, movableSession }]) =>
      movableSession !== undefined && client?.principal === principal ? [id] : [],
    );
  }

  /** Ends the requests in flight with a response, in slices, and sends nothing afterwards. */
  giveUp(reason: string): Promise<void> {
    return eachInSlices(this.#clock, this.#connections.values(), (connection) => connection.giveUp(reason));
  }
}

export interface ConnectionTable extends DormantSessions {
  /** Closes all connections without sending anything. */
  closeAll(reason: string): void;
}

export function openConnectionTable(options: ConnectionTableOptions): ConnectionTable {
  const { bus, kept, connections } = options;
  const services: ConnectionServices = {
    ...options,
    sessions: new OpenSessions(options.quotas, options.system.metrics),
  };

  // Events from transports.
  bus.on(
    'connection.opened',
    ({ connection: id, transport, principal = ANONYMOUS, scopes, shared = false, session }) => {
      if (session !== undefined) options.lasting.add(session);
      const auth = principal === ANONYMOUS ? undefined : authOf(principal, scopes);
      const opener = shared ? new SharedSessions(id, transport, services, connections, kept) : undefined;
      const connection = new Connection(
        id,
        { transport, principal, auth, shared: opener, sessionId: session },
        services,
      );
      connections.add(id, connection);
      if (connections.draining) connection.drain();
    },
  );
  bus.on('connection.text', ({ connection, text, exchange, auth }) =>
    connections.get(connection)?.inbound.text(text, exchange, auth),
  );
  bus.on('connection.unreadable', ({ connection, reason, bytes, head }) =>
    connections.get(connection)?.inbound.unreadable(reason, bytes, head),
  );
  bus.on('principal.forgotten', ({ principal }) => {
    for (const connection of connections.sessionsOf(principal))
      bus.emit('connection.end', { connection, reason: 'the data of its principal is deleted' });
  });
  bus.on('connection.left', ({ connection, exchange }) => connections.get(connection)?.exchangeClosed(exchange));
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
      const { dialect, opening, state, survived, kept: keeper, assertOwned, opened, unread } = found;
      return {
        dialect,
        keeper,
        unread,
        connect() {
          assertOwned();
          const name = randomId(8);
          const connection = new Connection(name, { transport: HIBERNATING, principal, session: true }, services);
          const changed = (now: SessionState): void => keeper.changed({ dialect, opening }, now);
          const { client } = connection.beginSession(opening, dialect, { id, was: state, changed });
          opened();
          connections.add(name, connection);
          if (connections.draining) connection.drain();
          // A new version of the server may offer different elements: ask the client to list again.
          const session = client.session?.mailbox;
          if (survived && session)
            for (const what of LISTS)
              if (options.capabilities.offered[what])
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

/** Opens the sessions of a shared connection, each on a connection of its own. */
class SharedSessions implements SessionOpener {
  /** No client has a session on a shared connection. */
  readonly client = undefined;
  readonly #shared: ConnectionId;
  readonly #transport: string;
  readonly #services: ConnectionServices;
  readonly #connections: OpenConnections;
  readonly #kept: SessionRepository | undefined;

  constructor(
    shared: ConnectionId,
    transport: string,
    services: ConnectionServices,
    connections: OpenConnections,
    kept: SessionRepository | undefined,
  ) {
    this.#shared = shared;
    this.#transport = transport;
    this.#services = services;
    this.#connections = connections;
    this.#kept = kept;
  }

  openSession(opening: Initialize, dialect: Dialect, exchange: Exchange | undefined): OpenedSession {
    if (!exchange) throw new Error('expected an exchange with every message of a shared connection');
    const { principal } = exchange;
    const id = randomId(8);
    const connection = new Connection(id, { transport: this.#transport, principal, session: true }, this.#services);
    try {
      const kept = this.#kept;
      const persistence =
        kept && persistenceOf(kept, this.#services.system.ids.ofPrincipal(principal), opening, dialect);
      const { id: session, ...opened } = connection.beginSession(opening, dialect, persistence);
      this.#connections.add(id, connection);
      const keeper = kept?.open(session, principal, { opening, dialect }, NEW);
      this.#services.bus.emit('connection.session', {
        connection: this.#shared,
        exchange,
        opened: id,
        session,
        dialect,
        keeper,
      });
      if (this.#connections.draining) connection.drain();
      return opened;
    } catch (error) {
      connection.close('its session could not be opened');
      throw error;
    }
  }
}

function nothing(): void {}

/** Makes a new session durable: its later states are stored. */
function persistenceOf(kept: SessionRepository, id: string, opening: Initialize, dialect: Dialect): SessionPersistence {
  return { id, changed: (state) => kept.awake(id)?.changed({ opening, dialect }, state) };
}

/**
 * Assembles one connection: its inbound codec, its in-flight table, its emitter, and the session of a legacy client.
 */
import { nanoid } from 'nanoid';
import type { ActorSystem } from '../actor/actor.ts';
import type { Timer } from '../clock.ts';
import { Inbound, type OpenedSession } from '../codec/inbound/inbound.ts';
import type { Outbound } from '../codec/outbound/outbound.ts';
import { spawnEmitter } from '../emitters/emitter.ts';
import type { Limits } from '../limits.ts';
import type { ConnectionId, Exchange, Reader } from '../messages/connection-events.ts';
import type { Mailbox } from '../messages/mailbox.ts';
import type { RequestMail } from '../messages/request-messages.ts';
import type { ServerDescription } from '../messages/results.ts';
import type { ServerMail } from '../messages/server-messages.ts';
import type { SessionState } from '../messages/session-messages.ts';
import type { SubscriptionsMail } from '../messages/subscription-messages.ts';
import type { Dialect } from '../protocol/dialects/index.ts';
import type { RequestId } from '../protocol/jsonrpc.ts';
import type { Initialize } from '../protocol/operations.ts';
import type { ServerCapabilities } from '../protocol/types.ts';
import { spawnRequests } from '../requests/requests.ts';
import type { Quotas } from '../server-quotas.ts';
import type { Bus } from '../transports/bus.ts';
import type { ReplyCache } from './reply-cache.ts';
import { type OpenSession, spawnSession } from './session.ts';

export interface ConnectionHost {
  readonly system: ActorSystem;
  readonly bus: Bus;
  readonly limits: Limits;
  readonly quotas: Pick<Quotas, 'sessions' | 'retained'>;
  readonly outbound: Outbound;
  route(mail: RequestMail): void;
  readonly subscriptions: Mailbox<SubscriptionsMail>;
  introduction(): ServerDescription;
  offers(capability: keyof ServerCapabilities): boolean;
  /**
   * Opens a connection for the session that an `initialize` on a shared connection requests. @throws {ProtocolError} if
   * there are too many sessions
   */
  adopt(connection: ConnectionId, exchange: Exchange, opening: Initialize, dialect: Dialect): OpenedSession;
  /** @throws {ProtocolError} if there are too many sessions */
  sessionOpens(principal: string, opening: Initialize): void;
  sessionOpened(connection: ConnectionId, session: OpenSession, opening: Initialize): void;
  sessionClosed(connection: ConnectionId): void;
  /** Stores replies before they are sent. Absent if the server stores none. */
  readonly replies?: Pick<ReplyCache, 'says'> | undefined;
  /** While draining, gets `connection idle` when no request of a connection is in flight any more. */
  readonly server: Mailbox<ServerMail>;
}

/** The properties of a connection, besides its id. */
export interface ConnectionKind {
  /** The principal of its messages, unless a message names its own. */
  readonly principal: string;
  /** True if any number of clients use the connection, and none has a session on it. */
  readonly shared: boolean;
  /** True if the connection opens and closes with one session. */
  readonly session?: true;
  /** The id for its session. Default: a new one. */
  readonly sessionId?: string | undefined;
}

/** Data about a session that the store holds; a restored session has a previous state and an id. */
export interface SessionPersistence {
  readonly id: string;
  readonly was?: SessionState;
  changed(state: SessionState): void;
}

/** The server's operations on a connection. */
export interface Connection {
  readonly inbound: Inbound;
  /** Opens the session of a connection that has none. @throws {ProtocolError} if there are too many sessions */
  openSession(
    opening: Initialize,
    dialect: Dialect,
    keep?: SessionPersistence,
  ): OpenedSession & { readonly id: string };
  slow(reader: Reader): void;
  drained(reader: Reader): void;
  /** Called when the client has closed an exchange of a shared connection. */
  left(exchange: Exchange): void;
  /** Accepts no new requests; calls `idle` when none is in flight. */
  drain(): void;
  /**
   * Called when the client has ended its input: answers what is in flight within the grace time, then ends the
   * connection.
   */
  ended(): void;
  /** Ends the requests in flight with a response, and sends nothing afterwards. */
  giveUp(reason: string): void;
  /**
   * Ends the requests in flight without a response, then the session.
   *
   * @param hibernates the session leaves memory, and its next request restores it
   */
  close(reason: string, hibernates?: true): void;
}

/** Length of a session's id in characters: 132 random bits, because over HTTP the id is the key to the session. */
const SESSION_ID_LENGTH = 22;

export function newSessionId(): string {
  return nanoid(SESSION_ID_LENGTH);
}

export function openConnection(id: ConnectionId, kind: ConnectionKind, host: ConnectionHost): Connection {
  const { bus, limits, system } = host;
  const { inspection } = system;
  const failed = (actor: string, error: unknown): void =>
    bus.emit('connection.end', {
      connection: id,
      reason: `the ${actor} failed (incident ${system.incident(`${actor}/${id}`, error)})`,
    });
  const emitter = spawnEmitter({
    system,
    outbound: host.outbound,
    address: `emitter/${id}`,
    connection: id,
    maxHeld: limits.maxHeld,
    retained: host.quotas.retained,
    principal: kind.principal,
    transmit(text, about, status, bytes) {
      if (inspection.full) {
        const request = about.kind === 'request' ? about.cause : undefined;
        inspection.record({ type: 'wire', connection: id, direction: 'out', text, about: request });
      }
      bus.emit('connection.send', { connection: id, text, about, status, bytes });
    },
    unanswered: (exchange) => bus.emit('connection.unanswered', { connection: id, exchange }),
    release: (exchange, retryMs) => bus.emit('connection.release', { connection: id, exchange, retryMs }),
    droppedNotes: (count) =>
      system.log(
        'warning',
        `connection ${id} is slow: dropped ${count} notifications (limits.maxHeld, limits.maxRetainedBytes)`,
      ),
    failed: (error) => failed('emitter', error),
  });
  let grace: Timer | undefined;
  const rejected = (request: RequestId | undefined): void =>
    bus.emit('connection.rejected', { connection: id, id: request });
  const requests = spawnRequests({
    system,
    route: host.route,
    subscriptions: host.subscriptions,
    limit: kind.shared ? 'maxStatelessInFlight' : 'maxInFlight',
    maxInFlight: kind.shared ? limits.maxStatelessInFlight : limits.maxInFlight,
    listenLimit: kind.shared ? 'maxStatelessListens' : 'maxListens',
    maxListens: kind.shared ? limits.maxStatelessListens : limits.maxListens,
    maxRunning: kind.shared ? Math.max(limits.maxRunning, 2 * limits.maxStatelessInFlight) : limits.maxRunning,
    retained: host.quotas.retained,
    timeoutMs: limits.timeoutMs,
    maxTimeoutMs: limits.maxTimeoutMs,
    address: `requests/${id}`,
    connection: id,
    emitter: host.replies?.says(emitter.mailbox) ?? emitter.mailbox,
    duplicate: rejected,
    // A single client can live with a table that only rejects. A shared connection is replaced instead.
    failed: (error) => kind.shared && failed('requests', error),
    idle() {
      if (grace) {
        letGo('the client ended its input');
        bus.emit('connection.end', { connection: id, reason: 'the client ended its input' });
      }
      host.server.send({ type: 'connection idle', connection: id });
    },
  });
  let session: OpenSession | undefined;
  /**
   * Sends nothing more. What is still queued for a slow client goes to the transport, which flushes it before it
   * closes.
   */
  const letGo = (reason: string): void => emitter.mailbox.send({ type: 'close', reason });
  const openSession = (
    opening: Initialize,
    dialect: Dialect,
    keep?: SessionPersistence,
  ): OpenedSession & { readonly id: string } => {
    const { principal } = kind;
    // A restored session is already counted.
    if (!keep?.was) host.sessionOpens(principal, opening);
    const sessionId = keep?.id ?? kind.sessionId ?? newSessionId();
    const opened = spawnSession({
      system,
      introduction: host.introduction,
      id: sessionId,
      connection: id,
      dialect,
      opening,
      principal,
      requests: requests.mailbox,
      emitter: emitter.mailbox,
      was: keep?.was,
      ...(keep ? { changed: keep.changed } : {}),
      closed(reason) {
        session = undefined;
        opened.actor.stop(reason);
        host.subscriptions.send({ type: 'session closed', session: opened.actor.mailbox });
        host.sessionClosed(id);
        if (kind.session) bus.emit('connection.end', { connection: id, reason });
      },
    });
    session = opened;
    host.sessionOpened(id, opened, opening);
    host.subscriptions.send({ type: 'session opened', session: opened.actor.mailbox });
    const watches = keep?.was?.watches;
    if (watches?.length) host.subscriptions.send({ type: 'session restored', session: opened.actor.mailbox, watches });
    return { id: sessionId, client: opened.client, requests: requests.mailbox };
  };

  const inbound = new Inbound({
    maxDepth: limits.maxDepth,
    maxBatch: limits.maxBatch,
    maxMessageBytes: limits.maxMessageBytes,
    maxClientInfoBytes: limits.maxClientInfoBytes,
    retained: host.quotas.retained,
    connection: id,
    system,
    requests: requests.mailbox,
    emitter: emitter.mailbox,
    principal: kind.principal,
    shared: kind.shared,
    session: () => session?.client,
    openSession: (opening, dialect, exchange) =>
      kind.shared && exchange ? host.adopt(id, exchange, opening, dialect) : openSession(opening, dialect),
    rejected,
    accepted: (exchange) => bus.emit('connection.accepted', { connection: id, exchange }),
    offers: host.offers,
  });

  return {
    inbound,
    openSession,
    slow: (reader) => emitter.mailbox.send({ type: 'slow', reader }),
    drained: (reader) => emitter.mailbox.send({ type: 'drained', reader }),
    left: (exchange) =>
      requests.mailbox.send({ type: 'cancel', key: exchange.id, reason: 'the client closed the response' }),
    drain: () => requests.mailbox.send({ type: 'drain' }),
    ended() {
      grace ??= system.clock.after(limits.graceMs, () =>
        requests.mailbox.send({ type: 'abandon', reason: 'the client ended its input, and the grace time is over' }),
      );
      requests.mailbox.send({ type: 'drain' });
    },
    giveUp(reason) {
      requests.mailbox.send({ type: 'abandon', reason });
      letGo(reason);
    },
    close(reason, hibernates) {
      grace?.cancel();
      letGo(reason);
      requests.mailbox.send({ type: 'abandon', reason });
      session?.actor.mailbox.send({ type: hibernates ? 'hibernate' : 'close', reason });
      emitter.stop(reason);
      requests.stop(reason);
      // The table has reported each request by now, unless the connection ended during the table's own turn.
      host.subscriptions.send({ type: 'connection closed', requests: requests.mailbox });
    },
  };
}

/**
 * Assembles one connection: its inbound codec, its in-flight table, its emitter, and the session of a legacy client.
 */

import { Inbound, type OpenedSession, type SessionOpener } from '../codec/inbound/inbound.ts';
import type { Outbound } from '../codec/outbound/outbound.ts';
import { spawnEmitter } from '../emitters/emitter.actor.ts';
import type { Actor, ActorSystem } from '../kernel/actor.ts';
import type { Timer } from '../kernel/clock.ts';
import type { Limits } from '../kernel/limits.ts';
import type { Quotas } from '../kernel/server-quotas.ts';
import type { Auth } from '../messages/auth.ts';
import type { ClientFacts } from '../messages/client-facts.ts';
import type { ConnectionId, Exchange, Reader } from '../messages/connection-events.ts';
import type { EmitterMail } from '../messages/emitter-messages.ts';
import type { Mailbox } from '../messages/mailbox.ts';
import type { Capabilities } from '../messages/offered-capabilities.ts';
import type { RequestRoutes, RequestsMail } from '../messages/request-messages.ts';
import type { RequestPlacement } from '../messages/request-placement.ts';
import type { ServerMail } from '../messages/server-messages.ts';
import type { SessionMail, SessionState } from '../messages/session-messages.ts';
import type { SubscriptionsMail } from '../messages/subscription-messages.ts';
import type { Dialect } from '../protocol/dialects/index.ts';
import type { Methods } from '../protocol/methods.ts';
import type { Initialize } from '../protocol/operations.ts';
import { spawnRequests } from '../requests/requests.actor.ts';
import type { Bus } from '../transports/bus.ts';
import type { OpenSessions } from './open-sessions.ts';
import { spawnSession } from './session.actor.ts';

/** The services and mailboxes that all connections of a server share. */
export interface ConnectionServices {
  readonly system: ActorSystem;
  readonly bus: Bus;
  readonly limits: Limits;
  readonly quotas: Pick<Quotas, 'retained'>;
  readonly outbound: Outbound;
  readonly stages: RequestRoutes;
  readonly subscriptions: Mailbox<SubscriptionsMail>;
  readonly capabilities: Capabilities;
  readonly methods: Methods;
  /** Decides which node serves a request; undefined without a cluster. */
  readonly placement?: RequestPlacement | undefined;
  readonly sessions: OpenSessions;
  /** Stores replies before they are sent. Absent if the server stores none. */
  readonly replies?: { storing(emitter: Mailbox<EmitterMail>): Mailbox<EmitterMail> } | undefined;
  /** While draining, gets `connection idle` when no request of a connection is in flight any more. */
  readonly server: Mailbox<ServerMail>;
}

/** The properties of a connection, besides its id. */
interface ConnectionKind {
  /** The name of its transport. */
  readonly transport: string;
  /** The principal of its messages, unless a message names its own. */
  readonly principal: string;
  /** Its caller, unless a message names its own. Undefined: anonymous, or named by each message. */
  readonly auth?: Auth | undefined;
  /** Set if any number of clients use the connection: it opens their sessions on connections of their own. */
  readonly shared?: SessionOpener | undefined;
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

/** One connection of a server. */
export class Connection implements SessionOpener {
  readonly inbound: Inbound;
  readonly #id: ConnectionId;
  readonly #kind: ConnectionKind;
  readonly #services: ConnectionServices;
  readonly #emitter: Actor<EmitterMail>;
  readonly #requests: Actor<RequestsMail>;
  /** The client of its session. */
  client: ClientFacts | undefined;
  #session: Actor<SessionMail> | undefined;
  /** True if its session leaves memory and does not end. */
  #hibernates = false;
  /** Runs once the client has ended its input. */
  #grace: Timer | undefined;

  constructor(id: ConnectionId, kind: ConnectionKind, services: ConnectionServices) {
    this.#id = id;
    this.#kind = kind;
    this.#services = services;
    this.#emitter = this.#spawnEmitter();
    this.#requests = this.#spawnRequests();
    const { bus, limits, quotas, system, capabilities, methods } = services;
    this.inbound = new Inbound({
      maxDepth: limits.maxDepth,
      maxBatch: limits.maxBatch,
      maxMessageBytes: limits.maxMessageBytes,
      maxClientInfoBytes: limits.maxClientInfoBytes,
      retained: quotas.retained,
      connection: id,
      system,
      bus,
      requests: this.#requests.mailbox,
      emitter: this.#emitter.mailbox,
      principal: kind.principal,
      auth: kind.auth,
      shared: kind.shared !== undefined,
      sessions: kind.shared ?? this,
      capabilities,
      methods,
      placement: services.placement,
    });
  }

  /** The id of its session, if the session outlives the connection. */
  get movableSession(): string | undefined {
    return this.#kind.session && this.client?.session?.id;
  }

  openSession(opening: Initialize, dialect: Dialect): OpenedSession {
    return this.beginSession(opening, dialect);
  }

  /**
   * Opens the session of a connection that has none.
   *
   * @param keep set for a durable session
   * @throws {ProtocolError} if there are too many sessions
   */
  beginSession(
    opening: Initialize,
    dialect: Dialect,
    keep?: SessionPersistence,
  ): OpenedSession & { readonly id: string } {
    const { bus, system, sessions, subscriptions, capabilities } = this.#services;
    const { principal, sessionId } = this.#kind;
    // A restored session is already counted.
    if (!keep?.was) sessions.check(principal, opening);
    const id = keep?.id ?? sessionId ?? system.ids.local();
    const opened = spawnSession({
      system,
      capabilities,
      id,
      connection: this.#id,
      transport: this.#kind.transport,
      dialect,
      opening,
      principal,
      requests: this.#requests.mailbox,
      emitter: this.#emitter.mailbox,
      was: keep?.was,
      ...(keep ? { changed: keep.changed } : {}),
      closed: (reason) => this.#sessionClosed(reason),
    });
    const { mailbox } = opened.actor;
    this.#session = opened.actor;
    this.client = opened.client;
    sessions.add(this.#id, principal, opening);
    subscriptions.send({ type: 'session opened', session: mailbox });
    if (!keep?.was && bus.has('session.opened')) bus.emit('session.opened', { client: opened.client });
    const watches = keep?.was?.watches;
    if (watches?.length) subscriptions.send({ type: 'session restored', session: mailbox, watches });
    return { id, client: opened.client, requests: this.#requests.mailbox };
  }

  slow(reader: Reader): void {
    this.#emitter.mailbox.send({ type: 'slow', reader });
  }

  drained(reader: Reader): void {
    this.#emitter.mailbox.send({ type: 'drained', reader });
  }

  /** The client has closed an exchange of a shared connection. */
  exchangeClosed(exchange: Exchange): void {
    this.#requests.mailbox.send({ type: 'cancel', key: exchange.id, reason: 'the client closed the response' });
  }

  /** Accepts no new requests. The server actor gets `connection idle` when none is in flight. */
  drain(): void {
    this.#requests.mailbox.send({ type: 'drain' });
  }

  /** The client has ended its input: answers what is in flight within the grace time, then ends the connection. */
  ended(): void {
    const { system, limits } = this.#services;
    const { mailbox } = this.#requests;
    const reason = 'the client ended its input, and the grace time is over';
    this.#grace ??= system.clock.after(limits.graceMs, () => mailbox.send({ type: 'abandon', reason }));
    mailbox.send({ type: 'drain', inputEnded: true });
  }

  /** Ends the requests in flight with a response, and sends nothing afterwards. */
  giveUp(reason: string): void {
    this.#requests.mailbox.send({ type: 'abandon', reason });
    this.#endOutput(reason);
  }

  /**
   * Ends the requests in flight without a response, then the session.
   *
   * @param hibernates the session leaves memory, and its next request restores it
   */
  close(reason: string, hibernates?: true): void {
    this.#grace?.cancel();
    this.#endOutput(reason);
    this.#requests.mailbox.send({ type: 'abandon', reason });
    this.#hibernates = hibernates === true;
    this.#session?.mailbox.send({ type: hibernates ? 'hibernate' : 'close', reason });
    this.#emitter.stop(reason);
    this.#requests.stop(reason);
    // The table has reported each request by now, unless the connection ended during the table's own turn.
    this.#services.subscriptions.send({ type: 'connection closed', requests: this.#requests.mailbox });
  }

  #spawnEmitter(): Actor<EmitterMail> {
    const { bus, limits, outbound, quotas, system } = this.#services;
    return spawnEmitter({
      system,
      bus,
      outbound,
      connection: this.#id,
      maxHeld: limits.maxHeld,
      retained: quotas.retained,
      principal: this.#kind.principal,
    });
  }

  #spawnRequests(): Actor<RequestsMail> {
    const { bus, limits, quotas, replies, stages, server, subscriptions, system } = this.#services;
    const shared = this.#kind.shared !== undefined;
    const { mailbox: emitter } = this.#emitter;
    return spawnRequests({
      system,
      bus,
      server,
      stages,
      subscriptions,
      limit: shared ? 'maxStatelessInFlight' : 'maxInFlight',
      maxInFlight: shared ? limits.maxStatelessInFlight : limits.maxInFlight,
      listenLimit: shared ? 'maxStatelessListens' : 'maxListens',
      maxListens: shared ? limits.maxStatelessListens : limits.maxListens,
      maxRunning: shared ? Math.max(limits.maxRunning, 2 * limits.maxStatelessInFlight) : limits.maxRunning,
      retained: quotas.retained,
      timeoutMs: limits.timeoutMs,
      maxTimeoutMs: limits.maxTimeoutMs,
      connection: this.#id,
      transport: this.#kind.transport,
      emitter: replies?.storing(emitter) ?? emitter,
    });
  }

  /**
   * Sends nothing more. What is still queued for a slow client goes to the transport, which flushes it before it
   * closes.
   */
  #endOutput(reason: string): void {
    this.#emitter.mailbox.send({ type: 'close', reason });
  }

  #sessionClosed(reason: string): void {
    const { bus, sessions, subscriptions } = this.#services;
    const { client } = this;
    const actor = this.#session;
    if (client?.session && !this.#hibernates && bus.has('session.ended'))
      bus.emit('session.ended', { session: client.session.id, client, reason });
    this.#session = undefined;
    this.client = undefined;
    if (actor) {
      actor.stop(reason);
      subscriptions.send({ type: 'session closed', session: actor.mailbox });
    }
    sessions.remove(this.#id);
    if (this.#kind.session) bus.emit('connection.end', { connection: this.#id, reason });
  }
}

/** One connection put together: its door in, its in-flight table, its emitter, and the session of a legacy client. */
import { nanoid } from 'nanoid';
import type { ActorHost } from '../actors/actor.ts';
import { spawnEmitter } from '../actors/emitter.ts';
import { spawnRequests } from '../actors/requests.ts';
import { type OpenSession, spawnSession } from '../actors/session.ts';
import type { Bus } from '../bus.ts';
import type { Timer } from '../clock.ts';
import { Inbound } from '../inbound/inbound.ts';
import type { Introduction } from '../messages/answers.ts';
import type { ConnectionId } from '../messages/connection.ts';
import type { RequestMail } from '../messages/requests.ts';
import type { Limits, OperatorLog } from '../options.ts';
import type { Outbound } from '../outbound/outbound.ts';
import type { ServerCapabilities } from '../protocol/types.ts';

export interface ConnectionHost extends ActorHost {
  readonly bus: Bus;
  readonly limits: Limits;
  readonly outbound: Outbound;
  route(mail: RequestMail): void;
  introduction(): Introduction;
  offers(capability: keyof ServerCapabilities): boolean;
  incident(where: string, error: unknown): string;
  readonly log: OperatorLog;
  sessionOpened(id: string, session: OpenSession): void;
  sessionClosed(id: string): void;
  /** While draining, nothing is in flight on this connection any more. */
  idle(connection: ConnectionId): void;
}

/** What the server can do with a connection. */
export interface Connection {
  readonly inbound: Inbound;
  slow(): void;
  drained(): void;
  /** Takes no new requests; `idle` follows when none is in flight. */
  drain(): void;
  /** The client sends nothing more: answer what is in flight, within the grace time, then end the connection. */
  ended(): void;
  /** Ends what is in flight, and says so to the client. Nothing more is sent after that. */
  giveUp(reason: string): void;
  /** Ends what is in flight, then the session. Sends nothing more. */
  close(reason: string): void;
}

export function openConnection(id: ConnectionId, host: ConnectionHost): Connection {
  const { bus, limits, inspection } = host;
  const emitter = spawnEmitter({
    ...host,
    address: `emitter/${id}`,
    maxHeld: limits.maxHeld,
    gatherMs: limits.gatherMs,
    transmit(text, about) {
      if (inspection.on) inspection.record({ type: 'wire', connection: id, direction: 'out', text });
      bus.emit('connection.send', { connection: id, text, about });
    },
    droppedNotes: (count) =>
      host.log(
        'warning',
        `a client (connection ${id}) reads too slowly: ${count} notifications were dropped (limits.maxHeld)`,
      ),
    failed(error) {
      bus.emit('connection.end', {
        connection: id,
        reason: `the emitter failed (incident ${host.incident(`emitter/${id}`, error)})`,
      });
    },
  });
  let grace: Timer | undefined;
  const requests = spawnRequests({
    ...host,
    ...limits,
    address: `requests/${id}`,
    emitter: emitter.mailbox,
    idle() {
      if (grace) {
        letGo('the client has ended its input');
        bus.emit('connection.end', { connection: id, reason: 'the client has ended its input' });
      }
      host.idle(id);
    },
  });
  let session: OpenSession | undefined;
  /** Nothing more will be sent: what a slow client has yet to be sent goes to the transport, which flushes before it closes. */
  const letGo = (reason: string): void => emitter.mailbox.send({ type: 'close', reason });

  const inbound = new Inbound({
    ...limits,
    connection: id,
    inspection,
    requests: requests.mailbox,
    emitter: emitter.mailbox,
    principal: 'anonymous',
    session: () => session?.client,
    openSession(opening, dialect) {
      const sessionId = nanoid();
      const opened = spawnSession({
        ...host,
        id: sessionId,
        dialect,
        opening,
        principal: 'anonymous',
        requests: requests.mailbox,
        emitter: emitter.mailbox,
        maxSubscriptions: limits.maxSubscriptions,
        closed(reason) {
          session = undefined;
          opened.actor.stop(reason);
          host.sessionClosed(sessionId);
        },
      });
      session = opened;
      host.sessionOpened(sessionId, opened);
      return opened.client;
    },
    offers: host.offers,
    incident: host.incident,
  });

  return {
    inbound,
    slow: () => emitter.mailbox.send({ type: 'slow' }),
    drained: () => emitter.mailbox.send({ type: 'drained' }),
    drain: () => requests.mailbox.send({ type: 'drain' }),
    ended() {
      grace ??= host.clock.after(limits.graceMs, () =>
        requests.mailbox.send({ type: 'abandon', reason: 'the client has ended its input, and time is over' }),
      );
      requests.mailbox.send({ type: 'drain' });
    },
    giveUp(reason) {
      requests.mailbox.send({ type: 'abandon', reason });
      letGo(reason);
    },
    close(reason) {
      grace?.cancel();
      letGo(reason);
      requests.mailbox.send({ type: 'abandon', reason });
      session?.actor.mailbox.send({ type: 'close', reason });
      emitter.stop(reason);
      requests.stop(reason);
    },
  };
}

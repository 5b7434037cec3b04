/** The node's end of `troupe serve --nodes`: receives connections and orders from the parent process. */

import { url as inspectorUrl } from 'node:inspector';
import { Socket } from 'node:net';
import { hostname } from 'node:os';
import { type MetricsFormat, type MetricsPages, pagesOf } from '../../core/http/metrics-listener.ts';
import type { ConnectionReceiver, ConnectionSource } from '../../core/http/node-transport.ts';
import { systemClock } from '../../core/kernel/clock.ts';
import { DEFAULT_LIMITS } from '../../core/kernel/limits.ts';
import { nameNode } from '../../core/kernel/node-name.ts';
import { visibleLine } from '../../core/protocol/visible-text.ts';
import type { Transport, TransportHost } from '../../core/transports/transport.ts';
import type { Server } from '../../features/server/server.ts';
import { hardLimit } from '../serving/loop-watch.ts';
import { isNodeOrder, NODE_VARIABLE, type NodeIdentity, type NodeOrder, type NodeReport } from './fleet-messages.ts';

/** Maximum time in milliseconds for clients to move to another process before this one closes. */
const MOVE_MS = 2_000;
/** The interval between checks whether all clients have moved, and whether the server is ready, in milliseconds. */
const CHECK_MS = 50;

/**
 * The identity of this process. The processes that it starts do not inherit it.
 *
 * @returns undefined if this process is not a node of a fleet
 */
export function fleetIdentity(): NodeIdentity | undefined {
  const { [NODE_VARIABLE]: text } = process.env;
  delete process.env[NODE_VARIABLE];
  if (text === undefined || !process.send) return undefined;
  const identity: NodeIdentity = JSON.parse(text);
  return identity;
}

/** A transport without clients: it gives the HTTP transport of the same server its connections. */
export class FleetMember implements Transport {
  readonly name = 'fleet';
  /** The connections of the HTTP transport. */
  readonly source: ConnectionSource;
  readonly #end: (reason: string) => void;
  #host: TransportHost | undefined;
  #pages: MetricsPages | undefined;
  #receiver: ConnectionReceiver | undefined;
  #open = 0;
  /** Connections that have closed since the last report. */
  #closed = 0;

  /** @param end closes the server and ends the process; calls after the first have no effect */
  constructor({ name, address }: NodeIdentity, end: (reason: string) => void) {
    this.#end = end;
    this.source = {
      address,
      open: (receiver) => {
        this.#receiver = receiver;
      },
    };
    nameNode(`${hostname()}/${name}`);
    process.on('message', (message, socket) => {
      if (isNodeOrder(message)) this.#receive(message, socket instanceof Socket ? socket : undefined);
    });
    // The parent has exited, for whatever reason: no more connections will come.
    process.once('disconnect', () => end('the parent process has exited'));
  }

  open(host: TransportHost): void {
    this.#host = host;
    this.#pages = pagesOf(host);
  }

  /** Reports that the server serves, as soon as it is ready. @param lines instructions for connecting clients */
  serves(server: Server, lines: readonly string[], drainDelayMs: number): void {
    if (this.#host?.readiness().ready !== true)
      return void systemClock.after(CHECK_MS, () => this.serves(server, lines, drainDelayMs));
    const { info, options } = server;
    const closeMs = MOVE_MS + drainDelayMs + (options.limits?.graceMs ?? DEFAULT_LIMITS.graceMs);
    const shared = options.cluster !== undefined;
    this.#send({
      type: 'ready',
      server: `${visibleLine(info.name)} ${visibleLine(info.version)}`,
      lines,
      shared,
      closeMs,
      hardMs: hardLimit(options),
    });
  }

  async close(): Promise<void> {}

  #receive(order: NodeOrder, socket: Socket | undefined): void {
    switch (order.type) {
      case 'connection':
        return socket && this.#accept(order.id, socket);
      case 'replace':
        return this.#moveAway();
      case 'close':
        return this.#end(order.reason);
      case 'beat':
        return this.#send({ type: 'beat', debugged: inspectorUrl() !== undefined });
      case 'metrics': {
        const pages = this.#pages;
        return pages && void this.#answer(order.id, order.format, pages);
      }
    }
  }

  async #answer(id: number, format: MetricsFormat, pages: MetricsPages): Promise<void> {
    const [text, { document }] = await Promise.all([pages.metrics(format), pages.readiness()]);
    this.#send({ type: 'metrics', id, text, readiness: document });
  }

  #accept(id: number, socket: Socket): void {
    this.#send({ type: 'taken', id });
    this.#open += 1;
    const closed = (): void => {
      this.#open -= 1;
      this.#closed += 1;
      // One report for all that close in one turn.
      if (this.#closed === 1) systemClock.soon(() => this.#reportClosed());
    };
    if (this.#receiver) return this.#receiver.accept(socket, closed);
    socket.once('close', closed).destroy();
  }

  #reportClosed(): void {
    const count = this.#closed;
    this.#closed = 0;
    this.#send({ type: 'closed', count });
  }

  /** Lets the clients move, then closes. The connections that are left then have no request in flight, or carry streams. */
  #moveAway(): void {
    this.#receiver?.moveAway();
    const until = systemClock.now() + MOVE_MS;
    const look = (): void => {
      if (this.#open > 0 && systemClock.now() < until) return void systemClock.after(CHECK_MS, look);
      this.#receiver?.closeIdle();
      this.#end('a new process replaces this one');
    };
    look();
  }

  #send(report: NodeReport): void {
    // The event `disconnect` ends a process without a parent.
    if (process.connected) process.send?.(report, undefined, undefined, () => {});
  }
}

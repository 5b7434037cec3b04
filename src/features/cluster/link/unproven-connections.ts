/** The connections to the port of the links that have not proved themselves: bounded, the oldest is closed first. */
import type { Socket } from 'node:net';
import { networkOf } from '../../../core/http/host-guard.ts';
import type { Clock, Timer } from '../../../core/kernel/clock.ts';

/** Milliseconds in which a peer must prove that it has the secret. */
const HANDSHAKE_MS = 3_000;
/** Maximum number of connections of one address, so that it closes none of another, and of all. */
const MAX_OF_ADDRESS = 32;
const MAX_UNPROVEN = 256;

interface Unproven {
  readonly socket: Pick<Socket, 'destroy'>;
  readonly network: string;
  readonly late: Timer;
}

export class UnprovenConnections {
  readonly #clock: Clock;
  readonly #unproven = new Map<string, Unproven>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(socket: Socket): void {
    const key = keyOf(socket);
    const network = networkOf(socket.remoteAddress ?? '');
    this.#makeRoom(network);
    const late = this.#clock.after(HANDSHAKE_MS, () => socket.destroy());
    this.#unproven.set(key, { socket, network, late });
    // A peer that resets a connection may open the next one from the same port before the end of this one is reported.
    socket.once('close', () => this.#unproven.get(key)?.socket === socket && this.#remove(key));
  }

  #makeRoom(network: string): void {
    const all = [...this.#unproven];
    const same = all.filter(([, each]) => each.network === network);
    const crowd = same.length >= MAX_OF_ADDRESS ? same : all.length >= MAX_UNPROVEN ? all : [];
    for (const [key, { socket }] of crowd.slice(0, 1)) {
      this.#remove(key);
      socket.destroy();
    }
  }

  /** The peer of this connection has the secret. */
  proved(socket: Pick<Socket, 'remoteAddress' | 'remotePort'>): void {
    this.#remove(keyOf(socket));
  }

  /** Closes all: nothing of them is waited for. */
  close(): void {
    for (const { socket } of [...this.#unproven.values()]) socket.destroy();
  }

  #remove(key: string): void {
    this.#unproven.get(key)?.late.cancel();
    this.#unproven.delete(key);
  }
}

/** With TLS, HTTP/2 has another object for the same connection. */
function keyOf({ remoteAddress, remotePort }: Pick<Socket, 'remoteAddress' | 'remotePort'>): string {
  return `${remoteAddress} ${remotePort}`;
}

/**
 * Ends connections whose requests were not read completely: half-closes them and continues to read for a while, so that
 * the response reaches a client that is still sending. If a connection closes with unread bytes, it is reset, and the
 * response may be lost.
 *
 * @see RFC 9112 section 9.6, "Tear-down"
 */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { type Clock, systemClock, type Timer } from '../kernel/clock.ts';

/** Maximum number of lingering connections; further ones are closed as Node closes them. */
const MAX_LINGERING = 1_024;
/** Maximum number of bytes that are read and discarded on one connection. */
const MAX_BYTES = 64 * 1024 * 1024;
/** Time limits, in milliseconds, for a pause without bytes and for the whole lingering. */
const IDLE_MS = 5_000;
const TOTAL_MS = 30_000;

/** The state of one lingering connection. */
interface Lingering {
  /** Milliseconds of the server's clock. */
  readonly since: number;
  readonly bytesAtStart: number;
  bytesAtLastLook: number;
  timer: Timer;
}

export class LingeringClose {
  /** The connections whose last response was sent: bytes that follow are not a request. */
  readonly sockets = new Map<Socket, Lingering>();
  #clock = systemClock;

  /** Sets the server's own clock, once there is a server. */
  open(clock: Clock): void {
    this.#clock = clock;
  }

  /**
   * Prepares a connection to linger after the response to this request.
   *
   * @param request the last request of its connection, as its response announces
   */
  arrange(request: IncomingMessage): void {
    const { socket } = request;
    if (this.sockets.size >= MAX_LINGERING) return;
    // Node calls this after the last response of a connection. Node's version destroys the socket with its unread
    // bytes.
    socket.destroySoon = () => this.begin(socket);
    request.on('data', () => this.look(socket));
  }

  /** Half-closes a connection after the written bytes and continues to read. */
  begin(socket: Socket): void {
    if (socket.destroyed || this.sockets.has(socket)) return;
    const clock = this.#clock;
    if (this.sockets.size >= MAX_LINGERING) return void socket.end(() => socket.destroy());
    socket.end();
    const { bytesRead } = socket;
    this.sockets.set(socket, {
      since: clock.now(),
      bytesAtStart: bytesRead,
      bytesAtLastLook: bytesRead,
      timer: clock.after(IDLE_MS, () => this.#tick(socket, clock)),
    });
    socket.once('close', () => {
      this.sockets.get(socket)?.timer.cancel();
      this.sockets.delete(socket);
    });
    socket.resume();
  }

  /** Checks a connection that received more bytes. Closes it if they exceed the limits. */
  look(socket: Socket): void {
    const lingering = this.sockets.get(socket);
    if (lingering && socket.bytesRead - lingering.bytesAtStart > MAX_BYTES) socket.destroy();
  }

  #tick(socket: Socket, clock: Clock): void {
    const lingering = this.sockets.get(socket);
    if (!lingering) return;
    const silent = socket.bytesRead === lingering.bytesAtLastLook;
    if (silent || clock.now() - lingering.since >= TOTAL_MS) return void socket.destroy();
    lingering.bytesAtLastLook = socket.bytesRead;
    lingering.timer = clock.after(IDLE_MS, () => this.#tick(socket, clock));
  }
}

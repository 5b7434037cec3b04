/**
 * Ends connections whose requests were not read to their end: half-closes, and reads on for a while, so that the response reaches
 * a client that is still sending. A connection that is closed with bytes unread is reset, and the response may be lost with it.
 *
 * @see RFC 9112 section 9.6, "Tear-down"
 */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { type Clock, systemClock, type Timer } from '../../clock.ts';

/** Most connections that are read on at once; the next is closed as Node closes it. */
const MAX_LINGERING = 1_024;
/** Most bytes of one connection that are read and discarded. */
const MAX_BYTES = 64 * 1024 * 1024;
/** Milliseconds for which a client may send nothing, and for which it may send at all. */
const IDLE_MS = 5_000;
const TOTAL_MS = 30_000;

/** What is read on one connection. */
interface Lingering {
  /** Milliseconds of the server's clock. */
  readonly since: number;
  readonly bytesAtStart: number;
  bytesAtLastLook: number;
  timer: Timer;
}

export class LingeringClose {
  readonly #lingering = new Map<Socket, Lingering>();
  #clock = systemClock;

  /** The server's own clock, once there is a server. */
  open(clock: Clock): void {
    this.#clock = clock;
  }

  /** Whether the last response of this connection was sent: nothing that comes on it is a request any more. */
  has(socket: Socket): boolean {
    return this.#lingering.has(socket);
  }

  /**
   * Has a connection end so, once the response to this request is written.
   *
   * @param request the last one of its connection, as its response says
   */
  arrange(request: IncomingMessage): void {
    const { socket } = request;
    if (this.#lingering.size >= MAX_LINGERING) return;
    // Node calls this when the last response of a connection is written. Its own destroys the socket then, whatever is unread.
    socket.destroySoon = () => this.begin(socket);
    request.on('data', () => this.look(socket));
  }

  /** Half-closes a connection after what was written to it, and reads on. */
  begin(socket: Socket): void {
    if (socket.destroyed || this.#lingering.has(socket)) return;
    const clock = this.#clock;
    if (this.#lingering.size >= MAX_LINGERING) return void socket.end(() => socket.destroy());
    socket.end();
    const { bytesRead } = socket;
    this.#lingering.set(socket, {
      since: clock.now(),
      bytesAtStart: bytesRead,
      bytesAtLastLook: bytesRead,
      timer: clock.after(IDLE_MS, () => this.#tick(socket, clock)),
    });
    socket.once('close', () => {
      this.#lingering.get(socket)?.timer.cancel();
      this.#lingering.delete(socket);
    });
    socket.resume();
  }

  /** More has come on a connection. Drops it once that is too much. */
  look(socket: Socket): void {
    const lingering = this.#lingering.get(socket);
    if (lingering && socket.bytesRead - lingering.bytesAtStart > MAX_BYTES) socket.destroy();
  }

  #tick(socket: Socket, clock: Clock): void {
    const lingering = this.#lingering.get(socket);
    if (!lingering) return;
    const silent = socket.bytesRead === lingering.bytesAtLastLook;
    if (silent || clock.now() - lingering.since >= TOTAL_MS) return void socket.destroy();
    lingering.bytesAtLastLook = socket.bytesRead;
    lingering.timer = clock.after(IDLE_MS, () => this.#tick(socket, clock));
  }
}

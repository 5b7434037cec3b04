/** The channel to a server behind a unix socket (a named pipe on Windows). */
import { connect, type Socket } from 'node:net';
import { messageOf } from '../../core/protocol/json.ts';
import type { LineWriter } from '../../core/transports/line-writer.ts';
import { checkSocket } from '../../core/transports/socket-path.ts';
import { LineChannel, type LineChannelOptions } from './line-channel.ts';

/** Milliseconds for the server to close its side. */
const CLOSE_MS = 2_000;

export class SocketChannel extends LineChannel {
  readonly #path: string;
  #socket: Socket | undefined;

  constructor(path: string, options: LineChannelOptions) {
    super(options);
    this.#path = path;
  }

  protected connect(): void {
    let socket: Socket;
    try {
      socket = connect(checkSocket(this.#path));
    } catch (error) {
      // A socket of another user stays one; a missing directory may appear.
      const missing = error instanceof Error && 'code' in error && error.code === 'ENOENT';
      return this.options.clock.soon(() =>
        this.gone(
          { reason: missing ? 'unreachable' : 'refused', message: messageOf(error), carriedOut: 'no' },
          !missing,
        ),
      );
    }
    this.#socket = socket;
    let open = false;
    let problem: Error | undefined;
    socket.on('connect', () => {
      open = true;
      this.opened({ input: socket, output: socket });
    });
    socket.on('error', (error) => {
      problem = error;
    });
    socket.on('close', () => {
      const why = problem ? `: ${problem.message}` : '';
      this.gone(
        open
          ? { reason: 'closed', message: `the server closed the connection${why}`, carriedOut: 'unknown' }
          : { reason: 'unreachable', message: `nothing listens at the socket${why}`, carriedOut: 'no' },
      );
    });
  }

  protected async disconnect(writer: LineWriter | undefined): Promise<void> {
    const socket = this.#socket;
    if (!socket || socket.destroyed) return;
    void writer?.flush().then(() => socket.end());
    await new Promise<void>((resolve) => {
      const late = this.options.clock.after(CLOSE_MS, () => socket.destroy());
      socket.on('close', () => {
        late.cancel();
        resolve();
      });
      if (!writer) socket.end();
    });
  }
}

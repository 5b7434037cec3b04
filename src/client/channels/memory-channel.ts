/** The channel to a server inside the process. */
import type { Clock } from '../../core/kernel/clock.ts';
import type { MemoryPeer } from '../../core/transports/memory.ts';
import type { Channel, ChannelHost, OutgoingMessage } from './channel.ts';

interface MemoryChannelOptions {
  readonly clock: Clock;
  /** Connects to the server; rejects if the server is closed. */
  connect(): Promise<Pick<MemoryPeer, 'send' | 'onText' | 'close' | 'closed'>>;
}

export class MemoryChannel implements Channel {
  readonly kind = 'stream';
  readonly #options: MemoryChannelOptions;
  #peer: Pick<MemoryPeer, 'send' | 'onText' | 'close' | 'closed'> | undefined;
  #host: ChannelHost | undefined;

  constructor(options: MemoryChannelOptions) {
    this.#options = options;
  }

  open(host: ChannelHost): void {
    this.#host = host;
    this.#options.connect().then(
      (peer) => {
        this.#peer = peer;
        if (!this.#host) return peer.close();
        peer.onText((text) => this.#host?.send({ type: 'text', text, about: undefined }));
        void peer.closed.then((reason) => this.#gone(reason));
        this.#host.send({ type: 'opened' });
      },
      (error: unknown) => this.#gone(error instanceof Error ? error.message : String(error)),
    );
  }

  send({ text }: OutgoingMessage): void {
    try {
      this.#peer?.send(text);
    } catch {
      // The peer is closed; its `closed` promise reports that.
    }
  }

  async close(): Promise<void> {
    this.#host = undefined;
    const peer = this.#peer;
    this.#peer = undefined;
    if (!peer) return;
    peer.close();
    await peer.closed;
  }

  #gone(reason: string): void {
    const host = this.#host;
    const carriedOut = this.#peer ? 'unknown' : 'no';
    this.#host = undefined;
    this.#peer = undefined;
    host?.send({
      type: 'gone',
      failure: { reason: 'closed', message: `the connection ended: ${reason}`, carriedOut },
      final: false,
    });
  }
}

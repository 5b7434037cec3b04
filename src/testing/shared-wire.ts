/** The channel of a typed client that shares its wire with the raw requests of a test. */
import type { Channel, ChannelHost, OutgoingMessage } from '../client/channels/channel.ts';
import type { JsonObject } from '../core/protocol/json.ts';

/** The wire of the test client, as this channel uses it. */
interface SharedWire {
  /** Sends a text, and records it. @throws {Error} if the connection is closed */
  raw(text: string): void;
}

export class SharedWireChannel implements Channel {
  readonly kind = 'stream';
  readonly #wire: SharedWire;
  readonly #session: JsonObject | undefined;
  #host: ChannelHost | undefined;
  /** Texts that arrived before the typed client opened the channel. */
  #early: string[] = [];
  /** The reason for the end of the connection. It may end before the typed client opens the channel. */
  #ended: string | undefined;

  /** @param session the result of `initialize` of a session that the test has opened: it is not opened twice */
  constructor(wire: SharedWire, session: JsonObject | undefined) {
    this.#wire = wire;
    this.#session = session;
  }

  open(host: ChannelHost): void {
    this.#host = host;
    host.send({ type: 'opened' });
    for (const text of this.#early.splice(0)) this.receive(text);
    if (this.#ended !== undefined) this.end(this.#ended);
  }

  send({ text, method, id }: OutgoingMessage): void {
    if (this.#session && method === 'notifications/initialized') return;
    if (this.#session && method === 'initialize')
      return this.receive(JSON.stringify({ jsonrpc: '2.0', id: id ?? null, result: this.#session }));
    try {
      this.#wire.raw(text);
    } catch (error) {
      this.end(error instanceof Error ? error.message : String(error));
    }
  }

  /** A text of the server for the typed client. */
  receive(text: string): void {
    if (this.#host) this.#host.send({ type: 'text', text, about: undefined });
    else this.#early.push(text);
  }

  /** The connection has ended. */
  end(reason: string): void {
    const host = this.#host;
    this.#host = undefined;
    this.#ended ??= reason;
    host?.send({ type: 'gone', failure: { reason: 'closed', message: reason, carriedOut: 'unknown' }, final: true });
  }

  async close(): Promise<void> {
    this.#host = undefined;
  }
}

/** HTTP+SSE of 2024-11-05: a GET whose stream carries all messages of the server, and a path for POST. */
import type { ConnectionId } from '../../messages/connection-events.ts';
import { EVENT_STREAM } from './event-stream.ts';
import type { Headers, HttpListener, HttpResponse } from './http-message.ts';
import type { Open } from './open-list.ts';
import { KEEP_ALIVE, namedEventText } from './sse.ts';
import { StallDetector } from './stall-detector.ts';

export interface SseStreamDeps {
  /** Reports that the client reads slowly, or that it has caught up. */
  pace(connection: ConnectionId, reader: 'connection', slow: boolean): void;
  /** The client disconnected. */
  gone(stream: SseStream): void;
}

export interface SseStreamOptions {
  /** Unguessable: anyone who knows it can act as this client. */
  readonly id: string;
  readonly connection: ConnectionId;
  readonly principal: string;
  readonly endsAt: number;
  readonly response: HttpResponse;
}

export class SseStream implements HttpListener, Open {
  before: Open | undefined;
  after: Open | undefined;
  readonly id: string;
  readonly connection: ConnectionId;
  readonly principal: string;
  /** Each POST of its client extends it. */
  endsAt: number;
  readonly #response: HttpResponse;
  readonly #host: SseStreamDeps;
  readonly #stall = new StallDetector();

  constructor({ id, connection, principal, endsAt, response }: SseStreamOptions, host: SseStreamDeps) {
    this.id = id;
    this.connection = connection;
    this.principal = principal;
    this.endsAt = endsAt;
    this.#response = response;
    this.#host = host;
    response.listener = this;
  }

  /** @param endpoint the address for the client's POST requests (2024-11-05 basic/transports, "HTTP with SSE") */
  begin(endpoint: string, headers: Headers): void {
    this.#response.begin(200, { ...EVENT_STREAM, ...headers });
    this.#response.write(namedEventText('endpoint', endpoint));
  }

  send(text: string): void {
    if (!this.#response.write(namedEventText('message', text))) this.#host.pace(this.connection, 'connection', true);
  }

  end(): void {
    this.#response.end();
  }

  /** Disconnects the client without another byte. */
  cut(): void {
    this.#response.destroy();
  }

  tend(now: number, _keepAliveMs: number, stallMs: number): boolean {
    if (this.#stall.stalled(this.#response.pending, now, stallMs)) {
      this.#response.destroy();
      return false;
    }
    if (this.#response.pending === 0) this.#response.write(KEEP_ALIVE);
    return true;
  }

  /** Its session ends with it: this transport cannot resume one. */
  expire(): void {
    this.end();
  }

  drained(): void {
    this.#stall.moved();
    this.#host.pace(this.connection, 'connection', false);
  }

  closed(): void {
    this.#host.gone(this);
  }
}

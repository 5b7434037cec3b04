/** HTTP+SSE of 2024-11-05: a GET whose stream carries all messages of the server, and a path for POST. */
import type { ConnectionId } from '../messages/connection-events.ts';
import type { TransportHost } from '../transports/transport.ts';
import { EVENT_STREAM, reportPace } from './event-stream.ts';
import type { Headers, HttpResponse } from './http-message.ts';
import { OpenResponse } from './open-responses.ts';
import { namedEventText } from './sse.ts';

export interface SseStreamHost {
  readonly host: Pick<TransportHost, 'bus'>;
  /** The client disconnected. */
  gone(stream: SseStream): void;
}

interface SseStreamOptions {
  /** Unguessable: anyone who knows it can act as this client. */
  readonly id: string;
  readonly connection: ConnectionId;
  readonly principal: string;
  readonly endsAt: number;
  readonly response: HttpResponse;
}

export class SseStream extends OpenResponse {
  readonly id: string;
  readonly connection: ConnectionId;
  readonly principal: string;
  readonly #connections: SseStreamHost;

  constructor({ id, connection, principal, endsAt, response }: SseStreamOptions, connections: SseStreamHost) {
    super(response, endsAt);
    this.id = id;
    this.connection = connection;
    this.principal = principal;
    this.#connections = connections;
    response.listener = this;
  }

  /** @param endpoint the address for the client's POST requests (2024-11-05 basic/transports, "HTTP with SSE") */
  begin(endpoint: string, headers: Headers): void {
    this.response.begin(200, { ...EVENT_STREAM, ...headers });
    this.response.write(namedEventText('endpoint', endpoint));
  }

  send(text: string): void {
    if (!this.response.write(namedEventText('message', text))) this.#pace(true);
  }

  end(): void {
    this.response.end();
  }

  /** Its session ends with it: this transport cannot resume one. */
  expire(): void {
    this.end();
  }

  override drained(): void {
    super.drained();
    this.#pace(false);
  }

  #pace(slow: boolean): void {
    reportPace(this.#connections.host.bus, this.connection, 'connection', slow);
  }

  closed(): void {
    this.#connections.gone(this);
  }
}

/** HTTP+SSE of 2024-11-05: a GET whose stream carries everything that the server says, and a path to POST to. */
import type { ConnectionId } from '../../messages/connection.ts';
import { EVENT_STREAM } from './event-stream.ts';
import type { Headers, HttpResponse, Listener } from './message.ts';
import type { Open } from './open-list.ts';
import { KEEP_ALIVE, namedEventText } from './sse.ts';
import { Stall } from './stall.ts';

export interface OldStreamHost {
  /** Says that the client reads slowly, or has caught up. */
  pace(connection: ConnectionId, reader: 'connection', slow: boolean): void;
  /** The client is gone. */
  gone(stream: OldStream): void;
}

export interface OldStreamOptions {
  /** Unguessable: whoever knows it can speak as this client. */
  readonly id: string;
  readonly connection: ConnectionId;
  readonly principal: string;
  readonly response: HttpResponse;
}

export class OldStream implements Listener, Open {
  before: Open | undefined;
  after: Open | undefined;
  readonly id: string;
  readonly connection: ConnectionId;
  readonly principal: string;
  readonly #response: HttpResponse;
  readonly #host: OldStreamHost;
  readonly #stall = new Stall();

  constructor({ id, connection, principal, response }: OldStreamOptions, host: OldStreamHost) {
    this.id = id;
    this.connection = connection;
    this.principal = principal;
    this.#response = response;
    this.#host = host;
    response.listener = this;
  }

  /** @param endpoint where the client is to POST to (2024-11-05 basic/transports, "HTTP with SSE") */
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

  tend(now: number, _keepAliveMs: number, stallMs: number): boolean {
    if (this.#stall.stalled(this.#response.pending, now, stallMs)) {
      this.#response.destroy();
      return false;
    }
    if (this.#response.pending === 0) this.#response.write(KEEP_ALIVE);
    return true;
  }

  drained(): void {
    this.#stall.moved();
    this.#host.pace(this.connection, 'connection', false);
  }

  closed(): void {
    this.#host.gone(this);
  }
}

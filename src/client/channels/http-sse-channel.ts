/** The channel of HTTP+SSE (2024-11-05): one stream from the server, whose first event names the address for POSTs. */

import type { Agent, ClientRequest } from 'node:http';
import type { Timer } from '../../core/kernel/clock.ts';
import { durationOf } from '../../core/kernel/duration.ts';
import type { RequestId } from '../../core/protocol/jsonrpc.ts';
import type { Channel, ChannelFailure, ChannelHost, OutgoingMessage } from './channel.ts';
import { EventReader } from './event-reader.ts';
import type { HttpChannelOptions } from './http-channel.ts';
import { cut, excerpt, readExcerpt, rejectionOf } from './http-failures.ts';
import { discard, HttpOrigin, type OriginResponse } from './http-origin.ts';

export class HttpSseChannel implements Channel {
  readonly kind = 'stream';
  readonly #options: HttpChannelOptions;
  readonly #agent: Agent;
  readonly #origin: HttpOrigin;
  #host: ChannelHost | undefined;
  #stream: ClientRequest | undefined;
  /** POSTs without a response. */
  readonly #posts = new Map<RequestId, ClientRequest>();
  /** The address for POSTs, as the server named it. */
  #endpoint: URL | undefined;

  constructor(options: HttpChannelOptions) {
    this.#options = options;
    this.#agent = new options.nodeHttp.Agent({ keepAlive: true });
    this.#origin = new HttpOrigin({
      ...options,
      agent: this.#agent,
      tokenRejected: (challenge) => this.#host?.send({ type: 'token rejected', challenge }),
    });
  }

  open(host: ChannelHost): void {
    this.#host = host;
    this.#connect();
  }

  /** The connection sends `notifications/cancelled`: all responses share the stream. */
  abandon(id: RequestId): void {
    this.#posts.get(id)?.destroy();
  }

  authorized(): void {
    this.#origin.authorized();
  }

  close(): Promise<void> {
    this.#host = undefined;
    this.#stream?.destroy();
    this.#agent.destroy();
    return Promise.resolve();
  }

  #connect(): void {
    const { clock, connectMs, authorization } = this.#options;
    let late: Timer | undefined;
    this.#origin.send({
      method: 'GET',
      ofSession: true,
      authorization,
      headers: () => ({ accept: 'text/event-stream' }),
      wanted: () => this.#host !== undefined,
      started: (stream) => {
        this.#stream = stream;
        late ??= clock.after(connectMs, () => {
          this.#gone({
            reason: 'unreachable',
            message: `expected the event "endpoint" within ${durationOf(connectMs)}`,
            carriedOut: 'no',
          });
          this.#stream?.destroy();
        });
      },
      response: (response) => {
        const { status, type } = response;
        if (status === 200 && (type === 'text/event-stream' || type === ''))
          return this.#read(response, () => late?.cancel());
        late?.cancel();
        readExcerpt(response, clock, (text) => {
          const failure = rejectionOf(response, text, false, clock.date());
          // A server that is overloaded or restarts gets another attempt.
          if (failure.kind === 'unauthorized' || status === 429 || status >= 500) return this.#gone(failure);
          this.#gone(
            {
              reason: 'not mcp',
              message: `expected an MCP server, but the address rejects "initialize" by POST, and a GET responds with HTTP ${status} and ${type || 'no content type'}${excerpt(text)}. Check the address`,
              carriedOut: 'no',
            },
            true,
          );
        });
      },
      failed: (failure) => {
        late?.cancel();
        this.#gone(failure);
      },
    });
  }

  #read(response: OriginResponse, opened: () => void): void {
    const { maxMessageBytes } = this.#options;
    const { body, url } = response;
    const reader = new EventReader({
      maxBytes: maxMessageBytes,
      onEvent: (type, data) => {
        if (type === 'message') return this.#host?.send({ type: 'text', text: data, about: undefined });
        if (type !== 'endpoint') return;
        const endpoint = URL.canParse(data, url.href) ? new URL(data, url) : undefined;
        // Headers and tokens belong to one origin (2024-11-05 transports: the endpoint may be any address).
        if (endpoint?.origin !== url.origin) {
          response.destroy();
          return this.#gone(
            {
              reason: 'refused',
              message: `expected an endpoint at ${url.origin}, the server named ${data.slice(0, 200)}`,
              carriedOut: 'no',
            },
            true,
          );
        }
        this.#endpoint = endpoint;
        opened();
        this.#host?.send({ type: 'opened', era: 'legacy' });
      },
      // All responses share the stream: one that is too long ends its own request.
      onSkipped: (envelope, bytes) => this.#host?.send({ type: 'dropped', envelope, bytes }),
    });
    reader.follow(body);
    body.on('close', () => {
      opened();
      this.#gone({
        ...cut('unknown', body.errored),
        message: 'the server closed the event stream',
        carriedOut: 'unknown',
      });
    });
  }

  send({ text, id, method, authorization = this.#options.authorization }: OutgoingMessage): void {
    const endpoint = this.#endpoint;
    const fail = (failure: ChannelFailure): void => {
      if (id !== undefined) this.#host?.send({ type: 'request failed', id, failure });
      else if (failure.kind === undefined && this.#host)
        this.#options.log('warning', `${method} was lost: ${failure.message}`);
    };
    if (!endpoint) return fail({ reason: 'closed', message: 'the event stream is not open', carriedOut: 'no' });
    this.#origin.send({
      method: 'POST',
      ofSession: true,
      url: endpoint,
      body: text,
      authorization,
      waitsForToken: id === undefined,
      headers: () => ({ 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
      wanted: () => this.#host !== undefined,
      lateMs: id === undefined ? this.#options.connectMs : undefined,
      started: (request) => {
        if (id === undefined) return;
        this.#posts.set(id, request);
        request.on('close', () => this.#posts.delete(id));
      },
      response: (response) => {
        if (response.status < 300) return discard(response.body);
        const { clock } = this.#options;
        readExcerpt(response, clock, (why) => fail(rejectionOf(response, why, method !== 'initialize', clock.date())));
      },
      failed: fail,
    });
  }

  #gone(failure: ChannelFailure, final = false): void {
    const host = this.#host;
    this.#host = undefined;
    host?.send({ type: 'gone', failure, final });
  }
}

/** The channel of HTTP+SSE (2024-11-05): one stream from the server, whose first event names the address for POSTs. */
import type { Agent, ClientRequest, IncomingMessage } from 'node:http';
import { createParser } from 'eventsource-parser';
import type { RequestId } from '../../protocol/jsonrpc.ts';
import type { CallFailure } from '../client-errors.ts';
import type { Channel, ChannelHost, OutgoingMessage } from './channel.ts';
import { addressOf, type HttpChannelOptions } from './http-channel.ts';

export class HttpSseChannel implements Channel {
  readonly kind = 'stream';
  readonly #options: HttpChannelOptions;
  readonly #agent: Agent;
  #host: ChannelHost | undefined;
  #stream: ClientRequest | undefined;
  /** The address for POSTs, as the server named it. */
  #endpoint: URL | undefined;

  constructor(options: HttpChannelOptions) {
    this.#options = options;
    this.#agent = new options.nodeHttp.Agent({ keepAlive: true });
  }

  open(host: ChannelHost): void {
    this.#host = host;
    void this.#connect();
  }

  send(message: OutgoingMessage): void {
    void this.#post(message);
  }

  abandon(_id: RequestId): void {
    // The connection sends `notifications/cancelled`: all responses share the stream.
  }

  answered(_id: RequestId): void {
    // All responses share the stream.
  }

  close(): Promise<void> {
    this.#host = undefined;
    this.#stream?.destroy();
    this.#agent.destroy();
    return Promise.resolve();
  }

  async #connect(): Promise<void> {
    const { url, headers, clock, connectMs, authorization: signIn } = this.#options;
    let authorization: Readonly<Record<string, string>> | undefined;
    try {
      authorization = await signIn?.headers('GET', url);
    } catch (error) {
      return this.#gone({ reason: 'unauthorized', message: String(error), carriedOut: 'no' });
    }
    if (!this.#host) return;
    const stream = this.#start('GET', url, { ...headers, ...authorization, accept: 'text/event-stream' });
    this.#stream = stream;
    const late = clock.after(connectMs, () => {
      this.#gone({
        reason: 'unreachable',
        message: `expected the event "endpoint" within ${connectMs} ms`,
        carriedOut: 'no',
      });
      stream.destroy();
    });
    stream.on('response', (response) => {
      response.on('error', () => {});
      if (response.statusCode !== 200) {
        late.cancel();
        response.resume();
        return this.#gone(
          {
            reason: 'not mcp',
            message: `expected an MCP server, but the address rejects "initialize" by POST, and a GET responds with HTTP ${response.statusCode}. Check the address`,
            carriedOut: 'no',
          },
          true,
        );
      }
      this.#read(response, () => late.cancel());
    });
    stream.on('error', (error) => {
      late.cancel();
      this.#gone({
        reason: 'unreachable',
        message: `cannot be reached: ${error.message}`,
        carriedOut: 'no',
        cause: error,
      });
    });
    stream.end();
  }

  #read(response: IncomingMessage, opened: () => void): void {
    const { url, maxMessageBytes } = this.#options;
    const decoder = new TextDecoder();
    const parser = createParser({
      maxBufferSize: maxMessageBytes,
      onEvent: ({ event, data }) => {
        if (event === 'endpoint') {
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
        } else if (data !== '') this.#host?.send({ type: 'text', text: data, about: undefined });
      },
      onError: (error) => {
        if (error.type === 'max-buffer-size-exceeded') response.destroy();
      },
    });
    response.on('data', (chunk: Buffer) => {
      if (!response.destroyed) parser.feed(decoder.decode(chunk, { stream: true }));
    });
    response.on('close', () => {
      opened();
      this.#gone({ reason: 'closed', message: 'the server closed the event stream', carriedOut: 'unknown' });
    });
  }

  async #post({ text, id }: OutgoingMessage): Promise<void> {
    const { headers, authorization: signIn } = this.#options;
    const endpoint = this.#endpoint;
    const fail = (failure: CallFailure): void => {
      if (id !== undefined) this.#host?.send({ type: 'request failed', id, failure });
    };
    if (!endpoint) return fail({ reason: 'closed', message: 'the event stream is not open', carriedOut: 'no' });
    try {
      const authorization = await signIn?.headers('POST', endpoint, this.#options.url);
      if (!this.#host) return;
      const request = this.#start('POST', endpoint, {
        ...headers,
        ...authorization,
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(text),
      });
      request.on('response', (response) => {
        response.on('error', () => {});
        response.resume();
        const status = response.statusCode ?? 0;
        if (status >= 300)
          fail({
            reason: 'refused',
            message: `the server responded with HTTP ${status}`,
            carriedOut: status >= 500 ? 'unknown' : 'no',
          });
      });
      request.on('error', (error) =>
        fail({ reason: 'closed', message: `the request broke: ${error.message}`, carriedOut: 'unknown', cause: error }),
      );
      request.end(text);
    } catch (error) {
      fail({ reason: 'unauthorized', message: String(error), carriedOut: 'no' });
    }
  }

  #start(method: string, url: URL, headers: Record<string, string | number>): ClientRequest {
    return this.#options.nodeHttp.request({ ...addressOf(url), method, headers, agent: this.#agent });
  }

  #gone(failure: CallFailure, final = false): void {
    const host = this.#host;
    this.#host = undefined;
    host?.send({ type: 'gone', failure, final });
  }
}

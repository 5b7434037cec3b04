/** The HTTP transport without its own server: it serves the requests that another server passes to it. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { PageAddress, Transport, TransportHost } from '../transports/transport.ts';
import { Endpoint } from './endpoint.ts';
import { authenticates, type HttpOptions, resolveHttpOptions } from './http-options.ts';
import { LingeringClose } from './lingering.ts';
import { NodeRequest } from './node-request.ts';
import { WebRequest } from './web-request.ts';

export class MountedTransport implements Transport {
  readonly name = 'http';
  readonly authenticates: boolean;
  readonly drainDelayMs: number;
  readonly #endpoint: Endpoint;
  readonly #lingering = new LingeringClose();

  /** @throws {TypeError | RangeError} for an invalid option */
  constructor(options: HttpOptions) {
    const resolved = resolveHttpOptions(options);
    this.authenticates = authenticates(resolved);
    this.drainDelayMs = resolved.drainDelayMs;
    // The mount cannot determine if other machines can reach it. Without a list, only loopback names pass.
    this.#endpoint = new Endpoint({ ...resolved, loopback: !resolved.allowedHosts, mounted: true });
  }

  async open(host: TransportHost): Promise<void> {
    this.#lingering.open(host.clock);
    await this.#endpoint.open(host);
  }

  pageAddress(path: string): PageAddress | undefined {
    return this.#endpoint.pageAddress(path, undefined);
  }

  stopAccepting(): void {
    this.#endpoint.drain();
  }

  close(): Promise<void> {
    return this.#endpoint.close();
  }

  fetch(request: Request): Promise<Response> {
    const incoming = new WebRequest(request);
    this.#endpoint.handle(incoming);
    return incoming.response.answered;
  }

  node(request: IncomingMessage, response: ServerResponse): void {
    // RFC 9112 section 9.6: a server that has sent "close" processes no further request of that connection.
    if (this.#lingering.sockets.has(request.socket)) return;
    const lingering = this.#lingering;
    this.#endpoint.handle(new NodeRequest(request, response, { lingering, mounted: { url: originalUrl(request) } }));
  }
}

/** Connect and Express remove the mount path from a request's url and store the whole as `originalUrl`. */
function originalUrl(request: IncomingMessage): string | undefined {
  return 'originalUrl' in request && typeof request.originalUrl === 'string' ? request.originalUrl : undefined;
}

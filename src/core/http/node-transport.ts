/**
 * The HTTP transport: Streamable HTTP of every revision, and HTTP+SSE of 2024-11-05, on one path of its own `node:http`
 * server.
 */

import { Buffer } from 'node:buffer';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { durationOf } from '../kernel/duration.ts';
import { ErrorCode } from '../protocol/errors.ts';
import type { PageAddress, Transport, TransportHost } from '../transports/transport.ts';
import { Endpoint } from './endpoint.ts';
import { isLoopback } from './host-guard.ts';
import {
  authenticates,
  type HttpOptions,
  type ResolvedHttpOptions,
  resolveHttpOptions,
  withShared,
} from './http-options.ts';
import { LingeringClose } from './lingering.ts';
import { listenOn } from './listen-on.ts';
import { MetricsListener } from './metrics-listener.ts';
import { NodeRequest } from './node-request.ts';

/** Time limits, in milliseconds, for the headers of a request and for the whole request. */
const HEADERS_MS = 10_000;
const REQUEST_MS = 30_000;
/** Interval at which Node checks for clients that exceed the limits. */
const CHECK_MS = 5_000;
/** Maximum length of request line and headers, in bytes on the wire. */
const MAX_HEADER_BYTES = 16 * 1024;
/** Milliseconds that clients have to read finished responses when the server closes. */
const FLUSH_MS = 2_000;

const HEADER_LIMIT = `; the limit is ${MAX_HEADER_BYTES}. Send fewer or shorter headers`;

interface Unparsed {
  readonly status: string;
  readonly message: string;
}

const NOT_HTTP: Unparsed = { status: '400 Bad Request', message: 'expected an HTTP/1.1 request, got something else' };
/** The responses to bytes that Node cannot parse, by Node's error codes. */
const UNPARSED: ReadonlyMap<string | undefined, Unparsed> = new Map([
  [
    'HPE_HEADER_OVERFLOW',
    { status: '431 Request Header Fields Too Large', message: `the headers are too long${HEADER_LIMIT}` },
  ],
  [
    'HPE_CHUNK_EXTENSIONS_OVERFLOW',
    { status: '413 Payload Too Large', message: 'the chunk extensions are too long. Send chunks without extensions' },
  ],
  [
    'ERR_HTTP_REQUEST_TIMEOUT',
    {
      status: '408 Request Timeout',
      message: `the request took too long. The limit is ${durationOf(HEADERS_MS)} for the headers and ${durationOf(REQUEST_MS)} for the whole request`,
    },
  ],
]);

export interface HttpTransport extends Transport {
  /** The address that is bound. @throws {Error} before the transport is open */
  readonly url: string;
  /**
   * The address for clients: that of the protected resource (RFC 9728), or one with the first name of `allowedHosts`. Bound to
   * loopback, a proxy has that name, and speaks https. @throws {Error} before the transport is open
   */
  readonly clientUrl: string;
  /** The address for Prometheus; undefined without the option `metrics`, and before the transport is open. */
  readonly metricsUrl: string | undefined;
}

/** Members of a transport of `http()`, also of another copy of this package. */
const RELOCATE = Symbol.for('troupe.http.relocate');
const RECEIVE = Symbol.for('troupe.http.receive');

/**
 * A transport of `http()` from the view of `troupe serve --http`: the program decides how it serves, the command
 * decides where.
 */
interface RelocatableTransport extends HttpTransport {
  /** Replaces its options before it opens. @throws {TypeError | RangeError} for an invalid option */
  [RELOCATE](replace: (given: HttpOptions) => HttpOptions): void;
  /** Sets the source of its connections before it opens: it then opens no port. */
  [RECEIVE](source: ConnectionSource): void;
}

export function isRelocatable(transport: Transport): transport is RelocatableTransport {
  return RELOCATE in transport;
}

/** Replaces the options of a transport that is not open yet. @throws {TypeError | RangeError} for an invalid option */
export function relocate(transport: RelocatableTransport, replace: (given: HttpOptions) => HttpOptions): void {
  transport[RELOCATE](replace);
}

/** The options that the program gave a transport. */
export function givenTo(transport: RelocatableTransport): HttpOptions {
  let options: HttpOptions = {};
  relocate(transport, (given) => {
    options = given;
    return given;
  });
  return options;
}

/** Accepts the connections of an HTTP transport that opens no port: a parent process shares one port among several processes. */
export interface ConnectionSource {
  /** The address of the port. */
  readonly address: AddressInfo;
  /** Called once, when the transport opens: its connections go to the receiver from now on. */
  open(receiver: ConnectionReceiver): void;
}

/** The HTTP transport from the view of a {@link ConnectionSource}. */
export interface ConnectionReceiver {
  /** Serves a connection that another process has accepted and not read from. @param closed is called when it has closed */
  accept(socket: Socket, closed: () => void): void;
  /** Asks each client to open another connection for its next request. Every request is still served. */
  moveAway(): void;
  /** Closes the connections without a request in flight. */
  closeIdle(): void;
}

/** Makes a transport that is not open yet serve the connections of a source. @returns false if it is not one of `http()` */
export function receiveFrom(transport: Transport, source: ConnectionSource): boolean {
  if (!isRelocatable(transport)) return false;
  transport[RECEIVE](source);
  return true;
}

export class NodeTransport implements RelocatableTransport, ConnectionReceiver {
  readonly name = 'http';
  #given: HttpOptions;
  #source: ConnectionSource | undefined;
  #endpoint: Endpoint | undefined;
  #authenticates = false;
  #drainDelayMs = 0;
  #server: Server | undefined;
  #url: string | undefined;
  /** The names by which clients of other machines reach it. */
  #names: readonly string[] = [];
  /** The address of the proxy before it. */
  #publicUrl: string | undefined;
  #metrics: MetricsListener | undefined;
  #closing: Promise<void> | undefined;
  #host: TransportHost | undefined;
  readonly #lingering = new LingeringClose();
  /** Every connection with its last request. Node counts connections without a request as busy. */
  readonly #connections = new Map<Socket, NodeRequest | undefined>();

  constructor(given: HttpOptions) {
    // Report an invalid option here, not when the transport opens.
    endpointOf(resolveHttpOptions(given));
    this.#given = given;
  }

  get ownsProcess(): boolean {
    return this.#given.ownsProcess ?? false;
  }

  /** Known once the transport is open, because the server's option counts, too. */
  get authenticates(): boolean {
    return this.#authenticates || authenticates(this.#given);
  }

  get drainDelayMs(): number {
    return this.#drainDelayMs;
  }

  [RELOCATE](replace: (given: HttpOptions) => HttpOptions): void {
    const options = replace(this.#given);
    endpointOf(resolveHttpOptions(options));
    this.#given = options;
  }

  [RECEIVE](source: ConnectionSource): void {
    this.#source = source;
  }

  pageAddress(path: string): PageAddress | undefined {
    return this.#url === undefined ? undefined : this.#endpoint?.pageAddress(path, withName(this.#url, this.#names));
  }

  get url(): string {
    if (this.#url === undefined)
      throw new Error('http: the url is unknown until the server listens. Call await server.listen(…) first');
    return this.#url;
  }

  get clientUrl(): string {
    const { url } = this;
    return this.#publicUrl ?? withName(url, this.#names);
  }

  get metricsUrl(): string | undefined {
    return this.#metrics?.url;
  }

  async open(host: TransportHost): Promise<void> {
    if (this.#host) throw new Error('http: this transport is already open. Each http() serves one server, once');
    this.#host = host;
    const options = resolveHttpOptions(withShared(this.#given, host.http));
    const endpoint = endpointOf(options);
    this.#endpoint = endpoint;
    this.#authenticates = authenticates(options);
    this.#drainDelayMs = options.drainDelayMs;
    this.#names = isLoopback(options.host) ? [] : (options.allowedHosts ?? []);
    this.#publicUrl = publicUrlOf(options);
    if (options.metrics) {
      this.#metrics = new MetricsListener(options.metrics);
      await this.#metrics.open(host);
    }
    // Import on demand: many servers have no port and would pay for the import at each start.
    const { createServer } = await import('node:http');
    await endpoint.open(host);
    if (this.#closing) return;
    this.#lingering.open(host.clock);
    const server = createServer(
      {
        headersTimeout: HEADERS_MS,
        requestTimeout: REQUEST_MS,
        keepAliveTimeout: options.idleConnectionMs,
        connectionsCheckingInterval: CHECK_MS,
        maxHeaderSize: MAX_HEADER_BYTES,
        // Nagle's algorithm would delay small responses.
        noDelay: true,
      },
      (request, response) => this.#serve(endpoint, request, response, false),
    );
    // Node would silently drop headers after the thousandth. Their bytes are limited instead.
    server.maxHeadersCount = 0;
    this.#server = server;
    server.on('connection', (socket) => {
      this.#connections.set(socket, undefined);
      socket.once('close', () => this.#connections.delete(socket));
    });
    server.on('checkContinue', (request, response) => this.#serve(endpoint, request, response, true));
    server.on('clientError', (error, socket) => this.#unparsed(error, socket));
    await this.#listen(server, options, endpoint);
    server.on('error', (error) => host.log('error', `http: ${error.message}`));
  }

  async #listen(server: Server, address: ResolvedHttpOptions, endpoint: Endpoint): Promise<void> {
    const source = this.#source;
    if (source) {
      this.#url = urlOf(source.address, address.path);
      // Node checks the time limits of requests from this event on.
      server.emit('listening');
      source.open(this);
      return;
    }
    try {
      this.#url = urlOf(await listenOn(server, 'http', address), address.path);
    } catch (error) {
      void endpoint.close();
      throw error;
    }
  }

  #serve(endpoint: Endpoint, request: IncomingMessage, response: ServerResponse, expects: boolean): void {
    const { socket } = request;
    // RFC 9112 section 9.6: a server that has sent "close" processes no further request of that connection.
    if (this.#lingering.sockets.has(socket)) return;
    const incoming = new NodeRequest(request, response, { lingering: this.#lingering, expects });
    this.#connections.set(socket, incoming);
    const bytes = headBytes(request);
    if (bytes <= MAX_HEADER_BYTES) endpoint.handle(incoming);
    else endpoint.refuse(incoming, { status: 431, message: `the headers have ${bytes} bytes${HEADER_LIMIT}` });
  }

  /** Responds to bytes that are not a request, or to a request that takes too long, and ends the connection. */
  #unparsed(error: NodeJS.ErrnoException, socket: Duplex): void {
    if (!isSocket(socket)) return void socket.destroy();
    // After an unreadable request, the rest of the connection is not parsed either.
    if (this.#lingering.sockets.has(socket) && error.code !== 'ERR_HTTP_REQUEST_TIMEOUT')
      return this.#lingering.look(socket);
    if (!socket.writable || error.code === 'ECONNRESET') return void socket.destroy();
    if (!this.#connections.get(socket)?.answering) {
      const { status, message } = UNPARSED.get(error.code) ?? NOT_HTTP;
      const text = this.#host?.refusal(ErrorCode.InvalidRequest, message) ?? message;
      const head = [`HTTP/1.1 ${status}`, 'Connection: close', 'Content-Type: application/json'];
      socket.write(`${head.join('\r\n')}\r\nContent-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`);
    }
    this.#lingering.begin(socket);
  }

  accept(socket: Socket, closed: () => void): void {
    socket.once('close', closed);
    const server = this.#server;
    if (!server || this.#closing) return void socket.destroy();
    // As for a connection of an own port.
    socket.setNoDelay(true);
    server.emit('connection', socket);
  }

  moveAway(): void {
    this.#endpoint?.moveAway();
  }

  closeIdle(): void {
    this.#server?.closeIdleConnections();
  }

  stopAccepting(): void {
    // The port stays open, so that clients get the response that this server is closing. The core rejects all new
    // requests.
    this.#endpoint?.drain();
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const server = this.#server;
    await this.#endpoint?.close();
    await this.#metrics?.close();
    if (!server || !this.#host) return;
    const { clock } = this.#host;
    await new Promise<void>((resolve) => {
      const late = clock.after(FLUSH_MS, () => {
        for (const socket of this.#connections.keys()) socket.destroy();
      });
      const closed = (): void => {
        // Node does not count the connections of a source.
        if (this.#connections.size > 0) return void this.#connections.keys().next().value?.once('close', closed);
        late.cancel();
        resolve();
      };
      // A server that never listened reports an error to the callback, and counts as closed.
      server.close(closed);
      server.closeIdleConnections();
      // Clients open connections in advance: undici when a request is aborted, browsers when they expect one.
      for (const [socket, request] of this.#connections) if (!request && socket.bytesRead === 0) socket.destroy();
    });
  }
}

/**
 * Bytes of a request's line and headers on the wire. Node's own limit counts only names, values and the target: 4,000
 * headers of one letter are twice as long on the wire.
 */
function headBytes({ method = '', url = '', rawHeaders }: IncomingMessage): number {
  // A space between method and target, " HTTP/1.1" after it, and the line ends of this line and of the empty line.
  let bytes = method.length + url.length + 14;
  for (const part of rawHeaders) bytes += part.length + 2;
  return bytes;
}

function isSocket(stream: Duplex): stream is Socket {
  return 'bytesRead' in stream && 'destroySoon' in stream;
}

function urlOf({ address, family, port }: AddressInfo, path: string): string {
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}${path}`;
}

/** The address of a proxy before a transport, as far as its options name one. */
function publicUrlOf({ host, path, auth, allowedHosts = [] }: ResolvedHttpOptions): string | undefined {
  for (const { resource } of auth?.documents.values() ?? [])
    if (typeof resource === 'string' && URL.canParse(resource) && !isLoopback(new URL(resource).hostname))
      return resource;
  const name = isLoopback(host)
    ? allowedHosts.find((each) => !isLoopback(new URL(`https://${each}`).hostname))
    : undefined;
  return name === undefined ? undefined : `https://${name}${path}`;
}

/** The address under the first name that its clients use. A name without a port has the one that is bound. */
function withName(url: string, [name]: readonly string[]): string {
  if (name === undefined) return url;
  const named = new URL(url);
  named.host = name;
  return named.href;
}

function endpointOf(options: ResolvedHttpOptions): Endpoint {
  return new Endpoint({ ...options, loopback: isLoopback(options.host), mounted: false });
}

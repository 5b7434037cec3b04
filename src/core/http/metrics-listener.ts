/**
 * Serves the metrics of a server to Prometheus, and its readiness with the reasons, on a port of its own: the port of the clients must not show them.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { CONTENT_TYPES, formatFor, type MetricsFormat, metricsText } from '../kernel/telemetry/prometheus.ts';
import { readinessDocument, type Transport, type TransportHost } from '../transports/transport.ts';
import { limitConnections } from './connection-limit.ts';
import { isLoopback } from './host-guard.ts';
import type { MetricsAddress } from './http-options.ts';
import { listenOn } from './listen-on.ts';

export type { MetricsFormat };

const PATH = '/metrics';
/** Readiness, with the reasons. */
const READY_PATH = '/readyz';
const TIMEOUT_MS = 10_000;
const MAX_HEADER_BYTES = 8 * 1024;
/** Scrapers are few. */
const MAX_CONNECTIONS = 32;
/** RFC 9110 section 7.2: a name or an address, perhaps with a port. */
const HOST = /^(\[[0-9a-f:.]+\]|[^:]*)(?::\d+)?$/i;

/** The pages of a metrics listener. */
export interface MetricsPages {
  metrics(format: MetricsFormat): string | Promise<string>;
  readiness(): ReadinessPage | Promise<ReadinessPage>;
}

export interface ReadinessPage {
  readonly ready: boolean;
  /** JSON. */
  readonly document: string;
}

/** The pages of one server. */
export function pagesOf(host: Pick<TransportHost, 'metrics' | 'readiness' | 'document'>): MetricsPages {
  return {
    metrics: (format) => metricsText(host.metrics.read(), format),
    readiness: () => {
      const readiness = host.readiness();
      return { ready: readiness.ready, document: readinessDocument(host, readiness) };
    },
  };
}

export class MetricsListener implements Transport {
  readonly name = 'metrics';
  readonly #address: MetricsAddress;
  #server: Server | undefined;
  #url: string | undefined;

  constructor(address: MetricsAddress) {
    this.#address = address;
  }

  /** The address for scrapers; undefined before it is open. */
  get url(): string | undefined {
    return this.#url;
  }

  open(host: TransportHost): Promise<void> {
    return this.serve(pagesOf(host), (message) => host.log('error', message));
  }

  /** Opens the port. @param log receives later failures of the port @throws {Error} if it cannot be opened, with a fix */
  async serve(pages: MetricsPages, log: (message: string) => void): Promise<void> {
    const { createServer } = await import('node:http');
    const options = { headersTimeout: TIMEOUT_MS, requestTimeout: TIMEOUT_MS, maxHeaderSize: MAX_HEADER_BYTES };
    const server = createServer(options, (request, response) => {
      this.#answer(pages, request, response).catch(() => response.destroy());
    });
    limitConnections(server, MAX_CONNECTIONS);
    this.#server = server;
    const { port, host = '127.0.0.1' } = this.#address;
    const bound = await listenOn(server, 'metrics', { host, port });
    this.#url = `http://${host.includes(':') ? `[${host}]` : host}:${bound.port}${PATH}`;
    // Reading the metrics of a server must not keep it alive.
    server.unref();
    server.on('connection', (socket) => socket.unref());
    server.on('error', (error) => log(`metrics: ${error.message}`));
  }

  async #answer(pages: MetricsPages, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [path = ''] = (request.url ?? '').split('?', 1);
    const reject = (status: number, message: string, headers = {}): void =>
      void response.writeHead(status, { 'content-type': 'text/plain', ...headers }).end(`${message}\n`);
    if (!this.#isFor(request)) return reject(403, 'Host: expected a loopback name, got another');
    if (path !== PATH && path !== READY_PATH) return reject(404, `expected ${PATH} or ${READY_PATH}`);
    if (request.method !== 'GET' && request.method !== 'HEAD')
      return reject(405, 'expected GET or HEAD', { allow: 'GET, HEAD' });
    const hasBody = request.method === 'GET';
    if (path === READY_PATH) {
      const { ready, document } = await pages.readiness();
      response.writeHead(ready ? 200 : 503, { 'content-type': 'application/json', 'cache-control': 'no-store' });
      return void response.end(hasBody ? document : undefined);
    }
    const format = formatFor(request.headers.accept);
    const text = await pages.metrics(format);
    response.writeHead(200, { 'content-type': CONTENT_TYPES[format], 'cache-control': 'no-store' });
    response.end(hasBody ? text : undefined);
  }

  /** On loopback, a page under another name must not read the metrics (DNS rebinding). */
  #isFor({ headers }: IncomingMessage): boolean {
    if (!isLoopback(this.#address.host ?? '127.0.0.1')) return true;
    const [, name = ''] = HOST.exec(headers.host ?? '') ?? [];
    return isLoopback(name);
  }

  close(): Promise<void> {
    const server = this.#server;
    if (!server) return Promise.resolve();
    return new Promise((resolve) => {
      // A server that never listened reports an error to the callback, and counts as closed.
      server.close(() => resolve());
      server.closeAllConnections();
    });
  }
}

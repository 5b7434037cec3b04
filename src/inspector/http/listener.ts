/**
 * The listener of an inspector: a separate HTTP server, reachable only from this machine, that keeps no process alive.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { limitConnections } from '../../core/http/connection-limit.ts';
import { listenOn } from '../../core/http/listen-on.ts';
import type { Clock } from '../../core/kernel/clock.ts';
import { refuseRequest, send } from './http-answer.ts';
import type { PageFiles } from './page-files.ts';
import { HEADERS, TokenGuard } from './token-guard.ts';

/** The only address. No option changes it. */
const HOST = '127.0.0.1';
const HEADERS_MS = 10_000;
const REQUEST_MS = 30_000;
const CHECK_MS = 5_000;
const MAX_HEADER_BYTES = 16 * 1024;
const MAX_CONNECTIONS = 128;
/** Milliseconds that clients have to read open responses when it closes. */
const FLUSH_MS = 500;

/** Serves the paths below `/api`, for an authenticated caller. */
export interface ApiRoutes {
  serve(request: IncomingMessage, response: ServerResponse, path: string, query: string): Promise<void>;
}

interface ListenerOptions {
  readonly port: number;
  readonly token: string;
  readonly clock: Clock;
  readonly files: PageFiles;
  readonly routes: ApiRoutes;
  /** The origin of the frames of views; undefined if the page shows none. */
  readonly frames: string | undefined;
  log(message: string): void;
}

export interface InspectorListener {
  readonly port: number;
  /** Closes the listener and cuts open connections. */
  close(): Promise<void>;
}

/** @throws {Error} if it cannot listen */
export async function listen(options: ListenerOptions): Promise<InspectorListener> {
  const server = createServer({
    headersTimeout: HEADERS_MS,
    requestTimeout: REQUEST_MS,
    connectionsCheckingInterval: CHECK_MS,
    maxHeaderSize: MAX_HEADER_BYTES,
    noDelay: true,
  });
  limitConnections(server, MAX_CONNECTIONS);
  const { port } = await listenOn(server, 'inspector', { host: HOST, port: options.port, exclusive: true });
  const guard = new TokenGuard(port, options.token);
  server.on('error', (error) => options.log(error.message));
  // An observer must not keep the observed process alive.
  server.unref();
  server.on('connection', (socket) => socket.unref());
  server.on('request', (request, response) => {
    answer(request, response, guard, options).catch((error: unknown) => {
      options.log(error instanceof Error ? error.message : String(error));
      send(response, 500);
    });
  });
  return {
    port,
    close: () =>
      new Promise((resolve) => {
        const late = options.clock.after(FLUSH_MS, () => server.closeAllConnections());
        server.close(() => {
          late.cancel();
          resolve();
        });
        server.closeIdleConnections();
      }),
  };
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  guard: TokenGuard,
  { files, routes, frames }: ListenerOptions,
): Promise<void> {
  const refusal = guard.check(request);
  if (refusal) return refuseRequest(response, refusal);
  const [path = '/', query = ''] = (request.url ?? '/').split('?', 2);
  if (path.startsWith('/api/')) {
    const stranger = guard.checkToken(request);
    return stranger ? refuseRequest(response, stranger) : routes.serve(request, response, path, query);
  }
  if (request.method === 'POST')
    return refuseRequest(response, { status: 405, why: 'expected GET or HEAD', headers: { Allow: 'GET, HEAD' } });
  const found = await files.find(path);
  if (!found) {
    const why = files.built ? `unknown path: ${path}` : 'the page of the inspector is not built. Run "npm run build".';
    return refuseRequest(response, { status: files.built ? 404 : 503, why });
  }
  const { body, type, etag, hashed } = found;
  const caching = {
    ETag: etag,
    'Cache-Control': hashed ? 'max-age=31536000, immutable' : 'no-cache',
    ...(frames === undefined || hashed ? {} : framing(frames)),
  };
  if (request.headers['if-none-match'] === etag) return send(response, 304, undefined, '', caching);
  send(response, 200, type, body, caching);
}

/** The policy of the page with one origin that it may frame. */
function framing(origin: string): Readonly<Record<string, string>> {
  return { 'Content-Security-Policy': `${HEADERS['Content-Security-Policy']}; frame-src ${origin}` };
}

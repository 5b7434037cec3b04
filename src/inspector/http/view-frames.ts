/**
 * The listener of the frames in which the page shows views. It has a port, and so an origin, of its own: a view reaches neither the
 * page of the inspector nor its token.
 */
import { createServer } from 'node:http';
import { limitConnections } from '../../core/http/connection-limit.ts';
import { listenOn } from '../../core/http/listen-on.ts';

const HOST = '127.0.0.1';
const MAX_CONNECTIONS = 64;

/** Shows the page that its parent sends, in a frame without an origin, and passes messages on in both directions. */
const SCRIPT = `
let frame;
const toParent = (message) => parent.postMessage(message, PARENT);
addEventListener('message', ({ source, origin, data }) => {
  if (frame && source === frame.contentWindow) return toParent(data);
  if (source !== parent || origin !== PARENT) return;
  if (data.method !== 'ui/notifications/sandbox-resource-ready') return frame?.contentWindow.postMessage(data, '*');
  frame?.remove();
  frame = document.createElement('iframe');
  frame.title = 'View';
  frame.sandbox = 'allow-scripts allow-forms';
  frame.srcdoc = data.params.html;
  document.body.append(frame);
});
toParent({ jsonrpc: '2.0', method: 'ui/notifications/sandbox-proxy-ready', params: {} });
`;
const STYLE = 'html,body,iframe{height:100%;width:100%;margin:0;border:0;display:block}';

/** An origin that a page declares. The server has checked it; this check is for requests of other programs. */
const ORIGIN = /^(https|wss|http|ws):\/\/[a-z0-9.*[\]:-]+$/i;

export interface ViewFrames {
  /** The origin of the frames, such as `http://127.0.0.1:41873`. */
  readonly origin: string;
  close(): Promise<void>;
}

/** @param page the origin of the inspector's page, which alone may frame it */
export async function openViewFrames(page: () => string): Promise<ViewFrames> {
  const server = createServer({ headersTimeout: 10_000, requestTimeout: 10_000, maxHeaderSize: 16_384 });
  limitConnections(server, MAX_CONNECTIONS);
  server.unref();
  server.on('connection', (socket) => socket.unref());
  const { port } = await listenOn(server, 'inspector', { host: HOST, port: 0, exclusive: true });
  const origin = `http://${HOST}:${port}`;
  server.on('request', (request, response) => {
    const [path, query = ''] = (request.url ?? '').split('?', 2);
    const known = path === '/' && request.method === 'GET' && `http://${request.headers.host}` === origin;
    if (!known) return void response.writeHead(404, { 'Content-Length': 0 }).end();
    response.writeHead(200, {
      'Content-Type': 'text/html; charset=utf-8',
      'Content-Security-Policy': policyOf(page(), new URLSearchParams(query)),
      'Cross-Origin-Embedder-Policy': 'require-corp',
      'Cross-Origin-Resource-Policy': 'cross-origin',
      'Cache-Control': 'no-store',
      'Referrer-Policy': 'no-referrer',
      'X-Content-Type-Options': 'nosniff',
    });
    response.end(documentOf(page()));
  });
  return {
    origin,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function documentOf(page: string): string {
  return `<!doctype html><html lang="en"><head><title>View</title><style>${STYLE}</style></head><body><script>${scriptOf(page)}</script></body></html>`;
}

function scriptOf(page: string): string {
  return SCRIPT.replaceAll('PARENT', `'${page}'`);
}

/** The policy of a host (MCP Apps 2026-01-26, "Security Considerations"): the view in the frame inherits it. */
function policyOf(page: string, query: URLSearchParams): string {
  const origins = (name: string): string =>
    query
      .getAll(name)
      .filter((origin) => ORIGIN.test(origin))
      .join(' ');
  const resources = origins('resourceDomains');
  return [
    "default-src 'none'",
    `script-src 'unsafe-inline' ${resources}`,
    `style-src 'unsafe-inline' ${resources}`,
    `img-src data: blob: ${resources}`,
    `font-src data: ${resources}`,
    `media-src data: blob: ${resources}`,
    `connect-src ${origins('connectDomains') || "'none'"}`,
    `frame-src 'self' ${origins('frameDomains')}`,
    `base-uri ${origins('baseUriDomains') || "'none'"}`,
    "form-action 'none'",
    `frame-ancestors ${page}`,
  ].join('; ');
}

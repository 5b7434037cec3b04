/** A chat client in a browser: the official bridge, a page of its origin, and a proxy page of another origin with the frame of the view. */

import type { Client } from '@modelcontextprotocol/client';
import {
  AppBridge,
  type McpUiHostCapabilities,
  type McpUiHostContext,
} from '@modelcontextprotocol/ext-apps/app-bridge';
import type { FrameLocator, Page } from 'playwright-core';

/** Neither name exists: each request is answered by the test. */
const HOST = 'http://host.test/';
const VIEWS = 'http://views.test/';

const HOST_PAGE = (width: number): string => `<!doctype html><html lang="en"><head><title>Chat</title><style>
body { margin: 0; background: Canvas; color-scheme: light dark } iframe { display: block; width: ${width}px; height: 40px; border: 0 }
</style></head><body><iframe title="View" src="${VIEWS}"></iframe><script>
const frame = document.querySelector('iframe');
addEventListener('message', (event) => { if (event.source === frame.contentWindow) toHost(event.data) });
window.toFrame = (message) => frame.contentWindow.postMessage(message, '${VIEWS}');
</script></body></html>`;

/** Ways in which hosts put a page into its frame. */
export type Embedding =
  /** As it is, by `srcdoc`, in a frame that is sandboxed as strictly as a host may: without forms, and with an origin of its own. */
  | 'as it is'
  /** Written into a frame of the proxy's origin, as the reference host of the extension and the proxy of mcp-ui do. */
  | 'written'
  /** In the body of a page of the host with the policy of the host, as the Inspector of MCP does. */
  | 'wrapped'
  /** After a script of the host, as a gateway of this package does for the pages of its upstreams. */
  | 'preceded';

/** The policy of a host that permits as much as the extension allows ("Security Considerations"), and a request more. */
const HOST_POLICY =
  "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; connect-src *";

const FRAMED: Readonly<Record<Embedding, (html: string) => string>> = {
  'as it is': (html) => html,
  written: (html) => html,
  wrapped: (html) =>
    `<!DOCTYPE html><html><head><meta http-equiv="Content-Security-Policy" content="${HOST_POLICY}"></head><body>${html}</body></html>`,
  preceded: (html) => `<script>globalThis.host = 1</script>${html}`,
};

const PROXY_PAGE = (embedding: Embedding): string => `<!doctype html><html lang="en"><head><title>Proxy</title><style>
body { margin: 0 } iframe { display: block; width: 100%; height: 100vh; border: 0 }
</style></head><body><script>
let frame;
addEventListener('message', ({ source, data }) => {
  if (frame && source === frame.contentWindow) return parent.postMessage(data, '*');
  if (source !== parent) return;
  if (data.method !== 'ui/notifications/sandbox-resource-ready') return frame?.contentWindow.postMessage(data, '*');
  frame = document.createElement('iframe');
  frame.title = 'View';
  const isWritten = ${embedding === 'written'};
  frame.sandbox = isWritten ? 'allow-scripts allow-same-origin allow-forms' : 'allow-scripts';
  if (!isWritten) frame.srcdoc = data.params.html;
  document.body.append(frame);
  if (!isWritten) return;
  frame.contentDocument.open();
  frame.contentDocument.write(data.params.html);
  frame.contentDocument.close();
});
parent.postMessage({ jsonrpc: '2.0', method: 'ui/notifications/sandbox-proxy-ready', params: {} }, '*');
</script></body></html>`;

export interface HostOptions {
  readonly html: string;
  /** Default: as it is. */
  readonly embedding?: Embedding;
  readonly capabilities?: McpUiHostCapabilities;
  readonly context?: McpUiHostContext;
  /** Width of the frame in pixels; default 720. */
  readonly width?: number;
  /** The connection to the server, through which the bridge passes on calls and reads. */
  readonly client?: Client;
  /** Sets the handlers of the bridge. */
  readonly prepare?: (bridge: AppBridge) => void;
}

export interface BrowserHost {
  readonly bridge: AppBridge;
  readonly page: Page;
  readonly view: FrameLocator;
  /** URLs that the view requested. */
  readonly requests: readonly string[];
  /** The texts that the view gave the model, the last one counts. */
  readonly told: readonly string[];
  /** The heights that the view reported. */
  readonly heights: readonly number[];
  /** Milliseconds from the frame to `initialized`. */
  readonly openedMs: number;
}

export const CAPABLE: McpUiHostCapabilities = { openLinks: {}, serverTools: {}, serverResources: {}, logging: {} };

/** Shows a view in a page, and resolves after its handshake. */
export async function openInHost(
  page: Page,
  { html, embedding = 'as it is', capabilities = CAPABLE, context = {}, width = 720, client, prepare }: HostOptions,
): Promise<BrowserHost> {
  const requests: string[] = [];
  const told: string[] = [];
  const heights: number[] = [];
  await page.route('**/*', (route) => {
    const url = route.request().url();
    const body = url === HOST ? HOST_PAGE(width) : url === VIEWS ? PROXY_PAGE(embedding) : undefined;
    if (body !== undefined) return route.fulfill({ contentType: 'text/html', body });
    requests.push(url);
    return route.abort();
  });
  let receive: ((message: never) => void) | undefined;
  await page.exposeFunction('toHost', (message: never) => receive?.(message));
  const transport = {
    start: async () => {},
    close: async () => {},
    send: async (message: object) => {
      await page.evaluate((sent) => (globalThis as unknown as { toFrame(sent: object): void }).toFrame(sent), message);
    },
    set onmessage(listener: ((message: never) => void) | undefined) {
      receive = listener;
    },
    get onmessage() {
      return receive;
    },
  };
  const bridge = new AppBridge(client ?? null, { name: 'chat', version: '7' }, capabilities, { hostContext: context });
  bridge.onupdatemodelcontext = async ({ content = [] }) => {
    told.push(content.map((block) => (block.type === 'text' ? block.text : '')).join());
    return {};
  };
  prepare?.(bridge);
  let began = 0;
  bridge.onsandboxready = () => {
    began = performance.now();
    void bridge.sendSandboxResourceReady({ html: FRAMED[embedding](html) });
  };
  bridge.onsizechange = ({ height = 0 }) => {
    heights.push(height);
    void page.evaluate(`document.querySelector('iframe').style.height = '${height}px'`);
  };
  const ready = new Promise<number>((resolve) => {
    bridge.oninitialized = () => resolve(performance.now() - began);
  });
  await bridge.connect(transport as Parameters<AppBridge['connect']>[0]);
  await page.goto(HOST);
  const openedMs = await ready;
  return { bridge, page, view: page.frameLocator('iframe').frameLocator('iframe'), requests, told, heights, openedMs };
}

/** Lets a person sign in: opens the browser, and receives its redirect on a loopback port (RFC 8252 section 7.3). */
import { spawn } from 'node:child_process';
import { createServer, type Server } from 'node:http';
import type { Clock } from '../../clock.ts';

/** Receives the redirect of one sign-in. */
export interface SignIn {
  readonly redirectUrl: string;
  /** Shows the address to the person. @returns the address that the browser was redirected to */
  authorize(url: URL, signal: AbortSignal): Promise<URL>;
  close(): void;
}

export interface BrowserSignInOptions {
  readonly clock: Clock;
  /** Shows the full address, before the browser opens it. */
  readonly show: (address: string) => void;
  /** Opens the browser. Default true. */
  readonly open: boolean;
  /** Milliseconds for the person. */
  readonly timeoutMs: number;
}

const PATH = '/oauth/callback';
const PAGE = (text: string): string =>
  `<!doctype html><meta charset="utf-8"><title>Troupe</title><body style="font:16px system-ui;margin:4em auto;max-width:30em">${text}`;

/** Opens the loopback port. Its number is part of the redirect address, so the port comes first. */
export function browserSignIn({ clock, show, open, timeoutMs }: BrowserSignInOptions): Promise<SignIn> {
  return new Promise((resolve, reject) => {
    let arrived: (url: URL) => void = () => {};
    const server: Server = createServer((request, response) => {
      const url = new URL(request.url ?? '/', base);
      if (url.pathname !== PATH) {
        response.writeHead(404).end();
        return;
      }
      response.writeHead(200, { 'content-type': 'text/html; charset=utf-8', connection: 'close' });
      response.end(PAGE('Signed in. You can close this page.'));
      arrived(url);
    });
    let base = '';
    server.on('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      base = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
      server.unref();
      resolve({
        redirectUrl: `${base}${PATH}`,
        authorize: (url, signal) =>
          new Promise((done, failed) => {
            const late = clock.after(timeoutMs, () =>
              failed(new Error(`no sign-in within ${Math.round(timeoutMs / 1_000)} s`)),
            );
            const abort = (): void => failed(new Error('cancelled'));
            signal.addEventListener('abort', abort, { once: true });
            arrived = (redirected) => {
              late.cancel();
              signal.removeEventListener('abort', abort);
              done(redirected);
            };
            show(url.href);
            if (open) openSignInPage(url);
          }),
        close: () => server.close(),
      });
    });
  });
}

/** Opens an http or https address. No shell reads it. */
export function openSignInPage(url: URL): void {
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return;
  const [command, ...args] =
    process.platform === 'darwin'
      ? ['open', url.href]
      : process.platform === 'win32'
        ? ['rundll32', 'url.dll,FileProtocolHandler', url.href]
        : ['xdg-open', url.href];
  const child = spawn(command ?? '', args, { stdio: 'ignore', detached: true });
  // Without a browser the person opens the address that was shown.
  child.on('error', () => {});
  child.unref();
}

/** Lets a person sign in: opens the browser, and receives its redirect on a loopback port (RFC 8252 section 7.3). */
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { type Clock, within } from '../../core/kernel/clock.ts';
import type { PersonPage } from '../../core/transports/transport.ts';
import { openInBrowser } from '../browser.ts';
import { NoSignIn } from './no-sign-in.ts';

/** Receives the redirect of one sign-in. */
export interface SignIn {
  readonly redirectUrl: string;
  /**
   * Shows the address to the person.
   *
   * @param state the value that the redirect must have: a request without it belongs to another sign-in
   * @returns the address that the browser was redirected to
   */
  authorize(url: URL, state: string, signal: AbortSignal): Promise<URL>;
  close(): void;
}

interface SignInTime {
  readonly clock: Clock;
  /** Milliseconds for the person. */
  readonly timeoutMs: number;
}

interface BrowserSignInOptions extends SignInTime {
  /** Shows the full address, before the browser opens it. */
  readonly show: (address: string) => void;
  /** Opens the browser. Default true. */
  readonly open: boolean;
}

const PATH = '/oauth/callback';
const MAX_FORM_LENGTH = 65_536;
export const NO_SIGN_IN = 'This page belongs to no sign-in that waits here. Please start again from the program.';
// The page shows nothing of the request, so that no link can write into it.
const PAGE = (text: string): string =>
  `<!doctype html><meta charset="utf-8"><title>Troupe</title><body style="font:16px system-ui;margin:4em auto;max-width:30em">${text}`;
const HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  connection: 'close',
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
};

/** A page that shows one sentence. */
export function signInPage(status: number, text: string): PersonPage {
  return { status, headers: HEADERS, text: PAGE(text) };
}

/** A loopback port that receives the redirects of browsers. */
export interface LoopbackRedirects {
  readonly redirectUrl: string;
  close(): void;
}

/**
 * Opens the loopback port. Its number is part of the redirect address, so the port comes first.
 *
 * @param receive gets the address, and the body of a form
 */
export function loopbackRedirects(
  receive: (url: URL, form: string | undefined) => PersonPage | Promise<PersonPage>,
): Promise<LoopbackRedirects> {
  return new Promise((resolve, reject) => {
    let base = 'http://127.0.0.1';
    const server: Server = createServer((request, response) => {
      const show = ({ status, headers, text }: PersonPage): void => {
        response.writeHead(status, headers).end(text);
      };
      if (!URL.canParse(request.url ?? '/', base)) return show(signInPage(400, 'This is no address.'));
      const url = new URL(request.url ?? '/', base);
      const isForm = request.method === 'POST';
      if (url.pathname !== PATH || !(isForm || request.method === 'GET'))
        return show(signInPage(404, 'There is no such page.'));
      Promise.resolve(isForm ? formOf(request) : undefined)
        .then((form) => receive(url, form))
        .then(show, () => show(signInPage(503, 'The sign-in cannot be finished now. Load this page again later.')));
    });
    server.on('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      base = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
      server.unref();
      resolve({ redirectUrl: `${base}${PATH}`, close: () => void server.close() });
    });
  });
}

/** The body of a form. @throws {RangeError} for a longer one */
async function formOf(request: IncomingMessage): Promise<string> {
  let form = '';
  for await (const chunk of request.setEncoding('utf8')) {
    form += String(chunk);
    if (form.length > MAX_FORM_LENGTH) throw new RangeError(`form: expected at most ${MAX_FORM_LENGTH} characters`);
  }
  return form;
}

export async function browserSignIn({ clock, show, open, timeoutMs }: BrowserSignInOptions): Promise<SignIn> {
  let expected: string | undefined;
  let arrived: (url: URL) => void = () => {};
  const redirects = await loopbackRedirects((url, form) => {
    if (form !== undefined) return signInPage(404, 'There is no such page.');
    // Any program and any web page can send a request to this port, but only the browser of the sign-in knows the state.
    if (expected === undefined || url.searchParams.get('state') !== expected) return signInPage(400, NO_SIGN_IN);
    arrived(url);
    return signInPage(
      200,
      url.searchParams.has('error')
        ? 'The sign-in failed. The program shows the reason. You can close this page.'
        : 'Signed in. You can close this page.',
    );
  });
  return {
    ...redirects,
    authorize(url, state, signal) {
      const redirected = new Promise<URL>((done) => {
        arrived = done;
      });
      expected = state;
      show(url.href);
      // Without a browser the person opens the address that was shown.
      if (open) openInBrowser(url, () => {});
      return untilSignedIn(redirected, { clock, timeoutMs }, signal);
    },
  };
}

/** Waits for the person, until the signal or the time ends the wait. @throws {Error} */
export function untilSignedIn(
  redirected: Promise<URL>,
  { clock, timeoutMs }: SignInTime,
  signal: AbortSignal,
): Promise<URL> {
  const seconds = Math.round(timeoutMs / 1_000);
  const late = (): Error => new NoSignIn(`no sign-in within ${seconds} s. The option is signInMs`);
  return within(redirected, clock, timeoutMs, late, signal, () => new Error('the sign-in was cancelled'));
}

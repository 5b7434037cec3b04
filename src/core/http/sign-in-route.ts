/** The route for browsers of people: an authorization server redirects them here after a sign-in, and they enter keys of APIs here. */
import { ANONYMOUS } from '../protocol/principals.ts';
import type { ReturnAddress, ReturnPage, SignInReturns, TransportHost } from '../transports/transport.ts';
import type { AuthenticationRequest } from './http-authenticator.ts';
import type { SignInOptions } from './http-options.ts';

const SIGN_IN_PATH = '/oauth/callback';
/** Milliseconds in which `identify` must decide. */
const IDENTIFY_MS = 15_000;

interface SignInRouteOptions {
  readonly signIn?: SignInOptions | undefined;
  readonly loopback: boolean;
  readonly authenticates: boolean;
  /** The endpoint serves every path, and does not know its address. */
  readonly mounted: boolean;
}

export class SignInRoute {
  /** The path that is served; undefined if no person can sign in here. */
  readonly path: string | undefined;
  readonly #signIn: SignInOptions | undefined;
  /** Everyone who reaches the endpoint is the person at this machine. */
  readonly #local: boolean;

  constructor({ signIn, loopback, authenticates, mounted }: SignInRouteOptions) {
    this.#signIn = signIn;
    this.#local = loopback && !authenticates && signIn?.identify === undefined;
    const open = signIn?.identify !== undefined || (this.#local && (!mounted || signIn?.url !== undefined));
    this.path = open ? (signIn?.url === undefined ? SIGN_IN_PATH : new URL(signIn.url).pathname) : undefined;
  }

  /** True for a form of a page of this route: a browser sends its origin, which no list need contain. */
  isOwnOrigin(origin: string | undefined): boolean {
    return origin !== undefined && this.#signIn?.url !== undefined && new URL(this.#signIn.url).origin === origin;
  }

  /** @param own the address of the endpoint, once it is known */
  address(own: string | undefined): ReturnAddress | undefined {
    if (this.path === undefined) return undefined;
    const url = this.#signIn?.url ?? (own === undefined ? undefined : new URL(this.path, own).href);
    return url === undefined ? undefined : { url, identifies: !this.#local };
  }

  /**
   * The page for a browser that was redirected here. Never rejects.
   *
   * @param returns of the server; undefined: nothing of it needs a sign-in
   * @param form the body of a POST
   */
  async page(
    request: AuthenticationRequest,
    returns: SignInReturns | undefined,
    { bus, clock }: Pick<TransportHost, 'bus' | 'clock'>,
    form: string | undefined,
  ): Promise<ReturnPage> {
    const gone = plain(404, 'No sign-in waits here.\n');
    if (!returns) return gone;
    try {
      const person = this.#local ? ANONYMOUS : await this.#identified(request, clock);
      return await returns.receive(request.query, person, form);
    } catch (error) {
      bus.emit('fault', { where: 'http.signIn', error });
      return plain(503, 'The server cannot finish the sign-in now. Load this page again later.\n');
    }
  }

  #identified(request: AuthenticationRequest, clock: TransportHost['clock']): Promise<string | undefined> {
    return new Promise((resolve, reject) => {
      const late = clock.after(IDENTIFY_MS, () =>
        reject(new Error(`http: signIn: identify has not decided within ${IDENTIFY_MS} ms`)),
      );
      Promise.resolve(request)
        .then((asked) => this.#signIn?.identify?.(asked))
        .then(resolve, reject)
        .finally(() => late.cancel());
    });
  }
}

function plain(status: number, text: string): ReturnPage {
  return { status, headers: { 'content-type': 'text/plain', 'cache-control': 'no-store' }, text };
}

/** The route for the browsers of people: each page of a feature, such as the one to which a sign-in at an upstream returns. */
import { durationOf } from '../kernel/duration.ts';
import { type Auth, authOf } from '../messages/auth.ts';
import { ANONYMOUS } from '../protocol/principals.ts';
import {
  type PageAddress,
  type PersonPage,
  type PersonPages,
  SIGN_IN_PATH,
  type TransportHost,
} from '../transports/transport.ts';
import { type AuthenticationRequest, callerOf, FunctionAuthenticator } from './http-authenticator.ts';
import type { SignInOptions } from './http-options.ts';

/** Milliseconds in which `identify` must decide. */
const IDENTIFY_MS = 15_000;

export interface PersonRouteOptions {
  readonly signIn?: SignInOptions | undefined;
  readonly loopback: boolean;
  readonly authenticates: boolean;
  /** The endpoint serves every path, and does not know its address. */
  readonly mounted: boolean;
}

/** A page that a request names. */
export interface FoundPage {
  /** The path of its feature; see {@link PersonPages}. */
  readonly path: string;
  /** The rest of the path of the request. */
  readonly rest: string;
}

export class PersonRoute {
  readonly #signIn: SignInOptions | undefined;
  /** Everyone who reaches the endpoint is the person at this machine. */
  readonly #local: boolean;
  readonly #isOpen: boolean;
  /** The path to which a sign-in returns, and the part of it that the paths of all pages share. */
  readonly #returnPath: string;
  readonly #prefix: string;
  readonly #people: FunctionAuthenticator;

  constructor({ signIn, loopback, authenticates, mounted }: PersonRouteOptions) {
    this.#signIn = signIn;
    this.#local = loopback && !authenticates && signIn?.identify === undefined;
    this.#isOpen = signIn?.identify !== undefined || (this.#local && (!mounted || signIn?.url !== undefined));
    this.#returnPath = signIn?.url === undefined ? SIGN_IN_PATH : new URL(signIn.url).pathname;
    this.#prefix = this.#returnPath.endsWith(SIGN_IN_PATH)
      ? this.#returnPath.slice(0, -SIGN_IN_PATH.length)
      : this.#returnPath.replace(/\/[^/]*$/, '');
    this.#people = new FunctionAuthenticator(async (request) => signIn?.identify?.(request));
  }

  /** The page at a path; undefined if there is none, or no person can be known here. */
  find(asked: string, pages: PersonPages | undefined): FoundPage | undefined {
    if (!this.#isOpen) return undefined;
    if (asked === this.#returnPath) return { path: SIGN_IN_PATH, rest: '' };
    for (const path of Object.keys(pages ?? {})) {
      const whole = this.#pathOf(path);
      if (asked === whole || asked.startsWith(`${whole}/`)) return { path, rest: asked.slice(whole.length) };
    }
    return undefined;
  }

  #pathOf(path: string): string {
    return path === SIGN_IN_PATH ? this.#returnPath : `${this.#prefix}${path}`;
  }

  /** True for a form of a page of this route: a browser sends its origin, which no list need contain. */
  isOwnOrigin(origin: string | undefined): boolean {
    return origin !== undefined && this.#signIn?.url !== undefined && new URL(this.#signIn.url).origin === origin;
  }

  /**
   * The address of a page.
   *
   * @param own the address of the endpoint, once it is known
   */
  address(path: string, own: string | undefined): PageAddress | undefined {
    const base = this.#signIn?.url ?? own;
    if (!this.#isOpen || base === undefined) return undefined;
    return { url: new URL(this.#pathOf(path), base).href, identifies: !this.#local };
  }

  /**
   * The answer to a browser. Never rejects.
   *
   * @param pages of the server
   * @param form the body of a POST
   */
  async page(
    request: AuthenticationRequest,
    { path, rest }: FoundPage,
    { bus, clock, pages }: Pick<TransportHost, 'bus' | 'clock' | 'pages'>,
    form: string | undefined,
  ): Promise<PersonPage> {
    try {
      const person = this.#local ? authOf(ANONYMOUS) : await this.#identified(request, clock);
      const page = await pages[path]?.({ rest, query: request.query, person, form });
      return page ?? plain(404, 'Nothing waits here.\n');
    } catch (error) {
      bus.emit('fault', { where: 'http.signIn', error });
      return plain(503, 'The server cannot show this page now. Load it again later.\n');
    }
  }

  async #identified(request: AuthenticationRequest, clock: TransportHost['clock']): Promise<Auth | undefined> {
    const found = await new Promise<Awaited<ReturnType<FunctionAuthenticator['authenticate']>>>((resolve, reject) => {
      const late = clock.after(IDENTIFY_MS, () =>
        reject(new Error(`http: signIn: identify has not decided within ${durationOf(IDENTIFY_MS)}`)),
      );
      Promise.resolve(this.#people.authenticate(request))
        .then(resolve, reject)
        .finally(() => late.cancel());
    });
    return 'auth' in found ? callerOf(found.auth) : undefined;
  }
}

function plain(status: number, text: string): PersonPage {
  return { status, headers: { 'content-type': 'text/plain', 'cache-control': 'no-store' }, text };
}

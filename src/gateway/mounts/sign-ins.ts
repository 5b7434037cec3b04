/** The sign-ins of people at upstreams, and the keys that they enter: asks the caller to open a page, receives the browser, and repeats the call. */
import type { Authorization, Challenge } from '../../client/authorization.ts';
import { ClientError } from '../../client/client-errors.ts';
import {
  type LoopbackRedirects,
  loopbackRedirects,
  NO_SIGN_IN,
  signInPage,
} from '../../client/oauth/browser-sign-in.ts';
import { type KnownAuthorizationServer, type ResourceGrant, SignInOver } from '../../client/oauth/resource-grant.ts';
import type { Context } from '../../core/execution/context.ts';
import { CannotAsk } from '../../core/execution/input-errors.ts';
import { prolong } from '../../core/execution/request-context.ts';
import { type Clock, pause } from '../../core/kernel/clock.ts';
import { authOf } from '../../core/messages/auth.ts';
import { ToolError } from '../../core/protocol/errors.ts';
import { isObject, type JsonObject, messageOf } from '../../core/protocol/json.ts';
import { ANONYMOUS, LOCAL } from '../../core/protocol/principals.ts';
import { digest } from '../../core/store/seal.ts';
import type { StateKeys } from '../../core/store/state-keys.ts';
import type { Vault } from '../../core/store/vault.ts';
import { UNKNOWN_PERSON } from '../../core/transports/plain-page.ts';
import type { PageAddress, PageRequest, PersonPage } from '../../core/transports/transport.ts';
import { checkpointsOf } from '../../features/asking/asking-context.ts';
import { KeyPages, type NeededKey, purposeOf } from './key-page.ts';
import { SignInNeeded, type UpstreamAuth, UpstreamGrants } from './upstream-grants.ts';

/** The upstream demands a sign-in that the caller has not made. The message says what to do. */
class SignInRequired extends ToolError {
  constructor(upstream: string, message: string, cause?: unknown) {
    super(`${upstream}: ${message}`, cause === undefined ? {} : { cause });
  }
}

/** The sign-ins at one upstream, as its calls use them. */
export interface UpstreamSignIn {
  readonly grants: UpstreamGrants;
  /**
   * Makes a request of the upstream for a call, and lets its caller sign in if the upstream demands it.
   *
   * @param work makes the request with the authorization of the caller; undefined: that of its connection. It is repeated
   *   only after a failure that says that nothing was carried out
   * @throws {SignInRequired} if the caller does not sign in, or cannot; else what `work` throws
   */
  run<T>(ctx: Context, work: (authorization: Authorization | undefined) => Promise<T>): Promise<T>;
  /** True if an earlier run of a call, with these steps, ended while its caller was signing in. */
  pending(steps: JsonObject): boolean;
  /** Forgets the upstream. */
  close(): void;
}

interface SignInsOptions {
  readonly keys: StateKeys;
  /** Stores the keys of people. */
  readonly vault: Vault;
  readonly clock: Clock;
  log(level: 'info' | 'warning', message: string): void;
  /** The addresses of open transports for browsers. */
  addresses(): readonly PageAddress[];
}

/** Maximum number of sign-ins of one call: the first, and steps up to more rights (2025-11-25 authorization, "Step-Up Authorization Flow"). */
const MAX_SIGN_INS = 3;
/** Milliseconds for a person to enter a key. */
const KEY_MS = 300_000;
/** Maximum number of attempts of one call with a new token each. */
const MAX_ATTEMPTS = 4;
/** Milliseconds between two looks for a sign-in that another process may have received. */
const LOOK_MS = 1_000;
/** Milliseconds that a call has left when its sign-in expires. */
const MARGIN_MS = 10_000;
const MAX_FAILED = 1_000;
const SCOPE = ['sign-in'];
/** Wakes the calls of a person who has signed in. Another reason is the error of the sign-in. */
const SIGNED_IN = 'signed in';
/** Names of steps, each with the mark of a sign-in: between the two, the upstream has carried out nothing of the call. */
const BEGUN = 'sign-in ';
const ENDED = 'signed in ';

/** A page that the caller is asked to open. */
interface PageQuestion {
  readonly mount: string;
  /** The name of the question, before its mark. */
  readonly name: string;
  /** The same in each run of the call. */
  readonly mark: string;
  readonly message: string;
  readonly url: URL;
  /** The error of a caller who declines, and of one who cannot be asked. */
  readonly declined: string;
  readonly unasked: string;
  finished(): Promise<void>;
}

/** The wait of a call whose caller has opened a page. */
interface PersonWait {
  /** Milliseconds since 1970. */
  readonly until: number;
  /** True if the person has finished, at any process. */
  over(): Promise<boolean>;
  /** The error after that time. */
  readonly late: string;
}

interface State {
  readonly mount: string;
  readonly resource: string;
  readonly principal: string;
}

export class SignIns {
  readonly #options: SignInsOptions;
  /** By mount; a mount whose target was replaced has several for a while. */
  readonly #upstreams = new Map<string, Set<UpstreamGrants>>();
  /** The calls that wait for a browser, by mount or purpose, and principal. */
  readonly #waiting = new Map<string, Set<AbortController>>();
  /** Failed sign-ins whose callers have not accepted the question yet, by mount and principal. */
  readonly #failed = new Map<string, Error>();
  readonly #closing = new AbortController();
  readonly #keyPages: KeyPages;
  #loopback: Promise<LoopbackRedirects> | undefined;

  constructor(options: SignInsOptions) {
    this.#options = options;
    this.#keyPages = new KeyPages({
      ...options,
      stored: (needed, principal) => this.#wake(keyOf(purposeOf(needed), principal), undefined),
    });
  }

  /**
   * @param authorizationServer of the upstream, if it is known
   * @throws {DefinitionError} for an invalid option
   */
  open(
    mount: string,
    url: URL,
    auth: Exclude<UpstreamAuth, false>,
    authorizationServer?: KnownAuthorizationServer,
  ): UpstreamSignIn {
    const grants = new UpstreamGrants({ mount, url, auth, clock: this.#options.clock, authorizationServer });
    const ofMount = this.#upstreams.get(mount) ?? new Set();
    this.#upstreams.set(mount, ofMount.add(grants));
    return {
      grants,
      run: (ctx, work) => this.#run(ctx, mount, grants, work),
      pending: isAsking,
      close: () => {
        ofMount.delete(grants);
        if (ofMount.size === 0 && this.#upstreams.get(mount) === ofMount) this.#upstreams.delete(mount);
      },
    };
  }

  close(): void {
    this.#closing.abort();
    this.#upstreams.clear();
    void this.#loopback?.then((redirects) => redirects.close());
  }

  /**
   * The key of the caller. Asks for it on a page if it is not stored.
   *
   * @param refused the key that the API has just rejected: it is deleted, and asked for again
   * @throws {SignInRequired} if the caller does not enter one, or cannot
   */
  async key(ctx: Context, needed: NeededKey, refused?: string): Promise<string> {
    const { vault } = this.#options;
    const { principal } = ctx;
    const purpose = purposeOf(needed);
    const stored = await vault.get(principal, purpose);
    if (stored !== undefined && stored !== refused) return stored;
    if (stored !== undefined) await vault.delete(principal, purpose);
    await this.#askKey(ctx, needed, refused);
    const entered = await vault.get(principal, purpose);
    if (entered === undefined)
      throw new SignInRequired(needed.mount, 'the key that was entered is gone. Repeat the call');
    return entered;
  }

  async #askKey(ctx: Context, needed: NeededKey, refused: string | undefined): Promise<void> {
    const { clock, vault } = this.#options;
    const { mount, scheme, kind, api } = needed;
    const { principal } = ctx;
    const until = clock.date() + KEY_MS;
    const url = this.#keyPages.address(await this.#address(mount, principal, 'a key'), needed, principal, until);
    const again = refused === undefined ? '' : ' The API rejected the one before.';
    const what = kind === 'key' ? `your key (${scheme})` : `your name and password (${scheme})`;
    const purpose = purposeOf(needed);
    await this.#askToOpen(ctx, {
      // A repeated run of the handler asks for the same key under the same name.
      mark: digest([purpose, refused ?? '']).slice(0, 8),
      name: `key for ${mount}`,
      message: `[${mount}] Enter ${what} for ${api} on this page, so that this call can use ${mount} for you.${again}`,
      url,
      declined: `the API needs ${what}, which was declined`,
      unasked: `the API needs ${what}. Ask the user to open this address in a browser, then repeat the call`,
      mount,
      finished: () =>
        this.#wait(ctx, mount, keyOf(purpose, principal), {
          until,
          over: async () => (await vault.get(principal, purpose)) !== undefined,
          late: 'nobody entered the key in time',
        }),
    });
  }

  async #run<T>(
    ctx: Context,
    mount: string,
    grants: UpstreamGrants,
    work: (authorization: Authorization | undefined) => Promise<T>,
  ): Promise<T> {
    const authorization = grants.of(ctx.principal);
    let asked = 0;
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await work(authorization);
      } catch (error) {
        const challenge = error instanceof ClientError ? error.challenge : undefined;
        if (!authorization || !challenge || attempt > MAX_ATTEMPTS) throw error;
        if (await this.#authorizedSilently(authorization, challenge, ctx.signal, mount)) {
          await grants.offerForCatalogue(ctx.principal);
          continue;
        }
        const person = grants.person(ctx.principal);
        asked += 1;
        if (!person || asked > MAX_SIGN_INS) throw error;
        await this.#ask(ctx, mount, person, challenge);
      }
    }
  }

  /** Ends the sign-in to which a redirect belongs, or shows or receives a form. */
  async page({ query, person: known, form }: Omit<PageRequest, 'rest'>): Promise<PersonPage> {
    const person = known?.principal;
    const { keys, log } = this.#options;
    const url = new URL(`http://127.0.0.1/?${query}`);
    const page = await this.#keyPages.page(url, person, form);
    if (page) return page;
    if (form !== undefined) return signInPage(400, NO_SIGN_IN);
    const opened = keys.ring.open(url.searchParams.get('state') ?? '', SCOPE);
    const state = opened.ok ? opened.payload : undefined;
    const grants = isState(state)
      ? [...(this.#upstreams.get(state.mount) ?? [])].findLast((each) => each.url.href === state.resource)
      : undefined;
    const grant = isState(state) ? grants?.person(state.principal) : undefined;
    if (!isState(state) || !grant) return signInPage(400, NO_SIGN_IN);
    const { mount, principal } = state;
    if (person === undefined) return signInPage(401, UNKNOWN_PERSON);
    if (person !== principal) {
      log('warning', `${mount}: the browser of another person returned from a sign-in. Its grant was refused`);
      return signInPage(
        403,
        'Another person began this sign-in. Nothing was stored. If somebody sent you the link to it, do not use it.',
      );
    }
    try {
      await grant.finish(url, this.#closing.signal);
    } catch (error) {
      if (error instanceof SignInOver) return signInPage(400, NO_SIGN_IN);
      this.#wake(keyOf(mount, principal), this.#failure(mount, 'the sign-in failed: ', error));
      return signInPage(400, 'The sign-in failed. The program shows the reason. You can close this page.');
    }
    await grants?.offerForCatalogue(principal);
    this.#wake(keyOf(mount, principal), undefined);
    return signInPage(200, 'Signed in. You can close this page.');
  }

  async #ask(ctx: Context, mount: string, grant: ResourceGrant, challenge: Challenge): Promise<void> {
    const { principal } = ctx;
    const redirectUrl = await this.#address(mount, principal, 'a sign-in');
    let url: URL;
    try {
      url = await grant.begin(
        challenge,
        redirectUrl,
        () => this.#options.keys.ring.seal({ mount, resource: challenge.resource.href, principal }, SCOPE),
        ctx.signal,
      );
    } catch (error) {
      throw this.#failure(mount, 'the sign-in cannot begin: ', error);
    }
    await this.#askToOpen(ctx, {
      // A repeated run of the handler asks for the same page under the same name.
      mark: digest(url.searchParams.get('state') ?? '').slice(0, 8),
      name: `sign in to ${mount}`,
      message: `[${mount}] Sign in at ${url.host}, so that this call can use ${mount} for you.`,
      url,
      declined: 'the upstream demands a sign-in, which was declined',
      unasked: 'the upstream demands a sign-in. Ask the user to open this address in a browser, then repeat the call',
      mount,
      finished: () => this.#finished(ctx, mount, grant),
    });
  }

  /** Asks the caller to open a page, and waits until they have done there what the call needs. */
  async #askToOpen(ctx: Context, page: PageQuestion): Promise<void> {
    const { mark, message, mount, url } = page;
    const name = `${page.name} ${mark}`;
    // Only such a call can run again.
    const resumable = checkpointsOf(ctx) !== undefined;
    if (resumable) await ctx.step(`${BEGUN}${mark}`, () => true);
    try {
      const { [name]: answer } = await ctx.ask({ [name]: { elicitUrl: { message, url: url.href } } });
      if (answer?.status !== 'accepted') throw new SignInRequired(mount, page.declined);
    } catch (error) {
      if (!(error instanceof CannotAsk)) throw error;
      throw new SignInRequired(mount, `${page.unasked}: ${url.href}`, error);
    }
    await page.finished();
    if (resumable) await ctx.step(`${ENDED}${mark}`, () => true);
  }

  /** Waits until the browser of the person has returned, here or at another process. */
  async #finished(ctx: Context, mount: string, grant: ResourceGrant): Promise<void> {
    const key = keyOf(mount, ctx.principal);
    const until = await grant.waitsUntil();
    const failed = this.#failed.get(key);
    this.#failed.delete(key);
    if (failed) throw failed;
    if (until === undefined) return;
    await this.#wait(ctx, mount, key, {
      until,
      over: async () => (await grant.waitsUntil()) === undefined,
      late: 'nobody finished the sign-in in time',
    });
  }

  /** Waits until a browser wakes the call here, or another process has received one. */
  async #wait(ctx: Context, mount: string, key: string, { until, over, late }: PersonWait): Promise<void> {
    const { clock } = this.#options;
    const restore = prolong(ctx, Math.max(0, until - clock.date()) + MARGIN_MS);
    const woken = new AbortController();
    const either = AbortSignal.any([ctx.signal, woken.signal]);
    const waiting = this.#waiting.get(key) ?? new Set();
    this.#waiting.set(key, waiting.add(woken));
    try {
      for (;;) {
        if (ctx.signal.aborted) throw new Error('the call was cancelled');
        if (woken.signal.aborted) return woken.signal.reason === SIGNED_IN ? undefined : woken.signal.throwIfAborted();
        if ((await over()) && !woken.signal.aborted) return;
        if (!woken.signal.aborted && until <= clock.date()) throw new SignInRequired(mount, late);
        await pause(clock, LOOK_MS, either);
      }
    } finally {
      waiting.delete(woken);
      if (waiting.size === 0 && this.#waiting.get(key) === waiting) this.#waiting.delete(key);
      restore();
    }
  }

  #wake(key: string, failure: Error | undefined): void {
    const waiting = this.#waiting.get(key);
    this.#failed.delete(key);
    if (waiting) for (const each of waiting) each.abort(failure ?? SIGNED_IN);
    else if (failure) {
      this.#failed.set(key, failure);
      if (this.#failed.size > MAX_FAILED) this.#failed.delete([...this.#failed.keys()][0] ?? '');
    }
  }

  /**
   * The address at which the browser of this principal returns, and is known to be theirs.
   *
   * @param what the upstream demands
   */
  async #address(mount: string, principal: string, what: string): Promise<string> {
    if (principal === LOCAL) {
      this.#loopback ??= loopbackRedirects((url, form) =>
        this.page({ query: url.search.slice(1), person: authOf(LOCAL), form }),
      );
      return (await this.#loopback).redirectUrl;
    }
    const identifies = principal !== ANONYMOUS;
    const address = this.#options.addresses().find((each) => each.identifies === identifies);
    if (address) return address.url;
    throw new SignInRequired(
      mount,
      identifies
        ? `the upstream demands ${what}, and this server cannot tell whose browser returns from it. Its operator must set http.signIn with \`url\` and \`identify\``
        : `the upstream demands ${what}, and this server does not know its callers. Its operator must authenticate them, and set http.signIn`,
    );
  }

  async #authorizedSilently(
    authorization: Authorization,
    challenge: Challenge,
    signal: AbortSignal,
    mount: string,
  ): Promise<boolean> {
    try {
      await authorization.authorize(challenge, signal);
      return true;
    } catch (error) {
      if (error instanceof SignInNeeded) return false;
      throw this.#failure(mount, '', error);
    }
  }

  /** A failure for the caller, who gets no address, and for the log, which has the whole. */
  #failure(mount: string, what: string, error: unknown): SignInRequired {
    const message = messageOf(error);
    this.#options.log('warning', `${mount}: sign-in: ${message}`);
    return new SignInRequired(mount, `${what}${withoutAddresses(message)}`, error);
  }
}

/** True if an earlier run of a call, with these steps, ended while its caller was asked to open a page: nothing was sent. */
export function isAsking(steps: JsonObject): boolean {
  return Object.keys(steps).some(
    (step) => step.startsWith(BEGUN) && steps[`${ENDED}${step.slice(BEGUN.length)}`] === undefined,
  );
}

/**
 * The text without the addresses that errors of connections contain: URLs, IP addresses, and the host after a code of the
 * operating system.
 */
function withoutAddresses(text: string): string {
  return text
    .replace(/\b(E[A-Z_]{4,})\s+\S+/g, '$1')
    .replace(/[^\s()"',]*(?:\/\/|\d\.\d+\.\d+\.\d|::|:\d)[^\s()"',]*|\S+(?= has no address)/g, '…');
}

function keyOf(what: string, principal: string): string {
  return `${what} ${principal}`;
}

function isState(value: unknown): value is State {
  return isObject(value) && [value.mount, value.resource, value.principal].every((each) => typeof each === 'string');
}

/** The MCP endpoint: checks HTTP requests and routes each to its connection. */

import { durationOf } from '../kernel/duration.ts';
import { Quota } from '../kernel/quota.ts';
import { sha256 } from '../kernel/sha256.ts';
import type { Denial } from '../kernel/telemetry/metrics.ts';
import type { Auth } from '../messages/auth.ts';
import { ErrorCode, type ErrorCodeValue } from '../protocol/errors.ts';
import type { JsonObject } from '../protocol/json.ts';
import type { RequestId } from '../protocol/jsonrpc.ts';
import { ANONYMOUS } from '../protocol/principals.ts';
import { type PageAddress, type Readiness, readinessDocument, type TransportHost } from '../transports/transport.ts';
import type { EndpointNodes } from './forwarded-request.ts';
import { HostGuard, type HostRefusal, isLoopback, networkOf } from './host-guard.ts';
import {
  type Authentication,
  type AuthenticationRequest,
  callerOf,
  FunctionAuthenticator,
  type HttpAuthenticator,
  type LoadExcess,
  REJECTED,
} from './http-authenticator.ts';
import type { Headers, HttpRequest } from './http-message.ts';
import type { ResolvedHttpOptions } from './http-options.ts';
import type { OpenRoutes, RouteAnswers } from './mcp-routes.ts';
import { HTTP_METHODS, namesStream, SSE_METHODS } from './methods-of-paths.ts';
import type { ClusteredHost, LinkedExchange } from './other-nodes.ts';
import { type FoundPage, PersonRoute } from './person-route.ts';
import { RequestRate } from './request-rate.ts';
import { type CardDocument, cardDocuments } from './server-card.ts';
import { receiveWebhook, type WebhookRoute } from './webhook-route.ts';

/** The statuses after which a retry may succeed, and the header that says when, unless a response has its own. */
const LATER: ReadonlySet<number> = new Set([429, 503]);
const RETRY_SOON = { 'retry-after': '1' };

interface EndpointOptions extends ResolvedHttpOptions {
  /** True if only this machine can reach the endpoint, as far as is known. */
  readonly loopback: boolean;
  /** True if the endpoint serves every path and leaves health checks to its host. */
  readonly mounted: boolean;
}

const CLOSED: HostRefusal = { status: 503, message: 'this server is closed' };
const UNDECIDED: HostRefusal = { status: 503, message: 'the server cannot authenticate requests. Retry later' };
/** Of an endpoint that is not open yet, or drains. */
const NOT_READY: Readiness = { ready: false, reasons: ['draining'] };
/** Longest body of a form. */
const MAX_FORM_BYTES = 65_536;
const DOCUMENT_METHODS = 'GET, HEAD, OPTIONS';
/** Milliseconds in which an authenticator must decide. */
const DECISION_MS = 15_000;
/** Clients and proxies may cache a document for an hour. */
const DOCUMENT_CACHE = 'public, max-age=3600';

let loadingRoutes: Promise<typeof import('./mcp-routes.ts')> | undefined;

/**
 * Loads the routes, once for all endpoints. On demand: many servers have no HTTP and would pay for the import at each start.
 */
export function loadRoutes(): Promise<typeof import('./mcp-routes.ts')> {
  loadingRoutes ??= import('./mcp-routes.ts');
  return loadingRoutes;
}

export class Endpoint implements RouteAnswers {
  readonly #options: EndpointOptions;
  readonly #guard: HostGuard;
  /** The open exchanges of each principal. */
  readonly #exchanges: Quota;
  readonly #rate: RequestRate | undefined;
  readonly #authenticator: HttpAuthenticator | undefined;
  readonly #people: PersonRoute;
  /** The path at which a GET opens HTTP+SSE whatever its headers are; undefined if it equals the endpoint's path. */
  readonly #ssePath: string | undefined;
  #open: OpenRoutes | undefined;
  /** By path: the card of the server, and its catalogue. */
  #cards: ReadonlyMap<string, CardDocument> = new Map();
  /** Ends the wait of each request that is being authenticated. */
  readonly #undecided = new Set<() => void>();
  #draining = false;
  /** Asks clients to close their connections. */
  #leaving = false;
  #closed = false;

  /** @throws {TypeError} for an invalid host, origin or header in the lists */
  constructor(options: EndpointOptions) {
    this.#options = options;
    const { rate, auth, authenticate, maxExchanges, maxExchangesPerPrincipal } = options;
    this.#guard = new HostGuard(options);
    this.#exchanges = new Quota({
      what: 'exchanges open',
      max: maxExchanges,
      option: 'http.maxExchanges',
      perPrincipal: { max: maxExchangesPerPrincipal, option: 'http.maxExchangesPerPrincipal' },
    });
    this.#rate = rate && new RequestRate(rate);
    this.#authenticator = auth ?? (authenticate && new FunctionAuthenticator((request) => authenticate(request)));
    this.#people = new PersonRoute({ ...options, authenticates: this.#authenticator !== undefined });
    const beside = options.path.replace(/[^/]*$/, 'sse');
    this.#ssePath = beside === options.path ? undefined : beside;
  }

  async open(host: TransportHost): Promise<void> {
    const { openRoutes } = await loadRoutes();
    if (this.#closed) return;
    if (host.info) this.#cards = cardDocuments(this.#options, host.info);
    const cluster = isClustered(host) ? this.#enter(host) : undefined;
    this.#open = openRoutes(host, this.#options, this.#exchanges, this, this.#authenticator, cluster);
  }

  /** Asks clients to close their connections, and serves every request. */
  moveAway(): void {
    this.#leaving = true;
  }

  /** Serves the requests of other nodes, too, and counts the rate with them. */
  #enter({ nodes, hops, clock }: TransportHost & ClusteredHost): EndpointNodes {
    const endpoint = nodes.serve({
      forwarded: (exchange) => this.#forwarded(exchange),
      rated: (from, news) => this.#rate?.rated(from, news),
    });
    this.#rate?.share(nodes, endpoint, clock);
    return { nodes, endpoint, hops };
  }

  /** True while it asks clients to close their connections. */
  leaving(): boolean {
    return this.#leaving;
  }

  /** Rejects new requests, and asks clients to close their connections. */
  drain(): void {
    this.#draining = true;
    this.#leaving = true;
  }

  /** Ends every stream, in slices, and asks the clients of resumable streams to reconnect. */
  close(): Promise<void> {
    this.drain();
    this.#closed = true;
    for (const end of this.#undecided) end();
    this.#rate?.stop();
    return this.#open?.connections.close() ?? Promise.resolve();
  }

  /** Serves one request. Never throws. */
  handle(request: HttpRequest): void {
    const { path, mounted } = this.#options;
    const { url, version } = request;
    if (version !== undefined && version !== '1.1' && version !== '1.0' && !(mounted && version === '2.0'))
      return this.refuse(request, {
        status: version === '0.9' ? 400 : 505,
        message: `request line: expected HTTP/1.1, got ${version === '0.9' ? 'no version' : `HTTP/${version}`}`,
      });
    // RFC 9112 section 3.2: the host of an absolute target would override the Host header.
    if (!url.startsWith('/'))
      return this.refuse(request, { status: 400, message: 'request line: expected a path, got another target' });
    const at = url.indexOf('?');
    const asked = at === -1 ? url : url.slice(0, at);
    const here = mounted || asked === path;
    const health = !here && (asked === '/healthz' || asked === '/readyz');
    // A probe that uses the address of a process need not know its names: Kubernetes sends the address of the pod.
    const address = health ? request.localAddress : undefined;
    const page = mounted || !here ? this.#people.find(asked, this.#open?.host.pages) : undefined;
    const webhook = here && !mounted ? undefined : this.#open?.host.webhook?.(asked);
    if (webhook) return this.#webhook(request, webhook, asked, at === -1 ? '' : url.slice(at + 1));
    const origin = request.header('origin');
    const ownForm = page !== undefined && this.#people.isOwnOrigin(origin);
    const card = this.#cards.get(asked);
    const refusal = this.#guard.check(request.header('host'), ownForm || card ? undefined : origin, address);
    if (refusal) return this.refuse(request, refusal);
    if (card) return this.#card(request, card);
    if (health) return this.#health(request, asked);
    const document = this.#authenticator?.documents.get(asked);
    if (document) return this.#document(request, document);
    if (page) return this.#page(request, page, at === -1 ? '' : url.slice(at + 1));
    const old = mounted ? asked.endsWith('/sse') : asked === this.#ssePath;
    if (!here && !old)
      return this.refuse(request, {
        status: 404,
        message: `path: expected ${path}, the MCP endpoint of this server (http.path), got ${asked.slice(0, 100)}`,
      });
    if (!this.#open || this.#closed) return this.refuse(request, CLOSED, ErrorCode.ShuttingDown);
    const query = at === -1 ? '' : url.slice(at + 1);
    const methods = old ? SSE_METHODS : HTTP_METHODS;
    switch (request.method) {
      case 'POST':
        if (old && !namesStream(query)) break;
        return this.#authenticate(request, query, old);
      case 'GET':
        return this.#authenticate(request, query, old);
      case 'DELETE':
        if (old) break;
        return this.#authenticate(request, query, old);
      case 'OPTIONS':
        return this.#preflight(request, methods, request.header('access-control-request-headers'));
    }
    // A client that probes the transport with a POST takes 405 for HTTP+SSE (2025-11-25 transports, "Backwards
    // Compatibility").
    const advice = old
      ? `: this path serves HTTP+SSE (2024-11-05). Open it with GET; other revisions use ${mounted ? 'another path' : path}`
      : '';
    this.#wrongMethod(request, `one of ${methods}`, methods, advice);
  }

  #preflight(request: HttpRequest, allow: string, requested?: string): void {
    const headers = this.#guard.preflight(request.header('origin'), requested);
    request.response.send(204, { allow, ...headers }, undefined);
  }

  #wrongMethod(request: HttpRequest, expected: string, allow = expected, advice = ''): void {
    const message = `method: expected ${expected}, got ${request.method}${advice}`;
    this.refuse(request, { status: 405, message, headers: { allow } });
  }

  /** Serves the health checks. */
  #health(request: HttpRequest, asked: string): void {
    if (request.method !== 'GET' && request.method !== 'HEAD') return this.#wrongMethod(request, 'GET', 'GET, HEAD');
    const host = this.#open?.host;
    const readiness = host && !this.#draining ? host.readiness() : NOT_READY;
    const ok = asked === '/healthz' || readiness.ready;
    const detailed = host && asked === '/readyz' && wantsReasons(request);
    request.response.send(
      ok ? 200 : 503,
      {
        'content-type': detailed ? 'application/json' : 'text/plain',
        'cache-control': 'no-store',
        ...(ok ? undefined : RETRY_SOON),
      },
      detailed ? readinessDocument(host, readiness) : ok ? 'ok\n' : 'not ready\n',
    );
  }

  /** @param own the address of the endpoint, once it is known */
  pageAddress(path: string, own: string | undefined): PageAddress | undefined {
    return this.#people.address(path, own);
  }

  /** Serves the browser of a person. */
  #page(request: HttpRequest, page: FoundPage, query: string): void {
    const { method } = request;
    if (method !== 'GET' && method !== 'POST') return this.#wrongMethod(request, 'GET or POST', 'GET, POST');
    const host = this.#open?.host;
    if (!host || this.#closed) return this.refuse(request, CLOSED, ErrorCode.ShuttingDown);
    const show = (form: string | undefined): void =>
      void this.#people.page(described(request, query), page, host, form).then(({ status, headers, text }) => {
        if (!request.response.gone) request.response.send(status, headers, text);
      });
    if (method === 'GET') return show(undefined);
    request.body({ maxMessageBytes: MAX_FORM_BYTES, retained: host.retained }, ANONYMOUS, (body) => {
      if ('text' in body) show(body.text);
      else this.refuse(request, { status: 400, message: `form: expected at most ${MAX_FORM_BYTES} bytes of UTF-8` });
    });
  }

  /** Serves a sender of deliveries, which no list need name: its signature counts. */
  #webhook(request: HttpRequest, webhook: WebhookRoute, path: string, query: string): void {
    const { method } = request;
    if (method !== 'POST' && method !== 'GET') return this.#wrongMethod(request, 'POST');
    const host = this.#open?.host;
    if (!host || this.#closed) return this.refuse(request, CLOSED, ErrorCode.ShuttingDown);
    const excess = this.#exchanges.excess(ANONYMOUS);
    const busy = excess && { option: excess.option, message: excess.message, retryMs: 1_000 };
    const tooMuch = busy ?? webhook.tooOften(networkOf(request.remoteAddress ?? ''));
    if (tooMuch) return this.#tooMuch(request, ANONYMOUS, tooMuch);
    if (request.response.gone) return;
    this.#exchanges.add(ANONYMOUS);
    request.response.listener = { closed: () => this.#exchanges.remove(ANONYMOUS), drained() {} };
    receiveWebhook(request, webhook, { method, path, query, host }, this);
  }

  /** Serves a card, which a page of any site may read. */
  #card(request: HttpRequest, { headers, body }: CardDocument): void {
    const { method, response } = request;
    if (method === 'OPTIONS') return response.send(204, headers, undefined);
    if (method !== 'GET' && method !== 'HEAD') return response.send(405, { ...headers, allow: DOCUMENT_METHODS }, '');
    const text = this.#open?.host.document(body) ?? '';
    const etag = `"${sha256(text).slice(0, 22)}"`;
    const known = (request.header('if-none-match') ?? '').split(',').map((each) => each.trim().replace(/^W\//, ''));
    const isKnown = known.includes(etag) || known.includes('*');
    response.send(isKnown ? 304 : 200, { ...headers, etag }, isKnown ? undefined : text);
  }

  /** Serves a document of the authenticator, such as its metadata (RFC 9728 section 3). */
  #document(request: HttpRequest, document: JsonObject): void {
    const { method } = request;
    if (method === 'OPTIONS') return this.#preflight(request, DOCUMENT_METHODS);
    if (method !== 'GET' && method !== 'HEAD')
      return this.#wrongMethod(request, `one of ${DOCUMENT_METHODS}`, DOCUMENT_METHODS);
    const host = this.#open?.host;
    if (!host) return this.refuse(request, CLOSED, ErrorCode.ShuttingDown);
    const text = host.document(document);
    const headers = { 'content-type': 'application/json', 'cache-control': DOCUMENT_CACHE, ...this.headers(request) };
    request.response.send(200, headers, text);
  }

  #authenticate(request: HttpRequest, query: string, old: boolean): void {
    const authenticator = this.#authenticator;
    if (!authenticator) return this.#admit(request, query, old, undefined);
    try {
      const answer = authenticator.authenticate(described(request, query));
      if ('then' in answer) this.#await(answer, request, query, old);
      else this.#authenticated(request, query, old, answer);
    } catch (error) {
      this.#unable(request, error);
    }
  }

  /** Waits for an authenticator: until its deadline, or until the server closes. */
  #await(answer: Promise<Authentication>, request: HttpRequest, query: string, old: boolean): void {
    const clock = this.#open?.host.clock;
    let waits = true;
    const leave = (): boolean => {
      const waited = waits;
      waits = false;
      timer?.cancel();
      this.#undecided.delete(end);
      return waited;
    };
    const end = (): void => {
      if (!leave()) return;
      if (this.#closed) return this.refuse(request, CLOSED, ErrorCode.ShuttingDown);
      const error = new Error(`the authenticator has not decided within ${durationOf(DECISION_MS)}`);
      this.#open?.host.bus.emit('fault', { where: this.#options.auth ? 'http.auth' : 'http.authenticate', error });
      this.#denied(request, 503);
      this.refuse(request, UNDECIDED, ErrorCode.Overloaded);
    };
    const timer = clock?.after(DECISION_MS, end);
    this.#undecided.add(end);
    answer.then(
      (found) => {
        if (!leave()) return;
        try {
          this.#authenticated(request, query, old, found);
        } catch (error) {
          this.#unable(request, error);
        }
      },
      (error: unknown) => {
        if (leave()) this.#unable(request, error);
      },
    );
  }

  /** @throws {Error} for a reserved principal */
  #authenticated(request: HttpRequest, query: string, old: boolean, found: Authentication): void {
    if ('auth' in found) return this.#admit(request, query, old, callerOf(found.auth));
    if ('excess' in found) return this.#tooMuch(request, ANONYMOUS, found.excess);
    const { cause } = found;
    if (cause !== undefined) this.#open?.host.bus.emit('fault', { where: 'http.auth', error: cause });
    this.#denied(request, found.status);
    this.refuse(request, found, found.status === 503 ? ErrorCode.Overloaded : ErrorCode.InvalidRequest);
  }

  /** The authenticator failed: no request passes. An author's function may throw for credentials that it rejects. */
  #unable(request: HttpRequest, error: unknown): void {
    const { auth } = this.#options;
    this.#open?.host.bus.emit('fault', { where: auth ? 'http.auth' : 'http.authenticate', error });
    this.#denied(request, auth ? 503 : REJECTED.status);
    if (!auth) return this.refuse(request, REJECTED);
    this.refuse(request, UNDECIDED, ErrorCode.Overloaded);
  }

  /** Counts a request that was not authenticated, and records it if its credentials were rejected. */
  #denied(request: HttpRequest, status: 400 | 401 | 403 | 503): void {
    const { host } = this.#open ?? {};
    host?.metrics.denied(denialOf(request, status));
    if (status === 503) return;
    if (host?.bus.has('authentication.failed'))
      host.bus.emit('authentication.failed', { remoteAddress: request.remoteAddress });
  }

  /** Serves a request that another node has authenticated, checked and counted against the rate. */
  #forwarded(request: LinkedExchange): void {
    const { url } = request;
    const at = url.indexOf('?');
    if (!this.#open || this.#closed) return request.notMine();
    try {
      const asked = at === -1 ? url : url.slice(0, at);
      const old = this.#options.mounted ? asked.endsWith('/sse') : asked === this.#ssePath;
      this.#route(this.#open, request, at === -1 ? '' : url.slice(at + 1), old, request.auth);
    } catch (error) {
      this.#open.host.bus.emit('fault', { where: 'a request from another node', error });
      request.response.destroy();
    }
  }

  #admit(request: HttpRequest, query: string, old: boolean, auth: Auth | undefined): void {
    const open = this.#open;
    // The client may have disconnected while it was authenticated.
    if (!open || request.response.gone) return;
    const principal = auth?.principal ?? ANONYMOUS;
    request.auth = auth;
    const excess = this.#rate?.tooOften(this.#who(request, principal), open.host.clock.now());
    if (excess) return this.#tooMuch(request, principal, excess);
    this.#route(open, request, query, old, auth);
  }

  #route({ routes }: OpenRoutes, request: HttpRequest, query: string, old: boolean, auth: Auth | undefined): void {
    const principal = auth?.principal ?? ANONYMOUS;
    if (request.method === 'DELETE') return routes.delete(request, principal);
    const excess = this.#exchanges.excess(principal);
    if (excess) {
      const message = `${excess.message}. Close one, or wait for a response`;
      return this.#tooMuch(request, principal, { option: excess.option, message, retryMs: 1_000 });
    }
    this.#exchanges.add(principal);
    if (request.method === 'POST') routes.post(request, query, principal);
    else if (old) routes.getOld(request, principal);
    else routes.get(request, principal);
  }

  /** The key of the rate limit: the principal; without authentication the session, or else the remote address. */
  #who(request: HttpRequest, principal: string): string {
    if (principal !== ANONYMOUS) return `principal ${principal}`;
    const session = request.header('mcp-session-id');
    if (session !== undefined && this.#open?.connections.session(session, principal)) return `session ${session}`;
    return `address ${networkOf(request.remoteAddress ?? '')}`;
  }

  #tooMuch(request: HttpRequest, principal: string, { option, message, retryMs }: LoadExcess): void {
    const { remoteAddress } = request;
    const { bus, metrics } = this.#open?.host ?? {};
    metrics?.refused(option);
    if (bus?.has('client.limited')) bus.emit('client.limited', { principal, option, remoteAddress });
    const headers = { 'retry-after': String(Math.ceil(retryMs / 1_000)) };
    this.refuse(request, { status: 429, message, headers }, ErrorCode.Overloaded);
  }

  refuse(
    request: HttpRequest,
    { status, message, headers }: HostRefusal,
    code: ErrorCodeValue = ErrorCode.InvalidRequest,
    id?: RequestId,
  ): void {
    const text = this.#open?.host.refusal(code, message, id);
    const type = text === undefined ? 'text/plain' : 'application/json';
    request.response.send(
      status,
      { 'content-type': type, ...(LATER.has(status) ? RETRY_SOON : undefined), ...this.headers(request), ...headers },
      text ?? `${message}\n`,
    );
  }

  /**
   * Headers of every response, in addition to those of its kind; undefined if there are none, which is the usual case.
   */
  headers(request: Pick<HttpRequest, 'header'>): Headers | undefined {
    const origin = request.header('origin');
    if (!this.#leaving && origin === undefined) return undefined;
    const cors = this.#guard.cors(origin);
    return this.#leaving ? { ...cors, connection: 'close' } : cors;
  }
}

/** The part of a request that an authenticator receives. */
function described(request: HttpRequest, query: string): AuthenticationRequest {
  const { method, url, remoteAddress, connection } = request;
  return {
    method,
    url,
    query,
    header: (name) => request.header(name.toLowerCase()),
    values: (name) => request.values(name.toLowerCase()),
    remoteAddress,
    connection,
  };
}

function isClustered(host: TransportHost): host is TransportHost & ClusteredHost {
  return 'nodes' in host && host.nodes !== undefined;
}

/** The reason for a rejection, for the metrics. */
function denialOf(request: HttpRequest, status: 400 | 401 | 403 | 503): Denial {
  switch (status) {
    case 403:
      return 'scope';
    case 503:
      return 'unavailable';
    default:
      return request.header('authorization') === undefined ? 'unauthenticated' : 'invalid token';
  }
}

/** The reasons for which a server is not ready are for those who run it: a client elsewhere gets the status only. */
function wantsReasons(request: HttpRequest): boolean {
  const { remoteAddress = '' } = request;
  return isLoopback(remoteAddress) && /\bapplication\/json\b/i.test(request.header('accept') ?? '');
}

/** The options of the HTTP transport, with their defaults and checks. */

import { isObject } from '../protocol/json.ts';
import * as option from '../protocol/option-rows.ts';
import type { Implementation } from '../protocol/types.ts';
import { isLoopback } from './host-guard.ts';
import type { AuthenticateResult, AuthenticationRequest, HttpAuthenticator } from './http-authenticator.ts';
import { cardRow, checkCard, type ServerCardOptions } from './server-card.ts';

/** The address of a metrics listener. */
export interface MetricsAddress {
  /** Port; 0 chooses a free one. OpenTelemetry's exporter for Prometheus uses 9464. */
  readonly port: number;
  /** Address to bind. Default `127.0.0.1`. Everyone who reaches the address can read the metrics. */
  readonly host?: string | undefined;
}

/** The pages of an HTTP transport for people, who sign in at upstreams or decide about approvals. */
export interface SignInOptions {
  /**
   * The address to which authorization servers redirect browsers: an https URL of this server, or an http URL of a loopback
   * host. Its path is served besides the endpoint, and so are the pages beside it, such as `/approvals` for an address that ends with
   * `/oauth/callback`. Default: `/oauth/callback` of this port, on loopback and without authentication only.
   */
  readonly url?: string;
  /**
   * Returns the person whose browser sends the request, such as the owner of a session cookie, in the form of `authenticate`;
   * undefined if that is unknown. A grant is refused unless it is the principal that began the sign-in (MCP 2025-11-25 elicitation,
   * "Phishing"). The scopes and claims decide about whose calls the person may decide (docs/approvals.md).
   *
   * @example identify: ({ header }) => sessions.get(cookieOf(header('cookie')))
   */
  identify?(request: AuthenticationRequest): AuthenticateResult | Promise<AuthenticateResult>;
}

export interface HttpOptions {
  /** Default 3000; 0 selects any free port. */
  readonly port?: number;
  /** The address to bind. Default `127.0.0.1`; an address that other machines can reach needs `allowedHosts`. */
  readonly host?: string;
  /**
   * The path of the endpoint. Default `/mcp`. `server.fetch` and `server.node` serve every path on which they are
   * mounted.
   */
  readonly path?: string;
  /**
   * The names that clients may use for this server (the Host header), such as `mcp.example.com`. A name with a port is
   * accepted only with that port.
   */
  readonly allowedHosts?: readonly string[];
  /** The origins whose pages may use this server from a browser, such as `https://app.example.com`. */
  readonly allowedOrigins?: readonly string[];
  /**
   * The names of further headers that pages of `allowedOrigins` may send, such as `X-Api-Key` for an authenticator that reads
   * it. The headers of MCP and `Authorization` are always allowed.
   */
  readonly allowedHeaders?: readonly string[];
  /**
   * Returns the principal of a request, with its scopes if it has any, or `undefined` to reject it with 401. Called for
   * every request: a session serves only the principal that opened it. Default: every client is `anonymous`.
   *
   * @example authenticate: ({ header }) => (header('x-api-key') === key ? { principal: 'ada', scopes: ['read'] } : undefined)
   */
  authenticate?(request: AuthenticationRequest): AuthenticateResult | Promise<AuthenticateResult>;
  /** Authenticates requests instead of `authenticate`, such as `oauth()` of `troupe/oauth`. */
  readonly auth?: HttpAuthenticator | undefined;
  /**
   * Shows people pages: they sign in at the upstreams of this server (docs/gateway.md), or decide about calls (docs/approvals.md). Default: on loopback without authentication, the
   * person at this machine.
   */
  readonly signIn?: SignInOptions | undefined;
  /**
   * `auto` (default): one JSON body, or a stream if anything is sent before the answer. `json` drops everything before
   * the answer.
   */
  readonly response?: 'auto' | 'json' | 'sse';
  /** Milliseconds after which a client should reconnect to a stream that the server has ended. Default 1,000. */
  readonly retryMs?: number;
  /**
   * Milliseconds without output after which a comment keeps a stream open. A request that takes longer becomes a
   * stream. Default 15,000.
   */
  readonly keepAliveMs?: number;
  /** Milliseconds after which a client that reads nothing is disconnected. Default 30,000. */
  readonly stallMs?: number;
  /**
   * Milliseconds without a request after which a connection closes; a host of a mounted server decides itself. Default 75,000:
   * longer than the 60 s for which balancers reuse a connection. A request on a connection that closes would get 502.
   */
  readonly idleConnectionMs?: number;
  /** Milliseconds after which an idle session ends. Default 1,800,000 (half an hour). */
  readonly sessionIdleMs?: number;
  /**
   * Milliseconds for which a stream can be resumed after its answer was sent. Default 900,000 (a quarter of an hour).
   */
  readonly replayMs?: number;
  /** Maximum number of events, and of bytes, that one stream buffers for replay. Default 1,000 and 1 MiB. */
  readonly maxReplayEvents?: number;
  readonly maxReplayBytes?: number;
  /** Maximum number of open exchanges: unanswered requests and streams. Default 4,096. */
  readonly maxExchanges?: number;
  /** The same limit for each principal except `anonymous`. Default 256. */
  readonly maxExchangesPerPrincipal?: number;
  /**
   * Rate limit for each principal; without authentication for each session, or else for each remote address. Default:
   * no limit.
   */
  readonly rate?: { readonly perSecond: number; readonly burst: number };
  /**
   * Serves a card of the server at `/server-card` below the endpoint, and a catalogue, to everybody. Experimental. Default: not. See
   * docs/http.md.
   */
  readonly card?: boolean | ServerCardOptions | undefined;
  /**
   * Serves the metrics for Prometheus at `/metrics` of a port of its own: `{ port: 9464 }`, on `127.0.0.1` unless `host`
   * names another address. Default: not. See docs/observe.md.
   */
  readonly metrics?: MetricsAddress;
  /**
   * Milliseconds after the server begins to close in which it still serves every request, while `/readyz` is 503 already:
   * the time that a balancer needs to learn that. Default 0; about 5,000 under Kubernetes.
   */
  readonly drainDelayMs?: number;
  /**
   * The process only serves: exceptions that a handler throws too late are logged and do not end the process. Default
   * false.
   */
  readonly ownsProcess?: boolean;
}

/** The default of `maxExchanges`. */
export const MAX_EXCHANGES = 4_096;

/**
 * The options of `createServer({ http })`, which apply wherever the server serves HTTP. An address belongs to one
 * transport.
 */
export type SharedHttpOptions = Omit<HttpOptions, 'port' | 'host' | 'path' | 'metrics' | 'ownsProcess'>;

declare module '../transports/transport.ts' {
  interface TransportHost {
    /** The server's own HTTP options; each applies to an HTTP transport without its own value. */
    readonly http?: SharedHttpOptions | undefined;
    /** The server as its card describes it. */
    readonly info?: Implementation;
  }
}

/**
 * Merges a transport's options with the server's, which fill the gaps. `undefined` counts as a gap, so that `http({
 * authenticate: undefined })` does not disable the authentication of its server.
 */
export function withShared(own: HttpOptions, shared: SharedHttpOptions | undefined): HttpOptions {
  const given = option.withoutUndefined(own);
  // The transport's way to authenticate replaces the server's, whichever of the two options each has.
  const { auth, authenticate, ...rest } = shared ?? {};
  const replaced = given.auth !== undefined || given.authenticate !== undefined;
  return replaced ? { ...rest, ...given } : { ...shared, ...given };
}

/** True if an option authenticates clients. */
export function authenticates({ auth, authenticate }: Pick<HttpOptions, 'auth' | 'authenticate'>): boolean {
  return auth !== undefined || authenticate !== undefined;
}

type WithoutDefault = 'auth' | 'authenticate' | 'allowedHosts' | 'card' | 'metrics' | 'rate' | 'signIn';

export type ResolvedHttpOptions = Required<Omit<HttpOptions, WithoutDefault>> & Pick<HttpOptions, WithoutDefault>;

const DEFAULTS = {
  port: 3_000,
  host: '127.0.0.1',
  path: '/mcp',
  allowedOrigins: [],
  allowedHeaders: [],
  response: 'auto',
  retryMs: 1_000,
  keepAliveMs: 15_000,
  stallMs: 30_000,
  idleConnectionMs: 75_000,
  sessionIdleMs: 30 * 60_000,
  replayMs: 15 * 60_000,
  maxReplayEvents: 1_000,
  maxReplayBytes: 1024 * 1024,
  maxExchanges: MAX_EXCHANGES,
  maxExchangesPerPrincipal: 256,
  drainDelayMs: 0,
  ownsProcess: false,
} as const satisfies HttpOptions;

const metricsAddress = option.group('{ port: 9464 }', {
  port: option.needed(option.portNumber),
  host: option.expected('an address such as "127.0.0.1"', option.isFilled),
} satisfies option.Rows<MetricsAddress>);

const signInRows: option.Rows<SignInOptions> = {
  identify: option.functional,
  // An authorization server would not redirect to another address.
  url: option.expected('an https address such as "https://mcp.example.com/oauth/callback"', (url) => {
    const parsed = typeof url === 'string' && URL.canParse(url) ? new URL(url) : undefined;
    const secure = parsed?.protocol === 'https:' || (parsed?.protocol === 'http:' && isLoopback(parsed.hostname));
    return secure && parsed.search === '' && parsed.hash === '';
  }),
};
const signIn = option.group('{ url, identify }', signInRows);

const ROWS: option.Rows<HttpOptions> = {
  ...option.ofDefaults(DEFAULTS),
  metrics: metricsAddress,
  card: cardRow,
  signIn: (value) =>
    signIn(value) ??
    (isObject(value) && value.identify !== undefined && value.url === undefined
      ? 'url: expected the address of this server for browsers, got nothing'
      : undefined),
  port: option.portNumber,
  path: option.expected(
    'a path such as "/mcp"',
    (path) => typeof path === 'string' && /^\/[\w\-.~!$&'()*+,;=:@%/]*$/.test(path),
  ),
  response: option.oneOf('auto', 'json', 'sse'),
  authenticate: option.functional,
  auth: option.expected(
    'an authenticator, such as oauth() of troupe/oauth',
    (auth) =>
      isObject(auth) &&
      option.isFunction(auth.authenticate) &&
      option.isFunction(auth.challenge) &&
      auth.documents instanceof Map,
  ),
  ...option.each(['allowedHosts', 'allowedOrigins', 'allowedHeaders'], option.strings),
  drainDelayMs: option.delay,
  rate: option.rate(),
  host: option.expected('an address such as "127.0.0.1"', option.isFilled),
};

/** @throws {TypeError | RangeError} for an unknown or invalid option, with its name and the expected value */
export function resolveHttpOptions(given: HttpOptions): ResolvedHttpOptions {
  option.check('http: ', given, ROWS);
  const resolved: ResolvedHttpOptions = { ...DEFAULTS, ...option.withoutUndefined(given) };
  const { host, allowedHosts, auth, authenticate } = resolved;
  if (auth !== undefined && authenticate !== undefined)
    throw new TypeError('http: expected "auth" or "authenticate", got both. Remove one of them');
  checkCard(resolved);
  if (!isLoopback(host) && !allowedHosts?.length)
    throw new TypeError(
      `http: host: ${host} is reachable from other machines, or by a page under another name (DNS rebinding). List the names that clients may use in allowedHosts, for example allowedHosts: ["mcp.example.com"]`,
    );
  return resolved;
}

/** What the HTTP transport can be told, and what holds when it is not. */

import { LONGEST_TIMER_MS } from '../../clock.ts';
import { describe } from '../../protocol/json.ts';
import { isLoopback } from './host-guard.ts';

/** What {@link HttpOptions.authenticate} sees of a request. */
export interface AuthenticationRequest {
  readonly method: string;
  /** Path and query, as they came. */
  readonly url: string;
  /** A header by its name, in any case. */
  header(name: string): string | undefined;
  /** The address at the other end of the connection: a proxy's, where there is one. Unknown to `server.fetch`. */
  readonly remoteAddress: string | undefined;
}

export interface HttpOptions {
  /** Default 3000; 0 takes any free one. */
  readonly port?: number;
  /** The address to bind. Default `127.0.0.1`; one that others can reach needs `allowedHosts`. */
  readonly host?: string;
  /** The path of the endpoint. Default `/mcp`. `server.fetch` and `server.node` answer on whatever path they are mounted. */
  readonly path?: string;
  /** The names by which clients may call this server (the Host header), such as `mcp.example.com`; with a port, only on that. */
  readonly allowedHosts?: readonly string[];
  /** The origins whose pages may use this server from a browser, such as `https://app.example.com`. */
  readonly allowedOrigins?: readonly string[];
  /**
   * Says who a request is authorised as; `undefined` refuses it with 401. Asked for every request: a session serves only the
   * principal that opened it. Default: everybody is `anonymous`.
   */
  authenticate?(request: AuthenticationRequest): string | undefined | Promise<string | undefined>;
  /** `auto` (default): one JSON body, or a stream if something is sent before the answer. `json` drops what is sent before it. */
  readonly response?: 'auto' | 'json' | 'sse';
  /** Milliseconds after which a client is to come back to a stream that the server has ended. Default 1,000. */
  readonly retryMs?: number;
  /** Milliseconds of silence after which a comment keeps a stream open; a request that takes longer becomes a stream. Default 15,000. */
  readonly keepAliveMs?: number;
  /** Milliseconds after which a client that reads nothing is disconnected. Default 30,000. */
  readonly stallMs?: number;
  /** Milliseconds after which a session ends that nobody uses. Default 1,800,000 (half an hour). */
  readonly sessionIdleMs?: number;
  /** Milliseconds for which a stream can be replayed after its answer was sent. Default 900,000 (a quarter of an hour). */
  readonly replayMs?: number;
  /** Most events of one stream that are kept to be replayed, and most bytes of them. Default 1,000 and 1 MiB. */
  readonly maxReplayEvents?: number;
  readonly maxReplayBytes?: number;
  /** Most exchanges open at once: requests without an answer, and streams. Default 4,096. */
  readonly maxExchanges?: number;
  /** The same for each principal (but `anonymous`). Default 256. */
  readonly maxExchangesPerPrincipal?: number;
  /** How often each principal may ask; where nobody authenticates, each session, or else each remote address. Default: as often as it likes. */
  readonly rate?: { readonly perSecond: number; readonly burst: number };
  /** The process does nothing but serve: what a handler throws too late is logged, and ends nothing. Default false. */
  readonly ownsProcess?: boolean;
}

/** The options of `createServer({ http })`: they hold wherever the server serves over HTTP. An address belongs to one transport. */
export type SharedHttpOptions = Omit<HttpOptions, 'port' | 'host' | 'path' | 'ownsProcess'>;

/**
 * The options of a transport: its own, and the server's where it has none. `undefined` counts as none, so that
 * `http({ authenticate: undefined })` does not switch off the authentication of its server.
 */
export function withShared(own: HttpOptions, shared: SharedHttpOptions | undefined): HttpOptions {
  return { ...shared, ...withoutUndefined(own) };
}

function withoutUndefined(options: HttpOptions): HttpOptions {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}

export type ResolvedHttpOptions = Required<Omit<HttpOptions, 'authenticate' | 'allowedHosts' | 'rate'>> &
  Pick<HttpOptions, 'authenticate' | 'allowedHosts' | 'rate'>;

const DEFAULTS = {
  port: 3_000,
  host: '127.0.0.1',
  path: '/mcp',
  allowedOrigins: [],
  response: 'auto',
  retryMs: 1_000,
  keepAliveMs: 15_000,
  stallMs: 30_000,
  sessionIdleMs: 30 * 60_000,
  replayMs: 15 * 60_000,
  maxReplayEvents: 1_000,
  maxReplayBytes: 1024 * 1024,
  maxExchanges: 4_096,
  maxExchangesPerPrincipal: 256,
  ownsProcess: false,
} as const satisfies HttpOptions;

const KNOWN: ReadonlySet<string> = new Set([...Object.keys(DEFAULTS), 'allowedHosts', 'authenticate', 'rate']);

const COUNTS = [
  'retryMs',
  'keepAliveMs',
  'stallMs',
  'sessionIdleMs',
  'replayMs',
  'maxReplayEvents',
  'maxReplayBytes',
  'maxExchanges',
  'maxExchangesPerPrincipal',
] as const;

/** @throws {TypeError | RangeError} for an option that is none, or that does not fit, saying which and what would */
export function resolveHttpOptions(given: HttpOptions): ResolvedHttpOptions {
  for (const name of Object.keys(given))
    if (!KNOWN.has(name)) throw new TypeError(`http: ${name}: no such option; there are ${[...KNOWN].join(', ')}`);
  const options: ResolvedHttpOptions = { ...DEFAULTS, ...withoutUndefined(given) };
  const { port, host, path, response, allowedHosts, authenticate, rate } = options;
  if (!Number.isInteger(port) || port < 0 || port > 65_535)
    throw new RangeError(`http: port: expected a whole number from 0 to 65535, got ${describe(port)}`);
  if (typeof path !== 'string' || !/^\/[\w\-.~!$&'()*+,;=:@%/]*$/.test(path))
    throw new TypeError(`http: path: expected a path such as "/mcp", got ${describe(path)}`);
  if (!['auto', 'json', 'sse'].includes(response))
    throw new TypeError(`http: response: expected "auto", "json" or "sse", got ${describe(response)}`);
  if (authenticate !== undefined && typeof authenticate !== 'function')
    throw new TypeError(`http: authenticate: expected a function, got ${describe(authenticate)}`);
  for (const name of COUNTS) {
    const value = options[name];
    if (!Number.isSafeInteger(value) || value < 1 || (name.endsWith('Ms') && value > LONGEST_TIMER_MS))
      throw new RangeError(`http: ${name}: expected a whole number of at least 1, got ${describe(value)}`);
  }
  if (
    rate &&
    !(rate.perSecond > 0 && Number.isFinite(rate.perSecond) && rate.burst >= 1 && Number.isFinite(rate.burst))
  )
    throw new RangeError('http: rate: expected a perSecond above 0 and a burst of at least 1');
  if (typeof host !== 'string' || host === '')
    throw new TypeError(`http: host: expected an address such as "127.0.0.1", got ${describe(host)}`);
  if (!isLoopback(host) && !allowedHosts?.length)
    throw new TypeError(
      `http: host: ${host} is reachable from other machines, or by a page under another name (DNS rebinding). List the names that clients may use in allowedHosts, for example allowedHosts: ["mcp.example.com"]`,
    );
  return options;
}

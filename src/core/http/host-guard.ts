/** Checks the Host and Origin headers of a request, and provides the CORS headers. */

import { BlockList, isIP, isIPv6 } from 'node:net';
import type { Headers } from './http-message.ts';

export interface HostGuardOptions {
  /** True if the server is bound to loopback only. Loopback names pass, and so do pages that this machine serves. */
  readonly loopback: boolean;
  /** Names that the Host header may contain, with a port (`mcp.example.com:8443`) or for any port. */
  readonly allowedHosts?: readonly string[] | undefined;
  /** Origins of web pages (`https://app.example.com`) that may send requests and read the responses. */
  readonly allowedOrigins: readonly string[];
  /** Names of further headers that pages of these origins may send. */
  readonly allowedHeaders: readonly string[];
}

/** A rejection of a request, with its reason. */
export interface HostRefusal {
  readonly status: number;
  readonly message: string;
  readonly headers?: Headers;
}

interface Verdict {
  readonly refusal: HostRefusal | undefined;
}

interface Authority {
  /** In lower case; an IPv6 address is in brackets and in its shortest form. */
  readonly name: string;
  readonly port: number | undefined;
}

/** A DNS name has at most 253 characters. With a scheme and a port, no legitimate header is longer. */
const MAX_LENGTH = 300;
/**
 * Number of cached verdicts per header. A server has few names, and a flood of invented names must not fill the memory.
 */
const MAX_REMEMBERED = 64;

/** RFC 9110 section 7.2 without the forms that MCP clients never send: escapes, user names, an empty port. */
const AUTHORITY = /^(?:[a-z0-9._-]+|\[([0-9a-f:.]+)\])(?::([0-9]{1,5}))?$/i;
/** RFC 9110 section 5.1: a field name is a token. */
const HEADER_NAME = /^[!#$%&'+\-.^_`|~0-9a-z]{1,100}$/i;
/** RFC 9110 section 5.6.2, `1*tchar` after the prefix. */
const PARAMETER_HEADER = /^mcp-param-[!#$%&'*+\-.^_`|~0-9a-z]+$/i;

const REQUEST_HEADERS = [
  'Content-Type',
  'Authorization',
  'Mcp-Session-Id',
  'MCP-Protocol-Version',
  'Mcp-Method',
  'Mcp-Name',
  'DPoP',
  'Last-Event-ID',
] as const;

const PASSED: Verdict = { refusal: undefined };

const loopbackAddresses = new BlockList();
loopbackAddresses.addSubnet('127.0.0.0', 8, 'ipv4');
loopbackAddresses.addAddress('::1', 'ipv6');

/**
 * Rejects DNS rebinding and pages of other sites (MCP basic/transports, "Security Warning"; 2026-07-28 streamable-http,
 * "Security & Endpoint"). Accepts only listed names: without `loopback` and `allowedHosts` no request passes.
 *
 * @throws {TypeError} for an entry of `allowedHosts` that is not a host name, of `allowedOrigins` that is not an origin, or of
 * `allowedHeaders` that is not the name of a header
 * @example
 * const guard = new HostGuard({
 *   loopback: true,
 *   allowedHosts: undefined,
 *   allowedOrigins: ['https://app.example.com'],
 *   allowedHeaders: [],
 * });
 * const refusal = guard.check(request.headers.host, request.headers.origin);
 */
export class HostGuard {
  readonly #loopback: boolean;
  /** Names that are accepted with any port. */
  readonly #names = new Set<string>();
  /** Names with their port, and without it if the port is a default one, because clients omit default ports. */
  readonly #authorities = new Set<string>();
  /** The CORS headers of each allowed origin. */
  readonly #origins = new Map<string, Readonly<Record<string, string>>>();
  readonly #requestHeaders: readonly string[];
  readonly #hostVerdicts = new Map<string, Verdict>();
  readonly #originVerdicts = new Map<string, Verdict>();

  constructor({ loopback, allowedHosts = [], allowedOrigins, allowedHeaders }: HostGuardOptions) {
    this.#loopback = loopback;
    for (const entry of allowedHeaders) checkHeader(entry);
    this.#requestHeaders = [...REQUEST_HEADERS, ...allowedHeaders];
    for (const entry of allowedHosts) this.#allowHost(entry);
    for (const entry of allowedOrigins) {
      checkOrigin(entry);
      this.#origins.set(entry, {
        'Access-Control-Allow-Origin': entry,
        'Access-Control-Expose-Headers': 'Mcp-Session-Id, WWW-Authenticate, Retry-After',
        Vary: 'Origin',
      });
    }
  }

  /**
   * Checks two headers of a request; `undefined` accepts it. A request target in absolute form has its own authority,
   * which replaces Host (RFC 9112 section 3.2.2): callers that accept such targets must check that authority, too.
   *
   * @param host the header as received; missing or malformed gives 400 (RFC 9112 section 3.2), unknown gives 403
   * @param origin the header as received. Browsers send it, other clients mostly do not: `undefined` passes, unknown
   * gives 403
   * @param address the local address of the connection, if a Host with this address should pass. No name led the client
   * there, so DNS rebinding is impossible
   */
  check(host: string | undefined, origin: string | undefined, address?: string): HostRefusal | undefined {
    const known = host === undefined ? undefined : this.#hostVerdicts.get(host);
    const { refusal } = known ?? remember(this.#hostVerdicts, host, this.#judgeHost(host));
    if (refusal !== undefined && !isAddress(host, address)) return refusal;
    if (origin === undefined) return undefined;
    return (this.#originVerdicts.get(origin) ?? remember(this.#originVerdicts, origin, this.#judgeOrigin(origin)))
      .refusal;
  }

  /** The headers that let a page of that origin read a response; `undefined` if it may not. */
  cors(origin: string | undefined): Readonly<Record<string, string>> | undefined {
    return origin === undefined ? undefined : this.#origins.get(origin);
  }

  /**
   * The headers of the response to an OPTIONS request of that origin; `undefined` if its page may send nothing.
   *
   * @param requested the value of `Access-Control-Request-Headers`; its `Mcp-Param-*` names are allowed, too
   */
  preflight(origin: string | undefined, requested?: string): Readonly<Record<string, string>> | undefined {
    const headers = this.cors(origin);
    return (
      headers && {
        ...headers,
        'Access-Control-Allow-Methods': 'GET, POST, DELETE',
        'Access-Control-Allow-Headers': [...this.#requestHeaders, ...parameterHeaders(requested)].join(', '),
        'Access-Control-Max-Age': '600',
      }
    );
  }

  #allowHost(entry: string): void {
    const authority = readAuthority(entry);
    const canonical = authority && canonicalName(authority.name);
    if (!authority || canonical !== authority.name)
      throw new TypeError(
        `http: allowedHosts: expected a host name as clients send it, with or without a port ("mcp.example.com", "mcp.example.com:8443", "[2001:db8::1]"), got ${quote(entry)}. ${hostAdvice(entry, canonical)}`,
      );
    const { name, port } = authority;
    if (port === undefined) this.#names.add(name);
    else this.#authorities.add(`${name}:${port}`);
    if (port === 80 || port === 443) this.#authorities.add(name);
  }

  #judgeHost(host: string | undefined): Verdict {
    if (host === undefined) return refuse(400, 'Host: expected a Host header, got none. Send the name of this server');
    const authority = readAuthority(host);
    if (!authority)
      return refuse(
        400,
        `Host: expected one host name with or without a port (mcp.example.com:8443), got ${quote(host)}`,
      );
    const { name, port } = authority;
    if (this.#loopback && isLoopback(name)) return PASSED;
    if (this.#names.has(name)) return PASSED;
    if (this.#authorities.has(port === undefined ? name : `${name}:${port}`)) return PASSED;
    const expected = this.#loopback ? 'localhost, 127.0.0.1, [::1] or a name' : 'a name';
    return refuse(
      403,
      `Host: expected ${expected} from this server's allowedHosts, got ${quote(host)}. If clients use that name, add it to the option allowedHosts`,
    );
  }

  #judgeOrigin(origin: string): Verdict {
    if (this.#origins.has(origin)) return PASSED;
    if (this.#loopback && isLoopbackOrigin(origin)) return PASSED;
    const expected = this.#loopback ? 'a page of this machine or an origin' : 'an origin';
    const advice =
      origin === 'null'
        ? 'Sandboxed frames and files send "null", which is always rejected because any site can create one'
        : 'If pages of that origin may use this server, add it to the option allowedOrigins';
    return refuse(
      403,
      `Origin: expected ${expected} from this server's allowedOrigins, got ${quote(origin)}. ${advice}`,
    );
  }
}

/**
 * True if a bind address or host name, without a port, is loopback: `localhost`, 127.0.0.0/8, `::1` with or without
 * brackets, and the same as IPv4-mapped IPv6. `x.localhost` and `localhost.` are not: some resolvers query the network
 * for these, and a hostile resolver could redirect them.
 *
 * @example isLoopback('[::1]') && !isLoopback('localhost.attacker.com')
 */
export function isLoopback(host: string): boolean {
  const bracketed = host.startsWith('[') && host.endsWith(']');
  const address = bracketed ? host.slice(1, -1) : host;
  const version = isIP(address);
  if (version === 6) return loopbackAddresses.check(address, 'ipv6');
  if (bracketed) return false;
  return version === 4 ? loopbackAddresses.check(address, 'ipv4') : /^localhost$/i.test(host);
}

/**
 * The part of an address by which a client is limited: IPv4 as it is, and the /64 network of IPv6, of which a client has all
 * addresses (RFC 4291 section 2.5.4).
 */
export function networkOf(address: string): string {
  const plain = plainAddress(address);
  if (!isIPv6(plain)) return plain;
  const [left = [], right = []] = plain.split('::').map((half) => (half === '' ? [] : half.split(':')));
  // An IPv4 address at the end stands for two groups.
  const groups = left.length + right.length + (plain.includes('.') ? 1 : 0);
  const all = plain.includes('::') ? [...left, ...Array.from({ length: 8 - groups }, () => '0'), ...right] : left;
  const network = all.slice(0, 4).map((group) => Number.parseInt(group, 16).toString(16));
  return `${network.join(':')}::/64`;
}

/** An address of IPv4 that a socket of IPv6 has received, as IPv4. */
export function plainAddress(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, '');
}

/** True if a Host header contains this socket address, with any port. */
function isAddress(host: string | undefined, address: string | undefined): boolean {
  if (host === undefined || address === undefined) return false;
  const plain = plainAddress(address);
  return readAuthority(host)?.name === (isIPv6(plain) ? canonicalName(`[${plain}]`) : plain);
}

function isLoopbackOrigin(origin: string): boolean {
  const scheme = ['http://', 'https://'].find((each) => origin.startsWith(each));
  const authority = scheme === undefined ? undefined : readAuthority(origin.slice(scheme.length));
  return authority !== undefined && isLoopback(authority.name);
}

function readAuthority(text: string): Authority | undefined {
  const match = text.length > MAX_LENGTH ? null : AUTHORITY.exec(text);
  if (!match) return undefined;
  const [, address, digits] = match;
  const port = digits === undefined ? undefined : Number(digits);
  if (port !== undefined && port > 65_535) return undefined;
  const written = digits === undefined ? text : text.slice(0, -digits.length - 1);
  if (address === undefined) return { name: written.toLowerCase(), port };
  const name = isIPv6(address) ? canonicalName(written) : undefined;
  return name === undefined ? undefined : { name, port };
}

/** The name as browsers send it: IPv6 in its shortest form, `127.1` as 127.0.0.1, an international name as `xn--…`. */
function canonicalName(name: string): string | undefined {
  return URL.canParse(`http://${name}`) ? new URL(`http://${name}`).hostname : undefined;
}

function hostAdvice(entry: string, canonical: string | undefined): string {
  if (entry.includes('*')) return 'List each name. Patterns are not supported, and "*" would admit every site';
  const url = entry.includes('://') ? entry : `http://${entry}`;
  const host = canonical ?? (URL.canParse(url) ? new URL(url).host : '');
  return readAuthority(host) ? `Write ${quote(host)}` : 'Give only the name, without scheme, path or user';
}

function checkOrigin(entry: string): void {
  const origin = URL.canParse(entry) ? new URL(entry).origin : undefined;
  if (origin === entry && !entry.includes('*')) return;
  throw new TypeError(
    `http: allowedOrigins: expected an origin as browsers send it ("https://app.example.com"), got ${quote(entry)}. ${originAdvice(entry, origin)}`,
  );
}

function originAdvice(entry: string, origin: string | undefined): string {
  if (entry.includes('*'))
    return 'List each origin. With "*", any web site that a user visits could call the tools of this server';
  if (entry === 'null') return 'Sandboxed frames of any site send "null", so it cannot be allowed';
  return origin === undefined || origin === 'null'
    ? 'Give scheme and host, and the port if it is not the default'
    : `Write ${quote(origin)}`;
}

function checkHeader(entry: string): void {
  if (HEADER_NAME.test(entry)) return;
  const advice = entry.includes('*')
    ? 'List each name. Patterns are not supported'
    : 'Give only the name, without its value';
  throw new TypeError(
    `http: allowedHeaders: expected the name of a header of at most 100 characters ("X-Api-Key"), got ${quote(entry)}. ${advice}`,
  );
}

/** The requested `Mcp-Param-*` names. Other names are not echoed, so the browser blocks the request. */
function parameterHeaders(requested = ''): ReadonlySet<string> {
  const names = requested.split(',').map((name) => name.trim().toLowerCase());
  return new Set(names.filter((name) => PARAMETER_HEADER.test(name)));
}

function remember(verdicts: Map<string, Verdict>, text: string | undefined, verdict: Verdict): Verdict {
  if (text === undefined || text.length > MAX_LENGTH) return verdict;
  if (verdicts.size >= MAX_REMEMBERED) verdicts.clear();
  verdicts.set(text, verdict);
  return verdict;
}

function refuse(status: number, message: string): Verdict {
  return { refusal: { status, message } };
}

/** A received text, safe to display: short, and without control characters for a terminal or a log. */
function quote(text: string): string {
  const start = text.length > 100 ? `${text.slice(0, 100)}…` : text;
  return `"${start.replace(/[^ -~…]/g, '\uFFFD')}"`;
}

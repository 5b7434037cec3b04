/**
 * Fetches addresses that another party supplies, for the client and for `troupe/oauth`: https only, no private networks,
 * no redirects, and exactly the address that was checked is connected to.
 */

import { lookup as resolveName } from 'node:dns';
import type { IncomingMessage } from 'node:http';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import { isLoopback } from '../../../core/http/host-guard.ts';
import type { Clock } from '../../../core/kernel/clock.ts';
import { durationOf } from '../../../core/kernel/duration.ts';
import { isGlobalAddress } from '../../../core/kernel/global-address.ts';
import { messageOf } from '../../../core/protocol/json.ts';

/** The default of the longest response: metadata and tokens are small. */
const MAX_BYTES = 1_048_576;
const TIMEOUT_MS = 15_000;

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4');
LOOPBACK.addAddress('::1', 'ipv6');

interface GuardedFetchOptions {
  readonly clock: Clock;
  /**
   * The addresses that the program itself named. Their hosts may be private. If the first is on this machine, it may name
   * other addresses on this machine.
   */
  readonly trusted: readonly [URL, ...URL[]];
  /** Milliseconds for a whole response. Default 15,000. */
  readonly timeoutMs?: number;
  /** Longest response in bytes, decoded. Default 1,048,576. */
  readonly maxBytes?: number;
  /** True if plain http is allowed for the trusted addresses: the program named them so. Default: on this machine only. */
  readonly plain?: boolean;
}

/** A `fetch` of GET and POST, without redirects. */
export type GuardedFetch = (url: string, init?: GuardedInit) => Promise<Response>;

interface GuardedInit {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Bytes are sent as they are, anything else as its text. */
  readonly body?: unknown;
  readonly signal?: AbortSignal | undefined;
}

/** The reason for which a fetch has no response. */
export type FetchFault = 'unreachable' | 'closed' | 'timed out' | 'cancelled' | 'too long' | 'malformed';

/** A fetch without a response. */
export class FetchFailed extends TypeError {
  readonly fault: FetchFault;
  /** True if the connection was open, so that the server may have read the request. */
  readonly sent: boolean;

  constructor(message: string, fault: FetchFault, sent: boolean, cause?: unknown) {
    super(message, { cause });
    this.fault = fault;
    this.sent = sent;
  }
}

/** A response that the reader does not accept. */
class ResponseRejected extends TypeError {
  readonly fault: FetchFault;

  constructor(fault: FetchFault, message: string) {
    super(message);
    this.fault = fault;
  }
}

/**
 * @throws {AddressRejected} for an address that is not allowed
 * @throws {FetchFailed} for a response that does not come, or is too long
 */
export function guardedFetch({
  clock,
  trusted,
  timeoutMs = TIMEOUT_MS,
  maxBytes = MAX_BYTES,
  plain = false,
}: GuardedFetchOptions): GuardedFetch {
  const local = isLoopback(trusted[0].hostname);
  const hosts = new Set(trusted.map(({ hostname }) => hostname));
  return async (address, init = {}) => {
    const url = new URL(address);
    const named = hosts.has(url.hostname);
    checkAddress(url, local, named, plain);
    const { request: start } = url.protocol === 'https:' ? await import('node:https') : await import('node:http');
    const place = `${url.origin}${url.pathname}`;
    if (init.signal?.aborted) throw new FetchFailed(`${place}: cancelled`, 'cancelled', false);
    return new Promise((resolve, reject) => {
      let sent = false;
      const fail = (fault: FetchFault, reason: string, cause?: unknown): void => {
        done();
        const message = `${place}: ${reason}`;
        reject(
          cause instanceof AddressRejected
            ? new AddressRejected(message, { cause })
            : new FetchFailed(message, fault, sent, cause),
        );
      };
      const done = (): void => {
        late.cancel();
        init.signal?.removeEventListener('abort', abort);
      };
      const end = (fault: FetchFault, reason: string): void => {
        // Its own timer settles the fetch: a request whose socket Node has dropped reports nothing.
        fail(fault, reason);
        request.destroy();
      };
      const { body: given } = init;
      const body = given === undefined || given === null ? undefined : Buffer.isBuffer(given) ? given : String(given);
      const request = start({
        protocol: url.protocol,
        hostname: unbracketed(url.hostname),
        port: url.port,
        path: `${url.pathname}${url.search}`,
        method: init.method ?? 'GET',
        headers: {
          'accept-encoding': 'identity',
          ...init.headers,
          ...(body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }),
        },
        agent: false,
        ...(named ? {} : { lookup: checkedLookup(local) }),
      });
      const late = clock.after(timeoutMs, () =>
        end('timed out', `no complete response within ${durationOf(timeoutMs)}`),
      );
      const abort = (): void => end('cancelled', 'cancelled');
      init.signal?.addEventListener('abort', abort, { once: true });
      let begun = false;
      request.on('socket', (socket) =>
        socket.once(url.protocol === 'https:' ? 'secureConnect' : 'connect', () => {
          sent = true;
        }),
      );
      request.on('response', (response) => {
        begun = true;
        sent = true;
        read(response, maxBytes)
          .then((bytes) => responseOf(response, bytes))
          .then(
            (whole) => {
              done();
              resolve(whole);
            },
            (error: unknown) =>
              fail(error instanceof ResponseRejected ? error.fault : 'closed', messageOf(error), error),
          );
      });
      request.on('error', (error) => fail(sent ? 'closed' : 'unreachable', error.message, error));
      // Node drops the socket of a response of 101, and reports neither a response nor an error.
      request.on('close', () => {
        if (!begun) fail('closed', 'the server closed the connection without a response');
      });
      request.end(body);
    });
  };
}

/** An address that a server must not name. */
export class AddressRejected extends TypeError {
  override readonly name = 'AddressRejected';
}

/**
 * @param named whether the program itself named the host
 * @throws {TypeError} for an address that a server must not name
 */
function checkAddress(url: URL, local: boolean, named: boolean, plain: boolean): void {
  // Only addresses of servers have an origin: `file:` and `javascript:` have none.
  const place = url.origin === 'null' ? url.protocol : url.origin;
  if (url.username !== '' || url.password !== '')
    throw new AddressRejected(`${place}: credentials in an address are not allowed`);
  const isPlain = url.protocol === 'http:' && ((local && isLoopback(url.hostname)) || (plain && named));
  if (url.protocol !== 'https:' && !isPlain)
    throw new AddressRejected(
      `${place}${url.pathname}: expected an https address. Plain http is allowed on this machine only`,
    );
  if (named) return;
  const host = unbracketed(url.hostname);
  const family = isIP(host);
  if (family !== 0) checkIp(host, family, local);
}

function checkIp(address: string, family: number, local: boolean): void {
  if (local && LOOPBACK.check(address, family === 6 ? 'ipv6' : 'ipv4')) return;
  if (!isGlobalAddress(address))
    throw new AddressRejected(
      `the address ${address} is private, and only the program itself may name such a host. If you trust the authorization server, pass its issuer to oauth()`,
    );
}

/** Resolves a name and checks every address, so that the connection goes where the check looked. */
function checkedLookup(local: boolean): LookupFunction {
  return (hostname, options, callback) => {
    resolveName(hostname, { ...options, all: true }, (error, addresses) => {
      if (error) return callback(error, '', 0);
      try {
        for (const { address, family } of addresses) checkIp(address, family, local);
      } catch (refused) {
        return callback(refused instanceof Error ? refused : new Error(String(refused)), '', 0);
      }
      const [first] = addresses;
      if (options.all === true) return callback(null, addresses);
      if (first) callback(null, first.address, first.family);
      else callback(new Error(`${hostname} has no address`), '', 0);
    });
  };
}

function unbracketed(hostname: string): string {
  return hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
}

async function read(response: IncomingMessage, maxBytes: number): Promise<Buffer> {
  response.on('error', () => {});
  const { statusCode: status = 0 } = response;
  if (status < 200 || status > 599) {
    response.destroy();
    throw new ResponseRejected('malformed', `expected a status from 200 to 599, got ${status}`);
  }
  // Documents are rarely encoded, and zlib takes milliseconds to load.
  const encoded = response.headers['content-encoding'] !== undefined;
  const body = encoded ? (await import('./content-coding.ts')).decodedBody(response) : response;
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    body.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > maxBytes) {
        response.destroy();
        reject(new ResponseRejected('too long', `expected a response of at most ${maxBytes} bytes, got a longer one`));
      } else chunks.push(chunk);
    });
    body.on('end', () => resolve(Buffer.concat(chunks)));
    body.on('error', reject);
    body.on('close', () => reject(new TypeError('the response ended before it was complete')));
  });
}

function responseOf({ statusCode = 500, headers }: IncomingMessage, body: Buffer): Response {
  const empty = statusCode === 204 || statusCode === 205 || statusCode === 304;
  const response = new Response(empty ? null : new Uint8Array(body), { status: statusCode });
  for (const [name, value] of Object.entries(headers))
    if (value !== undefined) response.headers.set(name, Array.isArray(value) ? value.join(', ') : value);
  return response;
}

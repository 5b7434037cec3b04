/**
 * Sends POSTs to the callbacks of clients: only to global addresses, checked where the connection is made; without redirects; over
 * connections that are kept; within bounds of time, headers and bytes. The response of a callback never leaves this file, except
 * its status, its `Retry-After` and, for a challenge, 16 KiB of its body.
 */
import { lookup as resolveName } from 'node:dns';
import { type ClientRequest, Agent as HttpAgent, type IncomingMessage, request as startHttp } from 'node:http';
import { Agent as HttpsAgent, request as startHttps } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Clock } from '../../../core/kernel/clock.ts';
import { isGlobalAddress } from '../../../core/kernel/global-address.ts';
import { type AllowedOrigins, hostOf } from './callback-address.ts';

/** The reason for which a POST was not accepted: all that a client learns of it. */
export type FailureCategory =
  | 'connection_refused'
  | 'timeout'
  | 'tls_error'
  | 'http_4xx'
  | 'http_5xx'
  | 'challenge_failed';

/** The answer of a callback. */
export interface CallbackAnswer {
  readonly status: number;
  /** The header as it came. */
  readonly retryAfter: string | undefined;
  /** The beginning of its body; empty unless it was asked for. */
  readonly body: string;
}

/** A POST without an answer. */
export class CallbackFailed extends Error {
  override readonly name = 'CallbackFailed';
  readonly category: FailureCategory;

  constructor(category: FailureCategory, message: string, cause?: unknown) {
    super(message, { cause });
    this.category = category;
  }
}

export interface CallbackSenderOptions {
  readonly clock: Clock;
  readonly allowed: AllowedOrigins;
  /** Milliseconds for one POST, until its response is complete. */
  readonly timeoutMs: number;
  /** Maximum number of connections to one origin. */
  readonly perOrigin: number;
  /** Resolves a name to all its addresses. Default: the resolver of the machine. */
  readonly resolve?: LookupFunction;
}

/** Connections that stay open without a POST: for each origin, and up to how many in all. */
const MAX_FREE = 8;
const MAX_KEPT = 512;
/** Milliseconds for which a connection stays open without a POST, and in all: after that, its name is resolved again. */
const IDLE_MS = 30_000;
const MAX_AGE_MS = 300_000;
/** Bounds of a response: bytes of its head, its header lines, and bytes of its body. */
const MAX_HEAD = 16_384;
const MAX_HEADERS = 64;
const MAX_BODY = 16_384;
/** Interim responses (1xx) before the response. */
const MAX_INTERIM = 8;

type Agents = { readonly 'http:': HttpAgent; readonly 'https:': HttpsAgent };

export class CallbackSender {
  readonly #options: CallbackSenderOptions;
  readonly #agents: Agents;
  readonly #opened = new WeakMap<object, number>();

  constructor(options: CallbackSenderOptions) {
    this.#options = options;
    // Not `maxTotalSockets`: Node counts kept connections in it, and lets a POST to another origin wait until one of them closes.
    const pool = { keepAlive: true, maxSockets: options.perOrigin, maxFreeSockets: MAX_FREE, timeout: IDLE_MS };
    this.#agents = { 'http:': this.#limited(new HttpAgent(pool)), 'https:': this.#limited(new HttpsAgent(pool)) };
  }

  /** Closes a connection that is too old, or one of too many, instead of keeping it. */
  #limited<A extends HttpAgent>(agent: A): A {
    // `keepSocketAlive` is documented as the method to replace. The types of Node do not have it, nor the number of connections.
    const kept: unknown = Reflect.get(agent, 'keepSocketAlive');
    Reflect.set(agent, 'keepSocketAlive', (socket: Duplex): boolean => {
      const age = this.#options.clock.now() - (this.#opened.get(socket) ?? 0);
      const isKept = age < MAX_AGE_MS && Number(Reflect.get(agent, 'totalSocketCount')) <= MAX_KEPT;
      return isKept && typeof kept === 'function' && Reflect.apply(kept, agent, [socket]) !== false;
    });
    return agent;
  }

  /**
   * Sends a POST.
   *
   * @param reads true: returns the beginning of the body, too. Otherwise it resolves with the status line
   * @throws {CallbackFailed} if there is no response
   */
  async post(
    url: URL,
    headers: Readonly<Record<string, string>>,
    body: string,
    reads = false,
  ): Promise<CallbackAnswer> {
    const isAllowed = this.#options.allowed.has(url.origin);
    const host = hostOf(url);
    if (!isAllowed && isIP(host) !== 0 && !isGlobalAddress(host)) throw refused(host);
    const deadline = this.#options.clock.now() + this.#options.timeoutMs;
    try {
      return await this.#attempt(url, headers, body, reads, isAllowed, deadline);
    } catch (error) {
      // The other side closes a kept connection whenever it wants: that is not a failure of the endpoint.
      if (error instanceof StaleConnection) return this.#attempt(url, headers, body, reads, isAllowed, deadline);
      throw error;
    }
  }

  /** Closes all connections. */
  close(): void {
    this.#agents['http:'].destroy();
    this.#agents['https:'].destroy();
  }

  #attempt(
    url: URL,
    headers: Readonly<Record<string, string>>,
    body: string,
    reads: boolean,
    isAllowed: boolean,
    deadline: number,
  ): Promise<CallbackAnswer> {
    const { clock, timeoutMs, resolve: resolver = resolveName } = this.#options;
    return new Promise((resolve, reject) => {
      const isPlain = url.protocol === 'http:';
      const options = {
        method: 'POST',
        agent: isPlain ? this.#agents['http:'] : this.#agents['https:'],
        headers: {
          'content-type': 'application/json',
          'accept-encoding': 'identity',
          'user-agent': 'troupe',
          ...headers,
          'content-length': Buffer.byteLength(body),
        },
        maxHeaderSize: MAX_HEAD,
        ...(isAllowed ? {} : { lookup: globalLookup(resolver) }),
      };
      const request: ClientRequest = isPlain ? startHttp(url, options) : startHttps(url, options);
      request.maxHeadersCount = MAX_HEADERS;
      let interim = 0;
      let begun = false;
      const end = (error: CallbackFailed): void => {
        late.cancel();
        reject(error);
        request.destroy();
      };
      const late = clock.after(Math.max(0, deadline - clock.now()), () =>
        end(new CallbackFailed('timeout', `no complete response within ${timeoutMs} ms`)),
      );
      request.on('socket', (socket) => {
        if (!this.#opened.has(socket)) this.#opened.set(socket, clock.now());
        const check = (): void => {
          const address = socket.remoteAddress ?? '';
          if (!isAllowed && !isGlobalAddress(address)) end(refused(address));
        };
        if (request.reusedSocket) check();
        else socket.once('connect', check);
      });
      request.on('information', () => {
        interim += 1;
        if (interim > MAX_INTERIM) end(new CallbackFailed('http_5xx', 'too many interim responses'));
      });
      request.on('response', (response) => {
        begun = true;
        this.#read(response, reads).then(
          (answer) => resolve(answer),
          (error: unknown) => end(failureOf(error)),
        );
        // An acknowledgement counts from its status line; the rest of it is dropped, within the same time.
        response.on('close', () => late.cancel());
      });
      request.on('error', (error) => {
        const isStale = !begun && request.reusedSocket && 'code' in error && error.code === 'ECONNRESET';
        late.cancel();
        reject(isStale ? new StaleConnection('connection_refused', error.message, error) : failureOf(error));
      });
      // Node drops the socket of a response of 101, and reports neither a response nor an error.
      request.on('close', () => {
        if (begun) return;
        late.cancel();
        reject(new CallbackFailed('connection_refused', 'the connection was closed without a response'));
      });
      request.end(body);
    });
  }

  async #read(response: IncomingMessage, reads: boolean): Promise<CallbackAnswer> {
    const { statusCode: status = 0, headers } = response;
    const answer = { status, retryAfter: headers['retry-after'], body: '' };
    response.on('error', () => {});
    if (!reads) {
      let dropped = 0;
      response.on('data', (chunk: Buffer) => {
        dropped += chunk.length;
        // Its connection is not worth more bytes.
        if (dropped > MAX_BODY) response.destroy();
      });
      return answer;
    }
    const chunks: Buffer[] = [];
    let bytes = 0;
    for await (const chunk of response) {
      const part: Buffer = Buffer.from(chunk);
      bytes += part.length;
      if (bytes > MAX_BODY) {
        response.destroy();
        throw new CallbackFailed('challenge_failed', `the response has more than ${MAX_BODY} bytes`);
      }
      chunks.push(part);
    }
    return { ...answer, body: Buffer.concat(chunks).toString() };
  }
}

/** A kept connection that the other side had closed. */
class StaleConnection extends CallbackFailed {}

function refused(address: string): CallbackFailed {
  return new CallbackFailed('connection_refused', `the address ${address} is not globally reachable`);
}

/** Resolves a name and checks every address, so that the connection goes where the check looked. */
function globalLookup(resolve: LookupFunction): LookupFunction {
  return (hostname, options, callback) => {
    resolve(hostname, { ...options, all: true }, (error, found) => {
      if (error) return callback(error, '', 0);
      const addresses = Array.isArray(found) ? found : [{ address: found, family: isIP(found) }];
      const wrong = addresses.find(({ address }) => !isGlobalAddress(address));
      if (wrong) return callback(refused(wrong.address), '', 0);
      const [first] = addresses;
      if (!first) return callback(new Error(`${hostname} has no address`), '', 0);
      if (options.all === true) return callback(null, addresses);
      callback(null, first.address, first.family);
    });
  };
}

/** The codes of errors that OpenSSL and Node report for certificates and the handshake. */
const TLS =
  /^(?:ERR_TLS|ERR_SSL|CERT_|UNABLE_TO_|DEPTH_ZERO|SELF_SIGNED|HOSTNAME_MISMATCH|INVALID_CA|CRL_|ERROR_IN_C|EPROTO$)/;

function failureOf(error: unknown): CallbackFailed {
  if (error instanceof CallbackFailed) return error;
  const { code = '', message = 'unknown' }: { code?: unknown; message?: unknown } =
    typeof error === 'object' && error !== null ? error : {};
  const name = String(code);
  const category: FailureCategory = TLS.test(name)
    ? 'tls_error'
    : name === 'ETIMEDOUT'
      ? 'timeout'
      : name.startsWith('HPE_')
        ? 'http_5xx'
        : 'connection_refused';
  return new CallbackFailed(category, String(message), error);
}

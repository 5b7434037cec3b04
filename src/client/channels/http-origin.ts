/**
 * The way of every request of a channel to its origin: POST, GET and DELETE follow the same redirects, are authorized alike, and
 * their responses are decoded. Nothing that a server sends throws past this file.
 */
import type {
  Agent,
  AgentOptions,
  ClientRequest,
  IncomingHttpHeaders,
  IncomingMessage,
  RequestOptions,
} from 'node:http';
import type { Readable } from 'node:stream';
import type { Clock } from '../../core/kernel/clock.ts';
import type { OperatorLog } from '../../core/kernel/operator-log.ts';
import { messageOf } from '../../core/protocol/json.ts';
import { decodedBody } from '../../features/oauth/issuers/content-coding.ts';
import type { Authorization } from '../authorization.ts';
import type { CallFailure, CarriedOut } from '../client-errors.ts';
import { SessionCookies } from './session-cookies.ts';

/** `node:http` or `node:https`, as far as a channel uses it. */
interface NodeHttp {
  readonly Agent: new (options: AgentOptions) => Agent;
  request(options: RequestOptions): ClientRequest;
}

/** The module for the addresses of one origin. Only the one that is needed is loaded. */
export function nodeHttpFor({ protocol }: URL): Promise<NodeHttp> {
  return protocol === 'https:' ? import('node:https') : import('node:http');
}

/** The options of a channel that concern its origin. */
export interface OriginOptions {
  /** The address of the server. Credentials in it become Basic authorization. */
  readonly url: URL;
  /** The module for the origin of `url`, to which every address of the channel belongs. */
  readonly nodeHttp: NodeHttp;
  /** Sent with every request to the origin of `url`, and to no other. */
  readonly headers: Readonly<Record<string, string>>;
  readonly clock: Clock;
  readonly log: OperatorLog;
}

interface HttpOriginOptions extends OriginOptions {
  readonly agent: Agent;
  /** The server rejects the token of a request that waits for another one ({@link HttpOrigin.authorized}). */
  tokenRejected(challenge: string | undefined): void;
}

/** A response with its decoded body. */
export interface OriginResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** The media type in lower case; empty without one. */
  readonly type: string;
  /** Ends or closes. Its errors need no listener. */
  readonly body: Readable;
  /** The address that responded, after redirects. */
  readonly url: URL;
  /** Closes the connection: the rest of the body is not wanted. */
  destroy(): void;
}

/** A request, and the mailbox for its outcome: `response` or `failed` is called, at most once in all. */
export interface OriginRequest {
  readonly method: 'POST' | 'GET' | 'DELETE';
  /** The address, if it is not that of the server. */
  readonly url?: URL | undefined;
  /** Read for each attempt: a session may begin, or an event arrive, in between. */
  headers(): Readonly<Record<string, string | number>>;
  readonly body?: string | undefined;
  readonly authorization: Authorization | undefined;
  /** The request opens a session: its redirects are those of the session. */
  readonly opens?: boolean | undefined;
  /** The request has the cookies of the session. One with an authorization of its own has none: they may be another caller's. */
  readonly ofSession?: boolean | undefined;
  /** The request is sent again, once, when another token is there. It has no response of 401 before that. */
  readonly waitsForToken?: boolean | undefined;
  /** Maximum time in milliseconds until the response ends, for a message without a caller whose deadline would end it. */
  readonly lateMs?: number | undefined;
  /** False if the sender waits no more. */
  wanted(): boolean;
  /** The request that is under way. */
  started(request: ClientRequest): void;
  response(response: OriginResponse): void;
  failed(failure: CallFailure): void;
}

/** Redirects that are followed, each within the origin, with the method and body unchanged. */
const MAX_REDIRECTS = 3;
/**
 * The statuses that redirect a request with its method (RFC 9110 section 15.4). 302 and 303 may follow a POST that was carried out;
 * 301 says that the address was wrong, and a client need not turn the POST into a GET.
 */
const REDIRECTS: Readonly<Record<OriginRequest['method'], readonly number[]>> = {
  POST: [301, 307, 308],
  GET: [301, 302, 303, 307, 308],
  DELETE: [301, 302, 307, 308],
};
/** Longest body without meaning that is read to its end, in bytes. */
const DISCARDED_BYTES = 65_536;

/** Errors before anything was sent. */
const NOT_SENT: ReadonlySet<string> = new Set(
  (
    'ECONNREFUSED ENOTFOUND EAI_AGAIN EHOSTUNREACH ENETUNREACH EADDRNOTAVAIL CERT_HAS_EXPIRED ' +
    'DEPTH_ZERO_SELF_SIGNED_CERT SELF_SIGNED_CERT_IN_CHAIN UNABLE_TO_VERIFY_LEAF_SIGNATURE UNABLE_TO_GET_ISSUER_CERT_LOCALLY ERR_TLS_CERT_ALTNAME_INVALID EPROTO'
  ).split(' '),
);

export class HttpOrigin {
  readonly #options: HttpOriginOptions;
  /** The address after permanent redirects (308). */
  #url: URL;
  /** The address of the session: that to which the request that opened it was redirected. */
  #session: URL | undefined;
  readonly #cookies = new SessionCookies();
  /** The header `Cookie` that the program has configured. */
  readonly #cookie: readonly [name: string, value: string] | undefined;

  /** Requests that wait for another token. */
  readonly #rejected = new Set<OriginRequest>();
  #repaired = false;
  /** All configured headers are ASCII. */
  readonly #ascii: boolean;

  constructor(options: HttpOriginOptions) {
    this.#options = options;
    this.#ascii = Object.values(options.headers).every((value) => /^[\0-\x7f]*$/.test(value));
    this.#url = options.url;
    this.#cookie = Object.entries(options.headers).find(([name]) => name.toLowerCase() === 'cookie');
  }

  /** The address of the next request. */
  get url(): URL {
    return this.#session ?? this.#url;
  }

  /** The next request opens a session, at the address of the server. */
  startOver(): void {
    this.#session = undefined;
    this.#cookies.clear();
  }

  send(request: OriginRequest): void {
    this.#attempt(request, request.url ?? this.url, 0);
  }

  /** Another token is there: the requests that wait for it are sent again. */
  authorized(): void {
    const waiting = [...this.#rejected];
    this.#rejected.clear();
    for (const request of waiting) if (request.wanted()) this.send({ ...request, waitsForToken: false });
  }

  #attempt(sent: OriginRequest, url: URL, redirects: number): void {
    const unauthorized = (error: unknown): void => {
      if (sent.wanted()) sent.failed(unreachable(error, 'no'));
    };
    try {
      const authorized = sent.authorization?.headers(sent.method, url, this.#options.url);
      if (!(authorized instanceof Promise)) return this.#start(sent, url, redirects, authorized);
      authorized.then((headers) => {
        if (sent.wanted()) this.#start(sent, url, redirects, headers);
      }, unauthorized);
    } catch (error) {
      unauthorized(error);
    }
  }

  #start(
    sent: OriginRequest,
    url: URL,
    redirects: number,
    authorization: Readonly<Record<string, string>> | undefined,
  ): void {
    const { nodeHttp, agent, headers, url: server } = this.#options;
    const [cookieName = 'cookie', configured] = this.#cookie ?? [];
    const cookie = sent.ofSession ? this.#cookies.header(configured) : configured;
    let request: ClientRequest;
    try {
      request = nodeHttp.request({
        ...addressOf(url),
        method: sent.method,
        // No coding is worth its processor time for messages; a server that encodes nevertheless is understood.
        headers: {
          'accept-encoding': 'identity',
          ...headers,
          ...(cookie === undefined ? {} : { [cookieName]: cookie }),
          ...trimmed(authorization),
          ...sent.headers(),
        },
        agent,
      });
    } catch (error) {
      // Node rejects headers that it cannot send, such as a token with a line break.
      return sent.failed({
        reason: 'refused',
        message: `the request cannot be sent: ${messageOf(error)}`,
        carriedOut: 'no',
        cause: error,
      });
    }
    let outcome = false;
    const failed = (failure: CallFailure): void => {
      if (outcome) return;
      outcome = true;
      sent.failed(failure);
    };
    request.on('response', (response) => {
      if (outcome) return discard(response);
      response.on('error', ignore);
      try {
        sent.authorization?.observe?.(url, response.headers, response.statusCode, server);
      } catch (error) {
        response.destroy();
        return failed(unreachable(error, 'unknown'));
      }
      outcome = true;
      this.#receive(sent, response, url, redirects);
    });
    request.on('error', (error) => failed(unreachable(error, carriedOutBy(error, request))));
    // Node drops the socket of a response of 101, and reports neither a response nor an error.
    request.on('close', () =>
      failed({
        reason: 'closed',
        message: 'the server closed the connection without a response',
        carriedOut: 'unknown',
      }),
    );
    if (sent.lateMs !== undefined) {
      const late = this.#options.clock.after(sent.lateMs, () => request.destroy());
      request.on('close', () => late.cancel());
    }
    sent.started(request);
    // Node writes the headers in the encoding of a body that is text, and theirs is Latin-1.
    request.end(sent.body === undefined || this.#ascii ? sent.body : Buffer.from(sent.body));
  }

  #receive(sent: OriginRequest, response: IncomingMessage, url: URL, redirects: number): void {
    const status = response.statusCode ?? 0;
    if (sent.ofSession) this.#cookies.receive(response.headers['set-cookie'], url, this.#options.clock.date());
    if (status >= 300 && status < 400) return this.#redirect(sent, response, url, redirects);
    if (status === 401 && sent.waitsForToken && sent.authorization) {
      discard(response);
      this.#rejected.add(sent);
      return this.#options.tokenRejected(response.headers['www-authenticate']);
    }
    let body: Readable;
    try {
      body = decodedBody(response, () => this.#misnamed(response));
    } catch (error) {
      response.destroy();
      return sent.failed({
        reason: 'malformed',
        message: messageOf(error),
        carriedOut: status < 300 ? 'yes' : 'unknown',
      });
    }
    if (body !== response) body.on('error', ignore);
    if (sent.opens && status < 300) this.#session = url;
    sent.response({
      status,
      headers: response.headers,
      type: (response.headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '',
      body,
      url,
      destroy: () => {
        response.destroy();
        body.destroy();
      },
    });
  }

  /** A proxy has decoded the body and left the header, as many do. */
  #misnamed({ headers }: IncomingMessage): void {
    if (this.#repaired) return;
    this.#repaired = true;
    const coding = headers['content-encoding']?.slice(0, 100);
    const { log, url } = this.#options;
    log(
      'warning',
      `${url.origin}: a response names the content coding ${coding}, and is not encoded. It was read as it is`,
    );
  }

  #redirect(sent: OriginRequest, response: IncomingMessage, url: URL, redirects: number): void {
    discard(response);
    const status = response.statusCode ?? 0;
    const { location } = response.headers;
    const target = location === undefined ? undefined : targetOf(location, url);
    // Headers and tokens belong to one origin.
    if (REDIRECTS[sent.method].includes(status) && target?.origin === url.origin && redirects < MAX_REDIRECTS) {
      if ((status === 308 || status === 301) && sent.url === undefined) this.#url = target;
      if (sent.wanted()) this.#attempt(sent, target, redirects + 1);
      return;
    }
    sent.failed({
      reason: 'refused',
      message: `expected a response, got a redirect (HTTP ${status}) to ${location?.slice(0, 200) ?? 'no address'}. Redirects are followed only within the same origin, at most ${MAX_REDIRECTS}, and a POST only with 301, 307 or 308. If you trust that address, connect to it directly`,
      carriedOut: 'no',
    });
  }
}

/** The address of a redirect. Its credentials are those of the redirected address, whatever the server writes there. */
function targetOf(location: string, url: URL): URL | undefined {
  if (!URL.canParse(location, url.href)) return undefined;
  const target = new URL(location, url);
  target.username = url.username;
  target.password = url.password;
  return target;
}

/** A token that comes from a file may end with a line break. */
function trimmed(headers: Readonly<Record<string, string>> | undefined): Record<string, string> {
  return Object.fromEntries(Object.entries(headers ?? {}).map(([name, value]) => [name, value.trim()]));
}

/** The address of a URL for `node:http`; credentials in it become Basic authorization. */
function addressOf(url: URL): RequestOptions {
  return {
    protocol: url.protocol,
    hostname: url.hostname.startsWith('[') ? url.hostname.slice(1, -1) : url.hostname,
    port: url.port,
    path: `${url.pathname}${url.search}`,
    ...(url.username === '' && url.password === ''
      ? {}
      : { auth: `${unescaped(url.username)}:${unescaped(url.password)}` }),
  };
}

/** The text of a part of a URL. A broken escape stays as it is. */
function unescaped(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Reads a body that means nothing, so that its socket can be used again, unless it is long. */
export function discard(response: Readable): void {
  let bytes = 0;
  response.on('error', ignore);
  response.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > DISCARDED_BYTES) response.destroy();
  });
}

/** A request that no socket could carry was not sent: no address, no connection, or no agreement on encryption. */
function carriedOutBy(error: Error, request: ClientRequest): CarriedOut {
  const code = 'code' in error ? String(error.code) : '';
  const syscall = 'syscall' in error ? error.syscall : undefined;
  const { socket } = request;
  const shaking = socket !== null && 'secureConnecting' in socket && socket.secureConnecting === true;
  return NOT_SENT.has(code) || syscall === 'connect' || syscall === 'getaddrinfo' || shaking ? 'no' : 'unknown';
}

/** The words of OpenSSL, which also name its source file, for a server that answers without TLS. */
const NO_TLS = /:wrong version number:/;

function unreachable(error: unknown, carriedOut: CarriedOut): CallFailure {
  const said =
    error instanceof Error ? error.message || ('code' in error ? String(error.code) : error.name) : String(error);
  const text = NO_TLS.test(said) ? 'no TLS is spoken there. Write http: in place of https: in its address' : said;
  return carriedOut === 'no'
    ? { reason: 'unreachable', message: `cannot be reached: ${text}`, carriedOut, cause: error }
    : { reason: 'closed', message: `the connection broke before the response: ${text}`, carriedOut, cause: error };
}

/** A broken body closes, which its reader notices. */
function ignore(): void {}

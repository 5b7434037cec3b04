/** Sends the requests of one mount to its API: retries, pauses that the API demands, redirects, and responses that it validates again. */
import { ClientError } from '../../client/client-errors.ts';
import { delayAfter } from '../../core/kernel/back-off.ts';
import { type Clock, LONGEST_TIMER_MS, pause } from '../../core/kernel/clock.ts';
import { sha256 } from '../../core/kernel/sha256.ts';
import { messageOf } from '../../core/protocol/json.ts';
import {
  AddressRejected,
  FetchFailed,
  type GuardedFetch,
  guardedFetch,
} from '../../features/oauth/issuers/guarded-fetch.ts';

export interface ApiRequest {
  readonly method: string;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer | undefined;
  /** Names the origin and the credential: what the API limits together. It contains no secret. */
  readonly client: string;
  /** The request has no effects. */
  readonly reads: boolean;
  /** A repeat does no harm: it reads, or has an idempotency key. */
  readonly repeatable: boolean;
  readonly signal: AbortSignal;
}

export interface ApiResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Buffer;
  /** The address that has responded: another one after a redirect. */
  readonly url: URL;
}

export interface ApiConnectionOptions {
  readonly mount: string;
  readonly clock: Clock;
  /** The addresses that the operator named. Their hosts may be private, and reached by plain http. */
  readonly trusted: readonly [URL, ...URL[]];
  /** Longest response in bytes, decoded. */
  readonly maxBytes: number;
}

const MAX_RETRIES = 2;
const RETRY = { fromMs: 250, toMs: 2_000 };
const MAX_REDIRECTS = 3;
/** Longest pause that a call waits for. */
const MAX_PAUSE_MS = 10_000;
/** Longest pause that is believed. */
const LONGEST_PAUSE_MS = 86_400_000;
const MAX_CLIENTS = 1_000;
const MAX_VALIDATED = 1_000;
const MAX_VALIDATED_BYTES = 16_777_216;

const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
const TEMPORARY: ReadonlySet<number> = new Set([502, 503, 504]);

export class ApiConnection {
  readonly #options: ApiConnectionOptions;
  readonly #request: GuardedFetch;
  /** The time of the clock until which the API takes no more requests of a client. */
  readonly #pausedUntil = new Map<string, number>();
  readonly #validated = new ValidatedResponses();

  constructor(options: ApiConnectionOptions) {
    const { clock, trusted, maxBytes } = options;
    this.#options = options;
    // The deadline of the call is that of its tool, which aborts the signal.
    this.#request = guardedFetch({ clock, trusted, maxBytes, plain: true, timeoutMs: LONGEST_TIMER_MS });
  }

  /**
   * Sends a request, and repeats it where that does no harm.
   *
   * @throws {ClientError} without a response; it says whether the API may have carried the request out
   */
  async send(request: ApiRequest): Promise<ApiResponse> {
    const { reads, repeatable, signal, client } = request;
    const { clock } = this.#options;
    await this.#turn(request);
    let waited = false;
    for (let attempt = 1; ; attempt += 1) {
      const last = attempt > MAX_RETRIES || !repeatable;
      let response: ApiResponse;
      try {
        response = await this.#validate(request);
      } catch (error) {
        const again = error instanceof FetchFailed && (error.fault === 'unreachable' || error.fault === 'closed');
        if (last || !again) throw this.#failure(error);
        await this.#pause(delayAfter(RETRY, attempt), signal);
        continue;
      }
      const retryAfterMs = retryAfter(response, clock);
      if (isLimit(response) && retryAfterMs !== undefined) {
        this.#pauseClient(client, retryAfterMs);
        if (!reads || waited || retryAfterMs > MAX_PAUSE_MS) return response;
        waited = true;
        await this.#pause(retryAfterMs, signal);
        continue;
      }
      if (last || !TEMPORARY.has(response.status)) return response;
      await this.#pause(delayAfter(RETRY, attempt), signal);
    }
  }

  /** Waits for the end of a pause that the API has demanded. @throws {ClientError} for one that is too long */
  async #turn({ client, signal }: ApiRequest): Promise<void> {
    const { clock, mount } = this.#options;
    const waitMs = (this.#pausedUntil.get(client) ?? 0) - clock.now();
    if (waitMs <= 0) {
      this.#pausedUntil.delete(client);
      return;
    }
    if (waitMs > MAX_PAUSE_MS)
      throw new ClientError(mount, {
        reason: 'overloaded',
        message: 'the API asked to wait',
        carriedOut: 'no',
        retryAfterMs: waitMs,
      });
    await this.#pause(waitMs, signal);
  }

  #pauseClient(client: string, ms: number): void {
    const until = this.#options.clock.now() + ms;
    if (until <= (this.#pausedUntil.get(client) ?? 0)) return;
    this.#pausedUntil.set(client, until);
    if (this.#pausedUntil.size > MAX_CLIENTS) this.#pausedUntil.delete([...this.#pausedUntil.keys()][0] ?? '');
  }

  async #pause(ms: number, signal: AbortSignal): Promise<void> {
    await pause(this.#options.clock, ms, signal);
    if (signal.aborted) throw this.#cancelled();
  }

  #cancelled(): ClientError {
    const { mount } = this.#options;
    return new ClientError(mount, { reason: 'cancelled', message: 'the call was cancelled', carriedOut: 'unknown' });
  }

  /** Sends a GET with the entity tag of the response before, if there is one (RFC 9110 section 13.1.2). */
  async #validate(request: ApiRequest): Promise<ApiResponse> {
    const conditional = Object.keys(request.headers).some((name) => /^if-|^range$/i.test(name));
    if (request.method !== 'GET' || conditional) return this.#follow(request, request.headers);
    const key = sha256(`${request.client} ${request.url.href}\n${headerText(request.headers)}`);
    const known = this.#validated.get(key);
    const headers = known ? { ...request.headers, 'if-none-match': known.etag } : request.headers;
    const response = await this.#follow(request, headers);
    if (known && response.status === 304) return known.response;
    const etag = response.headers.get('etag');
    const store = /\bno-store\b/i.test(response.headers.get('cache-control') ?? '');
    if (response.status === 200 && etag !== null && !store) this.#validated.set(key, { etag, response });
    return response;
  }

  /** Follows the redirects of a GET within its origin. Credentials never leave it. */
  async #follow(request: ApiRequest, headers: Readonly<Record<string, string>>): Promise<ApiResponse> {
    let { url } = request;
    for (let redirects = 0; ; redirects += 1) {
      const response = await this.#exchange(request, url, headers);
      const next = redirectOf(response);
      if (!next || request.method !== 'GET' || next.origin !== url.origin || redirects >= MAX_REDIRECTS)
        return response;
      url = next;
    }
  }

  async #exchange(
    { method, body, signal }: ApiRequest,
    url: URL,
    headers: Readonly<Record<string, string>>,
  ): Promise<ApiResponse> {
    const response = await this.#request(url.href, { method, headers, body, signal });
    return {
      status: response.status,
      headers: response.headers,
      body: Buffer.from(await response.arrayBuffer()),
      url,
    };
  }

  #failure(error: unknown): Error {
    const { mount } = this.#options;
    if (error instanceof AddressRejected)
      return new ClientError(mount, { reason: 'refused', message: error.message, carriedOut: 'no' });
    if (!(error instanceof FetchFailed)) return error instanceof Error ? error : new Error(messageOf(error));
    const { fault, sent, message } = error;
    // The body of a response that is too long or damaged has begun.
    const carriedOut = fault === 'too long' ? 'yes' : sent ? 'unknown' : 'no';
    return new ClientError(mount, { reason: fault, message, carriedOut });
  }
}

/** The address that a redirect leads to; undefined for another response. */
export function redirectOf({ status, headers, url }: ApiResponse): URL | undefined {
  const location = headers.get('location');
  if (!REDIRECTS.has(status) || location === null || !URL.canParse(location, url.href)) return undefined;
  const next = new URL(location, url);
  next.hash = '';
  return next;
}

/** True for a response with which an API limits its clients. */
function isLimit({ status }: ApiResponse): boolean {
  return status === 429 || status === 503;
}

/** The milliseconds of `Retry-After`: seconds or a date (RFC 9110 section 10.2.3). */
export function retryAfter({ headers }: Pick<ApiResponse, 'headers'>, clock: Pick<Clock, 'date'>): number | undefined {
  const text = headers.get('retry-after')?.trim() ?? '';
  const ms = /^\d{1,9}(\.\d+)?$/.test(text) ? Math.ceil(Number(text) * 1_000) : Date.parse(text) - clock.date();
  return Number.isNaN(ms) ? undefined : Math.min(LONGEST_PAUSE_MS, Math.max(0, ms));
}

function headerText(headers: Readonly<Record<string, string>>): string {
  return Object.entries(headers)
    .map(([name, value]) => `${name}:${value}`)
    .sort()
    .join('\n');
}

interface Validated {
  readonly etag: string;
  readonly response: ApiResponse;
}

/** Responses with an entity tag, the most recently used last. */
class ValidatedResponses {
  readonly #entries = new Map<string, Validated>();
  #bytes = 0;

  get(key: string): Validated | undefined {
    const found = this.#entries.get(key);
    if (found) {
      this.#entries.delete(key);
      this.#entries.set(key, found);
    }
    return found;
  }

  set(key: string, entry: Validated): void {
    this.#delete(key);
    if (bytesOf(key, entry) > MAX_VALIDATED_BYTES / 4) return;
    this.#entries.set(key, entry);
    this.#bytes += bytesOf(key, entry);
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= MAX_VALIDATED && this.#bytes <= MAX_VALIDATED_BYTES) break;
      this.#delete(oldest);
    }
  }

  #delete(key: string): void {
    const found = this.#entries.get(key);
    if (!found) return;
    this.#entries.delete(key);
    this.#bytes -= bytesOf(key, found);
  }
}

function bytesOf(key: string, { response }: Validated): number {
  // The headers of a response, roughly.
  return key.length + response.body.length + 2_000;
}

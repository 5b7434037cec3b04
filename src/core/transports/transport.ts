/**
 * The interface between a transport and the core: a transport frames bytes into text and back, and never parses the
 * text.
 */

import type { Clock, Pace } from '../kernel/clock.ts';
import type { LogFields } from '../kernel/operator-log.ts';
import type { Quota } from '../kernel/quota.ts';
import type { Metrics } from '../kernel/telemetry/metrics.ts';
import type { Auth } from '../messages/auth.ts';
import type { DormantSessions } from '../messages/dormant-sessions.ts';
import type { ErrorCodeValue } from '../protocol/errors.ts';
import type { JsonObject } from '../protocol/json.ts';
import type { RequestId } from '../protocol/jsonrpc.ts';
import type { Bus } from './bus.ts';

/** The reasons for which a server is not ready. */
export type UnreadyReason = 'draining' | 'store not open' | 'store read-only' | 'no cells' | 'no catalogue';

/** The report if a server serves requests. */
export interface Readiness {
  readonly ready: boolean;
  /** Empty if it is ready. */
  readonly reasons: readonly UnreadyReason[];
}

/** The readiness of a server as JSON. */
export function readinessDocument(host: Pick<TransportHost, 'document'>, { ready, reasons }: Readiness): string {
  return host.document({ ready, reasons: [...reasons] });
}

/** A page for the browser of a person. */
export interface PersonPage {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

/** A request of the browser of a person for a page. */
export interface PageRequest {
  /** The path behind that of the pages: empty, or with a slash. */
  readonly rest: string;
  /** Without its "?". */
  readonly query: string;
  /** The person, as the transport knows them; undefined if it does not. */
  readonly person: Auth | undefined;
  /** The body of a POST: a form. */
  readonly form: string | undefined;
}

/**
 * The pages of features for the browsers of people, by path, such as `/oauth/callback`: each answers a request for its path and those
 * below it. Undefined: there is none now.
 */
export type PersonPages = Readonly<Record<string, (request: PageRequest) => Promise<PersonPage | undefined>>>;

/** The path to which authorization servers redirect browsers. An option of a transport may name another one. */
export const SIGN_IN_PATH = '/oauth/callback';

/** The address of a page at one transport. */
export interface PageAddress {
  readonly url: string;
  /** True if the transport identifies the person of a browser; false if everyone who reaches it is anonymous. */
  readonly identifies: boolean;
}

/** The services that the server provides to an open transport. A kind of transport declares here what only it needs. */
export interface TransportHost {
  readonly bus: Bus;
  readonly clock: Clock;
  /** The pace of jobs that write to the store for many clients. */
  readonly pace: Pace;
  /** Maximum length of a message, in bytes. */
  readonly maxMessageBytes: number;
  /** The tools that may run twice: read-only and idempotent ones. 'tools.changed' announces changes. */
  repeatableTools(): readonly string[];
  /** The byte quota for data that clients make the server hold. */
  readonly retained: Quota;
  readonly metrics: Metrics;
  /** For health checks. */
  readiness(): Readiness;
  /** A unique id for a new connection. */
  connectionId(): string;
  /** Creates the id of a stream that ends with its connection: unguessable, because it grants access to the stream. */
  streamId(): string;
  /** Writes to the operator's log (stderr by default); never to a client. */
  log(level: 'info' | 'warning' | 'error', message: string, fields?: LogFields): void;
  /**
   * The text of an error for input that the transport itself rejects before it is a message; with an id, for that
   * request.
   */
  refusal(code: ErrorCodeValue, message: string, id?: RequestId): string;
  /** The text of a JSON document that the transport serves. */
  document(value: JsonObject): string;
  /** The readable id of the request in a text, or in its beginning, for the error of a text that is too long. */
  idIn(text: string): RequestId | undefined;
  /** The pages for people, of all features. */
  readonly pages: PersonPages;
  /** The hibernating sessions in the store; undefined without a durable store. */
  readonly dormantSessions?: DormantSessions | undefined;
  /**
   * Asks the server to close: it finishes the requests in flight within its grace time, then closes every transport.
   */
  requestClose(reason: string): void;
}

/** A client without a token, as its transport names it. */
export interface NamedClient {
  /** The principal of its requests. */
  readonly principal: string;
  /** The scopes of that principal. Default: every scope for the local user, none for others. */
  readonly scopes?: readonly string[];
}

export interface Transport {
  readonly name: string;
  /** The client of each connection, if the operating system has authenticated it, as on stdio and on a socket. */
  readonly everyClient?: NamedClient;
  /** The transport owns the process, as stdio does: nothing else in it handles uncaught errors. */
  readonly ownsProcess?: boolean;
  /** The transport serves one client, as stdio does. */
  readonly oneClient?: boolean;
  /** The transport authenticates its clients, so anonymous clients are only a part of them. */
  readonly authenticates?: boolean;
  /**
   * Milliseconds from the moment at which the server is not ready until it drains, because balancers learn that late.
   * Known once the transport is open.
   */
  readonly drainDelayMs?: number | undefined;
  /**
   * The address of a page for people, once the transport is open; undefined if it shows none.
   *
   * @param path as in {@link PersonPages}
   */
  pageAddress?(path: string): PageAddress | undefined;
  /** Starts to accept connections. @throws if it cannot, with a fix */
  open(host: TransportHost): void | Promise<void>;
  /** Accepts no new connections, because the server is closing. Open connections live on until `close`. */
  stopAccepting?(): void;
  /** Flushes the output, closes every connection, and resolves when nothing is open. Idempotent. */
  close(): Promise<void>;
}

/** One HTTP request and its response as the endpoint sees them, from `node:http` or the web standard. Types only. */

import type { Quota } from '../kernel/quota.ts';
import type { Auth } from '../messages/auth.ts';
import type { Bytes, RequestHead } from '../messages/connection-events.ts';

/** A header with several values is sent once for each. */
export type Headers = Readonly<Record<string, string | readonly string[]>>;

/**
 * The reason why a body is not available. `start` is the beginning of a body that is too long, if any of it was read. It may
 * contain an id.
 */
export type BodyFault =
  | { readonly fault: 'too long'; readonly start?: string }
  /** The server's byte quota has no room for it; `why` names the option. */
  | { readonly fault: 'no room'; readonly why: string }
  | { readonly fault: 'not UTF-8' | 'cut' | 'read already' };

/** A whole body. `bytes`: as it came, if the limits ask for it; the text is then empty. */
export type Body = { readonly text: string; readonly bytes?: Uint8Array } | BodyFault;

/** The limits of a body while it is received. */
export interface BodyLimits {
  readonly maxMessageBytes: number;
  /** The byte quota in which the received part counts. */
  readonly retained: Quota;
  /** The body is wanted as bytes, which may be anything. */
  readonly raw?: true;
}

/** Maximum length of such a start, in bytes. */
export const MAX_START = 65_536;

export interface HttpRequest extends RequestHead {
  readonly method: string;
  /** Path and query. */
  readonly url: string;
  /** Each value of a header, by its name in lower case, as far as they are known. */
  values(name: string): readonly string[];
  /** The headers with these names, by their names in lower case; the values of a repeated header joined. */
  pick(takes: (name: string) => boolean): Readonly<Record<string, string>>;
  /** Stands for the connection; undefined if it is not known. */
  readonly connection: object | undefined;
  /** Reads the whole body within the limits, counted for this principal, and calls `done` once. */
  body(limits: BodyLimits, principal: string, done: (body: Body) => void): void;
  readonly response: HttpResponse;
  /** Its authenticated caller; undefined for an anonymous one. The endpoint sets it. */
  auth: Auth | undefined;
  /** Rejects a request that another node has forwarded, because this node does not own its cell. Absent for all others. */
  notMine?(): void;
}

/** Provides the headers that every response to a request has. */
export interface CommonHeaders {
  headers(request: Pick<HttpRequest, 'header'>): Headers | undefined;
}

/** Receives the events of a response. */
export interface HttpListener {
  /** The client disconnected or has received everything: nothing more can be sent. Called once. */
  closed(): void;
  /** The client has read the written bytes. */
  drained(): void;
}

export interface HttpResponse {
  /** The client has disconnected. */
  readonly gone: boolean;
  /** The only listener; set before anything is sent. */
  listener: HttpListener | undefined;
  /** Sends a whole body or none. `bytes` contains the same body already encoded as UTF-8. */
  send(status: number, headers: Headers, body: string | undefined, bytes?: Bytes): void;
  /** Begins a body that is written in pieces. */
  begin(status: number, headers: Headers): void;
  /** @returns false if the client reads more slowly than the server writes; `drained` follows */
  write(text: string): boolean;
  /** Number of written bytes that the client has not read. */
  readonly pending: number;
  /** Ends a body that was begun. */
  end(): void;
  /** Disconnects the client and drops all unread bytes. */
  destroy(): void;
}

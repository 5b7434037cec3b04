/** One HTTP request and its response as the endpoint sees them, be they of `node:http` or of the web standard. Types only. */

import type { Bytes } from '../../messages/connection-events.ts';

export type Headers = Readonly<Record<string, string>>;

/** Why a body could not be had. */
export type BodyFault = 'too long' | 'not UTF-8' | 'cut' | 'read already';

/** `start` is how a body began that is too long, where any of it was read: an id may be in it. */
export type Body = { readonly text: string } | { readonly fault: BodyFault; readonly start?: string };

/** Longest such start, in bytes. */
export const MAX_START = 65_536;

export interface HttpRequest {
  readonly method: string;
  /** Path and query. */
  readonly url: string;
  /** A header by its name in lower case. */
  header(name: string): string | undefined;
  readonly remoteAddress: string | undefined;
  /** The address of this machine that the client connected to, where it is known. */
  readonly localAddress: string | undefined;
  /** The HTTP version of the request line, such as `1.1`; undefined for a request that had none. */
  readonly version: string | undefined;
  /** Whether a header came more than once, as far as can be told. */
  repeats(name: string): boolean;
  /** Reads the whole body, of at most so many bytes, and calls once. */
  body(maxBytes: number, done: (body: Body) => void): void;
  readonly response: HttpResponse;
}

/** What hears of a response. */
export interface HttpListener {
  /** The client disconnected, or has been sent everything: nothing more can be sent. Called once. */
  closed(): void;
  /** The client has taken what was written. */
  drained(): void;
}

export interface HttpResponse {
  /** The client has left already. */
  readonly gone: boolean;
  /** At most one hears; set before anything is sent. */
  listener: HttpListener | undefined;
  /** Answers with one whole body, or with none; `bytes` make the same body, where it need not be put into UTF-8 again. */
  send(status: number, headers: Headers, body: string | undefined, bytes?: Bytes): void;
  /** Begins a body that is written bit by bit. */
  begin(status: number, headers: Headers): void;
  /** @returns false when the client reads slower than we write; `drained` follows */
  write(text: string): boolean;
  /** Bytes that were written and not yet taken. */
  readonly pending: number;
  /** Ends a body that has begun. */
  end(): void;
  /** Drops the client, with whatever it has not taken. */
  destroy(): void;
}

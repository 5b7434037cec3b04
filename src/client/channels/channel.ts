/**
 * The port of a client to the bytes of one server: a channel carries texts, and never parses them. Types only.
 */
import type { Mailbox } from '../../core/messages/mailbox.ts';
import type { RequestId } from '../../core/protocol/jsonrpc.ts';
import type { Authorization } from '../authorization.ts';
import type { CallFailure } from '../client-errors.ts';

/** One message to the server. */
export interface OutgoingMessage {
  readonly text: string;
  readonly method: string;
  /** Absent for notifications and responses. */
  readonly id: RequestId | undefined;
  /** `MCP-Protocol-Version`; undefined before a legacy revision is negotiated. */
  readonly revision: string | undefined;
  /** `Mcp-Method`, `Mcp-Name` and `Mcp-Param-*` of the modern era, encoded. */
  readonly headers: Readonly<Record<string, string>> | undefined;
  /** The request belongs to no session: `initialize`, and every request of the modern era. */
  readonly sessionless: boolean;
  /** Authorizes this message instead of the channel's own. */
  readonly authorization?: Authorization | undefined;
}

/** Reports of a channel to its connection. */
export type ChannelMail =
  /** `trusted`: what the open channel says about the server by itself; a 2024-11-05 stream is always legacy. */
  | { readonly type: 'opened'; readonly era?: 'legacy' | undefined }
  /** `about`: the request on whose stream the text arrived; undefined where all messages share one stream. */
  | {
      readonly type: 'text';
      readonly text: string;
      readonly about: RequestId | undefined;
      /** The text is all that responds to `about`; nothing follows. */
      readonly whole?: true | undefined;
      /** The HTTP status, if it is an error's. */
      readonly status?: number | undefined;
    }
  /** A message was longer than `maxMessageBytes`. Its id and method are in `envelope`, as far as they could be read. */
  | { readonly type: 'dropped'; readonly envelope: string; readonly bytes: number }
  /** A request will get no response. */
  | { readonly type: 'request failed'; readonly id: RequestId; readonly failure: ChannelFailure }
  /** The channel could not open, or broke. Nothing follows. */
  | { readonly type: 'gone'; readonly failure: ChannelFailure; readonly final: boolean }
  /** The server rejects the token of a message that the channel keeps. The channel sends it again when `authorized` is called. */
  | { readonly type: 'token rejected'; readonly challenge: string | undefined }
  /** A stream that carries messages outside of any request was interrupted: messages may be missing. */
  | { readonly type: 'gap' };

export type ChannelFailure =
  | (CallFailure & { readonly kind?: undefined })
  /** The server does not know the session of the request. `text`: its explanation. It has carried nothing out, unless `status` is 500 or above, and not 503. */
  | { readonly kind: 'session lost'; readonly status: number; readonly text?: string | undefined }
  /** HTTP 401, or 403 with `insufficient_scope`. Nothing was carried out. */
  | {
      readonly kind: 'unauthorized';
      readonly status: 401 | 403;
      readonly challenge: string | undefined;
      /** The explanation of the server; empty without one. */
      readonly text: string;
      /** The request belongs to a session, which may be what the server does not know. */
      readonly inSession?: boolean | undefined;
    }
  /** The response shows a server that does not know this era: anything but a message of it. `text`: what it wrote instead. */
  | { readonly kind: 'unknown era'; readonly status: number; readonly text?: string | undefined };

/** The connection's end of a channel. */
export type ChannelHost = Mailbox<ChannelMail>;

export interface Channel {
  /** One stream carries all messages, so that a cancellation is a notification; over HTTP, each request has its own. */
  readonly kind: 'stream' | 'http';
  /** Opens the channel; `opened` or `gone` follows. */
  open(host: ChannelHost): void;
  /** Sends a message. Never throws: `request failed` or `gone` reports what went wrong. */
  send(message: OutgoingMessage): void;
  /** The session of a request, and the last event on its stream. Undefined if the stream cannot be resumed. */
  position?(id: RequestId): { readonly session: string; readonly lastEventId: string } | undefined;
  /** Continues the stream of a request that another process has sent. */
  resume?(message: OutgoingMessage, lastEventId: string): void;
  /** Closes at once and tells the server nothing, so that another process can continue the session. */
  leave?(): void;
  /** Gives up a request that has a stream of its own: that is closed. No response follows. */
  abandon?(id: RequestId): void;
  /** The response of a request has arrived, so that the end of its own stream is no failure. */
  answered?(id: RequestId): void;
  /** Another token is there: streams that the server rejected open again. */
  authorized?(): void;
  /** Legacy sessions over HTTP: opens the stream for messages outside of any request. */
  listen?(): void;
  /** Ends the channel, within a bounded time. Nothing is reported afterwards. */
  close(): Promise<void>;
  /** Text of the last lines that the server's process wrote to stderr; empty for other channels. */
  stderr?(): string;
}

/** What a transport is to the core: it frames bytes into text and back, and never looks inside. */

import type { Clock } from '../clock.ts';
import type { DormantSessions } from '../messages/session-storage.ts';
import type { ErrorCodeValue } from '../protocol/errors.ts';
import type { RequestId } from '../protocol/jsonrpc.ts';
import type { Quota } from '../quota.ts';
import type { Bus } from './bus.ts';
import type { SharedHttpOptions } from './http/http-options.ts';

/** What the server lends a transport while it is open. */
export interface TransportHost {
  readonly bus: Bus;
  readonly clock: Clock;
  /** Longest message accepted, in bytes. */
  readonly maxMessageBytes: number;
  /** The tools that may be called twice: those that only read, or are idempotent. 'tools.changed' says when to look again. */
  repeatableTools(): readonly string[];
  /** In bytes, of what clients make the server hold. */
  readonly retained: Quota;
  /** A unique id for a new connection. */
  connectionId(): string;
  /** Says something to the operator (on stderr by default); never to a client. */
  log(level: 'info' | 'warning' | 'error', message: string): void;
  /** The text of an error for what the transport itself refuses, before it is a message; with an id, for the request of it. */
  refusal(code: ErrorCodeValue, message: string, id?: RequestId): string;
  /** The id of the request that a text holds, or begins with, where it can be read: for the error of a text that is too long. */
  idIn(text: string): RequestId | undefined;
  /** The server's own HTTP options: each holds for a transport over HTTP that was not given another value for it. */
  readonly http?: SharedHttpOptions | undefined;
  /** Where sessions are kept beyond this process: those that can be woken. */
  readonly sleepers?: DormantSessions | undefined;
  /** Asks the server to close: finish what is in flight within its grace time, then close every transport. */
  requestClose(reason: string): void;
}

export interface Transport {
  readonly name: string;
  /** It has the process to itself, as stdio has: nobody else answers for what goes wrong in it. */
  readonly ownsProcess?: boolean;
  /** It says who its clients are: those that nobody knows are then not all that there are. */
  readonly authenticates?: boolean;
  /** Starts to accept connections. @throws when it cannot, with what to do about it. */
  open(host: TransportHost): void | Promise<void>;
  /** Takes no new connections: the server is closing. Those that are open live on, until `close`. */
  stopAccepting?(): void;
  /** Flushes what was handed over, closes every connection, and resolves when nothing is left open. Idempotent. */
  close(): Promise<void>;
}

/** The mailbox of the server actor: its lifecycle, and requests about the server itself. Types only. */
import type { RequestMail } from './request-messages.ts';

export type ServerMail =
  | RequestMail
  /** The first transport is open. */
  | { readonly type: 'started' }
  /** Close the server: these connections may still have requests in flight. */
  | { readonly type: 'drain'; readonly reason: string; readonly connections: readonly string[] }
  /** A draining connection has nothing in flight any more. */
  | { readonly type: 'connection idle'; readonly connection: string }
  /** The grace time is over. */
  | { readonly type: 'grace over' }
  /** Every transport is closed. */
  | { readonly type: 'stopped' };

/** What the server actor hears: its own lifecycle, and requests about the server itself. Types only. */
import type { RequestMail } from './request-messages.ts';

export type ServerMail =
  | RequestMail
  /** The first transport is open. */
  | { readonly type: 'started' }
  /** Close: these connections may still have requests in flight. */
  | { readonly type: 'drain'; readonly reason: string; readonly connections: readonly string[] }
  /** A draining connection has nothing in flight any more. */
  | { readonly type: 'connection idle'; readonly connection: string }
  /** The grace time for what was in flight is over. */
  | { readonly type: 'grace over' }
  /** Every transport is closed. */
  | { readonly type: 'stopped' };

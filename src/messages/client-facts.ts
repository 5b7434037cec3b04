/** What is known of the client behind a request: its session says it (legacy), or the request itself (modern). Types only. */
import type { Dialect } from '../protocol/dialects/index.ts';
import type { ClientCapabilities, Implementation, LogLevel } from '../protocol/types.ts';
import type { Announceable } from './mailbox.ts';
import type { SessionMail } from './session-messages.ts';

export interface Client {
  readonly dialect: Dialect;
  readonly info: Implementation | undefined;
  readonly capabilities: ClientCapabilities;
  /** Least severe level that the client wants; `undefined` means none at all. */
  readonly logLevel: LogLevel | undefined;
  /** Who the request is authorised as. */
  readonly principal: string;
  /** Absent for a modern client. */
  readonly session: { readonly id: string; readonly mailbox: Announceable<SessionMail> } | undefined;
}

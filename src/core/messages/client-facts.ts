/**
 * The facts about the client of a request: from its session (legacy) or from the request itself (modern). Types only.
 */
import type { Dialect } from '../protocol/dialects/index.ts';
import type { ClientCapabilities, Implementation, LogLevel } from '../protocol/types.ts';
import type { Mailbox } from './mailbox.ts';
import type { SessionMail } from './session-messages.ts';

export interface ClientFacts {
  readonly dialect: Dialect;
  readonly info: Implementation | undefined;
  readonly capabilities: ClientCapabilities;
  /** Least severe level that the client wants; undefined: no log messages. */
  readonly logLevel: LogLevel | undefined;
  /** The principal that authorizes the request. */
  readonly principal: string;
  /** Absent for a modern client. */
  readonly session: SessionFacts | undefined;
}

export interface SessionFacts {
  readonly id: string;
  readonly mailbox: Mailbox<SessionMail>;
  /** Number of times that the client has announced other roots. */
  readonly rootsChanges: number;
}

/** Restoration of dormant sessions, if the server's store is durable. Types only. */
import type { Dialect } from '../protocol/dialects/index.ts';
import type { ConnectionId } from './connection-events.ts';
import type { SessionStorage } from './session-storage.ts';

/** A session that is about to be restored. */
interface RestorableSession {
  readonly dialect: Dialect;
  readonly keeper: SessionStorage;
  /** Opens its connection, which makes it active. */
  connect(): ConnectionId;
  /** Reports that its streams cannot be read now: it hibernates again. */
  unread(): void;
}

export interface DormantSessions {
  /**
   * Finds a dormant session of this principal; `damaged` if the store has invalid data for it.
   * @throws if the store cannot be read
   */
  wake(id: string, principal: string): Promise<RestorableSession | 'damaged' | undefined>;
}

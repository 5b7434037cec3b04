/** Restores hibernating sessions from the store, each once, even if several requests arrive for it at a time. */
import type { ConnectionId } from '../messages/connection-events.ts';
import type { DormantSessions } from '../messages/dormant-sessions.ts';
import type { TransportHost } from '../transports/transport.ts';
import { HttpSession, type HttpSessionHost } from './http-session.ts';

export interface WakingHost extends HttpSessionHost {
  readonly host: TransportHost;
  /** Adds the restored session, on this connection. */
  enter(session: HttpSession, connection: ConnectionId): void;
}

export class SessionWakeup {
  readonly #connections: WakingHost;
  /** Sessions that are being restored, by id and principal. */
  readonly #waking = new Map<string, Promise<HttpSession | 'damaged' | undefined>>();
  #closed = false;

  constructor(connections: WakingHost) {
    this.#connections = connections;
  }

  /**
   * @returns undefined without a durable store; a promise of undefined if the session is unknown or belongs to another
   * principal; a promise of `damaged` if its stored data is damaged
   */
  wake(id: string, principal: string): Promise<HttpSession | 'damaged' | undefined> | undefined {
    const { dormantSessions } = this.#connections.host;
    if (!dormantSessions || this.#closed) return undefined;
    const key = `${id} ${principal}`;
    const begun = this.#waking.get(key);
    if (begun) return begun;
    const waking = this.#wake(dormantSessions, id, principal);
    this.#waking.set(key, waking);
    const over = (): void => void this.#waking.delete(key);
    waking.then(over, over);
    return waking;
  }

  async #wake(
    dormantSessions: DormantSessions,
    id: string,
    principal: string,
  ): Promise<HttpSession | 'damaged' | undefined> {
    const connections = this.#connections;
    const restored = await dormantSessions.wake(id, principal);
    if (!restored || restored === 'damaged') return restored;
    const { dialect, keeper, connect, unread } = restored;
    const now = connections.host.clock.now();
    const session = new HttpSession({ id, principal, dialect, keeper }, connections, now);
    try {
      await session.restore(now);
    } catch (error) {
      // The next request finds it again.
      unread();
      throw error;
    }
    if (this.#closed) return undefined;
    connections.enter(session, connect());
    return session;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Stops restoring sessions. */
  end(): void {
    this.#closed = true;
  }
}

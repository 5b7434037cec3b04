/** Restores hibernating sessions from the store, each once, even if several requests arrive for it at a time. */
import type { ConnectionId } from '../../messages/connection-events.ts';
import type { DormantSessions } from '../../messages/dormant-sessions.ts';
import { ErrorCode } from '../../protocol/errors.ts';
import { messageOf } from '../../protocol/json.ts';
import type { TransportHost } from '../transport.ts';
import { HttpSession, type HttpSessionDeps } from './http-session.ts';

/** The error for a request whose process died, for a client that resumes its stream. */
const LOST =
  'the server restarted while this request ran. The request may or may not have completed; its outcome is unknown';
/** The error if the store rejects the data that a response rests on. */
export const UNSAVED = 'the server cannot persist the result, so it cannot send it. Retry later with the same id';

export interface SessionWakeupOptions {
  readonly host: TransportHost;
  readonly streams: HttpSessionDeps;
  /** Adds the restored session, on this connection. */
  enter(session: HttpSession, connection: ConnectionId): void;
}

export class SessionWakeup {
  readonly #options: SessionWakeupOptions;
  /** Sessions that are being restored, by id and principal. */
  readonly #waking = new Map<string, Promise<HttpSession | 'damaged' | undefined>>();
  #closed = false;

  constructor(options: SessionWakeupOptions) {
    this.#options = options;
  }

  /**
   * @returns undefined without a durable store; a promise of undefined if the session is unknown or belongs to another
   * principal; a promise of `damaged` if its stored data is damaged
   */
  wake(id: string, principal: string): Promise<HttpSession | 'damaged' | undefined> | undefined {
    const { dormantSessions } = this.#options.host;
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
    const { host, streams, enter } = this.#options;
    const restored = await dormantSessions.wake(id, principal);
    if (!restored || restored === 'damaged') return restored;
    const { dialect, keeper, connect, unread } = restored;
    const now = host.clock.now();
    const session = new HttpSession({ id, principal, dialect, keeper }, streams, now);
    try {
      await session.restore(now);
    } catch (error) {
      // The next request finds it again.
      unread();
      throw error;
    }
    if (this.#closed) return undefined;
    enter(session, connect());
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

/** The messages about streams of a dead process: for their clients, and for the operator. */
export function storedTexts(host: TransportHost): Pick<HttpSessionDeps, 'lost' | 'unreadable'> {
  return {
    lost: (request) => host.refusal(ErrorCode.InternalError, LOST, request),
    unreadable: (error) => host.log('error', `http: cannot replay a stream: ${messageOf(error)}`),
  };
}

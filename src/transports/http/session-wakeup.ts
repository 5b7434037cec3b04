/** Wakes the sessions that are kept beyond a process, each once, however many requests come for it at a time. */
import type { ConnectionId } from '../../messages/connection-events.ts';
import type { DormantSessions } from '../../messages/session-storage.ts';
import { ErrorCode } from '../../protocol/errors.ts';
import { messageOf } from '../../protocol/json.ts';
import type { TransportHost } from '../transport.ts';
import { HttpSession, type HttpSessionDeps } from './http-session.ts';

/** Said of a request whose process is gone, to whoever comes back to its stream. */
const LOST =
  'the server restarted while this request ran. The request may or may not have completed; its outcome is unknown';
/** Said where the store does not take what an answer rests on. */
export const UNSAVED = 'the server cannot persist the result, so it cannot send it. Retry later with the same id';

export interface SessionWakeupOptions {
  readonly host: TransportHost;
  readonly streams: HttpSessionDeps;
  /** The session is awake, on this connection. */
  enter(session: HttpSession, connection: ConnectionId): void;
}

export class SessionWakeup {
  readonly #options: SessionWakeupOptions;
  /** Sessions on their way, by id and principal. */
  readonly #waking = new Map<string, Promise<HttpSession | 'damaged' | undefined>>();
  #closed = false;

  constructor(options: SessionWakeupOptions) {
    this.#options = options;
  }

  /** @returns undefined where nothing is kept, a promise of undefined where this session is not, or is not this principal's, and of `damaged` where its storage is */
  wake(id: string, principal: string): Promise<HttpSession | 'damaged' | undefined> | undefined {
    const { sleepers } = this.#options.host;
    if (!sleepers || this.#closed) return undefined;
    const key = `${id} ${principal}`;
    const begun = this.#waking.get(key);
    if (begun) return begun;
    const waking = this.#wake(sleepers, id, principal);
    this.#waking.set(key, waking);
    const over = (): void => void this.#waking.delete(key);
    waking.then(over, over);
    return waking;
  }

  async #wake(sleepers: DormantSessions, id: string, principal: string): Promise<HttpSession | 'damaged' | undefined> {
    const { host, streams, enter } = this.#options;
    const woken = await sleepers.wake(id, principal);
    if (!woken || woken === 'damaged') return woken;
    const { dialect, keeper, connect } = woken;
    const now = host.clock.now();
    const session = new HttpSession({ id, principal, dialect, keeper }, streams, now);
    await session.restore(now);
    if (this.#closed) return undefined;
    enter(session, connect());
    return session;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Nobody wakes any more. */
  end(): void {
    this.#closed = true;
  }
}

/** What is said of streams whose process is gone: to their clients, and to the operator. */
export function storedTexts(host: TransportHost): Pick<HttpSessionDeps, 'lost' | 'unreadable'> {
  return {
    lost: (request) => host.refusal(ErrorCode.InternalError, LOST, request),
    unreadable: (error) => host.log('error', `http: cannot replay a stream: ${messageOf(error)}`),
  };
}

/**
 * Periodic maintenance of HTTP connections: keeps silent streams open, disconnects stalled clients, ends and hibernates
 * idle sessions.
 */

import { inSlices, type Timer } from '../kernel/clock.ts';
import { durationOf } from '../kernel/duration.ts';
import type { TransportHost } from '../transports/transport.ts';
import { authenticates, type ResolvedHttpOptions } from './http-options.ts';
import type { HttpSession } from './http-session.ts';
import type { OpenResponse, OpenResponses } from './open-responses.ts';

interface SweeperOptions {
  readonly host: TransportHost;
  readonly options: ResolvedHttpOptions;
  readonly open: OpenResponses;
  sessions(): Iterable<HttpSession>;
  /** Ends a session. */
  end(session: HttpSession, reason: string): void;
  /** Removes a session from memory. */
  sleep(session: HttpSession): void;
}

/** Maximum number of sessions that hibernate in one round, so that a round stays short. The rest wait for the next. */
const MOST_TO_SLEEP = 2_000;
/** Milliseconds between two checks for sessions that may hibernate. */
const SLEEP_ROUND_MS = 5_000;
/** Milliseconds between two checks for streams whose authentication has ended. */
const END_ROUND_MS = 1_000;

export class Sweeper {
  readonly #options: SweeperOptions;
  readonly #timers = new Map<object, Timer>();
  #ended = false;

  constructor(options: SweeperOptions) {
    this.#options = options;
    const { keepAliveMs, stallMs, sessionIdleMs, replayMs } = options.options;
    this.#every(Math.min(keepAliveMs, stallMs), this.#tend);
    this.#every(Math.max(1, Math.min(sessionIdleMs, replayMs) / 4), this.#sweep);
    if (authenticates(options.options)) this.#every(END_ROUND_MS, this.#expire);
    if (options.host.dormantSessions) this.#every(SLEEP_ROUND_MS, this.#sleep);
  }

  end(): void {
    this.#ended = true;
    for (const timer of this.#timers.values()) timer.cancel();
  }

  #every(ms: number, round: (done: () => void) => void): void {
    const again = (): void => {
      if (!this.#ended)
        this.#timers.set(
          round,
          this.#options.host.clock.after(ms, () => round(again)),
        );
    };
    again();
  }

  /** Keeps silent streams open and disconnects clients that read nothing. */
  readonly #tend = (done: () => void): void => {
    const { host, open, options } = this.#options;
    const { keepAliveMs, stallMs } = options;
    let stalled = 0;
    // In slices: writing thousands of comments takes as long as a broadcast.
    const tend = (one: OpenResponse): void => {
      if (!one.tend(host.clock.now(), keepAliveMs, stallMs)) stalled += 1;
    };
    inSlices(host.clock, open.all().values(), tend, () => {
      if (stalled > 0)
        host.log(
          'warning',
          `http: disconnected ${stalled} clients that read nothing for ${durationOf(stallMs)} (http.stallMs)`,
          { event: 'client' },
        );
      done();
    });
  };

  /** Ends streams whose callers are no longer authenticated. */
  readonly #expire = (done: () => void): void => {
    const { host, open, options } = this.#options;
    const expire = (one: OpenResponse): void => {
      const now = host.clock.now();
      if (one.endsAt <= now) one.expire(options.retryMs, now);
    };
    inSlices(host.pace, open.all().values(), expire, done);
  };

  /** Ends idle sessions and evicts streams that no client resumed. */
  readonly #sweep = (done: () => void): void => {
    const { host, options, sessions, end } = this.#options;
    const { sessionIdleMs, replayMs } = options;
    const now = host.clock.now();
    const sweep = (session: HttpSession): void => {
      session.sweep(now, replayMs);
      if (session.busy === 0 && now - session.usedAt >= sessionIdleMs)
        end(session, `idle for ${durationOf(sessionIdleMs)}`);
    };
    inSlices(host.pace, [...sessions()].values(), sweep, done);
  };

  readonly #sleep = (done: () => void): void => {
    const { host, sessions, sleep } = this.#options;
    const now = host.clock.now();
    const sleepy: HttpSession[] = [];
    for (const session of sessions()) {
      if (session.sleepy(now)) sleepy.push(session);
      if (sleepy.length >= MOST_TO_SLEEP) break;
    }
    // Between two slices a session may be used, or end.
    const act = (session: HttpSession): void => {
      if (!this.#ended && session.sleepy(now)) sleep(session);
    };
    inSlices(host.pace, sleepy.values(), act, done);
  };
}

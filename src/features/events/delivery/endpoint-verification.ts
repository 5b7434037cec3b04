/** The verified endpoints of callbacks: each principal shows once that an endpoint wants its deliveries. */
import type { Clock } from '../../../core/kernel/clock.ts';
import { TokenBuckets } from '../../../core/kernel/token-bucket.ts';
import type { FailureCategory } from './callback-sender.ts';

/** Verifications in a minute, of one principal and to one host. */
const PER_PRINCIPAL = 5;
const PER_HOST = 10;
/** Milliseconds for which an endpoint stays verified after its last subscription, and the number of those. */
const KEPT_MS = 3_600_000;
const MAX_KEPT = 10_000;

/** An endpoint that is verified, or why not. */
export type Verified =
  | { readonly ok: true }
  | { readonly ok: false; readonly category: FailureCategory }
  /** Too many verifications. */
  | { readonly ok: false; readonly limit: number; readonly retryAfterMs: number };

export class EndpointVerification {
  readonly #clock: Clock;
  readonly #ofPrincipal = new TokenBuckets({ perSecond: PER_PRINCIPAL / 60, burst: PER_PRINCIPAL });
  readonly #ofHost = new TokenBuckets({ perSecond: PER_HOST / 60, burst: PER_HOST });
  /** By principal and URL: when it was verified. The oldest come first. */
  readonly #kept = new Map<string, number>();
  readonly #running = new Map<string, Promise<Verified>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Verifies an endpoint, unless it is verified. Two calls at once send one challenge.
   *
   * @param challenge sends it. @returns undefined if the endpoint has answered it
   */
  verify(principal: string, url: URL, challenge: () => Promise<FailureCategory | undefined>): Promise<Verified> {
    const key = `${principal}\n${url.href}`;
    const at = this.#kept.get(key);
    const now = this.#clock.now();
    if (at !== undefined && now - at < KEPT_MS) return Promise.resolve({ ok: true });
    const running = this.#running.get(key);
    if (running) return running;
    const waits = [
      { limit: PER_PRINCIPAL, bucket: this.#ofPrincipal.of(principal, now) },
      { limit: PER_HOST, bucket: this.#ofHost.of(url.hostname, now) },
    ];
    for (const { limit, bucket } of waits) {
      const retryAfterMs = bucket.wait(now);
      if (retryAfterMs > 0) return Promise.resolve({ ok: false, limit, retryAfterMs });
    }
    for (const { bucket } of waits) bucket.take(now);
    const verified = challenge()
      .then((category): Verified => {
        if (category !== undefined) return { ok: false, category };
        this.keep(principal, url.href);
        return { ok: true };
      })
      .finally(() => this.#running.delete(key));
    this.#running.set(key, verified);
    return verified;
  }

  /** An endpoint is verified: it has a subscription, or has just answered. */
  keep(principal: string, url: string): void {
    const key = `${principal}\n${url}`;
    this.#kept.delete(key);
    this.#kept.set(key, this.#clock.now());
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > MAX_KEPT && oldest !== undefined) this.#kept.delete(oldest);
  }
}

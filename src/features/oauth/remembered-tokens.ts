/** The outcomes of verified tokens, by the hash of the token, until they expire. Tokens themselves are not stored. */
import { sha256 } from '../../core/kernel/sha256.ts';

/** Maximum number of remembered tokens of a kind. Beyond it the oldest are dropped. */
const MAX_TOKENS = 10_000;

/** The hash by which a token is remembered. Its bytes are characters: base64 would take a third of the time in addition. */
export function tokenHash(token: string): string {
  return sha256(token, 'binary');
}

/** A map whose entries expire. Beyond its size it drops the oldest. */
export class RememberedTokens<T> {
  readonly #entries = new Map<string, { readonly value: T; readonly until: number }>();

  get size(): number {
    return this.#entries.size;
  }

  /** @param now milliseconds of the clock by which the entry was set */
  get(key: string, now: number): T | undefined {
    const entry = this.#entries.get(key);
    if (!entry) return undefined;
    if (entry.until > now) return entry.value;
    this.#entries.delete(key);
    return undefined;
  }

  set(key: string, value: T, until: number): void {
    this.#entries.delete(key);
    if (this.#entries.size >= MAX_TOKENS) {
      const [oldest] = this.#entries.keys();
      if (oldest !== undefined) this.#entries.delete(oldest);
    }
    this.#entries.set(key, { value, until });
  }
}

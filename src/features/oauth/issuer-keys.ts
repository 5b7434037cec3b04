/** The public keys of an issuer: fetched when they are needed, fetched again when they are old or a key is unknown. */
import {
  type CompactJWSHeaderParameters,
  type CryptoKey,
  createLocalJWKSet,
  errors,
  type FlattenedJWSInput,
  type JSONWebKeySet,
} from 'jose';
import type { Clock } from '../../core/kernel/clock.ts';
import { messageOf } from '../../core/protocol/json.ts';
import { IssuerUnavailable } from './issuer-unavailable.ts';

/** Milliseconds after a failed fetch in which no other is tried. */
export const RETRY_MS = 5_000;
/** Maximum number of key ids that are remembered as unknown to the issuer. */
const MAX_UNKNOWN = 1_000;

interface IssuerKeysOptions {
  readonly clock: Clock;
  readonly ageMs: number;
  readonly cooldownMs: number;
  /** Fetches the set. */
  load(): Promise<JSONWebKeySet>;
}

type KeySet = ReturnType<typeof createLocalJWKSet>;

export class IssuerKeys {
  readonly #options: IssuerKeysOptions;
  #keys: KeySet | undefined;
  #loadedAt = 0;
  #loading: Promise<KeySet> | undefined;
  #failure: { readonly error: unknown; readonly at: number } | undefined;
  /** The time of the last fetch because of an unknown key. */
  #searchedAt: number | undefined;
  /** Key ids that the issuer did not have at the last fetch. */
  readonly #unknown = new Set<string>();

  constructor(options: IssuerKeysOptions) {
    this.#options = options;
  }

  /**
   * Finds the keys that may have signed a token.
   *
   * @returns an empty list if the issuer has none
   * @throws {IssuerUnavailable} if the keys cannot be fetched, or may be newer than the fetched ones
   */
  async find(header: CompactJWSHeaderParameters, token: FlattenedJWSInput): Promise<readonly CryptoKey[]> {
    const { clock, ageMs, cooldownMs } = this.#options;
    const current = this.#keys && clock.now() - this.#loadedAt < ageMs ? this.#keys : await this.#load();
    const found = await candidates(current, header, token);
    if (found.length > 0) return found;
    const { kid = '' } = header;
    if (this.#unknown.has(kid)) return [];
    const now = clock.now();
    // Anybody can invent key ids: one of them must not make a good token wait, and ten thousand must not flood the issuer.
    const waitMs = this.#searchedAt === undefined ? 0 : this.#searchedAt + cooldownMs - now;
    if (waitMs > 0 && !this.#loading)
      throw new IssuerUnavailable('the key of the token is unknown, and the keys were fetched just now', waitMs);
    this.#searchedAt = now;
    const again = await candidates(await this.#load(), header, token);
    if (again.length === 0 && this.#unknown.size < MAX_UNKNOWN) this.#unknown.add(kid);
    return again;
  }

  #load(): Promise<KeySet> {
    const { clock, load } = this.#options;
    const failed = this.#failure;
    if (failed && clock.now() - failed.at < RETRY_MS)
      return Promise.reject(
        new IssuerUnavailable(messageOf(failed.error), failed.at + RETRY_MS - clock.now(), { cause: failed.error }),
      );
    this.#loading ??= load()
      .then((set) => {
        this.#keys = createLocalJWKSet(set);
        this.#loadedAt = clock.now();
        this.#failure = undefined;
        this.#unknown.clear();
        return this.#keys;
      })
      .catch((error: unknown) => {
        this.#failure = { error, at: clock.now() };
        throw new IssuerUnavailable(messageOf(error), RETRY_MS, { cause: error });
      })
      .finally(() => {
        this.#loading = undefined;
      });
    return this.#loading;
  }
}

/** The keys of a set that fit a header. A token without a key id may fit several. */
async function candidates(
  keys: KeySet,
  header: CompactJWSHeaderParameters,
  token: FlattenedJWSInput,
): Promise<readonly CryptoKey[]> {
  try {
    return [await keys(header, token)];
  } catch (error) {
    if (error instanceof errors.JWKSNoMatchingKey) return [];
    // Anybody can name the key: a failure of each request would fill the log.
    if (!(error instanceof errors.JWKSMultipleMatchingKeys))
      throw new IssuerUnavailable('a key of the issuer cannot be read', RETRY_MS, {
        cause: new Error(`a key of the issuer cannot be read: ${messageOf(error)}`, { cause: error }),
      });
    const all: CryptoKey[] = [];
    for await (const key of error) all.push(key);
    return all;
  }
}

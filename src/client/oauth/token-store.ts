/** The port to stored grants, and the store in memory. */

/** A registration or a grant, as text: the store need not understand it. */
export interface TokenStore {
  /** Reads an entry. */
  get(key: string): Promise<string | undefined>;
  /**
   * Replaces an entry if it is still the expected one (undefined: absent). `value` undefined deletes it.
   *
   * @returns false if another process has replaced it
   */
  replace(key: string, expected: string | undefined, value: string | undefined): Promise<boolean>;
  /**
   * Runs `work` while no other process does so for the same key: one process refreshes a token.
   *
   * @throws whatever `work` throws; an Error if the lease is not free within its time
   */
  exclusive<T>(key: string, work: () => Promise<T>): Promise<T>;
}

/** Does the works of one key one after the other. */
export class Turns {
  readonly #last = new Map<string, Promise<unknown>>();

  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key) ?? Promise.resolve();
    const mine = before.catch(() => {}).then(work);
    this.#last.set(key, mine);
    try {
      return await mine;
    } finally {
      if (this.#last.get(key) === mine) this.#last.delete(key);
    }
  }
}

/** Keeps grants as long as the process lives. */
export function memoryTokens(): TokenStore {
  const entries = new Map<string, string>();
  const turns = new Turns();
  return {
    get: (key) => Promise.resolve(entries.get(key)),
    replace(key, expected, value) {
      if (entries.get(key) !== expected) return Promise.resolve(false);
      if (value === undefined) entries.delete(key);
      else entries.set(key, value);
      return Promise.resolve(true);
    },
    exclusive: (key, work) => turns.run(key, work),
  };
}

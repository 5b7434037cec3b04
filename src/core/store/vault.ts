/** The vault: secrets of people, such as API keys, each sealed under the name of its person and its purpose. */
import { sha256 } from '../kernel/sha256.ts';
import type { StateKeys } from './state-keys.ts';
import type { Store } from './store.ts';

/** Secrets by principal and purpose. */
export interface Vault {
  /** @returns undefined for a secret that is not stored, or that no key of the server opens */
  get(principal: string, purpose: string): Promise<string | undefined>;
  /** Resolves when the secret is durable, if the store is. @throws {StoreError} */
  set(principal: string, purpose: string, secret: string): Promise<void>;
  /** @throws {StoreError} */
  delete(principal: string, purpose: string): Promise<void>;
}

const ACTOR = 'server/vault/';
const SCOPE = 'vault';
/** A secret has no end. Of too many replies, a store deletes those that expire first. */
const EXPIRES = Number.MAX_SAFE_INTEGER;

/**
 * Seals secrets with the keys of the server, and stores them in its store. A copied row opens under no other name. A person who
 * has the store and the keys has the secrets: without the option `keys`, a durable store contains both.
 */
export class SealedVault implements Vault {
  readonly #store: () => Promise<Store>;
  readonly #keys: StateKeys;

  /** @param store opens the store of the server, after which its keys are known */
  constructor(store: () => Promise<Store>, keys: StateKeys) {
    this.#store = store;
    this.#keys = keys;
  }

  async get(principal: string, purpose: string): Promise<string | undefined> {
    const store = await this.#store();
    const data = await store.reply(...placeOf(principal, purpose));
    const opened = data ? this.#keys.ring.open(data, [SCOPE, principal, purpose]) : undefined;
    return opened?.ok && typeof opened.payload === 'string' ? opened.payload : undefined;
  }

  async set(principal: string, purpose: string, secret: string): Promise<void> {
    const store = await this.#store();
    await this.#write(store, principal, purpose, this.#keys.ring.seal(secret, [SCOPE, principal, purpose]));
  }

  async delete(principal: string, purpose: string): Promise<void> {
    await this.#write(await this.#store(), principal, purpose, '');
  }

  #write(store: Store, principal: string, purpose: string, data: string): Promise<void> {
    const [actor, request] = placeOf(principal, purpose);
    return store.commit([{ type: 'reply', actor, request, data, expires: EXPIRES }]);
  }
}

/** Neither the principal nor the purpose is readable in the store. */
function placeOf(principal: string, purpose: string): readonly [actor: string, request: string] {
  return [`${ACTOR}${sha256(principal)}`, sha256(purpose)];
}

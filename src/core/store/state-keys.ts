/** The keys of a server that seal what clients keep for it. Random ones are made when they are first used. */
import { isObject } from '../protocol/json.ts';
import { KeyRing } from './seal.ts';
import { fromText, toText } from './serialize.ts';
import { type Store, StoreError } from './store.ts';

/** The reply that is the generated secret of a server without configured keys in a durable store. */
const SECRET_ACTOR = 'server/secret';
const SECRET = 'secret';

/** The keys that seal the request states of a server: configured, stored, or random. */
export class StateKeys {
  #ring: KeyRing | undefined;

  /** @param secrets the configured secrets; see {@link KeyRing} */
  constructor(secrets: readonly string[] | undefined) {
    this.#ring = secrets && new KeyRing(secrets);
  }

  /** The keys of this server. Random ones if none are configured or stored. */
  get ring(): KeyRing {
    this.#ring ??= KeyRing.random();
    return this.#ring;
  }

  /**
   * Loads the stored secret of a server without configured keys from its durable store, and creates it if needed.
   *
   * @throws {StoreError}
   */
  async load(store: Store): Promise<void> {
    if (!this.#ring && store.durable) this.#ring = await loadKeyRing(store);
  }
}

async function loadKeyRing(store: Store): Promise<KeyRing> {
  // A store that cannot write still serves reads.
  const stored = await store.reply(SECRET_ACTOR, SECRET);
  if (stored !== undefined) return ringOf(stored);
  const data = toText({ secret: KeyRing.randomSecret() });
  const expires = Number.MAX_SAFE_INTEGER;
  // Of several processes that start at once, one stores its secret.
  const earlier = await store.claim({ type: 'reply', actor: SECRET_ACTOR, request: SECRET, data, expires });
  return ringOf(earlier ?? data);
}

function ringOf(text: string): KeyRing {
  return new KeyRing([secretIn(fromText(text, SECRET_ACTOR))]);
}

function secretIn(value: unknown): string {
  if (isObject(value) && typeof value.secret === 'string') return value.secret;
  throw new StoreError(
    'corrupt',
    `${SECRET_ACTOR}: expected the secret of this server, got something else. Restore a backup`,
  );
}

/** The generated secret of a server without configured keys. A durable store holds it, so that sealed states survive the process. */

import type { Clock } from '../clock.ts';
import { isObject } from '../protocol/json.ts';
import { fromText, toText } from '../store/serialize.ts';
import { type Store, StoreError } from '../store/store.ts';
import { KeyRing } from './seal.ts';

const ACTOR = 'server/secret';

/**
 * Loads the keys that seal request states from the secret in the store, and creates it if needed.
 *
 * @throws {StoreError}
 */
export async function loadKeyRing(store: Store, clock: Clock): Promise<KeyRing> {
  const stored = await store.load(ACTOR);
  if (stored?.snapshot) return new KeyRing([secretIn(fromText(stored.snapshot.data, ACTOR))]);
  const secret = KeyRing.randomSecret();
  const row = { kind: 'server', name: 'secret', principal: '', status: 'live' } as const;
  await store.commit([
    { type: 'actor', actor: { ...row, id: ACTOR, created: clock.date(), expires: undefined } },
    { type: 'snapshot', actor: ACTOR, version: '1', data: toText({ secret }) },
  ]);
  return new KeyRing([secret]);
}

function secretIn(value: unknown): string {
  if (isObject(value) && typeof value.secret === 'string') return value.secret;
  throw new StoreError('corrupt', `${ACTOR}: expected the secret of this server, got something else. Restore a backup`);
}

/** The secret of a server that was given none: with a durable store it is made once, so that what was sealed survives the process. */

import type { Clock } from '../clock.ts';
import { isObject } from '../protocol/json.ts';
import { fromText, toText } from '../store/serialize.ts';
import { type Store, StoreError } from '../store/store.ts';
import { KeyRing } from './seal.ts';

const ACTOR = 'server/secret';

/** The keys that seal what clients carry, of the secret in the store. @throws {StoreError} */
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
  throw new StoreError('corrupt', `${ACTOR}: expected the secret of this server, got something else: restore a copy`);
}

/** The vault: secrets are sealed under their person and purpose, outlive the process, and open under no other name. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { systemClock } from '../../../src/core/kernel/clock.ts';
import { memoryStore } from '../../../src/core/store/memory-store.ts';
import { StateKeys } from '../../../src/core/store/state-keys.ts';
import type { Store } from '../../../src/core/store/store.ts';
import { SealedVault } from '../../../src/core/store/vault.ts';
import { sqlite } from '../../../src/index.ts';
import { SECRET } from '../../features/asking/support.ts';
import { suite } from '../../harness/door.ts';

const test = suite('the vault');
const HOST = { clock: systemClock, log() {} };

async function opened(store: Store): Promise<Store> {
  await store.open(HOST);
  return store;
}

test('a secret belongs to a person and a purpose, can be replaced and deleted', async () => {
  const store = await opened(memoryStore());
  const vault = new SealedVault(() => Promise.resolve(store), new StateKeys([SECRET]));
  await vault.set('ada', 'shop', 'one');
  await vault.set('ada', 'shop', 'two');
  assert.is(await vault.get('ada', 'shop'), 'two');
  assert.is(await vault.get('bob', 'shop'), undefined);
  assert.is(await vault.get('ada', 'bank'), undefined);
  await vault.delete('ada', 'shop');
  assert.is(await vault.get('ada', 'shop'), undefined);
  await store.close();
});

test('S-113: a secret outlives the process, opens with its key only, and is readable in no file', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'vault-'));
  const open = (): Promise<Store> => opened(sqlite(join(folder, 'store.db')));
  const first = await open();
  await new SealedVault(() => Promise.resolve(first), new StateKeys([SECRET])).set(
    'ada@example.com',
    'shop key',
    'hunter22',
  );
  await first.sweep(systemClock.date());
  await first.close();
  const second = await open();
  const of = (...keys: readonly string[]) => new SealedVault(() => Promise.resolve(second), new StateKeys(keys));
  const newer = `new ${SECRET}`;
  assert.is(await of(SECRET).get('ada@example.com', 'shop key'), 'hunter22');
  assert.is(await of(newer, SECRET).get('ada@example.com', 'shop key'), 'hunter22');
  assert.is(await of(newer).get('ada@example.com', 'shop key'), undefined);
  await second.close();
  for (const file of readdirSync(folder)) {
    const bytes = readFileSync(join(folder, file)).toString('latin1');
    for (const text of ['hunter22', 'ada@example.com', 'shop key']) assert.not.ok(bytes.includes(text), file);
  }
  rmSync(folder, { recursive: true, force: true });
});

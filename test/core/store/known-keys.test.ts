/** The fingerprints of a store's keys: equal keys only are found. */
import * as assert from 'uvu/assert';
import { type KeyKind, KnownKeys } from '../../../src/core/store/known-keys.ts';
import { suite } from '../../harness/door.ts';

const test = suite('known keys');

const KINDS: readonly KeyKind[] = ['actor', 'reply', 'replies', 'timer', 'timers', 'stream', 'streams'];
const names = Array.from({ length: 256 }, (_, byte) => Uint8Array.of(byte, 0x30));

test('R-42: a key of one kind is found under this kind and its own name only, whatever its first byte is', () => {
  for (const kind of KINDS)
    for (const first of [0x61, 0x68, 0x73]) {
      const keys = new KnownKeys();
      keys.add(kind, Uint8Array.of(first, 0x30));
      const found = KINDS.flatMap((other) =>
        names.flatMap((name) => (keys.has(other, name) ? [`${other} ${name[0]}`] : [])),
      );
      assert.equal(found, [`${kind} ${first}`]);
    }
});

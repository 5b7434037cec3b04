/** The cursors of subscriptions: whom they belong to, also once they were opened. */
import * as assert from 'uvu/assert';
import { KeyRing } from '../../../src/core/store/seal.ts';
import { EventCursors } from '../../../src/features/events/event-cursor.ts';
import { suite } from '../../harness/door.ts';

const test = suite('cursors of events');
const POSITION = { epoch: 'e', seq: 7 };
const ARGS = { order: 'o1' };

test('S-151: a cursor opens for its principal, type and arguments only, also when it was just opened for them', () => {
  const ring = KeyRing.random();
  const own = (): EventCursors => new EventCursors(ring, 'ada', 'paid', ARGS);
  const text = own().seal(POSITION);
  for (let turn = 0; turn < 2; turn += 1) {
    assert.equal(own().open(text), POSITION);
    assert.is(new EventCursors(ring, 'eve', 'paid', ARGS).open(text), undefined);
    assert.is(new EventCursors(ring, 'ada', 'sent', ARGS).open(text), undefined);
    assert.is(new EventCursors(ring, 'ada', 'paid', { order: 'o2' }).open(text), undefined);
    assert.is(new EventCursors(KeyRing.random(), 'ada', 'paid', ARGS).open(text), undefined);
    assert.is(own().open(`${text}A`), undefined);
  }
});

test('a cursor that comes again is returned as it is, and one of a key that is about to leave is sealed again', () => {
  const [old, next] = [KeyRing.randomSecret(), KeyRing.randomSecret()];
  const text = new EventCursors(new KeyRing([old]), 'ada', 'paid', ARGS).seal(POSITION);
  const ring = new KeyRing([next, old]);
  const resealed = (cursor: string): string => {
    const cursors = new EventCursors(ring, 'ada', 'paid', ARGS);
    assert.equal(cursors.open(cursor), POSITION);
    return cursors.seal(POSITION);
  };
  const fresh = resealed(text);
  assert.is.not(fresh, text);
  assert.is.not(resealed(text), text);
  assert.is(resealed(fresh), fresh);
  assert.is(resealed(fresh), fresh);
});

test('the order of the arguments does not matter', () => {
  const ring = KeyRing.random();
  const text = new EventCursors(ring, 'ada', 'paid', { a: 1, b: 2 }).seal(POSITION);
  assert.equal(new EventCursors(ring, 'ada', 'paid', { b: 2, a: 1 }).open(text), POSITION);
  assert.equal(new EventCursors(ring, 'ada', 'paid', { a: 1, b: 2 }).open(text), POSITION);
});

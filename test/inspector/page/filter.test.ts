/** The filter box: words and pairs, and what fits them. */
import * as assert from 'uvu/assert';
import { fits, parseFilter } from '../../../inspector/src/store/filter.ts';
import { suite } from '../../harness/door.ts';

const test = suite('the filter');

const row = {
  types: ['tools/call', 'request'],
  status: 'isError',
  actors: ['session c1', 'claude'],
  words: ['order_add'],
};

test('nothing lets everything through', () => {
  assert.ok(fits(parseFilter('  '), row));
  assert.ok(fits(parseFilter(''), {}));
});

test('words are looked for everywhere, and all must be there', () => {
  assert.ok(fits(parseFilter('claude order'), row));
  assert.ok(fits(parseFilter('CLAUDE'), row));
  assert.not.ok(fits(parseFilter('claude cursor'), row));
});

test('pairs of one name are alternatives; different names must all fit', () => {
  assert.ok(fits(parseFilter('type:tools/list type:tools/call'), row));
  assert.not.ok(fits(parseFilter('type:tools/call actor:cursor'), row));
  assert.ok(fits(parseFilter('type:tools/call actor:claude status:error'), row));
});

test('status:error finds both kinds of failure, and status:ok neither', () => {
  assert.ok(fits(parseFilter('status:error'), { status: 'error' }));
  assert.ok(fits(parseFilter('status:isError'), row));
  assert.not.ok(fits(parseFilter('status:ok'), row));
  assert.not.ok(fits(parseFilter('status:error'), { status: 'ok' }));
});

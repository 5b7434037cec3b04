/** Random ids: their characters, and their beginnings. */
import * as assert from 'uvu/assert';
import { randomId } from '../../../src/core/kernel/random-id.ts';
import { suite } from '../../harness/door.ts';

const test = suite('random ids');

test('an id has its length, differs from the others, and no command takes it for an option', () => {
  const ids = Array.from({ length: 5_000 }, (_, at) => randomId(20 + (at % 5)));
  assert.is(new Set(ids).size, ids.length);
  for (const [at, id] of ids.entries()) assert.match(id, new RegExp(`^[A-Za-z0-9_][A-Za-z0-9_-]{${19 + (at % 5)}}$`));
});

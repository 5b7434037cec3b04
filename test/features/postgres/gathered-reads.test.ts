/** Reads that gather: as many queries as there are readers, and a damaged row that rejects its own read only. */
import * as assert from 'uvu/assert';
import { StoreError } from '../../../src/core/store/store.ts';
import { GatheredReads } from '../../../src/features/postgres/gathered-reads.ts';
import { settled } from '../../../src/testing/simulated-clock.ts';
import { suite } from '../../harness/door.ts';

const test = suite('reads that gather');

test('a read while no other is on its way begins at once; those of the same turn share a query, and wait while every reader works', async () => {
  const queries: (readonly string[])[] = [];
  const answers: (() => void)[] = [];
  const query = (ids: readonly string[]): Promise<ReadonlyMap<string, string>> => {
    queries.push(ids);
    const rows = new Map(ids.filter((id) => id !== 'none').map((id) => [id, `row of ${id}`]));
    return new Promise((resolve) => void answers.push(() => resolve(rows)));
  };
  const reads = new GatheredReads(2, query, (row: string) => row);
  const load = (ids: readonly string[]) => Promise.all(ids.map((id) => reads.load(id)));
  const first = load(['a', 'b', 'c']);
  assert.equal(queries, [['a']]);
  await settled();
  assert.equal(queries, [['a'], ['b', 'c']]);
  const second = load(['d', 'none', 'd']);
  await settled();
  assert.is(queries.length, 2);
  answers[1]?.();
  await settled();
  assert.equal(queries, [['a'], ['b', 'c'], ['d', 'none', 'd']]);
  for (const answer of answers) answer();
  assert.equal(await first, ['row of a', 'row of b', 'row of c']);
  assert.equal(await second, ['row of d', undefined, 'row of d']);
});

test('a query that a damaged row fails is repeated for each read; one that finds the database away is not', async () => {
  let fault: 'failed' | 'busy' = 'failed';
  let queries = 0;
  const query = (ids: readonly string[]): Promise<ReadonlyMap<string, string>> => {
    queries += 1;
    return ids.includes('damaged')
      ? Promise.reject(new StoreError(fault, 'a row of its query'))
      : Promise.resolve(new Map(ids.map((id) => [id, id])));
  };
  const readRow = (row: string): string => {
    if (row === 'foreign') throw new StoreError('corrupt', 'an unknown kind');
    return row;
  };
  const reads = new GatheredReads(1, query, readRow);
  const outcomes = async (ids: readonly string[]): Promise<readonly unknown[]> => {
    const ended = await Promise.allSettled(ids.map((id) => reads.load(id)));
    return ended.map((one) => (one.status === 'fulfilled' ? one.value : one.reason.message));
  };
  const ids = ['alone', 'a', 'damaged', 'foreign', 'b'];
  assert.equal(await outcomes(ids), ['alone', 'a', 'a row of its query', 'an unknown kind', 'b']);
  assert.is(queries, 6);
  [fault, queries] = ['busy', 0];
  assert.equal(await outcomes(ids), ['alone', ...Array.from({ length: 4 }, () => 'a row of its query')]);
  assert.is(queries, 2);
});

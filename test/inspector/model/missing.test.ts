/** What is not shown is told in words that say no more than is known. */
import * as assert from 'uvu/assert';
import type { GapFrame } from '../../../src/inspector/frames.ts';
import { missing } from '../../../src/inspector/model/index.ts';
import { suite } from '../../harness/door.ts';

const test = suite('inspector: what is missing, in words');

const gap = (why: GapFrame['why'], records: number, exchanges: number): GapFrame => ({
  ...{ type: 'gap', from: 1, to: 9, at: 0 },
  ...{ why, records, exchanges },
});

test('a flood reports the missing exchanges exactly, and the missing records as a lower bound', () => {
  assert.is(missing([gap('flood', 19_948, 19_948)]), '19,948 exchanges');
  assert.is(missing([gap('flood', 3, 1)]), '1 exchange');
  assert.is(missing([gap('flood', 12, 0)]), 'at least 12 records');
  assert.is(missing([gap('flood', 12, 3), gap('flood', 5, 0)]), '3 exchanges');
});

test('elsewhere records are counted, and the exchanges that they are of', () => {
  assert.is(missing([gap('lagging', 90, 10), gap('lagging', 9, 1)]), '99 records of 11 exchanges');
  assert.is(missing([gap('forgotten', 1, 0)]), '1 record');
});

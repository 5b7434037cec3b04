/** Ids that carry their cell, and texts that carry none. */
import { createHash } from 'node:crypto';
import * as assert from 'uvu/assert';
import { randomId } from '../../../src/core/kernel/random-id.ts';
import {
  CELLS,
  cellIn,
  cellOfActor,
  nameOfCell,
  ofCells,
  sessionActor,
  withCell,
} from '../../../src/core/protocol/cell.ts';
import { suite } from '../../harness/door.ts';

const test = suite('cells in ids');

const hash = createHash('sha256').update('a session').digest('base64url');

test('every cell is read from the ids and the actors that carry it', () => {
  const names = new Set<string>();
  for (let cell = 0; cell < CELLS; cell += 1) {
    const id = withCell(cell, randomId(22));
    names.add(nameOfCell(cell));
    assert.is(cellIn(id), cell);
    for (const actor of [`handle/order/${id}`, `handle/a/b/${id}`, `task/${id}`, `question/${id}`])
      assert.is(cellOfActor(actor), cell, actor);
    assert.is(cellOfActor(sessionActor(cell, hash)), cell);
  }
  assert.is(names.size, CELLS);
});

test('a text that no server creates as an id has no cell', () => {
  for (const length of [0, 1, 12, 21, 22, 23, 25, 43]) assert.is(cellIn('A'.repeat(length)), undefined, `${length}`);
  // Two characters have 12 bits, and cells have 10.
  assert.is(cellIn(`PA${'x'.repeat(22)}`), 960);
  for (const start of ['QA', '_-', 'é!', '  ', 'A/', 'A.', 'Aé'])
    assert.is(cellIn(start + 'x'.repeat(22)), undefined, start);
});

test('actors that belong to no node have no cell', () => {
  const id = withCell(7, randomId(22));
  const none = [
    'server/secret',
    `server/${id}`,
    `audit/${id}`,
    'audit/000000001-V1StGXR8_Z5jdHi6B-myT',
    `poison/AH.${hash}`,
    `task/${randomId(22)}`,
    `question/${randomId()}`,
    `handle/order/${randomId(22)}`,
    sessionActor(undefined, hash),
    `session/lasting/${hash}`,
    `key/${hash}`,
    `session/AH-${hash}`,
    `session/zz.${hash}`,
    id,
  ];
  for (const actor of none) assert.is(cellOfActor(actor), undefined, actor);
});

test('an id whose cell could not be read is not created', () => {
  for (const cell of [-1, 1.5, CELLS, Number.NaN]) assert.throws(() => withCell(cell, randomId(22)), /from 0 to 1023/);
  assert.throws(() => withCell(1, randomId(21)), /expected 22 characters, got 21/);
});

test('a query for some cells finds their actors, a query without cells finds all', () => {
  const [one, other] = [`task/${withCell(1, randomId(22))}`, `task/${withCell(2, randomId(22))}`];
  const old = `task/${randomId(22)}`;
  const found = (cells: readonly number[] | undefined): string[] => [one, other, old].filter(ofCells(cells));
  assert.equal(found(undefined), [one, other, old]);
  assert.equal(found([1, 5]), [one]);
  assert.equal(found([]), []);
});

/** docs/reliability.md holds: each id of its table is in the tests that it names, and has a build that is broken on purpose, whose break is still there to be made. */
import { existsSync } from 'node:fs';
import * as assert from 'uvu/assert';
import { messageOf } from '../../../src/core/protocol/json.ts';
import { BROKEN_BUILDS } from '../../faults/broken-builds.ts';
import { Declarations } from '../../faults/declarations.ts';
import { suite } from '../../harness/door.ts';
import { SCALE } from '../../harness/scale.ts';
import { broken, promisesOf, read, root, withoutQuickTest } from './promises.ts';

const test = suite('the table of reliability');

const PROMISED = [
  'R-01 R-02 R-03 R-04 R-08 R-09 R-10 R-11 R-12 R-13 R-14 R-15 R-16 R-17 R-18 R-19 R-20 R-21 R-22',
  'R-24 R-25 R-26 R-27 R-28 R-29 R-30 R-32 R-33 R-34 R-35 R-36 R-37 R-38 R-39 R-40 R-41 R-42 R-43 R-44 R-45 R-46',
  'R-47 R-48 R-49 R-50 R-51 R-52 R-53 R-54 R-55 R-56 R-57 R-58 R-59 R-60',
  'R-64 R-65 R-66 R-81 R-82 R-83 R-84 R-85 R-90 R-91 R-92 R-93 R-96 R-98 R-120',
  'S-01 S-02 S-04 S-12 R-130 R-170 R-171 R-172',
  'R-94 R-95',
  'D-01 D-02 D-03 D-04 D-05 D-06 D-07 D-08 D-09 D-10 D-11 D-12 D-13 D-14 D-15 D-16 D-17 D-18 D-19 D-20 D-21 D-22',
  'U-01 U-02 U-03 U-04 U-05 U-06 U-07 U-08 U-09 U-10 U-11 U-12 U-13 U-14 U-15 U-16 U-17 U-18 U-19 U-20 U-21 U-22 U-23 U-24',
].flatMap((line) => line.split(' '));

const rows = promisesOf('docs/reliability.md');

test('every id that was promised has one row', () => {
  assert.equal(rows.flatMap(({ ids }) => ids).sort(), [...PROMISED].sort());
});

test('each id is in a test that its row names, and each of these tests has one of its ids', () => {
  assert.equal(broken(rows), []);
});

/** Each takes nodes and a database as processes, for many leases. D-22 pauses and cuts nodes in a simulated cluster. */
const FULL_ONLY = ['D-02', 'D-04', 'D-14'];

test('each id has a test in a quick run, but for those of paused nodes', () => {
  assert.equal(withoutQuickTest(rows), FULL_ONLY);
});

test('each id has a broken build, and each broken build has its place in one declaration and its id in a test', () => {
  const without = PROMISED.filter((id) => !BROKEN_BUILDS.some((build) => build.id === id));
  assert.equal(without, []);
  const declarations = new Declarations(root);
  const wrong: string[] = [];
  for (const build of BROKEN_BUILDS) {
    const { id, test: file } = build;
    try {
      // Quick: most places are found without a parser. The full run parses each file, and what replaces a part of it.
      if (SCALE !== 'quick' || !declarations.shows(build)) declarations.broken(build);
    } catch (error) {
      wrong.push(messageOf(error));
    }
    if (!existsSync(file) || !read(file).includes(id)) wrong.push(`${file} has no ${id}`);
  }
  assert.equal(wrong, []);
});

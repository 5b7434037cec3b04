/** Who can be inspected: told in files that only their user may read. */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  rmdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { registeredInspectors, registerInspector } from '../../src/cli/serving/inspector-registry.ts';
import { Tree } from '../features/discovery/tree.ts';
import { suite } from '../harness/door.ts';

const test = suite('inspectors, announced');
const { path } = new Tree();
process.env.XDG_RUNTIME_DIR = path;
const directory = join(path, 'troupe', 'inspectors');

const mine = { pid: process.pid, url: 'http://127.0.0.1:1/#secret', server: 'notes 1.0.0', target: '/notes.ts' };

test('an announced inspector is found until it is withdrawn, in a file that only its user can read', () => {
  const takeBack = registerInspector(mine);
  assert.equal(registeredInspectors(), [mine]);
  if (process.platform !== 'win32') {
    assert.is(statSync(join(directory, `${process.pid}.json`)).mode & 0o777, 0o600);
    assert.is(statSync(directory).mode & 0o777, 0o700);
  }
  registerInspector({ ...mine, url: 'http://127.0.0.1:2/#secret' });
  assert.equal(
    registeredInspectors().map(({ url }) => url),
    ['http://127.0.0.1:2/#secret'],
  );
  takeBack();
  assert.equal(registeredInspectors(), []);
});

test('announcements of dead processes and other files are removed', () => {
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, '4194305.json'), JSON.stringify({ ...mine, pid: 4_194_305 }));
  writeFileSync(join(directory, '12.json'), '{');
  writeFileSync(join(directory, 'notes.txt'), 'not ours');
  mkdirSync(join(directory, '13.json'));
  assert.equal(registeredInspectors(), []);
  assert.equal(readdirSync(directory), ['13.json', 'notes.txt']);
  rmdirSync(join(directory, '13.json'));
});

if (process.platform === 'win32') test.skip('a directory of others', 'the modes of this test are those of POSIX');
else
  test('nothing is announced in a directory to which others can write', () => {
    const open = join(path, 'open');
    mkdirSync(join(open, 'troupe'), { recursive: true });
    process.env.XDG_RUNTIME_DIR = open;
    chmodSync(join(open, 'troupe'), 0o777);
    assert.throws(() => registerInspector(mine), /other users may write to the directory/);
    assert.not.ok(existsSync(join(open, 'troupe', 'inspectors')));
    process.env.XDG_RUNTIME_DIR = path;
  });

test('a symbolic link instead of the directory is rejected', () => {
  const linked = join(path, 'linked');
  mkdirSync(join(path, 'elsewhere'), { mode: 0o700 });
  mkdirSync(linked);
  symlinkSync(join(path, 'elsewhere'), join(linked, 'troupe'), 'junction');
  process.env.XDG_RUNTIME_DIR = linked;
  assert.throws(() => registerInspector(mine), /expected a directory, got a symbolic link/);
  assert.equal(readdirSync(join(path, 'elsewhere')), []);
  process.env.XDG_RUNTIME_DIR = path;
});

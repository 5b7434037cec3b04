/** Directories that are created with their parents, and the file systems that refuse. */
import { existsSync, mkdtempSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { makeDirectory } from '../../../src/core/kernel/files/make-directory.ts';
import { suite } from '../../harness/door.ts';

const test = suite('directories');

test('creates missing parents with the given mode, and leaves existing directories unchanged', () => {
  const root = mkdtempSync(join(tmpdir(), 'troupe-directories-'));
  const { mode } = statSync(root);
  makeDirectory(join(root, 'a/b/c'), 0o700);
  makeDirectory(join(root, 'a/b/c'), 0o700);
  assert.ok(statSync(join(root, 'a/b/c')).isDirectory());
  if (process.platform !== 'win32')
    for (const name of ['a', 'a/b']) assert.is(statSync(join(root, name)).mode & 0o777, 0o700);
  assert.is(statSync(root).mode, mode);
});

test('rejects a path that is a file, below a file, or a link that leads nowhere', () => {
  const root = mkdtempSync(join(tmpdir(), 'troupe-directories-'));
  writeFileSync(join(root, 'file'), '');
  symlinkSync(join(root, 'nowhere'), join(root, 'link'));
  assert.throws(() => makeDirectory(join(root, 'file')), /cannot create .*file: EEXIST/);
  assert.throws(() => makeDirectory(join(root, 'file/below')), /ENOTDIR/);
  assert.throws(() => makeDirectory(join(root, 'link')), /cannot create .*link: EEXIST/);
  assert.not(existsSync(join(root, 'nowhere')));
});

test('rejects a directory that its file system refuses to create', () => {
  if (process.platform !== 'linux') return;
  for (const path of ['/proc/troupe', '/proc/troupe/data'])
    assert.throws(() => makeDirectory(path), /\/proc\/troupe: ENOENT/);
});

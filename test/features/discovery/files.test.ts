/** Which modules are found below a directory, and in which order. */
import { symlinkSync } from 'node:fs';
import { relative } from 'node:path';
import * as assert from 'uvu/assert';
import { findModules } from '../../../src/features/discovery/module-files.ts';
import { suite } from '../../harness/door.ts';
import { Tree } from './tree.ts';

const test = suite('finding modules');

async function found(tree: Tree, path = tree.path): Promise<string[]> {
  return (await findModules(path)).files.map((file) => relative(tree.path, file));
}

const names = (list: readonly string[]) => Object.fromEntries(list.map((name) => [name, '']));

test('modules are found in all depths, in the order of their bytes', async () => {
  const tree = new Tree(names(['b.mjs', 'a/z.ts', 'a.ts', 'a/b/c.js', 'é.ts', 'Z.mts', 'a-b.ts', '😀.ts', '～.ts']));
  assert.equal(await found(tree), ['Z.mts', 'a-b.ts', 'a.ts', 'a/b/c.js', 'a/z.ts', 'b.mjs', 'é.ts', '～.ts', '😀.ts']);
});

test('tests, declarations, packages, private and other files are passed over', async () => {
  const tree = new Tree(
    names([
      'tool.ts',
      'tool.test.ts',
      'tool.test.mjs',
      'types.d.ts',
      'types.d.mts',
      '_helper.ts',
      '_lib/x.ts',
      '.hidden.ts',
      '.git/x.js',
      'node_modules/pkg/index.js',
      'old.cjs',
      'data.json',
      'view.tsx',
      'README.md',
    ]),
  );
  assert.equal(await found(tree), ['tool.ts']);
});

test('a file that is named is taken, whatever its name begins with', async () => {
  const tree = new Tree(names(['_tool.ts', 'data.json']));
  assert.equal(await found(tree, tree.at('_tool.ts')), ['_tool.ts']);
  for (const [name, reason] of [
    ['data.json', /expected a directory or a .ts, .mts, .js, .mjs or .cjs file, got data.json/],
    ['gone.ts', /no such file or directory/],
  ] as const) {
    const error: unknown = await found(tree, tree.at(name)).catch((thrown: unknown) => thrown);
    assert.match(String(error), reason);
  }
});

if (process.platform === 'win32')
  test.skip('links are followed, but never in a circle', 'links need rights on Windows');
else
  test('links are followed, but never in a circle', async () => {
    const tree = new Tree(names(['tools/a.ts', 'other/b.ts']));
    symlinkSync(tree.at('other'), tree.at('tools/linked'));
    symlinkSync(tree.at('tools'), tree.at('other/back'));
    symlinkSync(tree.at('nowhere'), tree.at('tools/dead.ts'));
    assert.equal(await found(tree, tree.at('tools')), ['tools/a.ts', 'tools/linked/b.ts']);
  });

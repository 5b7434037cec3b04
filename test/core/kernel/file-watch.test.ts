/** The file watcher: reports relevant changes once per burst, and polls if the system cannot watch. */
import { EventEmitter } from 'node:events';
import type { FSWatcher } from 'node:fs';
import { renameSync, utimesSync } from 'node:fs';
import * as assert from 'uvu/assert';
import { Watch } from '../../../src/core/kernel/files/file-watch.ts';
import { Tree } from '../../features/discovery/tree.ts';
import { suite } from '../../harness/door.ts';
import { HandClock } from '../transports/support.ts';

const test = suite('watch');

/** A watcher under the control of the test. */
class HandWatcher extends EventEmitter implements FSWatcher {
  closed = false;
  readonly listener: (event: string, name: string | null) => void;

  constructor(listener: (event: string, name: string | null) => void) {
    super();
    this.listener = listener;
  }

  close(): void {
    this.closed = true;
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }
}

function stage(open?: (directory: string) => void) {
  const clock = new HandClock();
  const watchers = new Map<string, HandWatcher>();
  const changes: string[][] = [];
  const said: string[] = [];
  const watch = new Watch({
    matters: (path) => path.endsWith('.ts'),
    onChange: (paths) => void changes.push([...paths].sort()),
    say: (line) => void said.push(line),
    clock,
    watch(directory, listener) {
      open?.(directory);
      const watcher = new HandWatcher(listener);
      watchers.set(directory, watcher);
      return watcher;
    },
  });
  return { clock, watchers, changes, said, watch };
}

test('changes are reported together after 50 ms of silence', () => {
  const { clock, watchers, changes, watch } = stage();
  watch.file('/p/a.ts');
  watch.file('/p/b.ts');
  watch.directory('/p/deep');
  assert.equal([...watchers.keys()], ['/p', '/p/deep']);
  watchers.get('/p')?.listener('change', 'a.ts');
  clock.pass(40);
  watchers.get('/p/deep')?.listener('rename', 'c.ts');
  clock.pass(40);
  watchers.get('/p')?.listener('change', 'a.ts');
  clock.pass(49);
  assert.equal(changes, []);
  clock.pass(1);
  assert.equal(changes, [['/p/a.ts', '/p/deep/c.ts']]);
});

test('irrelevant changes are not reported', () => {
  const { clock, watchers, changes, watch } = stage();
  watch.directory('/p');
  watchers.get('/p')?.listener('change', 'data.db');
  clock.pass(1_000);
  assert.equal(changes, []);
});

test('a removed directory can be watched again', () => {
  const { watchers, watch } = stage();
  watch.directory('/p');
  const first = watchers.get('/p');
  first?.emit('error', new Error('gone'));
  assert.is(first?.closed, true);
  watch.directory('/p');
  assert.is.not(watchers.get('/p'), first);
});

test('a directory that was removed and created again is watched again', () => {
  const tree = new Tree({ 'deep/a.ts': '' });
  const { clock, watchers, changes, watch } = stage();
  const deep = tree.at('deep');
  watch.directory(deep);
  const first = watchers.get(deep);
  watch.directory(deep);
  assert.is(watchers.get(deep), first);
  // Created before the other is removed: otherwise the new one may get the number of the old one.
  tree.write('new/a.ts', '');
  renameSync(deep, tree.at('old'));
  renameSync(tree.at('new'), deep);
  watch.directory(deep);
  assert.is(first?.closed, true);
  watchers.get(deep)?.listener('change', 'a.ts');
  clock.pass(50);
  assert.equal(changes, [[tree.at('deep/a.ts')]]);
});

test('polls every 500 ms if the system cannot watch, and reports that once', () => {
  const tree = new Tree({ 'a.ts': '', 'b.ts': '', 'deep/c.ts': '' });
  const { clock, changes, said, watch } = stage(() => {
    throw new Error('ENOSPC: too many watchers');
  });
  watch.directory(tree.path);
  watch.directory(tree.at('deep'));
  assert.is(said.length, 1);
  assert.match(said[0] ?? '', /cannot watch .*ENOSPC.*: polling every 500 ms/);
  clock.pass(600);
  assert.equal(changes, []);
  utimesSync(tree.at('a.ts'), 1, 1);
  tree.remove('b.ts');
  tree.write('deep/new.ts', '');
  clock.pass(600);
  assert.equal(changes, [[tree.at('a.ts'), tree.at('b.ts'), tree.at('deep/new.ts')].sort()]);
  clock.pass(1_000);
  assert.is(changes.length, 1);
  watch.close();
  assert.is(clock.timers, 0);
});

test('a closed watch reports nothing and holds nothing', () => {
  const { clock, watchers, changes, watch } = stage();
  watch.directory('/p');
  watchers.get('/p')?.listener('change', 'a.ts');
  watch.close();
  clock.pass(1_000);
  watch.directory('/other');
  assert.equal(changes, []);
  assert.is(watchers.get('/p')?.closed, true);
  assert.is(watchers.has('/other'), false);
  assert.is(clock.timers, 0);
});

/** What a process notes beside its store, and what the next one learns from it of its end. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { CrashMarker, markEnded } from '../../../src/core/store/crash-marker.ts';
import { moduleUrl } from '../../harness/compiled.ts';
import { suite } from '../../harness/door.ts';

const test = suite('notes');
const folder = mkdtempSync(join(tmpdir(), 'troupe-notes-'));
test.after(() => rmSync(folder, { recursive: true, force: true }));

const NOTES = moduleUrl('src/core/store/crash-marker.ts');

/** What the next process reads. */
function next(path: string): CrashMarker {
  const notes = new CrashMarker(path);
  notes.open();
  return notes;
}

/** A process that notes something, and then does this. */
function died(path: string, does: string): { readonly pid: number } {
  const code = `import { CrashMarker, markEnded } from '${NOTES}';
const notes = new CrashMarker(${JSON.stringify(path)});
notes.open();
notes.write('["a long note, which is over"]');
notes.write('["one"]');
${does}`;
  const { pid, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', code], {
    encoding: 'utf8',
  });
  assert.is(stderr, '');
  return { pid };
}

test('R-39: a process that ends itself in the middle of something says so, and one that is killed cannot', () => {
  for (const [does, ended] of [
    ['process.exit(3);', true],
    [`markEnded(${JSON.stringify(join(folder, 'ended'))}); process.kill(process.pid, 'SIGKILL');`, true],
    [`process.kill(process.pid, 'SIGKILL');`, false],
  ] as const) {
    const path = join(folder, 'ended');
    const { pid } = died(path, does);
    const { last, by } = next(path);
    assert.equal({ last, by }, { last: '["one"]', by: { pid, ended } });
    rmSync(path);
  }
});

test('a process that is in the middle of nothing leaves nothing, however it ends', () => {
  const path = join(folder, 'nothing');
  died(path, 'notes.clear(); process.exit(3);');
  const { last, by } = next(path);
  assert.equal({ last, by }, { last: undefined, by: undefined });
  const notes = next(path);
  notes.write('["one"]');
  notes.close();
  assert.not(existsSync(path));
});

test('a note of an earlier version is read: the end of its process is unknown', () => {
  const path = join(folder, 'earlier');
  writeFileSync(path, '["one"]\nthe end of a longer one\n');
  const { last, by } = next(path);
  assert.equal({ last, by }, { last: '["one"]', by: undefined });
});

test('notes of another process are not marked, nor is a missing file created', () => {
  const path = join(folder, 'other');
  writeFileSync(path, '["one"]\t1\n');
  markEnded(path);
  assert.is(readFileSync(path, 'utf8'), '["one"]\t1\n');
  markEnded(join(folder, 'none'));
  assert.not(existsSync(join(folder, 'none')));
});

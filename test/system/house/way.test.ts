/** The way of a call: the files and functions that one warm `tools/call` over HTTP runs, as the profiler counts them. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import * as assert from 'uvu/assert';
import { compiled } from '../../harness/compiled.ts';
import { suite } from '../../harness/door.ts';

const test = suite('the way of a call');

/** The most files and functions of either era. Lower these numbers when the way becomes shorter; never raise them. */
const MOST = { files: 40, functions: 130 };

/** Folders of features. A server that uses none runs none of their files. */
const FEATURES = ['src/features/', 'src/gateway/'];

/** The names of the functions that ran, by file; those without a name are left out. */
type Way = Readonly<Record<string, readonly string[]>>;

function listed(way: Way): string {
  const lines = Object.entries(way).map(([file, names]) => `  ${file} ${names.join(', ')}`.trimEnd());
  return `${lines.join('\n')}\n`;
}

test('one warm call over HTTP runs few files and functions in both eras, and none of a feature that is not in use', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [compiled('test/fixtures/http/way.ts')]);
  const ways: Readonly<Record<string, Way>> = JSON.parse(stdout);
  assert.equal(Object.keys(ways), ['session', 'modern']);
  for (const [era, way] of Object.entries(ways)) {
    const files = Object.keys(way);
    const functions = Object.values(way).flat().length;
    const length = `${era}: ${files.length} files, ${functions} functions`;
    process.stdout.write(`${length}\n${listed(way)}`);
    const within = files.length <= MOST.files && functions <= MOST.functions;
    assert.ok(within, `expected at most ${MOST.files} files and ${MOST.functions} functions, got ${length}`);
    const wrong = files.filter((file) => FEATURES.some((folder) => file.startsWith(folder)));
    assert.equal(wrong, [], `${era}: files of features that the server does not use`);
  }
});

/** The stack of an error for its author: their frames first, in their own files, and all others counted. */
import { fileURLToPath, pathToFileURL } from 'node:url';
import * as assert from 'uvu/assert';
import { authoredStack } from '../../../src/core/kernel/authored-stack.ts';
import { OWN } from '../../../src/core/kernel/package-files.ts';
import { Tree } from '../../features/discovery/tree.ts';
import { suite } from '../../harness/door.ts';

const test = suite('authored stack');

function errorWith(...lines: readonly string[]): Error {
  const error = new Error();
  error.stack = lines.join('\n');
  return error;
}

test('the frames of the author come first; those of Troupe, of packages and of Node are counted in one line', () => {
  const error = errorWith(
    'TypeError: no such city',
    '    at Array.map (<anonymous>)',
    '    at parse (file:///home/ada/node_modules/zod/v4/core/parse.js:10:5)',
    '    at look (file:///home/ada/my%20server/server.ts?troupe=3:12:7)',
    `    at run (${OWN}executors/tools.js:40:3)`,
    `    at Executor.receive (${OWN}executors/executor.js:41:3)`,
    '    at process.processTicksAndRejections (node:internal/process/task_queues:95:5)',
    '    at async handler (/home/ada/server.js:3:1)',
  );
  assert.is(
    authoredStack(error),
    [
      'TypeError: no such city',
      '    at look (/home/ada/my server/server.ts:12:7)',
      '    at async handler (/home/ada/server.js:3:1)',
      '    … 2 frames of troupe, 1 of zod, 2 of node',
    ].join('\n'),
  );
});

test('a stack without a frame of the author is one line, with the first frame of Troupe for a report', () => {
  const own = `at run (${fileURLToPath(OWN)}executors/tools.js:40:3)`;
  const error = errorWith(
    'Error: x',
    '    at node:internal/timers:1:2',
    `    ${own.replace(fileURLToPath(OWN), OWN)}`,
    `    at Executor.receive (${OWN}executors/executor.js:41:3)`,
  );
  assert.is(authoredStack(error), `Error: x\n    … 2 frames of troupe, 1 of node; the first of troupe: ${own}`);
});

test('a stack of packages alone stays whole', () => {
  const error = errorWith(
    'Error: x',
    '    at p (/home/ada/node_modules/zod/a.js:1:1)',
    '    at node:internal/timers:1:2',
  );
  assert.is(authoredStack(error), error.stack);
});

test('a line of the message that looks like a frame stays in the message', () => {
  const error = errorWith('Error: two', '    at noon', 'lines', '    at x (/home/ada/server.js:1:1)');
  assert.is(authoredStack(error), error.stack);
});

test('causes follow, a few of them also where they form a circle', () => {
  const inner = new Error('inner');
  const outer = new Error('outer', { cause: inner });
  assert.match(authoredStack(outer), /^Error: outer\n {4}at [\s\S]*\n {2}caused by: Error: inner\n {4}at /);
  inner.cause = outer;
  assert.is(authoredStack(outer).split('caused by').length, 5);
});

test('any thrown value has a text of bounded length', () => {
  const hostile = new Proxy(new Error('x'), {
    get() {
      throw new Error('no');
    },
    getPrototypeOf() {
      throw new Error('no');
    },
  });
  for (const thrown of ['text', undefined, null, Symbol('s'), { a: 1 }, hostile])
    assert.type(authoredStack(thrown), 'string');
  assert.ok(authoredStack(new Error('x'.repeat(1_000_000))).length < 20_000);
});

/** The source map of a file whose first line is line 7, column 3 of the source. */
const MAP = { version: 3, sources: ['server.ts'], sourceRoot: '../src', names: [], mappings: 'AAME' };

test('a frame of compiled code shows the source, by a map in a file or inline; another frame shows the code', () => {
  const tree = new Tree({
    'dist/beside.js': 'throw 1;\n//# sourceMappingURL=beside.js.map\n',
    'dist/beside.js.map': JSON.stringify(MAP),
    'dist/inline.js': `throw 1;\n//# sourceMappingURL=data:application/json;base64,${Buffer.from(JSON.stringify(MAP)).toString('base64')}\n`,
    'dist/broken.js': 'throw 1;\n//# sourceMappingURL=gone.js.map\n',
    'dist/bundled.js': `throw 1;\n//# sourceMappingURL=data:application/json;base64,${Buffer.from(JSON.stringify({ ...MAP, sources: ['../node_modules/pkg/index.ts'] })).toString('base64')}\n`,
  });
  const at = (file: string): string => `    at f (${pathToFileURL(tree.at(file)).href}:1:1)`;
  const error = errorWith(
    'Error: x',
    ...['beside', 'inline', 'broken', 'bundled'].map((name) => at(`dist/${name}.js`)),
  );
  const source = tree.at('src/server.ts');
  assert.is(
    authoredStack(error),
    [
      'Error: x',
      `    at f (${source}:7:3)`,
      `    at f (${source}:7:3)`,
      `    at f (${tree.at('dist/broken.js')}:1:1)`,
      '    … 1 frame of pkg',
    ].join('\n'),
  );
});

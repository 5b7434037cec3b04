/** Discovery: what loads is served, what does not is reported, and loading again replaces what the same files offered. */
import { dirname } from 'node:path';
import * as assert from 'uvu/assert';
import type { Server } from '../../../src/index.ts';
import { connect, type TestClient } from '../../../src/testing/testing.ts';
import { startable } from '../../harness/compiled.ts';
import { suite } from '../../harness/door.ts';
import { inSession, loggedServer } from '../../harness/memory.ts';
import { TROUPE, Tree, toolModule } from './tree.ts';

const test = suite('discovery');

interface Stage {
  readonly server: Server;
  readonly log: string[];
}

function stage(): Stage {
  const { server, logged: log } = loggedServer({ name: 'discovery', offers: ['tools', 'resources', 'prompts'] });
  return { server, log };
}

const toolNames = (server: Server) => server.tools.catalogue.all().map(({ key }) => key);

async function say(client: TestClient, name: string): Promise<string> {
  const [block] = (await client.call(name)).content;
  return block?.type === 'text' ? block.text : '';
}

test('modules of every kind are loaded in order, each as a source of its own', async () => {
  const tree = new Tree({
    'b.mjs': `export const second = () => 'b'; second.schema = { type: 'object' };`,
    'deep/c.ts': `import { definePrompt, defineResource } from '${TROUPE}';
      export default [definePrompt({ name: 'greet', handler: () => 'hello' }), defineResource({ uri: 'app://x', handler: () => 'x' })];`,
    'a.ts': toolModule('first'),
    'd.mts': `enum Word { Hi = 'hi' }\nexport const fourth = (): string => Word.Hi;\nfourth.schema = { type: 'object' };`,
    'e.js': `exports.fifth = Object.assign(() => 'e', { schema: { type: 'object' } });`,
  });
  const { server } = stage();
  const { loaded, failed } = await server.discover(['.'], { from: tree.path });
  assert.equal(failed, []);
  assert.equal(
    loaded,
    ['a.ts', 'b.mjs', 'd.mts', 'deep/c.ts', 'e.js'].map((name) => tree.at(name)),
  );
  assert.equal(
    server.tools.catalogue.all().map(({ key, source }) => [key, source]),
    [
      ['first', tree.at('a.ts')],
      ['second', tree.at('b.mjs')],
      ['fourth', tree.at('d.mts')],
      ['fifth', tree.at('e.js')],
    ],
  );
  assert.is(server.prompts.catalogue.all().length, 1);
  assert.is(server.resources.catalogue.all().length, 1);
});

test('paths are relative to a directory, or to the file or url that names them', async () => {
  const tree = new Tree({ 'tools/a.ts': toolModule('a'), 'server.ts': '' });
  for (const from of [
    tree.path,
    tree.at('server.ts'),
    new URL(`file://${tree.at('server.ts')}`),
    `file://${tree.at('server.ts')}?v=1`,
  ]) {
    const { server } = stage();
    await server.discover(['./tools'], { from });
    assert.equal(toolNames(server), ['a']);
  }
});

test('a module that waits longer than loadMs is reported, and the next one loads', async () => {
  const tree = new Tree({ 'a-waits.mts': 'await new Promise(() => {});', 'b-text.mjs': `throw 'a text';` });
  const { server } = stage();
  // The second module may load too late on a busy machine, too: what matters is that its turn comes.
  const { loaded, failed } = await server.discover([tree.path], { from: tree.path, loadMs: 200 });
  assert.equal(loaded, []);
  assert.equal(
    failed.map(({ path }) => path),
    [tree.at('a-waits.mts'), tree.at('b-text.mjs')],
  );
  assert.is(failed[0]?.reason, 'the module did not load within 200 ms (loadMs): check its top-level await');
});

test('a module that fails is reported with its place and reason, and the rest serve', async () => {
  const tree = new Tree({
    'a-fine.ts': toolModule('fine'),
    'b-syntax.ts': 'export const x: = 1;',
    'c-syntax.mjs': 'export const = 1;',
    'd-throws.ts': `\n\nthrow new TypeError('no database');`,
    'e-throws.ts': `throw 'a text';`,
    'f-import.ts': `import './gone.ts';`,
    'g-nothing.ts': 'export const x = 1;',
    'h-name.ts': `export const x = () => 1; x.schema = { type: 'object' }; x.toolName = 'no good name';`,
    'i-schema.ts': `export const x = () => 1; x.schema = { type: 'string' };`,
    'j-taken.ts': toolModule('fine'),
    'k-class.ts': `export class Tool { constructor() { throw new Error('cannot be made'); } getName() {} execute() {} }`,
    'm-last.ts': toolModule('last'),
  });
  const { server, log } = stage();
  const { loaded, failed } = await server.discover([tree.path, 'nowhere'], { from: tree.path });
  assert.equal(loaded, [tree.at('a-fine.ts'), tree.at('m-last.ts')]);
  assert.equal(toolNames(server), ['fine', 'last']);
  const reasons = new Map(failed.map(({ path, reason }) => [path.slice(tree.path.length + 1), reason]));
  const expected = {
    'b-syntax.ts': /b-syntax\.ts:1:16: ERROR: Unexpected "="/,
    'c-syntax.mjs': /SyntaxError: .*\(in this module or in one that it imports\)/,
    'd-throws.ts': /TypeError: no database \(at line 3/,
    'e-throws.ts': /^it threw a text$/,
    'f-import.ts': /gone\.ts/,
    'g-nothing.ts': /exports no definition/,
    'h-name.ts': /tool "no good name": a name has/,
    'i-schema.ts': /tool "x": input: /,
    'j-taken.ts': /tool "fine" .* is already registered \(by .*a-fine\.ts\)/,
    'k-class.ts': /cannot be made \(at line 1/,
    nowhere: /no such file or directory/,
  };
  for (const [name, reason] of Object.entries(expected)) assert.match(reasons.get(name) ?? 'not reported', reason);
  assert.is(failed.length, Object.keys(expected).length);
  assert.is(log.length, failed.length);
  assert.ok(log.every((line) => line.startsWith('warning: ')));
});

test('a file is offered whole or not at all', async () => {
  const tree = new Tree({
    'a.ts': toolModule('taken'),
    'b.ts': `import { definePrompt } from '${TROUPE}';
      export const fresh = () => 1; fresh.schema = { type: 'object' };
      export const taken = () => 1; taken.schema = { type: 'object' };
      export default definePrompt({ name: 'p', handler: () => 'p' });`,
    'c.ts': `import { definePrompt } from '${TROUPE}';
      export const other = () => 1; other.schema = { type: 'object' };
      export default definePrompt({ name: 'no good', handler: () => 'p' });`,
  });
  const { server } = stage();
  const { failed } = await server.discover([tree.path]);
  assert.is(failed.length, 2);
  assert.equal(toolNames(server), ['taken']);
  assert.equal(server.prompts.catalogue.all(), []);
});

test('loading again takes what the files say now, also what they import; clients hear of what they can see', async () => {
  const tree = new Tree({
    'lib/word.ts': `export const word: string = 'one';`,
    'tools/say.ts': `import { word } from '../lib/word.ts';\nexport const say = () => word;\nsay.schema = { type: 'object' };`,
    'tools/gone.ts': toolModule('gone'),
    'tools/plain.mjs': `export const plain = () => 'one';\nplain.schema = { type: 'object' };`,
    'tools/common.js': `const { word } = require('../lib/common.js');\nexports.common = Object.assign(() => word, { schema: { type: 'object' } });`,
    'lib/common.js': `exports.word = 'one';`,
  });
  const { server } = stage();
  const client = await inSession(server);
  await server.discover([tree.at('tools')]);
  assert.equal(await Promise.all(['say', 'plain', 'common'].map((name) => say(client, name))), ['one', 'one', 'one']);
  await client.notification('notifications/tools/list_changed');

  tree.write('lib/word.ts', `export const word: string = 'two';`);
  tree.write('lib/common.js', `exports.word = 'two';`);
  tree.write('tools/plain.mjs', `export const plain = () => 'two';\nplain.schema = { type: 'object' };`);
  const version = server.tools.catalogue.version;
  const again = await server.discover([tree.at('tools')]);
  assert.is(again.loaded.length, 4);
  assert.equal(await Promise.all(['say', 'plain', 'common'].map((name) => say(client, name))), ['two', 'two', 'two']);
  assert.is(server.tools.catalogue.version, version, 'nothing looks different');

  tree.remove('tools/gone.ts');
  tree.write('tools/new.ts', toolModule('fresh'));
  await server.discover([tree.at('tools')]);
  assert.equal(toolNames(server), ['common', 'plain', 'say', 'fresh']);
  await client.notification('notifications/tools/list_changed');
  assert.is(client.notifications.length, 2);
});

test('a file that fails when it is loaded again continues to offer its earlier elements, and logs the failure', async () => {
  const tree = new Tree({ 'a.ts': toolModule('a', 'old'), 'b.ts': toolModule('b', 'old') });
  const { server } = stage();
  const client = await inSession(server);
  await server.discover([tree.path]);
  tree.write('a.ts', 'export const a: = 1;');
  tree.write('b.ts', toolModule('b', 'new'));
  const { loaded, failed } = await server.discover([tree.path]);
  assert.equal(loaded, [tree.at('b.ts')]);
  assert.match(failed[0]?.reason ?? '', /; its previous version is still registered$/);
  assert.is(await say(client, 'a'), 'old');
  assert.is(await say(client, 'b'), 'new');
  tree.write('a.ts', toolModule('a', 'mended'));
  assert.equal((await server.discover([tree.path])).failed, []);
  assert.is(await say(client, 'a'), 'mended');
});

test('names may move from file to file between two loads', async () => {
  const tree = new Tree({ 'a.ts': toolModule('one'), 'b.ts': toolModule('two') });
  const { server } = stage();
  await server.discover([tree.path]);
  tree.write('a.ts', toolModule('two'));
  tree.write('b.ts', toolModule('one'));
  assert.equal((await server.discover([tree.path])).failed, []);
  assert.equal(
    server.tools.catalogue.all().map(({ key, source }) => [key, source]),
    [
      ['two', tree.at('a.ts')],
      ['one', tree.at('b.ts')],
    ],
  );
});

test('elements registered by code stay, and discovery does not take their names', async () => {
  const tree = new Tree({ 'a.ts': toolModule('a'), 'mine.ts': toolModule('mine') });
  const { server } = stage();
  server.tool('mine', {}, () => 'by hand');
  const { failed } = await server.discover([tree.path]);
  assert.match(failed[0]?.reason ?? '', /tool "mine" .*\(by code\)/);
  tree.remove('a.ts');
  await server.discover([tree.path]);
  assert.equal(toolNames(server), ['mine']);
});

test('calls that overlap take turns, and other paths keep what they offer', async () => {
  const tree = new Tree({ 'one/a.ts': toolModule('a'), 'two/b.ts': toolModule('b') });
  const { server } = stage();
  await Promise.all([
    server.discover([tree.at('one')]),
    server.discover([tree.at('two')]),
    server.discover([tree.path]),
  ]);
  assert.equal(toolNames(server), ['a', 'b']);
  tree.remove('one/a.ts');
  await server.discover([tree.at('two')]);
  assert.equal(toolNames(server), ['a', 'b']);
  await server.discover([tree.at('one')]);
  assert.equal(toolNames(server), ['b']);
});

test('modules that are loaded together share what they import; the first time, with the program too', async () => {
  const tree = new Tree({
    'package.json': '{ "type": "module" }',
    'lib/notes.ts': `export const notes: string[] = [];`,
    'tools/add.ts': `import { notes } from '../lib/notes.ts';\nexport const add = () => { notes.push('x'); return 'added'; };\nadd.schema = { type: 'object' };`,
    'tools/count.ts': `import { notes } from '../lib/notes.ts';\nexport const count = () => String(notes.length);\ncount.schema = { type: 'object' };`,
  });
  const { server } = stage();
  const client = await inSession(server);
  await server.discover([tree.at('tools')]);
  const { notes }: { notes: string[] } = await import(`file://${tree.at('lib/notes.ts')}`);
  notes.push('from the program');
  await say(client, 'add');
  assert.is(await say(client, 'count'), '2');
  tree.write(
    'tools/count.ts',
    `import { notes } from '../lib/notes.ts';\nexport const count = () => \`\${notes.length} notes\`;\ncount.schema = { type: 'object' };`,
  );
  await server.discover([tree.at('tools')]);
  await say(client, 'add');
  assert.is(await say(client, 'count'), '1 notes');
});

test('a discovered tool with cpu is found in its module again, and its envelope keeps its shape', async () => {
  const { server } = stage();
  // The compiled tool: the other tests load TypeScript.
  const { failed } = await server.discover([dirname(startable('test/fixtures/supervision/tools/count.ts'))]);
  assert.equal(failed, []);
  const client = await connect(server);
  const { structuredContent } = await client.call('count', { upTo: 10 });
  assert.equal(Object(structuredContent).data, { sum: 55, here: false });
  await server.close();
});

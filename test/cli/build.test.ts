/** Views with an entry: `troupe build` bundles them, a server serves what it made, `troupe dev` bundles them as they change. */
import { existsSync, readFileSync } from 'node:fs';
import * as assert from 'uvu/assert';
import { Tree } from '../features/discovery/tree.ts';
import { moduleUrl } from '../harness/compiled.ts';
import { suite } from '../harness/door.ts';
import type { Agent } from './agent.ts';
import { Running, troupe } from './in-process.ts';

const test = suite('troupe build');

const OURS = moduleUrl('src/index.ts');
const program = (troupe: string): string => `import { createServer } from '${troupe}';
const server = createServer({ name: 'team', version: '1.0.0', log() {} });
server.tool('show', { app: 'board' }, () => 'three cards');
server.app('board', { entry: new URL('./ui/board.ts', import.meta.url) });
export default server;`;

const tree = new Tree({
  'package.json': '{ "type": "module" }',
  'server.mjs': program(OURS),
  // This process loads a file once.
  'missing.mjs': program(OURS),
  'bundled.mjs': program(OURS),
  'built.mjs': program(OURS),
  'none.mjs': `import { createServer } from '${OURS}';
export default createServer({ name: 'none', version: '1.0.0' });`,
  'ui/board.ts': `import './board.css';
import { draw } from './draw.ts';
draw(document.getElementById('root'));`,
  'ui/board.css': 'body { color: teal }',
  'ui/draw.ts': 'export const draw = (element: HTMLElement | null): void => void element?.append("</script> one");',
});

const command = (...args: readonly string[]) => troupe(args, { cwd: tree.path });

/** The page that the tool `show` opens. */
async function pageOf(cli: Agent): Promise<{ readonly uri: string; readonly text: string }> {
  const { tools } = await cli.request('tools/list');
  const [tool] = Array.isArray(tools) ? tools.map((each) => Object(each)) : [];
  const uri = String(Object(Object(tool._meta).ui).resourceUri);
  const { contents } = await cli.request('resources/read', { uri });
  return { uri, text: String(Object(Array.isArray(contents) ? contents[0] : {}).text) };
}

test('serve names the command that makes a missing page, and does not serve', async () => {
  const { code, err } = await command('serve', 'missing.mjs', '--http', '0');
  assert.is(code, 1);
  assert.match(err, /app "board": entry: .*ui\/board\.view\.html is missing\. Make it with: troupe build FILE/);
});

test('build bundles a script with all that it imports into one file, which is served with a policy', async () => {
  const { code, out, err } = await command('build', 'bundled.mjs');
  assert.equal({ code, err }, { code: 0, err: '' });
  assert.match(out, /^ui\/board\.view\.html \(\d+ bytes, \d+ gzipped\)\n$/);
  const file = readFileSync(tree.at('ui/board.view.html'), 'utf8');
  assert.match(file, /^<!doctype html>[\s\S]*<div id="root"><\/div>/);
  assert.match(file, 'color:teal');
  assert.not.match(file, /<script[^>]*src=|<link/);
  // A text that looks like the end of the script does not end it.
  assert.is(file.split('</script>').length, 2);
  const server = new Running(['serve', 'built.mjs', '--socket', tree.at('s.sock')], { cwd: tree.path });
  await server.said('connect clients with');
  const cli = new Running(['attach', tree.at('s.sock')]);
  await cli.initialize();
  const { uri, text } = await pageOf(cli);
  assert.match(uri, /^ui:\/\/team\/board\.[0-9a-f]{8}\.html$/);
  assert.match(text, /Content-Security-Policy" content="default-src 'none'; script-src 'sha256-/);
  await cli.end();
  server.signal('SIGTERM');
  await server.exit;
});

test('build reports a script that it cannot bundle, and a program without views', async () => {
  const none = await command('build', 'none.mjs');
  assert.equal([none.code, none.out], [0, `${tree.at('none.mjs')} has no view with an entry\n`]);
  const broken = new Tree({
    'package.json': '{ "type": "module" }',
    'server.mjs': `import { createServer } from '${OURS}';
const server = createServer({ name: 'team', version: '1.0.0', log() {} });
server.app('board', { entry: new URL('./nothing.ts', import.meta.url) });
export default server;`,
  });
  const { code, err } = await troupe(['build', 'server.mjs'], { cwd: broken.path });
  assert.is(code, 1);
  assert.match(err, /troupe build: nothing\.ts: /);
  assert.not.ok(existsSync(broken.at('nothing.view.html')));
});

test('dev bundles a view when a file of it changes, and its clients list the tools again', async () => {
  const LISTS = 'notifications/tools/list_changed';
  // The messages of both are on the stderr of the later one.
  const cli = new Running(['attach', tree.at('dev.sock')]);
  const dev = new Running(['dev', 'server.mjs', '--socket', tree.at('dev.sock'), '--no-inspect'], { cwd: tree.path });
  await dev.said('loaded in');
  await cli.initialize();
  const told = (times: number): Promise<void> =>
    cli.until(() => cli.notifications.filter((method) => method === LISTS).length >= times, `${times} changed lists`);
  let seen = cli.notifications.filter((method) => method === LISTS).length;
  let page = await pageOf(cli);
  // The first page says that it is being bundled.
  while (!page.text.includes(' one')) {
    await told(seen + 1);
    seen = cli.notifications.filter((method) => method === LISTS).length;
    page = await pageOf(cli);
  }
  const loads = dev.err.split('loaded in').length;
  tree.write('ui/draw.ts', 'export const draw = (element: HTMLElement | null): void => void element?.append("two");');
  await told(seen + 1);
  const next = await pageOf(cli);
  assert.match(next.text, 'two');
  assert.is.not(next.uri, page.uri);
  assert.is(dev.err.split('loaded in').length, loads, 'a view is bundled without a load of the program');
  await cli.end();
  dev.signal('SIGTERM');
  await dev.exit;
});

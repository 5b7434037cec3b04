/** `--log json`: every line on stderr is one object, whoever writes it. Two processes share the stderr of `troupe run`. */
import * as assert from 'uvu/assert';
import { isObject } from '../../src/core/protocol/json.ts';
import { Tree } from '../features/discovery/tree.ts';
import { moduleUrl } from '../harness/compiled.ts';
import { suite } from '../harness/door.ts';
import { Cli, TROUPE } from './cli.ts';
import { Running, troupe } from './in-process.ts';

const test = suite('--log');

const program = (troupe: string): string => `import { createServer } from '${troupe}';
const server = createServer({ name: 'a program', version: '2.0.0' });
server.tool('fail', () => { throw new Error('the bank is closed'); });
server.tool('die', () => process.exit(3));
export default server;
`;

const tree = new Tree({
  'package.json': '{ "type": "module" }',
  'server.mjs': program(TROUPE),
  'ours.mjs': program(moduleUrl('src/index.ts')),
});

/** The lines of stderr: level, event and message. */
function lines({
  err,
}: {
  readonly err: string;
}): readonly { level: unknown; event: unknown; msg: string; incident: unknown }[] {
  return err
    .trimEnd()
    .split('\n')
    .map((line) => {
      const value: unknown = JSON.parse(line);
      assert.ok(isObject(value) && typeof value.msg === 'string' && typeof value.time === 'number', line);
      return { level: value.level, event: value.event, msg: value.msg, incident: value.incident };
    });
}

test('troupe serve --log json: its own lines, and those of the server', async () => {
  const cli = new Running(['serve', 'ours.mjs', '--http', '0', '--log', 'json'], { cwd: tree.path });
  await cli.said('Claude Desktop');
  cli.signal('SIGTERM');
  assert.is(await cli.exit, 0);
  const said = lines(cli);
  assert.match(said[0]?.msg ?? '', /^troupe serve: a program 2\.0\.0 at http:/);
  assert.ok(said.every(({ level, event }) => level === 30 && event === 'command'));
  assert.is(said.at(-1)?.msg, 'troupe serve: shutting down: SIGTERM');
});

test.full('troupe run --log json: the worker writes as its supervisor does', async () => {
  const cli = new Cli(['run', 'server.mjs', '--log', 'json'], { cwd: tree.path });
  await cli.initialize();
  await cli.request('tools/call', { name: 'fail', arguments: {} });
  await cli.request('tools/call', { name: 'die', arguments: {} }).catch(() => {});
  await cli.request('ping');
  cli.process.stdin?.end();
  assert.is(await cli.exit, 0);
  const said = lines(cli);
  const incident = said.find(({ event }) => event === 'incident');
  assert.is(incident?.level, 50);
  assert.is(incident?.msg, `incident ${String(incident?.incident)} in tool "fail": Error: the bank is closed`);
  assert.ok(said.some(({ msg, event }) => event === 'command' && /^troupe run: .*: restarting/.test(msg)));
});

test('a start that fails is a line of JSON', async () => {
  const ran = await troupe(['dev', 'missing.mjs', '--log', 'json', '--no-inspect'], { cwd: tree.path });
  assert.is(ran.code, 2);
  assert.equal(
    lines(ran).map(({ level }) => level),
    [50],
  );
});

test.full('troupe dev --log json', async () => {
  const dev = new Cli(['dev', 'server.mjs', '--log', 'json', '--no-inspect'], { cwd: tree.path });
  await dev.initialize();
  dev.process.stdin?.end();
  assert.is(await dev.exit, 0);
  assert.match(lines(dev)[0]?.msg ?? '', /^troupe dev: loaded/);
});

test('another format is a mistake', async () => {
  const { code, err } = await troupe(['serve', 'server.mjs', '--http', '0', '--log', 'xml'], { cwd: tree.path });
  assert.is(code, 2);
  assert.match(err, 'troupe serve: --log: expected text or json, got xml');
});

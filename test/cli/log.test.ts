/** `--log json`: every line on stderr is one object, whoever writes it. */
import * as assert from 'uvu/assert';
import { isObject } from '../../src/protocol/json.ts';
import { Tree } from '../discovery/tree.ts';
import { suite } from '../harness/door.ts';
import { Cli, TROUPE } from './cli.ts';

const test = suite('--log');

const PROGRAM = `import { createServer } from '${TROUPE}';
const server = createServer({ name: 'a program', version: '2.0.0' });
server.tool('fail', () => { throw new Error('the bank is closed'); });
server.tool('die', () => process.exit(3));
export default server;
`;

const tree = new Tree({ 'package.json': '{ "type": "module" }', 'server.mjs': PROGRAM });

/** The lines of stderr: level, event and message. */
function lines({ err }: Cli): readonly { level: unknown; event: unknown; msg: string; incident: unknown }[] {
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
  const cli = new Cli(['serve', 'server.mjs', '--http', '0', '--log', 'json'], { cwd: tree.path });
  await cli.said('Claude Desktop');
  cli.process.kill('SIGTERM');
  assert.is(await cli.exit, 0);
  const said = lines(cli);
  assert.match(said[0]?.msg ?? '', /^troupe serve: a program 2\.0\.0 at http:/);
  assert.ok(said.every(({ level, event }) => level === 30 && event === 'command'));
  assert.is(said.at(-1)?.msg, 'troupe serve: shutting down: SIGTERM');
});

test('troupe run --log json: the worker writes as its supervisor does', async () => {
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

test('troupe dev --log json, and a start that fails', async () => {
  const cli = new Cli(['dev', 'missing.mjs', '--log', 'json', '--no-inspect'], { cwd: tree.path });
  assert.is(await cli.exit, 2);
  assert.equal(
    lines(cli).map(({ level }) => level),
    [50],
  );
  const dev = new Cli(['dev', 'server.mjs', '--log', 'json', '--no-inspect'], { cwd: tree.path });
  await dev.initialize();
  dev.process.stdin?.end();
  assert.is(await dev.exit, 0);
  assert.match(lines(dev)[0]?.msg ?? '', /^troupe dev: loaded/);
});

test('another format is a mistake', async () => {
  const cli = new Cli(['serve', 'server.mjs', '--http', '0', '--log', 'xml'], { cwd: tree.path });
  assert.is(await cli.exit, 2);
  assert.match(cli.err, 'troupe serve: --log: expected text or json, got xml');
});

/** The keys of `troupe dev` on a terminal. A process behind the terminal of script(1) shows that they are read, and the terminal restored. */
import { spawn, spawnSync } from 'node:child_process';
import { PassThrough } from 'node:stream';
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import { DevKeys, inForeground, rawInput } from '../../src/cli/reload/dev-keys.ts';
import { Tree } from '../features/discovery/tree.ts';
import { suite } from '../harness/door.ts';
import { until } from '../harness/wait.ts';
import { isBuilt, TROUPE } from './cli.ts';

const test = suite('the keys of troupe dev');

/** A terminal of a test, and what its keys have done. */
function terminal(): {
  readonly keys: DevKeys;
  readonly did: string[];
  readonly modes: boolean[];
  type(text: string): void;
} {
  const modes: boolean[] = [];
  const did: string[] = [];
  const stream = new PassThrough();
  const input = Object.assign(stream, { isTTY: true, setRawMode: (on: boolean) => modes.push(on) });
  const keys = new DevKeys(input, {
    open: () => did.push('open'),
    restart: () => did.push('restart'),
    quit: () => did.push('quit'),
    suspend: () => did.push('suspend'),
    write: (text) => did.push(text),
  });
  return { keys, did, modes, type: (text) => stream.emit('data', text) };
}

const HELP = 'troupe dev: o opens the page, r restarts, q ends, h lists the keys\n';

for (const [typed, done, line = null] of [
  ['o', ['open']],
  ['r', ['restart']],
  ['q', ['quit']],
  ['h?', [HELP, HELP]],
  ['\x03\x04', ['quit', 'quit']],
  ['\x1a', ['suspend']],
  ['x Q1\r\n', []],
  ['\x1b[A', []],
  ['{"r":1}\r', [...'{"r":1}', '\n'], '{"r":1}\n'],
  ['{ab\x7f\b}\n', ['{', 'a', 'b', '\b \b', '\b \b', '}', '\n'], '{}\n'],
  ['{r\x03', ['{', 'r', 'quit']],
  ['{\x1b\u0007\r', ['{', '\n'], '{\n'],
] as const)
  test(`the keys ${JSON.stringify(typed)} do ${done.length === 0 ? 'nothing' : JSON.stringify(done)}`, () => {
    const { keys, did, type } = terminal();
    type(typed);
    assert.equal(did, [...done]);
    assert.is(keys.lines.read()?.toString() ?? null, line);
  });

test('single keys are read until the end, and again after the process was stopped', () => {
  const { keys, modes } = terminal();
  keys.end();
  keys.resume();
  keys.end();
  assert.equal(modes, [true, false, true, false]);
});

test('a pipe, a file and the stream of a test are no terminal with keys', () => {
  assert.is(rawInput(new PassThrough()), undefined);
  assert.is(rawInput(Object.assign(new PassThrough(), { isTTY: true })), undefined);
  assert.type(inForeground(), 'boolean');
});

const noTerminal =
  !isBuilt || process.platform !== 'linux' || spawnSync('script', ['--version']).error
    ? 'needs the build, and script(1) of Linux'
    : undefined;

/** Types into `troupe dev` on a terminal, at each text that it prints, and then asks the shell for the mode of the terminal. */
async function typedInto(steps: readonly (readonly [seen: string, keys: string])[]): Promise<string> {
  const main = fileURLToPath(new URL('../../dist/lib/cli/main.js', import.meta.url));
  const tree = new Tree({
    'server.mjs': `import { createServer } from '${TROUPE}';
const server = createServer({ name: 'keyed', version: '1.0.0' });
server.tool('die', {}, () => process.kill(process.pid, 'SIGKILL'));
export default server;`,
  });
  const command = `${process.execPath} ${main} dev server.mjs; echo "code $?"; stty -a | grep -o -- "-\\?icanon"`;
  const child = spawn('script', ['-qefc', command, '/dev/null'], {
    cwd: tree.path,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let out = '';
  let at = 0;
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text;
  });
  for (const [seen, keys] of steps) {
    await until(() => out.includes(seen, at), `${seen} in ${out}`);
    at = out.length;
    child.stdin.write(keys);
  }
  await until(() => /icanon/.test(out), `the mode in ${out}`);
  child.stdin.end();
  return out;
}

if (noTerminal) test.skip('the keys of a terminal', noTerminal);
else {
  test.full(
    'r starts the server again at the same page, q ends with code 0, and the terminal has its mode again',
    async () => {
      const out = await typedInto([
        ['h lists the keys', 'r'],
        ['h lists the keys', '{"jsonrpc":"2.0","id":1,"method":"ping","params":{}}\r'],
        ['"id":1,', 'q'],
      ]);
      assert.match(out, 'troupe dev: restarting');
      assert.is(out.split('inspector at').length, 2);
      assert.match(out, /code 0\r\nicanon/);
    },
  );

  test.full('a server that is killed leaves the terminal as it was', async () => {
    const meta = {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientCapabilities': {},
    };
    const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'die', arguments: {}, _meta: meta } };
    assert.match(await typedInto([['h lists the keys', `${JSON.stringify(call)}\r`]]), /code 137\r\nicanon/);
  });
}

/** The command line: its help texts and its usage errors. One process proves that `main.ts` passes on the arguments and the exit code. */

import { readFileSync } from 'node:fs';
import * as assert from 'uvu/assert';
import { Tree } from '../features/discovery/tree.ts';
import { suite } from '../harness/door.ts';
import { Cli } from './cli.ts';
import { troupe } from './in-process.ts';

const test = suite('troupe, the command');

const run = (...args: readonly string[]) => troupe(args, { cwd: tree.path });

const tree = new Tree({ 'a.ts': '', 'b.ts': '', 'data.json': '{}' });

test('--help and --version answer on stdout', async () => {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  assert.equal(await run('--version'), { code: 0, out: `${version}\n`, err: '' });
  for (const args of [['--help'], ['-h']]) {
    const { code, out, err } = await run(...args);
    assert.equal({ code, err }, { code: 0, err: '' });
    assert.match(out, 'troupe run [FILE|DIR]');
  }
  for (const command of [
    'run [FILE|DIR]',
    'dev [FILE|DIR] [--http [HOST:]PORT] [--socket PATH]',
    'serve [FILE|DIR] [--http [HOST:]PORT] [--socket PATH]',
    'attach PATH',
    'graph FILE|DIR [MACHINE]',
    'top [URL|PID]',
    'call TARGET [TOOL [KEY=VALUE…]]',
    'listen TARGET EVENT [KEY=VALUE…]',
    'types TARGET',
    'inspect TARGET',
    'audit FILE',
    'login URL',
    'logout URL',
  ]) {
    const { code, out, err } = await run(command.split(' ')[0] ?? '', '--help');
    assert.equal({ code, err }, { code: 0, err: '' });
    assert.match(out, `Usage: troupe ${command}`);
  }
});

test('the process passes on its arguments, and ends with the exit code', async () => {
  const cli = new Cli(['walk', 'home']);
  assert.is(await cli.exit, 2);
  assert.match(cli.err, /^troupe: expected a command \(run, dev.*\), got walk/);
});

for (const [title, args, expected] of [
  ['no command', [], /troupe: expected a command \(run, dev.*\), got none/],
  ['an unknown command', ['walk'], /troupe: expected a command \(run, dev.*\), got walk/],
  ['a mistyped command', ['serv', 'a.ts'], ', got serv (did you mean serve?)'],
  [
    'a mistyped option',
    ['dev', '--inspct', 'a.ts'],
    "Unknown option '--inspct' (did you mean --inspect?). Valid options",
  ],
  ['no target', ['run'], 'troupe run: expected FILE or DIR, got none'],
  ['a target that is not there', ['dev', 'gone.ts'], 'troupe dev: expected FILE or DIR, got gone.ts: no such file'],
  ['two targets', ['run', 'a.ts', 'b.ts'], 'troupe run: expected one FILE or DIR, got 2: a.ts b.ts'],
  [
    'a file that is no module',
    ['run', 'data.json'],
    'expected a .ts, .mts, .js, .mjs or .cjs file or a directory, got data.json',
  ],
  ['nowhere to serve', ['serve', 'a.ts'], 'troupe serve: expected --http PORT, --socket PATH, or both'],
  [
    'an option of serve that it has not',
    ['serve', 'a.ts', '--sockets', 'x'],
    "troupe serve: Unknown option '--sockets' (did you mean --socket?). Valid options: --http [HOST:]PORT, --path PATH, --allow-host NAMES, --allow-origin ORIGINS, --socket PATH, --metrics [HOST:]PORT, --drain-delay MS, --max-connections N, --idle-exit MS, --nodes N, --data DIR, --store URL, --cluster HOST:PORT, --cluster-secret-file PATH, --no-env-file, --log FORMAT, --inspect, --inspect-control, --record FILE, --help",
  ],
  [
    'a number that is none',
    ['serve', 'a.ts', '--socket', 'x', '--idle-exit', 'soon'],
    'troupe serve: --idle-exit: expected a whole number from 1 to 2147483647, got soon',
  ],
  ['nothing to attach to', ['attach'], 'troupe attach: expected the PATH of a socket, or --spawn FILE'],
  ['two sockets to attach to', ['attach', 'x', 'y'], 'troupe attach: expected one PATH, got 2: x y'],
  [
    'a server to start that is not there',
    ['attach', '--spawn', 'gone.ts'],
    'troupe attach --spawn: expected FILE or DIR',
  ],
  [
    'an option for a server that is not to be started',
    ['attach', 'x', '--idle-exit', '5'],
    '--idle-exit, --inspect and ARGS need --spawn FILE: they apply to the server that it starts',
  ],
  [
    'an unknown option',
    ['run', '--fast', 'a.ts'],
    "troupe run: Unknown option '--fast'. Valid options: --data DIR, --store URL, --cluster HOST:PORT, --cluster-secret-file PATH, --no-supervisor, --metrics [HOST:]PORT, --principal NAME, --scopes LIST, --no-env-file, --log FORMAT, --inspect, --inspect-control, --record FILE, --help",
  ],
  [
    'a file to keep data in',
    ['run', 'a.ts', '--data', 'b.ts', '--no-supervisor'],
    'troupe run: --data: expected a directory that exists or can be created, got b.ts: cannot create',
  ],
] as const) {
  test(`${title} is rejected with the expected and the actual value, and exit code 2`, async () => {
    const { code, out, err } = await run(...args);
    assert.equal({ code, out }, { code: 2, out: '' });
    assert.match(err, expected);
    assert.match(err, /\(see troupe( \w+)? --help\)$/m);
  });
}

const PASSWORD = 's3cret-of-the-database';

for (const [title, options, env, expected] of [
  [
    'a variable that is not set',
    ['--store', '$' + '{NO_SUCH}'],
    {},
    /--store: expected the variable NO_SUCH in the env/,
  ],
  ['another database', ['--store', `mysql://a:${PASSWORD}@b/c`], {}, /--store: expected the URL of a database/],
  ['a variable that is no URL', [], { TROUPE_STORE: PASSWORD }, /TROUPE_STORE: expected the URL of a database/],
  [
    'a directory and a database',
    ['--data', 'd', '--store', 'postgres://b/c'],
    {},
    /expected --data or --store, got both/,
  ],
] as const)
  test(`--store: ${title} is rejected with code 2, and no password is printed`, async () => {
    for (const command of [
      ['serve', 'a.ts', '--http', '0'],
      ['run', 'a.ts', '--no-supervisor'],
      ['dev', 'a.ts', '--no-inspect'],
    ]) {
      const { code, out, err } = await troupe([...command, ...options], { cwd: tree.path, env });
      assert.equal({ code, out }, { code: 2, out: '' });
      assert.match(err, expected);
      assert.not.ok(err.includes(PASSWORD));
    }
  });

test('the name alone shows the commands, on stderr and with exit code 2', async () => {
  const { code, out, err } = await run();
  assert.equal({ code, out }, { code: 2, out: '' });
  assert.match(err, /^Usage: troupe <command>[\s\S]*troupe serve[\s\S]*got none \(see troupe --help\)\n$/);
});

/** The exit code of every command, for what a person can do wrong: 0 success, 1 a failure, 2 wrong arguments, 3 no connection, 4 not signed in. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { elicitWith } from 'troupe';
import * as assert from 'uvu/assert';
import { setup } from 'xstate';
import { z } from 'zod';
import { type Reachable, reachable } from '../client/fixture.ts';
import { protectedServer } from '../client/protected-server.ts';
import { suite } from '../harness/door.ts';
import { troupe } from './in-process.ts';

const test = suite('the exit codes of the commands');

const COMMANDS = [
  ...['run', 'dev', 'serve', 'attach', 'gateway', 'build', 'graph', 'top', 'call', 'types', 'inspect', 'open'],
  ...['approvals', 'audit', 'login', 'logout', 'init', 'install', 'uninstall'],
];

/** The port 9 of this machine, on which nothing listens. */
const NOWHERE = 'http://127.0.0.1:9/mcp';

/** A machine that asks as soon as it is created. */
const asking = (onError?: 'off') =>
  setup({
    types: { context: {} as Record<string, never>, events: {} as { type: 'stop' } },
    actors: { ask: elicitWith(z.object({ ok: z.boolean() })) },
  }).createMachine({
    context: {},
    initial: 'asking',
    states: {
      asking: {
        on: { stop: 'off' },
        invoke: { src: 'ask', input: { message: 'Sure?' }, onDone: 'off', ...(onError && { onError }) },
      },
      off: { type: 'final' },
    },
  });

let fixture: Reachable | undefined;
const root = mkdtempSync(join(tmpdir(), 'exit-codes-'));
const inRoot = (name: string): string => join(root, name);
test.before(async () => {
  fixture = await reachable((server) => {
    server.tool('fail', {}, () => {
      throw new Error('it broke');
    });
    server.machine('order', asking(), { events: { stop: true } });
    server.machine('offer', asking('off'), { events: { stop: true } });
  });
  writeFileSync(inRoot('other.json'), '{}');
  writeFileSync(inRoot('server.mjs'), 'export const nothing = 5;\n');
  writeFileSync(inRoot('broken.mjs'), 'throw new Error("it broke");\n');
  mkdirSync(inRoot('made'));
  writeFileSync(join(inRoot('made'), 'server.ts'), '');
  writeFileSync(inRoot('dies.mjs'), 'process.exit(3);\n');
});
test.after(async () => {
  await fixture?.close();
  rmSync(root, { recursive: true, force: true });
});

const URL_OF = 'URL';
const rows: readonly (readonly [what: string, args: readonly string[], code: number])[] = [
  ['no command', [], 2],
  ['an unknown command', ['start'], 2],
  ['--help', ['--help'], 0],
  ['--version', ['--version'], 0],
  ...COMMANDS.flatMap((command): (typeof rows)[number][] => [
    [`${command} --help`, [command, '--help'], 0],
    [`${command} with an unknown option`, [command, '--nonsense'], 2],
  ]),
  ...['run', 'dev', 'serve', 'build', 'graph', 'install', 'call', 'inspect', 'types', 'gateway', 'audit', 'open'].map(
    (command): (typeof rows)[number] => [`${command} of a file that does not exist`, [command, 'gone.mjs'], 2],
  ),
  ['serve without an address', ['serve', 'server.mjs'], 2],
  ['serve on a port that is none', ['serve', 'server.mjs', '--http', '99999'], 2],
  ['init in a folder with files', ['init', 'made'], 2],
  ['gateway with a file of another kind', ['gateway', 'other.json'], 1],
  ['open with a file of another kind', ['open', 'other.json', '--no-open'], 1],
  ['graph of a program without machines', ['graph', 'server.mjs'], 2],
  ['graph of a program that throws', ['graph', 'broken.mjs'], 1],
  ['audit of a directory without durable state', ['audit', '--data', 'gone'], 2],
  ['approvals approve of an unknown id', ['approvals', 'approve', 'none'], 1],
  ['top of a process without an inspector', ['top', '1'], 1],
  ['login at nothing', ['login', NOWHERE], 3],
  ['a list', ['call', URL_OF], 0],
  ['a call', ['call', URL_OF, 'add', 'a=1', 'b=2'], 0],
  ['a call whose tool fails', ['call', URL_OF, 'fail'], 1],
  ['the same as JSON', ['call', URL_OF, 'fail', '--json'], 1],
  ['a call that asks, without a person', ['call', URL_OF, 'ask'], 1],
  ['a call that makes its instance fail', ['call', URL_OF, 'order_create'], 1],
  ['the same as JSON, of a machine', ['call', URL_OF, 'order_create', '--json'], 1],
  ['a call whose machine continues without the answer', ['call', URL_OF, 'offer_create'], 0],
  ['a call that answers', ['call', URL_OF, 'order_create', '--answer', 'ok=true'], 0],
  ['a call with an answer that does not fit', ['call', URL_OF, 'order_create', '--answer', 'ok=perhaps'], 2],
  ['an event of an unknown instance', ['call', URL_OF, 'order_stop', 'handle=1'], 1],
  ['a tool that does not exist', ['call', URL_OF, 'gone'], 2],
  ['an argument of another type', ['call', URL_OF, 'add', 'a=one', 'b=2'], 2],
  ['a missing argument', ['call', URL_OF, 'add', 'a=1'], 2],
  ['a resource that does not exist', ['call', URL_OF, '--read', 'gone://1'], 1],
  ['a prompt that does not exist', ['call', URL_OF, '--prompt', 'gone'], 2],
  ...['call', 'inspect', 'types'].flatMap((command): (typeof rows)[number][] => {
    const json = command === 'inspect' ? ['--json'] : [];
    return [
      [`${command} of a server that does not run`, [command, NOWHERE, ...json], 3],
      [`${command} of a program that ends`, [command, ...json, '--', process.execPath, 'dies.mjs'], 3],
      [`${command} of a command that does not exist`, [command, ...json, '--', 'no-such-command'], 3],
    ];
  }),
];

test('every row is of one case', () => {
  assert.is(new Set(rows.map(([what]) => what)).size, rows.length);
});

/** They reach a program as `call` does, which has its row in the quick run. */
const FULL = ['inspect', 'types'].map((command) => `${command} of a program that ends`);

for (const [what, args, expected] of rows)
  (FULL.includes(what) ? test.full : test)(`${what}: ${expected}`, async () => {
    const words = args.map((word) => (word === URL_OF ? (fixture?.url ?? '') : word));
    const { code, out, err } = await troupe(words, { cwd: root });
    assert.is(code, expected, `${out}${err}`);
    if (code !== 0) assert.ok(err !== '' || args.includes('--json'), 'a failure without a word');
  });

test('a server that wants a sign-in: 4', async () => {
  const server = await protectedServer();
  try {
    for (const command of [['call'], ['types'], ['inspect', '--json']]) {
      const [name = '', ...more] = command;
      assert.is((await troupe([name, server.url, ...more], { cwd: root })).code, 4, name);
    }
  } finally {
    await server.close();
  }
});

test('looking at an instance that has failed: 0', async () => {
  const made = await troupe(['call', fixture?.url ?? '', 'order_create', '--json']);
  const { handle } = JSON.parse(made.out).structuredContent;
  const looked = await troupe(['call', fixture?.url ?? '', 'order_get', `handle=${handle}`]);
  assert.is(looked.code, 0, looked.err);
  assert.match(looked.out, 'failed (in asking)');
});

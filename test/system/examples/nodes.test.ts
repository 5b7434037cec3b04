/** examples/nodes: its script loses nothing while nodes are killed, its compose file agrees with its server, and docs/nodes.md turns nodes on. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import { parse } from 'yaml';
import { z } from 'zod';
import server from '../../../examples/nodes/server.ts';
import { Cli } from '../../cli/cli.ts';
import { compiled } from '../../harness/compiled.ts';
import { fullOnly, timeLimit } from '../../harness/door.ts';
import { postgresSuite, sharedPostgres } from '../../harness/postgres.ts';
import { atScale } from '../../harness/scale.ts';

fullOnly('starts the nodes of the example; the quick test of the examples is order.test.ts');

const KILLS = atScale({ quick: 1, full: 1, proof: 100 });

timeLimit(60_000 + KILLS * 10_000);
const test = postgresSuite('examples/nodes');
const root = fileURLToPath(new URL('../../../', import.meta.url));
const read = (file: string): string => readFileSync(join(root, file), 'utf8');

test('its script kills nodes, and the counter has each call once', async () => {
  const script = spawn(process.execPath, [compiled('examples/nodes/local.ts'), String(KILLS)], {
    stdio: ['ignore', 'pipe', 'inherit'],
    cwd: root,
  });
  process.once('exit', () => script.kill('SIGTERM'));
  const [output, [code]] = await Promise.all([text(script.stdout), once(script, 'exit')]);
  assert.is(code, 0, output);
  const [, kills, calls, count] = /^(\d+) kills: (\d+) calls, .* the counter is (\d+);/m.exec(output) ?? [];
  assert.is(Number(kills), KILLS);
  assert.is(count, calls);
});

const Node = z.looseObject({
  command: z.array(z.string()),
  environment: z.looseObject({ TROUPE_STORE: z.string(), TROUPE_CLUSTER_SECRET: z.string() }),
  stop_grace_period: z.string(),
});
const Compose = z.looseObject({ services: z.record(z.string(), z.looseObject({})) });

test('its compose file has three nodes with addresses of their own, which have their time to stop', () => {
  const { services } = Compose.parse(parse(read('examples/nodes/compose.yaml'), { merge: true }));
  const nodes = Object.entries(services).filter(([name]) => name.startsWith('node-'));
  assert.is(nodes.length, 3);
  for (const [name, service] of nodes) {
    const { command, environment, stop_grace_period } = Node.parse(service);
    assert.equal(command.slice(0, 3), ['node_modules/.bin/troupe', 'serve', 'server.ts']);
    assert.is(command[command.indexOf('--cluster') + 1], `${name}:7400`);
    const delayMs = Number(command[command.indexOf('--drain-delay') + 1]);
    assert.is(stop_grace_period, `${((server.options.limits?.graceMs ?? 0) + delayMs) / 1_000 + 5}s`);
    assert.match(environment.TROUPE_STORE, /^postgres:\/\/counters:\$\{DATABASE_PASSWORD:\?\}@database\/counters$/);
    assert.match(read('examples/nodes/nginx.conf'), `server ${name}:3000 `);
  }
});

test('the three lines of docs/nodes.md turn nodes on', async () => {
  const [, block = ''] = /```sh\n(export TROUPE_STORE[\s\S]*?)```/.exec(read('docs/nodes.md')) ?? [];
  const [store = '', secret = '', command = '', ...more] = block.trim().split('\n');
  assert.equal(more, []);
  assert.match(store, /^export TROUPE_STORE=postgres:\/\/\S+$/);
  assert.is(secret, 'export TROUPE_CLUSTER_SECRET=$(openssl rand -base64 32)');
  const [troupe, ...args] = command
    .replace(' server.ts ', ` ${join(root, 'examples/nodes/server.ts')} `)
    .replace('--http 3000', '--http 0')
    .replace('--nodes 4', '--nodes 2')
    .split(' ');
  assert.is(troupe, 'troupe');
  const database = await sharedPostgres();
  const env = { TROUPE_STORE: await database.database(), TROUPE_CLUSTER_SECRET: 'c'.repeat(44) };
  const fleet = new Cli(args, { env });
  await fleet.said('node 2 serves');
  assert.not.match(fleet.err, 'share no state');
  fleet.process.kill('SIGTERM');
  assert.is(await fleet.exit, 0);
  await database.stop();
});

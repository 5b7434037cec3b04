/** State that outlives processes and is that of several nodes: nothing that was acknowledged is lost, and no concurrent change. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { createServer, http, memory, postgres, type Server, sqlite } from '../../../src/index.ts';
import { ask, openSession } from '../../core/http/support.ts';
import { startable } from '../../harness/compiled.ts';
import { conclusive, suite } from '../../harness/door.ts';
import { nodesSuite } from '../../harness/postgres.ts';
import { atScale } from '../../harness/scale.ts';
import { until } from '../../harness/wait.ts';
import { compareWithModel, faultOf } from './support.ts';

const folder = mkdtempSync(join(tmpdir(), 'troupe-state-'));
const KEYS = ['a', 'b', 'c', 'd'];
const KILLS = atScale({ quick: 1, full: 3, proof: 3 });
/** Changes of one value in each of four lanes at once. */
const TIMES = atScale({ quick: 8, full: 60, proof: 60 });
/** Operations on each user that are compared with a map. */
const OPERATIONS = atScale({ quick: 60, full: 250, proof: 250 });
const SEEDS = atScale({ quick: 1, full: 2, proof: 2 });
const increased = (n: unknown): number => (typeof n === 'number' ? n + 1 : 1);

const test = suite('durable state');
const programs: ChildProcess[] = [];
test.after(() => {
  for (const program of programs) program.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

test('R-54: an acknowledged change is there after kill -9, and one that was not acknowledged is whole or absent', async () => {
  const [path, acks] = [join(folder, 'killed.db'), join(folder, 'acks')];
  const lines = (): readonly string[] => (existsSync(acks) ? readFileSync(acks, 'utf8').split('\n').slice(0, -1) : []);
  let least = 0;
  for (let kill = 1; kill <= KILLS; kill += 1) {
    const program = spawn(process.execPath, [startable('test/fixtures/state/counting.ts'), path, acks], {
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    programs.push(program);
    const before = lines().length;
    await until(() => lines().length >= before + 40 * kill);
    program.kill('SIGKILL');
    await once(program, 'exit');
    const acknowledged = new Map(lines().map((line) => line.split(' ') as [string, string]));
    const server = createServer({ name: 'reading', version: '1.0.0', store: sqlite(path) });
    await server.listen(memory().transport);
    const state = server.stateOf('ada');
    for (const key of KEYS) {
      const n = Number(await state.get(key));
      const known = Number(acknowledged.get(key));
      conclusive(() => assert.ok(n === known || n === known + 1, `${key}: ${n}, acknowledged ${known}`));
    }
    assert.ok(lines().length > least);
    least = lines().length;
    await server.close();
  }
});

const { nodes, servers, database } = nodesSuite('state of several nodes');

async function start(url: string, transport = http({ port: 0 })): Promise<Server> {
  const server = createServer({
    ...{ name: 'counting', version: '1.0.0', store: postgres(url), log: () => {} },
    cluster: { listen: '127.0.0.1:0', secret: 'a secret that all nodes of this test share' },
  });
  server.tool('count', async (_, ctx) => `${ctx.state.scope} ${await ctx.state.update('n', increased)}`);
  servers.push(server);
  await server.listen(transport);
  return server;
}

nodes(
  'R-55: changes of one value at two nodes at once lose nothing, and each node reads what the other has stored',
  async () => {
    const url = await database();
    const [one, two] = [await start(url), await start(url)];
    const [here, there] = [one.stateOf('ada'), two.stateOf('ada')];
    const results: unknown[] = [];
    const count = async (state: typeof here): Promise<void> => {
      for (let time = 0; time < TIMES; time += 1) results.push(await state.update('n', increased));
    };
    await Promise.all([count(here), count(here), count(there), count(there)]);
    conclusive(() => {
      assert.is(new Set(results).size, 4 * TIMES);
      assert.is(Math.max(...results.map(Number)), 4 * TIMES);
    });
    await Promise.all([here.set('x', 1), there.set('y', 2)]);
    assert.equal(
      (await here.list()).map(({ key }) => key),
      ['n', 'x', 'y'],
    );
    await there.clear();
    assert.is(await here.get('n'), undefined);
    await two.close();
    assert.is(await here.update('n', increased), 1);
    assert.match(await faultOf(there.get('n')), /^store: /);
  },
);

nodes('the state of a session is there at another node after its node has left', async () => {
  const url = await database();
  const [first, second] = [http({ port: 0 }), http({ port: 0 })];
  const one = await start(url, first);
  const session = await openSession(first.url);
  const counted = async (at: string, id: number): Promise<string> => {
    const body = { jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'count', arguments: {} } };
    return (await ask(at, { headers: session.headers, body })).text();
  };
  assert.match(await counted(first.url, 1), 'session 1');
  await start(url, second);
  assert.match(await counted(second.url, 2), 'session 2');
  await one.close();
  assert.match(await counted(second.url, 3), 'session 3');
});

nodes('a node that shares a database does what a map does', async () => {
  const node = await start(await database());
  for (let seed = 1; seed <= SEEDS; seed += 1) await compareWithModel(node.stateOf(`user ${seed}`), seed, OPERATIONS);
});

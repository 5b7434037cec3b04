/** `troupe serve --nodes`: several processes on one port, their restarts, and deployments without a failed request. Two fleets of processes serve all tests. */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { PassThrough, Writable } from 'node:stream';
import * as assert from 'uvu/assert';
import { mergeMetrics } from '../../src/cli/fleet/fleet-metrics.ts';
import { copyLines } from '../../src/cli/fleet/node-lines.ts';
import { Tree } from '../features/discovery/tree.ts';
import { suite } from '../harness/door.ts';
import { atScale } from '../harness/scale.ts';
import { elapse } from '../harness/wait.ts';
import { Cli, TROUPE } from './cli.ts';
import { troupe } from './in-process.ts';

const test = suite('troupe serve --nodes');

const program = (version: string): string => `import { createServer } from '${TROUPE}';
const server = createServer({ name: 'many', version: '${version}' });
server.tool('where', {}, () => process.pid + ' ' + '${version}');
server.tool('die', {}, () => process.exit(9));
server.tool('slow', {}, (_, ctx) => { ctx.progress(1); return new Promise((resolve) => setTimeout(resolve, 300, 'at last')); });
export default server;
`;

const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
};

/** Calls a tool over the agent's connections. @throws if the connection breaks, or the status is not 200 */
function call(url: string, agent: Agent | false, name: string, onHead = (): void => {}): Promise<string> {
  return new Promise((resolve, reject) => {
    const headers = {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/call',
      'mcp-name': name,
    };
    const sent = request(url, { method: 'POST', agent, headers }, (response) => {
      onHead();
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
      });
      response.on('error', reject).on('end', () => {
        const [, found] = /"text":"([^"]*)"/.exec(text) ?? [];
        if (response.statusCode === 200 && found !== undefined) resolve(found);
        else reject(new Error(`${response.statusCode} ${text}`));
      });
    });
    sent.on('error', reject);
    const params = { name, arguments: {}, _meta: { ...META, progressToken: 'p' } };
    sent.end(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }));
  });
}

const tree = new Tree({ 'package.json': '{ "type": "module" }', 'server.mjs': program('1') });
/** The pause of a client between two calls, in milliseconds. */
const PAUSE_MS = atScale({ quick: 20, full: 2, proof: 2 });

let fleet: Cli;
let url = '';
let metrics = '';

/** The process ids of the nodes that have served, in order. */
const processes = (): number[] => [...fleet.err.matchAll(/serves \(process (\d+)\)/g)].map(([, pid]) => Number(pid));

test.before(async () => {
  fleet = new Cli(['serve', 'server.mjs', '--http', '0', '--nodes', '2', '--metrics', '0'], { cwd: tree.path });
  await fleet.said('node 2 serves');
  url = /at (http:\S+);/.exec(fleet.err)?.[1] ?? '';
  metrics = /metrics of all nodes at (http:\S+)/.exec(fleet.err)?.[1] ?? '';
});

test('connections that stay open spread over the nodes', async () => {
  const agents = Array.from({ length: 6 }, () => new Agent({ keepAlive: true }));
  const first = await Promise.all(agents.map((agent) => call(url, agent, 'where')));
  const counts = [...new Set(first)].map((where) => first.filter((each) => each === where).length);
  assert.equal(counts, [3, 3]);
  // Each stays at its node.
  assert.equal(await Promise.all(agents.map((agent) => call(url, agent, 'where'))), first);
  for (const agent of agents) agent.destroy();
});

test('the metrics and the readiness of all nodes are at one address', async () => {
  const text = await (await fetch(metrics)).text();
  assert.match(text, /^troupe_restarts_total\{node="1"\} 0$/m);
  assert.match(text, /^troupe_in_flight\{node="2"\} 0$/m);
  assert.is(text.split('# TYPE troupe_in_flight').length, 2);
  const ready: unknown = await (await fetch(metrics.replace('/metrics', '/readyz'))).json();
  assert.equal(ready, {
    ready: true,
    nodes: ['1', '2'].map((node) => ({ node, ready: true, reasons: [] })),
  });
});

test('stderr says that the nodes share no state', () => {
  assert.match(fleet.err, /the nodes share no state: sessions .* other nodes answer 404/);
});

test.full('a crashed node is restarted, and the other serves meanwhile', async () => {
  const { length } = processes();
  const died = await call(url, false, 'die').catch(() => 'broken');
  assert.is(died, 'broken');
  assert.match(await call(url, false, 'where'), /^\d+ 1$/);
  await fleet.said('restarting in 100 ms');
  await fleet.until(() => processes().length === length + 1, 'the third process');
  assert.match(await (await fetch(metrics)).text(), /^troupe_restarts_total\{node="[12]"\} [12]$/m);
});

test.full('R-53 a connection on its way to a process that is killed reaches the other', async () => {
  if (process.platform === 'win32') return;
  const { length } = processes();
  const pid = processes().at(-1) ?? 0;
  process.kill(pid, 'SIGSTOP');
  // Each node has the same number of connections, so half of these go to the stopped process.
  const calls = Array.from({ length: 4 }, () => call(url, false, 'where'));
  const settled = Promise.all(calls);
  await Promise.any(calls);
  process.kill(pid, 'SIGKILL');
  assert.equal([...new Set((await settled).map((where) => Number.parseInt(where, 10) === pid))], [false]);
  await fleet.until(() => processes().length === length + 1, 'the next process');
  assert.match(await (await fetch(metrics)).text(), /^troupe_restarts_total\{node="[12]"\} [12]$/m);
});

test('R-53 SIGHUP deploys a new version one node after the other, and no request fails', async () => {
  if (process.platform === 'win32') return;
  const { length } = processes();
  writeFileSync(tree.at('server.mjs'), program('2'));
  let deployed = false;
  const seen = new Set<string>();
  let calls = 0;
  const load = Array.from({ length: 4 }, async (_, at) => {
    // Half of the clients keep their connection, the others open one for each call.
    const agent = at % 2 === 0 ? new Agent({ keepAlive: true }) : false;
    while (!deployed) {
      seen.add(await call(url, agent, 'where'));
      calls += 1;
      await elapse(PAUSE_MS, 'a client pauses');
    }
    if (agent) agent.destroy();
  });
  fleet.process.kill('SIGHUP');
  await Promise.race([fleet.said('all nodes are replaced'), Promise.all(load)]);
  deployed = true;
  await Promise.all(load);
  assert.ok(calls > 20, `${calls} calls`);
  assert.match([...seen].join(), / 1\b.* 2\b/);
  assert.match(await call(url, false, 'where'), / 2$/);
  assert.is(processes().length, length + 2);
});

test.full('a new version that fails to start leaves the old processes', async () => {
  if (process.platform === 'win32') return;
  writeFileSync(tree.at('server.mjs'), 'throw new Error("no database");\n');
  fleet.process.kill('SIGHUP');
  await fleet.said('the new process of node 1 ended with code 1 before it could serve: the old processes continue');
  assert.match(await call(url, false, 'where'), / 2$/);
});

test('SIGTERM finishes running requests in every node', async () => {
  if (process.platform === 'win32') return;
  const heads: Promise<void>[] = [];
  const slow = Array.from({ length: 4 }, () => {
    let begin = (): void => {};
    heads.push(
      new Promise((resolve) => {
        begin = resolve;
      }),
    );
    return call(url, false, 'slow', () => begin());
  });
  await Promise.all(heads);
  fleet.process.kill('SIGTERM');
  assert.equal(await Promise.all(slow.map((each) => each.then(String, String))), Array(4).fill('at last'));
  assert.is(await fleet.exit, 0);
  assert.not.match(fleet.err.slice(fleet.err.indexOf('shutting down: SIGTERM')), 'restarting');
});

test.full('R-53 the nodes end with their parent, which cannot stop them when it is killed', async () => {
  if (process.platform === 'win32') return;
  writeFileSync(tree.at('server.mjs'), program('1'));
  fleet = new Cli(['serve', 'server.mjs', '--http', '0', '--nodes', '1', '--log', 'json'], { cwd: tree.path });
  await fleet.said('node 1 serves');
  fleet.process.kill('SIGKILL');
  // Each node holds stdout until it ends.
  await fleet.exit;
  const { port } = new URL(/at (http:\S+);/.exec(fleet.err)?.[1] ?? '');
  assert.match(await call(`http://127.0.0.1:${port}/mcp`, false, 'where').catch(String), 'ECONNREFUSED');
  // Their last line of the log names the node.
  assert.match(fleet.err, /"node":"[^"]+\/1","msg":"troupe serve: shutting down: the parent process has exited"/);
});

test.full('a program that fails to start is reported once, with its exit code', async () => {
  const { path } = new Tree({
    'package.json': '{ "type": "module" }',
    'server.mjs': 'throw new Error("no database");',
  });
  const failing = new Cli(['serve', 'server.mjs', '--http', '0', '--nodes', '4'], { cwd: path });
  assert.is(await failing.exit, 1);
  assert.is(failing.err.split('no database').length, 2);
  assert.match(failing.err, /^\[1\] troupe serve: cannot serve /m);
  assert.match(failing.err, 'node 1 ended with code 1 before it could serve');
});

for (const [title, options, expected] of [
  ['without --http', ['--socket', 'x', '--nodes', '2'], /--nodes needs --http PORT, without --socket/],
  ['with --data', ['--http', '0', '--nodes', '2', '--data', 'd'], /--nodes or --data, got both/],
  [
    'with a store and without a secret',
    ['--http', '0', '--nodes', '2', '--store', 'postgres://b/c'],
    /TROUPE_CLUSTER_SECRET or in --cluster-secret-file, got none/,
  ],
  ['0', ['--http', '0', '--nodes', '0'], /--nodes: expected a whole number from 1 to 256, got 0/],
  ['and a delay that is none', ['--http', '0', '--nodes', '2', '--drain-delay', 'x'], /--drain-delay: expected milli/],
] as const) {
  test(`--nodes ${title} is rejected with code 2`, async () => {
    const { code, err } = await troupe(['serve', 'server.mjs', ...options], { cwd: tree.path });
    assert.is(code, 2);
    assert.match(err, expected);
  });
}

for (const [title, options, expected] of [
  [
    'with the address of no port',
    ['--http', '0', '--cluster', 'here'],
    /--cluster: expected the address at which the other nodes reach this one, such as "10.0.0.5:7400", got string "here"/,
  ],
  [
    'with a secret that is not read',
    ['--http', '0', '--cluster-secret-file', 'x'],
    /--cluster-secret-file needs --cluster/,
  ],
] as const)
  test(`--cluster ${title} is rejected with code 2`, async () => {
    for (const command of [
      ['serve', 'server.mjs'],
      ['run', 'server.mjs'],
    ]) {
      const given = command[0] === 'run' ? options.filter((word) => !['--http', '0'].includes(word)) : options;
      const env = { TROUPE_CLUSTER_SECRET: 's'.repeat(32) };
      const { code, err } = await troupe([...command, ...given], { cwd: tree.path, env });
      assert.is(code, 2);
      assert.match(err, expected);
    }
  });

test('merges the metrics of nodes by family', () => {
  const one = '# HELP a b.\n# TYPE a counter\na_total{x="} "} 1 # {trace_id="t"} 0.1\n# TYPE c gauge\nc 2\n# EOF\n';
  const two = '# HELP a b.\n# TYPE a counter\na_total{x="y"} 3\n# EOF\n';
  assert.is(
    mergeMetrics(
      new Map([
        ['1', one],
        ['2', two],
      ]),
    ),
    '# HELP a b.\n# TYPE a counter\na_total{node="1",x="} "} 1 # {trace_id="t"} 0.1\na_total{node="2",x="y"} 3\n# TYPE c gauge\nc{node="1"} 2\n# EOF\n',
  );
});

test('writes the name of the node before each line of its output', async () => {
  const from = new PassThrough();
  let text = '';
  const to = new Writable({
    write(chunk, _, done) {
      text += String(chunk);
      done();
    },
  });
  copyLines(from, '2', to);
  for (const part of ['a line\nand an', 'other\n', 'the last, unfinished']) from.write(part);
  from.end();
  await once(from, 'end');
  assert.is(text, '[2] a line\n[2] and another\n[2] the last, unfinished\n');
});

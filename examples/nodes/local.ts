/**
 * Three nodes on one temporary PostgreSQL, without containers: kills one node after the other with SIGKILL while a client
 * counts. `node --import tsx examples/nodes/local.ts [KILLS]`. TROUPE_STORE names a database, if PostgreSQL is not installed.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { type AddressInfo, connect as connectTo, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { ClientError, connect } from 'troupe/client';

const KILLS = Number(process.argv[2] ?? 10);
/** Milliseconds between two kills. */
const PAUSE_MS = 1_000;
const RETRY_MS = 10;
/** Milliseconds that a call may take in total. */
const CALL_MS = 20_000;
const program = fileURLToPath(new URL('server.ts', import.meta.url));
const troupe = fileURLToPath(new URL('../../dist/lib/cli/main.js', import.meta.url));
const stops: (() => void)[] = [];
process.on('exit', () => {
  for (const stop of stops.reverse()) stop();
});
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));

const store = process.env.TROUPE_STORE ?? (await temporaryDatabase());
const env = { ...process.env, TROUPE_STORE: store, TROUPE_CLUSTER_SECRET: randomBytes(32).toString('base64') };
const ports = [await freePort(), await freePort(), await freePort()];
const nodes = await Promise.all(ports.map((port) => startNode(port)));
const balancer = await openBalancer(ports);
console.log(`three nodes behind http://127.0.0.1:${balancer}/mcp`);

const client = await connect(`http://127.0.0.1:${balancer}/mcp`);
let counted = 0;
let repeated = 0;
let longest = 0;
let killing = true;
const handle = String((await call('counter_create', { idempotencyKey: randomUUID() })).handle);
const counting = (async () => {
  while (killing) {
    const began = performance.now();
    counted += 1;
    await call('counter_add', { handle, idempotencyKey: randomUUID() });
    longest = Math.max(longest, performance.now() - began);
  }
})();

for (let kill = 1; kill <= KILLS; kill += 1) {
  await sleep(PAUSE_MS);
  const at = kill % nodes.length;
  const [node, port] = [nodes[at], ports[at]];
  if (!node || port === undefined) continue;
  node.kill('SIGKILL');
  await once(node, 'exit');
  nodes[at] = await startNode(port);
}
killing = false;
await counting;
const { count } = Object((await call('counter_get', { handle })).view);
console.log(
  `${KILLS} kills: ${counted} calls, of which ${repeated} were sent again; the counter is ${count}; the longest call took ${Math.round(longest)} ms`,
);
await client.close();
process.exit(count === counted ? 0 : 1);

/** Calls a tool of the machine until it answers. A key among the arguments lets the machine take an event once. */
async function call(name: string, args: Readonly<Record<string, string>>): Promise<Readonly<Record<string, unknown>>> {
  for (const until = performance.now() + CALL_MS; ; ) {
    try {
      const { structuredContent, content, isError } = await client.call(name, args);
      if (isError === true) throw new Error(JSON.stringify(content));
      return Object(structuredContent);
    } catch (error) {
      if (!(error instanceof ClientError) || performance.now() > until) throw error;
      repeated += 1;
      await sleep(error.retryAfterMs ?? RETRY_MS);
    }
  }
}

async function startNode(port: number): Promise<ChildProcess> {
  const args = ['serve', program, '--http', String(port), '--cluster', '127.0.0.1:0'];
  const node = spawn(process.execPath, [troupe, ...args], { env, stdio: ['ignore', 'ignore', 'pipe'] });
  stops.push(() => node.kill('SIGKILL'));
  let log = '';
  const serves = new Promise<void>((resolve, reject) => {
    node.stderr.setEncoding('utf8').on('data', (text: string) => {
      log = (log + text).slice(-10_000);
      if (log.includes('connect clients with')) resolve();
    });
    node.once('exit', () => reject(new Error(`a node did not start:\n${log}`)));
  });
  await serves;
  return node;
}

/** Passes each connection to the next node, or to the one after it if that one refuses. @returns its port */
async function openBalancer(to: readonly number[]): Promise<number> {
  let next = 0;
  const pass = (from: Socket, tried: number): void => {
    const port = to[next++ % to.length];
    if (port === undefined || tried === to.length) return void from.destroy();
    const node = connectTo(port, '127.0.0.1', () => from.pipe(node).pipe(from));
    node.on('error', () =>
      node.connecting || node.bytesRead > 0 || node.bytesWritten > 0 ? from.destroy() : pass(from, tried + 1),
    );
    from.on('error', () => node.destroy()).on('close', () => node.destroy());
    node.on('close', () => node.bytesWritten > 0 && from.destroy());
  };
  const server = createServer((from) => pass(from, 0)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return portOf(server.address());
}

/** Starts PostgreSQL in a temporary directory. It ends with this process. @returns the URL */
async function temporaryDatabase(): Promise<string> {
  const debian = '/usr/lib/postgresql';
  const version = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a))[0] : undefined;
  if (version === undefined) throw new Error('PostgreSQL is not installed: set TROUPE_STORE to the URL of a database');
  const programs = join(debian, version, 'bin');
  const folder = mkdtempSync(join(tmpdir(), 'troupe-nodes-'));
  stops.push(() => rmSync(folder, { recursive: true, force: true }));
  // PostgreSQL does not run as root.
  const id = (flag: string): number => Number(spawnSync('id', [flag, 'nobody'], { encoding: 'utf8' }).stdout);
  const owner = process.getuid?.() === 0 ? { uid: id('-u'), gid: id('-g') } : {};
  if (owner.uid !== undefined) chownSync(folder, owner.uid, owner.gid);
  const options = { ...owner, cwd: folder, stdio: 'ignore' } as const;
  spawnSync(join(programs, 'initdb'), ['-D', 'data', '-U', 'troupe', '--auth=trust', '--no-sync'], options);
  const port = await freePort();
  const settings = ['-k', folder, '-h', '127.0.0.1', '-p', String(port)];
  const database = spawn(join(programs, 'postgres'), ['-D', 'data', ...settings], options);
  stops.push(() => database.kill('SIGQUIT'));
  const ready = ['-h', '127.0.0.1', '-p', String(port), '-U', 'troupe', '-d', 'postgres'];
  while (spawnSync(join(programs, 'pg_isready'), ready).status !== 0) {
    if (database.exitCode !== null) throw new Error('PostgreSQL did not start');
    await sleep(50);
  }
  return `postgres://troupe@127.0.0.1:${port}/postgres`;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const port = portOf(server.address());
  server.close();
  return port;
}

function portOf(address: AddressInfo | string | null): number {
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

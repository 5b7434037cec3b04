/** The durable benchmark: the floor of writes; what a call costs with a store in a file, how fast sessions are back after a kill, what one that sleeps weighs. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { Agent, type IncomingMessage, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { measureFloorOfWrites } from './durable-floor.ts';

const { values } = parseArgs({ options: { sessions: { type: 'string', default: '20000' } } });
const sessions = Number(values.sessions);
const RESTARTED = 1_000;
const SLEEP_MS = 1_000;
/** Milliseconds in which all of them fall asleep: 2,000 in a round of five seconds. */
const ASLEEP_MS = 10_000 + (sessions / 2_000) * 5_000;
const SERVER = fileURLToPath(new URL('servers/durable.mjs', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'troupe-bench-'));
const agent = new Agent({ keepAlive: true, maxSockets: 64 });
const out = (line: string): void => void process.stdout.write(`${line}\n`);

type Headers = Readonly<Record<string, string>>;
let child: ChildProcess | undefined;
let port = 0;

async function start(): Promise<void> {
  const args = ['--expose-gc', SERVER, join(folder, 'bench.db'), String(port), String(SLEEP_MS)];
  child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  if (!child.stdout) throw new Error('the server has no stdout');
  const [line] = await once(child.stdout, 'data');
  port = Number(new URL(String(line).trim()).port);
}

async function kill(): Promise<void> {
  const gone = child && once(child, 'exit');
  child?.kill('SIGKILL');
  await gone;
}

async function post(
  body: object,
  more: Headers,
): Promise<{ readonly headers: IncomingMessage['headers']; readonly body: string }> {
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...more };
  const sent = request({ port, path: '/mcp', method: 'POST', agent, headers });
  sent.end(JSON.stringify(body));
  const [response]: IncomingMessage[] = await once(sent, 'response');
  if (!response || (response.statusCode ?? 500) > 299) throw new Error(`expected 200, got ${response?.statusCode}`);
  return { headers: response.headers, body: await text(response) };
}

async function open(who: string): Promise<Headers> {
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'bench', version: '1.0.0' } };
  const { headers } = await post({ jsonrpc: '2.0', id: 0, method: 'initialize', params }, { authorization: who });
  const mine = { authorization: who, 'mcp-session-id': String(headers['mcp-session-id']) };
  await post({ jsonrpc: '2.0', method: 'notifications/initialized' }, mine);
  return mine;
}

let id = 0;
async function call(session: Headers | undefined, name: string): Promise<string> {
  id += 1;
  const params = { name, arguments: {} };
  const { body } = await post({ jsonrpc: '2.0', id, method: 'tools/call', params }, session ?? {});
  return JSON.parse(body).result.content[0].text;
}

async function crowd(count: number, width: number, one: (index: number) => Promise<unknown>): Promise<string> {
  const took: number[] = [];
  const began = performance.now();
  let next = 0;
  const lane = async (): Promise<void> => {
    for (let index = next++; index < count; index = next++) {
      const from = performance.now();
      await one(index);
      took.push(performance.now() - from);
    }
  };
  await Promise.all(Array.from({ length: width }, lane));
  took.sort((a, b) => a - b);
  const at = (part: number): string => (took[Math.floor(count * part)] ?? 0).toFixed(2);
  return `${Math.round((count * 1_000) / (performance.now() - began))}/s, p50 ${at(0.5)}, p99 ${at(0.99)} ms`;
}

async function weigh(session: Headers | undefined): Promise<{ readonly heapUsed: number; readonly rss: number }> {
  return JSON.parse(await call(session, 'weigh'));
}

for (const line of await measureFloorOfWrites()) out(line);

try {
  await start();
  const some: Headers[] = [];
  await crowd(RESTARTED, 32, async (index) => some.push(await open(`p${index % 200}`)));
  for (const [name, width, count] of [
    ['look', 1, 500],
    ['look', 32, 5_000],
    ['charge', 1, 300],
    ['charge', 32, 5_000],
  ] as const)
    out(`${name}, ${width} in flight: ${await crowd(count, width, (index) => call(some[index % RESTARTED], name))}`);
  await kill();
  const began = performance.now();
  await start();
  const ready = performance.now() - began;
  const calls = await crowd(RESTARTED, 64, (index) => call(some[index], 'look'));
  out(
    `restart: ready after ${ready.toFixed(0)} ms, ${RESTARTED} sessions called after ${(performance.now() - began).toFixed(0)} ms (${calls})`,
  );
  await sleep(ASLEEP_MS);
  const before = await weigh(some[0]);
  const many: Headers[] = [];
  await crowd(sessions, 64, async (index) => many.push(await open(`q${index % 400}`)));
  const opened = await weigh(some[0]);
  await sleep(ASLEEP_MS);
  const asleep = await weigh(some[0]);
  const each = (figure: 'heapUsed' | 'rss', now: typeof before): number =>
    Math.round((now[figure] - before[figure]) / sessions);
  out(
    `${sessions} sessions, each: ${each('heapUsed', opened)} bytes of heap awake, ${each('heapUsed', asleep)} asleep; resident ${Math.round(asleep.rss / 1_000_000)} MB`,
  );
  out(`waking one: ${await crowd(Math.min(2_000, sessions), 1, (index) => call(many[index], 'look'))}`);
} finally {
  await kill();
  rmSync(folder, { recursive: true, force: true });
}

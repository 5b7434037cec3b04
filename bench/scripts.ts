/**
 * Measures code mode, and prints a table: the start of a script, a call, a repetition, the memory of a script at rest, everything else
 * beside 50 scripts that never end, a call of a script beside one of its client, and 1,000 scripts that wait.
 */
import { loadavg } from 'node:os';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createServer, http, type ServerOptions } from 'troupe';
import { connect } from 'troupe/client';
import { createActorSystem } from '../src/core/kernel/actor-system.ts';
import { systemClock } from '../src/core/kernel/clock.ts';
import { Sandboxes } from '../src/features/code/sandbox/sandboxes.ts';
import type { Delivery, Script } from '../src/features/code/sandbox/script.ts';

const ENDLESS = 50;
const ROUNDS = 200;
/** Seconds beside the endless scripts. */
const BESIDE_S = 10;
const CALLS = [200, 1_000] as const;
/** Scripts that wait, and the callers that they belong to. */
const WAITING = 1_000;
const CALLERS = 10;
/** Calls of one script, and of one client. */
const INNER = 500;

const system = createActorSystem({ clock: systemClock, log: (_, text) => void process.stderr.write(`${text}\n`) });
const script = (code: string): Script => ({ code, seed: 1, startedAt: 0, groups: ['shop'] });

const rows: (readonly [string, string])[] = [];
function row(what: string, figure: string): void {
  rows.push([what, figure]);
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

function percentiles(times: readonly number[]): string {
  const sorted = [...times].sort((one, other) => one - other);
  const at = (share: number): string => (sorted[Math.floor(sorted.length * share)] ?? 0).toFixed(1);
  return `p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, most ${(sorted.at(-1) ?? 0).toFixed(1)} ms`;
}

async function repeated(count: number, work: (round: number) => Promise<unknown>): Promise<readonly number[]> {
  const times: number[] = [];
  for (let round = 0; round < count; round += 1) times.push(await timed(() => work(round)));
  return times;
}

async function alone(): Promise<void> {
  const boxes = new Sandboxes({ system });
  row(
    'the first script, with its thread and the engine',
    `${(await timed(() => boxes.begin('first', 'ann', script('return 1')))).toFixed(0)} ms`,
  );
  row(
    'a script in a warm thread',
    percentiles(await repeated(ROUNDS, (round) => boxes.begin(`s${round}`, 'ann', script('return 1')))),
  );
  await boxes.begin('calls', 'ann', script('for (;;) await shop.list({ page: 1 })'));
  const delivered = await repeated(ROUNDS, (round) =>
    boxes.proceed('calls', [{ number: round + 1, at: round, value: '{"items":[1,2,3]}' }]),
  );
  row('a delivery, to the next call', percentiles(delivered));
  for (const calls of CALLS) {
    const code = `for (let i = 0; i < ${calls}; i++) await shop.list({ page: i });`;
    const value = JSON.stringify({ items: Array.from({ length: 40 }, (_, id) => ({ id, name: `item ${id}` })) });
    const deliveries = Array.from({ length: calls }, (_, at): Delivery => ({ number: at + 1, at, value }));
    const times = await repeated(5, (round) => boxes.begin(`again ${round}`, 'ann', script(code), deliveries));
    row(`${calls} calls again, with ${((value.length * calls) / 1e6).toFixed(1)} MB of results`, percentiles(times));
  }
  boxes.end();
}

async function memory(): Promise<void> {
  const boxes = new Sandboxes({ system });
  await boxes.begin('first', 'ann', script('return 1'));
  await boxes.begin('held 0', 'ann', script('await shop.list()'));
  const before = process.memoryUsage.rss();
  for (let at = 1; at < 16; at += 1) await boxes.begin(`held ${at}`, 'ann', script('await shop.list()'));
  const slice = await boxes.begin('held 15', 'ann', script('await shop.list()'));
  row('resident memory of a script at rest', `${((process.memoryUsage.rss() - before) / 15 / 2 ** 20).toFixed(2)} MiB`);
  row('its memory of WebAssembly', `${(slice.memoryBytes / 2 ** 20).toFixed(2)} MiB`);
  boxes.end();
}

async function beside(): Promise<void> {
  const boxes = new Sandboxes({ system });
  await Promise.all(['ann', 'eve'].map((principal) => boxes.begin(principal, principal, script('return 1'))));
  let open = ENDLESS;
  const endless = Array.from({ length: ENDLESS }, (_, at) =>
    boxes.begin(`endless ${at}`, 'eve', script('for (;;);')).then(() => {
      open -= 1;
    }),
  );
  const turns: number[] = [];
  const scripts: number[] = [];
  const end = performance.now() + BESIDE_S * 1_000;
  while (performance.now() < end) {
    turns.push(await timed(() => new Promise((resolve) => setImmediate(resolve))));
    scripts.push(await timed(() => boxes.begin('bystander', 'ann', script('return 1'))));
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  row(`a turn of the server, beside ${ENDLESS} endless scripts`, percentiles(turns));
  row(`a script of another principal, beside them (${scripts.length} scripts)`, percentiles(scripts));
  row('endless scripts that have been stopped meanwhile', String(ENDLESS - open));
  boxes.end();
  await Promise.all(endless);
}

/** A gateway in front of a server with one tool. */
async function gateway(options: Partial<ServerOptions> = {}) {
  const shop = createServer({ name: 'shop', version: '1.0.0', log() {} });
  const input = { type: 'object', properties: { page: { type: 'number' } } } as const;
  shop.tool('list', { input, annotations: { readOnlyHint: true } }, () => 'three pens');
  const server = createServer({ name: 'gateway', version: '1.0.0', log() {}, ...options });
  await server.mount('shop', shop, { expose: ['search', 'code'], trust: true });
  return server;
}

/** A call of a script beside the same call of its client, which also passes the gateway. */
async function inner(): Promise<void> {
  const server = await gateway();
  const client = await connect(server);
  const direct = (): Promise<unknown> => client.call('shop_list', { page: 1 });
  const code = `for (let i = 0; i < ${INNER}; i++) await shop.list({ page: 1 });`;
  for (let round = 0; round < 3; round += 1) {
    await client.call('run_code', { code });
    for (let at = 0; at < INNER; at += 1) await direct();
  }
  const calls: number[] = [];
  const scripts: number[] = [];
  for (let round = 0; round < 5; round += 1) {
    calls.push(
      (await timed(async () => {
        for (let at = 0; at < INNER; at += 1) await direct();
      })) / INNER,
    );
    scripts.push((await timed(() => client.call('run_code', { code }))) / INNER);
  }
  const least = (times: readonly number[]): number => Math.min(...times);
  row('a call of a client', `${least(calls).toFixed(3)} ms`);
  row('a call of a script', `${least(scripts).toFixed(3)} ms, ${(least(scripts) - least(calls)).toFixed(3)} ms more`);
  await client.close();
  await server.close();
}

/** Scripts that wait for a time, each with three results behind it. */
async function waiting(): Promise<void> {
  setFlagsFromString('--expose-gc');
  const collect: () => void = runInNewContext('gc');
  const heap = (): number => {
    collect();
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  };
  const server = await gateway({
    code: { waitMs: 1 },
    http: { authenticate: ({ header }) => ({ principal: header('authorization') ?? '' }) },
  });
  const transport = http({ port: 0 });
  await server.listen(transport);
  const clients = await Promise.all(
    Array.from({ length: CALLERS }, (_, at) =>
      connect({ url: transport.url ?? '', headers: { authorization: `caller ${at}` } }, { eras: 'legacy', log() {} }),
    ),
  );
  const code = 'for (let page = 1; page < 4; page++) await shop.list({ page }); await sleep(3_600_000); return 1;';
  // The same script would name the run that waits already.
  const begin = (at: number): Promise<unknown> | undefined =>
    clients[at % CALLERS]?.call('run_code', { code: `${code} // ${at}` });
  await Promise.all(clients.map((_, at) => begin(at)));
  const before = heap();
  const ms = await timed(async () => {
    for (let at = CALLERS; at < WAITING; at += CALLERS)
      await Promise.all(clients.map((_, caller) => begin(at + caller)));
  });
  row(`${WAITING} scripts that wait: begun in`, `${(ms / 1_000).toFixed(1)} s`);
  row('memory of a script that waits', `${((heap() - before) / (WAITING - CALLERS) / 1_024).toFixed(1)} KiB`);
  await Promise.all(clients.map((client) => client.close()));
  await server.close();
}

await alone();
await memory();
await beside();
await inner();
await waiting();
process.stdout.write(
  `| measure | figure |\n|---|---|\n${rows.map(([what, figure]) => `| ${what} | ${figure} |`).join('\n')}\n`,
);
process.stdout.write(`\nNode ${process.version}, load ${loadavg()[0]?.toFixed(1)}\n`);

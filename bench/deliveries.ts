/**
 * The costs of webhooks of events: the memory of subscriptions at rest, an event that one of them wants, and one that all want. The
 * receiver is a process of its own. `--count N`, `--memory` (without a disk), `--only rest|selective|all`, `--rate` (events a second).
 */
import { fork } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer as listenHttp } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { isObject } from '../src/core/protocol/json.ts';
import type { Core, Feature } from '../src/core/server/feature.ts';
import { idOfSubscription, sealSecrets } from '../src/features/events/delivery/subscription-record.ts';
import { events } from '../src/features/events/events.feature.ts';
import { createServer, memory, sqlite } from '../src/index.ts';
import { at } from './measured.ts';

const { values } = parseArgs({
  options: {
    receiver: { type: 'boolean', default: false },
    memory: { type: 'boolean', default: false },
    count: { type: 'string', default: '10000' },
    rate: { type: 'string', default: '200' },
    only: { type: 'string' },
  },
});
const COUNT = Number(values.count);
const RATE = Number(values.rate);
const SECONDS = 5;
const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;

/** What the receiver has: the number of POSTs, and the milliseconds from the emission of each event to its arrival. */
interface Received {
  readonly count: number;
  readonly took: readonly number[];
  readonly cpuMs: number;
}

/** Answers each POST with 204, and reports to its parent when it is asked. */
function receive(): void {
  let took: number[] = [];
  const server = listenHttp((request, response) => {
    let text = '';
    request.setEncoding('utf8').on('data', (chunk) => {
      text += chunk;
    });
    request.on('end', () => {
      const now = Date.now();
      const sentAt = /"sentAt":(\d+)/.exec(text)?.[1];
      if (sentAt) took.push(now - Number(sentAt));
      else process.stdout.write(`not an event: ${text.slice(0, 200)}\n`);
      response.writeHead(204).end();
    });
  });
  server.keepAliveTimeout = 60_000;
  server.listen(0, '127.0.0.1', () => process.send?.(server.address()));
  process.on('message', (asked) => {
    const { user, system } = process.cpuUsage();
    process.send?.({ count: took.length, took: asked === 'all' ? took : [], cpuMs: (user + system) / 1_000 });
    if (asked === 'all') took = [];
  });
  process.on('disconnect', () => process.exit());
}

async function measure(): Promise<void> {
  const child = fork(fileURLToPath(import.meta.url), ['--receiver'], { execArgv: ['--import', 'tsx'] });
  const next = (): Promise<unknown> => new Promise((resolve) => child.once('message', resolve));
  const address = await next();
  const origin = `http://127.0.0.1:${isObject(address) ? address.port : 0}`;
  const ask = (what: 'count' | 'all'): Promise<Received> => {
    child.send(what);
    // The child sends nothing else.
    return next() as Promise<Received>;
  };
  const folder = mkdtempSync(join(tmpdir(), 'troupe-deliveries-'));
  let core: Core | undefined;
  const inside: Feature = {
    name: 'bench',
    open(opened) {
      core = opened;
      return { service: undefined };
    },
  };
  const server = createServer({
    ...{ name: 'bench', version: '1.0.0', features: [inside] },
    ...(values.memory ? {} : { store: sqlite(join(folder, 'events.db')) }),
    events: { callbacks: { allow: [origin] } },
    limits: { maxWebhooks: 2 * COUNT },
  });
  const properties = { n: { type: 'number' }, sentAt: { type: 'number' } } as const;
  const payload = { type: 'object', properties, required: ['n', 'sentAt'] } as const;
  const input = { type: 'object', properties: { n: { type: 'number' } } } as const;
  const one = server.event('one', { description: 'One subscription wants it.', payload, input });
  const all = server.event('all', { description: 'All subscriptions want it.', payload });
  await server.listen(memory().transport);
  if (!core) throw new Error('expected an open server');
  const { keys, store } = core;
  const { subscriptions } = core.service(events).webhooks.value;

  const subscribe = async (name: string, args: (n: number) => object): Promise<void> => {
    for (let from = 0; from < COUNT; from += 500)
      await Promise.all(
        Array.from({ length: Math.min(500, COUNT - from) }, async (_, index) => {
          const n = from + index;
          const key = { principal: `user ${n}`, url: `${origin}/hooks/${n}`, name, arguments: { ...args(n) } };
          const id = idOfSubscription(key);
          const reserved = subscriptions.reserve(key.principal);
          if ('message' in reserved) throw new Error('expected room for a subscription');
          const secrets = sealSecrets(keys.ring, id, { current: SECRET });
          const until = Date.now() + 3_600_000;
          const position = { by: '', epoch: '', seq: 0 };
          const auth = { principal: key.principal, scopes: [], claims: {} };
          const record = {
            ...key,
            id,
            profile: 'sep',
            secrets,
            auth,
            state: 'live',
            created: Date.now(),
            until,
          } as const;
          await subscriptions.create({ ...record, ...position });
        }),
      );
    await sleep(3_000);
  };
  const cpuOf = async (work: () => Promise<void>): Promise<{ readonly cpuMs: number; readonly wallMs: number }> => {
    const before = process.cpuUsage();
    const began = performance.now();
    await work();
    const { user, system } = process.cpuUsage(before);
    return { cpuMs: (user + system) / 1_000, wallMs: performance.now() - began };
  };
  const print = (line: string): void => void process.stdout.write(`${store.name}: ${line}\n`);
  const heap = (): number => {
    for (let time = 0; time < 3; time += 1) globalThis.gc?.();
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  };
  const wants = (part: string): boolean => values.only === undefined || values.only === part;

  const before = heap();
  if (wants('rest') || wants('selective')) {
    await subscribe('one', (n) => ({ n }));
    if (globalThis.gc) print(`${COUNT} subscriptions at rest: ${Math.round((heap() - before) / COUNT)} bytes each`);
  }
  if (wants('selective')) {
    const events = RATE * SECONDS;
    // The first one begins the topic, and opens a connection.
    await one.emit({ n: 0, sentAt: Date.now() });
    await sleep(1_000);
    await ask('all');
    const receiverBefore = (await ask('count')).cpuMs;
    const spent = await cpuOf(async () => {
      const began = performance.now();
      for (let sent = 0; sent < events; sent += 1) {
        await sleep(Math.max(0, began + (sent * 1_000) / RATE - performance.now()));
        void one.emit({ n: (sent * 7_919) % COUNT, sentAt: Date.now() });
      }
      while ((await ask('count')).count < events) await sleep(20);
    });
    const { took, cpuMs } = await ask('all');
    const sorted = took.toSorted((a, b) => a - b);
    print(
      `${RATE} events/s, each for one of ${COUNT}: p50 ${at(sorted, 0.5)} ms, p99 ${at(sorted, 0.99)} ms, most ${sorted.at(-1)} ms; ${(spent.cpuMs / events).toFixed(2)} ms of processor for an event, ${((cpuMs - receiverBefore) / events).toFixed(2)} of the receiver`,
    );
  }
  if (wants('all')) {
    await subscribe('all', () => ({}));
    for (let round = 0; round < 2; round += 1) {
      await ask('all');
      const receiverBefore = (await ask('count')).cpuMs;
      const spent = await cpuOf(async () => {
        await all.emit({ n: 0, sentAt: Date.now() });
        while ((await ask('count')).count < COUNT) await sleep(20);
      });
      const { cpuMs } = await ask('all');
      await sleep(3_000);
      print(
        `one event for all ${COUNT}: ${(spent.wallMs / 1_000).toFixed(2)} s; ${(spent.cpuMs / COUNT).toFixed(3)} ms of processor for a POST, ${((cpuMs - receiverBefore) / COUNT).toFixed(3)} of the receiver`,
      );
    }
  }
  await server.close();
  child.disconnect();
  rmSync(folder, { recursive: true, force: true });
}

if (values.receiver) receive();
else await measure();

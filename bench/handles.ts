/**
 * What handles cost: 100,000 of them in one process, durable events in a second, the time to wake, and that of an event of an instance
 * at rest beside a bare read and commit (`--quick`: fewer; `--memory`: no disk).
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import { parseArgs } from 'node:util';
import { assign, setup } from 'xstate';
import { createActorSystem } from '../src/core/kernel/actor-system.ts';
import { systemClock } from '../src/core/kernel/clock.ts';
import { type Limits, resolveLimits } from '../src/core/kernel/limits.ts';
import { quotasOf } from '../src/core/kernel/server-quotas.ts';
import { memoryStore } from '../src/core/store/memory-store.ts';
import type { Store } from '../src/core/store/store.ts';
import { Handles } from '../src/features/machines/handles.ts';
import { sqlite } from '../src/features/sqlite/sqlite.ts';

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    memory: { type: 'boolean', default: false },
    only: { type: 'string' },
  },
});
const { quick } = values;
const HANDLES = quick ? 10_000 : 100_000;
const EVENTS = quick ? 20_000 : 200_000;
/** Events on their way at once, each of a handle of its own. */
const IN_FLIGHT = 512;
/** Instances that are activated at once. */
const ACTIVATED = 64;
const CALLER = { principal: 'bench', ctx: undefined };

const machine = setup({
  types: { context: {} as { count: number; name: string }, events: {} as { type: 'count'; by: number } },
}).createMachine({
  id: 'counter',
  context: { count: 0, name: 'a counter that counts' },
  initial: 'counting',
  states: {
    counting: { on: { count: { actions: assign({ count: ({ context, event }) => context.count + event.by }) } } },
  },
});

function open(store: Store, limits: Partial<Limits>): Handles {
  const incident = (where: string, error: unknown): never => {
    throw new Error(where, { cause: error });
  };
  const handles = new Handles({
    store,
    limits: resolveLimits({ maxHandlesPerPrincipal: HANDLES, ...limits }),
    quotas: quotasOf(resolveLimits({ maxHandlesPerPrincipal: HANDLES, ...limits })),
    system: { ...createActorSystem({ clock: systemClock, log: () => {} }), incident },
  });
  handles.define({ name: 'counter', machine, version: '1', events: ['count'] });
  return handles;
}

async function inParallel(times: number, run: (n: number) => Promise<unknown>, width = IN_FLIGHT): Promise<void> {
  let next = 0;
  await Promise.all(
    Array.from({ length: Math.min(width, times) }, async () => {
      while (next < times) {
        next += 1;
        await run(next - 1);
      }
    }),
  );
}

function quantile(sorted: readonly number[], q: number): string {
  return (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? 0).toFixed(2);
}

/** Resident, and of that the heap, in MB. */
const memory = (): string => {
  globalThis.gc?.();
  const { rss, heapUsed } = process.memoryUsage();
  return `${Math.round(rss / 1024 / 1024)} MB resident, ${Math.round(heapUsed / 1024 / 1024)} MB heap`;
};

async function many(store: Store): Promise<void> {
  const handles = open(store, { maxAwakeHandles: 1_000 });
  await handles.restore();
  await handles.take(undefined);
  const before = memory();
  const ids: string[] = [];
  const began = performance.now();
  await inParallel(HANDLES, async () => {
    ids.push((await handles.create('counter', {}, CALLER)).handle);
  });
  const seconds = (performance.now() - began) / 1_000;
  const perSecond = Math.round(HANDLES / seconds);
  process.stdout.write(`${store.name}: ${HANDLES} handles at ${perSecond}/s; before ${before}; after ${memory()}\n`);
  const wakes: number[] = [];
  for (let n = 0; n < 1_000; n += 1) {
    const id = ids[(n * 89) % (ids.length - 1_000)] ?? '';
    const start = performance.now();
    await handles.get('counter', id, CALLER);
    wakes.push(performance.now() - start);
  }
  wakes.sort((a, b) => a - b);
  process.stdout.write(`${store.name}: wake p50 ${quantile(wakes, 0.5)} ms, p99 ${quantile(wakes, 0.99)} ms\n`);
  await handles.stop();
}

async function events(store: Store): Promise<void> {
  const handles = open(store, {});
  await handles.restore();
  await handles.take(undefined);
  const ids: string[] = [];
  for (let n = 0; n < IN_FLIGHT; n += 1) ids.push((await handles.create('counter', {}, CALLER)).handle);
  const acks: number[] = [];
  const loop = monitorEventLoopDelay({ resolution: 1 });
  loop.enable();
  const cpu = process.cpuUsage();
  const began = performance.now();
  await inParallel(EVENTS, async (n) => {
    const start = performance.now();
    await handles.send('counter', ids[n % IN_FLIGHT] ?? '', { type: 'count', data: { by: 1 } }, CALLER);
    acks.push(performance.now() - start);
  });
  const perSecond = Math.round(EVENTS / ((performance.now() - began) / 1_000));
  const { user, system } = process.cpuUsage(cpu);
  const each = Math.round((user + system) / EVENTS);
  loop.disable();
  acks.sort((a, b) => a - b);
  const main = (loop.percentile(99) / 1e6).toFixed(1);
  process.stdout.write(
    `${store.name}: ${perSecond} events/s, ${each} µs of processor each; ack p50 ${quantile(acks, 0.5)} ms, p99 ${quantile(acks, 0.99)} ms; main loop p99 ${main} ms\n`,
  );
  await handles.stop();
}

/** Activates instances at rest with an event each, and does only what the store must for that, in turns. */
async function activations(store: Store): Promise<void> {
  const handles = open(store, { maxAwakeHandles: 1 });
  await handles.restore();
  await handles.take(undefined);
  const ids: string[] = [];
  const count = quick ? 2_000 : 20_000;
  await inParallel(count, async () => {
    ids.push((await handles.create('counter', {}, CALLER)).handle);
  });
  const data = JSON.stringify({ state: 'counting', text: 'x'.repeat(300) });
  const bare = async (n: number): Promise<void> => {
    const actor = `handle/counter/${ids[n] ?? ''}`;
    await store.load(actor);
    await store.commit([{ type: 'snapshot', actor: `server/bare/${n}`, version: '1', data }]);
  };
  const ways = {
    'an event of an instance at rest': (n: number) =>
      handles.send('counter', ids[n] ?? '', { type: 'count', data: { by: 1 } }, CALLER),
    'a bare read and commit': bare,
  };
  const times = new Map<string, number[]>();
  const share = count / 10;
  for (let turn = 0; turn < 10; turn += 1)
    for (const [what, way] of Object.entries(ways)) {
      const taken = times.get(what) ?? [];
      times.set(what, taken);
      await inParallel(
        share,
        async (n) => {
          const start = performance.now();
          await way(turn * share + n);
          taken.push(performance.now() - start);
        },
        ACTIVATED,
      );
    }
  for (const [what, taken] of times) {
    taken.sort((a, b) => a - b);
    process.stdout.write(
      `${store.name}: ${what}, ${ACTIVATED} at once: p50 ${quantile(taken, 0.5)} ms, p99 ${quantile(taken, 0.99)} ms\n`,
    );
  }
  await handles.stop();
}

const folder = mkdtempSync(join(tmpdir(), 'troupe-handles-'));
try {
  const host = { clock: systemClock, log: () => {} };
  const runs = { many, events, activations };
  const chosen = values.only === undefined ? Object.values(runs) : [runs[values.only as keyof typeof runs]];
  for (const run of chosen) {
    const inMemory = memoryStore();
    await run(inMemory);
    await inMemory.close();
    if (values.memory) continue;
    const file = sqlite(join(folder, `${run.name}.db`));
    await file.open(host);
    await run(file);
    await file.close();
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}

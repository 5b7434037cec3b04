/**
 * What 100,000 timers cost that are due at once (`--quick`: 10,000; `--memory`: no disk; `--overdue`: they were due before the server
 * starts; `--spread`: they are due one after the other, 200 each second, and how late each is).
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { parseArgs } from 'node:util';
import { setup } from 'xstate';
import { createActorSystem } from '../src/core/kernel/actor-system.ts';
import { type Clock, systemClock } from '../src/core/kernel/clock.ts';
import { resolveLimits } from '../src/core/kernel/limits.ts';
import { quotasOf } from '../src/core/kernel/server-quotas.ts';
import { memoryStore } from '../src/core/store/memory-store.ts';
import type { Store } from '../src/core/store/store.ts';
import { Handles } from '../src/features/machines/handles.ts';
import { sqlite } from '../src/features/sqlite/sqlite.ts';

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    memory: { type: 'boolean', default: false },
    overdue: { type: 'boolean', default: false },
    spread: { type: 'boolean', default: false },
  },
});
const DUE = values.spread ? 4_000 : values.quick ? 10_000 : 100_000;
/** Milliseconds between two of them. */
const APART_MS = values.spread ? 5 : 0;
const HOUR_MS = 3_600_000;
/** Milliseconds that a server runs before the timers are due. */
const EARLY_MS = 10_000;
/** Instances that are created at once. */
const IN_FLIGHT = 512;
const CALLER = { principal: 'bench', ctx: undefined };

/** A clock whose dates jump, as after a restart of the process that long. */
let shift = 0;
const clock: Clock = {
  ...systemClock,
  now: () => systemClock.now(),
  after: (ms, callback) => systemClock.after(ms, callback),
  date: () => systemClock.date() + shift,
  dateIsSteady: true,
};

let due = 0;
const late: number[] = [];
let done: () => void = () => {};
const machine = setup({
  types: { context: {} as { due: number }, input: {} as { due: number } },
  delays: { until: ({ context }) => context.due - clock.date() },
  actions: {
    fired: ({ context }) => {
      late.push(clock.date() - context.due);
      if (late.length === DUE) done();
    },
  },
}).createMachine({
  id: 'reminder',
  context: ({ input }) => input,
  initial: 'waiting',
  states: { waiting: { after: { until: { target: 'over', actions: 'fired' } } }, over: {} },
});

function open(store: Store): Handles {
  const limits = resolveLimits({ maxHandlesPerPrincipal: 2 * DUE, maxHandles: 2 * DUE, maxAwakeHandles: 1_000 });
  const incident = (where: string, error: unknown): never => {
    throw new Error(where, { cause: error });
  };
  const handles = new Handles({
    ...{ store, limits, quotas: quotasOf(limits) },
    system: { ...createActorSystem({ clock, log: () => {} }), incident },
  });
  handles.define({ name: 'reminder', machine, version: '1', events: [] });
  return handles;
}

async function create(handles: Handles): Promise<void> {
  let left = DUE;
  const one = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      await handles.create('reminder', { due: due + left * APART_MS }, CALLER);
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, one));
}

/**
 * Prints how long a server takes to start, and then to fire the timers of all instances, and how late each is.
 *
 * @param early milliseconds that the server runs before they are due
 */
async function allFired(store: Store, early: number): Promise<void> {
  due = clock.date() + HOUR_MS;
  const before = await started(store);
  await create(before);
  await before.stop();
  const all = new Promise<void>((resolve) => {
    done = resolve;
  });
  shift = due - systemClock.date() - early;
  const opened = performance.now();
  const handles = await started(store);
  const start = (performance.now() - opened) / 1_000;
  await new Promise((resolve) => setTimeout(resolve, due - clock.date()));
  const cpu = process.cpuUsage();
  const began = performance.now();
  await all;
  const seconds = (performance.now() - began) / 1_000;
  const { user, system } = process.cpuUsage(cpu);
  const each = Math.round((user + system) / DUE);
  const where = `${values.memory ? 'in memory' : 'in a file'}, ${early > 0 ? 'in a running server' : 'before a start'}`;
  process.stdout.write(
    `${DUE} timers due ${values.spread ? 'one after the other' : 'at once'}, ${where}: ${seconds.toFixed(1)} s (${Math.round(DUE / seconds)}/s), ${each} µs of processor time each; start ${start.toFixed(1)} s\n`,
  );
  late.sort((a, b) => a - b);
  const at = (share: number): string => (late[Math.floor(late.length * share)] ?? 0).toFixed(0);
  if (values.spread) process.stdout.write(`late: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, most ${at(1 - 1 / DUE)} ms\n`);
  await handles.stop();
}

async function started(store: Store): Promise<Handles> {
  const handles = open(store);
  await handles.restore();
  await handles.take(undefined);
  return handles;
}

const alive = setInterval(() => {}, 60_000);
const folder = mkdtempSync(join(tmpdir(), 'troupe-timers-'));
try {
  const store = values.memory ? memoryStore() : sqlite(join(folder, 'timers.db'));
  await store.open({ clock, log: () => {} });
  await allFired(store, values.overdue ? 0 : EARLY_MS);
  await store.close();
} finally {
  rmSync(folder, { recursive: true, force: true });
}
clearInterval(alive);
process.stdout.write(`Node ${process.version}, load ${loadavg()[0]?.toFixed(1)}\n`);

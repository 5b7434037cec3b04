/** The limits of tools: rate, daily use, calls at a time and cost, exact to one call; and what a crash returns. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { createMachine } from 'xstate';
import { z } from 'zod';
import { Quota } from '../../../../src/core/kernel/quota.ts';
import { DIALECTS } from '../../../../src/core/protocol/dialects/index.ts';
import { isObject } from '../../../../src/core/protocol/json.ts';
import { META } from '../../../../src/core/protocol/meta.ts';
import { IncomingRequest } from '../../../../src/core/requests/active-request.ts';
import { compileInput } from '../../../../src/core/schema/compile-schema.ts';
import { memoryStore } from '../../../../src/core/store/memory-store.ts';
import type { Write } from '../../../../src/core/store/store.ts';
import { compileLimits } from '../../../../src/features/guard/limits/call-limits.ts';
import { LimitedCalls } from '../../../../src/features/guard/limits/limited-calls.ts';
import {
  type CallLimits,
  createServer,
  type JsonObject,
  type ServerOptions,
  type Store,
  type StoreAnswer,
  sqlite,
} from '../../../../src/index.ts';
import { connect, ErrorResponse, SimulatedClock, settled, type TestClient } from '../../../../src/testing/testing.ts';
import { startable } from '../../../harness/compiled.ts';
import { suite } from '../../../harness/door.ts';
import { inSession } from '../../../harness/memory.ts';
import { SCALE } from '../../../harness/scale.ts';
import { type OtherQuery, TestStore } from '../../../harness/test-store.ts';
import { wireChecker } from '../../../harness/wire.ts';

const test = suite('limits of tools');
const DAY_MS = 86_400_000;

interface Stage {
  readonly server: ReturnType<typeof createServer>;
  readonly clock: SimulatedClock;
  ran(): number;
}

function stage(limits: CallLimits<{ readonly sum: number }>, options: Partial<ServerOptions> = {}): Stage {
  const clock = new SimulatedClock();
  const server = createServer({ name: 's', version: '1', clock, log: () => {}, ...options });
  let ran = 0;
  server.tool('pay', { input: z.object({ sum: z.number().default(1) }), limits }, () => {
    ran += 1;
    return 'paid';
  });
  return { server, clock, ran: () => ran };
}

/** The text and the time of a refusal; undefined for a call that ran. */
function refusalOf(result: JsonObject): { text: string; retryMs: unknown } | undefined {
  if (result.isError !== true) return undefined;
  const [block] = Array.isArray(result.content) ? result.content : [];
  const meta = isObject(result._meta) ? result._meta : {};
  return { text: isObject(block) ? String(block.text) : '', retryMs: meta['io.troupe/retry-after-ms'] };
}

const pay = async (client: TestClient, args: JsonObject = {}, name = 'pay') =>
  refusalOf(await client.modern('tools/call', { name, arguments: args }));

async function payTimes(client: TestClient, times: number): Promise<void> {
  for (let n = 0; n < times; n += 1) assert.is(await pay(client), undefined, `call ${n + 1}`);
}

test('G-10 a rate: the 10th call of a minute runs, the 11th names the limit and when to retry, in both eras', async () => {
  for (const revision of ['2025-11-25', '2026-07-28'] as const) {
    const { server, clock, ran } = stage({ perMinute: 10 });
    const check = wireChecker(revision);
    const client = await connect(server, { onMessage: ({ direction, text }) => check(direction, text) });
    const legacy = revision === '2025-11-25';
    if (legacy) await client.initialize(revision);
    const call = async () => {
      const params = { name: 'pay', arguments: {} };
      return refusalOf(await (legacy ? client.send('tools/call', params) : client.modern('tools/call', params)));
    };
    for (let n = 0; n < 10; n += 1) assert.is(await call(), undefined);
    const expected = { text: 'Tool "pay" is limited: at most 10 a minute. Try again in 6 s.', retryMs: 6_000 };
    assert.equal(await call(), expected);
    await clock.advance(5_999);
    assert.is((await call())?.retryMs, 1);
    await clock.advance(1);
    assert.is(await call(), undefined);
    assert.is(ran(), 11);
    await server.close();
  }
});

test('G-10 a burst beside a rate, and principals apart', async () => {
  const { server, clock } = stage({ perSecond: 0.5, burst: 3 });
  const ada = await connect(server, { auth: { principal: 'ada' } });
  const bob = await connect(server, { auth: { principal: 'bob' } });
  await payTimes(ada, 3);
  assert.is((await pay(ada))?.text, 'Tool "pay" is limited: at most 0.5 a second, 3 at once. Try again in 2 s.');
  await payTimes(bob, 3);
  await clock.advance(4_000);
  await payTimes(ada, 2);
  assert.ok(await pay(ada));
  await server.close();
});

test('G-10 a call that a rule denies uses up nothing', async () => {
  const { server } = stage({ perDay: 2 });
  server.authorize(({ arguments: args }) => args.sum !== 13 || { deny: 'unlucky' });
  const client = await connect(server, { auth: { principal: 'ada' } });
  for (let n = 0; n < 5; n += 1) {
    const denied = await client.modern('tools/call', { name: 'pay', arguments: { sum: 13 } }).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    assert.ok(denied instanceof ErrorResponse && denied.code === -31004);
  }
  await payTimes(client, 2);
  assert.ok(await pay(client));
  await server.close();
});

test('G-10 a day: exact to one call, until midnight UTC', async () => {
  const { server, clock, ran } = stage({ perDay: 5 });
  const client = await connect(server);
  await payTimes(client, 5);
  await clock.advance(DAY_MS / 2);
  assert.equal(await pay(client), {
    text: 'Tool "pay" is limited: at most 5 a day. Try again in 12 h.',
    retryMs: DAY_MS / 2,
  });
  await clock.advance(DAY_MS / 2 - 1);
  assert.is((await pay(client))?.retryMs, 1);
  await clock.advance(1);
  await payTimes(client, 5);
  assert.ok(await pay(client));
  assert.is(ran(), 10);
  await server.close();
});

test('G-10 a day: a clock that is set back around midnight returns no calls, also after a restart', async () => {
  class SetBack extends SimulatedClock {
    backMs = 0;
    override date(): number {
      return super.date() - this.backMs;
    }
  }
  const folder = mkdtempSync(join(tmpdir(), 'troupe-limits-'));
  const clock = new SetBack(DAY_MS);
  const first = stage({ perDay: 3 }, { clock, store: sqlite(join(folder, 'a.db')) });
  const before = await connect(first.server);
  await payTimes(before, 2);
  clock.backMs = 1_000;
  await payTimes(before, 1);
  assert.equal(await pay(before), {
    text: 'Tool "pay" is limited: at most 3 a day. Try again in 25 h.',
    retryMs: DAY_MS + 1_000,
  });
  await first.server.close();
  const second = stage({ perDay: 3 }, { clock, store: sqlite(join(folder, 'a.db')) });
  const after = await connect(second.server);
  assert.ok(await pay(after));
  clock.backMs = 0;
  assert.ok(await pay(after));
  await clock.advance(DAY_MS);
  await payTimes(after, 3);
  await second.server.close();
  rmSync(folder, { recursive: true, force: true });
});

test('G-10 a cost: counts for the rate and the day; one that never fits, none, and a wrong one', async () => {
  const cost = ({ sum }: { readonly sum: number }): number => {
    if (sum === 13) throw new Error('unlucky');
    return sum;
  };
  const { server, clock, ran } = stage({ perSecond: 10, perDay: 25, cost });
  const client = await connect(server);
  assert.is(await pay(client, { sum: 7 }), undefined);
  assert.is((await pay(client, { sum: 4 }))?.retryMs, 100);
  assert.is(await pay(client, { sum: 3 }), undefined);
  assert.is(await pay(client, { sum: 0 }), undefined);
  assert.equal(await pay(client, { sum: 11 }), {
    text: 'Tool "pay" is limited: at most 10 a second; this call costs 11. Ask for less.',
    retryMs: undefined,
  });
  await clock.advance(1_000);
  assert.is(await pay(client, { sum: 10 }), undefined);
  await clock.advance(1_000);
  assert.match(
    (await pay(client, { sum: 6 }))?.text ?? '',
    'at most 25 a day; this call costs 6, and 5 are left. Try again in 24 h.',
  );
  assert.is(await pay(client, { sum: 5 }), undefined);
  assert.is(ran(), 5);
  const never = stage({ perDay: 5, cost });
  const other = await connect(never.server);
  assert.equal(await pay(other, { sum: 6 }), {
    text: 'Tool "pay" is limited: at most 5 a day; this call costs 6, and 5 are left. Ask for less.',
    retryMs: undefined,
  });
  await never.server.close();
  for (const sum of [13, -1]) {
    const error = await client.modern('tools/call', { name: 'pay', arguments: { sum } }).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    assert.ok(error instanceof ErrorResponse && error.code === -32603, String(sum));
  }
  assert.is(ran(), 5);
  await server.close();
});

test('invalid arguments cost 1, so that they are limited, too', async () => {
  const { server, ran } = stage({ perMinute: 2, cost: ({ sum }) => sum });
  const client = await connect(server);
  for (let n = 0; n < 2; n += 1) assert.match((await pay(client, { sum: 'x' }))?.text ?? '', 'arguments');
  assert.match((await pay(client, { sum: 'x' }))?.text ?? '', 'is limited');
  assert.is(ran(), 0);
  await server.close();
});

interface Gate {
  readonly server: ReturnType<typeof createServer>;
  readonly clock: SimulatedClock;
  readonly began: number[];
  readonly open: (() => void)[];
}

/** A tool of which two calls run at a time, each until it is opened. */
function gate(): Gate {
  const clock = new SimulatedClock();
  const server = createServer({ name: 's', version: '1', clock, log: () => {}, limits: { timeoutMs: 10_000 } });
  const began: number[] = [];
  const open: (() => void)[] = [];
  server.tool('wait', { input: z.object({ n: z.number() }), limits: { concurrent: 2 } }, ({ n }) => {
    began.push(n);
    return new Promise((resolve) => open.push(() => resolve(`${n}`)));
  });
  return { server, clock, began, open };
}

const wait = (client: TestClient, n: number) => client.modern('tools/call', { name: 'wait', arguments: { n } });

test('G-10 a refusal is no stored reply: the same call, with the same key, runs when there is room', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-limits-'));
  let full = false;
  const to = (): void => {
    if (full) throw new Error('the disk is full');
  };
  const { server, clock, ran } = stage(
    { perMinute: 1 },
    { store: sqlite(join(folder, 'a.db')), audit: { to, required: true } },
  );
  const client = await connect(server, { auth: { principal: 'ada' } });
  const keyed = async (key: string) =>
    refusalOf(
      await client.modern('tools/call', { name: 'pay', arguments: {} }, { [META.idempotencyKey]: key.repeat(20) }),
    );
  assert.is(await keyed('a'), undefined);
  assert.ok(await keyed('b'));
  assert.ok(await keyed('b'));
  await clock.advance(60_000);
  assert.is(await keyed('b'), undefined);
  await clock.advance(60_000);
  full = true;
  assert.match(String(await keyed('c').catch((error: unknown) => error)), 'audit');
  full = false;
  await clock.advance(60_000);
  assert.is(await keyed('c'), undefined);
  for (const key of ['a', 'b', 'c']) assert.is(await keyed(key), undefined, 'a call that has run is not repeated');
  assert.is(ran(), 3);
  await server.close();
  rmSync(folder, { recursive: true, force: true });
});

test('G-10 calls at a time: two run, eight wait in order, the next is refused', async () => {
  const { server, began, open } = gate();
  const client = await connect(server);
  const calls = Array.from({ length: 10 }, (_, n) => wait(client, n));
  await settled();
  assert.equal(began, [0, 1]);
  assert.equal(refusalOf(await wait(client, 10)), {
    text: 'Tool "wait" is limited: at most 2 at a time, and 8 wait. Try again in 1 s.',
    retryMs: 1_000,
  });
  for (let n = 0; n < 10; n += 1) {
    open[n]?.();
    await calls[n];
    await settled();
    assert.is(began.length, Math.min(10, n + 3));
  }
  assert.equal(began, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  await server.close();
});

test('G-10 a waiting call leaves the queue when it is cancelled, at its deadline, and with its session', async () => {
  const { server, clock, began, open } = gate();
  const client = await connect(server);
  const running = [wait(client, 0), wait(client, 1)];
  const session = await inSession(server);
  const failing = wait(client, 2).then(
    () => 'ran',
    (error: unknown) => error,
  );
  void session.send('tools/call', { name: 'wait', arguments: { n: 3 } }).catch(() => {});
  const cancelled = client.raw(
    JSON.stringify({
      ...{ jsonrpc: '2.0', id: 'c', method: 'tools/call' },
      params: {
        ...{ name: 'wait', arguments: { n: 4 } },
        _meta: {
          'io.modelcontextprotocol/protocolVersion': '2026-07-28',
          'io.modelcontextprotocol/clientCapabilities': {},
        },
      },
    }),
  );
  await settled();
  client.notify('notifications/cancelled', { requestId: 'c' });
  const closing = session.close();
  // The grace time of its connection.
  await clock.advance(3_000);
  await closing;
  await settled();
  await cancelled;
  for (let n = 5; n < 12; n += 1) void wait(client, n).catch(() => {});
  await settled();
  // Seven and the one that times out wait: the queue is full.
  assert.ok(refusalOf(await wait(client, 12)));
  await clock.advance(10_000);
  const error = await failing;
  assert.ok(error instanceof ErrorResponse && error.code === -31002);
  for (const each of running) await each.catch(() => {});
  open[0]?.();
  open[1]?.();
  await settled();
  // All that waited timed out with it: nothing is left to run.
  assert.equal(began, [0, 1]);
  const last = wait(client, 20);
  await settled();
  open[2]?.();
  await last;
  assert.equal(began, [0, 1, 20]);
  await server.close();
});

test('G-10 the tools of a machine have the limits of its options', async () => {
  const server = createServer({ name: 's', version: '1', clock: new SimulatedClock(), log: () => {} });
  const machine = createMachine({
    initial: 'on',
    states: { on: { on: { tick: 'off' } }, off: { on: { tick: 'on' } } },
  });
  server.machine('lamp', machine, { events: { tick: true }, limits: { create: { perDay: 1 }, tick: { perDay: 2 } } });
  const client = await connect(server, { auth: { principal: 'ada' } });
  const made = await client.modern('tools/call', { name: 'lamp_create', arguments: {} });
  const content = isObject(made.structuredContent) ? made.structuredContent : {};
  const handle = String(content.handle);
  assert.match((await pay(client, {}, 'lamp_create'))?.text ?? '', 'Tool "lamp_create" is limited: at most 1 a day');
  for (let n = 0; n < 2; n += 1) assert.is(await pay(client, { handle }, 'lamp_tick'), undefined);
  assert.ok(await pay(client, { handle }, 'lamp_tick'));
  assert.is(await pay(client, { handle }, 'lamp_get'), undefined);
  await server.close();
});

test('a client that asks for a task gets an error, which it can read in the place of the task', async () => {
  const { server } = stage({ perMinute: 1 });
  server.tool('long', { task: 'allowed', limits: { perMinute: 1 } }, () => 'done');
  const client = await inSession(server, '2025-11-25', { tasks: {} });
  const call = () => client.send('tools/call', { name: 'long', arguments: {}, task: {} });
  await call();
  const error = await call().then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof ErrorResponse && error.code === -31001);
  assert.match(String(error.message), 'Tool "long" is limited: at most 1 a minute. Try again in 60 s.');
  await server.close();
});

test('refusals are counted by their limit, and audited once in ten seconds', async () => {
  const seen: (string | undefined)[] = [];
  const { server } = stage(
    { perMinute: 1 },
    { audit: { to: ({ event, rule }) => void seen.push(`${event} ${rule}`), events: ['limited'] } },
  );
  const client = await connect(server);
  await payTimes(client, 1);
  for (let n = 0; n < 5; n += 1) assert.ok(await pay(client));
  assert.match(server.metrics(), /troupe_refused_total\{[^}]*limits\.perMinute[^}]*\} 5\n/);
  assert.equal(seen, ['limited limits.perMinute']);
  await server.close();
});

/** Runs calls of one tool by any principal, without a server. */
function bare(options: CallLimits, store: Store): { run(principal: string): unknown; readonly retained: Quota } {
  const retained = new Quota({ what: 'bytes', max: 1e9, option: 'o' });
  const limits = compileLimits(options);
  const limited = new LimitedCalls({
    ...{ clock: new SimulatedClock(), store, retained, metrics: { refused() {} }, audit: undefined, notRun: undefined },
    log() {},
  });
  const input = compileInput(undefined, 'a test');
  const own = { timeoutMs: undefined, rerun: undefined, task: 'never', output: undefined } as const;
  const implementation = { label: 'tool "t"', input, ...own, handler: () => 'done' };
  const run = (principal: string): unknown => {
    if (!limits) return undefined;
    const client = {
      ...{
        dialect: DIALECTS['2026-07-28'],
        info: undefined,
        capabilities: {},
        logLevel: undefined,
        session: undefined,
      },
      principal,
    };
    const operation = { method: 'tools/call', name: 't', arguments: {}, input: undefined, task: undefined } as const;
    const nowhere = { address: '', send(): void {} };
    const request = new IncomingRequest(1, operation, 'tools', client, undefined, undefined, undefined, nowhere, 0);
    const tool = { name: 't', inputSchema: { type: 'object' } } as const;
    const call = { tool, arguments: {}, implementation: { ...implementation, limits } };
    return limited.gate({ request, call }, () => ({ content: [] }));
  };
  return { run, retained };
}

test('G-10 entries of principals are limited, and counted as memory', () => {
  const { run, retained } = bare({ perDay: 2, perMinute: 2 }, memoryStore());
  for (let n = 0; n < 10_200; n += 1) {
    run(`p${n}`);
    // Used all the time, so it is not the one that was idle longest.
    if (n < 2) run('p0');
  }
  assert.is(retained.all, 10_000 * 600);
});

test('G-10 no use is forgotten while the store writes it', async () => {
  const never = new Promise<void>(() => {});
  const store = Object.assign(memoryStore(), { durable: true, reply: async () => undefined, commit: () => never });
  const { run } = bare({ perDay: 60 }, store);
  const refused = async (): Promise<boolean> => JSON.stringify(await run('ada')).includes('isError');
  for (let n = 0; n < 60; n += 1) assert.not(await refused());
  for (let n = 0; n < 10_010; n += 1) await run(`p${n}`);
  assert.ok(await refused());
});

const FIXTURE = startable('test/fixtures/tool-limits/spending.ts');

async function spend(folder: string, count: number, end: 'kill' | 'stop'): Promise<number> {
  const child = spawn(process.execPath, [FIXTURE, folder, String(count), end], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exit = once(child, 'exit');
  let out = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text;
  });
  await exit;
  return Number(out);
}

function actorOf([first]: readonly Write[]): unknown {
  return first && 'actor' in first ? first.actor : undefined;
}

test('G-10 a day in a store that fails: calls are counted in memory, and the log reports it once', async () => {
  const logged: string[] = [];
  const isUse = (actor: unknown): boolean => String(actor).startsWith('server/limits/');
  const burns = (): Promise<never> => Promise.reject(new Error('the disk burns'));
  const store = new (class extends TestStore {
    override write(writes: readonly Write[]): Promise<void> {
      return isUse(actorOf(writes)) ? burns() : super.write(writes);
    }

    override read(query: OtherQuery): Promise<StoreAnswer> {
      return query.type === 'reply' && isUse(query.actor) ? burns() : super.read(query);
    }
  })();
  const { server, ran } = stage(
    { perDay: 120 },
    { store, log: (_level, message) => void (message.includes('daily limits') && logged.push(message)) },
  );
  for (const principal of ['ada', 'bob']) {
    const client = await connect(server, { auth: { principal } });
    await payTimes(client, 120);
    for (let n = 0; n < 5; n += 1) assert.match((await pay(client))?.text ?? '', 'at most 120 a day');
    await client.close();
  }
  await server.close();
  assert.is(ran(), 240);
  assert.equal(logged, ['daily limits are counted in memory only, until the store works: the disk burns']);
});

test.full(
  'G-10 a day in a durable store: exact after an orderly end, and at most 100 calls back after a kill',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'troupe-limits-'));
    try {
      if (SCALE === 'quick') assert.is(await spend(folder, 260, 'kill'), 260);
      else {
        assert.is(await spend(folder, 60, 'stop'), 60);
        assert.is(await spend(folder, 200, 'kill'), 200);
      }
      const rest = await spend(folder, 160, 'stop');
      assert.ok(rest >= 40 && rest <= 140, `${rest} of 40`);
      // A process for each: the quick test of an orderly end has a store in memory.
      if (SCALE !== 'quick') assert.is(await spend(folder, 4, 'stop'), 0);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
);

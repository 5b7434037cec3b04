/** Deliveries that outlive processes and nodes: a real kill -9 with a file, and processes and nodes in memory that are left at each step. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { systemClock } from '../../../src/core/kernel/clock.ts';
import { memoryStore } from '../../../src/core/store/memory-store.ts';
import type { Store } from '../../../src/core/store/store.ts';
import type { HookOptions } from '../../../src/features/hooks/define-hook.ts';
import type { Hook } from '../../../src/features/hooks/registered-hooks.ts';
import { http, memory, type Server, StoreError, sqlite } from '../../../src/index.ts';
import { SimulatedClock } from '../../../src/testing/testing.ts';
import { github } from '../../../src/webhooks.ts';
import { startable } from '../../harness/compiled.ts';
import { suite } from '../../harness/door.ts';
import { loggedServer } from '../../harness/memory.ts';
import { MemoryDatabase, type MemoryProcess } from '../../harness/memory-nodes.ts';
import { TestStore } from '../../harness/test-store.ts';
import { until } from '../../harness/wait.ts';
import { byGithub, hmacOf, PATH, receiver, SECRET } from './support.ts';

const test = suite('durable deliveries');
const folder = mkdtempSync(join(tmpdir(), 'troupe-hooks-'));
test.after(() => rmSync(folder, { recursive: true, force: true }));

const BODY = '{"n":1}';
const KEYS = { keys: ['k'.repeat(32)] };

// Each of the others about R-64 leaves a process in memory, and a real one takes half a second to start.
test.full(
  'R-64: a delivery whose process is killed while its handler runs is handled by the next one, with the same key',
  async () => {
    const [path, log] = [join(folder, 'killed.db'), join(folder, 'killed.log')];
    const signature = `sha256=${hmacOf(SECRET, BODY)}`;
    const args = [startable('test/fixtures/hooks/dying.ts'), path, log, BODY, signature];
    const [, signal] = await once(spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'inherit'] }), 'exit');
    assert.is(signal, 'SIGKILL');
    const lines = readFileSync(log, 'utf8').trim().split('\n').sort();
    assert.is(lines[0], 'answered 200');
    const { server, logged, handled, send } = await receiver({}, { store: sqlite(path), clock: systemClock });
    await until(() => handled.length === 1);
    assert.is(`handled ${handled[0]?.delivery.key}`, lines[1]);
    assert.is(handled[0]?.attempt.attempt, 2);
    assert.is(String(handled[0]?.delivery.raw), BODY);
    assert.is((await send(BODY)).status, 200);
    await server.close();
    assert.is(handled.length, 1);
    assert.is(logged.length, 1);
    assert.match(logged[0] ?? '', /was not closed by its last process/);
  },
);

/** A store of a process that ends at a query. */
class Dying extends TestStore {
  readonly #type: string;
  constructor(inner: Store, type: string) {
    super(inner);
    this.#type = type;
  }
  override ask(query: Parameters<Store['ask']>[0]): ReturnType<Store['ask']> {
    return query.type === this.#type ? new Promise(() => {}) : super.ask(query);
  }
}

test('R-64: a process that ends before it answers has lost nothing: the delivery is handled once, whether its sender repeats it or not', async () => {
  for (const [dies, repeats] of [
    ['commit', true],
    ['claim', true],
    ['claim', false],
  ] as const) {
    const inner = memoryStore();
    const first = await receiver({}, { ...KEYS, store: new Dying(inner, dies) });
    void first.send(BODY);
    await first.clock.advance(10);
    assert.is(first.handled.length, 0);
    const next = await receiver({}, { ...KEYS, store: new TestStore(inner) });
    if (repeats) assert.is((await next.send(BODY)).status, 200);
    await next.clock.advance(10);
    assert.is(next.handled.length, 1, `${dies} ${repeats}`);
    if (!repeats) assert.is((await next.send(BODY)).status, 200);
    await next.clock.advance(10_000);
    assert.is(next.handled.length, 1, `${dies} ${repeats}`);
    await next.server.close();
  }
});

test('R-64: a delivery with which each process ends is a dead letter after its attempts', async () => {
  const inner = memoryStore();
  const clock = new SimulatedClock();
  const options = { attempts: 3, to: () => new Promise<void>(() => {}) };
  const first = await receiver(options, { ...KEYS, store: new TestStore(inner) }, clock);
  await first.send(BODY);
  let last = first;
  for (const attempt of [2, 3]) {
    last = await receiver(options, { ...KEYS, store: new TestStore(inner) }, clock);
    await clock.advance(10);
    const [record] = await last.hook.deliveries();
    assert.equal([record?.state, record?.attempt], ['running', attempt]);
  }
  const end = await receiver(options, { ...KEYS, store: new TestStore(inner) }, clock);
  await clock.advance(10);
  const [dead] = await end.hook.deliveries();
  assert.is(dead?.state, 'dead');
  assert.match(dead?.error ?? '', /each process that attempted this delivery ended/);
});

test('R-65: the next attempt keeps its time over a restart, and a restart before it is no attempt', async () => {
  const inner = memoryStore();
  const clock = new SimulatedClock();
  const first = await receiver({ retryMs: 60_000 }, { ...KEYS, store: new TestStore(inner) }, clock);
  first.work = () => assert.unreachable('closed');
  await first.send(BODY);
  await clock.advance(10);
  await first.server.close();
  const next = await receiver({ retryMs: 60_000 }, { ...KEYS, store: new TestStore(inner) }, clock);
  await clock.advance(59_000);
  assert.is(next.handled.length, 0);
  await clock.advance(1_000);
  assert.is(next.handled[0]?.attempt.attempt, 2);
  await next.server.close();
});

test('a server that closes waits for its handlers, and leaves those that last longer to the next process', async () => {
  const inner = memoryStore();
  const first = await receiver({}, { ...KEYS, store: new TestStore(inner) });
  let end = (): void => {};
  first.work = ({ delivery }) =>
    String(delivery.raw) === '[1]'
      ? new Promise<void>((resolve) => {
          end = resolve;
        })
      : new Promise(() => {});
  await first.send('[1]');
  await first.send('[2]');
  await first.clock.advance(1);
  const closed = first.server.close();
  await first.clock.advance(1);
  assert.is(first.handled[1]?.attempt.signal.aborted, false);
  end();
  await first.clock.advance(3_000);
  await first.clock.advance(3_000);
  await closed;
  assert.is(first.handled[1]?.attempt.signal.aborted, true);
  const next = await receiver({}, { ...KEYS, store: new TestStore(inner) });
  await next.clock.advance(10);
  assert.equal(
    next.handled.map(({ delivery, attempt }) => [String(delivery.raw), attempt.attempt]),
    [['[2]', 2]],
  );
  await next.server.close();
});

test('deliveries of a path without a webhook wait in the store until a program registers it, also after it listens', async () => {
  const inner = memoryStore();
  const first = await receiver({ to: () => new Promise<void>(() => {}) }, { ...KEYS, store: new TestStore(inner) });
  await first.send(BODY);
  await first.clock.advance(1);
  const clock = new SimulatedClock();
  const { server } = loggedServer({ ...KEYS, clock, store: new TestStore(inner) });
  await server.listen(memory().transport);
  await clock.advance(10);
  const handled: unknown[] = [];
  server.webhook(PATH, { verify: github({ secret: SECRET }), to: ({ body }) => void handled.push(body) });
  await clock.advance(10);
  assert.equal(handled, [{ n: 1 }]);
  await server.close();
});

test('a store that fails after the handler has returned is written again, and the handler does not run again', async () => {
  let fails = false;
  const inner = memoryStore();
  const store = new (class extends TestStore {
    override write(...given: Parameters<TestStore['write']>): Promise<void> {
      return fails ? Promise.reject(new StoreError('full', 'no space')) : super.write(...given);
    }
  })(inner);
  const received = await receiver({}, { ...KEYS, store });
  received.work = () => {
    fails = true;
  };
  await received.send(BODY);
  await received.clock.advance(5_000);
  assert.match(received.logged[0] ?? '', /is not up to date in the store, and may be attempted again: no space/);
  fails = false;
  await received.clock.advance(60_000);
  assert.is(received.handled.length, 1);
  await received.server.close();
  const next = await receiver({}, { ...KEYS, store: new TestStore(inner) });
  await next.clock.advance(10);
  assert.is(next.handled.length, 0);
  await next.server.close();
});

interface Node {
  readonly server: Server;
  readonly process: MemoryProcess;
  readonly hook: Hook;
  readonly handled: unknown[];
  send(body: string): Promise<number>;
}

async function node(database: MemoryDatabase, options: Partial<HookOptions> = {}): Promise<Node> {
  const process = database.process();
  const { server } = loggedServer({
    ...{ store: process.store, limits: { graceMs: 100 } },
    cluster: { listen: '127.0.0.1:0', secret: 'a secret that all nodes of this test share' },
  });
  const handled: unknown[] = [];
  const hook = server.webhook(PATH, {
    verify: github({ secret: SECRET }),
    to: ({ body }) => void handled.push(body),
    ...options,
  });
  const transport = http({ port: 0 });
  await server.listen(transport);
  const url = new URL(PATH, transport.url);
  const send = async (body: string): Promise<number> =>
    (await fetch(url, { method: 'POST', body, headers: byGithub(body) })).status;
  return { server, process, hook, handled, send };
}

test('R-66: any node takes a delivery, equal ones at several nodes are handled once, and a node that dies leaves its own to the others', async () => {
  const database = new MemoryDatabase(systemClock);
  const [one, two] = [await node(database), await node(database)];
  // A node without a cell takes nothing.
  await until(() => [one, two].every(({ server }) => server.readiness().ready));
  const statuses = await Promise.all([1, 2, 3].flatMap((n) => [one.send(`[${n}]`), two.send(`[${n}]`)]));
  assert.equal(new Set(statuses), new Set([200]));
  const all = (): readonly unknown[] => [...one.handled, ...two.handled].flat();
  await until(() => all().length >= 3);
  assert.equal([...all()].sort(), [1, 2, 3]);
  // A third one begins a handler, and dies.
  let begun = false;
  const three = await node(database, {
    to() {
      begun = true;
      return new Promise(() => {});
    },
  });
  await until(() => three.server.readiness().ready);
  assert.is(await three.send('[4]'), 200);
  await until(() => begun);
  three.process.kill();
  await until(
    () => all().length === 4,
    () => JSON.stringify(all()),
  );
  assert.is(await one.send('[4]'), 200);
  // What one node has received, another sends again.
  const [first] = await one.hook.deliveries({ state: 'done', limit: 1 });
  const count = all().length;
  if (first) {
    assert.ok(await two.hook.again(first.ref));
    await until(() => all().length === count + 1);
  }
  three.process.clear();
  for (const { server } of [three, two, one]) await server.close();
  assert.equal(database.violations, []);
});

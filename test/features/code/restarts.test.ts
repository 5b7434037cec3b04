/** Runs of scripts that outlive their process: whatever the journal lacked when it died, no effect happens twice, and the script learns how its calls ended. */
import * as assert from 'uvu/assert';
import { isObject, type JsonObject } from '../../../src/core/protocol/json.ts';
import { META } from '../../../src/core/protocol/meta.ts';
import { launchedBy } from '../../../src/core/server/launcher.ts';
import { memoryStore } from '../../../src/core/store/memory-store.ts';
import type { Store, StoreAnswer, StoreQuery, Write } from '../../../src/core/store/store.ts';
import type { CodeOptions } from '../../../src/features/code/code-options.ts';
import { connect, SimulatedClock, type TestClient } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { loggedServer } from '../../harness/memory.ts';
import { textOf } from '../../harness/results.ts';
import { times } from '../../harness/scale.ts';
import { TestStore } from '../../harness/test-store.ts';
import { until } from '../../harness/wait.ts';
import { EXTENSION, idOf, keysOf } from '../tasks/support.ts';
import { asked, pass, pausedIn, resultIn, runModern, type Workshop, workshop } from './support.ts';

const test = suite('runs of scripts after a restart');

/** A store of a process that dies with one of its writes to a journal: nothing that comes later is answered. */
class DyingStore extends TestStore {
  readonly #at: number;
  readonly #isWritten: boolean;
  /** The kinds of the events of each write. */
  readonly writes: string[] = [];
  dead = false;

  /** @param at the number of the write, 0 for none @param isWritten it is in the store, and its process has not learned it */
  constructor(inner: Store, at: number, isWritten: boolean) {
    super(inner);
    this.#at = at;
    this.#isWritten = isWritten;
  }

  override async ask(query: StoreQuery): Promise<StoreAnswer> {
    if (this.dead) return new Promise(() => {});
    const kinds = query.type === 'commit' ? kindsIn(query.writes) : '';
    if (kinds === '') return super.ask(query);
    this.writes.push(kinds);
    if (this.writes.length !== this.#at) return super.ask(query);
    this.dead = true;
    if (this.#isWritten) await super.ask(query);
    return new Promise(() => {});
  }
}

function kindsIn(writes: readonly Write[]): string {
  return writes
    .flatMap((write) => (write.type === 'event' && write.stream.startsWith('journal') ? [write.kind] : []))
    .join(' ');
}

/** It writes, reads beside a write, asks, sleeps, and writes again. */
const SCRIPT = `
const done = [];
const write = async (n) => { try { done.push(await t.write({ n })); } catch (error) { done.push(error.carriedOut); } };
await write(1);
const [{ double }] = await Promise.all([t.read({ n: 2 }), write(3)]);
const { name } = await t.who();
await sleep(1000);
await write(4);
return [done, double, name];`;

interface Outcome {
  readonly text: string;
  readonly written: readonly unknown[];
  readonly writes: readonly string[];
}

/** Runs the script as a task by a process that dies, and by the next one to its end. */
async function afterDeath(at: number, isWritten: boolean, settings?: CodeOptions): Promise<Outcome> {
  const inner = memoryStore();
  const clock = new SimulatedClock();
  const store = new DyingStore(inner, at, isWritten);
  const first = workshop({ store }, settings, clock);
  const client = await connect(first.server, { auth: { principal: 'ada' } });
  const task = idOf(await call(client, 'tools/call', { name: 'run_code_task', arguments: { code: SCRIPT } }));
  const alive = await ended(first, client, task, () => store.dead);
  if (alive !== undefined) return { text: alive, written: first.written, writes: store.writes };
  const second = workshop({ store: new TestStore(inner) }, settings, clock);
  const text = await ended(second, await connect(second.server, { auth: { principal: 'ada' } }), task, () => false);
  return { text: String(text), written: [...first.written, ...second.written], writes: store.writes };
}

function call(client: TestClient, method: string, params: JsonObject): Promise<JsonObject> {
  return client.modern(method, params, { [META.clientCapabilities]: EXTENSION });
}

/** Answers the questions of a task until it ends. @returns the text of its result; undefined if its process is dead */
async function ended(
  made: Workshop,
  client: TestClient,
  taskId: string,
  isDead: () => boolean,
  meanwhile: (made: Workshop) => Promise<void> = () => Promise.resolve(),
): Promise<string | undefined> {
  for (let turns = 0; turns < 200; turns += 1) {
    await pass(made.clock, 100);
    if (isDead()) return undefined;
    await meanwhile(made);
    if (isDead()) return undefined;
    const look = await call(client, 'tasks/get', { taskId });
    if (isObject(look.result)) return textOf(look.result);
    if (look.status === 'failed') return JSON.stringify(look);
    const inputResponses = Object.fromEntries(
      keysOf(look).map((key) => [key, { action: 'accept', content: { name: 'Ada', decision: 'approve' } }]),
    );
    if (keysOf(look).length > 0) await call(client, 'tasks/update', { taskId, inputResponses });
  }
  throw new Error('expected the task to end');
}

const whole = afterDeath(0, false);
/** The same, and the user approves each write. */
const asking = afterDeath(0, false, {});

test('a run that is not interrupted writes its journal in order', async () => {
  const { text, written, writes } = await whole;
  assert.match(text, '{"result":[["wrote 1","wrote 3","wrote 4"],4,"Ada"]');
  assert.equal(written, [1, 3, 4]);
  assert.equal(writes, [
    ...['begun', 'started', 'delivered', 'started', 'delivered', 'delivered', 'asked', 'answered', 'delivered'],
    ...['sleeping', 'delivered', 'started', 'delivered', 'ended'],
  ]);
});

test('a run whose writes the user approves carries each out once', async () => {
  const { text, written } = await asking;
  assert.match(text, '{"result":[["wrote 1","wrote 3","wrote 4"],4,"Ada"]');
  assert.equal(written, [1, 3, 4]);
});

/** The quick run ends a process at each third write: those of one kind are handled alike. */
const STRIDE = times(1, { quick: 3 });

for (const settings of [undefined, {}])
  for (const isWritten of [false, true])
    (settings && isWritten ? test.full : test)(
      `a process that dies ${isWritten ? 'after' : 'before'} any write of the journal repeats no effect, ${settings ? 'with' : 'without'} approvals of the user`,
      async () => {
        const { writes } = await (settings ? asking : whole);
        for (const [index, kinds] of writes.entries()) {
          if (index % STRIDE !== 0) continue;
          const { text, written } = await afterDeath(index + 1, isWritten, settings);
          const where = `${isWritten ? 'after' : 'before'} write ${index + 1} (${kinds}): ${text}, wrote ${written}`;
          assert.is(new Set(written).size, written.length, where);
          const value: unknown = JSON.parse(text);
          const result: unknown = isObject(value) ? value.result : undefined;
          const [done, ...others]: readonly unknown[] = Array.isArray(result) ? result : [];
          assert.equal(others, [4, 'Ada'], where);
          // The script learns of each write that it was carried out, or that this is not known.
          for (const [place, n] of [1, 3, 4].entries()) {
            const learned: unknown = Array.isArray(done) ? done[place] : undefined;
            assert.ok(learned === `wrote ${n}` ? written.includes(n) : learned === 'unknown', where);
          }
        }
      },
    );

/** Runs a call that somebody else must approve by a process that dies, and by the next one to its end. */
async function approvedAfterDeath(at: number, isWritten: boolean): Promise<Outcome> {
  const inner = memoryStore();
  const clock = new SimulatedClock();
  const store = new DyingStore(inner, at, isWritten);
  const code = 'try { return await t.write({ n: 1 }); } catch ({ carriedOut }) { return carriedOut; }';
  const byOps = ({ server }: Workshop): void => {
    server.authorize(({ element }) => element.name !== 'write' || { approve: { by: { scope: 'ops' } } }, {
      ...{ name: 'writes', version: '1' },
    });
  };
  const decide = async ({ server }: Workshop): Promise<void> => {
    for (const { id } of await server.approvals.list())
      await server.approvals.decide(id, { approver: { principal: 'olga', scopes: ['ops'] }, decision: 'approve' });
  };
  const first = workshop({ store }, undefined, clock);
  byOps(first);
  const client = await connect(first.server, { auth: { principal: 'ada' } });
  const task = idOf(await call(client, 'tools/call', { name: 'run_code_task', arguments: { code } }));
  const alive = await ended(first, client, task, () => store.dead, decide);
  if (alive !== undefined) return { text: alive, written: first.written, writes: store.writes };
  const second = workshop({ store: new TestStore(inner) }, undefined, clock);
  byOps(second);
  const again = await connect(second.server, { auth: { principal: 'ada' } });
  const text = await ended(second, again, task, () => false, decide);
  return { text: String(text), written: [...first.written, ...second.written], writes: store.writes };
}

const approved = approvedAfterDeath(0, false);

test('a call that somebody else approves is held, started again, and delivered', async () => {
  const { text, written, writes } = await approved;
  assert.match(text, '{"result":"wrote 1"');
  assert.equal(written, [1]);
  assert.equal(writes, ['begun', 'started', 'held', 'started', 'delivered', 'ended']);
});

for (const isWritten of [false, true])
  test(`a process that dies ${isWritten ? 'after' : 'before'} any write of a held call carries it out once or never`, async () => {
    const { writes } = await approved;
    for (const [index, kinds] of writes.entries()) {
      const { text, written } = await approvedAfterDeath(index + 1, isWritten);
      const where = `${isWritten ? 'after' : 'before'} write ${index + 1} (${kinds}): ${text}, wrote ${written}`;
      const value: unknown = JSON.parse(text);
      const result: unknown = isObject(value) ? value.result : undefined;
      assert.ok(result === 'wrote 1' ? written.length === 1 : result === 'unknown' && written.length <= 1, where);
    }
  });

test('a script that is a task continues in the next process when its own is closed', async () => {
  for (const code of ['await sleep(60000); return t.write({ n: 1 });', SCRIPT]) {
    const inner = memoryStore();
    const clock = new SimulatedClock();
    const first = workshop({ store: new TestStore(inner) }, undefined, clock);
    const client = await connect(first.server, { auth: { principal: 'ada' } });
    const task = idOf(await call(client, 'tools/call', { name: 'run_code_task', arguments: { code } }));
    await pass(clock, 100);
    const closing = first.server.close();
    await pass(clock, 10_000);
    await closing;
    const second = workshop({ store: new TestStore(inner) }, undefined, clock);
    const again = await connect(second.server, { auth: { principal: 'ada' } });
    await pass(clock, 60_000);
    const text = await ended(second, again, task, () => false);
    assert.match(String(text), '{"result":');
    const written = [...first.written, ...second.written];
    assert.is(new Set(written).size, written.length);
  }
});

test('a task continues in the server of its command, although that mounts another server of the program', async () => {
  const inner = memoryStore();
  const clock = new SimulatedClock();
  const begin = async (): Promise<[Workshop, TestClient]> => {
    const store = new TestStore(inner);
    launchedBy({ listens: () => undefined, reads() {}, store: () => store });
    const { server: stock } = loggedServer({ name: 'stock', clock });
    stock.tool('count', () => '3');
    const made = workshop({}, undefined, clock);
    launchedBy(undefined);
    await (await made.server.mount('stock', stock, { trust: true })).ready();
    return [made, await connect(made.server, { auth: { principal: 'ada' } })];
  };
  const [first, client] = await begin();
  const code = 'await t.write({ n: 1 }); await sleep(60000); return t.write({ n: 2 });';
  const task = idOf(await call(client, 'tools/call', { name: 'run_code_task', arguments: { code } }));
  await until(() => first.written.length === 1);
  const close = async ({ server }: Workshop): Promise<void> => {
    const closing = server.close();
    await pass(clock, 10_000);
    await closing;
  };
  await close(first);
  const [second, again] = await begin();
  await pass(clock, 60_000);
  assert.match(String(await ended(second, again, task, () => false)), '"result":"wrote 2"');
  assert.equal([first.written, second.written], [[1], [2]]);
  await close(second);
});

test('a client of 2026-07-28 returns to the next process with its answer, and the script continues', async () => {
  const inner = memoryStore();
  const clock = new SimulatedClock();
  const first = workshop({ store: new TestStore(inner) }, undefined, clock);
  const args = { code: SCRIPT };
  const one = await connect(first.server, { auth: { principal: 'ada' } });
  const { keys, state } = asked(await runModern(one, args));
  await first.server.close();
  const second = workshop({ store: new TestStore(inner) }, undefined, clock);
  const two = await connect(second.server, { auth: { principal: 'ada' } });
  const inputResponses = { [keys[0] ?? '']: { action: 'accept', content: { name: 'Ada' } } };
  const running = runModern(two, args, { requestState: state, inputResponses });
  await pass(clock, 1_000);
  await pass(clock, 1_000);
  assert.equal(resultIn(await running), [['wrote 1', 'wrote 3', 'wrote 4'], 4, 'Ada']);
  assert.equal([first.written, second.written], [[1, 3], [4]]);
});

test('a paused run continues by itself in the next process, and only its caller gets the result', async () => {
  const inner = memoryStore();
  const clock = new SimulatedClock();
  const first = workshop({ store: new TestStore(inner) }, undefined, clock);
  const one = await connect(first.server, { auth: { principal: 'ada' } });
  const running = runModern(one, { code: 'await t.write({ n: 1 }); await sleep(3600000); return t.write({ n: 2 });' });
  await pass(clock, 0);
  await pass(clock, 20_000);
  const run = pausedIn(await running);
  await first.server.close();
  const second = workshop({ store: new TestStore(inner) }, undefined, clock);
  const two = await connect(second.server, { auth: { principal: 'ada' } });
  await pass(clock, 3_600_000);
  await until(() => second.written.length === 1);
  await pass(clock, 0);
  assert.is(resultIn(await runModern(two, { resume: run })), 'wrote 2');
  assert.equal([first.written, second.written], [[1], [2]]);
  const other = await connect(second.server, { auth: { principal: 'eve' } });
  assert.match(textOf(await runModern(other, { resume: run })), /^There is no run /);
});

test('without a durable store, a script whose process has ended does not begin again', async () => {
  const first = workshop();
  const args = { code: 'await t.write({ n: 1 }); return t.who();' };
  const one = await connect(first.server, { auth: { principal: 'ada' } });
  const { keys, state } = asked(await runModern(one, args));
  const second = workshop();
  const two = await connect(second.server, { auth: { principal: 'ada' } });
  const inputResponses = { [keys[0] ?? '']: { action: 'accept', content: { name: 'Ada' } } };
  const result = await runModern(two, args, { requestState: state, inputResponses });
  assert.match(textOf(result), /It is not known what it has done/);
  assert.equal([first.written, second.written], [[1], []]);
});

test('a journal of more than a thousand events is whole, and one whose beginning was deleted continues nothing', async () => {
  const inner = memoryStore();
  const clock = new SimulatedClock();
  const first = workshop({ store: new TestStore(inner) }, undefined, clock);
  const one = await connect(first.server, { auth: { principal: 'ada' } });
  const code = 'for (let n = 0; n < 600; n += 1) await t.write({ n }); await sleep(60000); return t.write({ n: 600 });';
  const running = runModern(one, { code });
  await until(() => first.written.length === 600);
  await pass(clock, 0);
  await pass(clock, 20_000);
  const run = pausedIn(await running);
  await first.server.close();
  const second = workshop({ store: new TestStore(inner) }, undefined, clock);
  const two = await connect(second.server, { auth: { principal: 'ada' } });
  const resumed = runModern(two, { resume: run });
  await until(async () => {
    await pass(clock, 10_000);
    return second.written.length === 1;
  });
  const paused = textOf(await resumed);
  assert.match(paused.startsWith('paused') ? textOf(await runModern(two, { resume: run })) : paused, 'wrote 600');
  await second.server.close();
  await inner.commit([{ type: 'trim', actor: `run/${run}`, stream: 'journal', upto: 10 }]);
  const third = workshop({ store: new TestStore(inner) }, undefined, clock);
  const three = await connect(third.server, { auth: { principal: 'ada' } });
  const gone = await runModern(three, { resume: run }).then(textOf, String);
  assert.not.match(gone, /wrote/);
  assert.equal(third.written, []);
});

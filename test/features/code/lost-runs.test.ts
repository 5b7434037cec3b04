/** Runs whose requests are lost: their caller finds them by their script and in a list, and nothing begins a second time. */
import * as assert from 'uvu/assert';
import { ErrorCode, ProtocolError } from '../../../src/core/protocol/errors.ts';
import type { JsonObject } from '../../../src/core/protocol/json.ts';
import { META } from '../../../src/core/protocol/meta.ts';
import { memoryStore } from '../../../src/core/store/memory-store.ts';
import type { Store, StoreAnswer, StoreQuery } from '../../../src/core/store/store.ts';
import { connect, SimulatedClock, settled } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { textOf } from '../../harness/results.ts';
import { TestStore } from '../../harness/test-store.ts';
import { until } from '../../harness/wait.ts';
import { pass, pausedIn, resultIn, runModern, type Workshop, workshop } from './support.ts';

const test = suite('runs whose requests are lost');

const ADA = { auth: { principal: 'ada' } } as const;
const EVE = { auth: { principal: 'eve' } } as const;
const CODE = 'const a = await t.write({ n: 1 }); const b = await t.hangs({}); return [a, b];';

/** The store of a process that is killed: it answers nothing any more. */
class KilledStore extends TestStore {
  dead = false;

  override ask(query: StoreQuery): Promise<StoreAnswer> {
    return this.dead ? new Promise(() => {}) : super.ask(query);
  }
}

/** A workshop whose tool `hangs` ends only in the process that answers. */
function process(store: Store, clock: SimulatedClock, answers: boolean): Workshop {
  const made = workshop({ store }, undefined, clock);
  made.server.tool('hangs', { annotations: { readOnlyHint: true } }, () =>
    answers ? 'read' : new Promise<string>(() => {}),
  );
  return made;
}

/** A process that dies while a script waits for a call, and the next one. */
async function afterKill(more: JsonObject = {}): Promise<{ readonly first: Workshop; readonly second: Workshop }> {
  const [inner, clock] = [memoryStore(), new SimulatedClock()];
  const store = new KilledStore(inner);
  const first = process(store, clock, false);
  const client = await connect(first.server, ADA);
  void runModern(client, { code: CODE }, more).catch(() => {});
  await until(() => first.written.length === 1);
  await settled();
  store.dead = true;
  return { first, second: process(new TestStore(inner), clock, true) };
}

test('the same script of the same caller names the run that has lost its request, and begins nothing', async () => {
  const { first, second } = await afterKill();
  const client = await connect(second.server, ADA);
  const found = await runModern(client, { code: CODE });
  assert.match(textOf(found), /which an earlier call with the same script has begun \(.*Nothing was begun again/);
  assert.is(second.engine.begun, 0);
  // Another caller learns nothing of it.
  const eve = await connect(second.server, EVE);
  assert.equal(resultIn(await runModern(eve, { code: CODE })), ['wrote 1', 'read']);
  assert.equal(resultIn(await runModern(client, { resume: pausedIn(found) })), ['wrote 1', 'read']);
  assert.equal([first.written, second.written], [[1], [1]]);
  // It has ended, and the next call is a new one.
  assert.equal(resultIn(await runModern(client, { code: CODE })), ['wrote 1', 'read']);
});

test('a caller who has only forgotten a run finds it in the list of its runs, and its result, too', async () => {
  const { second } = await afterKill();
  const client = await connect(second.server, ADA);
  const listed = textOf(await runModern(client, { resume: '' }));
  const [, id = ''] = /^([\w-]{24}): (?:calling|computing), begun \S+Z: const a = await/m.exec(listed) ?? [];
  assert.equal(resultIn(await runModern(client, { resume: id })), ['wrote 1', 'read']);
  assert.match(textOf(await runModern(client, { resume: '' })), `${id}: returned, begun`);
  assert.equal(resultIn(await runModern(client, { resume: id })), ['wrote 1', 'read']);
  const eve = await connect(second.server, EVE);
  assert.is(textOf(await runModern(eve, { resume: '' })), 'This caller has no runs.');
  const anyone = await connect(second.server);
  assert.is(textOf(await runModern(anyone, { resume: '' })), 'This caller has no runs.');
});

test('a run for which another request waits is no lost one', async () => {
  const { server, written } = workshop();
  server.tool('hangs', { annotations: { readOnlyHint: true } }, () => new Promise(() => {}));
  const client = await connect(server, ADA);
  void runModern(client, { code: CODE }).catch(() => {});
  void runModern(client, { code: CODE }).catch(() => {});
  await until(() => written.length === 2);
});

test('a call that is repeated with its idempotency key after a crash begins nothing again', async () => {
  const key = { _meta: { [META.idempotencyKey]: '0123456789abcdef0123456789abcdef' } };
  const { first, second } = await afterKill(key);
  const client = await connect(second.server, ADA);
  const again = await runModern(client, { code: CODE }, key).then(textOf, String);
  assert.match(again, /paused: run|not known|unknown/i);
  assert.equal([first.written, second.written], [[1], []]);
});

for (const error of [new ProtocolError(ErrorCode.Overloaded, 'busy'), new Error('an upstream is down')])
  test(`a run without a request whose functions cannot be listed (${error.name}) tries again, and repeats nothing`, async () => {
    const [inner, clock] = [memoryStore(), new SimulatedClock()];
    const first = workshop({ store: new TestStore(inner) }, undefined, clock);
    const code =
      'await t.write({ n: 1 }); await sleep(60000); return Promise.all([t.read({ n: 2 }), t.write({ n: 3 })]);';
    const running = runModern(await connect(first.server, ADA), { code });
    await pass(clock, 0);
    await pass(clock, 20_000);
    const run = pausedIn(await running);
    await first.server.close();
    const second = workshop({ store: new TestStore(inner) }, undefined, clock);
    second.lists.fails = error;
    const client = await connect(second.server, ADA);
    await pass(clock, 60_000);
    await pass(clock, 3_000);
    const { begun } = second.engine;
    second.lists.fails = undefined;
    await pass(clock, 2_000);
    await until(() => second.written.length === 1);
    await pass(clock, 0);
    assert.equal(resultIn(await runModern(client, { resume: run })), [{ n: 2, double: 4 }, 'wrote 3']);
    assert.equal([first.written, second.written], [[1], [3]]);
    assert.is(second.engine.begun, begun);
  });

test('a run whose functions can never be listed ends, and says why', async () => {
  const { server, clock, lists } = workshop();
  const client = await connect(server, ADA);
  const running = runModern(client, { code: 'await sleep(60000); return t.read({ n: 2 });' });
  await pass(clock, 0);
  await pass(clock, 20_000);
  const run = pausedIn(await running);
  lists.fails = new Error('an upstream is down');
  await pass(clock, 40_000);
  for (let seconds = 0; seconds < 62; seconds += 1) await pass(clock, 1_000);
  const text = textOf(await runModern(client, { resume: run }));
  assert.match(text, /the functions of its caller could not be listed \(incident /);
});

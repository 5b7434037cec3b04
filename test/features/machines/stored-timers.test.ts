/** The timers that only the store has: each fires once at its date, and none costs anything long before. */
import * as assert from 'uvu/assert';
import { assign, setup } from 'xstate';
import { StoreError } from '../../../src/core/store/store.ts';
import { StoredTimers } from '../../../src/features/machines/stored-timers.ts';
import { SimulatedClock, settled } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { times } from '../../harness/scale.ts';
import { TestStore } from '../../harness/test-store.ts';
import { ALICE, disk, stage } from './support.ts';

const test = suite('timers in the store');
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Numbers that a seed decides. */
function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state * 48_271) % 2_147_483_647;
    return state % below;
  };
}

/** A store whose reads of timers can be slow, or fail. */
class SlowStore extends TestStore {
  /** The rows of timers that were read. */
  rows = 0;
  fails = false;
  #held: (() => void)[] | undefined;

  hold(): void {
    this.#held ??= [];
  }

  release(): void {
    for (const go of this.#held ?? []) go();
    this.#held = undefined;
  }

  override async read(query: Parameters<TestStore['read']>[0]): ReturnType<TestStore['read']> {
    if (query.type !== 'timers') return super.read(query);
    if (this.fails) throw new StoreError('busy', 'the store is away');
    const answer = await super.read(query);
    if (answer.type === 'timers') this.rows += answer.value.length;
    // What is written from now on is not in it.
    if (this.#held) await new Promise<void>((go) => this.#held?.push(go));
    return answer;
  }
}

/** Instances at rest with one timer each, and the processes that wake them one after the other. */
class World {
  readonly clock = new SimulatedClock();
  readonly store = new SlowStore();
  readonly due = new Map<string, number>();
  readonly woken = new Map<string, number[]>();
  timers = this.#open();

  #open(): StoredTimers {
    const { clock, store } = this;
    const timers: StoredTimers = new StoredTimers({
      ...{ clock, store },
      date: () => clock.date(),
      wake: (id) => this.#wake(id),
      found: ({ actor, due }) => {
        if (!this.due.has(actor) || timers.has(actor)) return;
        if (due <= clock.date()) this.#wake(actor);
        else timers.add(actor, due);
      },
      failed: () => {},
    });
    return timers;
  }

  #wake(id: string): void {
    // A timer that was replaced may be found once more: its instance then sees that nothing is due.
    const due = this.due.get(id);
    if (due === undefined) return;
    if (due > this.clock.date()) return this.timers.add(id, due);
    this.due.delete(id);
    this.woken.set(id, [...(this.woken.get(id) ?? []), this.clock.date() - due]);
    void this.store.commit([{ type: 'timer off', actor: id, timer: 't' }]);
  }

  /** An instance hibernates with this timer, which is durable. */
  async add(id: string, due: number): Promise<void> {
    this.due.set(id, due);
    await this.store.commit([{ type: 'timer', timer: { actor: id, timer: 't', due, data: '' } }]);
    this.timers.add(id, due);
  }

  async restart(): Promise<void> {
    this.timers.stop();
    this.timers = this.#open();
    await this.timers.take(undefined);
  }
}

for (const [name, seed, awkward] of [
  ['each timer fires once at its date, whatever its distance, over restarts', 3, false],
  ['each timer fires once, also if reads are slow or fail while timers are added', 11, true],
] as const)
  test(name, async () => {
    for (let run = seed; run < seed + times(4, { quick: 2 }); run += 1) {
      const world = new World();
      const random = numbers(run * 7_919);
      const { clock, store } = world;
      await world.timers.take(undefined);
      let count = 0;
      for (let step = 0; step < 60; step += 1) {
        const what = random(10);
        if (what < 6)
          for (let some = random(4); some >= 0; some -= 1) {
            const far = [MINUTE, 50 * MINUTE, 20 * MINUTE, HOUR, 3 * HOUR, DAY][random(6)] ?? HOUR;
            // Now and then exactly at the border of a read.
            const after = random(5) === 0 ? HOUR : 1 + random(far);
            await world.add(`handle/i/${count}`, clock.date() + after);
            count += 1;
          }
        else if (what < 7) {
          store.release();
          store.fails = false;
          await world.restart();
        } else if (awkward && what < 8) store.hold();
        else if (awkward && what < 9) store.fails = !store.fails;
        await clock.advance(random(40 * MINUTE));
        if (random(3) === 0) store.release();
      }
      store.release();
      store.fails = false;
      await clock.advance(DAY + HOUR);
      const late = [...world.woken.values()].flat();
      assert.equal([world.due.size, world.woken.size, late.length], [0, count, count], `seed ${run}`);
      if (!awkward) assert.is(Math.max(...late), 0, `seed ${run}`);
    }
  });

test('a read that fails is repeated after a second, whatever is added meanwhile', async () => {
  const world = new World();
  const { clock, store } = world;
  await world.timers.take(undefined);
  await world.add('handle/i/near', clock.date() + 2 * HOUR);
  store.fails = true;
  await clock.advance(HOUR + 55 * MINUTE);
  await world.add('handle/i/far', clock.date() + DAY);
  store.fails = false;
  await clock.advance(5 * MINUTE);
  assert.equal(world.woken.get('handle/i/near'), [0]);
});

test('a timer after the end of a slow read fires at its date, also if nearer ones are added meanwhile', async () => {
  const world = new World();
  const { clock, store } = world;
  await world.timers.take(undefined);
  await world.add('handle/i/read', clock.date() + 2 * HOUR);
  await world.add('handle/i/after', clock.date() + 3 * HOUR);
  store.hold();
  await clock.advance(2 * HOUR + 5 * MINUTE);
  await world.add('handle/i/near', clock.date() + MINUTE);
  store.release();
  await clock.advance(HOUR);
  assert.equal(world.woken.get('handle/i/after'), [0]);
  assert.is(world.due.size, 0);
});

test('a start reads none of the timers that are due later than in an hour, but for the next one', async () => {
  const world = new World();
  const { clock, store } = world;
  for (let n = 0; n < 2_500; n += 1) await world.add(`handle/i/${n}`, clock.date() + HOUR + DAY + n);
  await world.restart();
  assert.is(store.rows, 1);
  await clock.advance(DAY);
  assert.is(store.rows, 1);
  await clock.advance(HOUR - 1);
  assert.ok(store.rows >= 2_501 && store.rows < 2_510, `${store.rows} rows`);
  assert.is(world.woken.size, 0);
  await clock.advance(MINUTE);
  assert.is(world.woken.size, 2_500);
});

/** A machine that notes when its delay of some milliseconds has ended. */
const clockOf = { now: (): number => 0 };
const sleeper = setup({
  types: { context: {} as { ms: number; ended: readonly number[] }, input: {} as { ms: number } },
  delays: { long: ({ context }) => context.ms },
  actions: { note: assign({ ended: ({ context }) => [...context.ended, clockOf.now()] }) },
}).createMachine({
  context: ({ input }) => ({ ms: input.ms, ended: [] }),
  initial: 'asleep',
  states: { asleep: { after: { long: { target: 'awake', actions: 'note' } } }, awake: {} },
});
const SLEEPER = {
  ...{ name: 'sleeper', machine: sleeper, version: '1', events: [], ttlMs: 30 * DAY },
  view: ({ context }: { readonly context: unknown }) => context,
};

test('delays of hours and days end once at their dates, over hibernation and restarts of the server', async () => {
  let world = await stage([SLEEPER], { store: disk() });
  const random = numbers(5);
  const due = new Map<string, number>();
  for (let round = 0; round < 6; round += 1) {
    clockOf.now = () => world.clock.date();
    for (let n = 0; n < 10; n += 1) {
      const ms = 1_000 + random([MINUTE, HOUR, 2 * HOUR, 2 * DAY][n % 4] ?? HOUR);
      const { handle } = await world.handles.create('sleeper', { ms }, ALICE);
      due.set(handle, world.clock.date() + ms);
    }
    await world.clock.advance(random(4 * HOUR));
    if (round % 2 === 0) continue;
    await world.handles.stop();
    const before = world.clock.date();
    world = await world.again();
    assert.is(world.clock.date(), before);
  }
  clockOf.now = () => world.clock.date();
  await world.clock.advance(3 * DAY);
  for (const [handle, date] of due) {
    const { view } = await world.handles.get('sleeper', handle, ALICE);
    const ended: unknown = view && typeof view === 'object' && 'ended' in view ? view.ended : undefined;
    assert.equal(ended, [date]);
  }
  assert.is(world.incidents.length, 0);
  await world.handles.stop();
});

test('a delay that ends while its machine is not offered ends when the machine is offered again', async () => {
  const world = await stage([SLEEPER], { store: disk() });
  clockOf.now = () => world.clock.date();
  const { handle } = await world.handles.create('sleeper', { ms: 2 * HOUR }, ALICE);
  await world.clock.advance(HOUR);
  world.handles.withdraw('sleeper');
  await world.clock.advance(3 * HOUR);
  world.handles.define(SLEEPER);
  await world.clock.advance(0);
  await settled();
  const { view } = await world.handles.get('sleeper', handle, ALICE);
  assert.equal(view, { ms: 2 * HOUR, ended: [world.clock.date()] });
  await world.handles.stop();
});

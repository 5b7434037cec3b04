/** The places of POSTs: whoever hangs, a POST to another host or of another principal finds one at once. */
import { settled } from 'troupe/testing';
import * as assert from 'uvu/assert';
import { DeliverySlots } from '../../../../src/features/events/delivery/delivery-slots.ts';
import { suite } from '../../../harness/door.ts';

const test = suite('places for deliveries');

const LIMITS = { all: 512, principal: 100, host: 50 };

/** Asks for places, and notes in which order POSTs start. */
function places(limits = LIMITS) {
  const slots = new DeliverySlots(limits);
  const started: string[] = [];
  return {
    slots,
    started,
    /** @returns the number of POSTs that start at once */
    ask(count: number, principal: string, host: string): number {
      let at = 0;
      for (let n = 0; n < count; n += 1) {
        const wait = slots.take(principal, host);
        if (wait) void wait.then(() => started.push(`${principal} ${host}`));
        else at += 1;
      }
      return at;
    },
    /** Lets a host respond to POSTs, one after the other, while one more stays in flight. */
    respond(count: number, principal: string, host: string): void {
      slots.take(principal, host);
      for (let n = 0; n < count; n += 1) {
        slots.take(principal, host);
        slots.free(principal, host, false);
      }
    },
  };
}

test('S-134: hosts that hang from the first POST on have four places each', () => {
  const { ask } = places();
  for (let n = 0; n < 100; n += 1) assert.is(ask(100, `p${n}`, `h${n}`), 4);
  assert.is(ask(100, 'other', 'other'), 4);
});

test('S-134: hosts that have responded, and hang now, leave places to others', () => {
  for (const hosts of [1, 5, 11, 20, 40]) {
    const { ask, respond } = places();
    for (let n = 0; n < hosts; n += 1) respond(60, `p${n}`, `h${n}`);
    let taken = hosts;
    for (let n = 0; n < hosts; n += 1) taken += ask(100, `p${n}`, `h${n}`);
    assert.ok((hosts > 5 || taken >= hosts * 30) && taken < LIMITS.all, `${taken} places for ${hosts} hosts`);
    assert.ok(ask(1, 'other', 'other') === 1, `another one beside ${hosts} hosts, which have ${taken}`);
  }
});

test('S-134: a host that hangs has one place until it responds', async () => {
  const { slots, started, ask, respond } = places();
  respond(60, 'p', 'h');
  assert.is(ask(49, 'q', 'h'), 49);
  for (let n = 0; n < 48; n += 1) slots.free('q', 'h', true);
  assert.is(ask(10, 'r', 'h'), 0);
  slots.free('q', 'h', false);
  await settled();
  assert.equal(started, ['r h']);
});

test('S-134: the hosts of one principal that hang leave places to its next host, and to others', () => {
  for (const hosts of [1, 2, 3, 10, 20]) {
    const { ask } = places();
    let taken = 0;
    for (let n = 0; n < hosts; n += 1) taken += ask(100, 'p', `h${n}`);
    assert.ok(taken < LIMITS.principal, `${taken} places for ${hosts} hosts`);
    assert.is(ask(1, 'p', 'good'), 1, `its own, beside ${hosts} hosts`);
    assert.is(ask(100, 'other', 'other'), 4, `another, beside ${hosts} hosts`);
  }
});

test('S-134: as many principals as there are hang at one host, and the next host has places for each', () => {
  const { ask } = places();
  let taken = 0;
  for (let n = 0; n < 600; n += 1) taken += ask(1, `p${n}`, 'hangs');
  assert.is(taken, 4);
  assert.is(ask(1, 'p0', 'good'), 1);
  assert.is(ask(1, 'p599', 'good'), 1);
});

test('a POST that ends lets the next one of its host start; hosts and principals take turns', async () => {
  const { slots, started, ask } = places({ all: 2, principal: 2, host: 2 });
  assert.is(ask(3, 'a', 'x'), 1);
  assert.is(ask(1, 'b', 'y'), 1);
  ask(2, 'b', 'x');
  ask(1, 'c', 'z');
  for (const ended of ['a x', 'b y', 'b x', 'c z', 'a x', 'b x', 'a x']) {
    const [principal = '', host = ''] = ended.split(' ');
    slots.free(principal, host, false);
    await settled();
  }
  assert.equal(started.slice().sort(), ['a x', 'a x', 'b x', 'b x', 'c z']);
  assert.ok(started.indexOf('c z') < 3 && started.indexOf('b x') < 3, started.join());
});

test('POSTs that end in any order lose no place, and each one that waits gets one', async () => {
  const { slots, started, ask } = places({ all: 8, principal: 4, host: 3 });
  const running: string[] = [];
  let asked = 0;
  let seed = 7;
  const random = (below: number): number => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((seed / 2_147_483_648) * below);
  };
  const end = async (): Promise<void> => {
    const [one = ''] = running.splice(random(running.length), 1);
    const [principal = '', host = ''] = one.split(' ');
    slots.free(principal, host, false);
    await settled();
    running.push(...started.splice(0));
  };
  for (let step = 0; step < 2_000; step += 1) {
    const [principal, host] = [`p${random(5)}`, `h${random(6)}`];
    asked += 1;
    if (ask(1, principal, host) === 1) running.push(`${principal} ${host}`);
    assert.ok(running.length <= 8);
    if (random(3) > 0 && running.length > 0) await end();
  }
  let ended = 0;
  for (; running.length > 0; ended += 1) await end();
  assert.ok(asked === 2_000 && ended > 0);
  // All places are free again: the first host has its share.
  assert.is(ask(5, 'p0', 'h0'), 1);
  assert.is(ask(5, 'p1', 'h1'), 1);
});

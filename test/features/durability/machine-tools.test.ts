/** Tools that are statecharts, over a restart: each call goes on at the place where its machine was, with its timers and its questions. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { assign, fromPromise, setup } from 'xstate';
import * as z from 'zod';
import { isObject, type JsonObject } from '../../../src/core/protocol/json.ts';
import { elicitWith, fromSteps, type Server, sqlite } from '../../../src/index.ts';
import { SimulatedClock, settled } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { textOf } from '../../harness/results.ts';
import { call, Disk, type Process, start } from '../tasks/durable/support.ts';
import { accept, gate, keysOf, pending } from '../tasks/support.ts';

const test = suite('durable machine tools');

/** What really happened, whichever process did it. */
class World {
  readonly did: string[] = [];
  /** Until when payments take. */
  paying = gate();

  count(what: string): number {
    return this.did.filter((each) => each === what).length;
  }
}

const ANSWER = z.object({ size: z.string() });

/** Books, asks for a size until it is told "right", which it does for a minute, then pays. */
function tripMachine(world: World, context: object = {}) {
  return setup({
    types: { context: {} as { booked: string; sizes: readonly string[] } },
    actors: {
      book: fromPromise(async () => {
        world.did.push('book');
        return 'seat 1';
      }),
      askSize: elicitWith(ANSWER),
      pay: fromSteps<{ booked: string }, string>(async ({ input, step, key }) => {
        const receipt = await step('charge', () => {
          world.did.push('charge');
          return `${input.booked} paid`;
        });
        world.did.push(`key ${key}`);
        await world.paying.opened;
        return receipt;
      }),
    },
    actions: { note: (_, { what }: { what: string }) => void world.did.push(what) },
  }).createMachine({
    id: 'trip',
    context: { booked: '', sizes: [], ...context },
    initial: 'booking',
    states: {
      booking: {
        entry: { type: 'note', params: { what: 'begin' } },
        invoke: { src: 'book', onDone: { target: 'open', actions: assign({ booked: ({ event }) => event.output }) } },
      },
      open: {
        after: { 60000: 'lapsed' },
        initial: 'asking',
        states: {
          asking: {
            invoke: {
              id: 'size',
              src: 'askSize',
              input: ({ context: { sizes } }) => ({ message: `Size ${sizes.length + 1}?` }),
              onDone: {
                target: 'judging',
                actions: assign({
                  sizes: ({ context, event: { output } }) => [
                    ...context.sizes,
                    output.status === 'accepted' ? output.content.size : output.status,
                  ],
                }),
              },
            },
          },
          judging: {
            always: [
              { guard: ({ context }) => context.sizes.at(-1) === 'right', target: '#trip.paying' },
              { target: 'asking' },
            ],
          },
        },
      },
      paying: { invoke: { id: 'pay', src: 'pay', input: ({ context }) => context, onDone: 'paid' } },
      paid: { entry: { type: 'note', params: { what: 'paid' } }, type: 'final' },
      lapsed: { entry: { type: 'note', params: { what: 'lapse' } }, type: 'final' },
    },
    output: ({ context }) => `${context.booked}: ${context.sizes.join(', ')}`,
  });
}

/** Asks, and reminds itself of it once. */
function twiceMachine(world: World) {
  return setup({
    types: { context: {} as { size: string } },
    actors: { askSize: elicitWith(ANSWER) },
    actions: { remind: () => void world.did.push('reminded') },
  }).createMachine({
    type: 'parallel',
    context: { size: '' },
    states: {
      asking: {
        initial: 'open',
        states: {
          open: {
            invoke: {
              id: 'size',
              src: 'askSize',
              input: { message: 'Size?' },
              onDone: {
                target: 'asked',
                actions: assign({
                  size: ({ event: { output } }) => (output.status === 'accepted' ? output.content.size : output.status),
                }),
              },
            },
          },
          asked: { type: 'final' },
        },
      },
      reminding: {
        initial: 'quiet',
        states: {
          quiet: { after: { 60000: { target: 'reminded', actions: 'remind' } } },
          reminded: { type: 'final' },
        },
      },
    },
    output: ({ context }) => context.size,
  });
}

const shop =
  (world: World) =>
  (server: Server): void => {
    server.tool('trip', { machine: tripMachine(world) });
    server.tool('long', { machine: tripMachine(world), task: 'required' });
  };

function stateOf(result: JsonObject): string {
  if (typeof result.requestState !== 'string') throw new Error(`expected a question, got ${JSON.stringify(result)}`);
  return result.requestState;
}

const bring = (process: Process, asked: JsonObject, size: string): Promise<JsonObject> => {
  const [key = ''] = keysOf(asked);
  return call(process.modern(), 'trip', {
    requestState: stateOf(asked),
    inputResponses: { [key]: accept({ size }) },
  });
};

test('R-01: a call that waits for an answer continues from the state of its machine in another process, and repeats no earlier work', async () => {
  const disk = new Disk();
  const world = new World();
  world.paying.open();
  const one = await start(disk, shop(world));
  const asked = await call(one.modern(), 'trip');
  one.kill();
  const two = await start(disk, shop(world));
  assert.is(textOf(await bring(two, asked, 'right')), 'seat 1: right');
  assert.equal(
    world.did.filter((what) => !what.startsWith('key')),
    ['begin', 'book', 'charge', 'paid'],
  );
  // Only that its state was answered is remembered.
  assert.is((await two.store.streams((await two.store.list({ kind: 'question', limit: 2 }))[0]?.id ?? '')).length, 0);
  await two.server.close();
});

test('R-01: a question leaves once the place of its machine is durable', async () => {
  const disk = new Disk();
  const world = new World();
  const one = await start(disk, shop(world));
  const before = one.store.commits.length;
  one.store.hold();
  const answer = call(one.modern(), 'trip');
  await settled();
  assert.ok(await pending(answer));
  assert.is(one.store.commits.length, before + 1);
  await one.store.letThrough();
  stateOf(await answer);
  await one.server.close();
});

test('R-01: a question that is asked a second time has a key of its own in every process, and no answer of the first', async () => {
  const disk = new Disk();
  const world = new World();
  world.paying.open();
  const one = await start(disk, shop(world));
  const first = await call(one.modern(), 'trip');
  const second = await bring(one, first, 'wrong');
  assert.equal(keysOf(second), ['size.2']);
  one.kill();
  const two = await start(disk, shop(world));
  const third = await bring(two, second, 'worse');
  assert.equal(keysOf(third), ['size.3']);
  two.kill();
  const three = await start(disk, shop(world));
  assert.is(textOf(await bring(three, third, 'right')), 'seat 1: wrong, worse, right');
  assert.is(world.count('book'), 1);
  await three.server.close();
});

test('R-01: interrupted work starts again with the same key, and its finished steps do not run again', async () => {
  const disk = new Disk();
  const world = new World();
  const one = await start(disk, shop(world));
  const asked = await call(one.modern(), 'trip');
  void bring(one, asked, 'right');
  await settled();
  assert.is(world.count('charge'), 1);
  one.kill();
  world.paying = gate();
  world.paying.open();
  const two = await start(disk, shop(world));
  // What was answered is answered: another answer changes nothing.
  assert.is(textOf(await bring(two, asked, 'other')), 'seat 1: right');
  assert.is(world.count('charge'), 1);
  const keys = world.did.filter((what) => what.startsWith('key'));
  assert.is(keys.length, 2);
  assert.is(keys[0], keys[1]);
  await two.server.close();
});

test.full('R-01: the place of a machine is kept in a file as well, however often it was kept before', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-machine-tools-'));
  const world = new World();
  world.paying.open();
  const life = (): Promise<Process> =>
    start(new Disk(), shop(world), {}, new SimulatedClock(), { store: sqlite(join(folder, 'store.db')) });
  let process = await life();
  let asked = await call(process.modern(), 'trip');
  for (const size of ['wrong', 'worse', 'bad']) {
    asked = await bring(process, asked, size);
    await process.server.close();
    process = await life();
  }
  assert.is(textOf(await bring(process, asked, 'right')), 'seat 1: wrong, worse, bad, right');
  assert.equal([world.count('book'), world.count('charge'), world.count('paid')], [1, 1, 1]);
  await process.server.close();
  rmSync(folder, { recursive: true });
});

test('R-01: a delay continues over a restart: a timer that was due meanwhile fires at once, and once', async () => {
  const disk = new Disk();
  const world = new World();
  const one = await start(disk, shop(world));
  const asked = await call(one.modern(), 'trip');
  await one.clock.advance(40_000);
  one.kill();
  const two = await start(disk, shop(world), {}, new SimulatedClock(50_000));
  const still = await call(two.modern(), 'trip', { requestState: stateOf(asked), inputResponses: {} });
  await two.clock.advance(5_000);
  // Asked anew within the same minute.
  const again = await bring(two, still, 'wrong');
  await two.clock.advance(4_999);
  assert.is(world.count('lapse'), 0);
  two.kill();
  const three = await start(disk, shop(world), {}, new SimulatedClock(61_000));
  const late = call(three.modern(), 'trip', { requestState: stateOf(again), inputResponses: {} });
  await three.clock.advance(0);
  assert.is(textOf(await late), 'seat 1: wrong');
  assert.is(world.count('lapse'), 1);
  await three.server.close();
});

test('R-01: a delay fires after a restart although no client reconnects; a later client receives the result', async () => {
  const disk = new Disk();
  const world = new World();
  const one = await start(disk, shop(world));
  const asked = await call(one.modern(), 'trip');
  one.kill();
  const two = await start(disk, shop(world), {}, new SimulatedClock(20_000));
  await two.clock.advance(39_999);
  assert.is(world.count('lapse'), 0);
  await two.clock.advance(2);
  assert.is(world.count('lapse'), 1);
  assert.is(textOf(await bring(two, asked, 'right')), 'seat 1: ');
  assert.is(world.count('lapse'), 1);
  await two.server.close();
});

test('R-01: a call that continues after a restart without its client takes the answer of a client that reconnects in time', async () => {
  const disk = new Disk();
  const world = new World();
  world.paying.open();
  const offer = (server: Server): void => {
    server.tool('trip', { machine: twiceMachine(world) });
  };
  const one = await start(disk, offer);
  const asked = await call(one.modern(), 'trip');
  one.kill();
  const two = await start(disk, offer, {}, new SimulatedClock(60_001));
  await two.clock.advance(0);
  assert.is(world.count('reminded'), 1);
  assert.is(textOf(await bring(two, asked, 'L')), 'L');
  assert.is(world.count('reminded'), 1);
  await two.server.close();
});

test('R-29: the delay of a task that waits for an answer fires after a restart', async () => {
  const disk = new Disk();
  const world = new World();
  const one = await start(disk, shop(world));
  const id = await one.modern('ana').start('long');
  await settled();
  one.kill();
  const two = await start(disk, shop(world), {}, new SimulatedClock(59_000));
  const client = two.modern('ana');
  assert.equal(keysOf(await client.get(id)), ['size']);
  await two.clock.advance(1_001);
  assert.is(world.count('lapse'), 1);
  assert.is(await client.said(id), 'seat 1: ');
  await two.server.close();
});

test('R-29: a task of a machine continues from its state, also if it was working, and its question keeps its key', async () => {
  const disk = new Disk();
  const world = new World();
  const one = await start(disk, shop(world));
  const client = one.modern('ana');
  const id = await client.start('long');
  await settled();
  await client.update(id, { size: accept({ size: 'wrong' }) });
  await settled();
  assert.equal(keysOf(await client.get(id)), ['size.2']);
  one.kill();
  const two = await start(disk, shop(world));
  const again = two.modern('ana');
  assert.equal(keysOf(await again.get(id)), ['size.2']);
  await again.update(id, { 'size.2': accept({ size: 'right' }) });
  await settled();
  assert.is(await again.status(id), 'working');
  two.kill();
  world.paying = gate();
  world.paying.open();
  const three = await start(disk, shop(world));
  await settled();
  assert.is(await three.modern('ana').said(id), 'seat 1: wrong, right');
  assert.equal([world.count('begin'), world.count('book'), world.count('charge')], [1, 1, 1]);
  await three.server.close();
});

test('a machine of another version does not continue from a checkpoint that may not fit: the caller gets an error', async () => {
  const disk = new Disk();
  const world = new World();
  const one = await start(disk, shop(world));
  const asked = await call(one.modern(), 'trip');
  one.kill();
  const two = await start(disk, (server) => {
    server.tool('trip', {
      machine: setup({ actors: { askSize: elicitWith(ANSWER) } }).createMachine({
        initial: 'asking',
        states: {
          asking: { invoke: { id: 'size', src: 'askSize', input: { message: '?' }, onDone: 'done' } },
          done: { type: 'final' },
        },
      }),
    });
  });
  const refused = await bring(two, asked, 'right');
  assert.is(refused.isError, true);
  assert.match(textOf(refused), /started on another version of tool "trip"/);
  await two.server.close();
});

test('a machine that cannot be persisted starts again after a restart, with its answers, and the log has the reason', async () => {
  const disk = new Disk();
  const world = new World();
  world.paying.open();
  const offer = (server: Server): void => {
    server.tool('trip', { machine: tripMachine(world, { since: new Date(0) }) });
  };
  const one = await start(disk, offer);
  const asked = await call(one.modern(), 'trip');
  assert.ok(one.told.some((line) => /tool "trip" cannot save a checkpoint.*context\.since: a Date/.test(line)));
  one.kill();
  const two = await start(disk, offer);
  assert.is(textOf(await bring(two, asked, 'right')), 'seat 1: right');
  assert.is(world.count('book'), 2);
  await two.server.close();
});

test('R-18: a question whose place cannot be kept is not asked, and the call says so', async () => {
  const world = new World();
  const one = await start(new Disk(), shop(world));
  one.store.full = true;
  const failed = await call(one.modern(), 'trip');
  assert.is(failed.isError, true);
  assert.ok(isObject(failed) && /disk is full/.test(textOf(failed)));
  await one.server.close();
});

test('an inspection sees the steps of a machine that is kept, and where it was when another process took it up', async () => {
  const disk = new Disk();
  const world = new World();
  world.paying.open();
  const one = await start(disk, shop(world));
  const asked = await call(one.modern(), 'trip');
  one.kill();
  const two = await start(disk, shop(world));
  const seen: string[] = [];
  const unsee = two.server.inspect((record) => {
    if (record.type === 'state' && record.actor.startsWith('machine/trip/')) seen.push(record.state);
  });
  await bring(two, asked, 'right');
  assert.equal(seen.slice(0, 1), ['open.asking']);
  assert.is(seen.at(-1), 'paid');
  unsee();
  await two.server.close();
});

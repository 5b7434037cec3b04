/** New versions of a machine read what the old ones kept, or say that they cannot; and a history makes again what it made. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import { assign, setup } from 'xstate';
import { memoryStore } from '../../../src/core/store/memory-store.ts';
import { hashOf, hashOfStored, replay } from '../../../src/features/machines/event-history.ts';
import { HandleError } from '../../../src/features/machines/handle-error.ts';
import { readStored } from '../../../src/features/machines/restore.ts';
import { SimulatedClock, settled } from '../../../src/testing/simulated-clock.ts';
import { suite } from '../../harness/door.ts';
import { rejection } from '../../harness/results.ts';
import { ALICE, disk, orderKind, orderMachine, stage, Work } from './support.ts';

const test = suite('versions and histories');
const add = (item: string) => ({ type: 'add', data: { item } });

/** The order of version 2: a basket, whose items are counted. */
const second = setup({
  types: { context: {} as { lines: Record<string, number> }, events: {} as { type: 'add'; item: string } },
}).createMachine({
  id: 'order',
  context: { lines: {} },
  initial: 'basket',
  states: {
    basket: {
      on: {
        add: {
          actions: assign({
            lines: ({ context, event }) => ({ ...context.lines, [event.item]: (context.lines[event.item] ?? 0) + 1 }),
          }),
        },
      },
    },
    paid: { after: { 60000: 'shipped' } },
    shipped: { type: 'final' },
  },
});
const newKind = {
  name: 'order',
  machine: second,
  version: '2',
  events: ['add'],
  view: (snapshot: { context: unknown }) => snapshot.context,
};

function linesOf(context: unknown): { lines: Record<string, number> } {
  const { items } = context as { items: readonly string[] };
  return { lines: Object.fromEntries(items.map((item) => [item, 1])) };
}

test('R-27: an instance of an unknown version is rejected with a clear message and stays unchanged, and continues where its version is known', async () => {
  const first = await stage([orderKind()], { store: disk() });
  const { handle } = await first.handles.create('order', { items: ['tea'] }, ALICE);
  const without = await first.again({ kinds: [newKind] });
  const refused = await rejection(without.handles.send('order', handle, add('milk'), ALICE), HandleError);
  assert.is(refused.reason, 'refused');
  assert.match(refused.message, /version 1 of "order" created this instance. This server has version 2/);
  const back = await without.again({ kinds: [orderKind()] });
  assert.equal((await back.handles.get('order', handle, ALICE)).view, { items: ['tea'] });
});

test('R-27: an instance is migrated once, durably, with the time that is left of its delays', async () => {
  const work = new Work();
  const first = await stage([orderKind(orderMachine(work.logic))], { store: disk() });
  const { handle } = await first.handles.create('order', { items: ['tea'] }, ALICE);
  const paid = await first.handles.create('order', { items: ['milk'] }, ALICE);
  await first.handles.send('order', paid.handle, { type: 'pay', data: {} }, ALICE);
  work.end('receipt');
  await settled();
  let migrated = 0;
  const kind = {
    ...newKind,
    migrate: ({ version, value, context }: { version: string; value: unknown; context: unknown }) => {
      migrated += 1;
      assert.is(version, '1');
      return { value: value === 'cart' ? 'basket' : 'paid', context: linesOf(context) };
    },
  };
  const next = await first.again({ kinds: [kind], laterMs: 30_000 });
  const moved = await next.handles.send('order', handle, add('tea'), ALICE);
  assert.is(moved.state, 'basket');
  assert.equal(moved.view, { lines: { tea: 2 } });
  assert.is((await next.handles.get('order', paid.handle, ALICE)).state, 'paid');
  await next.clock.advance(29_000);
  assert.is((await next.handles.get('order', paid.handle, ALICE)).state, 'paid');
  await next.clock.advance(1_500);
  assert.is((await next.handles.get('order', paid.handle, ALICE)).status, 'done');
  assert.is(migrated, 2);
  const after = await next.again();
  assert.equal((await after.handles.get('order', handle, ALICE)).view, { lines: { tea: 2 } });
  assert.is(migrated, 2);
});

test('R-27: an instance that is not migrated finishes on its own machine if the server has that', async () => {
  const first = await stage([orderKind()], { store: disk() });
  const { handle } = await first.handles.create('order', { items: ['tea'] }, ALICE);
  const kind = { ...newKind, events: ['add', 'cancel'], migrate: () => undefined, previous: { 1: orderMachine() } };
  const next = await first.again({ kinds: [kind] });
  assert.equal((await next.handles.send('order', handle, add('milk'), ALICE)).view, { items: ['tea', 'milk'] });
  const fresh = await next.handles.create('order', {}, ALICE);
  assert.is(fresh.state, 'basket');
  const done = await next.handles.send('order', handle, { type: 'cancel', data: {} }, ALICE);
  assert.equal(done.output, { items: ['tea', 'milk'] });
});

test('a machine that is replaced while its instances are in memory takes them over', async () => {
  const { handles } = await stage([orderKind()]);
  const { handle } = await handles.create('order', { items: ['tea'] }, ALICE);
  handles.define({ ...newKind, migrate: ({ context }) => ({ value: 'basket', context: linesOf(context) }) });
  await settled();
  assert.equal((await handles.send('order', handle, add('tea'), ALICE)).view, { lines: { tea: 2 } });
  handles.withdraw('order');
  assert.is((await rejection(handles.get('order', handle, ALICE), HandleError)).reason, 'unknown');
});

interface Recorded {
  readonly version: string;
  readonly snapshot: string;
  readonly history: readonly {
    readonly stream: string;
    readonly seq: number;
    readonly kind: string;
    readonly data: string;
  }[];
  readonly hash: string;
}

const corpus = join(dirname(fileURLToPath(import.meta.url)), 'corpus');
const recorded = readdirSync(corpus).map((file) => ({
  file,
  ...(JSON.parse(readFileSync(join(corpus, file), 'utf8')) as Recorded),
}));

test('R-27: every snapshot that was recorded is read by this version and the next, or refused in clear words', async () => {
  assert.ok(recorded.length > 0);
  for (const { file, version, snapshot } of recorded) {
    const clock = new SimulatedClock();
    const store = memoryStore();
    const id = `handle/order/${file}`;
    const row = {
      id,
      kind: 'handle',
      name: 'order',
      principal: 'alice',
      status: 'active',
      created: clock.date(),
      expires: clock.date() + 1e9,
    } as const;
    await store.commit([
      { type: 'actor', actor: row },
      { type: 'snapshot', actor: id, version, data: snapshot },
    ]);
    const now = await stage([orderKind()], { store, clock });
    assert.equal((await now.handles.get('order', file, ALICE)).state, readStored(snapshot, file).snapshot.value, file);
    await now.handles.stop();
    const kind = {
      ...newKind,
      migrate: ({ context }: { context: unknown }) => ({ value: 'basket', context: linesOf(context) }),
    };
    const next = await now.again({ kinds: [kind] });
    const ended = readStored(snapshot, file).snapshot.status !== 'active';
    if (ended) assert.is((await rejection(next.handles.get('order', file, ALICE), HandleError)).reason, 'refused');
    else assert.is((await next.handles.get('order', file, ALICE)).state, 'basket', file);
  }
});

test('R-28: replaying each recorded history gives the recorded snapshot', () => {
  for (const { file, history, hash, snapshot } of recorded) {
    const machine = orderMachine();
    const replayed = replay(machine, history);
    assert.ok(replayed, file);
    assert.is(hashOf(machine, replayed), hash, file);
    assert.is(hashOfStored(readStored(snapshot, file).snapshot), hash, file);
  }
});

test('R-28: replaying what was recorded just now gives what is kept, with what was taken back left out', async () => {
  const work = new Work();
  const store = disk();
  const machine = orderMachine(work.logic, (what) => {
    if (what === 'bomb') throw new Error('boom');
  });
  const { handles, clock } = await stage([orderKind(machine)], { store });
  const { handle } = await handles.create('order', { items: ['tea'] }, ALICE);
  await handles.send('order', handle, add('milk'), ALICE);
  await rejection(handles.send('order', handle, { type: 'boom', data: {} }, ALICE), HandleError);
  await rejection(handles.send('order', handle, add('bomb'), ALICE), HandleError);
  await handles.send('order', handle, { type: 'pay', data: {} }, ALICE);
  work.end('receipt');
  await settled();
  await clock.advance(60_000);
  assert.is((await handles.get('order', handle, ALICE)).status, 'done');
  const id = `handle/order/${handle}`;
  const history = await store.events(id, '', 0, 1_000);
  assert.equal(
    history.map(({ seq }) => seq),
    history.map((_, index) => index + 1),
  );
  const stored = await store.load(id);
  const replayed = replay(machine, history);
  assert.ok(replayed);
  assert.is(hashOf(machine, replayed), hashOfStored(readStored(stored?.snapshot?.data ?? '', id).snapshot));
});

/** Topics: what is emitted is stored once, in one order, and kept as long as its type says, in memory and in a file. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { EventError, memory, memoryStore, type Store, sqlite } from '../../../src/index.ts';
import { connect } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { eventStage, INPUT, noted, PAYLOAD, poll } from './support.ts';

const folder = mkdtempSync(join(tmpdir(), 'troupe-events-'));
const test = suite('topics of events');
test.after(() => rmSync(folder, { recursive: true, force: true }));

let files = 0;
const STORES: Readonly<Record<string, () => Store>> = {
  memory: memoryStore,
  sqlite: () => sqlite(join(folder, `${++files}.db`)),
};

async function faultOf(work: Promise<unknown>): Promise<string> {
  try {
    await work;
  } catch (error) {
    return error instanceof EventError ? `${error.fault}: ${error.message}` : String(error);
  }
  return 'none';
}

for (const [name, make] of Object.entries(STORES)) {
  // Below, events are emitted to a file, and read in order from the next process.
  const add = name === 'memory' ? test : test.full;

  add(`${name}: a subscriber reads in order what was emitted after its cursor`, async () => {
    const { server, note } = noted(make());
    const client = await connect(server);
    await note.emit({ n: 0 });
    const first = await poll(client, 'note');
    assert.equal(first.ids, []);
    assert.is(first.truncated, false);
    const emitted = await Promise.all(Array.from({ length: 500 }, (_, n) => note.emit({ n: n + 1 })));
    assert.equal(
      emitted.map(({ seq }) => seq),
      emitted.map((_, n) => n + 2),
    );
    const read: unknown[] = [];
    let { cursor } = first;
    for (let more = true; more; ) {
      const page = await poll(client, 'note', { cursor });
      read.push(...page.data.map(({ n }) => n));
      assert.is(page.truncated, false);
      ({ cursor, hasMore: more } = page);
    }
    assert.equal(
      read,
      emitted.map((_, n) => n + 1),
    );
    await server.close();
  });

  add(`${name}: an id is stored once, however often it is emitted`, async () => {
    const { server, note } = noted(make());
    const client = await connect(server);
    const { cursor } = await poll(client, 'note');
    const ids = ['a', 'b', 'a', 'a', 'c', 'b'];
    const emitted = await Promise.all(ids.map((id, n) => note.emit({ n }, { id })));
    assert.equal(
      emitted.map(({ seq }) => seq),
      [1, 2, 1, 1, 3, 2],
    );
    await Promise.all(Array.from({ length: 200 }, (_, n) => note.emit({ n })));
    assert.is((await note.emit({ n: 9 }, { id: 'b' })).seq, 2);
    const page = await poll(client, 'note', { cursor, maxEvents: 3 });
    assert.equal(page.ids, ['a', 'b', 'c']);
    await server.close();
  });

  add(`${name}: a topic keeps its latest events, and says to a later reader that some are gone`, async () => {
    const { server, note, clock } = noted(make(), { retain: { events: 100, ms: 60_000 } });
    const client = await connect(server);
    const { cursor } = await poll(client, 'note');
    await Promise.all(Array.from({ length: 300 }, (_, n) => note.emit({ n: n + 1 })));
    const late = await poll(client, 'note', { cursor });
    assert.is(late.truncated, true);
    assert.equal(
      late.data.map(({ n }) => n),
      Array.from({ length: 100 }, (_, n) => n + 201),
    );
    assert.is((await poll(client, 'note', { cursor: late.cursor })).truncated, false);
    await clock.advance(60_001);
    await note.emit({ n: 301 });
    assert.equal((await poll(client, 'note', { cursor: late.cursor })).data, [{ n: 301 }]);
    await server.close();
  });
}

test('R-92: events and cursors outlive the process with a durable store, and without one the reader learns that they are gone', async () => {
  const path = join(folder, 'lives.db');
  const open = async (store?: Store) => {
    const stage = noted(store);
    await stage.server.listen(memory().transport);
    return { ...stage, client: await connect(stage.server) };
  };
  const before = await open(sqlite(path));
  const { cursor } = await poll(before.client, 'note');
  await Promise.all(Array.from({ length: 150 }, (_, n) => before.note.emit({ n }, { id: `e${n}` })));
  await before.server.close();
  const after = await open(sqlite(path));
  const page = await poll(after.client, 'note', { cursor });
  assert.is(page.truncated, false);
  assert.equal(
    page.ids,
    Array.from({ length: 150 }, (_, n) => `e${n}`),
  );
  assert.is((await after.note.emit({ n: 1 }, { id: 'e3' })).seq, 4);
  await after.server.close();
  const lost = await open();
  const gone = await poll(lost.client, 'note', { cursor });
  assert.is(gone.truncated, true);
  assert.is((await poll(lost.client, 'note', { cursor: gone.cursor })).truncated, false);
  await lost.server.close();
});

test('each value of "by" has a topic of its own', async () => {
  const { server } = eventStage();
  const paid = server.event('paid', {
    description: 'A customer has paid.',
    payload: { type: 'object', properties: { customer: { type: 'string' } }, required: ['customer'] },
    input: { type: 'object', properties: { customer: { type: 'string' } }, required: ['customer'] },
    by: 'customer',
  });
  const client = await connect(server);
  const cursors = await Promise.all(
    ['ada', 'bob'].map(async (customer) => (await poll(client, 'paid', { arguments: { customer } })).cursor),
  );
  await paid.emit({ customer: 'ada' }, { id: '1' });
  await paid.emit({ customer: 'bob' }, { id: '2' });
  await paid.emit({ customer: 'ada' }, { id: '3' });
  const read = async (customer: string, cursor: string | undefined) =>
    (await poll(client, 'paid', { arguments: { customer }, cursor })).ids;
  assert.equal(await read('ada', cursors[0]), ['1', '3']);
  assert.equal(await read('bob', cursors[1]), ['2']);
});

test('a definition that cannot work is rejected with its fix', () => {
  const { server } = eventStage();
  const define = (name: string, options: object): string => {
    try {
      server.event(name, options as never);
      return 'accepted';
    } catch (error) {
      return String((error as Error).message);
    }
  };
  const valid = { description: 'd', payload: PAYLOAD };
  assert.is(define('fine', valid), 'accepted');
  assert.match(define('fine', valid), 'already registered');
  assert.match(define('no spaces', valid), 'a name has 1 to 128 letters');
  const other = { type: 'object', properties: { other: { type: 'string' } } };
  assert.is(define('a', { ...valid, input: other, match: () => true }), 'accepted');
});

test('emit rejects what it cannot store whole, and names the fix', async () => {
  const { note, server } = noted(undefined, { by: undefined });
  const bad = note as { emit(data: unknown, options?: object): Promise<unknown> };
  assert.match(await faultOf(bad.emit({ n: 'x' })), /^invalid: event "note": the data does not fit/);
  assert.match(await faultOf(bad.emit({ n: 1 }, { id: 'line\r\nbreak' })), /^invalid: .*visible ASCII/);
  assert.match(await faultOf(bad.emit({ n: 1 }, { id: '' })), /^invalid: /);
  assert.match(await faultOf(bad.emit({ n: 1 }, { at: 'now' })), /^invalid: .*at: expected a date/);
  assert.match(await faultOf(bad.emit({ n: 1, to: 'x'.repeat(300_000) })), /^limit: .*limits\.maxEventBytes/);
  const cyclic: Record<string, unknown> = { n: 1 };
  cyclic.more = cyclic;
  assert.match(await faultOf(bad.emit(cyclic)), /^invalid: /);
  note.remove();
  assert.match(await faultOf(bad.emit({ n: 1 })), /^unknown: /);
  await server.close();
});

test('a type has at most maxTopicsPerEvent topics', async () => {
  const { server } = eventStage({ limits: { maxTopicsPerEvent: 3 } });
  const of = { type: 'object', properties: { to: { type: 'string' } }, required: ['to'] } as const;
  const sent = server.event('sent', { description: 'd', payload: of, input: of, by: 'to' });
  for (const to of ['a', 'b', 'c', 'a']) await sent.emit({ to });
  assert.match(await faultOf(sent.emit({ to: 'd' })), /^limit: .*limits\.maxTopicsPerEvent/);
  await sent.emit({ to: 'b' });
});

test('without "match" an event fits the arguments of its names; "shape" decides what is sent, and what throws withholds', async () => {
  const { server, logged } = eventStage();
  const plain = server.event('plain', { description: 'd', payload: PAYLOAD, input: INPUT });
  const shaped = server.event('shaped', {
    description: 'd',
    payload: PAYLOAD,
    match: ({ data }, _, { principal }) => data.n > 1 && principal === 'anonymous',
    shape({ data }) {
      if (data.n === 3) throw new Error('no');
      return data.n === 4 ? undefined : { twice: 2 * data.n };
    },
  });
  const client = await connect(server);
  const to = { arguments: { to: 'x' } };
  const { cursor } = await poll(client, 'plain', to);
  const other = await poll(client, 'shaped');
  for (const each of ['x', 'y', 'x']) await plain.emit({ n: 1, to: each });
  for (let n = 1; n <= 5; n += 1) await shaped.emit({ n });
  assert.is((await poll(client, 'plain', { ...to, cursor })).data.length, 2);
  assert.equal((await poll(client, 'shaped', { cursor: other.cursor })).data, [{ twice: 4 }, { twice: 10 }]);
  assert.is(logged.filter((line) => line.includes('event "shaped"')).length, 1);
});

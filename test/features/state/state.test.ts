/** The state of callers in memory and in a file: against a model, who sees what, which values are stored, and the limits. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { z } from 'zod';
import { INTERNALS } from '../../../src/features/server/internals.ts';
import { defineState, memoryStore, type Store, StoreError, sqlite } from '../../../src/index.ts';
import { connect, SimulatedClock, settled } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { inSession } from '../../harness/memory.ts';
import { times } from '../../harness/scale.ts';
import { TestStore } from '../../harness/test-store.ts';
import { compareWithModel, faultOf, stage } from './support.ts';

const folder = mkdtempSync(join(tmpdir(), 'troupe-state-'));
const test = suite('state');
test.after(() => rmSync(folder, { recursive: true, force: true }));

let files = 0;
const STORES: Readonly<Record<string, () => Store>> = {
  memory: memoryStore,
  sqlite: () => sqlite(join(folder, `${++files}.db`)),
};

for (const [name, make] of Object.entries(STORES)) {
  test(`${name}: operations in flight at once take effect in the order of their calls`, async () => {
    const { server, of } = stage({ store: make() });
    for (let seed = 1; seed <= times(8, { quick: 1 }); seed += 1)
      await compareWithModel(await of(`user ${seed}`), seed, 250);
    await server.close();
  });
}

test('S-94: each caller sees its own state: a principal everywhere, a session nowhere else, an anonymous call none', async () => {
  const { server, contextOf, of } = stage();
  const ada = await of('ada');
  assert.is(ada.scope, 'principal');
  assert.is(ada.session, undefined);
  await ada.set('who', 'ada');
  // The same principal in two sessions.
  const open = async (principal?: string) => {
    const client = await connect(server, principal === undefined ? {} : { auth: { principal } });
    await client.initialize();
    return contextOf(client);
  };
  const [one, two, eve, anonymous, other] = [
    ...[(await open('ada')).state, (await open('ada')).state, (await open('eve')).state],
    ...[(await open()).state, (await open()).state],
  ];
  await one?.session?.set('who', 'one');
  await anonymous?.set('who', 'anonymous');
  const seen = await Promise.all(
    [ada, one, one?.session, two, two?.session, eve, eve?.session, anonymous, anonymous?.session, other].map((state) =>
      state?.get('who'),
    ),
  );
  assert.equal(seen, [
    ...['ada', 'ada', 'one', 'ada', undefined, undefined, undefined],
    ...['anonymous', 'anonymous', undefined],
  ]);
  assert.is(await server.stateOf('ada').get('who'), 'ada');
  const nobody = (await contextOf(await connect(server))).state;
  assert.is(nobody.scope, undefined);
  const { get, set, delete: remove, update, list, clear } = nobody;
  for (const refused of [get('who'), set('who', 1), remove('who'), update('who', () => 1), list(), clear()])
    assert.match(await faultOf(refused), /^no caller: state: this caller is anonymous and has no session/);
  assert.throws(() => server.stateOf('anonymous'), /anonymous.*everybody|Anonymous callers have no state together/);
  await server.close();
});

test('the state of a session ends with it, also for a handler that still runs', async () => {
  const disk = new TestStore();
  const { server, contextOf } = stage({ store: disk });
  const client = await inSession(server);
  const { state } = await contextOf(client);
  await state.set('cart', ['tea']);
  const [row] = await disk.list({ kind: 'state', limit: 10 });
  assert.is(row?.name, 'session');
  await client.close();
  await settled();
  assert.match(await faultOf(state.set('cart', [])), /^ended: /);
  assert.match(await faultOf(state.get('cart')), /^ended: /);
  assert.equal((await disk.load(row?.id ?? ''))?.snapshot?.data, '[]\n');
  await server.close();
});

test('a server that stops leaves the state of its sessions in a durable store', async () => {
  const disk = new TestStore();
  const { server, contextOf } = stage({ store: disk });
  const client = await connect(server);
  await client.initialize();
  await (await contextOf(client)).state.set('cart', 1);
  await server.close();
  await settled();
  const [row] = await disk.list({ kind: 'state', limit: 1 });
  assert.equal((await disk.load(row?.id ?? ''))?.snapshot?.data, '[["cart",1,null]]\n1');
});

test('the state of a session that expires while only the store has it is deleted, also before the start of the process', async () => {
  const disk = new TestStore();
  const clock = new SimulatedClock();
  const now = clock.date();
  for (const [hash, expires] of [
    ['gone', now - 1],
    ['late', now + 30_000],
    ['here', now + 10_000_000],
  ] as const) {
    const common = { principal: 'anonymous', created: now - 1_000 };
    const session = {
      id: `session/AB.${hash.padEnd(43, '-')}`,
      kind: 'session',
      name: '',
      status: 'open',
      expires,
    } as const;
    const state = { id: `state/session/${hash.padEnd(43, '-')}`, kind: 'state', name: 'session', status: '' } as const;
    await disk.commit([
      { type: 'actor', actor: { ...common, ...session } },
      { type: 'actor', actor: { ...common, ...state, expires: now + 10_000_000 } },
      { type: 'snapshot', actor: state.id, version: hash, data: '[["a",1,null]]\n1' },
    ]);
  }
  const { server } = stage({ store: disk }, clock);
  await connect(server);
  const left = async (): Promise<readonly string[]> => {
    await settled();
    const rows = await disk.list({ kind: 'state', limit: 10 });
    const stored = await Promise.all(rows.map(({ id }) => disk.load(id)));
    return stored.flatMap((each) => (each?.snapshot?.data === '[]\n' ? [] : (each?.snapshot?.version ?? [])));
  };
  assert.equal(await left(), ['here', 'late']);
  await clock.advance(61_000);
  assert.equal(await left(), ['here']);
  await server.close();
});

test('a value is stored as it is, or rejected with what to do', async () => {
  const { server, of } = stage();
  const state = await of('ada');
  const cyclic: unknown[] = [];
  cyclic.push({ cyclic });
  const deep: unknown[] = [];
  let inner = deep;
  for (let level = 0; level < 100; level += 1) {
    const next: unknown[] = [];
    inner.push(next);
    inner = next;
  }
  class Point {
    x = 1;
  }
  const rejected: readonly (readonly [unknown, RegExp])[] = [
    [undefined, /undefined.*Use null, or delete\(key\)/],
    [() => 1, /a function has no JSON form/],
    [Symbol('s'), /a symbol has no JSON form/],
    [1n, /a BigInt has no JSON form\. Use String\(value\)/],
    [Number.NaN, /is NaN, which JSON has not/],
    [{ a: [1, Number.POSITIVE_INFINITY] }, /"k"\.a\[1\] is Infinity/],
    [new Date(0), /is a Date\. Use date\.toISOString\(\)/],
    [{ at: new Date(0) }, /"k"\.at is a Date/],
    [new Map([[1, 2]]), /Map.*Object\.fromEntries\(map\)/],
    [new Set([1]), /Set.*\[\.\.\.set\]/],
    [Buffer.from('a'), /Buffer/],
    [new Float32Array(2), /Float32Array/],
    [Promise.resolve(1), /Await it first/],
    [new Point(), /instance of Point, which would be read as a plain object/],
    [new URL('http://a.example'), /toJSON/],
    [[1, undefined], /\[1\] is undefined/],
    [cyclic, /a cycle has no JSON form/],
    [deep, /nested deeper than 64 levels/],
    [JSON.parse('{"__proto__":{"admin":true}}'), /a member "__proto__"/],
    [
      Object.defineProperty({}, 'a', {
        enumerable: true,
        get: () => {
          throw new Error('a getter');
        },
      }),
      /cannot be read: a getter/,
    ],
  ];
  for (const [value, message] of rejected) {
    const fault = await faultOf(state.set('k', value));
    assert.match(fault, /^value: /);
    assert.match(fault, message);
    assert.match(await faultOf(state.update('k', () => (value === undefined ? new Map() : value))), /^value: /);
  }
  assert.is(await state.get('k'), undefined);
  const given = { list: [1], absent: undefined, text: '\ud800 \u0000 \u2028', 'a.b': null };
  await state.set('k', given);
  given.list.push(2);
  const read = await state.get('k');
  assert.equal(read, { list: [1], text: '\ud800 \u0000 \u2028', 'a.b': null });
  assert.is.not(read, await state.get('k'));
  await server.close();
});

test('a key is a text, and a reserved name is a key as any other', async () => {
  const { server, of } = stage();
  const state = await of('ada');
  for (const key of ['__proto__', 'constructor', 'toString', 'hasOwnProperty']) {
    assert.is(await state.get(key), undefined);
    await state.set(key, key);
    assert.is(await state.get(key), key);
  }
  for (const key of ['', undefined, null, 1, {}, ['a'], Symbol('a')])
    assert.match(await faultOf(state.get(key as never)), /^key: .*expected a text of at least one character/);
  assert.match(await faultOf(state.get('\ud800')), /^key: .*half of a character/);
  assert.match(
    await faultOf(state.get('é'.repeat(129))),
    /^limit: .*258 bytes of at most 256 \(limits\.maxStateKeyBytes\)/,
  );
  assert.match(await faultOf(state.list(1 as never)), /^key: /);
  for (const ttlMs of [0, -1, 1.5, Number.NaN, '1'])
    assert.match(
      await faultOf(state.set('k', 1, { ttlMs: ttlMs as never })),
      /^value: .*ttlMs: expected whole milliseconds/,
    );
  assert.match(await faultOf(state.set('k', 1, 60_000 as never)), /^value: .*expected options such as/);
  await server.close();
});

test('a schema checks what is stored and what is read, which another version may have stored', async () => {
  const { server, of } = stage();
  const state = await of('ada');
  const { cart, count } = defineState({
    cart: z.array(z.object({ sku: z.string(), count: z.int().default(1) })),
    count: { type: 'integer', minimum: 0 },
  });
  assert.is(await state.get(cart), undefined);
  const items = await state.update(cart, (found = []) => [...found, { sku: 'tea', count: 2 }]);
  assert.equal(items, [{ sku: 'tea', count: 2 }]);
  assert.is(await state.update(count, (n = 0) => n + 1), 1);
  assert.match(await faultOf(state.set(count, -1)), /^value: .*"count" does not match its schema/);
  assert.match(await faultOf(state.update(count, () => 'many' as never)), /^value: /);
  assert.is(await state.get(count), 1);
  await state.set('count', 'many');
  const stored = /^stored: .*"count" does not match its schema: .*accept both forms/;
  assert.match(await faultOf(state.get(count)), stored);
  assert.match(await faultOf(state.update(count, (n = 0) => n + 1)), stored);
  await state.set(count, 0);
  assert.is(await state.get(count), 0);
  assert.is(await state.delete(cart), true);
  assert.throws(() => defineState({ at: z.date() }), /date/i);
  assert.throws(() => defineState(undefined as never), /expected an object of schemas by key/);
  const { later } = defineState({ later: z.string().refine(async () => true) });
  assert.match(await faultOf(state.set(later, 'a')), /asynchronous rules/);
  await server.close();
});

test('a function of update that throws or is asynchronous changes nothing, and other changes go on', async () => {
  const { server, of } = stage();
  const state = await of('ada');
  await state.set('n', 1);
  const [thrown, late, next] = await Promise.all([
    faultOf(
      state.update('n', () => {
        throw new Error('no more');
      }),
    ),
    faultOf(state.update('n', async () => 5)),
    state.update('n', (n) => Number(n) + 1),
  ]);
  assert.is(thrown, 'Error: no more');
  assert.match(late, /^value: .*the function is asynchronous/);
  assert.is(next, 2);
  assert.match(await faultOf(state.update('n', 5 as never)), /expected a function of the value, got number 5/);
  await server.close();
});

test('limits name themselves, and what they reject leaves the scope as it was', async () => {
  const { server, of } = stage({
    limits: { maxStateKeys: 2, maxStateValueBytes: 20, maxStateBytes: 30, maxStates: 2 },
  });
  const state = await of('ada');
  assert.match(
    await faultOf(state.set('a', 'x'.repeat(19))),
    /^limit: .*21 bytes of at most 20 \(limits\.maxStateValueBytes\)/,
  );
  await state.set('a', 'x'.repeat(18));
  assert.match(
    await faultOf(state.set('b', 'x'.repeat(8))),
    /^limit: .*32 bytes of at most 30 \(limits\.maxStateBytes\)/,
  );
  await state.set('b', 1);
  assert.match(
    await faultOf(state.set('c', 1)),
    /^limit: .*one key more than the 2 of a scope \(limits\.maxStateKeys\)/,
  );
  assert.equal(
    (await state.list()).map(({ key, bytes }) => [key, bytes]),
    [
      ['a', 21],
      ['b', 2],
    ],
  );
  await (await of('eve')).set('a', 1);
  const third = await of('zoe');
  assert.match(await faultOf(third.set('a', 1)), /^limit: .*2 scopes of state of at most 2 .*limits\.maxStates/);
  assert.is(await third.get('a'), undefined);
  const waiting = Array.from({ length: 1_002 }, () => faultOf(state.get('a')));
  const busy = (await Promise.all(waiting)).filter((fault) => fault !== 'none');
  assert.is(busy.length, 1);
  assert.match(busy[0] ?? '', /^busy: .*1000 operations wait for this scope/);
  await server.close();
});

test('a value leaves after its time, and a scope after limits.stateIdleMs without use', async () => {
  const { server, of, clock } = stage({ limits: { stateIdleMs: 100_000 } });
  const state = await of('ada');
  await state.set('code', 1, { ttlMs: 1_000 });
  await state.set('name', 'Ada');
  await clock.advance(999);
  assert.is(await state.get('code'), 1);
  await clock.advance(1);
  assert.is(await state.get('code'), undefined);
  assert.equal(
    (await state.list()).map(({ key }) => key),
    ['name'],
  );
  // Each read renews it.
  for (let times = 0; times < 4; times += 1) {
    await clock.advance(90_000);
    assert.is(await state.get('name'), 'Ada');
  }
  await clock.advance(100_001);
  assert.is(await state.get('name'), undefined);
  await server.close();
});

test('without a durable store, the log says once that state ends with the process, and its bytes count as memory', async () => {
  const { server, of, told } = stage({ limits: { maxRetainedBytesPerPrincipal: 70_000 } });
  const state = await of('ada');
  await state.set('a', 'x'.repeat(60_000));
  assert.match(await faultOf(state.set('b', 'x'.repeat(20_000))), /^limit: .*maxRetainedBytesPerPrincipal/);
  await state.clear();
  await state.set('b', 'x'.repeat(20_000));
  assert.is(told.filter((line) => line.includes('ctx.state is in the memory of this process')).length, 1);
  await server.close();
});

test('state in a file is there after a restart, and of a principal only', async () => {
  const path = join(folder, 'restart.db');
  const first = stage({ store: sqlite(path) });
  await (await first.of('ada')).set('a', { n: 1 });
  const session = await connect(first.server, { auth: { principal: 'eve' } });
  await session.initialize();
  await (await first.contextOf(session)).state.session?.set('a', 2);
  await first.server.close();
  const second = stage({ store: sqlite(path) });
  assert.equal(await (await second.of('ada')).get('a'), { n: 1 });
  assert.is(await (await second.of('eve')).get('a'), undefined);
  await second.server.close();
});

test('damaged data of a scope is an error that says what to do, and clear() removes it', async () => {
  const disk = new TestStore();
  const { server, of } = stage({ store: disk });
  const state = await of('ada');
  await state.set('a', { n: 1 });
  const [row] = await disk.list({ kind: 'state', limit: 1 });
  const actor = row?.id ?? '';
  for (const data of [
    '',
    '[]',
    '{}\n',
    '[["a"]]\n1',
    '[["a",7,null]]\n1',
    '[["a",-1,null]]\n',
    '[["a",1,"x"]]\n1',
    '[[1,1,null]]\n1',
  ]) {
    await disk.commit([{ type: 'snapshot', actor, version: data, data }]);
    for (const refused of [state.get('a'), state.set('a', 1), state.list()])
      assert.match(
        await faultOf(refused),
        /^stored: .*the stored scope is damaged\. Restore a backup, or clear\(\) it/,
      );
  }
  await disk.commit([{ type: 'snapshot', actor, version: 'x', data: '[["a",2,null]]\n{]' }]);
  assert.match(await faultOf(state.get('a')), /^stored: .*the value of "a" is damaged\. Set it again, or delete it/);
  await disk.commit([{ type: 'snapshot', actor, version: 'y', data: 'x' }]);
  await state.clear();
  assert.is(await state.get('a'), undefined);
  await server.close();
});

test('a change runs again when another node was faster, and fails with all of its attempts', async () => {
  const disk = new TestStore();
  const { server, of, clock } = stage({ store: disk });
  const state = await of('ada');
  await state.set('n', 1);
  let others = 3;
  const ask = disk.ask.bind(disk);
  disk.ask = async (query) => {
    if (query.type !== 'swap' || others === 0) return ask(query);
    others -= 1;
    const stored = await disk.load(query.swap.actor.id);
    const n = Number(/\d+$/.exec(stored?.snapshot?.data ?? '')?.[0]) + 10;
    const snapshot = { version: `other ${others}`, data: `[["n",${String(n).length},null]]\n${n}` };
    await disk.commit([{ type: 'snapshot', actor: query.swap.actor.id, ...snapshot }]);
    return ask(query);
  };
  let ran = 0;
  const changed = state.update('n', (n) => {
    ran += 1;
    return Number(n) + 1;
  });
  const pass = async (): Promise<void> => {
    for (let wait = 0; wait < 20; wait += 1) {
      await settled();
      await clock.advance(100);
    }
  };
  await pass();
  assert.is(await changed, 32);
  assert.is(ran, 4);
  others = 100;
  // The first one is under way alone, and the others are stored together.
  const first = faultOf(state.set('n', 0));
  const [second, read, thrown] = [
    faultOf(state.set('big', 'x'.repeat(60))),
    state.list(),
    faultOf(state.set('other', 'y'.repeat(60))),
  ];
  await pass();
  await pass();
  for (const failed of [first, second, thrown])
    assert.match(await failed, /^conflict: .*before each of 16 attempts\. Nothing was stored\. Retry/);
  // A read after a change that was not stored does not show it.
  assert.equal(
    (await read).map(({ key }) => key),
    ['n'],
  );
  others = 0;
  assert.is(Number(await state.get('n')) % 10, 2);
  await server.close();
});

test('a task changes the state of its caller, and the metrics count the scopes', async () => {
  const { server, contextOf, clock } = stage();
  server.tool('count', { task: 'required' }, async (_, ctx) => String(await ctx.state.update('n', () => 7)));
  const client = await connect(server, { auth: { principal: 'ada' } });
  const task = await client.start('count');
  await settled();
  await clock.advance(5_000);
  assert.match(JSON.stringify(await task.result()), /"7"/);
  assert.is(await (await contextOf(client)).state.get('n'), 7);
  assert.match(server.metrics(), /^troupe_state_scopes 1$/m);
  await server.close();
});

test('an inspector sees the sizes of a scope, and no value', async () => {
  const { server, of } = stage();
  const seen: string[] = [];
  const off = server.inspect((record) => {
    if (record.type === 'created' && record.kind === 'state') seen.push(record.actor);
  });
  const state = await of('ada');
  await state.set('cart', 'a secret value');
  assert.is(new Set(seen).size, 1);
  const facts = JSON.stringify(server[INTERNALS].inspection.live(seen[0] ?? '')?.facts?.());
  assert.match(
    facts,
    /"scope":"principal","principal":"ada".*"keys":1,"bytes":20,"values":\[\{"key":"cart","bytes":20\}\]/,
  );
  assert.not.match(facts, /secret/);
  off();
  await server.close();
});

test('a change that the store rejects is reported without its name, and one whose outcome is unknown says so', async () => {
  const disk = new TestStore();
  const { server, of } = stage({ store: disk });
  const state = await of('ada');
  await state.set('a', 1);
  const failing = (fault: 'full' | 'failed') => {
    disk.write = () => Promise.reject(new StoreError(fault, '/secret/troupe.db cannot grow'));
  };
  const write = disk.write.bind(disk);
  failing('full');
  const full = await faultOf(state.set('a', 2));
  assert.match(full, /^store: state: the store rejected the change, and nothing was stored \(incident/);
  assert.not.match(full, /secret/);
  assert.is(await state.get('a'), 1);
  failing('failed');
  assert.match(await faultOf(state.set('a', 3)), /it is unknown whether the change was stored\. Read the value again/);
  disk.write = write;
  await state.set('a', 4);
  assert.is(await state.get('a'), 4);
  await server.close();
});

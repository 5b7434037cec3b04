/** Runs of scripts for those who look at them: their journal, what they wait for, and what a later viewer learns. */
import * as assert from 'uvu/assert';
import type { InspectionRecord, JournalRecord } from '../../../src/core/kernel/inspection/records.ts';
import { memoryStore } from '../../../src/core/store/memory-store.ts';
import type { Store } from '../../../src/core/store/store.ts';
import { RunJournal } from '../../../src/features/code/runs/run-journal.ts';
import { INTERNALS } from '../../../src/features/server/internals.ts';
import { connect, SimulatedClock, settled } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { TestStore } from '../../harness/test-store.ts';
import { until } from '../../harness/wait.ts';
import { pass, pausedIn, resultIn, runModern, type Workshop, workshop } from './support.ts';

const test = suite('runs of scripts, looked at');

function watched({ server }: Workshop) {
  const records: InspectionRecord[] = [];
  const { inspection } = server[INTERNALS];
  const stop = inspection.listen((record) => void records.push({ ...record }));
  const journal = (): readonly JournalRecord[] =>
    records.flatMap((record) => (record.type === 'journal' ? [record] : []));
  return { records, journal, stop, inspection };
}

const named = ({ what, call, name, line }: JournalRecord): string =>
  [what, call, name, line].filter((each) => each !== undefined).join(' ');

test('each entry of the journal is a record, with the calls and the logs between them', async () => {
  const shop = workshop();
  const { journal, records } = watched(shop);
  const client = await connect(shop.server);
  const code =
    'console.log("go"); const [a] = await Promise.all([t.read({ n: 1 }), t.write({ n: 2 })]); await t.fail().catch(() => {}); return a.n;';
  assert.is(resultIn(await runModern(client, { code })), 1);
  assert.equal(journal().map(named), [
    'begun',
    'logged',
    'called 1 t.read 1',
    'called 2 t.write 1',
    'started 2 t.write',
    'delivered 1 t.read',
    'delivered 2 t.write',
    'called 3 t.fail 1',
    'delivered 3 t.fail',
    'ended',
  ]);
  assert.equal(
    journal().map(({ index }) => index),
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
  );
  const of = (what: string, call?: number) => journal().find((each) => each.what === what && each.call === call)?.data;
  assert.equal(of('begun'), { code, tool: 'run_code', engine: 'an engine for tests 1.0.0' });
  assert.equal(of('called', 1), [{ n: 1 }]);
  assert.equal(of('delivered', 1), { value: { n: 1, double: 2 } });
  assert.match(JSON.stringify(of('delivered', 3)), /"error":\{"message":/);
  const created = records.findIndex((record) => record.type === 'created' && record.kind === 'run');
  assert.ok(created < records.findIndex(({ type }) => type === 'journal'), 'it exists before it writes');
});

test('a viewer that comes later gets the script, and its calls in short', async () => {
  const shop = workshop({}, { effects: 'allow', waitMs: 1_000 });
  const client = await connect(shop.server, { auth: { principal: 'ada' } });
  const text = 'x'.repeat(500);
  const answer = runModern(client, {
    code: `console.log("${text}"); await t.read({ n: 1 }); await t.write({ text: "${text}" }); await sleep(60_000);`,
  });
  await pass(shop.clock, 0);
  await pass(shop.clock, 0);
  await pass(shop.clock, 2_000);
  pausedIn(await answer);
  const { journal, inspection } = watched(shop);
  const seen = journal().map(named);
  assert.equal(seen, [
    'begun',
    'logged',
    'called 1 t.read 1',
    'delivered 1 t.read',
    'called 2 t.write 1',
    'started 2 t.write',
    'delivered 2 t.write',
    'called 3 sleep 1',
    'sleeping 3 sleep',
  ]);
  assert.equal(journal().find(({ call, what }) => call === 1 && what === 'called')?.data, [{ n: 1 }]);
  assert.match(String(journal().find(({ call, what }) => call === 2 && what === 'called')?.data), /^\d+ characters$/);
  assert.equal(journal().find(({ call, what }) => call === 1 && what === 'delivered')?.data, {
    value: { n: 1, double: 2 },
  });
  assert.equal(journal()[1]?.data, { whole: true, lines: ['… 527 characters of the log were not kept …'] });
  // The next one gets the same, and the first one nothing again.
  const later: string[] = [];
  inspection.listen((record) => void (record.type === 'journal' && later.push(named(record))));
  assert.equal(later, seen);
  assert.is(journal().length, seen.length);
});

test('a run says what it waits for: the end of a sleep with its time, and an approval with its id', async () => {
  const shop = workshop({}, { effects: 'approve', waitMs: 1_000 });
  const rule = { name: 'writes', version: '1' };
  shop.server.authorize(({ element }) => element.name !== 'write' || { approve: { by: { scope: 'boss' } } }, rule);
  const client = await connect(shop.server, { auth: { principal: 'ada' } });
  const { inspection } = watched(shop);
  const waits = () => {
    const [run] = inspection.living(new Set(['run']), 1);
    return inspection.live(run ?? '')?.waits?.() ?? [];
  };
  const slept = runModern(client, { code: 'await sleep(60_000); await t.write({});' });
  await pass(shop.clock, 2_000);
  pausedIn(await slept);
  const [sleep] = waits();
  assert.equal(
    [sleep?.what, Math.round((sleep?.until ?? 0) - shop.clock.now())],
    ['the end of sleep (call 1)', 58_000],
  );
  await pass(shop.clock, 60_000);
  await until(() => waits()[0]?.what.startsWith('the approval') === true, 'the approval');
  assert.match(waits()[0]?.what ?? '', /^the approval [\w-]{16,} of t\.write \(call 2\)$/);
});

test('the next process shows what the earlier one has done, each call once, and the engine that began it', async () => {
  const inner = memoryStore();
  const clock = new SimulatedClock();
  const settings = { effects: 'allow', waitMs: 1_000 } as const;
  const first = workshop({ store: new TestStore(inner) }, settings, clock);
  const client = await connect(first.server, { auth: { principal: 'ada' } });
  const answer = runModern(client, {
    code: 'await t.write({ n: 1 }); await sleep(60_000); return (await t.read({ n: 2 })).n;',
  });
  await until(() => first.written.length === 1, 'the write');
  for (let at = 0; at < 4; at += 1) await pass(clock, 500);
  pausedIn(await answer);
  const { events } = await RunJournal.read(inner, await runIn(inner));
  const [begun] = events;
  assert.is(begun?.type === 'begun' && begun.engine, 'an engine for tests 1.0.0');
  await first.server.close();
  const second = workshop({ store: new TestStore(inner) }, settings, clock);
  const { journal } = watched(second);
  await connect(second.server, { auth: { principal: 'ada' } });
  for (let at = 0; at < 4; at += 1) await pass(clock, 500);
  assert.equal(journal().map(named), [
    ...['begun', 'started 1 t.write', 'delivered 1 t.write', 'sleeping 2 sleep'],
    ...['called 1 t.write 1', 'called 2 sleep 1'],
  ]);
  assert.equal(
    journal().map(({ date }) => typeof date),
    ['number', 'undefined', 'number', 'undefined', 'undefined', 'undefined'],
  );
  for (let at = 0; at < 4; at += 1) await pass(clock, 20_000);
  assert.equal(journal().slice(6).map(named), [
    ...['delivered 2 sleep', 'called 3 t.read 1', 'delivered 3 t.read', 'ended'],
  ]);
  assert.equal(second.written, []);
});

/** The only run in a store. */
async function runIn(store: Store): Promise<string> {
  const [row] = await store.list({ kind: 'run', name: 'tested', cells: undefined, limit: 2 });
  return row?.id ?? '';
}

test('a run keeps its script and its newest entries, and no more, however many calls it makes', async () => {
  const shop = workshop({}, { effects: 'allow', waitMs: 1_000 });
  const client = await connect(shop.server, { auth: { principal: 'ada' } });
  const answer = runModern(client, {
    code: 'for (let n = 0; n < 100; n += 1) await t.read({ n }); await sleep(60_000);',
  });
  for (let at = 0; at < 400; at += 1) await settled();
  await pass(shop.clock, 2_000);
  pausedIn(await answer);
  const { journal } = watched(shop);
  const [begun, ...others] = journal();
  assert.is(begun?.what, 'begun');
  assert.ok(others.length >= 40 && others.length <= 50, String(others.length));
  assert.equal([others.at(-1)?.what, others.at(-1)?.index], ['sleeping', 203]);
});

test('a script that has ended before its calls finishes, and then returns', async () => {
  const shop = workshop();
  const { records } = watched(shop);
  const client = await connect(shop.server);
  await runModern(client, { code: 't.read({ n: 1 }); return 1;' });
  const states = records.flatMap((record) =>
    record.type === 'state' && record.actor.startsWith('run/') ? [record.state] : [],
  );
  assert.equal(states, ['computing', 'finishing', 'returned']);
});

test('a listener that only counts gets no entries, and the first viewer after it gets all', async () => {
  const shop = workshop();
  const { inspection } = shop.server[INTERNALS];
  const counted: string[] = [];
  inspection.count(
    ({ type }) => void counted.push(type),
    () => false,
  );
  const client = await connect(shop.server);
  const running = runModern(client, { code: 'await t.read({ n: 1 }); await sleep(60_000); return 1;' });
  for (let at = 0; at < 4; at += 1) await pass(shop.clock, 10);
  assert.ok(counted.includes('step') && !counted.includes('journal'));
  const { journal } = watched(shop);
  assert.equal(journal().map(named), [
    ...['begun', 'called 1 t.read 1', 'delivered 1 t.read', 'called 2 sleep 1', 'sleeping 2 sleep'],
  ]);
  await pass(shop.clock, 60_000);
  pausedIn(await running);
  assert.equal(journal().slice(5).map(named), ['delivered 2 sleep', 'ended']);
});
